//! Finds rules that load and do not do what was meant.
//!
//! A rule is dead when the first rule that answers its own path is another one: exactly the slip that
//! makes ten thousand unanchored patterns look fast, because the first of them answers for all. Each
//! rule is asked about with one lookup in the index, so a million rules take seconds.

use milepost_pcre::Matcher;

use crate::decision::Place;
use crate::diagnostic::{Diagnostic, Severity};
use crate::eval::covers;
use crate::index::{Candidates, Values};
use crate::pattern::Reach;
use crate::pool::{Pool, Str};
use crate::program::{
    AliasList, AliasMatcher, DirConfig, Flags, Program, RewriteList, RewriteRule, Substitution,
};

/// Most findings of one kind; a rule set that is all wrong says so in a few.
const FINDINGS_MAX: usize = 20;

/// Looks at every rule of a program.
pub(crate) fn lint(program: &Program) -> Vec<Diagnostic> {
    let mut lint = Lint { pool: &program.pool, found: Vec::new(), work: Work::default() };
    for (number, server) in program.servers.iter().enumerate() {
        // The last list of a virtual host is the main server's, which is looked at once.
        let own = |count: usize| if number == 0 { count } else { count.min(1) };
        for list in &server.redirects[..own(server.redirects.len())] {
            lint.redirects(&list.value);
        }
        for list in &server.rewrite[..own(server.rewrite.len())] {
            lint.rewrites(&list.value);
        }
    }
    lint.found
}

/// Looks at every rule of one section, or of one `.htaccess` file.
pub(crate) fn lint_section(program: &Program, config: &DirConfig) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let mut look = |pool, what: &dyn Fn(&mut Lint<'_>)| {
        let mut lint = Lint { pool, found: Vec::new(), work: Work::default() };
        what(&mut lint);
        found.append(&mut lint.found);
    };
    for list in &config.redirects {
        look(list.pool(&program.pool), &|lint| lint.redirects(&list.value));
    }
    for list in config.rewrite.iter().flat_map(|rewrite| &rewrite.rules) {
        look(list.pool(&program.pool), &|lint| lint.rewrites(&list.value));
    }
    found
}

#[derive(Default)]
struct Work {
    matcher: Matcher,
    candidates: Candidates,
}

/// Conditions are not looked at: no variable has a value.
const NO_VALUES: Values<'_> = Values { host: b"", uri: b"", query: b"" };

struct Lint<'p> {
    pool: &'p Pool,
    found: Vec<Diagnostic>,
    work: Work,
}

impl Lint<'_> {
    fn redirects(&mut self, list: &AliasList) {
        let mut dead = Vec::new();
        for (rule, number) in list.rules.iter().zip(0_u32..) {
            let Some((own, reach)) = reach_of(&rule.matcher) else { continue };
            let own = self.pool.get(own);
            let Some(winner) =
                self.first_redirect(list, own, reach).filter(|&winner| winner < number)
            else {
                continue;
            };
            let by = &list.rules[winner as usize];
            // An earlier pattern takes the path itself, an earlier URL-path all that is below it too.
            let all = matches!(by.matcher, AliasMatcher::Path(_))
                || !matches!(rule.matcher, AliasMatcher::Path(_));
            dead.push((rule.place, by.place, all, String::from_utf8_lossy(own).into_owned()));
        }
        self.report_dead(dead);
        self.report_always("redirects", list.index.always_count(), list.rules.len());
    }

    /// The first redirect that answers every path that is, begins with or contains `uri`.
    fn first_redirect(&mut self, list: &AliasList, uri: &[u8], reach: Reach) -> Option<u32> {
        let Work { matcher, candidates } = &mut self.work;
        list.index.start(self.pool, uri, NO_VALUES, candidates);
        let mut from = 0;
        while let Some(number) = list.index.next(self.pool, from, candidates) {
            let found = match &list.rules[number as usize].matcher {
                matcher
                    if !reach_of(matcher).is_some_and(|(_, other)| covers_reach(other, reach)) =>
                {
                    false
                }
                AliasMatcher::Path(path) => covers(self.pool.get(*path), uri) > 0,
                AliasMatcher::Exact(path) => self.pool.get(*path) == uri,
                AliasMatcher::Match(pattern) => {
                    pattern.find(self.pool, uri, matcher).is_ok_and(|found| found.is_some())
                }
            };
            if found {
                return Some(number);
            }
            from = number + 1;
        }
        None
    }

    fn rewrites(&mut self, list: &RewriteList) {
        let mut dead = Vec::new();
        for (rule, number) in list.rules.iter().zip(0_u32..) {
            let own = rule.pattern.literal().filter(|(_, reach)| *reach == Reach::Exact);
            let Some((own, _)) = own.filter(|_| !rule.flags.has(Flags::NEGATED)) else { continue };
            let text = self.pool.get(own);
            if let Some(winner) = self.first_end(list, text, number) {
                let by = &list.rules[winner as usize];
                dead.push((rule.place, by.place, true, String::from_utf8_lossy(text).into_owned()));
            }
        }
        self.report_dead(dead);
        self.report_always("rewrite rules", list.index.always_count(), list.rules.len());
    }

    /// The first rule before `number` that ends the pass for `input`, whatever the conditions, with no
    /// rule before it that could change the string.
    fn first_end(&mut self, list: &RewriteList, input: &[u8], number: u32) -> Option<u32> {
        let Work { matcher, candidates } = &mut self.work;
        list.index.start(self.pool, input, NO_VALUES, candidates);
        let mut from = 0;
        while let Some(at) = list.index.next(self.pool, from, candidates).filter(|&at| at < number)
        {
            from = at + 1;
            let rule = &list.rules[at as usize];
            let found =
                rule.pattern.find(self.pool, input, matcher).is_ok_and(|found| found.is_some());
            if found == rule.flags.has(Flags::NEGATED) {
                continue;
            }
            if rule.conditions.1 == 0 && ends(rule) {
                return Some(at);
            }
            if rule.conditions.1 == 0 && rule.substitution == Substitution::None && !moves(rule) {
                continue;
            }
            return None;
        }
        None
    }

    fn report_dead(&mut self, dead: Vec<(Place, Place, bool, String)>) {
        let count = dead.len();
        for (place, by, all, path) in dead.into_iter().take(FINDINGS_MAX) {
            let message = if all {
                format!("never answers: `{path}` is answered by an earlier rule")
            } else {
                format!("does not answer `{path}` itself: an earlier rule does")
            };
            let hint = "the first rule that matches wins: put the special one first, or anchor the \
                        earlier pattern with `^` and `$`";
            self.push(place, Severity::Warning, message, Some(hint.to_owned()), Some(by));
        }
        if count > FINDINGS_MAX
            && let Some(last) = self.found.last_mut()
        {
            let more = count - FINDINGS_MAX;
            last.message.push_str(&format!("; {more} more rules like it"));
        }
    }

    /// Rules without anything to hold on to are tried for every request: that is what they cost.
    fn report_always(&mut self, what: &str, always: usize, of: usize) {
        /// A few are normal.
        const ALWAYS_MIN: usize = 10;
        if always < ALWAYS_MIN {
            return;
        }
        let message = format!(
            "{always} of {of} {what} have no literal to hold on to, so they are tried for every request"
        );
        self.found.push(Diagnostic {
            severity: Severity::Note,
            file: self.pool.path(0).to_owned(),
            line: 0,
            column: 0,
            length: 0,
            text: String::new(),
            message,
            hint: Some("begin patterns with `^` and a literal where that is meant".to_owned()),
            also: None,
        });
    }

    fn push(
        &mut self,
        place: Place,
        severity: Severity,
        message: String,
        hint: Option<String>,
        also: Option<Place>,
    ) {
        let tree = self.pool.tree(place.file);
        let (line, column, text) = tree.position(place.offset as usize);
        let text = String::from_utf8_lossy(text).into_owned();
        let length = text.trim_end().len().saturating_sub(column as usize - 1).max(1) as u32;
        let also = also.map(|place| {
            let (file, line) = self.pool.describe(place);
            (file, line, "this rule answers instead".to_owned())
        });
        let file = self.pool.path(place.file).to_owned();
        self.found.push(Diagnostic {
            severity,
            file,
            line,
            column,
            length,
            text,
            message,
            hint,
            also,
        });
    }
}

/// The literal that a redirect goes by. A URL-path takes what is below it, as a prefix does.
fn reach_of(matcher: &AliasMatcher) -> Option<(Str, Reach)> {
    match matcher {
        AliasMatcher::Path(path) => Some((*path, Reach::Prefix)),
        AliasMatcher::Exact(path) => Some((*path, Reach::Exact)),
        AliasMatcher::Match(pattern) => pattern.literal(),
    }
}

/// Whether a literal that is in a string with `reach` is found there by a rule that looks with `other`.
fn covers_reach(other: Reach, reach: Reach) -> bool {
    match reach {
        Reach::Exact => true,
        Reach::Prefix => other != Reach::Exact,
        Reach::Contains => other == Reach::Contains,
    }
}

/// Whether nothing is tried after the rule once it has matched.
fn ends(rule: &RewriteRule) -> bool {
    rule.flags.has(Flags::LAST) || rule.flags.has(Flags::END) || rule.flags.has(Flags::STATUS)
}

/// Whether the rule leads past others.
fn moves(rule: &RewriteRule) -> bool {
    rule.flags.has(Flags::SKIP) || rule.flags.has(Flags::NEXT) || rule.flags.has(Flags::CHAIN)
}
