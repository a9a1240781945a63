//! The report for people: what was asked, what came, how long it took, and what to doubt.

use std::fmt::Write as _;
use std::time::Duration;

use milepost_load::{
    Arrival, AssertionOutcome, ChainSummary, ErrorCount, Generator, HopSummary, Io, Order,
    Persistence, Plan, Report, Spacing, Stop, Times, TlsSession, TlsSummary, Verdict, Warning,
    WrongAnswer,
};

use super::stages;

/// Marks a value of which only a lower bound is known.
pub(super) const AT_LEAST: &str = "\u{2265}";

/// Stands where there is no value.
const NOTHING: &str = "-";

/// Width of the names in front of the values.
const LABEL_WIDTH: usize = 16;

/// Width of a column of times.
const COLUMN_WIDTH: usize = 15;

/// Room for error in `n * (1 - q)`: far below one request.
const RANK_TOLERANCE: f64 = 1e-6;

/// Percentiles of the table: names in JSON, labels, shares.
const PERCENTILES: [(&str, &str, f64); 8] = [
    ("p50", "50 %", 0.5),
    ("p75", "75 %", 0.75),
    ("p90", "90 %", 0.9),
    ("p95", "95 %", 0.95),
    ("p99", "99 %", 0.99),
    ("p999", "99.9 %", 0.999),
    ("p9999", "99.99 %", 0.9999),
    ("p99999", "99.999 %", 0.99999),
];

/// The whole report, with a line end after the last line.
pub(super) fn report(plan: &Plan, report: &Report) -> String {
    let mut text = String::new();
    let out = &mut text;
    line(out, &heading(plan, report));
    line(out, "");
    counts(out, report);
    times(out, report);
    chains(out, report);
    generator(out, report);
    wrong_answers(out, report);
    errors(out, report);
    assertions(out, report);
    for Warning { message, advice, .. } in &report.warnings {
        line(out, "");
        line(out, &format!("warning: {message}"));
        line(out, &format!("    try: {advice}"));
    }
    text
}

fn heading(plan: &Plan, report: &Report) -> String {
    let what = match &plan.targets[..] {
        [only] => only.uri(),
        several => {
            let order = match plan.order {
                Order::Sequential => "in order",
                Order::Random => "in random order",
                Order::Each => "in order for each connection",
            };
            format!("{} URLs {order}", several.len())
        }
    };
    let connections = match plan.persistence {
        _ if let Some(streams) = plan.http2 => format!(
            "{} of HTTP/2 with {}",
            count(plan.connections, "connection"),
            count(streams, "stream")
        ),
        _ if let Some(depth) = plan.pipeline => {
            format!("{} with pipelines of {depth}", count(plan.connections, "connection"))
        }
        Persistence::KeepAlive => {
            let mut text = format!("{}, keep-alive", count(plan.connections, "connection"));
            if let Some(most) = plan.requests_per_connection {
                push(&mut text, format_args!(" for {most} requests each"));
            }
            text
        }
        Persistence::Close | Persistence::Unsaid => {
            format!(
                "{} at a time, a new one for each request",
                count(plan.connections, "connection")
            )
        }
    };
    let mut threads = count(report.generator.threads, "thread");
    if plan.share.of > 1 {
        push(&mut threads, format_args!(" in {} processes", plan.share.of));
    }
    let arrival = match &plan.arrival {
        Arrival::Closed if plan.pause_max > Duration::ZERO => {
            format!("closed loop with pauses of up to {:?}", plan.pause_max)
        }
        Arrival::Closed => "closed loop".to_owned(),
        Arrival::Open { rate, spacing } => {
            let rate = match rate.as_constant() {
                Some(per_second) => format!("at {per_second} requests a second"),
                None => format!("with {} requests a second", stages::describe(rate)),
            };
            match spacing {
                Spacing::Even => format!("open loop {rate}"),
                Spacing::Poisson => format!("open loop {rate}, Poisson"),
                // Spacings that this report does not know yet still have a name.
                other => format!("open loop {rate}, {other:?}"),
            }
        }
        other => format!("{other:?}"),
    };
    let stop = match plan.stop {
        Stop::Requests(requests) => {
            format!("{} requests in {:.2} s", grouped(requests), report.seconds)
        }
        Stop::RequestsEach(requests) => {
            format!("{} requests each in {:.2} s", grouped(requests), report.seconds)
        }
        Stop::Duration(_) | Stop::Either(..) => format!("{:.2} s", report.seconds),
    };
    format!("{what}\n{connections}, {threads}, {arrival}, {stop}")
}

fn counts(out: &mut String, report: &Report) {
    let right = report.requests - report.wrong_answers;
    let rate = format!("{} a second", grouped(report.requests_per_second.round() as u64));
    row(out, "right answers", &format!("{}   {rate}", grouped(right)));
    row(out, "wrong answers", &grouped(report.wrong_answers));
    row(out, "errors", &grouped(report.errors));
    if report.unanswered > 0 {
        row(out, "unanswered", &format!("{}   when the run was ended", grouped(report.unanswered)));
    }
    let statuses: Vec<_> = report
        .statuses
        .iter()
        .map(|(status, count)| format!("{} with {status}", grouped(*count)))
        .collect();
    if !statuses.is_empty() {
        row(out, "status", &statuses.join(", "));
    }
    let bytes = &report.bytes;
    row(
        out,
        "received",
        &format!("{} bytes, {} of them content", grouped(bytes.received), grouped(bytes.content)),
    );
    let connections = &report.connections;
    let mut opened = grouped(connections.opened);
    if connections.closed_by_server > 0 {
        let closed = grouped(connections.closed_by_server);
        push(&mut opened, format_args!("   {closed} closed by the server between requests"));
    }
    if connections.resent > 0 {
        push(&mut opened, format_args!(", {} requests sent again", grouped(connections.resent)));
    }
    row(out, "connections", &opened);
    if let Some(tls) = &report.tls {
        row(out, "TLS", &handshakes(tls));
    }
    if let Some(warm_up) = &report.warm_up {
        let text = format!(
            "{} answers in {:.2} s, not in the figures",
            grouped(warm_up.requests),
            warm_up.seconds
        );
        row(out, "warm-up", &text);
    }
}

fn handshakes(tls: &TlsSummary) -> String {
    let TlsSession { version, cipher, key_exchange, .. } = &tls.session;
    let group = key_exchange.as_ref().map_or(String::new(), |group| format!(", {group}"));
    format!(
        "{} full handshakes, {} resumed; {version}, {cipher}{group}",
        grouped(tls.full_handshakes),
        grouped(tls.resumed_handshakes)
    )
}

fn times(out: &mut String, report: &Report) {
    let all = [
        ("service time", &report.service_ns),
        ("response time", &report.response_ns),
        ("first byte", &report.first_byte_ns),
        ("connect", &report.connect_ns),
        ("TLS", &report.tls_ns),
    ];
    let columns = if report.tls.is_some() { &all[..] } else { &all[..all.len() - 1] };
    let Times { samples, censored, .. } = report.service_ns;
    line(out, "");
    if samples + censored == 0 {
        return line(out, "no answer was right, so there are no times");
    }
    let mut head = format!("{:LABEL_WIDTH$}", "");
    for (name, _) in columns {
        push(&mut head, format_args!("{name:>COLUMN_WIDTH$}"));
    }
    line(out, &format!("{head}   samples beyond"));
    let mut print = |name, label, beyond: &str| {
        let mut text = format!("{label:LABEL_WIDTH$}");
        for (_, times) in columns {
            push(&mut text, format_args!("{:>COLUMN_WIDTH$}", cell(times, name)));
        }
        line(out, format!("{text}{beyond:>17}").trim_end());
    };
    for (name, label, q) in PERCENTILES {
        let beyond = report.distributions.service.beyond(q);
        // Beyond which nothing lies, that is the longest time under another name.
        if beyond > 0 {
            print(name, label, &grouped(beyond));
        }
    }
    print("max", "longest", "");
    print("mean", "mean", "");
    if columns.iter().any(|(_, times)| !times.at_least.is_empty()) {
        line(
            out,
            &format!(
                "{AT_LEAST} requests were given up before their end; the true value is at least that"
            ),
        );
    }
}

/// What became of chains, hop by hop.
fn chains(out: &mut String, report: &Report) {
    let Some(ChainSummary { right, wrong, failed, response_ns, hops }) = &report.chains else {
        return;
    };
    line(out, "");
    let [right, wrong, failed] = [right, wrong, failed].map(|count| grouped(*count));
    row(out, "chains", &format!("{right} right, {wrong} wrong, {failed} failed"));
    let of = |times: &Times| {
        let [p50, p99, max] = ["p50", "p99", "max"].map(|name| cell(times, name));
        format!("{p50} (50 %), {p99} (99 %), {max} (longest)")
    };
    row(out, "  whole", &of(response_ns));
    for (number, HopSummary { answers, ended, service_ns }) in (1..).zip(hops) {
        let [answers, ended] = [answers, ended].map(|count| grouped(*count));
        let text = format!("{answers} answers, {ended} of them the last; {}", of(service_ns));
        row(out, &format!("  request {number}"), &text);
    }
}

/// The value with the name that it has in JSON; nothing if it is a percentile that no time exceeds.
fn cell(times: &Times, name: &str) -> String {
    let total = (times.samples + times.censored) as f64;
    let percentile = PERCENTILES.iter().find(|(known, ..)| *known == name);
    // One of as many: the rank of the percentile is the last one.
    if percentile.is_some_and(|(_, _, q)| total * (1.0 - q) < 1.0 - RANK_TOLERANCE) {
        return NOTHING.to_owned();
    }
    let value = match name {
        "p50" => times.p50,
        "p75" => times.p75,
        "p90" => times.p90,
        "p95" => times.p95,
        "p99" => times.p99,
        "p999" => times.p999,
        "p9999" => times.p9999,
        "p99999" => times.p99999,
        "max" => times.max,
        _ => times.mean.map(|mean| mean.round() as u64),
    };
    let bound = if times.at_least.contains(&name) { AT_LEAST } else { "" };
    value.map_or(NOTHING.to_owned(), |ns| format!("{bound}{}", time(ns)))
}

/// What was polled in vain is shown where it is more than this share of the processor time.
const POLLED_SHARE_SHOWN: f64 = 0.1;

fn generator(out: &mut String, report: &Report) {
    let Generator { threads, io, cpu_seconds, busiest_thread, busy_poll, .. } = &report.generator;
    let Generator { polled_seconds, lateness_ns, longest_turn_ns, .. } = &report.generator;
    line(out, "");
    let cpu = format!(
        "{:.2} us CPU a request, {cpu_seconds:.2} s on {} with {}, the busiest at {:.0} % of a core",
        report.client_cpu_us_per_request,
        count(*threads, "thread"),
        if *io == Io::Uring { "io_uring" } else { "epoll" },
        busiest_thread * 100.0
    );
    row(out, "generator", &cpu);
    if *busy_poll || *polled_seconds > cpu_seconds * POLLED_SHARE_SHOWN {
        let polled = format!("polling: {polled_seconds:.2} s of that asked in vain");
        row(out, "", &polled);
    }
    let turn = time(*longest_turn_ns);
    let late = match (lateness_ns.p50, lateness_ns.p99) {
        (Some(p50), Some(p99)) => {
            format!("sent late by {} (50 %), {} (99 %); longest turn {turn}", time(p50), time(p99))
        }
        _ => format!("longest turn {turn}"),
    };
    row(out, "", &late);
}

fn wrong_answers(out: &mut String, report: &Report) {
    if report.wrong_answer_examples.is_empty() {
        return;
    }
    line(out, "");
    line(out, &format!("{} wrong answers, such as", grouped(report.wrong_answers)));
    for WrongAnswer { url, expected, got } in &report.wrong_answer_examples {
        line(out, &format!("  {url}"));
        line(out, &format!("    expected {expected}"));
        line(out, &format!("    got      {got}"));
    }
}

fn errors(out: &mut String, report: &Report) {
    if report.errors_by_kind.is_empty() {
        return;
    }
    line(out, "");
    line(out, &format!("{} errors", grouped(report.errors)));
    for ErrorCount { count, example, .. } in &report.errors_by_kind {
        line(out, &format!("  {} such as {example}", grouped(*count)));
    }
}

fn assertions(out: &mut String, report: &Report) {
    if !report.assertions.is_empty() {
        line(out, "");
    }
    for AssertionOutcome { assertion, verdict, found } in &report.assertions {
        let verdict = match verdict {
            Verdict::Held => "holds",
            Verdict::Failed => "FAILS",
            Verdict::Open => "FAILS, not shown",
        };
        row(out, "assertion", &format!("{assertion}: {verdict}: {found}"));
    }
}

/// A time with its unit, three to four digits.
pub(super) fn time(ns: u64) -> String {
    let value = ns as f64;
    let (value, unit) = match ns {
        0..1_000 => return format!("{ns} ns"),
        1_000..1_000_000 => (value / 1e3, "us"),
        1_000_000..1_000_000_000 => (value / 1e6, "ms"),
        _ => (value / 1e9, "s"),
    };
    let decimals = match value {
        0.0..10.0 => 2,
        10.0..100.0 => 1,
        _ => 0,
    };
    format!("{value:.decimals$} {unit}")
}

/// A whole number with its thousands apart.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number and what it counts.
fn count(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", grouped(number as u64))
}

fn row(out: &mut String, label: &str, value: &str) {
    line(out, format!("{label:LABEL_WIDTH$}{value}").trim_end_matches(' '));
}

fn line(out: &mut String, text: &str) {
    out.push_str(text);
    out.push('\n');
}

fn push(out: &mut String, arguments: std::fmt::Arguments<'_>) {
    out.write_fmt(arguments).expect("writing to a string does not fail");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_digits_and_a_unit() {
        for (ns, text) in [
            (0, "0 ns"),
            (999, "999 ns"),
            (1_000, "1.00 us"),
            (12_345, "12.3 us"),
            (123_456, "123 us"),
            (999_999, "1000 us"),
            (1_234_567, "1.23 ms"),
            (2_500_000_000, "2.50 s"),
            (3_600_000_000_000, "3600 s"),
        ] {
            assert_eq!(time(ns), text);
        }
    }

    #[test]
    fn a_percentile_that_no_time_exceeds_is_not_shown() {
        let of = |samples| Times {
            samples,
            p90: Some(5),
            p99: Some(7),
            max: Some(9),
            ..Times::default()
        };
        let cells = |samples| ["p90", "p99", "max"].map(|name| cell(&of(samples), name));
        assert_eq!(cells(9), ["-", "-", "9 ns"]);
        assert_eq!(cells(10), ["5 ns", "-", "9 ns"]);
        assert_eq!(cells(99), ["5 ns", "-", "9 ns"]);
        assert_eq!(cells(100), ["5 ns", "7 ns", "9 ns"]);
    }

    #[test]
    fn thousands_are_apart() {
        for (number, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(grouped(number), text);
        }
    }
}
