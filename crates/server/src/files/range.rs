//! Which parts of a file are asked for.
//!
//! Ranges that touch or overlap the one before them become one with it. What is not understood, or is more
//! than the limits of the configuration allow, or is altogether longer than the file, is as if it had not
//! been asked for: the whole file is sent.
//!
//! Source: RFC 9110 section 14; httpd 2.4.71 `modules/http/byterange_filter.c`, `ap_set_byterange`.

use std::ops::Range;

use milepost_engine::{RangeLimit, Serving};
use milepost_http::request::RequestHead;

use super::precondition::is_same_range;
use super::version::Version;

/// What to send.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Selected {
    Whole,
    /// These bytes: at least one range, of at least one byte.
    Ranges(Vec<Range<u64>>),
    /// There are no such bytes.
    Unsatisfiable,
}

/// Selects the parts that `request` asks for.
pub(super) fn select(request: &RequestHead<'_>, version: &Version, serving: &Serving) -> Selected {
    if serving.ranges_max == RangeLimit::None {
        return Selected::Whole;
    }
    match request.fields.first("range") {
        Some(range) if is_same_range(&request.fields, version) => {
            parse(range, version.length, serving).unwrap_or(Selected::Whole)
        }
        _ => Selected::Whole,
    }
}

/// `None`: it is not understood, or too much.
fn parse(value: &[u8], length: u64, serving: &Serving) -> Option<Selected> {
    let text = std::str::from_utf8(value).ok()?;
    let (unit, list) = text.split_at_checked("bytes=".len())?;
    if !unit.eq_ignore_ascii_case("bytes=") || length == 0 {
        return None;
    }
    let mut joined = Joined::default();
    let mut is_unsatisfiable = false;
    if list.starts_with(',') {
        return None;
    }
    for range in list.split(',').filter(|range| !range.is_empty()) {
        if range == "0-" {
            // Who wants everything wants nothing else.
            joined.ranges.clear();
            joined.ranges.push(0..length);
            break;
        }
        match one(range, length)? {
            Some(range) => joined.add(range),
            None => is_unsatisfiable = true,
        }
    }
    let Joined { ranges, overlaps, reversals } = joined;
    let is_too_many = |count: usize, limit: RangeLimit| match limit {
        RangeLimit::None => count > 0,
        RangeLimit::Most(most) => count > most as usize,
        RangeLimit::Unlimited => false,
    };
    if is_too_many(ranges.len(), serving.ranges_max)
        || is_too_many(overlaps, serving.overlaps_max)
        || is_too_many(reversals, serving.reversals_max)
    {
        return None;
    }
    if ranges.is_empty() {
        return is_unsatisfiable.then_some(Selected::Unsatisfiable);
    }
    let sum = ranges.iter().fold(0_u64, |sum, range| sum.saturating_add(range.end - range.start));
    (sum <= length).then_some(Selected::Ranges(ranges))
}

/// Ranges in the order in which they were asked for, and what had to be joined for it.
#[derive(Default)]
struct Joined {
    ranges: Vec<Range<u64>>,
    /// Ranges that became one with the one before them.
    overlaps: usize,
    /// Those of them that began before it.
    reversals: usize,
}

impl Joined {
    fn add(&mut self, range: Range<u64>) {
        let touches = |last: &&mut Range<u64>| range.start <= last.end && range.end >= last.start;
        match self.ranges.last_mut().filter(touches) {
            None => self.ranges.push(range),
            Some(last) => {
                self.overlaps += 1;
                self.reversals += usize::from(range.start < last.start);
                *last = last.start.min(range.start)..last.end.max(range.end);
            }
        }
    }
}

/// Reads `FIRST-LAST` with either number left out. `Some(None)`: there are no such bytes.
fn one(text: &str, length: u64) -> Option<Option<Range<u64>>> {
    let (first, last) = text.split_once('-')?;
    let range = match (number(first)?, number(last)?) {
        (Some(first), Some(last)) if last < first => return None,
        (Some(first), Some(last)) => first..last.saturating_add(1).min(length),
        (Some(first), None) => first..length,
        (None, Some(0) | None) => return None,
        (None, Some(suffix)) => length.saturating_sub(suffix)..length,
    };
    Some((!range.is_empty()).then_some(range))
}

/// Reads digits; nothing is `Some(None)`, anything else `None`.
fn number(text: &str) -> Option<Option<u64>> {
    if text.is_empty() {
        return Some(None);
    }
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // No file is longer than what fits into 63 bits.
    text.parse::<i64>().ok().map(|number| Some(number.cast_unsigned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::single_range_in_vec_init, reason = "one range is what is meant")]
    fn ranges_select_what_they_name() {
        check("bytes=0-0", &[0..1]);
        check("bytes=0-9", &[0..10]);
        check("bytes=2-5", &[2..6]);
        check("bytes=2-100", &[2..10]);
        check("bytes=2-9223372036854775807", &[2..10]);
        check("bytes=1-2,,4-5", &[1..3, 4..6]);
        check("bytes=4-5,0-,2-3", &[0..10]);
        check("bytes=9-", &[9..10]);
        check("Bytes=-3", &[7..10]);
        check("bytes=-30", &[0..10]);
        check("bytes=1-2,4-5", &[1..3, 4..6]);
        check("bytes=4-5,1-2", &[4..6, 1..3]);
        check("bytes=1-2,3-5", &[1..6]);
        check("bytes=1-4,2-3,20-", &[1..5]);
    }

    #[test]
    fn what_is_not_there_is_unsatisfiable() {
        for value in ["bytes=10-", "bytes=10-20", "bytes=10-,11-12"] {
            assert_eq!(parsed(value, &Serving::default()), Selected::Unsatisfiable, "{value}");
        }
    }

    #[test]
    fn what_is_not_understood_or_too_much_is_the_whole() {
        for value in [
            "bytes=5-2",
            "bytes=-",
            "bytes=-0",
            "bytes=a-b",
            "lines=1-2",
            "bytes",
            "bytes=+1-2",
            "bytes=1-2,x",
            "bytes=2-9223372036854775808",
            "bytes=,1-2",
            "bytes=1-2, 4-5",
            "bytes=",
        ] {
            assert_eq!(parsed(value, &Serving::default()), Selected::Whole, "{value}");
        }
    }

    #[test]
    fn limits_hold_at_their_bounds() {
        let most = RangeLimit::Most;
        let serving = |ranges, overlaps, reversals| Serving {
            ranges_max: ranges,
            overlaps_max: overlaps,
            reversals_max: reversals,
            ..Serving::default()
        };
        let whole = |value, serving: Serving| parsed(value, &serving) == Selected::Whole;
        assert!(!whole("bytes=1-1,3-3", serving(most(2), most(0), most(0))));
        assert!(whole("bytes=1-1,3-3", serving(most(1), most(0), most(0))));
        assert!(!whole("bytes=3-5,1-2", serving(most(1), most(1), most(1))));
        assert!(whole("bytes=3-5,1-2", serving(most(1), most(1), most(0))));
        assert!(!whole("bytes=1-2,2-3", serving(most(1), most(1), most(0))));
        assert!(whole("bytes=1-2,2-3", serving(most(1), RangeLimit::None, most(0))));
    }

    #[track_caller]
    fn check(value: &str, expected: &[Range<u64>]) {
        let found = parsed(value, &Serving::default());
        assert_eq!(found, Selected::Ranges(expected.to_vec()), "{value}");
    }

    fn parsed(value: &str, serving: &Serving) -> Selected {
        parse(value.as_bytes(), 10, serving).unwrap_or(Selected::Whole)
    }
}
