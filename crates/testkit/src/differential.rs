//! Compares milepost with real httpd, case by case, and shrinks what differs.

use crate::answer::{Answer, Expected};
use crate::case::Case;
use crate::engine::{Engine, EngineError, Verdict};
use crate::known::{KnownDifferences, Seen};

/// The three that are compared.
pub struct Contest<'e> {
    /// Real httpd.
    pub judge: &'e dyn Engine,
    /// Milepost, trying every rule.
    pub scan: &'e dyn Engine,
    /// Milepost, as it serves.
    pub index: &'e dyn Engine,
    /// Differences that are known already.
    pub known: &'e KnownDifferences,
}

/// What was compared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Cases.
    pub cases: usize,
    /// Cases whose configuration httpd did not accept.
    pub refused: usize,
    /// Requests that all three answered.
    pub requests: usize,
    /// Cases left out because of a known difference.
    pub known: usize,
    /// Requests left out because httpd answers them from memory that it has given back.
    pub undefined: usize,
    /// Cases that differ.
    pub differing: usize,
}

/// How one case differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Milepost answers otherwise than httpd.
    Answer,
    /// The index finds another answer than the scan.
    Index,
    /// Httpd accepts a configuration that milepost refuses.
    RefusedByMilepost,
    /// Milepost accepts a configuration that httpd refuses.
    RefusedByHttpd,
    /// Both refuse, and milepost has nothing to say of the line that httpd names.
    Line,
    /// Httpd answers with what it finds in memory that it has given back: the redirect of a subrequest for
    /// `FallbackResource`, which `fixup_dflt` of mod_dir destroys before the redirect is sent.
    Undefined,
}

/// A case that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The case, with what httpd answers as its expectations.
    pub case: Case,
    /// How it differs.
    pub kind: Kind,
    /// The number of the first request that differs, if one does.
    pub request: Option<usize>,
    /// What milepost says or answers instead.
    pub got: String,
}

impl Contest<'_> {
    /// Compares the answers to `cases`, and adds to `tally`.
    ///
    /// # Errors
    /// [`EngineError`] when one of the three could not be asked.
    pub fn compare(
        &self,
        cases: &[Case],
        tally: &mut Tally,
    ) -> Result<Vec<Difference>, EngineError> {
        let all: Vec<&Case> = cases.iter().collect();
        let judged = self.judge.run(&all)?;
        let scanned = self.scan.run(&all)?;
        let indexed = self.index.run(&all)?;
        let mut differing = Vec::new();
        for (((case, judged), scanned), indexed) in
            cases.iter().zip(judged).zip(scanned).zip(indexed)
        {
            tally.cases += 1;
            match &judged {
                Verdict::Refused(_) => tally.refused += 1,
                Verdict::Answers(answers) => tally.requests += answers.len(),
            }
            let (undefined, found): (Vec<_>, Vec<_>) =
                differences(case, &judged, &scanned, &indexed)
                    .into_iter()
                    .partition(|point| point.kind == Kind::Undefined);
            tally.undefined += undefined.len();
            let Some(Point { kind, request, got, .. }) = found.into_iter().next() else { continue };
            let target = request.map(|at| crate::bytes::write(&case.exchanges[at].ask.target));
            let seen = Seen {
                area: &case.area,
                name: &case.name,
                target: target.as_deref(),
                refused: (kind == Kind::RefusedByMilepost).then_some(got.as_str()),
            };
            if self.known.find(seen).is_some() {
                tally.known += 1;
                continue;
            }
            tally.differing += 1;
            differing.push(Difference { case: blessed(case, &judged), kind, request, got });
        }
        Ok(differing)
    }
}

/// One difference within a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Point {
    /// How it differs.
    pub kind: Kind,
    /// The number of the request, if it is about one.
    pub request: Option<usize>,
    /// What httpd says or answers.
    pub expected: String,
    /// What milepost says or answers instead.
    pub got: String,
}

/// Finds all differences between the three verdicts on a case.
pub fn differences(
    case: &Case,
    judged: &Verdict,
    scanned: &Verdict,
    indexed: &Verdict,
) -> Vec<Point> {
    let whole = |kind, expected: &str, got: &str| {
        let (expected, got) = (expected.to_owned(), got.to_owned());
        vec![Point { kind, request: None, expected, got }]
    };
    match (judged, scanned, indexed) {
        (Verdict::Refused(httpd), Verdict::Refused(scan), Verdict::Refused(index)) => {
            let named = |said: &str| names_line_of(said, httpd, &case.config);
            if named(scan) && named(index) { Vec::new() } else { whole(Kind::Line, httpd, scan) }
        }
        (Verdict::Refused(message), _, _) => whole(Kind::RefusedByHttpd, message, "accepted"),
        (Verdict::Answers(_), Verdict::Refused(message), _)
        | (Verdict::Answers(_), _, Verdict::Refused(message)) => {
            whole(Kind::RefusedByMilepost, "accepted", message)
        }
        (Verdict::Answers(judged), Verdict::Answers(scanned), Verdict::Answers(indexed)) => {
            let three = judged.iter().zip(scanned).zip(indexed).enumerate();
            let found = three.filter_map(|(at, ((judged, scanned), indexed))| {
                // No answer from httpd: it crashed or hung up, which is nothing to agree with.
                let answer = judged.as_ref().ok()?;
                let looked_at = &case.exchanges[at].expected.fields;
                let same = |one: &Answer, other: &Answer| {
                    let fields = || looked_at.iter().map(|(name, _)| name);
                    one.same_as(other) && fields().all(|name| one.value(name) == other.value(name))
                };
                let agrees = scanned.as_ref().is_ok_and(|scanned| same(scanned, answer));
                let ours_agree = match (scanned, indexed) {
                    (Ok(scanned), Ok(indexed)) => same(scanned, indexed),
                    (scanned, indexed) => scanned.as_ref().err() == indexed.as_ref().err(),
                };
                let (kind, got) = if !ours_agree {
                    (Kind::Index, indexed)
                } else if !agrees {
                    let is_undefined = scanned.as_ref().is_ok_and(|scanned| scanned.is_undefined);
                    let kind = if is_undefined { Kind::Undefined } else { Kind::Answer };
                    (kind, scanned)
                } else {
                    return None;
                };
                let say = |answer| say(answer, &case.exchanges[at].expected);
                Some(Point { kind, request: Some(at), expected: say(judged), got: say(got) })
            });
            found.collect()
        }
    }
}

/// Whether a refusal is about the line that httpd's is about, if that is about one. Of lines that are joined
/// httpd names the last.
fn names_line_of(said: &str, httpd: &str, config: &str) -> bool {
    let number = httpd.strip_prefix("line ").and_then(|rest| rest.split_once(':'));
    let Some(last) = number.and_then(|(number, _)| number.parse().ok()) else { return true };
    let lines: Vec<&str> = config.lines().take(last).collect();
    let joined = lines.iter().rev().skip(1).take_while(|line| line.ends_with('\\')).count();
    (last - joined.min(last)..=last).any(|number| said.contains(&format!("line {number}: ")))
}

fn say(answer: &Result<Answer, String>, looked_at: &Expected) -> String {
    match answer {
        Ok(answer) => looked_at.blessed(answer).to_string(),
        Err(error) => error.clone(),
    }
}

/// The case with httpd's verdict as its expectation.
fn blessed(case: &Case, judged: &Verdict) -> Case {
    let mut case = case.clone();
    match judged {
        Verdict::Refused(message) => {
            case.refused = Some(message.clone());
            case.exchanges.clear();
        }
        Verdict::Answers(answers) => {
            for (exchange, answer) in case.exchanges.iter_mut().zip(answers) {
                if let Ok(answer) = answer {
                    exchange.expected = exchange.expected.blessed(answer);
                }
            }
        }
    }
    case
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::{Ask, Exchange};

    fn answered(status: u16) -> Verdict {
        Verdict::Answers(vec![Ok(Answer { status, ..Answer::default() })])
    }

    #[test]
    fn kinds_of_difference() {
        let refused = Verdict::Refused("no".to_owned());
        check(&answered(302), &answered(302), &answered(302), None);
        check(&answered(302), &answered(301), &answered(301), Some(Kind::Answer));
        check(&answered(302), &answered(302), &answered(301), Some(Kind::Index));
        check(&answered(302), &refused, &refused, Some(Kind::RefusedByMilepost));
        check(&refused, &answered(302), &answered(302), Some(Kind::RefusedByHttpd));
        check(&refused, &refused, &refused, None);
        let at = |line| Verdict::Refused(format!("line {line}: no"));
        check(&at(3), &at(3), &at(3), None);
        check(&at(3), &at(33), &at(33), Some(Kind::Line));
        let silent = Verdict::Answers(vec![Err("closed".to_owned())]);
        check(&silent, &answered(302), &answered(302), None);
    }

    #[track_caller]
    fn check(judged: &Verdict, scanned: &Verdict, indexed: &Verdict, kind: Option<Kind>) {
        let found = differences(&one_request(""), judged, scanned, indexed);
        assert_eq!(found.first().map(|point| point.kind), kind);
    }

    #[test]
    fn what_the_configuration_decides() {
        let at = |line| Verdict::Refused(format!("line {line}: no"));
        check_with("A\nB \\\nb\n", &at(3), &at(2), None);
        check_with("A\nB \\\nb\n", &at(3), &at(1), Some(Kind::Line));
        check_with("A \\\na\nb\n", &at(3), &at(2), Some(Kind::Line));
        let undefined = Answer { status: 302, is_undefined: true, ..Answer::default() };
        let undefined = Verdict::Answers(vec![Ok(undefined)]);
        check_with("", &answered(500), &undefined, Some(Kind::Undefined));
        check_with("", &answered(500), &answered(302), Some(Kind::Answer));
    }

    #[track_caller]
    fn check_with(config: &str, judged: &Verdict, milepost: &Verdict, kind: Option<Kind>) {
        let case = one_request(config);
        let found = differences(&case, judged, milepost, milepost);
        assert_eq!(found.first().map(|point| point.kind), kind);
    }

    #[test]
    fn fields_that_a_case_looks_at_are_compared() {
        let with = |value: &[u8]| {
            let fields = vec![("X-M".to_owned(), value.to_vec())];
            Verdict::Answers(vec![Ok(Answer { status: 200, fields, ..Answer::default() })])
        };
        let mut case = one_request("");
        let kind = |case: &Case, ours: &Verdict| {
            differences(case, &with(b"1"), ours, ours).first().map(|point| point.kind)
        };
        assert_eq!(kind(&case, &with(b"2")), None);
        case.exchanges[0].expected.fields.push(("X-M".to_owned(), Vec::new()));
        assert_eq!(kind(&case, &with(b"1")), None);
        assert_eq!(kind(&case, &with(b"2")), Some(Kind::Answer));
    }

    fn one_request(config: &str) -> Case {
        let exchange = Exchange { ask: Ask::get(b"/"), expected: Expected::default() };
        Case { config: config.to_owned(), exchanges: vec![exchange], ..Case::default() }
    }
}
