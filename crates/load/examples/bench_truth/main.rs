//! Holds what is reported against a server whose service times are known.
//!
//! The server answers to the microsecond when its distribution says so, and keeps what it really did: the
//! quantile that arithmetic wants, the one that the server made of it, and the one that the generator reports
//! stand side by side. A report is true if it is within 1 % or 20 µs of the first, whichever is larger; where it
//! is not, and the server itself was further off, it says so. Service times are evenly spread over their
//! distribution, so that those of a run have its quantiles. What lies between server and report is the way there
//! and back: two system calls and the network in the kernel on each side. Nothing is subtracted.
//!
//! Server and generator have a processor each. The generator never sleeps (`--busy-poll`), so what else the
//! machine does is done on the server's processor, which is taken from it whenever an answer is due (see
//! [`processor`]); at last it is said what sleeping costs. Run it on a machine that does nothing else.
//!
//! `cargo run --release -p milepost-load --example bench_truth -- [--seconds S]`
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it prints a table")]

mod processor;
mod server;
mod service;

use std::env;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use milepost_load::{
    Arrival, Control, Expectation, Io, Plan, Rate, Report, Spacing, Stop, Target, Waiting, WarmUp,
    run,
};
use milepost_stats::histogram::Histogram;

use server::Server;
use service::Service;

/// A report is true within this share or these nanoseconds.
const SHARE: f64 = 0.01;
const NANOS: f64 = 20e3;

/// Enough for what is under way at 20,000 a second with answers of 5 ms.
const CONNECTIONS: usize = 500;

/// Enough for what comes at 1,000 a second while a stall lasts.
const CONNECTIONS_STALLED: usize = 2_100;

/// The processor of the generator; the server has another ([`server::CPU`]).
const CPU: usize = 1;

/// How long a stall lasts, and from which connections a closed loop sees it.
const STALL_SECONDS: f64 = 2.0;
const CONNECTIONS_CLOSED: usize = 64;

/// A run with a stall is so long, that it shows in the 95th percentile and not in the median.
const STALLED_SECONDS_MIN: f64 = 8.0;

const RATES: [f64; 2] = [1_000.0, 20_000.0];

const MILLIS: f64 = 1e6;

const NO_PRIORITY: &str =
    "the server shares its processor: chrt(1) may not give it a real-time priority";

fn main() -> ExitCode {
    let arguments: Vec<_> = env::args().skip(1).collect();
    let seconds = match &arguments[..] {
        [] => Some(10.0),
        [name, value] if name == "--seconds" => value.parse::<f64>().ok(),
        _ => None,
    };
    let Some(seconds) = seconds.filter(|seconds| *seconds > 0.0) else {
        eprintln!("usage: bench_truth [--seconds S]");
        return ExitCode::from(2);
    };
    match bench(seconds) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench_truth: {error}");
            ExitCode::from(2)
        }
    }
}

fn bench(seconds: f64) -> Result<(), Box<dyn std::error::Error>> {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    println!("runs of {seconds} s; load of the machine at the start: {}", load.trim());
    let constant = ("constant 2 ms", Service::Constant(2.0 * MILLIS));
    let services = [
        constant,
        ("exponential 5 ms", Service::Exponential(5.0 * MILLIS)),
        ("1 ms, 1/1000 100 ms", Service::Bimodal(1.0 * MILLIS, 100.0 * MILLIS, 1_000)),
    ];
    titles("busy polling, each on a processor of its own; none: the way there and back alone");
    for io in [Io::Uring, Io::Epoll] {
        let steady = Arrival::uniform(RATES[0]);
        measure("none", Service::Constant(0.0), &plan(io, Waiting::BusyPoll, seconds, steady))?;
    }
    for (name, service) in services {
        for rate in RATES {
            for io in [Io::Uring, Io::Epoll] {
                let open = Arrival::open(rate, Spacing::Poisson);
                measure(name, service, &plan(io, Waiting::BusyPoll, seconds, open))?;
            }
        }
    }
    stall(seconds.max(STALLED_SECONDS_MIN))?;
    titles("asleep while there is nothing to do, as without --busy-poll");
    for rate in RATES {
        for io in [Io::Uring, Io::Epoll] {
            let open = Arrival::open(rate, Spacing::Poisson);
            measure(constant.0, constant.1, &plan(io, Waiting::Sleep, seconds, open))?;
        }
    }
    Ok(())
}

/// Has the server stand still in the middle of a run.
fn stall(length: f64) -> Result<(), Box<dyn std::error::Error>> {
    titles(
        "a stall in the middle; arithmetic answers all that waited at once, a server one by one",
    );
    let service = Service::Stall {
        usual: 0.1 * MILLIS,
        after: (length - STALL_SECONDS) / 2.0,
        stall: STALL_SECONDS,
        length,
    };
    let loops = [
        ("open", Arrival::uniform(RATES[0]), CONNECTIONS_STALLED),
        ("open", Arrival::uniform(RATES[1]), CONNECTIONS_STALLED),
        ("closed", Arrival::Closed, CONNECTIONS_CLOSED),
    ];
    for (name, arrival, connections) in loops {
        let mut plan = plan(Io::Auto, Waiting::BusyPoll, length, arrival);
        plan.connections = connections;
        let report = measure(&format!("0.1 ms, 2 s, {name}"), service, &plan)?;
        for warning in &report.warnings {
            println!("  {:?}: {}", warning.kind, warning.message);
        }
    }
    Ok(())
}

fn plan(io: Io, waiting: Waiting, seconds: f64, arrival: Arrival) -> Plan {
    // The address comes with the server.
    let target = Target::new(SocketAddr::from(([127, 0, 0, 1], 0)), "localhost", "/");
    let mut plan = Plan::new(vec![target.expect(Expectation::status(200))]);
    plan.io = io;
    plan.waiting = waiting;
    plan.cpus = vec![CPU];
    plan.connections = CONNECTIONS;
    plan.stop = Stop::Duration(Duration::from_secs_f64(seconds));
    // Every connection is open before anything counts.
    plan.warm_up = WarmUp::Duration(service::WARM_UP);
    plan.arrival = arrival;
    plan
}

/// Runs a plan against a server of its own, and prints what came of it.
fn measure(
    name: &str,
    service: Service,
    plan: &Plan,
) -> Result<Report, Box<dyn std::error::Error>> {
    let server = Server::start(service)?;
    let mut plan = plan.clone();
    plan.targets[0].address = server.address().into();
    let report = run(&plan, &Control::new())?;
    let served = server.stop();
    let made = served.times;
    if !served.went_first {
        println!("{NO_PRIORITY}");
    }
    let rate = plan.arrival.rate().and_then(Rate::as_constant);
    let labels = [name, &rate.map_or("-".to_owned(), |rate| rate.to_string()), label(&report)];
    for &q in service.quantiles() {
        // A closed loop sends nothing while the server stands still.
        let expected = service.quantile(q).filter(|_| rate.is_some());
        row(labels, q, expected, &made, &report.distributions.response);
    }
    let at = |q| quantile(&report.distributions.lateness, q) / 1e3;
    if rate.is_some() {
        let steal = report.generator.steal_percent.unwrap_or_default();
        println!(
            "{:<41}sent late by {:.1} us (p50), {:.1} us (p99); the host kept {steal:.1} % of the time",
            "",
            at(0.5),
            at(0.99)
        );
    }
    Ok(report)
}

fn titles(what: &str) {
    println!(
        "\n{what}\n{:<22}{:>8}{:>10}{:>8}{:>14}{:>14}{:>14}{:>8}",
        "service time", "rate", "io", "", "arithmetic", "server", "reported", "true"
    );
}

fn row(labels: [&str; 3], q: f64, expected: Option<f64>, made: &Histogram, reported: &Histogram) {
    let (made, reported) = (quantile(made, q), quantile(reported, q));
    let verdict = expected.map_or("-", |expected| {
        let is_true = |it: f64| (it - expected).abs() <= (expected * SHARE).max(NANOS);
        match (is_true(reported), is_true(made)) {
            (true, _) => "yes",
            (false, true) => "no",
            (false, false) => "server",
        }
    });
    let [name, rate, io] = labels;
    let percent = format!("p{}", q * 100.0);
    let micros = |ns: f64| format!("{:.0} us", ns / 1e3);
    println!(
        "{name:<22}{rate:>8}{io:>10}{percent:>8}{:>14}{:>14}{:>14}{verdict:>8}",
        expected.map_or("-".to_owned(), micros),
        micros(made),
        micros(reported),
    );
}

fn quantile(times: &Histogram, q: f64) -> f64 {
    times.quantile(q).map_or(f64::NAN, |estimate| estimate.ns as f64)
}

fn label(report: &Report) -> &'static str {
    if report.generator.io == Io::Uring { "io_uring" } else { "epoll" }
}
