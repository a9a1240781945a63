//! Makes a differing case small: fewer requests, fewer lines, shorter lines, the same difference.
//!
//! A round tries ways to leave something out, biggest first, many of them in one httpd, and goes on
//! with the smallest case that still differs in the same kind. Milepost is asked before httpd is:
//! it says in microseconds which tries are no configuration any more, and each of those would cost
//! a start of httpd.

use std::time::{Duration, Instant};

use crate::case::{Ask, Case, Exchange, HOST};
use crate::differential::{Contest, Difference, Kind, Tally};
use crate::engine::{EngineError, Verdict};
use crate::known::KnownDifferences;

/// Rounds before what is left is taken as small enough.
const ROUNDS_MAX: usize = 80;
/// Time after which what is left is taken as small enough: where httpd refuses the tries, each costs a start.
const TIME_MAX: Duration = Duration::from_secs(15);
/// Tries in one httpd: more of them waste work when an early one succeeds.
const TRIES: usize = 40;

/// Shrinks `found` as far as it goes.
///
/// # Errors
/// [`EngineError`] when an engine could not be asked.
pub fn shrink(contest: &Contest<'_>, found: Difference) -> Result<Difference, EngineError> {
    // What differs is known to differ; an entry must not hide it while it is made smaller.
    let known = KnownDifferences::default();
    let contest = Contest { known: &known, ..*contest };
    let mut smallest = found;
    let started = Instant::now();
    for _ in 0..ROUNDS_MAX {
        let mut found = None;
        let all = smaller(&smallest);
        for tries in all.chunks(TRIES).take_while(|_| started.elapsed() < TIME_MAX) {
            let tries = sensible(&contest, tries, smallest.kind)?;
            let differing = contest.compare(&tries, &mut Tally::default())?;
            found = differing
                .into_iter()
                .filter(|other| is_alike(other, &smallest))
                .filter(|other| size(&other.case) < size(&smallest.case))
                .min_by_key(|other| size(&other.case));
            if found.is_some() {
                break;
            }
        }
        match found {
            Some(next) => smallest = next,
            None => break,
        }
    }
    Ok(smallest)
}

/// Whether two cases differ in the same way: by kind, and by the statuses of both sides, lest the smaller one
/// show something else.
fn is_alike(one: &Difference, other: &Difference) -> bool {
    let statuses = |found: &Difference| {
        let expected = found.request.map(|at| found.case.exchanges[at].expected.status);
        (expected, found.request.and_then(|_| found.got.get(..3).map(str::to_owned)))
    };
    one.kind == other.kind && statuses(one) == statuses(other)
}

/// Leaves out the tries that milepost does not take as the kind of difference wants it to.
fn sensible(contest: &Contest<'_>, tries: &[Case], kind: Kind) -> Result<Vec<Case>, EngineError> {
    let verdicts = contest.scan.run(&tries.iter().collect::<Vec<_>>())?;
    let wants_refusal = kind == Kind::RefusedByMilepost;
    let fits = |verdict: &Verdict| matches!(verdict, Verdict::Refused(_)) == wants_refusal;
    let fitting = tries.iter().zip(&verdicts).filter(|(_, verdict)| fits(verdict));
    Ok(fitting.map(|(case, _)| case.clone()).collect())
}

/// How big a case is for a reader.
fn size(case: &Case) -> usize {
    let files = case.files.iter().map(|(path, text)| path.len() + text.len() + 10);
    let usual = |(name, value): &&(String, Vec<u8>)| name == "Host" && value == HOST.as_bytes();
    let asks = case.exchanges.iter().map(|exchange| {
        // The usual host costs nothing: it is not even written down.
        let hosts = exchange.ask.fields.iter().filter(usual).count();
        exchange.ask.head().len() + 40 - 20 * hosts
    });
    case.config.len() + files.sum::<usize>() + asks.sum::<usize>()
}

/// All the cases that are one step smaller, biggest steps first.
fn smaller(found: &Difference) -> Vec<Case> {
    let case = &found.case;
    let mut cases = Vec::new();
    let with = |change: &dyn Fn(&mut Case)| {
        let mut smaller = case.clone();
        change(&mut smaller);
        for exchange in &mut smaller.exchanges {
            exchange.expected = exchange.expected.unblessed();
        }
        smaller.refused = None;
        smaller
    };
    if case.exchanges.len() > 1 {
        match found.request {
            Some(at) => cases.push(with(&|case| case.exchanges = vec![case.exchanges[at].clone()])),
            None => cases.push(with(&|case| case.exchanges.truncate(1))),
        }
    }
    for path in case.files.keys() {
        cases.push(with(&|case| {
            case.files.remove(path);
        }));
    }
    for text in fewer_lines(&case.config) {
        cases.push(with(&|case| case.config = text.clone()));
    }
    for (path, text) in &case.files {
        for text in fewer_lines(text).into_iter().filter(|_| !is_filler(path, text)) {
            cases.push(with(&|case| {
                case.files.insert(path.clone(), text.clone());
            }));
        }
    }
    for (at, exchange) in case.exchanges.iter().enumerate() {
        for exchange in plainer(exchange) {
            cases.push(with(&|case| case.exchanges[at] = exchange.clone()));
        }
    }
    for text in shorter_lines(&case.config) {
        cases.push(with(&|case| case.config = text.clone()));
    }
    for (path, text) in &case.files {
        for text in shorter_lines(text).into_iter().filter(|_| !is_filler(path, text)) {
            cases.push(with(&|case| {
                case.files.insert(path.clone(), text.clone());
            }));
        }
    }
    cases
}

/// Whether a file only stands for itself.
fn is_filler(path: &str, text: &str) -> bool {
    text.strip_suffix('\n') == Some(path)
}

/// The text without half of its lines, a quarter, and each line or section.
fn fewer_lines(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let join = |lines: &[&str]| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
    let mut texts = Vec::new();
    let mut chunk = lines.len() / 2;
    while chunk > 1 {
        for start in (0..lines.len()).step_by(chunk) {
            let end = (start + chunk).min(lines.len());
            texts.push(join(&[&lines[..start], &lines[end..]].concat()));
        }
        chunk /= 2;
    }
    for (at, line) in lines.iter().enumerate() {
        if let Some(end) = section_end(&lines, at) {
            texts.push(join(&[&lines[..at], &lines[end + 1..]].concat()));
            texts.push(join(&[&lines[..at], &lines[at + 1..end], &lines[end + 1..]].concat()));
        } else if !line.trim_start().starts_with("</") {
            texts.push(join(&[&lines[..at], &lines[at + 1..]].concat()));
        }
    }
    texts
}

/// Finds the line that closes the section which line `at` opens.
fn section_end(lines: &[&str], at: usize) -> Option<usize> {
    let name = lines[at].trim_start().strip_prefix('<')?;
    let name = name.split([' ', '>']).next()?.to_ascii_lowercase();
    if name.starts_with('/') {
        return None;
    }
    let mut depth = 0_usize;
    for (number, line) in lines.iter().enumerate().skip(at) {
        let line = line.trim_start().to_ascii_lowercase();
        if line.starts_with(&format!("</{name}")) {
            depth -= 1;
            if depth == 0 {
                return Some(number);
            }
        } else if line.starts_with(&format!("<{name}")) {
            depth += 1;
        }
    }
    None
}

/// The text with one line shorter: by a flag, by a word's half, by a character.
fn shorter_lines(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let mut texts = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        for shorter in shorter(line) {
            let replaced = lines.iter().enumerate().map(|(other, line)| {
                let line = if other == at { shorter.as_str() } else { line };
                format!("{line}\n")
            });
            texts.push(replaced.collect());
        }
    }
    texts
}

fn shorter(line: &str) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some((before, flags)) = line.rsplit_once(" [") {
        lines.push(before.to_owned());
        let flags: Vec<&str> = flags.trim_end_matches(']').split(',').collect();
        for skipped in 0..flags.len().max(1) {
            let rest: Vec<&str> = flags
                .iter()
                .enumerate()
                .filter(|(at, _)| *at != skipped)
                .map(|(_, f)| *f)
                .collect();
            if !rest.is_empty() {
                lines.push(format!("{before} [{}]", rest.join(",")));
            }
        }
    }
    // The first word is the directive's name.
    let start = line.find(' ').map_or(line.len(), |blank| blank + 1);
    for length in [16, 8, 4, 2, 1] {
        let boundaries: Vec<usize> =
            (start..=line.len()).filter(|&at| line.is_char_boundary(at)).collect();
        for pair in boundaries.windows(length + 1) {
            lines.push(format!("{}{}", &line[..pair[0]], &line[pair[length]..]));
        }
    }
    lines
}

/// The exchange with less in its request.
fn plainer(exchange: &Exchange) -> Vec<Exchange> {
    let mut plainer = Vec::new();
    let mut with = |change: &dyn Fn(&mut Exchange)| {
        let mut other = exchange.clone();
        change(&mut other);
        if other != *exchange {
            plainer.push(other);
        }
    };
    with(&|other| other.ask.method = "GET".to_owned());
    with(&|other| other.ask.minor = 1);
    with(&|other| other.ask.fields = Ask::get(b"/").fields);
    for at in 0..exchange.ask.fields.len() {
        with(&|other| {
            if other.ask.fields[at].0 != "Host" {
                other.ask.fields.remove(at);
            }
        });
    }
    let target = &exchange.ask.target;
    for length in [8, 4, 3, 2, 1] {
        for at in 1..target.len().saturating_sub(length - 1) {
            with(&|other| {
                other.ask.target.drain(at..at + length);
            });
        }
    }
    plainer
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Engine;
    use crate::{Answer, Expected, Scope};

    /// Answers 301 where the configuration holds a word, else 404; so two of them differ there.
    struct Looks(&'static str);

    impl Engine for Looks {
        fn name(&self) -> &str {
            self.0
        }

        fn run(&self, cases: &[&Case]) -> Result<Vec<Verdict>, EngineError> {
            let answer = |case: &Case| {
                let status = if case.config.contains(self.0) { 301 } else { 404 };
                vec![Ok(Answer { status, ..Answer::default() }); case.exchanges.len()]
            };
            Ok(cases.iter().map(|case| Verdict::Answers(answer(case))).collect())
        }
    }

    #[test]
    fn the_cause_is_left() {
        let (with, without) = (Looks("culprit"), Looks("nothing holds this"));
        let known = KnownDifferences::default();
        let contest = Contest { judge: &without, scan: &with, index: &with, known: &known };
        let ask = Ask::get(b"/a/long/target?query");
        let case = Case {
            area: String::new(),
            name: String::new(),
            source: String::new(),
            scope: Scope::Vhost,
            config: "One x\n<Two y>\nThree z the culprit here [A,B]\nFour\n</Two>\nFive\n".into(),
            files: [("htdocs/a".to_owned(), "htdocs/a\n".to_owned())].into(),
            links: [].into(),
            refused: None,
            exchanges: vec![Exchange { ask, expected: Expected::default() }; 3],
        };
        let found = contest.compare(&[case], &mut Tally::default()).unwrap().remove(0);
        let small = shrink(&contest, found).unwrap();
        assert_eq!(small.kind, Kind::Answer);
        assert_eq!(small.case.config, "Three culprit\n");
        assert_eq!(small.case.exchanges.len(), 1);
        assert_eq!(small.case.exchanges[0].ask.target, b"/");
        assert!(small.case.files.is_empty());
    }
}
