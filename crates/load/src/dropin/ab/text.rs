//! ab's report, line by line.

use std::fmt::Write as _;
use std::net::IpAddr;
use std::sync::LazyLock;

use super::Outcome;
use super::options::Options;
use super::recorder::Row;
use crate::dropin::sample::Sample;
use crate::report::TlsSession;

/// Width of the labels.
const LABEL_WIDTH: usize = 24;

/// Percentages of the table.
const PERCENTAGES: [u32; 9] = [50, 66, 75, 80, 90, 95, 98, 99, 100];

const NANOS_PER_MILLI: f64 = 1e6;

/// What stands in front of every output: three lines, as ab has.
pub(super) static BANNER: LazyLock<String> = LazyLock::new(|| {
    format!(
        "This is milepost {}, speaking as ApacheBench, Version 2.3\n\
         Every request says whether its connection persists; an answer ends where its framing says\n\
         What differs from ab is in docs/drop-ins.md; --quirks=ab24 counts as it does\n\n",
        env!("CARGO_PKG_VERSION")
    )
});

/// What `-h` prints.
pub(super) const USAGE: &str = "\
Usage: ab [options] [http[s]://]hostname[:port]/path
Options are:
    -n requests     Requests in all [1]
    -c concurrency  Requests outstanding at a time [1]
    -t timelimit    End after this many seconds; 50000 requests at most unless -n says otherwise
    -s timeout      End when nothing is received for this many seconds [30]
    -b windowsize   Bytes of the send and of the receive buffer
    -B address      Local address of connections
    -p postfile     POST this file; -T says what it is
    -u putfile      PUT this file; -T says what it is
    -T content-type Content type of -p and -u [text/plain]
    -v verbosity    2 shows request and answers, 3 their status too
    -w              Print HTML tables
    -i              Use HEAD
    -x attributes   Attributes of the HTML table
    -y attributes   Attributes of its rows
    -z attributes   Attributes of its cells
    -C attribute    Send a cookie, such as 'Apache=1234'; repeatable
    -H attribute    Send a field line, such as 'Accept-Encoding: gzip'; repeatable
    -A attribute    Credentials for the server: user:password
    -P attribute    Credentials for the proxy: user:password
    -X proxy:port   Proxy
    -V              Print the version
    -k              Keep connections alive
    -d              Do not print the percentiles
    -S              Do not print deviations, medians and warnings
    -q              Do not print progress
    -l              Accept answers of different lengths
    -g filename     Write the times of every request, separated by tabs
    -e filename     Write a CSV file of the percentiles
    -r              Go on after errors of a socket
    -m method       Method
    -I              Do not tell the server its name in TLS
    -Z ciphers      Ciphers of TLS, as OpenSSL calls them
    -f protocol     Version of TLS: TLS1.2, TLS1.3 or ALL
    -E file         Certificate of the client, with its key, in PEM form
    -h              Print this
  of milepost:
    --quirks=ab24   Count as ab of httpd 2.4 does, right or wrong
    --linger-report[=seconds]
                    Wait to see how long the server keeps a connection that it should close [120]
";

/// What is printed before the run.
pub(super) fn opening(options: &Options) -> String {
    let mut out = if options.html {
        let banner = BANNER.trim_end().replace('\n', "<br>\n ");
        format!("<p>\n {banner}<br>\n</p>\n<p>\n")
    } else {
        BANNER.clone()
    };
    if !options.html {
        out.push_str(&format!("Benchmarking {} ", options.url.host()));
        if let Some(proxy) = &options.proxy {
            out.push_str(&format!("[through {}:{}] ", proxy.url.host(), proxy.url.port()));
        }
        out.push_str("(be patient)");
        out.push_str(if options.shows_progress() { "\n" } else { "..." });
    }
    out
}

/// The report.
pub(super) fn report(outcome: &Outcome<'_>) -> String {
    let mut out = "\n\n".to_owned();
    head(&mut out, outcome);
    counts(&mut out, outcome);
    rates(&mut out, outcome);
    if let Some(times) = Columns::of(&outcome.taken.rows) {
        let options = outcome.options;
        out.push_str("\nConnection Times (ms)\n");
        connection_times(&mut out, options, &times);
        if !options.hides_percentiles && outcome.taken.rows.len() > 1 {
            percentiles(&mut out, &times.total, options.quirks);
        }
    }
    out
}

/// Version, cipher, bits of the server's key and of the cipher's.
fn protocol(session: &TlsSession) -> String {
    let cipher_bits = if session.cipher.contains("128") { 128 } else { 256 };
    let key_bits = session.server_key_bits.unwrap_or_default();
    format!("{},{},{key_bits},{cipher_bits}", session.version, session.cipher)
}

/// The group of the key exchange, as ab has it.
fn temporary_key(group: &str) -> Option<&'static str> {
    Some(match group {
        "X25519" => "X25519 253 bits",
        "secp256r1" => "ECDH prime256v1 256 bits",
        "secp384r1" => "ECDH secp384r1 384 bits",
        _ => return None,
    })
}

fn head(out: &mut String, outcome: &Outcome<'_>) {
    let Outcome { options, taken, .. } = outcome;
    line(out, "Server Software", &taken.server);
    line(out, "Server Hostname", options.url.host());
    line(out, "Server Port", options.url.port());
    if let Some(tls) = &outcome.report.tls {
        line(out, "SSL/TLS Protocol", protocol(&tls.session));
        if let Some(key) = tls.session.key_exchange.as_deref().and_then(temporary_key) {
            line(out, "Server Temp Key", key);
        }
        if !options.hides_server_name && options.url.host().parse::<IpAddr>().is_err() {
            line(out, "TLS Server Name", options.url.host());
        }
    }
    out.push('\n');
    line(out, "Document Path", options.url.request_target());
    if options.accepts_any_length {
        line(out, "Document Length", "Variable");
    } else {
        let bytes = taken.document_bytes.unwrap_or_default();
        line(out, "Document Length", format_args!("{bytes} bytes"));
    }
    out.push('\n');
}

fn counts(out: &mut String, outcome: &Outcome<'_>) {
    let Outcome { options, taken, report, .. } = outcome;
    line(out, "Concurrency Level", options.concurrency);
    line(out, "Time taken for tests", format_args!("{:.3} seconds", report.seconds));
    line(out, "Complete requests", taken.done());
    let failed = &taken.failed;
    line(out, "Failed requests", failed.sum());
    if failed.sum() > 0 {
        let _ = writeln!(
            out,
            "   (Connect: {}, Receive: {}, Length: {}, Exceptions: {})",
            failed.connect, failed.receive, failed.length, failed.exceptions
        );
    }
    if taken.not_2xx > 0 {
        line(out, "Non-2xx responses", taken.not_2xx);
    }
    if options.keep_alive {
        line(out, "Keep-Alive requests", taken.kept_alive);
    }
    line(out, "Total transferred", format_args!("{} bytes", report.bytes.received));
    if options.body.is_some() {
        line(out, "Total body sent", report.bytes.sent);
    }
    line(out, "HTML transferred", format_args!("{} bytes", report.bytes.content));
}

fn rates(out: &mut String, outcome: &Outcome<'_>) {
    let Outcome { options, taken, report, .. } = outcome;
    let (done, seconds) = (taken.done() as f64, report.seconds);
    if seconds <= 0.0 || done <= 0.0 {
        return;
    }
    line(out, "Requests per second", format_args!("{:.2} [#/sec] (mean)", done / seconds));
    let each = seconds * 1_000.0 / done;
    let concurrency = options.concurrency as f64;
    line(out, "Time per request", format_args!("{:.3} [ms] (mean)", concurrency * each));
    let across = "[ms] (mean, across all concurrent requests)";
    line(out, "Time per request", format_args!("{each:.3} {across}"));
    let rate = |bytes: u64| bytes as f64 / 1_024.0 / seconds;
    let received = rate(report.bytes.received);
    line(out, "Transfer rate", format_args!("{received:.2} [Kbytes/sec] received"));
    if options.body.is_some() {
        let sent = rate(report.bytes.sent);
        let _ = writeln!(out, "{:LABEL_WIDTH$}{sent:.2} kb/s sent", "");
        let _ = writeln!(out, "{:LABEL_WIDTH$}{:.2} kb/s total", "", received + sent);
    }
}

/// The four columns of times.
#[derive(Debug)]
pub(super) struct Columns {
    pub(super) connect: Sample,
    pub(super) processing: Sample,
    pub(super) waiting: Sample,
    pub(super) total: Sample,
}

impl Columns {
    /// `None` without rows.
    pub(super) fn of(rows: &[Row]) -> Option<Self> {
        let column = |time: fn(&Row) -> u64| Sample::new(rows.iter().map(time).collect());
        Some(Self {
            connect: column(|row| row.connect)?,
            processing: column(Row::processing)?,
            waiting: column(|row| row.waiting)?,
            total: column(|row| row.total)?,
        })
    }
}

fn connection_times(out: &mut String, options: &Options, times: &Columns) {
    let rows = [
        ("Connect:", &times.connect, "the initial connection time"),
        ("Processing:", &times.processing, "the processing time"),
        ("Waiting:", &times.waiting, "the waiting time"),
        ("Total:", &times.total, "the total time"),
    ];
    if options.hides_deviation {
        out.push_str("              min   avg   max\n");
        for (label, column, _) in rows {
            let (min, mean, max) =
                (millis(column.min()), rounded(column.mean()), millis(column.max()));
            let _ = writeln!(out, "{label:<11} {min:5} {mean:5}{max:5}");
        }
        return;
    }
    out.push_str("              min  mean[+/-sd] median   max\n");
    let mut warnings = String::new();
    for (label, column, name) in rows {
        let median = median(column, options.quirks);
        let (mean, deviation) = (column.mean(), column.deviation());
        let _ = writeln!(
            out,
            "{label:<11} {:5} {:4} {:5.1} {:6} {:7}",
            millis(column.min()),
            rounded(mean),
            deviation / NANOS_PER_MILLI,
            rounded(median),
            millis(column.max())
        );
        // Mean and median are never more than a standard deviation apart, so there is nothing to warn
        // of; ab finds them so when it has rounded them to milliseconds.
        if !options.quirks {
            continue;
        }
        let apart = rounded(mean).abs_diff(rounded(median)) as f64 * NANOS_PER_MILLI;
        if apart > 2.0 * deviation {
            let _ = writeln!(
                warnings,
                "ERROR: The median and mean for {name} are more than twice the standard\n       \
                 deviation apart. These results are NOT reliable."
            );
        } else if apart > deviation {
            let _ = writeln!(
                warnings,
                "WARNING: The median and mean for {name} are not within a normal deviation\n        \
                 These results are probably not that reliable."
            );
        }
    }
    out.push_str(&warnings);
}

/// ab swaps what is to be done with an odd and with an even number of times.
fn median(sample: &Sample, quirks: bool) -> f64 {
    let (times, middle) = (sample.ascending(), sample.ascending().len() / 2);
    match times.len() {
        _ if !quirks => sample.median(),
        count if count > 1 && count % 2 == 1 => {
            (times[middle] as f64 + times[middle + 1] as f64) / 2.0
        }
        _ => times[middle] as f64,
    }
}

fn percentiles(out: &mut String, total: &Sample, quirks: bool) {
    out.push_str("\nPercentage of the requests served within a certain time (ms)\n");
    for percent in PERCENTAGES {
        let time = match percent {
            100 => total.max(),
            _ if quirks => {
                // One rank too high.
                let at = total.ascending().len() * percent as usize / 100;
                total.ascending()[at.min(total.ascending().len() - 1)]
            }
            _ => total.percentile(percent),
        };
        let note = if percent == 100 { " (longest request)" } else { "" };
        let _ = writeln!(out, "{percent:4}%  {:5}{note}", millis(time));
    }
}

/// Milliseconds, rounded half up.
pub(super) fn millis(nanos: u64) -> u64 {
    nanos.saturating_add(500_000) / 1_000_000
}

/// The same of a figure that is no whole number.
pub(super) fn rounded(nanos: f64) -> u64 {
    millis(nanos.round() as u64)
}

fn line(out: &mut String, label: &str, value: impl std::fmt::Display) {
    let _ = writeln!(out, "{:<LABEL_WIDTH$}{value}", format!("{label}:"));
}
