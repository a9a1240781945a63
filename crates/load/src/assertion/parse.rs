//! Reads an assertion: a metric, a comparison, a value.
//!
//! ```text
//! assertion  = metric ("<" | "<=" | ">" | ">=" | "==" | "!=") value
//! metric     = [times "."] ("p" number | "max" | "mean")
//!            | "rate" | "requests" | "right" | "wrong" | "errors" | "unanswered" | "warnings"
//!            | "error." kind | "status." (3DIGIT | DIGIT "xx")
//! times      = "response" | "service" | "first_byte" | "connect" | "lateness"
//! value      = number ("ns" | "us" | "ms" | "s" | "m" | "h")     of a time
//!            | number ["%"]                                       of a count; % of all requests
//! ```
//!
//! Blanks may stand around the comparison.

use std::str::FromStr;

use super::{Assertion, Comparison, Distribution, Figure, Metric};
use crate::failure::FailureKind;

/// Comparisons, the longer ones first.
const COMPARISONS: [(&str, Comparison); 6] = [
    ("<=", Comparison::LessOrEqual),
    (">=", Comparison::GreaterOrEqual),
    ("==", Comparison::Equal),
    ("!=", Comparison::NotEqual),
    ("<", Comparison::Less),
    (">", Comparison::Greater),
];

/// Units of times in nanoseconds, those first that others end with.
const UNITS: [(&str, f64); 6] =
    [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9), ("m", 60e9), ("h", 3600e9)];

const DISTRIBUTIONS: [(&str, Distribution); 6] = [
    ("response", Distribution::Response),
    ("service", Distribution::Service),
    ("first_byte", Distribution::FirstByte),
    ("connect", Distribution::Connect),
    ("tls", Distribution::Tls),
    ("lateness", Distribution::Lateness),
];

/// Metrics that are one word.
const WORDS: [(&str, Metric); 7] = [
    ("rate", Metric::Rate),
    ("requests", Metric::Requests),
    ("right", Metric::Right),
    ("wrong", Metric::Wrong),
    ("errors", Metric::Errors),
    ("unanswered", Metric::Unanswered),
    ("warnings", Metric::Warnings),
];

/// What is wrong with an assertion, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("column {column}: {message}")]
pub struct AssertionError {
    /// Column in characters, from 1.
    pub column: usize,
    message: String,
}

impl FromStr for Assertion {
    type Err = AssertionError;

    fn from_str(text: &str) -> Result<Self, AssertionError> {
        let fail = |at: usize, message: String| AssertionError {
            column: text[..at].chars().count() + 1,
            message,
        };
        let at = text.find(['<', '>', '=', '!']).ok_or_else(|| {
            fail(text.len(), "a comparison is missing: <, <=, >, >=, == or !=".to_owned())
        })?;
        let (sign, comparison) = COMPARISONS
            .into_iter()
            .find(|(sign, _)| text[at..].starts_with(sign))
            .ok_or_else(|| fail(at, "a comparison is <, <=, >, >=, == or !=".to_owned()))?;
        let name = text[..at].trim();
        let name_at = text.len() - text.trim_start().len();
        let metric = metric(name).map_err(|(within, message)| fail(name_at + within, message))?;
        let rest = &text[at + sign.len()..];
        let value_text = rest.trim();
        let value_at = text.len() - rest.trim_start().len();
        let is_share = value_text.ends_with('%');
        let value = value(metric, value_text).map_err(|message| fail(value_at, message))?;
        Ok(Self { text: text.trim().to_owned(), metric, comparison, value, is_share })
    }
}

/// # Errors
///
/// What is wrong, and at which byte of the name.
fn metric(name: &str) -> Result<Metric, (usize, String)> {
    if let Some((_, metric)) = WORDS.iter().find(|(word, _)| *word == name) {
        return Ok(*metric);
    }
    match name.split_once('.') {
        Some(("status", statuses)) => {
            let bounds = statuses_of(statuses);
            let message = || format!("{statuses:?} is no status, such as 301 or 4xx");
            bounds
                .map(|(first, last)| Metric::Statuses(first, last))
                .ok_or_else(|| ("status.".len(), message()))
        }
        Some(("error", kind)) => {
            let known = FailureKind::ALL.into_iter().find(|known| known.name() == kind);
            known.map(Metric::ErrorKind).ok_or_else(|| {
                let names: Vec<_> = FailureKind::ALL.iter().map(|kind| kind.name()).collect();
                ("error.".len(), format!("no kind of error; they are {}", names.join(", ")))
            })
        }
        Some((times, figure_name)) if !name.starts_with('p') => {
            let known = DISTRIBUTIONS.iter().find(|(word, _)| *word == times);
            let (_, distribution) = known.ok_or_else(|| (0, unknown(name)))?;
            figure(figure_name)
                .map(|figure| Metric::Time(*distribution, figure))
                .map_err(|message| (times.len() + 1, message))
        }
        _ => {
            let looks_like_one = matches!(name, "max" | "mean") || name.starts_with('p');
            if !looks_like_one {
                return Err((0, unknown(name)));
            }
            figure(name)
                .map(|figure| Metric::Time(Distribution::Response, figure))
                .map_err(|message| (0, message))
        }
    }
}

fn unknown(name: &str) -> String {
    let words: Vec<_> = WORDS.iter().map(|(word, _)| *word).collect();
    let times: Vec<_> = DISTRIBUTIONS.iter().map(|(word, _)| *word).collect();
    format!(
        "unknown metric {name:?}; there are p99.9 (any percentile), max and mean of the response time, or \
         with {}. in front of another; {}; status.301, status.4xx and error.KIND",
        times.join("., "),
        words.join(", ")
    )
}

fn figure(name: &str) -> Result<Figure, String> {
    match name {
        "max" => return Ok(Figure::Max),
        "mean" => return Ok(Figure::Mean),
        _ => {}
    }
    let digits = name.strip_prefix('p').filter(|digits| is_plain(digits));
    let percent = digits.and_then(|digits| digits.parse::<f64>().ok());
    match percent {
        Some(percent) if percent > 0.0 && percent < 100.0 => Ok(Figure::Percentile(percent)),
        Some(_) if name.starts_with("p99") && !name.contains('.') => {
            let (whole, part) = name[1..].split_at(2);
            Err(format!("a percentile is below 100; p{whole}.{part} is written with its point"))
        }
        Some(_) => Err("a percentile is between 0 and 100; the longest time is max".to_owned()),
        None => Err(format!("{name:?} is no figure of a distribution: p99.9, max or mean")),
    }
}

fn statuses_of(text: &str) -> Option<(u16, u16)> {
    if text.len() != 3 {
        return None;
    }
    if let Some(class) = text.strip_suffix("xx") {
        let class: u16 = class.parse().ok().filter(|class| (1..=9).contains(class))?;
        return Some((class * 100, class * 100 + 99));
    }
    let status = text.parse().ok().filter(|status| (100..1000).contains(status))?;
    Some((status, status))
}

fn value(metric: Metric, text: &str) -> Result<f64, String> {
    let is_time = matches!(metric, Metric::Time(..));
    let counts = !is_time && metric != Metric::Rate && metric != Metric::Warnings;
    let (digits, factor) = match (text.strip_suffix('%'), counts) {
        (Some(digits), true) => (digits, 0.01),
        (Some(_), false) => return Err("only counts of requests have a share".to_owned()),
        (None, _) if is_time => {
            let unit = UNITS.iter().find_map(|(unit, ns)| Some((text.strip_suffix(unit)?, *ns)));
            unit.ok_or("a time needs its unit: ns, us, ms, s, m or h")?
        }
        (None, _) => (text, 1.0),
    };
    let digits = digits.trim_end();
    let number = digits.parse::<f64>().ok().filter(|_| is_plain(digits));
    number.map(|number| number * factor).ok_or_else(|| match is_time {
        true => format!("{text:?} is no time: a number with ns, us, ms, s, m or h"),
        false => format!("{text:?} is no number"),
    })
}

/// Digits with a point at most: no sign, no exponent, no infinity.
fn is_plain(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_comparisons_and_values_are_read() {
        check("p99<5ms", Metric::Time(Distribution::Response, Figure::Percentile(99.0)), 5e6);
        check(
            " p99.99 >= 1.5 s ",
            Metric::Time(Distribution::Response, Figure::Percentile(99.99)),
            1.5e9,
        );
        check("service.max!=7ns", Metric::Time(Distribution::Service, Figure::Max), 7.0);
        check(
            "first_byte.p50<=2us",
            Metric::Time(Distribution::FirstByte, Figure::Percentile(50.0)),
            2e3,
        );
        check("mean<1s", Metric::Time(Distribution::Response, Figure::Mean), 1e9);
        check("wrong==0", Metric::Wrong, 0.0);
        check("errors<0.5%", Metric::Errors, 0.005);
        check("status.4xx<3", Metric::Statuses(400, 499), 3.0);
        check("status.301>3", Metric::Statuses(301, 301), 3.0);
        check("error.closed_in_head==0", Metric::ErrorKind(FailureKind::ClosedInHead), 0.0);
        check("rate>1000.5", Metric::Rate, 1000.5);
    }

    #[test]
    fn mistakes_have_a_column() {
        for (text, message) in [
            ("", "column 1: a comparison is missing: <, <=, >, >=, == or !="),
            ("p99", "column 4: a comparison is missing: <, <=, >, >=, == or !="),
            ("p99=5ms", "column 4: a comparison is <, <=, >, >=, == or !="),
            ("p99<5", "column 5: a time needs its unit: ns, us, ms, s, m or h"),
            ("p99 < 5 min", "column 7: a time needs its unit: ns, us, ms, s, m or h"),
            ("p99<-5ms", "column 5: \"-5ms\" is no time: a number with ns, us, ms, s, m or h"),
            ("p99<", "column 5: a time needs its unit: ns, us, ms, s, m or h"),
            ("p99<5%", "column 5: only counts of requests have a share"),
            ("wrong==", "column 8: \"\" is no number"),
            ("wrong==none", "column 8: \"none\" is no number"),
            ("wrong<1e3", "column 7: \"1e3\" is no number"),
            ("p999<1s", "column 1: a percentile is below 100; p99.9 is written with its point"),
            ("p100<1s", "column 1: a percentile is between 0 and 100; the longest time is max"),
            (
                "service.p0<1s",
                "column 9: a percentile is between 0 and 100; the longest time is max",
            ),
            ("service.q<1s", "column 9: \"q\" is no figure of a distribution: p99.9, max or mean"),
            ("status.99>1", "column 8: \"99\" is no status, such as 301 or 4xx"),
            ("status.0xx>1", "column 8: \"0xx\" is no status, such as 301 or 4xx"),
            ("  ä < 1", "column 3: unknown metric \"ä\"; "),
            ("error.slow==0", "column 7: no kind of error; they are connect_refused, "),
        ] {
            let error = text.parse::<Assertion>().unwrap_err().to_string();
            assert!(error.starts_with(message), "{text}: {error}");
        }
    }

    #[track_caller]
    fn check(text: &str, metric: Metric, value: f64) {
        let assertion: Assertion = text.parse().unwrap();
        assert_eq!(assertion.metric, metric, "{text}");
        assert!((assertion.value - value).abs() < value * 1e-12 + 1e-12, "{assertion:?}");
        assert_eq!(assertion.to_string(), text.trim());
    }
}
