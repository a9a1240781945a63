//! siege's lines, report, JSON and log.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use chrono::Local;

use super::recorder::{Taken, ticks};
use super::settings::{Mode, Quirks, Reps, Settings};
use crate::observer::{Answered, Exchanged};
use crate::report::Report;
use crate::target::Version;

const BYTES_PER_MEGABYTE: f64 = 1024.0 * 1024.0;

/// First line of a new log file.
pub(super) const LOG_HEADER: &str = "      Date & Time,  Trans,  Elap Time,  Data Trans,  Resp Time,  \
    Trans Rate,  Throughput,  Concurrent,    OKAY,   Failed\n";

/// Too many connections failed.
pub(super) const ABORTED: &str = "siege aborted due to excessive socket failure; you\n\
    can change the failure threshold in $HOME/.siegerc\n";

/// What `-h` prints.
pub(super) const USAGE: &str = "\
Usage: siege [options]
       siege [options] URL
       siege -g URL
Options:
  -V, --version             Print the version
  -h, --help                Print this
  -C, --config              Print the settings
  -v, --verbose             Print a line for each transaction
  -q, --quiet               Print nothing
  -g, --get                 Request once and print the heads
  -p, --print               Request once and print the content
  -c, --concurrent=NUM      Users [25]
  -r, --reps=NUM            Requests of each user; once: the whole list
  -t, --time=NUMm           End after this time, with S, M or H; minutes without
  -d, --delay=NUM           Longest pause of a user, in seconds, drawn from zero to that
  -b, --benchmark           No pause
  -i, --internet            Each user draws URLs at random, all with the same probability
  -f, --file=FILE           List of URLs
  -R, --rc=FILE             Resource file
  -l, --log[=FILE]          Add the result to a log file
  -m, --mark=\"text\"         And a line with this text before it
  -H, --header=\"text\"       Send a field line; repeatable
  -A, --user-agent=\"text\"   Value of the User-Agent field
  -T, --content-type=\"text\" Type of contents
  -j, --json-output         Print the result as JSON on stdout, and nothing else
      --no-parser           Do not request the elements of pages
      --no-follow           Do not follow redirects
  of milepost:
      --quirks=NAME         Count as siege40 or siege42 do, right or wrong
      --linger-report[=SECONDS]
                            Wait to see how long the server keeps a connection that it
                            should close [120]
  not done: -D
";

/// The name of the program and its version.
pub(super) fn name() -> String {
    format!("milepost {}, speaking as SIEGE 4.0.7", env!("CARGO_PKG_VERSION"))
}

/// What is printed before the run.
pub(super) fn opening(users: usize) -> String {
    format!(
        "** {}\n** Preparing {users} concurrent users for battle.\nThe server is now under siege...\n",
        name()
    )
}

/// Says that there are fewer users than asked for, if so.
pub(super) fn capped(settings: &Settings) -> Option<String> {
    let bar = "=".repeat(64);
    (settings.concurrent > settings.limit).then(|| {
        format!(
            "\n{bar}\nWARNING: The number of users is capped at {}.  To increase this\n         \
             limit, set 'limit' in your resource file.\n{bar}\n",
            settings.limit
        )
    })
}

/// Says which of time and repetitions counts.
pub(super) fn conflict(settings: &Settings) -> String {
    let seconds = settings.time.map_or(0.0, |time| time.as_secs_f64());
    format!(
        "[error] CONFIG conflict: selected time and repetition based testing\n\
         defaulting to time-based testing: {seconds} seconds\n"
    )
}

/// The line of one exchange.
pub(super) fn line(settings: &Settings, exchange: &Exchanged<'_>, answer: &Answered<'_>) -> String {
    let seconds = (exchange.ended - exchange.began).as_secs_f64();
    let (status, bytes, method) = (answer.status, answer.content_bytes, &exchange.target.method);
    let protocol = format!("HTTP/1.{}", answer.version_minor);
    let uri = exchange.target.uri();
    let user = exchange.connection;
    let now = Local::now();
    let stamp = match settings.timestamp {
        true => now.format("[%a, %Y-%m-%d %H:%M:%S] ").to_string(),
        false => String::new(),
    };
    if settings.csv {
        let id = if settings.display_id { format!("{user:4},") } else { String::new() };
        let date = now.format("%Y-%m-%d %H:%M:%S");
        return format!(
            "{stamp}{id}{protocol},{status},{seconds:6.2},{bytes:7},{uri},{user},{date}\n"
        );
    }
    let is_plain = matches!(method.as_str(), "GET" | "HEAD") && !settings.full_url;
    let path = if is_plain { path_of(&exchange.target.request_target) } else { &uri };
    if settings.display_id {
        return format!(
            "{user:4}) {protocol} {status} {seconds:6.2} secs: {bytes:7} bytes ==> {method:<4} {path}\n"
        );
    }
    format!(
        "{stamp}{protocol} {status}    {seconds:5.2} secs: {bytes:7} bytes ==> {method:<4} {path}\n"
    )
}

/// The path of a request-target, which holds the whole URI when it goes to a proxy.
fn path_of(request_target: &str) -> &str {
    let Some((_, rest)) = request_target.split_once("://") else { return request_target };
    rest.find('/').map_or("/", |slash| &rest[slash..])
}

/// One exchange as `-g` and `-p` show it.
pub(super) fn shown(request: &[u8], answer: &[u8]) -> String {
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    format!("{}\n{}\n", text(request), text(answer))
}

/// The figures of the report.
#[derive(Debug)]
pub(super) struct Figures {
    transactions: u64,
    availability: f64,
    elapsed: f64,
    megabytes: f64,
    response: f64,
    rate: f64,
    throughput: f64,
    concurrency: f64,
    successful: u64,
    failed: u64,
    longest: f64,
    shortest: f64,
}

impl Figures {
    pub(super) fn new(settings: &Settings, report: &Report, taken: &Taken) -> Self {
        let mut elapsed = report.seconds;
        if settings.quirks == Quirks::Siege40 {
            elapsed = ticks(Duration::from_secs_f64(elapsed)).as_secs_f64();
        }
        let (transactions, failed) = (taken.transactions as f64, taken.failed as f64);
        let time = taken.time.as_secs_f64();
        let megabytes = taken.content_bytes as f64 / BYTES_PER_MEGABYTE;
        let ratio = |of: f64, to: f64| if to > 0.0 { of / to } else { 0.0 };
        Self {
            transactions: taken.transactions,
            availability: 100.0 * ratio(transactions, transactions + failed),
            elapsed,
            megabytes,
            response: ratio(time, transactions),
            rate: ratio(transactions, elapsed),
            throughput: ratio(megabytes, elapsed),
            concurrency: ratio(time, elapsed),
            successful: taken.successful,
            failed: taken.failed,
            longest: taken.longest.as_secs_f64(),
            shortest: taken.shortest.unwrap_or_default().as_secs_f64(),
        }
    }

    /// The report. siege 4.2 tells the times of transactions in milliseconds.
    pub(super) fn report(&self, quirks: Quirks) -> String {
        let is_42 = quirks == Quirks::Siege42;
        let (factor, unit, end) = if is_42 { (1000.0, "ms", " ms") } else { (1.0, "secs", "") };
        let hits = match is_42 {
            true => format!("{:9}    hits", self.transactions),
            false => format!("{:12} hits", self.transactions),
        };
        let count = |count: u64| if is_42 { format!("{count:9}") } else { format!("{count:12}") };
        format!(
            "Transactions:\t\t{hits}\n\
             Availability:\t\t{:12.2} %\n\
             Elapsed time:\t\t{:12.2} secs\n\
             Data transferred:\t{:12.2} MB\n\
             Response time:\t\t{:12.2} {unit}\n\
             Transaction rate:\t{:12.2} trans/sec\n\
             Throughput:\t\t{:12.2} MB/sec\n\
             Concurrency:\t\t{:12.2}\n\
             Successful transactions:{}\n\
             Failed transactions:\t{}\n\
             Longest transaction:\t{:12.2}{end}\n\
             Shortest transaction:\t{:12.2}{end}\n \n",
            self.availability,
            self.elapsed,
            self.megabytes,
            self.response * factor,
            self.rate,
            self.throughput,
            self.concurrency,
            count(self.successful),
            count(self.failed),
            self.longest * factor,
            self.shortest * factor,
        )
    }

    /// The same as JSON.
    pub(super) fn json(&self) -> String {
        format!(
            "{{\t\"transactions\":\t\t\t{:12},\n\
             \t\"availability\":\t\t\t{:12.2},\n\
             \t\"elapsed_time\":\t\t\t{:12.2},\n\
             \t\"data_transferred\":\t\t{:12.2},\n\
             \t\"response_time\":\t\t{:12.2},\n\
             \t\"transaction_rate\":\t\t{:12.2},\n\
             \t\"throughput\":\t\t\t{:12.2},\n\
             \t\"concurrency\":\t\t\t{:12.2},\n\
             \t\"successful_transactions\":\t{:12},\n\
             \t\"failed_transactions\":\t\t{:12},\n\
             \t\"longest_transaction\":\t\t{:12.2},\n\
             \t\"shortest_transaction\":\t\t{:12.2}\n}}\n",
            self.transactions,
            self.availability,
            self.elapsed,
            self.megabytes,
            self.response,
            self.rate,
            self.throughput,
            self.concurrency,
            self.successful,
            self.failed,
            self.longest,
            self.shortest,
        )
    }

    /// The row of the log file.
    pub(super) fn log_row(&self) -> String {
        format!(
            "{},{:7},{:11.2},{:12},{:11.2},{:12.2},{:12.2},{:12.2},{:8},{:8}\n",
            Local::now().format("%Y-%m-%d %H:%M:%S"),
            self.transactions,
            self.elapsed,
            self.megabytes as u64,
            self.response,
            self.rate,
            self.throughput,
            self.concurrency,
            self.successful,
            self.failed,
        )
    }
}

/// Says where the log is.
pub(super) fn log_note(path: &Path) -> String {
    format!(
        "LOG FILE: {}\nYou can disable this log file notification by editing your\n\
         resource file and changing 'show-logfile' to false.\n",
        path.display()
    )
}

/// What `-C` prints.
pub(super) fn configuration(settings: &Settings, file: Option<&Path>) -> String {
    let mut out = format!(
        "CURRENT  SIEGE  CONFIGURATION\n{}\nEdit the resource file to change the settings.\n{}\n",
        name(),
        "-".repeat(46)
    );
    let mut row = |label: &str, value: &dyn std::fmt::Display| {
        let _ = writeln!(out, "{:<32}{value}", format!("{label}:"));
    };
    let yes = |flag: bool| if flag { "true" } else { "false" };
    let or = |text: &Option<String>, other: &str| text.clone().unwrap_or_else(|| other.to_owned());
    let path = |path: Option<&Path>| path.map_or_else(String::new, |it| it.display().to_string());
    row("version", &env!("CARGO_PKG_VERSION"));
    row("verbose", &yes(settings.verbose));
    row("quiet", &yes(settings.quiet));
    row("protocol", &if settings.version == Version::Http11 { "HTTP/1.1" } else { "HTTP/1.0" });
    row("HTML parser", &if settings.parser { "enabled" } else { "disabled" });
    row("get method", &settings.get_method);
    row("connection", &if settings.keep_alive { "keep-alive" } else { "close" });
    row("concurrent users", &settings.concurrent);
    match settings.time {
        Some(time) => row("time to run", &format_args!("{} secs", time.as_secs_f64())),
        None => row("time to run", &"n/a"),
    }
    match settings.reps {
        Reps::Endless => row("repetitions", &"n/a"),
        Reps::Count(count) => row("repetitions", &count),
        Reps::Once => row("repetitions", &"once"),
    }
    row("socket timeout", &settings.timeout.as_secs_f64());
    row("accept-encoding", &settings.accept_encoding);
    row("delay", &format_args!("{:.3} sec", settings.delay.as_secs_f64()));
    row("internet simulation", &yes(settings.internet));
    row("benchmark mode", &yes(settings.benchmark));
    row("failures until abort", &settings.failures);
    row("named URL", &or(&settings.url, "none"));
    row("URLs file", &path(settings.file.as_deref()));
    row("thread limit", &settings.limit);
    row("logging", &yes(settings.logging));
    row("log file", &path(Some(&settings.logfile)));
    row("resource file", &path(file));
    row("timestamped output", &yes(settings.timestamp));
    row("comma separated output", &yes(settings.csv));
    row("allow redirects", &yes(settings.follow));
    row("json output", &yes(settings.json));
    row("proxy", &or(&settings.proxy_host, "none"));
    row(
        "mode",
        &match settings.mode {
            Mode::Siege => "siege",
            Mode::Get => "get",
            Mode::Print => "print",
        },
    );
    out
}
