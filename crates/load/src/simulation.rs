//! Holds what is reported against what must come out, on a simulated clock.
//!
//! The schedule, the record and the report are the real ones; sockets and time are not. A server with a
//! known distribution of service times is loaded at a known rate, so the quantiles follow from
//! arithmetic. What the machine adds is measured by `make bench-truth`.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::SocketAddr;
use std::time::Duration;

use milepost_stats::histogram::Histogram;

use crate::plan::{Arrival, Io, Plan, Spacing, Stop};
use crate::record::{Record, Sample};
use crate::report::{Ended, Report, WarningKind};
use crate::schedule::{Schedule, Sequence};
use crate::summary::{self, Measured};
use crate::target::Target;

const MICROS: f64 = 1e3;
const MILLIS: f64 = 1e6;
const SECONDS: f64 = 1e9;

/// Service times that do not depend on the load.
#[derive(Debug, Clone, Copy)]
enum Service {
    Constant(f64),
    /// With this mean.
    Exponential(f64),
    /// The second for one request in as many.
    Bimodal(f64, f64, u64),
    /// Constant, but the server stands still from the second time to the third.
    Stall(f64, f64, f64),
}

impl Service {
    /// Of request number `k`, sent at `sent`: in nanoseconds.
    fn time(self, k: u64, sent: u64) -> u64 {
        match self {
            Self::Constant(time) => time as u64,
            Self::Exponential(mean) => {
                // Every part of the distribution once in ten thousand requests, in mixed order: 6,173
                // and 10,000 have no common divisor.
                let u = ((k * 6_173) % 10_000) as f64 / 10_000.0 + 0.000_05;
                (-(1.0 - u).ln() * mean) as u64
            }
            Self::Bimodal(usual, rare, one_in) => {
                if k % one_in == one_in / 2 {
                    rare as u64
                } else {
                    usual as u64
                }
            }
            Self::Stall(time, from, to) => {
                let begins = if (from..to).contains(&(sent as f64)) { to as u64 } else { sent };
                begins - sent + time as u64
            }
        }
    }
}

#[test]
fn quantiles_at_a_rate_are_those_of_the_server() {
    for rate in [1_000.0, 20_000.0] {
        for spacing in [Spacing::Even, Spacing::Poisson] {
            let open = |service| simulate(Arrival::open(rate, spacing), 5_000, 20, service);
            let report = open(Service::Constant(2.0 * MILLIS));
            for q in [0.5, 0.9, 0.99, 0.999] {
                check(&report.distributions.response, q, 2.0 * MILLIS);
                check(&report.distributions.service, q, 2.0 * MILLIS);
            }
            let report = open(Service::Exponential(5.0 * MILLIS));
            for q in [0.1_f64, 0.5, 0.9, 0.99] {
                check(&report.distributions.response, q, -(1.0 - q).ln() * 5.0 * MILLIS);
            }
            let report = open(Service::Bimodal(1.0 * MILLIS, 100.0 * MILLIS, 1_000));
            for (q, time) in [(0.5, 1.0), (0.99, 1.0), (0.998, 1.0), (0.999_5, 100.0)] {
                check(&report.distributions.response, q, time * MILLIS);
            }
            assert!(report.warnings.is_empty(), "{:?}", report.warnings);
        }
    }
}

#[test]
fn a_stall_shows_in_the_open_loop_and_is_explained_in_both() {
    // Two seconds of twenty: a tenth of what is due at a rate waits, evenly for 0 to 2 s.
    let service = Service::Stall(100.0 * MICROS, 9.0 * SECONDS, 11.0 * SECONDS);
    for rate in [1_000.0, 20_000.0] {
        let report = simulate(Arrival::uniform(rate), 64, 20, service);
        let response = &report.distributions.response;
        check(response, 0.5, 100.0 * MICROS);
        for q in [0.92, 0.95, 0.99, 0.999] {
            // Those wait longer that were due earlier in the stall.
            let since = (1.0 - q) * 20.0 * SECONDS;
            // What had become due before is worked off first, by 64 connections at 100 us each.
            let behind = rate / SECONDS * since * (100.0 * MICROS / 64.0);
            check(response, q, 2.0 * SECONDS - since + behind);
        }
        let kinds: Vec<_> = report.warnings.iter().map(|warning| warning.kind).collect();
        assert_eq!(kinds, [WarningKind::Queued], "{:?}", report.warnings);
    }
    // The closed loop has one slow answer for each connection.
    let report = simulate(Arrival::Closed, 64, 20, service);
    let response = &report.distributions.response;
    check(response, 0.999, 100.0 * MICROS);
    check(response, 1.0, 2.0 * SECONDS);
    assert_eq!(response.beyond(0.999_99), report.requests / 100_000);
    let [warning] = &report.warnings[..] else { panic!("{:?}", report.warnings) };
    assert_eq!(warning.kind, WarningKind::Stalled);
    assert!(warning.message.starts_with("an answer took 2.000 s, 10 % of the run"), "{warning:?}");
}

#[test]
fn a_day_at_a_rate_is_as_true_as_a_minute() {
    let service = Service::Exponential(5.0 * MILLIS);
    let report = simulate(Arrival::uniform(50.0), 100, 86_400, service);
    assert_eq!(report.requests, 50 * 86_400);
    for q in [0.5_f64, 0.99] {
        check(&report.distributions.response, q, -(1.0 - q).ln() * 5.0 * MILLIS);
    }
}

/// Loads a server that answers any number of requests at once on `connections` for `seconds`.
fn simulate(arrival: Arrival, connections: usize, seconds: u64, service: Service) -> Report {
    let mut plan = Plan::new(vec![Target::new(SocketAddr::from(([127, 0, 0, 1], 80)), "h", "/")]);
    plan.connections = connections;
    plan.stop = Stop::Duration(Duration::from_secs(seconds));
    plan.arrival = arrival;
    let ends = seconds * 1_000_000_000;
    let sequence = Sequence::new(u64::MAX, 1);
    let mut schedule = Schedule::new(&plan.arrival, &sequence, 0, 1, 0, ends);
    let mut record = Record::new();
    // When each connection is free.
    let mut free: BinaryHeap<_> = std::iter::repeat_n(Reverse(0_u64), connections).collect();
    let mut numbers = 0..;
    while let (Some(Reverse(free_at)), Some(k)) = (free.pop(), numbers.next()) {
        let sent = schedule.next_at().map_or(free_at, |due_at| due_at.max(free_at));
        let Some(due) = schedule.take(sent) else { break };
        let ended = sent + service.time(k, sent);
        record.sent += 1;
        record.sample(Sample { intended: due.intended, sent, first_byte: ended, ended });
        free.push(Reverse(ended));
    }
    let cpu = Duration::ZERO;
    let length = Duration::from_secs(seconds);
    let measured =
        Measured { record, length, cpu, cpu_max: cpu, polled: Duration::ZERO, steal_percent: None };
    summary::report(&plan, 1, Io::Epoll, None, measured, Ended::Duration, None)
}

/// A quantile is within 1 % or 20 µs of what it must be, whichever is larger.
#[track_caller]
fn check(times: &Histogram, q: f64, expected_ns: f64) {
    let found = times.quantile(q).unwrap().ns as f64;
    let off = (found - expected_ns).abs();
    assert!(off <= (expected_ns * 0.01).max(20.0 * MICROS), "{q}: {found} is not {expected_ns}");
}
