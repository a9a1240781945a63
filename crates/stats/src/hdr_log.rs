//! Histograms in the log format of HdrHistogram, version 2 of its encoding, for tools that read it.
//!
//! One line an interval: a tag if there are several kinds, when it began and how long it was in seconds,
//! the longest time in milliseconds, and the counts, compressed. Times within are nanoseconds. What was
//! censored has no place in that format and is left out.
//!
//! Source: HdrHistogram's `HistogramLogWriter` and `HistogramLogReader`, log format 1.3.

use std::time::Duration;

use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};

use crate::histogram::Histogram;

/// Nanoseconds in a millisecond: what readers expect of a log in nanoseconds.
const MAX_DIVISOR: f64 = 1e6;

/// What stands at the beginning of a log that began at `epoch`, the time since 1970.
#[must_use]
pub fn header(program: &str, epoch: Duration) -> String {
    let seconds = epoch.as_secs_f64();
    format!(
        "#[Logged with {program}]\n\
         #[Histogram log format version 1.3]\n\
         #[StartTime: {seconds:.3} (seconds since epoch)]\n\
         #[BaseTime: {seconds:.3} (seconds since epoch)]\n\
         \"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n"
    )
}

/// The line of one interval, with its end; `start` counts from the beginning of the log. `None` when
/// `tag` has a comma or white space in it.
#[must_use]
pub fn line(
    times: &Histogram,
    start: Duration,
    length: Duration,
    tag: Option<&str>,
) -> Option<String> {
    let tag = match tag {
        None => None,
        Some(name) => Some(Tag::new(name)?),
    };
    let mut bytes = Vec::new();
    let mut serializer = V2DeflateSerializer::new();
    let mut builder = IntervalLogWriterBuilder::new();
    builder.with_max_value_divisor(MAX_DIVISOR);
    let mut log = builder.begin_log_with(&mut bytes, &mut serializer).ok()?;
    log.write_histogram(times.counts(), start, length, tag).ok()?;
    let text = String::from_utf8(bytes).ok()?;
    // In front of it stand comments of the log, which has begun already.
    text.lines().last().map(|line| format!("{line}\n"))
}

#[cfg(test)]
mod tests {
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let mut times = Histogram::new();
        (1..=1_000).for_each(|millis| times.record(millis * 1_000_000));
        let second = Duration::from_secs(1);
        let log = header("milepost 0.1.0", Duration::from_millis(1_700_000_000_250))
            + &line(&times, second, second * 2, None).unwrap()
            + &line(&Histogram::new(), second * 3, second, Some("service")).unwrap();
        assert!(log.contains("\n#[StartTime: 1700000000.250 (seconds since epoch)]\n"), "{log}");
        // The header of the table is no entry to this reader, as it is to others.
        let entries: String =
            log.lines().filter(|line| !line.starts_with('"')).map(|it| format!("{it}\n")).collect();
        let intervals: Vec<_> = IntervalLogIterator::new(entries.as_bytes())
            .filter_map(|entry| match entry.unwrap() {
                LogEntry::Interval(interval) => Some(interval),
                _ => None,
            })
            .collect();
        assert_eq!(intervals.len(), 2);
        assert_eq!((intervals[0].start_timestamp(), intervals[0].duration()), (second, second * 2));
        assert!((intervals[0].max() - 1_000.0).abs() < 1.0, "{log}");
        assert_eq!(intervals[1].tag().unwrap().as_str(), "service");
        assert!(intervals[0].encoded_histogram().starts_with("HISTFAAA"), "{log}");
    }

    #[test]
    fn a_tag_is_one_word() {
        assert_eq!(line(&Histogram::new(), Duration::ZERO, Duration::ZERO, Some("a,b")), None);
    }
}
