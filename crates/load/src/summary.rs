//! Makes the report of what the workers recorded, with the doubts that it raises.

use std::time::Duration;

use milepost_stats::histogram::{Bound, Estimate, Histogram};
use serde::{Deserialize, Serialize};

use crate::plan::{Arrival, Io, Persistence, Plan, Spacing, Waiting};
use crate::rate::Rate;
use crate::record::Record;
use crate::report::{
    Connections, Distributions, Ended, ErrorCount, Generator, Linger, PlanSummary, Report, Times,
    TlsSummary, WarmUpCounts, Warning, WarningKind,
};
use crate::target::Target;

/// From this share of a core on, a worker's own speed decides what is measured.
const BUSY_SHARE_MAX: f64 = 0.9;
/// Shortest run of which a share of a core says anything: setting up takes most of a shorter one.
const BUSY_SECONDS_MIN: f64 = 0.1;

/// From this share of the machine's time on, in per cent, what its host keeps is in every tail.
const STEAL_PERCENT_MAX: f64 = 1.0;
/// Shortest run that says so: the kernel counts hundredths of a second.
const STEAL_SECONDS_MIN: f64 = 1.0;

/// An open loop that sent less than this share of its rate did not do what was asked.
const RATE_SHARE_MIN: f64 = 0.99;

/// Below this many samples nobody should look at the 99.9th percentile.
const SAMPLES_MIN: u64 = 1_000;

/// A longest answer this many times the 99th percentile is no part of the usual distribution.
const STALL_FACTOR: u64 = 10;

/// From this share of the run on, a stall of the server would have changed the 99th percentile of an open
/// loop.
const STALL_SHARE_MIN: f64 = 0.01;

/// A shorter wait for a connection is no matter.
const QUEUED_NS_MIN: u64 = 1_000_000;

/// With fewer requests than this on a connection, persistence saves little.
const REQUESTS_PER_CONNECTION_MIN: u64 = 10;

/// One part of the run, merged over the workers.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Measured {
    pub(crate) record: Record,
    pub(crate) length: Duration,
    pub(crate) cpu: Duration,
    /// CPU time of the busiest worker, but for what it polled in vain.
    pub(crate) cpu_max: Duration,
    /// Time that all workers asked for news when there was none.
    pub(crate) polled: Duration,
    /// Share of the machine's time, in per cent, that its host kept; from before the warm-up on.
    pub(crate) steal_percent: Option<f64>,
}

impl Measured {
    /// Adds what others had in the same time.
    pub(crate) fn merge(mut self, other: Self) -> Self {
        self.record.merge(other.record);
        self.length = self.length.max(other.length);
        self.cpu += other.cpu;
        self.cpu_max = self.cpu_max.max(other.cpu_max);
        self.polled += other.polled;
        // Each process looked at the same machine.
        self.steal_percent = match (self.steal_percent, other.steal_percent) {
            (Some(one), Some(other)) => Some(one.max(other)),
            (one, other) => one.or(other),
        };
        self
    }
}

/// Makes the report.
pub(crate) fn report(
    plan: &Plan,
    threads: usize,
    io: Io,
    warm_up: Option<Measured>,
    measured: Measured,
    ended: Ended,
    linger: Option<Linger>,
) -> Report {
    let Measured { record, length, cpu, cpu_max, polled, steal_percent } = measured;
    let seconds = length.as_secs_f64();
    let finished = record.answered() + record.errors;
    let opened = record.opened + warm_up.as_ref().map_or(0, |part| part.record.opened);
    let closed =
        record.closed_by_server + warm_up.as_ref().map_or(0, |part| part.record.closed_by_server);
    let resent = record.resent + warm_up.as_ref().map_or(0, |part| part.record.resent);
    let mut errors_by_kind: Vec<_> = record
        .failures
        .iter()
        .map(|(&kind, (count, example))| ErrorCount {
            kind,
            count: *count,
            example: example.clone(),
        })
        .collect();
    errors_by_kind.sort_by_key(|error| std::cmp::Reverse(error.count));
    // Where no answer was right, what was outstanding at the end says nothing about right ones.
    let only_wrong = record.right == 0 && record.wrong > 0;
    let answer_times = |histogram| if only_wrong { Times::default() } else { times(histogram) };
    let mut report = Report {
        requests: record.answered(),
        wrong_answers: record.wrong,
        errors: record.errors,
        unanswered: record.unanswered,
        seconds,
        requests_per_second: ratio(record.right as f64, seconds),
        client_cpu_us_per_request: ratio(cpu.as_secs_f64() * 1e6, finished as f64),
        service_ns: answer_times(&record.service),
        response_ns: answer_times(&record.response),
        first_byte_ns: answer_times(&record.first_byte),
        connect_ns: times(&record.connect),
        tls_ns: times(&record.tls),
        tls: tls_summary(&record),
        statuses: (0..)
            .zip(record.statuses.iter().copied())
            .filter(|&(_, count)| count > 0)
            .collect(),
        bytes: record.bytes,
        connections: Connections {
            asked: plan.connections as u64,
            opened,
            closed_by_server: closed,
            resent,
            busy_max: record.busy_max,
        },
        chains: record.chains.as_ref().map(|chains| chains.summary()),
        linger,
        wrong_answer_examples: record.examples.into_iter().map(|(_, example)| example).collect(),
        errors_by_kind,
        generator: Generator {
            threads,
            io,
            cpu_seconds: cpu.as_secs_f64(),
            busy_poll: plan.waiting == Waiting::BusyPoll,
            polled_seconds: polled.as_secs_f64(),
            busiest_thread: ratio(cpu_max.as_secs_f64(), seconds),
            lateness_ns: times(&record.lateness),
            longest_turn_ns: record.longest_turn,
            steal_percent,
        },
        warm_up: warm_up.map(|part| WarmUpCounts {
            requests: part.record.answered(),
            wrong_answers: part.record.wrong,
            errors: part.record.errors,
            seconds: part.length.as_secs_f64(),
        }),
        ended,
        seed: plan.seed,
        plan: PlanSummary {
            url: plan.targets.first().map(Target::uri).unwrap_or_default(),
            urls: plan.targets.len(),
            connections: plan.connections,
            threads,
            processes: plan.share.of,
            keep_alive: plan.persistence == Persistence::KeepAlive,
            streams: plan.http2,
            pipeline: plan.pipeline,
            requests_per_connection: plan.requests_per_connection,
            pause_max_seconds: plan.pause_max.as_secs_f64(),
            arrival: arrival_name(plan),
            rate: plan.arrival.rate().and_then(Rate::as_constant),
            stages: match plan.arrival.rate() {
                Some(rate) if rate.as_constant().is_none() => Some(rate.as_stages().to_vec()),
                _ => None,
            },
            timeout_seconds: plan.timeout.as_secs_f64(),
        },
        warnings: Vec::new(),
        assertions: Vec::new(),
        distributions: Box::new(Distributions {
            service: record.service,
            response: record.response,
            first_byte: record.first_byte,
            connect: record.connect,
            tls: record.tls,
            lateness: record.lateness,
        }),
    };
    report.warnings = warnings(plan, &report, record.sent);
    report
}

fn warnings(plan: &Plan, report: &Report, sent: u64) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let mut warn = |kind, message: String, advice: &str| {
        warnings.push(Warning { kind, message, advice: advice.to_owned() });
    };
    let busy = report.generator.busiest_thread;
    if busy > BUSY_SHARE_MAX && report.seconds >= BUSY_SECONDS_MIN {
        warn(
            WarningKind::GeneratorSaturated,
            format!(
                "a generator thread used {:.0} % of a core: it, not the server, may be the limit",
                busy * 100.0
            ),
            "use more threads (-t) or a second machine; fewer connections (-c) or an open loop (--rate) \
             give times that the generator does not distort",
        );
    }
    if let Some(steal) = report.generator.steal_percent.filter(|it| *it > STEAL_PERCENT_MAX)
        && report.seconds >= STEAL_SECONDS_MIN
    {
        warn(
            WarningKind::Stolen,
            format!("the host kept {steal:.1} % of the time from this virtual machine"),
            "trust medians and CPU per request more than high percentiles, or take a quieter machine",
        );
    }
    if let Some(rate) = plan.arrival.rate() {
        let due = rate.count_within(Duration::from_secs_f64(report.seconds));
        // Chance makes the number of a Poisson process larger or smaller: four standard deviations.
        let chance = if is_poisson(plan) { 4.0 * due.sqrt() } else { 0.0 };
        // One request more or less is no matter of rate.
        if (sent as f64) + chance + 1.0 < due * RATE_SHARE_MIN {
            let (sent, due) = (ratio(sent as f64, report.seconds), ratio(due, report.seconds));
            warn(
                WarningKind::RateNotReached,
                format!("{sent:.1} requests a second were sent, {due:.1} were asked for"),
                "all connections were busy: the server is slower than the rate, or -c is too small \
                 for it; response time includes the wait, service time does not",
            );
        }
    }
    warnings.extend(stalled(plan, report));
    let mut warn = |kind, message: String, advice: &str| {
        warnings.push(Warning { kind, message, advice: advice.to_owned() });
    };
    let samples = report.service_ns.samples;
    if samples > 0 && samples < SAMPLES_MIN {
        warn(
            WarningKind::FewSamples,
            format!("only {samples} samples: the high percentiles are single requests"),
            "run longer (-d) or more requests (-n)",
        );
    }
    if let Some(warm_up) = &report.warm_up
        && warm_up.wrong_answers + warm_up.errors > 0
    {
        warn(
            WarningKind::WarmUpNotClean,
            format!(
                "the warm-up had {} wrong answers and {} errors",
                warm_up.wrong_answers, warm_up.errors
            ),
            "run without a warm-up to see them",
        );
    }
    match report.ended {
        Ended::GaveUp => warn(
            WarningKind::EndedEarly,
            "no connection could be opened any more: the run was ended early".to_owned(),
            "see whether the server still runs, and its log",
        ),
        Ended::Interrupted => warn(
            WarningKind::EndedEarly,
            "the run was ended before its time".to_owned(),
            "the figures are those of the time that it ran",
        ),
        Ended::Requests | Ended::Duration => {}
    }
    let Connections { asked, opened, closed_by_server, .. } = report.connections;
    if plan.persistence == Persistence::KeepAlive
        && closed_by_server > asked
        && report.requests < opened * REQUESTS_PER_CONNECTION_MIN
    {
        warn(
            WarningKind::NotPersistent,
            format!(
                "the server closed {closed_by_server} connections for {} answers",
                report.requests
            ),
            "see its keep-alive settings, such as MaxKeepAliveRequests; connecting again is part of \
             response time, not of service time",
        );
    }
    warnings
}

/// Says what a closed loop hides and what an open loop shows when a server stands still: coordinated
/// omission.
fn stalled(plan: &Plan, report: &Report) -> Option<Warning> {
    let (service, response) = (&report.service_ns, &report.response_ns);
    let (p99, longest) = (service.p99?, service.max?);
    let seconds = |ns: u64| ns as f64 / 1e9;
    if service.samples < SAMPLES_MIN {
        return None;
    }
    if plan.arrival.rate().is_none() {
        let share = ratio(seconds(longest), report.seconds);
        let hidden = longest > p99.saturating_mul(STALL_FACTOR) && share > STALL_SHARE_MIN;
        return hidden.then(|| Warning {
            kind: WarningKind::Stalled,
            message: format!(
                "an answer took {:.3} s, {:.0} % of the run, and the 99th percentile of {:.3} ms does not \
                 show it: while the server stood still, a closed loop sent nothing that could have waited",
                seconds(longest),
                share * 100.0,
                p99 as f64 / 1e6
            ),
            advice: format!(
                "send at a rate (--rate, below the {:.0} a second of this run): what is due while the \
                 server stands still then waits, and response time shows it",
                report.requests_per_second
            ),
        });
    }
    let waited = response.p99?;
    let much = waited > p99.saturating_mul(2) && waited - p99 > QUEUED_NS_MIN;
    much.then(|| Warning {
        kind: WarningKind::Queued,
        message: format!(
            "requests waited to be sent: at the 99th percentile the response time is {:.3} ms and the \
             service time {:.3} ms",
            waited as f64 / 1e6,
            p99 as f64 / 1e6
        ),
        advice: "the server stood still or was slower than the rate for a time, and its clients would have \
                 waited like this; a closed loop does not show it. More connections (-c) help if it answers \
                 more at once"
            .to_owned(),
    })
}

fn arrival_name(plan: &Plan) -> &'static str {
    match plan.arrival {
        Arrival::Closed => "closed",
        Arrival::Open { spacing: Spacing::Even, .. } => "uniform",
        Arrival::Open { spacing: Spacing::Jittered { .. }, .. } => "jittered",
        Arrival::Open { spacing: Spacing::Poisson, .. } => "poisson",
    }
}

fn is_poisson(plan: &Plan) -> bool {
    matches!(plan.arrival, Arrival::Open { spacing: Spacing::Poisson, .. })
}

pub(crate) fn times(histogram: &Histogram) -> Times {
    let mut at_least = Vec::new();
    let mut read = |name, estimate: Option<Estimate>| {
        let estimate = estimate?;
        if estimate.bound == Bound::AtLeast {
            at_least.push(name);
        }
        Some(estimate.ns)
    };
    // Beyond which nothing lies, that is the longest time under another name.
    let rare = |q| histogram.quantile(q).filter(|_| histogram.beyond(q) > 0);
    let p50 = read("p50", histogram.quantile(0.5));
    let p75 = read("p75", histogram.quantile(0.75));
    let p90 = read("p90", histogram.quantile(0.9));
    let p95 = read("p95", histogram.quantile(0.95));
    let p99 = read("p99", histogram.quantile(0.99));
    let p999 = read("p999", histogram.quantile(0.999));
    let p9999 = read("p9999", rare(0.9999));
    let p99999 = read("p99999", rare(0.99999));
    let max = read("max", histogram.max());
    Times {
        samples: histogram.len(),
        censored: histogram.censored_len(),
        p50,
        p75,
        p90,
        p95,
        p99,
        p999,
        p9999,
        p99999,
        max,
        mean: histogram.mean(),
        at_least,
    }
}

/// What TLS did, if it was spoken.
fn tls_summary(record: &Record) -> Option<TlsSummary> {
    let [full_handshakes, resumed_handshakes] = record.handshakes;
    let session = record.session.clone()?;
    Some(TlsSummary { full_handshakes, resumed_handshakes, session })
}

/// Zero where there is nothing to divide by: JSON has no other number for it.
fn ratio(of: f64, to: f64) -> f64 {
    if to > 0.0 { of / to } else { 0.0 }
}
