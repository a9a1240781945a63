//! The files that ab writes: percentiles (`-e`) and every request (`-g`).

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

use chrono::{DateTime, Local};

use super::Outcome;
use super::text::{Columns, millis};

const NANOS_PER_MILLI: f64 = 1e6;

/// The files that are asked for: path, what ab calls it, and what is in it.
pub(super) fn files<'a>(outcome: &Outcome<'a>) -> Vec<(&'a Path, &'static str, String)> {
    let options = outcome.options;
    let mut files = Vec::new();
    if let Some(path) = &options.csv {
        files.push((path.as_path(), "CSV", percentiles(outcome)));
    }
    if let Some(path) = &options.gnuplot {
        files.push((path.as_path(), "gnuplot", requests(outcome)));
    }
    files
}

fn percentiles(outcome: &Outcome<'_>) -> String {
    let mut out = "Percentage served,Time in ms\n".to_owned();
    let Some(times) = Columns::of(&outcome.taken.rows) else { return out };
    let (total, count) = (&times.total, times.total.ascending().len());
    for percent in 0..=100 {
        let time = match percent {
            0 => total.min(),
            100 => total.max(),
            // Rounds, and so reads past the end of a small sample; here it stays at the last.
            _ if outcome.options.quirks => {
                let at = (0.5 + count as f64 * f64::from(percent) / 100.0) as usize;
                total.ascending()[at.min(count - 1)]
            }
            _ => total.percentile(percent),
        };
        let _ = writeln!(out, "{percent},{:.3}", time as f64 / NANOS_PER_MILLI);
    }
    out
}

fn requests(outcome: &Outcome<'_>) -> String {
    let mut rows = outcome.taken.rows.clone();
    rows.sort_by_key(|row| row.total);
    let mut out = "starttime\tseconds\tctime\tdtime\tttime\twait\n".to_owned();
    for row in rows {
        let began = outcome.began + Duration::from_nanos(row.began);
        let seconds =
            began.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let date = DateTime::<Local>::from(began).format("%a %b %d %H:%M:%S %Y");
        let _ = writeln!(
            out,
            "{date}\t{seconds}\t{}\t{}\t{}\t{}",
            millis(row.connect),
            millis(row.processing()),
            millis(row.total),
            millis(row.waiting)
        );
    }
    out
}
