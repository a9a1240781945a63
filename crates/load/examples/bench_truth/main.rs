//! Holds what is reported against a server whose service times are known.
//!
//! The server is a thread that spins, so it answers to the microsecond when its distribution says so, and
//! keeps what it really did: the quantile that arithmetic wants, the one that the server made of it, and
//! the one that the generator reports stand side by side. A report is true if it is within 1 % or 20 µs of
//! the first, whichever is larger. Both need a processor to themselves: run it on a machine that does
//! nothing else, and see the column of the server when it does not hold.
//!
//! `cargo run --release -p milepost-load --example bench_truth -- [--seconds S]`
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it prints a table")]

mod server;

use std::env;
use std::process::ExitCode;
use std::time::Duration;

use milepost_load::{Arrival, Control, Expectation, Io, Plan, Report, Spacing, Stop, Target, run};
use milepost_stats::histogram::Histogram;

use server::{Server, Service};

/// A report is true within this share or these nanoseconds.
const SHARE: f64 = 0.01;
const NANOS: f64 = 20e3;

/// Enough for what is under way at 20,000 a second with answers of 5 ms, and while a stall lasts.
const CONNECTIONS: usize = 500;

const MILLIS: f64 = 1e6;

fn main() -> ExitCode {
    let arguments: Vec<_> = env::args().skip(1).collect();
    let seconds = match &arguments[..] {
        [] => Some(5.0),
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
    println!(
        "{:<22}{:>8}{:>9}{:>8}{:>14}{:>14}{:>14}{:>8}",
        "service time", "rate", "io", "", "arithmetic", "server", "reported", "true"
    );
    let services = [
        ("constant 2 ms", Service::Constant(2.0 * MILLIS)),
        ("exponential 5 ms", Service::Exponential(5.0 * MILLIS)),
        ("1 ms, 1/1000 100 ms", Service::Bimodal(1.0 * MILLIS, 100.0 * MILLIS, 1_000)),
    ];
    for (name, service) in services {
        for rate in [1_000.0, 20_000.0] {
            for io in [Io::Uring, Io::Epoll] {
                let server = Server::start(service)?;
                let plan = plan(&server, io, seconds, Arrival::open(rate, Spacing::Poisson));
                let report = run(&plan, &Control::new())?;
                let made = server.stop();
                for q in [0.5, 0.9, 0.99, 0.998, 0.999_5] {
                    let Some(expected) = service.quantile(q) else { continue };
                    let reported = &report.distributions.response;
                    row([name, &rate.to_string(), label(io)], q, expected, &made, reported);
                }
                pacing(&report);
            }
        }
    }
    println!("\na stall of 2 s in the middle, 100 us otherwise, 1000 a second, 64 connections:");
    let length = seconds.max(8.0);
    for (name, arrival) in
        [("open loop", Arrival::uniform(1_000.0)), ("closed loop", Arrival::Closed)]
    {
        let service = Service::Stall(0.1 * MILLIS, length / 2.0 - 1.0, 2.0);
        let server = Server::start(service)?;
        let mut plan = plan(&server, Io::Auto, length, arrival);
        plan.connections = 64;
        let report = run(&plan, &Control::new())?;
        drop(server);
        let at = |q| quantile(&report.distributions.response, q) / MILLIS;
        println!(
            "  {name}: response time p50 {:.2} ms, p95 {:.2} ms, p99 {:.2} ms, longest {:.2} ms",
            at(0.5),
            at(0.95),
            at(0.99),
            at(1.0)
        );
        if name == "open loop" {
            let theory = |q: f64| (2_000.0 - (1.0 - q) * length * 1e3).max(0.1);
            println!("  {:>11} p95 {:.2} ms, p99 {:.2} ms", "theory:", theory(0.95), theory(0.99));
        }
        for warning in &report.warnings {
            println!("    {:?}: {}", warning.kind, warning.message);
        }
    }
    Ok(())
}

fn plan(server: &Server, io: Io, seconds: f64, arrival: Arrival) -> Plan {
    let target = Target::new(server.address(), "localhost", "/");
    let mut plan = Plan::new(vec![target.expect(Expectation::status(200))]);
    plan.io = io;
    plan.connections = CONNECTIONS;
    plan.stop = Stop::Duration(Duration::from_secs_f64(seconds));
    // Every connection is open before anything counts.
    plan.warm_up = milepost_load::WarmUp::Duration(Duration::from_secs(1));
    plan.arrival = arrival;
    plan
}

fn row(labels: [&str; 3], q: f64, expected: f64, made: &Histogram, reported: &Histogram) {
    let (made, reported) = (quantile(made, q), quantile(reported, q));
    let is_true = (reported - expected).abs() <= (expected * SHARE).max(NANOS);
    let [name, rate, io] = labels;
    let percent = format!("p{}", q * 100.0);
    let micros = |ns: f64| format!("{:.0} us", ns / 1e3);
    println!(
        "{name:<22}{rate:>8}{io:>9}{percent:>8}{:>14}{:>14}{:>14}{:>8}",
        micros(expected),
        micros(made),
        micros(reported),
        if is_true { "yes" } else { "no" }
    );
}

fn pacing(report: &Report) {
    let at = |q| quantile(&report.distributions.lateness, q) / 1e3;
    println!("{:<22}sent late by {:.1} us (p50), {:.1} us (p99)", "", at(0.5), at(0.99));
}

fn quantile(times: &Histogram, q: f64) -> f64 {
    times.quantile(q).map_or(f64::NAN, |estimate| estimate.ns as f64)
}

fn label(io: Io) -> &'static str {
    if io == Io::Uring { "io_uring" } else { "epoll" }
}
