//! What must hold of a report, in one line: `p99<5ms`, `wrong==0`, `errors<0.1%`.
//!
//! An assertion holds only if the report shows it. A percentile without a sample beyond it, or one that
//! requests which were given up leave open, shows nothing; then the assertion does not hold, and says
//! why. The grammar is in docs/load.md.

mod parse;

use std::fmt;

use milepost_stats::histogram::{Bound, Estimate, Histogram};
use serde::Serialize;

use crate::failure::FailureKind;
use crate::report::{AssertionOutcome, Report};

pub use parse::AssertionError;

/// One statement about a report.
///
/// ```
/// use milepost_load::Assertion;
///
/// let assertion: Assertion = "p99.9 < 5ms".parse().unwrap();
/// assert_eq!(assertion.to_string(), "p99.9 < 5ms");
/// let error = "p99.9 < 5".parse::<Assertion>().unwrap_err();
/// assert_eq!(error.to_string(), "column 9: a time needs its unit: ns, us, ms, s, m or h");
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Assertion {
    /// As it was written.
    text: String,
    metric: Metric,
    comparison: Comparison,
    /// In nanoseconds where the metric is a time; a share from 0 to 1 where it ends in `%`.
    value: f64,
    is_share: bool,
}

/// What is looked at.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Metric {
    Time(Distribution, Figure),
    /// Right answers a second.
    Rate,
    Requests,
    Right,
    Wrong,
    Errors,
    /// Errors of one kind.
    ErrorKind(FailureKind),
    Unanswered,
    /// Answers with a status from the first to the last.
    Statuses(u16, u16),
    Warnings,
}

/// A distribution of times in the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Distribution {
    Response,
    Service,
    FirstByte,
    Connect,
    Tls,
    Lateness,
}

/// A figure of a distribution.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Figure {
    /// From 0 to 100, both excluded.
    Percentile(f64),
    Max,
    Mean,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Equal,
    NotEqual,
}

/// What the report says about a metric.
#[derive(Debug, Clone, PartialEq)]
enum Found {
    Value(f64),
    /// It is at least that.
    AtLeast(f64),
    /// Nothing, and why.
    Nothing(String),
}

/// What became of an assertion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The report shows it.
    Held,
    /// The report shows the opposite.
    Failed,
    /// The report shows neither.
    Open,
}

impl Assertion {
    /// Holds it against a report.
    #[must_use]
    pub fn judge(&self, report: &Report) -> AssertionOutcome {
        let found = self.metric.find(report, self.is_share);
        let verdict = match found {
            Found::Value(found) if self.comparison.holds(found, self.value) => Verdict::Held,
            Found::Value(_) => Verdict::Failed,
            Found::AtLeast(bound) => self.comparison.judge_bound(bound, self.value),
            Found::Nothing(_) => Verdict::Open,
        };
        AssertionOutcome { assertion: self.text.clone(), verdict, found: self.describe(&found) }
    }

    /// Whether it says how many answers may be wrong.
    #[must_use]
    pub fn is_about_wrong_answers(&self) -> bool {
        matches!(self.metric, Metric::Wrong)
    }

    /// Whether it says how many requests may fail.
    #[must_use]
    pub fn is_about_errors(&self) -> bool {
        matches!(self.metric, Metric::Errors)
    }

    fn describe(&self, found: &Found) -> String {
        let value = |value: f64| match self.metric {
            Metric::Time(..) => duration(value),
            _ if self.is_share => format!("{} %", rounded(value * 100.0)),
            _ => rounded(value),
        };
        match found {
            Found::Value(found) => value(*found),
            Found::AtLeast(bound) => format!("at least {}", value(*bound)),
            Found::Nothing(why) => why.clone(),
        }
    }
}

impl fmt::Display for Assertion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Metric {
    fn find(self, report: &Report, is_share: bool) -> Found {
        let count = match self {
            Self::Time(distribution, figure) => {
                return figure.find(distribution.histogram(report));
            }
            Self::Rate => return Found::Value(report.requests_per_second),
            Self::Requests => report.requests,
            Self::Right => report.requests - report.wrong_answers,
            Self::Wrong => report.wrong_answers,
            Self::Errors => report.errors,
            Self::ErrorKind(kind) => {
                let errors = report.errors_by_kind.iter().filter(|error| error.kind == kind);
                errors.map(|error| error.count).sum()
            }
            Self::Unanswered => report.unanswered,
            Self::Statuses(first, last) => report.statuses.range(first..=last).map(|it| it.1).sum(),
            Self::Warnings => report.warnings.len() as u64,
        };
        let sent = report.requests + report.errors + report.unanswered;
        match is_share {
            false => Found::Value(count as f64),
            true if sent == 0 => Found::Nothing("no request was sent".to_owned()),
            true => Found::Value(count as f64 / sent as f64),
        }
    }
}

impl Distribution {
    fn histogram(self, report: &Report) -> &Histogram {
        let distributions = &report.distributions;
        match self {
            Self::Response => &distributions.response,
            Self::Service => &distributions.service,
            Self::FirstByte => &distributions.first_byte,
            Self::Connect => &distributions.connect,
            Self::Tls => &distributions.tls,
            Self::Lateness => &distributions.lateness,
        }
    }
}

impl Figure {
    fn find(self, times: &Histogram) -> Found {
        let samples = times.len();
        let nothing = || Found::Nothing("no sample".to_owned());
        let estimate = match self {
            Self::Mean => return times.mean().map_or_else(nothing, Found::Value),
            Self::Max => times.max(),
            Self::Percentile(percent) => {
                let q = percent / 100.0;
                if samples > 0 && times.beyond(q) == 0 {
                    let needed = (1.0 / (1.0 - q)).round();
                    return Found::Nothing(format!(
                        "{samples} samples, and it takes more than {needed} for one beyond p{percent}"
                    ));
                }
                times.quantile(q)
            }
        };
        match estimate {
            None => nothing(),
            Some(Estimate { ns, bound: Bound::Exact }) => Found::Value(ns as f64),
            Some(Estimate { ns, bound: Bound::AtLeast }) => Found::AtLeast(ns as f64),
        }
    }
}

impl Comparison {
    fn holds(self, found: f64, value: f64) -> bool {
        match self {
            Self::Less => found < value,
            Self::LessOrEqual => found <= value,
            Self::Greater => found > value,
            Self::GreaterOrEqual => found >= value,
            Self::Equal => found == value,
            Self::NotEqual => found != value,
        }
    }

    /// The verdict when the true value is `bound` or more.
    fn judge_bound(self, bound: f64, value: f64) -> Verdict {
        match self {
            Self::Less if bound >= value => Verdict::Failed,
            Self::LessOrEqual | Self::Equal if bound > value => Verdict::Failed,
            Self::Greater | Self::NotEqual if bound > value => Verdict::Held,
            Self::GreaterOrEqual if bound >= value => Verdict::Held,
            _ => Verdict::Open,
        }
    }
}

/// A number with as many digits as say something.
fn rounded(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn duration(ns: f64) -> String {
    let (value, unit) = match ns {
        ..1e3 => (ns, "ns"),
        ..1e6 => (ns / 1e3, "us"),
        ..1e9 => (ns / 1e6, "ms"),
        _ => (ns / 1e9, "s"),
    };
    format!("{} {unit}", rounded(value))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::report::ErrorCount;

    #[test]
    fn what_the_report_shows_holds_or_fails() {
        let report = report();
        for (text, verdict, found) in [
            ("p50<5us", Verdict::Held, "1 us"),
            ("p99 <= 1ms", Verdict::Held, "1 us"),
            ("max>1s", Verdict::Held, "2 s"),
            ("max<1s", Verdict::Failed, "2 s"),
            ("service.p50==500ns", Verdict::Held, "500 ns"),
            ("service.mean>0.2us", Verdict::Held, "500 ns"),
            ("wrong==0", Verdict::Failed, "10"),
            ("wrong<2%", Verdict::Held, "1 %"),
            ("wrong>=1%", Verdict::Held, "1 %"),
            ("errors!=0", Verdict::Held, "5"),
            ("error.timed_out==5", Verdict::Held, "5"),
            ("error.reset==0", Verdict::Held, "0"),
            ("status.301==985", Verdict::Held, "985"),
            ("status.4xx==10", Verdict::Held, "10"),
            ("status.5xx==0%", Verdict::Held, "0 %"),
            ("right==985", Verdict::Held, "985"),
            ("requests>=995", Verdict::Held, "995"),
            ("unanswered==0", Verdict::Held, "0"),
            ("rate>123.4", Verdict::Held, "123.456"),
            ("warnings==0", Verdict::Held, "0"),
        ] {
            check(&report, text, verdict, found);
        }
    }

    #[test]
    fn what_the_report_does_not_show_is_open() {
        let report = report();
        let few = "1000 samples, and it takes more than 10000 for one beyond p99.99";
        check(&report, "p99.99<1h", Verdict::Open, few);
        check(&report, "connect.p50<1s", Verdict::Open, "no sample");
        check(&report, "lateness.max<1s", Verdict::Open, "no sample");
        check(&crate::dropin::empty_report(), "errors==0%", Verdict::Open, "no request was sent");
    }

    #[test]
    fn a_lower_bound_shows_what_it_can() {
        let mut report = report();
        let times = &mut report.distributions.first_byte;
        (0..90).for_each(|_| times.record(1_000));
        (0..10).for_each(|_| times.record_censored(5_000_000));
        for (text, verdict) in [
            ("first_byte.p95<4ms", Verdict::Failed),
            ("first_byte.p95<5ms", Verdict::Failed),
            ("first_byte.p95<=5.1ms", Verdict::Open),
            ("first_byte.p95<1s", Verdict::Open),
            ("first_byte.p95>1ms", Verdict::Held),
            ("first_byte.p95>1s", Verdict::Open),
            ("first_byte.p95==1s", Verdict::Open),
            ("first_byte.p95==1ms", Verdict::Failed),
            ("first_byte.p95!=1ms", Verdict::Held),
        ] {
            let outcome = text.parse::<Assertion>().unwrap().judge(&report);
            assert_eq!(outcome.verdict, verdict, "{text}: {outcome:?}");
            assert!(outcome.found.starts_with("at least 5"), "{outcome:?}");
        }
    }

    /// 1,000 requests: 985 right ones, 10 wrong ones, 5 errors.
    fn report() -> Report {
        let mut report = crate::dropin::empty_report();
        (report.requests, report.wrong_answers, report.errors) = (995, 10, 5);
        report.requests_per_second = 123.456;
        report.statuses = BTreeMap::from([(301, 985), (404, 7), (499, 3)]);
        report.errors_by_kind =
            vec![ErrorCount { kind: FailureKind::TimedOut, count: 5, example: String::new() }];
        (0..999).for_each(|_| report.distributions.response.record(1_000));
        report.distributions.response.record(2_000_000_000);
        (0..1_000).for_each(|_| report.distributions.service.record(500));
        report
    }

    #[track_caller]
    fn check(report: &Report, text: &str, verdict: Verdict, found: &str) {
        let outcome = text.parse::<Assertion>().unwrap().judge(report);
        assert_eq!((outcome.verdict, &*outcome.found), (verdict, found), "{text}");
        assert_eq!(outcome.assertion, text);
    }
}
