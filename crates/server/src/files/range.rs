//! Which part of a file is asked for.
//!
//! One range is answered with that part. Several would need a multipart body that no client of ours
//! asks for; the RFC lets a server send the whole instead, and that is what happens. A range that is
//! not understood is no range.
//!
//! Source: RFC 9110 section 14.

use std::ops::Range;

use milepost_http::request::RequestHead;

use super::precondition::is_same_range;
use super::version::Version;

/// What to send.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Part {
    Whole,
    /// These bytes, at least one.
    Range(Range<u64>),
    /// There are no such bytes.
    Unsatisfiable,
}

/// Selects the part that `request` asks for.
pub(super) fn select(request: &RequestHead<'_>, version: &Version) -> Part {
    if request.method != b"GET" {
        return Part::Whole;
    }
    match request.fields.first("range") {
        Some(range) if is_same_range(&request.fields, version) => parse(range, version.length),
        _ => Part::Whole,
    }
}

fn parse(value: &[u8], length: u64) -> Part {
    let Some((first, last)) = split(value) else { return Part::Whole };
    let range = match (first, last) {
        (Some(first), Some(last)) if last < first => return Part::Whole,
        (Some(first), Some(last)) => first..last.saturating_add(1).min(length),
        (Some(first), None) => first..length,
        (None, Some(suffix)) => length.saturating_sub(suffix)..length,
        (None, None) => return Part::Whole,
    };
    if range.is_empty() { Part::Unsatisfiable } else { Part::Range(range) }
}

/// Splits `bytes=FIRST-LAST` with either number left out.
fn split(value: &[u8]) -> Option<(Option<u64>, Option<u64>)> {
    let text = std::str::from_utf8(value).ok()?;
    let (unit, range) = text.split_once('=')?;
    if !unit.eq_ignore_ascii_case("bytes") {
        return None;
    }
    let (first, last) = range.trim().split_once('-')?;
    Some((number(first)?, number(last)?))
}

/// Reads digits; nothing is `Some(None)`, anything else `None`.
fn number(text: &str) -> Option<Option<u64>> {
    if text.is_empty() {
        return Some(None);
    }
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // A number beyond 64 bits lies beyond every file.
    Some(Some(text.parse().unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_select_what_they_name() {
        check("bytes=0-0", Part::Range(0..1));
        check("bytes=0-9", Part::Range(0..10));
        check("bytes=2-5", Part::Range(2..6));
        check("bytes=2-100", Part::Range(2..10));
        check("bytes=2-99999999999999999999", Part::Range(2..10));
        check("bytes=9-", Part::Range(9..10));
        check("Bytes=-3", Part::Range(7..10));
        check("bytes=-30", Part::Range(0..10));
        check("bytes=10-", Part::Unsatisfiable);
        check("bytes=10-20", Part::Unsatisfiable);
        check("bytes=-0", Part::Unsatisfiable);
    }

    #[test]
    fn what_is_no_single_range_is_the_whole() {
        for value in [
            "bytes=5-2",
            "bytes=-",
            "bytes=a-b",
            "bytes=1-2,4-5",
            "lines=1-2",
            "bytes",
            "bytes=+1-2",
        ] {
            check(value, Part::Whole);
        }
    }

    #[track_caller]
    fn check(value: &str, expected: Part) {
        assert_eq!(parse(value.as_bytes(), 10), expected, "{value}");
    }
}
