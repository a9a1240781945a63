//! Preconditions: whether the client's copy is still good, or its change may still be made.
//!
//! Source: RFC 9110 sections 13.1 and 13.2.2 (the order).

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

/// Evaluates all of them, in the order of the RFC.
pub(super) fn evaluate(request: &RequestHead<'_>, version: &Version) -> Precondition {
    let fields = &request.fields;
    let etag = &version.etag[..];
    if fields.count("if-match") > 0 {
        if !list_has(fields, "if-match", etag, same_strongly) {
            return Precondition::Failed;
        }
    } else if let Some(date) = date(fields, "if-unmodified-since")
        && version.modified > date
    {
        return Precondition::Failed;
    }
    let reading = matches!(request.method, b"GET" | b"HEAD");
    if fields.count("if-none-match") > 0 {
        if list_has(fields, "if-none-match", etag, same_weakly) {
            return if reading { Precondition::NotModified } else { Precondition::Failed };
        }
    } else if reading
        && let Some(date) = date(fields, "if-modified-since")
        && version.modified <= date
    {
        return Precondition::NotModified;
    }
    Precondition::Passed
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
        .any(|tag| tag == b"*" || same(tag, etag))
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
