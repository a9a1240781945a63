//! From raw trials to what may be said: medians with intervals, ratios with verdicts.
//!
//! The trial is the sample. A cell with a wrong answer or a failed request has no figures at all:
//! how fast a wrong answer comes means nothing. Reads [`Results`] and nothing else, so a report can
//! be made again from the file, with the same numbers: the seed of the intervals is the run's.

use milepost_stats::bootstrap::{self, Interval};
use milepost_stats::compare::{self, Ratio, Verdict};
use milepost_stats::quantile::{Sample, median_in_place};

use crate::experiment::{Metric, Question, Target};
use crate::plan::matches;
use crate::results::{Results, Trial};

/// What is known of one alternative, target and number of connections.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// It was not measured.
    Absent,
    /// Answers were wrong.
    Wrong {
        /// How many.
        wrong_answers: u64,
        /// Among how many.
        requests: u64,
    },
    /// Requests failed.
    Failed {
        /// How many.
        errors: u64,
    },
    /// Every answer was right.
    Measured(Figures),
}

/// Medians over the rounds of one cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figures {
    /// Microseconds from one request to the next, per connection.
    pub time_per_request_us: Estimate,
    /// Right answers a second.
    pub requests_per_second: Estimate,
    /// Microseconds of the server's CPU for each request.
    pub server_cpu_us: Estimate,
    /// The part of it in user mode.
    pub server_cpu_user_us: f64,
    /// The part of it in the kernel.
    pub server_cpu_system_us: f64,
    /// The 99th percentile of service time in microseconds: the median of those of the rounds.
    pub service_us_p99: f64,
}

/// A median over rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The median.
    pub median: f64,
    /// Its 95 % interval; `None` when there are too few rounds.
    pub interval: Option<Interval>,
}

/// A question with its answers.
#[derive(Clone, Debug, PartialEq)]
pub struct Answered<'a> {
    /// The question.
    pub question: &'a Question,
    /// The control on the same target, connections and metric.
    pub control: Option<Ratio>,
    /// The answers, one for each alternative.
    pub answers: Vec<Answer<'a>>,
}

/// How one alternative compares.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer<'a> {
    /// The alternative.
    pub of: &'a str,
    /// What is known.
    pub outcome: Outcome,
}

/// What is known about a ratio.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Outcome {
    /// One of the two gives wrong answers or fails: there is nothing to compare.
    Refused,
    /// A ratio and what it allows to say.
    Ratio {
        /// The ratio.
        ratio: Ratio,
        /// What it allows to say.
        verdict: Verdict,
    },
}

impl Metric {
    /// Returns the number of this metric in `trial`.
    pub fn of(self, trial: &Trial) -> f64 {
        match self {
            Self::RequestsPerSecond => trial.requests_per_second,
            Self::TimePerRequestUs => {
                f64::from(trial.connections) * 1e6 / trial.requests_per_second
            }
            Self::ServerCpuUsPerRequest => trial.server_cpu_us_per_request.total(),
        }
    }
}

/// Summarises one cell.
pub fn cell(results: &Results, alternative: &str, target: Target, connections: u32) -> Cell {
    let trials: Vec<&Trial> = results.trials_of(alternative, target, connections).collect();
    let sum = |count: fn(&Trial) -> u64| trials.iter().map(|trial| count(trial)).sum::<u64>();
    let (requests, wrong_answers) = (sum(|t| t.requests), sum(|t| t.wrong_answers));
    if wrong_answers > 0 {
        return Cell::Wrong { wrong_answers, requests };
    }
    let errors = sum(|trial| trial.errors);
    if errors > 0 {
        return Cell::Failed { errors };
    }
    figures(&trials, results.seed).map_or(Cell::Absent, Cell::Measured)
}

/// Answers every question whose alternatives were measured.
pub fn answers(results: &Results) -> Vec<Answered<'_>> {
    results.comparisons.iter().filter_map(|question| answered(results, question)).collect()
}

fn figures(trials: &[&Trial], seed: u64) -> Option<Figures> {
    let estimate = |metric: Metric| estimate(trials.iter().map(|trial| metric.of(trial)), seed);
    let median = |value: fn(&Trial) -> Option<f64>| {
        let values: Option<Vec<f64>> = trials.iter().map(|trial| value(trial)).collect();
        Sample::new(values?).map(|sample| sample.median())
    };
    Some(Figures {
        time_per_request_us: estimate(Metric::TimePerRequestUs)?,
        requests_per_second: estimate(Metric::RequestsPerSecond)?,
        server_cpu_us: estimate(Metric::ServerCpuUsPerRequest)?,
        server_cpu_user_us: median(|trial| Some(trial.server_cpu_us_per_request.user))?,
        server_cpu_system_us: median(|trial| Some(trial.server_cpu_us_per_request.system))?,
        service_us_p99: median(|trial| Some(trial.service_ns?.p99 as f64 / 1_000.0))?,
    })
}

fn estimate(values: impl Iterator<Item = f64>, seed: u64) -> Option<Estimate> {
    let values: Vec<f64> = values.collect();
    let interval = bootstrap::interval(&values, median_in_place, seed);
    Some(Estimate { median: Sample::new(values)?.median(), interval })
}

fn answered<'a>(results: &'a Results, question: &'a Question) -> Option<Answered<'a>> {
    let control = control(results, question);
    // Without a control of known noise there is no verdict.
    let noise = control.as_ref().and_then(compare::noise);
    let is_asked = |name: &str| {
        name != question.against && question.of.iter().any(|pattern| matches(pattern, name))
    };
    let answers: Vec<Answer<'_>> = results
        .alternatives
        .iter()
        .filter(|alternative| alternative.control_of.is_none() && is_asked(&alternative.name))
        .filter_map(|alternative| {
            let outcome = outcome(results, question, &alternative.name, noise)?;
            Some(Answer { of: &alternative.name, outcome })
        })
        .collect();
    (!answers.is_empty()).then_some(Answered { question, control, answers })
}

fn outcome(
    results: &Results,
    question: &Question,
    of: &str,
    noise: Option<f64>,
) -> Option<Outcome> {
    let state = |name: &str| cell(results, name, question.target, question.connections);
    match (state(of), state(&question.against)) {
        (Cell::Absent, _) | (_, Cell::Absent) => None,
        (Cell::Measured(_), Cell::Measured(_)) => {
            let ratio = ratio(results, question, of, &question.against)?;
            let margin = question.same_percent.map(|percent| 1.0 + percent / 100.0);
            let verdict =
                noise.map_or(Verdict::Open, |noise| compare::verdict(&ratio, noise, margin));
            Some(Outcome::Ratio { ratio, verdict })
        }
        _ => Some(Outcome::Refused),
    }
}

/// Returns the ratio of the control to what it repeats.
fn control(results: &Results, question: &Question) -> Option<Ratio> {
    let control = results
        .alternatives
        .iter()
        .find_map(|alternative| alternative.control_of.as_ref().map(|of| (&alternative.name, of)));
    let (control, of) = control?;
    ratio(results, question, control, of)
}

fn ratio(results: &Results, question: &Question, of: &str, against: &str) -> Option<Ratio> {
    let Question { target, connections, metric, .. } = *question;
    let pairs: Vec<(f64, f64)> = results
        .trials_of(of, target, connections)
        .filter_map(|trial| {
            let mut others = results.trials_of(against, target, connections);
            let other = others.find(|other| other.round == trial.round)?;
            Some((metric.of(trial), metric.of(other)))
        })
        .collect();
    compare::paired_ratio(&pairs, results.seed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn a_wrong_answer_leaves_no_figures() {
        let mut results = sample::results();
        assert!(matches!(cell(&results, "apache/redirect", Target::Last, 1), Cell::Measured(_)));
        results.trials[0].wrong_answers = 1;
        let name = results.trials[0].alternative.clone();
        let Trial { target, connections, .. } = results.trials[0];
        assert!(matches!(
            cell(&results, &name, target, connections),
            Cell::Wrong { wrong_answers: 1, .. }
        ));
    }

    #[test]
    fn a_failed_request_leaves_no_figures() {
        let mut results = sample::results();
        results.trials[0].errors = 2;
        let name = results.trials[0].alternative.clone();
        let Trial { target, connections, .. } = results.trials[0];
        assert_eq!(cell(&results, &name, target, connections), Cell::Failed { errors: 2 });
    }

    #[test]
    fn figures_are_medians_over_rounds() {
        let results = sample::results();
        let Cell::Measured(figures) = cell(&results, "apache/redirect", Target::Last, 1) else {
            panic!("not measured");
        };
        // The sample's Apache takes 90 µs, and one round in seven is disturbed.
        assert!((figures.time_per_request_us.median - 90.0).abs() < 2.0, "{figures:?}");
        assert!((figures.server_cpu_us.median - 65.0).abs() < 2.0, "{figures:?}");
        assert!(figures.server_cpu_us.interval.is_some());
        assert_eq!(cell(&results, "apache/redirect", Target::Last, 77), Cell::Absent);
    }

    #[test]
    fn questions_are_answered_and_wrong_alternatives_refused() {
        let results = sample::results();
        let answered = answers(&results);
        let of = |name: &str| {
            let answers = answered.iter().flat_map(|answered| &answered.answers);
            answers.filter(|answer| answer.of == name).map(|answer| answer.outcome).next()
        };
        let Some(Outcome::Ratio { ratio, verdict }) = of("apache/redirect") else {
            panic!("no ratio");
        };
        assert_eq!(verdict, Verdict::Higher);
        assert!((ratio.estimate - 3.25).abs() < 0.1, "{ratio:?}"); // 65 µs against 20 µs.
        assert_eq!(of("apache/redirectmatch-unanchored"), Some(Outcome::Refused));
        let Some(Outcome::Ratio { verdict, .. }) = of("milepost/redirect") else {
            panic!("no ratio");
        };
        assert_eq!(verdict, Verdict::Same);
    }

    #[test]
    fn without_a_control_there_is_no_verdict() {
        let mut results = sample::results();
        results.trials.retain(|trial| !trial.alternative.ends_with("/control"));
        let outcomes: Vec<Outcome> = answers(&results)
            .iter()
            .flat_map(|answered| answered.answers.iter().map(|answer| answer.outcome))
            .collect();
        assert!(!outcomes.is_empty());
        for outcome in outcomes {
            assert!(
                matches!(outcome, Outcome::Refused | Outcome::Ratio { verdict: Verdict::Open, .. }),
                "{outcome:?}"
            );
        }
    }
}
