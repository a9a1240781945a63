//! Preconditions: whether the client's copy is still good, or its change may still be made.
//!
//! Source: RFC 9110 section 13.1; httpd 2.4.71 `modules/http/http_protocol.c`, `ap_meets_conditions`.

use std::time::SystemTime;

use milepost_http::request::{FieldLines, RequestHead};

use super::version::Version;

/// What the preconditions of a request come to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Precondition {
    /// Answer as if there were none.
    Passed,
    /// The client has this version.
    NotModified,
    /// The client means another version.
    Failed,
}

/// Evaluates all of them, as httpd does: a client that states two conditions means both.
pub(super) fn evaluate(request: &RequestHead<'_>, version: &Version) -> Precondition {
    let fields = &request.fields;
    let etag = &version.etag[..];
    if fields.count("if-match") > 0 && !list_has(fields, "if-match", etag, same_strongly) {
        return Precondition::Failed;
    }
    let mut may_be_same = true;
    if let Some(date) = date(fields, "if-unmodified-since") {
        if version.modified > date {
            return Precondition::Failed;
        }
        may_be_same = false;
    }
    let reading = matches!(request.method, b"GET" | b"HEAD");
    let mut is_same = false;
    if fields.count("if-none-match") > 0 {
        // Parts of two versions that only mean the same do not fit together.
        let in_parts = fields.count("range") > 0;
        let same = if reading && !in_parts { same_weakly } else { same_strongly };
        is_same = list_has(fields, "if-none-match", etag, same);
        may_be_same &= is_same;
        if is_same && !reading {
            return Precondition::Failed;
        }
    }
    if let Some(date) = date(fields, "if-modified-since").filter(|_| reading) {
        // A client whose clock is ahead of ours knows nothing of what will be changed until then.
        is_same = version.modified <= date && date <= SystemTime::now();
        may_be_same &= is_same;
    }
    if is_same && may_be_same { Precondition::NotModified } else { Precondition::Passed }
}

/// Whether a range may be taken from this version: what `If-Range` names is the same.
pub(super) fn is_same_range(fields: &FieldLines<'_>, version: &Version) -> bool {
    match fields.first("if-range") {
        None => true,
        Some(value) if value.starts_with(b"\"") || value.starts_with(b"W/") => {
            same_strongly(value, &version.etag)
        }
        Some(value) => parse_date(value) == Some(version.modified),
    }
}

fn list_has(
    fields: &FieldLines<'_>,
    name: &str,
    etag: &[u8],
    same: fn(&[u8], &[u8]) -> bool,
) -> bool {
    // Our own tags have no comma in them, so a list can be split at every one.
    fields
        .all(name)
        .flat_map(|value| value.split(|&byte| byte == b','))
        .map(<[u8]>::trim_ascii)
        .any(|tag| tag == b"*" || !tag.is_empty() && same(tag, etag))
}

fn same_strongly(one: &[u8], other: &[u8]) -> bool {
    !one.starts_with(b"W/") && one == other
}

fn same_weakly(one: &[u8], other: &[u8]) -> bool {
    let opaque = |tag| <[u8]>::strip_prefix(tag, b"W/").unwrap_or(tag);
    opaque(one) == opaque(other)
}

fn date(fields: &FieldLines<'_>, name: &str) -> Option<SystemTime> {
    fields.first(name).and_then(parse_date)
}

/// Reads a date in any of the three forms; what is none is as if it were not there.
fn parse_date(value: &[u8]) -> Option<SystemTime> {
    httpdate::parse_http_date(std::str::from_utf8(value).ok()?).ok()
}
