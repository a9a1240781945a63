//! `milepost load`: puts load on a server, checks every answer, prints what came of it.
//!
//! The report goes to stdout, progress to stderr. The first SIGINT or SIGTERM ends the run early and
//! the report is still printed; a second one ends the process.

mod browse;
mod compare;
mod cpus;
mod network;
#[cfg(feature = "otlp")]
mod otlp;
mod outputs;
mod plan;
mod processes;
mod progress;
mod prometheus;
mod request;
mod search;
mod stages;
mod text;

use std::io::{self, ErrorKind, IsTerminal, Write};
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::Context;
use clap::ValueEnum;
use milepost_load::{Assertion, Control, Plan, Rate, Report, Share, Stop, Verdict, WarmUp};
use signal_hook::consts::{SIGINT, SIGTERM};

use outputs::{OutputArgs, Outputs};
use progress::Display;

/// An answer was wrong or missing.
const EXIT_WRONG: u8 = 1;

/// What a shell adds to the number of the signal that ended a process.
const EXIT_BY_SIGNAL: i32 = 128;

/// Arguments of `milepost load`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(disable_help_subcommand = true)]
#[command(after_help = "\
Every answer is checked. Without --expect-status a status of 400 or more is wrong. Wrong answers are \
counted, shown, and never part of the times.

URL list (--urls): one URL a line, then what to expect of it; # begins a comment line.
  http://localhost:8080/test/1      status=301 location=http://localhost:8080/new/1
  http://localhost:8080/robots.txt  status=200 bytes=8
  http://localhost:8080/gone        status=410 method=HEAD
  http://localhost:8080/form        weight=3 body=@form.txt sha256=9f86d081...
What a line does not say is taken from the options.

Service time runs from sending a request to the end of its answer. Response time runs from when the \
request was meant to be sent: in the open loop (--rate) that is by the clock, so waiting for a free \
connection counts.

Durations are numbers with ms, s, m or h; without a unit they are seconds.

Exit status: 0 done, 1 wrong answers or errors, unless --assert says how many may be, or an assertion \
that does not hold, 2 could not do it.")]
pub(crate) struct Args {
    #[command(subcommand)]
    other: Option<Other>,

    /// URL to request
    #[arg(value_name = "URL", required_unless_present = "urls", conflicts_with = "urls")]
    url: Option<String>,

    /// File with URLs, each with what to expect of it; - is stdin
    #[arg(long, value_name = "FILE")]
    urls: Option<PathBuf>,

    /// Order in which the URLs of the list are requested
    #[arg(long, value_name = "ORDER", default_value = "sequential")]
    order: OrderArg,

    /// Number of connections, each with one request at a time
    #[arg(short = 'c', long, value_name = "N", default_value_t = milepost_load::CONNECTIONS_DEFAULT)]
    connections: usize,

    /// End after exactly N requests
    #[arg(short = 'n', long, value_name = "N", value_parser = plan::count)]
    #[arg(conflicts_with = "duration")]
    requests: Option<NonZeroU64>,

    /// End after this time [default: 10s]
    #[arg(short = 'd', long, value_name = "TIME", value_parser = plan::duration)]
    duration: Option<Duration>,

    /// Number of threads
    #[arg(short = 't', long, value_name = "N", default_value_t = 1)]
    threads: usize,

    /// Number of processes that do the run together, each with its share of the connections and -t threads
    #[arg(long, value_name = "N", value_parser = processes::count, default_value = "1")]
    processes: usize,

    /// Which share this process does
    #[arg(long, hide = true, value_parser = processes::share)]
    share: Option<Share>,

    /// Which run of a search this process does its share of
    #[arg(long, hide = true, value_parser = search::trial)]
    trial: Option<search::Trial>,

    /// Open loop: this many requests a second, whether or not earlier ones are answered
    #[arg(long, value_name = "PER_SECOND", allow_negative_numbers = true)]
    rate: Option<f64>,

    /// Open loop whose rate changes: TIME:RATE keeps a rate for a time, TIME:FROM..TO goes from one to
    /// the other; 30s:100,1m:..1000,10s:0
    #[arg(long, value_name = "STAGES", value_parser = stages::stages)]
    #[arg(conflicts_with_all = ["rate", "requests", "duration"])]
    stages: Option<Rate>,

    /// How the requests of an open loop follow each other
    #[arg(long, value_name = "ARRIVAL", default_value = "uniform")]
    arrival: ArrivalArg,

    /// Search for the highest rate at which an assertion such as 'p99<5ms' holds, with runs of -d each
    #[arg(long, value_name = "ASSERTION")]
    #[arg(conflicts_with_all = ["rate", "stages", "requests", "assertions"])]
    find_max: Option<Assertion>,

    /// Load for this time (5s) or number of requests (100) first, without measuring
    #[arg(long, value_name = "TIME|N", value_parser = plan::warm_up)]
    warm_up: Option<WarmUp>,

    /// Use a new connection for every request
    #[arg(long)]
    no_keep_alive: bool,

    /// Use a new connection after N requests
    #[arg(long, value_name = "N", value_parser = plan::count)]
    #[arg(conflicts_with_all = ["no_keep_alive", "http2", "pipeline"])]
    requests_per_connection: Option<NonZeroU64>,

    /// Closed loop in which each connection pauses before its next request, at random up to this time
    #[arg(long, value_name = "TIME", value_parser = plan::duration)]
    #[arg(conflicts_with_all = ["rate", "stages", "find_max", "http2", "pipeline"])]
    pause: Option<Duration>,

    #[command(flatten)]
    network: network::Args,

    #[command(flatten)]
    request: request::Args,

    #[command(flatten)]
    browse: browse::Args,

    /// Time after which a request is an error
    #[arg(long, value_name = "TIME", value_parser = plan::duration, default_value = "10s")]
    timeout: Duration,

    /// How sockets are reached
    #[arg(long, value_name = "IO", default_value = "auto")]
    io: IoArg,

    /// Never sleep: ask for answers without end. Times and pacing are more exact; each thread takes a whole
    /// processor, which the server must not need
    #[arg(long)]
    busy_poll: bool,

    /// Processors that the threads run on, in turn: 1, 0,2 or 2-5
    #[arg(long, value_name = "LIST", value_parser = cpus::parse)]
    cpus: Option<cpus::Cpus>,

    /// Seed of everything random
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    /// What must hold at the end, such as 'p99<5ms', 'errors<0.1%' or 'status.5xx==0'; repeatable.
    /// `docs/load.md` has the grammar
    #[arg(long = "assert", value_name = "ASSERTION")]
    assertions: Vec<Assertion>,

    /// Print the report as one JSON object
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    outputs: OutputArgs,

    /// Show no progress
    #[arg(short = 'q', long)]
    quiet: bool,
}

/// What else there is to do with reports.
#[derive(Debug, clap::Subcommand)]
enum Other {
    /// Compare the reports of some runs with those of others
    Compare(compare::CompareArgs),
}

/// Order of the URL list.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum OrderArg {
    /// One after the other, from the start again after the last
    Sequential,
    /// Each drawn with the same probability
    Random,
}

/// How sockets are reached.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum IoArg {
    /// io_uring where the kernel allows it, epoll elsewhere and for HTTP/2
    Auto,
    /// io_uring: all requests of a turn in one system call
    Uring,
    /// epoll, or what the system has in its place
    Epoll,
}

/// How the requests of an open loop follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ArrivalArg {
    /// At even intervals
    Uniform,
    /// Independent of each other, as those of many users are
    Poisson,
}

/// Runs `milepost load`.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    if let Some(Other::Compare(args)) = &args.other {
        return compare::run(args);
    }
    let display = match (args.quiet, io::stderr().is_terminal()) {
        (true, _) => Display::None,
        (false, true) => Display::Live,
        (false, false) => Display::PlainLines,
    };
    let json = args.json;
    let assertions = args.assertions.clone();
    let output_args = args.outputs.clone();
    let is_share = args.share.is_some();
    let find_max = args.find_max.clone();
    let shown = search::Shown { json, quiet: args.quiet };
    let trial = args.trial;
    let mut plan = Plan::try_from(args)?;
    if is_share {
        if let Some(trial) = trial {
            trial.complete(&mut plan);
        }
        let stopped = stop_on_signal().context("cannot listen to signals")?;
        processes::run_share(&plan, Control::stopped_by(stopped))?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(assertion) = find_max {
        return search::run(&plan, &assertion, shown);
    }
    let mut outputs = Outputs::open(&output_args, &plan.tls)?;
    if let Some(address) = outputs.metrics_at() {
        note(&format!("metrics at http://{address}/metrics"));
    }
    let mut control = Control::stopped_by(stop_on_signal().context("cannot listen to signals")?);
    if display == Display::Live || !outputs.is_empty() {
        control = control.watching(outputs::EVERY);
    }
    let limit = match plan.stop {
        Stop::Duration(length) => progress::Limit::Length(length),
        Stop::Requests(count) | Stop::Either(count, _) => progress::Limit::Requests(count),
        Stop::RequestsEach(count) => {
            progress::Limit::Requests(count.saturating_mul(plan.connections as u64))
        }
    };
    let mut report = progress::show(display, limit, &control, &mut outputs, || match plan.share {
        Share::WHOLE => Ok(milepost_load::run(&plan, &control)?),
        _ => processes::run(&plan, &control, &[]),
    })?;
    report.assertions = assertions.iter().map(|assertion| assertion.judge(&report)).collect();
    let output = if json { json_text(&report)? } else { text::report(&plan, &report) };
    print(&output).context("cannot write to stdout")?;
    outputs.close()?;
    Ok(if is_clean(&report, &assertions) { ExitCode::SUCCESS } else { ExitCode::from(EXIT_WRONG) })
}

/// Whether everything was as it should be. Wrong answers and errors are not, unless an assertion says
/// how many there may be.
fn is_clean(report: &Report, assertions: &[Assertion]) -> bool {
    let says = |about: fn(&Assertion) -> bool| assertions.iter().any(about);
    report.assertions.iter().all(|outcome| outcome.verdict == Verdict::Held)
        && (report.wrong_answers == 0 || says(Assertion::is_about_wrong_answers))
        && (report.errors == 0 || says(Assertion::is_about_errors))
}

fn json_text(report: &Report) -> anyhow::Result<String> {
    let mut text = serde_json::to_string_pretty(report).context("the report is no JSON")?;
    text.push('\n');
    Ok(text)
}

/// Says something on stderr that is no part of the report.
fn note(text: &str) {
    // There is nowhere left to say that stderr is gone.
    let _ = writeln!(io::stderr().lock(), "milepost: {text}");
}

/// Writes to stdout. Whoever stopped reading has what they wanted.
fn print(text: &str) -> io::Result<()> {
    match io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}

/// Returns a flag that the first signal sets; at the second the process ends at once.
pub(super) fn stop_on_signal() -> io::Result<Arc<AtomicBool>> {
    let stopped = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // The order matters: the first signal finds the flag unset, and only then sets it.
        let status = EXIT_BY_SIGNAL + signal;
        signal_hook::flag::register_conditional_shutdown(signal, status, Arc::clone(&stopped))?;
        signal_hook::flag::register(signal, Arc::clone(&stopped))?;
    }
    Ok(stopped)
}
