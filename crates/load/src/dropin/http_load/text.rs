//! http_load's report, line by line, and its usage.

use std::fmt::Write as _;
use std::time::Duration;

use super::options::Options;
use super::recorder::{Extent, Taken};
use crate::dropin::general::general;
use crate::report::{Report, WarningKind};

/// Below this a rate is not printed: http_load divides by nothing shorter.
const RATED_SECONDS_MIN: f64 = 0.01;

/// What a wrong command line is answered with.
pub(super) const USAGE: &str = "\
Usage: http_load [flags] (-parallel N | -rate N [-jitter]) (-fetches N | -seconds N) url_file
Every flag may be cut short. Flags are:
    -parallel N     Fetches under way at a time
    -rate N         Fetches started a second
    -jitter         Vary the intervals of -rate by a tenth
    -fetches N      End after N fetches
    -seconds N      End after N seconds; what is under way then is not counted
    -checksum       Compare checksums of contents, not only lengths, with the first of each URL
    -throttle       Receive as a modem of 33.6 kbit/s does, on each connection
    -Throttle N     Receive N bits a second on each connection
    -verbose        Say every minute how far it is
    -timeout N      Give up a connection on which nothing moves for N seconds [60]
    -proxy H[:P]    Fetch through an HTTP proxy
    -sip FILE       Use the addresses in the file, one a line, as local ones
    -cipher NAME    Cipher of https, as OpenSSL calls it; or fastsec, highsec, paranoid
  of later versions:
    -seed N         Seed of the random order [0]
    -header 'N: V'  Send a field line; repeatable
  of milepost:
    --quirks=http_load
                    Time and send as http_load does, right or wrong
    --linger-report[=seconds]
                    Wait to see how long the server keeps a connection that it should close [120]
url_file has one URL a line, fetched in random order; - is stdin.
What differs from http_load is in docs/drop-ins.md.
";

/// The report.
pub(super) fn report(options: &Options, report: &Report, taken: &Taken) -> String {
    let mut out = String::new();
    let (fetches, seconds) = (taken.completed, report.seconds);
    let bytes = taken.content_bytes as f64;
    line(
        &mut out,
        format_args!(
            "{fetches} fetches, {} max parallel, {} bytes, in {} seconds",
            report.connections.busy_max,
            general(bytes),
            general(seconds)
        ),
    );
    if fetches > 0 {
        let mean = general(bytes / fetches as f64);
        line(&mut out, format_args!("{mean} mean bytes/connection"));
    }
    if seconds > RATED_SECONDS_MIN {
        let rate = general(fetches as f64 / seconds);
        line(&mut out, format_args!("{rate} fetches/sec, {} bytes/sec", general(bytes / seconds)));
    }
    times(&mut out, "connect", &taken.connect);
    times(&mut out, "first-response", &taken.first_response);
    if taken.timeouts > 0 {
        line(&mut out, format_args!("{} timeouts", taken.timeouts));
    }
    if taken.bad > 0 {
        let what = if options.checksum { "checksums" } else { "byte counts" };
        line(&mut out, format_args!("{} bad {what}", taken.bad));
    }
    line(&mut out, format_args!("HTTP response codes:"));
    for (status, count) in &report.statuses {
        line(&mut out, format_args!("  code {status:03} -- {count}"));
    }
    out
}

/// What goes to stderr beside what http_load prints.
pub(super) fn more(report: &Report, taken: &Taken) -> String {
    let mut out = String::new();
    if taken.complaints_left_out() > 0 {
        let count = taken.complaints_left_out();
        line(&mut out, format_args!("milepost: {count} more such lines were left out"));
    }
    if taken.gave_up {
        line(
            &mut out,
            format_args!("milepost: no connection could be opened any more: ended early"),
        );
    }
    for warning in &report.warnings {
        if warning.kind == WarningKind::RateNotReached {
            line(&mut out, format_args!("milepost: {}", warning.message));
        }
    }
    if report.unanswered > 0 {
        let count = report.unanswered;
        line(&mut out, format_args!("milepost: {count} fetches were under way at the end"));
    }
    out
}

/// A line of `-verbose`.
pub(super) fn progress(elapsed: Duration, completed: u64, started: u64) -> String {
    format!(
        "--- {} secs, {started} fetches started, {completed} completed, {} current\n",
        general(elapsed.as_secs_f64()),
        started.saturating_sub(completed)
    )
}

fn times(out: &mut String, name: &str, times: &Extent) {
    if times.count == 0 {
        return;
    }
    let millis = |seconds: f64| general(seconds * 1e3);
    line(
        out,
        format_args!(
            "msecs/{name}: {} mean, {} max, {} min",
            millis(times.mean()),
            millis(times.max.as_secs_f64()),
            millis(times.min.as_secs_f64())
        ),
    );
}

fn line(out: &mut String, arguments: std::fmt::Arguments<'_>) {
    // Writing to a string does not fail.
    let _ = writeln!(out, "{arguments}");
}
