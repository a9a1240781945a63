//! What the terminal's table and the report share: rows, columns, and how a number is written.

use std::collections::BTreeSet;

use milepost_stats::bootstrap::Interval;
use milepost_stats::compare::Verdict;

use crate::analysis::{Answer, Answered, Cell, Outcome, cell};
use crate::environment::Environment;
use crate::experiment::{Metric, Target};
use crate::results::{Alternative, Results, Volume, WrongExample};
use crate::server::ServerKind;

/// A row of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Row<'a> {
    /// The method.
    pub(crate) method: &'a str,
    /// What it is called.
    pub(crate) title: &'a str,
}

/// What a figure or a table shows of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct View {
    /// The metric.
    pub(crate) metric: Metric,
    /// The target.
    pub(crate) target: Target,
    /// The connections.
    pub(crate) connections: u32,
}

/// Wrong answers of several alternatives that are alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WrongGroup<'a> {
    /// The method.
    pub(crate) title: &'a str,
    /// The servers.
    pub(crate) servers: Vec<ServerKind>,
    /// The targets.
    pub(crate) targets: Vec<Target>,
    /// The most telling example: the last target.
    pub(crate) example: &'a WrongExample,
    /// Whether the experiment says that these will be wrong.
    pub(crate) expected: bool,
}

/// Returns the methods in the order of the experiment.
pub(crate) fn rows(results: &Results) -> Vec<Row<'_>> {
    let mut rows: Vec<Row<'_>> = Vec::new();
    for alternative in compared(results) {
        let row = Row { method: &alternative.method, title: &alternative.method_title };
        if !rows.contains(&row) {
            rows.push(row);
        }
    }
    rows
}

/// Returns the servers in the order of the tables.
pub(crate) fn columns(results: &Results) -> Vec<ServerKind> {
    let takes_part = |kind: &ServerKind| compared(results).any(|a| a.server == *kind);
    ServerKind::ALL.into_iter().filter(takes_part).collect()
}

/// Returns the version of a server that took part.
pub(crate) fn version(results: &Results, server: ServerKind) -> &str {
    compared(results)
        .find(|alternative| alternative.server == server)
        .map_or("", |alternative| &alternative.server_version)
}

/// Returns the alternative of a row and a column.
pub(crate) fn at<'a>(
    results: &'a Results,
    row: Row<'_>,
    server: ServerKind,
) -> Option<&'a Alternative> {
    compared(results).find(|a| a.server == server && a.method == row.method)
}

/// Returns what is known of a row and a column.
pub(crate) fn cell_at(
    results: &Results,
    row: Row<'_>,
    server: ServerKind,
    target: Target,
    connections: u32,
) -> Cell {
    at(results, row, server)
        .map_or(Cell::Absent, |found| cell(results, &found.name, target, connections))
}

/// Returns the targets that were asked for.
pub(crate) fn targets(results: &Results) -> Vec<Target> {
    sorted(results.trials.iter().map(|trial| trial.target))
}

/// Returns the targets that were asked for on so many connections.
pub(crate) fn targets_on(results: &Results, connections: u32) -> Vec<Target> {
    let trials = results.trials.iter().filter(|trial| trial.connections == connections);
    sorted(trials.map(|trial| trial.target))
}

/// Returns the numbers of connections that were used.
pub(crate) fn connections(results: &Results) -> Vec<u32> {
    sorted(results.trials.iter().map(|trial| trial.connections))
}

/// Returns what the main tables and figures show: time and CPU on the fewest connections, requests a
/// second on the most, all for the last rule where it was asked for.
pub(crate) fn views(results: &Results) -> Vec<View> {
    let targets = targets(results);
    let target = targets.iter().find(|target| **target == Target::Last).or(targets.last());
    let connections = connections(results);
    let (Some(&target), Some(&fewest), Some(&most)) =
        (target, connections.first(), connections.last())
    else {
        return Vec::new();
    };
    let view = |metric, connections| View { metric, target, connections };
    vec![
        view(Metric::TimePerRequestUs, fewest),
        view(Metric::ServerCpuUsPerRequest, fewest),
        view(Metric::RequestsPerSecond, most),
    ]
}

/// Returns what the report shows beyond [`views`]: the cost of rules that nobody asks for.
pub(crate) fn unused_rules_view(results: &Results) -> Option<View> {
    let miss = targets(results).contains(&Target::Miss);
    let connections = connections(results).first().copied().filter(|_| miss)?;
    Some(View { metric: Metric::ServerCpuUsPerRequest, target: Target::Miss, connections })
}

impl View {
    /// Returns the headline.
    pub(crate) fn title(self, results: &Results) -> String {
        let what = match self.metric {
            Metric::TimePerRequestUs => "Time per request in µs",
            Metric::ServerCpuUsPerRequest => "Server CPU per request in µs",
            Metric::RequestsPerSecond => "Requests per second",
        };
        let target = target_title(self.target, results.rules);
        format!("{what}: {target}, {}", count(self.connections, "connection"))
    }

    /// Returns the text of a cell.
    pub(crate) fn text(self, cell: &Cell) -> String {
        match cell {
            Cell::Absent => "–".to_owned(),
            Cell::Wrong { .. } => "WRONG".to_owned(),
            Cell::Failed { .. } => "FAILED".to_owned(),
            Cell::Measured(figures) => match self.metric {
                Metric::TimePerRequestUs => number(figures.time_per_request_us.median),
                Metric::RequestsPerSecond => number(figures.requests_per_second.median),
                Metric::ServerCpuUsPerRequest => number(figures.server_cpu_us.median),
            },
        }
    }
}

/// Returns wrong answers, those of the same method on several servers together.
pub(crate) fn wrong_groups(results: &Results) -> Vec<WrongGroup<'_>> {
    let mut groups: Vec<WrongGroup<'_>> = Vec::new();
    for example in &results.wrong_answer_examples {
        let Some(alternative) = results.alternative(&example.alternative) else { continue };
        let expected = alternative.expected_wrong.contains(&example.target);
        let title = alternative.method_title.as_str();
        let same = |group: &&mut WrongGroup<'_>| group.title == title && group.expected == expected;
        match groups.iter_mut().find(same) {
            Some(group) => {
                group.servers.push(alternative.server);
                group.targets.push(example.target);
                if example.target > group.example.target {
                    group.example = example;
                }
            }
            None => groups.push(WrongGroup {
                title,
                servers: vec![alternative.server],
                targets: vec![example.target],
                example,
                expected,
            }),
        }
    }
    for group in &mut groups {
        group.servers = sorted(group.servers.drain(..));
        group.targets = sorted(group.targets.drain(..));
    }
    groups
}

/// Returns what is known of a ratio, and what it allows to say.
pub(crate) fn ratio_text(answered: &Answered<'_>, answer: &Answer<'_>) -> (String, String) {
    let Outcome::Ratio { ratio, verdict } = answer.outcome else {
        return (String::new(), "no verdict: wrong answers or errors".to_owned());
    };
    let ends = ratio.interval.map(|ends| format!(" {}", interval(ends))).unwrap_or_default();
    let verdict = match verdict {
        Verdict::Same => {
            format!("the same within {} %", answered.question.same_percent.unwrap_or_default())
        }
        Verdict::Higher | Verdict::Lower => {
            let more = verdict == Verdict::Higher;
            match answered.question.metric {
                Metric::RequestsPerSecond if more => "faster",
                Metric::RequestsPerSecond => "slower",
                Metric::TimePerRequestUs if more => "takes longer",
                Metric::TimePerRequestUs => "takes less time",
                Metric::ServerCpuUsPerRequest if more => "costs more",
                Metric::ServerCpuUsPerRequest => "costs less",
            }
            .to_owned()
        }
        Verdict::Open => "not decided".to_owned(),
    };
    (format!("× {}{ends}", factor(ratio.estimate)), verdict)
}

/// Returns the answers to a question in one sentence, without those that were refused.
pub(crate) fn summary(answered: &Answered<'_>) -> String {
    let metric = metric_title(answered.question.metric);
    let ratios = answered.answers.iter().filter_map(|answer| match answer.outcome {
        Outcome::Ratio { ratio, .. } => Some((ratio.estimate, ratio_text(answered, answer).1)),
        Outcome::Refused => None,
    });
    let ratios: Vec<(f64, String)> = ratios.collect();
    if ratios.is_empty() {
        return "no verdict, because of wrong answers or errors".to_owned();
    }
    let low = factor(ratios.iter().map(|(ratio, _)| *ratio).fold(f64::INFINITY, f64::min));
    let high = factor(ratios.iter().map(|(ratio, _)| *ratio).fold(0.0, f64::max));
    // No line ends between a cross and its number.
    let range = if low == high {
        format!("×\u{a0}{low}")
    } else {
        format!("×\u{a0}{low} to ×\u{a0}{high}")
    };
    let verdicts = sorted(ratios.iter().map(|(_, verdict)| verdict.as_str()));
    let counted = verdicts.iter().map(|verdict| {
        let times = ratios.iter().filter(|(_, of)| of == verdict).count();
        format!("{times} of {}: {verdict}", ratios.len())
    });
    format!("{metric} {range} ({})", counted.collect::<Vec<_>>().join("; "))
}

/// Returns what the control shows.
pub(crate) fn control_text(answered: &Answered<'_>) -> String {
    match answered.control.and_then(|ratio| Some((ratio.estimate, ratio.interval?))) {
        Some((estimate, ends)) => {
            format!("A/A × {} {}", factor(estimate), interval(ends))
        }
        None => "no A/A interval, so no verdict".to_owned(),
    }
}

/// Returns what the number of a metric is called in a sentence.
pub(crate) fn metric_title(metric: Metric) -> &'static str {
    match metric {
        Metric::RequestsPerSecond => "requests per second",
        Metric::TimePerRequestUs => "time per request",
        Metric::ServerCpuUsPerRequest => "server CPU per request",
    }
}

/// Returns what a target is called in a headline.
pub(crate) fn target_title(target: Target, rules: u32) -> String {
    match target {
        Target::First => "the first rule".to_owned(),
        Target::Middle => "the middle rule".to_owned(),
        Target::Last => format!("the last of {} rules", whole(rules.into())),
        Target::Miss => "a path that no rule matches".to_owned(),
    }
}

/// Returns the size of the run in a sentence.
pub(crate) fn size(results: &Results) -> String {
    let volume = match results.volume {
        Volume::Milliseconds(time) => format!("{time} ms"),
        Volume::Requests(requests) => format!("{} requests", whole(requests)),
    };
    format!(
        "{} of {volume} a trial, {} trials in {:.0} s, every answer checked",
        count(results.rounds, "round"),
        whole(results.trials.len() as u64),
        results.seconds,
    )
}

/// Returns the machine in a sentence.
pub(crate) fn machine(environment: &Environment) -> String {
    let machine = if environment.virtual_machine { ", virtual machine" } else { "" };
    format!(
        "{} of {}{machine}, {}, {}",
        count(u32::try_from(environment.cores).unwrap_or(u32::MAX), "core"),
        environment.cpu_model,
        environment.system,
        environment.kernel,
    )
}

/// Writes a number with three digits that count, and groups its thousands.
pub(crate) fn number(value: f64) -> String {
    if value >= 99.95 {
        return grouped(value);
    }
    if value >= 9.995 { format!("{value:.1}") } else { format!("{value:.2}") }
}

/// Writes a number of things, with its thousands grouped.
pub(crate) fn whole(value: u64) -> String {
    grouped(value as f64)
}

/// Writes a factor: near 1 the differences lie in the second place.
pub(crate) fn factor(value: f64) -> String {
    if value < 0.0995 { format!("{value:.3}") } else { number(value) }
}

/// Writes an interval of factors.
pub(crate) fn interval(ends: Interval) -> String {
    format!("[{}, {}]", factor(ends.low), factor(ends.high))
}

/// Writes a number and what it counts.
pub(crate) fn count(number: u32, of: &str) -> String {
    if number == 1 { format!("1 {of}") } else { format!("{number} {of}s") }
}

/// Joins names as a sentence does.
pub(crate) fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.into_iter().collect();
    match names.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
        None => String::new(),
    }
}

/// Returns each value once, in order.
fn sorted<T: Ord>(values: impl Iterator<Item = T>) -> Vec<T> {
    values.collect::<BTreeSet<T>>().into_iter().collect()
}

fn grouped(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The control is no column of its own.
fn compared(results: &Results) -> impl Iterator<Item = &Alternative> {
    results.alternatives.iter().filter(|alternative| alternative.control_of.is_none())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn numbers_have_three_digits_that_count() {
        for (value, text) in [
            (0.0, "0.00"),
            (3.456, "3.46"),
            (9.996, "10.0"),
            (17.04, "17.0"),
            (99.96, "100"),
            (754.4, "754"),
            (999.7, "1,000"),
            (54_800.0, "54,800"),
            (1_234_567.0, "1,234,567"),
        ] {
            assert_eq!(number(value), text);
        }
        assert_eq!(factor(0.0123), "0.012");
        assert_eq!(factor(36.04), "36.0");
    }

    #[test]
    fn names_are_listed_as_in_a_sentence() {
        assert_eq!(listed([]), "");
        assert_eq!(listed(["a"]), "a");
        assert_eq!(listed(["a", "b", "c"]), "a, b and c");
    }

    #[test]
    fn the_control_is_no_column() {
        let results = sample::results();
        assert_eq!(
            columns(&results),
            [ServerKind::Milepost, ServerKind::Apache, ServerKind::Nginx]
        );
        let methods: Vec<&str> = rows(&results).iter().map(|row| row.method).collect();
        assert_eq!(methods, ["one", "redirect", "rewriterule", "redirectmatch-unanchored", "map"]);
    }
}
