//! Runs the corpus on an engine and says where its answers are not the expected ones.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use crate::answer::Expected;
use crate::bytes;
use crate::case::{Ask, Case};
use crate::engine::{Engine, EngineError, Verdict};
use crate::known::{KnownDifferences, Seen};

/// How a refusal begins, in reports.
const REFUSED: &str = "refused: ";

/// Returns the spec directory of this workspace.
pub fn directory() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../spec"))
}

/// What a run found. Its `Display` is for people: every failure, then a line for each area.
#[derive(Debug, Default)]
pub struct Report {
    engine: String,
    areas: BTreeMap<String, Counts>,
    failures: Vec<Failure>,
    gone: Vec<String>,
}

/// How the checks of one area ended. A check is one request, or one configuration to be refused.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Cases.
    pub cases: usize,
    /// Checks that came out as expected.
    pub passed: usize,
    /// Checks that differ, and are listed as known differences.
    pub known: usize,
    /// Checks that differ.
    pub failed: usize,
}

#[derive(Debug)]
struct Failure {
    case: String,
    config: String,
    request: Option<String>,
    expected: String,
    got: String,
}

impl Report {
    /// Whether everything was as expected, and every listed difference still there.
    pub fn is_clean(&self) -> bool {
        self.failures.is_empty() && self.gone.is_empty()
    }

    /// Returns the counts over all areas.
    pub fn total(&self) -> Counts {
        self.areas.values().fold(Counts::default(), |sum, area| Counts {
            cases: sum.cases + area.cases,
            passed: sum.passed + area.passed,
            known: sum.known + area.known,
            failed: sum.failed + area.failed,
        })
    }
}

/// Runs `cases` on `engine` and compares the answers with the expected ones.
///
/// # Errors
/// [`EngineError`] when the engine could not be asked.
pub fn run(
    engine: &dyn Engine,
    cases: &[Case],
    known: &KnownDifferences,
) -> Result<Report, EngineError> {
    let mut report = Report { engine: engine.name().to_owned(), ..Report::default() };
    let mut differs = vec![false; known.entries.len()];
    let all: Vec<&Case> = cases.iter().collect();
    for (case, verdict) in cases.iter().zip(engine.run(&all)?) {
        let counts = report.areas.entry(case.area.clone()).or_default();
        counts.cases += 1;
        for check in compare(case, verdict) {
            let Some((expected, got)) = check.difference else {
                counts.passed += 1;
                continue;
            };
            let target = check.ask.map(|ask| bytes::write(&ask.target));
            let seen = Seen {
                area: &case.area,
                name: &case.name,
                target: target.as_deref(),
                refused: got.strip_prefix(REFUSED),
            };
            if let Some(entry) = known.find(seen) {
                differs[entry] = true;
                counts.known += 1;
                continue;
            }
            counts.failed += 1;
            report.failures.push(Failure {
                case: format!("{}/{}", case.area, case.name),
                config: case.config.clone(),
                request: check.ask.map(one_line),
                expected,
                got,
            });
        }
    }
    for (entry, differs) in known.entries.iter().zip(differs) {
        if !differs {
            report.gone.push(entry.to_string());
        }
    }
    Ok(report)
}

struct Check<'c> {
    ask: Option<&'c Ask>,
    /// Expected and got.
    difference: Option<(String, String)>,
}

fn compare(case: &Case, verdict: Verdict) -> Vec<Check<'_>> {
    let whole = |difference| vec![Check { ask: None, difference }];
    match (&case.refused, verdict) {
        (Some(_), Verdict::Refused(_)) => whole(None),
        (Some(message), Verdict::Answers(_)) => {
            whole(Some((format!("{REFUSED}{message}"), "accepted".to_owned())))
        }
        (None, Verdict::Refused(message)) => {
            whole(Some(("accepted".to_owned(), format!("{REFUSED}{message}"))))
        }
        (None, Verdict::Answers(answers)) => {
            let pairs = case.exchanges.iter().zip(answers);
            let checks = pairs.map(|(exchange, answer)| {
                let expected = &exchange.expected;
                let got = match answer {
                    Ok(answer) if expected.is_met_by(&answer) => None,
                    Ok(answer) => Some(expected.blessed(&answer).to_string()),
                    Err(error) => Some(error),
                };
                let difference = got.map(|got| (Expected::to_string(expected), got));
                Check { ask: Some(&exchange.ask), difference }
            });
            checks.collect()
        }
    }
}

/// Renders a request as `GET /x?y Host: www.test`.
pub fn one_line(ask: &Ask) -> String {
    let mut line = format!("{} {}", ask.method, bytes::write(&ask.target));
    if ask.minor == 0 {
        line.push_str(" HTTP/1.0");
    }
    if let Some(address) = &ask.address {
        line.push_str(&format!(" to {address}"));
    }
    for (name, value) in &ask.fields {
        line.push_str(&format!(" {name}: {}", bytes::write(value)));
    }
    line
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = "";
        for failure in &self.failures {
            if failure.case != shown {
                shown = &failure.case;
                writeln!(f, "\n{shown}")?;
                for line in failure.config.lines() {
                    writeln!(f, "    {line}")?;
                }
            }
            if let Some(request) = &failure.request {
                writeln!(f, "  {request}")?;
            }
            writeln!(f, "    expected {}\n    got      {}", failure.expected, failure.got)?;
        }
        for gone in &self.gone {
            writeln!(f, "\n{gone} is listed as a known difference and there is none any more")?;
        }
        writeln!(f, "\n{}", self.engine)?;
        writeln!(f, "{:20} {:>6} {:>7} {:>6} {:>7}", "area", "cases", "passed", "known", "failed")?;
        let total = ("total".to_owned(), self.total());
        let areas = self.areas.iter();
        for (name, counts) in areas.chain([(&total.0, &total.1)]) {
            let Counts { cases, passed, known, failed } = counts;
            writeln!(f, "{name:20} {cases:>6} {passed:>7} {known:>6} {failed:>7}")?;
        }
        Ok(())
    }
}
