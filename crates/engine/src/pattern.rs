//! A regular expression of a rule: matched by comparing bytes where that is the same, else by PCRE2.
//!
//! Most patterns of real rule sets are literals in disguise (`^/a\.html$`, `^/a/(.*)$`) or need no
//! backtracking (`^/a/([^/]+)/?$`). They are recognised once, at load; only the others are ever compiled, and
//! not before they are first tried.

mod analyze;
mod walk;

use std::sync::OnceLock;

use milepost_pcre::{Captures, Case, CompileError, MatchError, Matcher, Options, Regex};

pub(crate) use analyze::Reach;
use analyze::{Facts, Key};

use crate::index::{Handle, Keys, Subject};
use crate::pool::{Pool, Str};

/// A pattern, without its leading `!`. Small, so that a rule with one is in one cache line.
#[derive(Debug)]
pub(crate) struct Pattern(Shape);

/// What a pattern does. All but the last can be done without PCRE2.
#[derive(Debug)]
enum Shape {
    /// `^literal$`
    Exact(Str),
    /// `^literal`
    Prefix(Str),
    /// `^literal(.*)$`: group 1 is the rest.
    PrefixAndRest(Str),
    /// A literal anywhere.
    Contains(Str),
    /// A sequence that needs no backtracking: the whole pattern.
    Walk(Str),
    /// Anything else.
    Other(Box<Compiled>),
}

/// A pattern that PCRE2 compiles when it is first tried.
#[derive(Debug)]
struct Compiled {
    text: Str,
    options: Options,
    /// `None` inside: it does not compile.
    regex: OnceLock<Option<Regex>>,
}

impl Pattern {
    /// Makes a pattern of `text`, and returns what is known of the strings that it matches.
    ///
    /// # Errors
    /// When PCRE2 would not compile it.
    pub(crate) fn new(
        pool: &mut Pool,
        text: Str,
        options: impl Into<Options>,
    ) -> Result<(Pattern, Option<Handle>), CompileError> {
        let options = that_matter(pool.get(text), options.into());
        if options == Options::default()
            && let Some(end) = walk::literal_end(pool.get(text))
            && end <= analyze::LITERAL_BYTES_MAX
        {
            // The literal stands in the pattern, and nothing needs to be built to know that.
            let keys = Keys::One((text.slice(1, end - 1), Reach::Prefix));
            let handle = Handle { subject: Subject::Input, keys, folded: false };
            return Ok((Pattern(Shape::Walk(text)), Some(handle)));
        }
        let facts = analyze::analyze(pool.get(text));
        let shape = Shape::of(pool, text, options, &facts);
        if !facts.valid && !matches!(shape, Shape::Walk(_)) {
            // Compiled once to see that it compiles; kept only when it is tried.
            Regex::without_jit(pool.get(text), options)?;
        }
        let handle = handle(pool, text, &shape, options, facts);
        Ok((Pattern(shape), handle))
    }

    /// Searches `subject`.
    ///
    /// # Errors
    /// When PCRE2 gives up at one of its limits.
    pub(crate) fn find(
        &self,
        pool: &Pool,
        subject: &[u8],
        matcher: &mut Matcher,
    ) -> Result<Option<Captures>, MatchError> {
        let whole = |len: usize| Captures::of([(0, len)]);
        Ok(match self.0 {
            Shape::Exact(literal) => (subject == pool.get(literal)).then(|| whole(subject.len())),
            Shape::Prefix(literal) => {
                subject.starts_with(pool.get(literal)).then(|| whole(literal.len()))
            }
            Shape::PrefixAndRest(literal) => {
                let (start, end) = (literal.len(), subject.len());
                let found = subject.starts_with(pool.get(literal));
                found.then(|| Captures::of([(0, end), (start, end)]))
            }
            Shape::Contains(literal) => {
                let at = memchr::memmem::find(subject, pool.get(literal));
                at.map(|at| Captures::of([(at, at + literal.len())]))
            }
            Shape::Walk(text) => walk::find(pool.get(text), subject),
            Shape::Other(ref compiled) => {
                let compile = || Regex::new(pool.get(compiled.text), compiled.options).ok();
                match compiled.regex.get_or_init(compile) {
                    Some(regex) => matcher.find(regex, subject)?,
                    // It compiled at load; only want of memory can get here.
                    None => return Err(MatchError::Limit),
                }
            }
        })
    }

    /// The literal that it amounts to: it matches what is, begins with or contains it, and no more.
    pub(crate) fn literal(&self) -> Option<(Str, Reach)> {
        match self.0 {
            Shape::Exact(literal) => Some((literal, Reach::Exact)),
            Shape::Prefix(literal) | Shape::PrefixAndRest(literal) => {
                Some((literal, Reach::Prefix))
            }
            Shape::Contains(literal) => Some((literal, Reach::Contains)),
            Shape::Walk(_) | Shape::Other(_) => None,
        }
    }

    /// The text that a match begins with.
    pub(crate) fn text<'p>(&self, pool: &'p Pool) -> &'p [u8] {
        let (Shape::Exact(text)
        | Shape::Prefix(text)
        | Shape::PrefixAndRest(text)
        | Shape::Contains(text)
        | Shape::Walk(text)) = self.0
        else {
            return b"";
        };
        pool.get(text)
    }

    /// The named groups and their numbers, for `MATCH_` variables.
    pub(crate) fn names(&self, pool: &Pool) -> Vec<(String, u32)> {
        // What has a name is none of the simpler shapes.
        let Shape::Other(compiled) = &self.0 else { return Vec::new() };
        Regex::without_jit(pool.get(compiled.text), compiled.options)
            .map(|regex| regex.names())
            .unwrap_or_default()
    }
}

/// The options, but for those that change nothing in this pattern.
fn that_matter(pattern: &[u8], mut options: Options) -> Options {
    options.dot_matches_all |= !pattern.contains(&b'.');
    options.dollar_at_end_only |= !pattern.contains(&b'$');
    options
}

/// What a string must have for the pattern to match.
fn handle(
    pool: &mut Pool,
    text: Str,
    shape: &Shape,
    options: Options,
    facts: Facts,
) -> Option<Handle> {
    let is_regex = matches!(shape, Shape::Walk(_) | Shape::Other(_));
    let pattern = if is_regex { pool.get(text).to_vec() } else { Vec::new() };
    let folded = facts.folded || options.case == Case::Insensitive;
    let keys = match *shape {
        // The literal is in the pool already.
        Shape::Exact(literal) => Keys::One((literal, Reach::Exact)),
        Shape::Prefix(literal) | Shape::PrefixAndRest(literal) => {
            Keys::One((literal, Reach::Prefix))
        }
        Shape::Contains(literal) if literal.len() >= analyze::CONTAINED_BYTES_MIN => {
            Keys::One((literal, Reach::Contains))
        }
        Shape::Contains(_) => return None,
        Shape::Walk(_) | Shape::Other(_) => {
            let mut store = |mut key: Key| {
                if folded {
                    key.literal.make_ascii_lowercase();
                }
                // Where `$` lets a newline follow, the literal is not all of it.
                let reach = match key.reach {
                    Reach::Exact if !options.dollar_at_end_only => Reach::Prefix,
                    reach => reach,
                };
                (pool.add(&key.literal), reach)
            };
            let tail = facts.key_of_tail(&pattern).map(|key| vec![key]);
            let keys = facts.keys.or(tail)?;
            match <[Key; 1]>::try_from(keys) {
                Ok([key]) => Keys::One(store(key)),
                Err(keys) => Keys::Many(keys.into_iter().map(store).collect()),
            }
        }
    };
    Some(Handle { subject: Subject::Input, keys, folded })
}

impl Shape {
    fn of(pool: &mut Pool, text: Str, options: Options, facts: &Facts) -> Shape {
        let other = || Shape::Other(Box::new(Compiled { text, options, regex: OnceLock::new() }));
        if options != Options::default() {
            return other();
        }
        let Some(tail) = facts.tail else {
            return if walk::is_walkable(pool.get(text)) { Shape::Walk(text) } else { other() };
        };
        // The literal usually stands in the pattern as it is, and is then not stored again.
        let literal = match &facts.unescaped {
            Some(literal) => pool.add(literal),
            None => text.slice(facts.literal.start, facts.literal.len()),
        };
        match tail {
            analyze::Tail::End => Shape::Exact(literal),
            analyze::Tail::Open => Shape::Prefix(literal),
            analyze::Tail::Rest => Shape::PrefixAndRest(literal),
            analyze::Tail::Unanchored => Shape::Contains(literal),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn shapes() {
        check("^/test/1$", |shape| matches!(shape, Shape::Exact(_)));
        check(r"^/a\.html$", |shape| matches!(shape, Shape::Exact(_)));
        check("^/a/(.*)$", |shape| matches!(shape, Shape::PrefixAndRest(_)));
        check("^/a/(.*)", |shape| matches!(shape, Shape::PrefixAndRest(_)));
        check("^/a", |shape| matches!(shape, Shape::Prefix(_)));
        check("/test/1", |shape| matches!(shape, Shape::Contains(_)));
        check("^/a/?$", |shape| matches!(shape, Shape::Walk(_)));
        check("^/a/([^/]+)/(.*)$", |shape| matches!(shape, Shape::Walk(_)));
        check("^/a.b$", |shape| matches!(shape, Shape::Other(_)));
    }

    #[track_caller]
    fn check(text: &str, expected: fn(&Shape) -> bool) {
        let mut pool = Pool::default();
        let text = pool.add(text.as_bytes());
        let (pattern, _) = Pattern::new(&mut pool, text, Case::Sensitive).unwrap();
        assert!(expected(&pattern.0), "{pattern:?}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]

        /// Comparing bytes and PCRE2 agree, groups included, and keys never miss a match.
        #[test]
        fn shortcuts_equal_pcre(
            text in r"\^?(a|b|/|\\\.|\.|\*|\?|\(|\)|\||\[ab\]|\(a\|b\)|\(/\.\*\)\?|/\?|\(\.\*\)|\(\?:b\)|a\+|\{2\}|\\d|\^|\$){0,6}\$?",
            subjects in prop::collection::vec("[ab/.0A]{0,6}\n?[ab]?", 12),
            insensitive: bool,
            dot_matches_all: bool,
            dollar_at_end_only: bool,
        ) {
            let case = if insensitive { Case::Insensitive } else { Case::Sensitive };
            let options = Options { case, dot_matches_all, dollar_at_end_only };
            let mut pool = Pool::default();
            let stored = pool.add(text.as_bytes());
            let compiled = Regex::new(text.as_bytes(), options);
            let pattern = Pattern::new(&mut pool, stored, options);
            prop_assert_eq!(pattern.is_ok(), compiled.is_ok(), "validity of {}", text);
            let (Ok((pattern, handle)), Ok(regex)) = (pattern, compiled) else { return Ok(()) };
            let mut matcher = Matcher::new();
            for subject in &subjects {
                let subject = subject.as_bytes();
                let ours = pattern.find(&pool, subject, &mut matcher).unwrap();
                let theirs = matcher.find(&regex, subject).unwrap();
                let groups = |captures: Option<Captures>| captures.map(|captures| {
                    (0..10).map(|group| captures.get(group)).collect::<Vec<_>>()
                });
                prop_assert_eq!(groups(ours), groups(theirs), "{} on {:?}", text, subject);
                if theirs.is_some()
                    && let Some(Handle { keys, folded, .. }) = &handle
                {
                    let subject = if *folded { subject.to_ascii_lowercase() } else { subject.to_vec() };
                    let covered = |&(key, reach): &(Str, Reach)| {
                        let literal = pool.get(key);
                        match reach {
                            Reach::Exact => subject == literal,
                            Reach::Prefix => subject.starts_with(literal),
                            Reach::Contains => memchr::memmem::find(&subject, literal).is_some(),
                        }
                    };
                    prop_assert!(keys.as_slice().iter().any(covered), "{} on {:?}", text, subject);
                }
            }
        }
    }
}
