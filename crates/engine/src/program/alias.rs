//! The rules of mod_alias: `Redirect`, `RedirectMatch`, `Alias`, `AliasMatch`, in configuration order.

use std::hint::black_box;

use crate::decision::Place;
use crate::index::{Filing, Index, Lookup, merge_slashes};
use crate::pattern::{Pattern, Reach};
use crate::pool::{Pool, Str};

/// Redirects or aliases in the order of the configuration, with their index.
#[derive(Debug)]
pub(crate) struct AliasList {
    pub(crate) rules: Vec<AliasRule>,
    pub(crate) index: Index,
}

/// One directive.
#[derive(Debug)]
pub(crate) struct AliasRule {
    pub(crate) matcher: AliasMatcher,
    /// URL, URL-path or file path; empty for a status without `Location`.
    pub(crate) target: Str,
    /// The status of a redirect; 0 for an alias, 403 for one to scripts.
    pub(crate) status: u16,
    /// The target of a pattern is the answer as it stands: nothing is put in, and nothing escaped.
    pub(crate) is_ready: bool,
    pub(crate) place: Place,
}

/// What a rule compares the path with.
#[derive(Debug)]
pub(crate) enum AliasMatcher {
    /// A URL-path: whole segments of the path, runs of slashes being one.
    Path(Str),
    /// A regular expression that is a whole path, `^/a\.html$`: in place, so that a lookup among a
    /// million of them meets no memory that it need not.
    Exact(Str),
    /// A regular expression, searched anywhere.
    Match(Box<Pattern>),
}

impl AliasRule {
    /// Touches all of the rule, which can lie in two cache lines, so that neither is waited for later.
    #[inline]
    pub(crate) fn fetch(&self) {
        let AliasRule { matcher, target, status, is_ready: _, place } = self;
        black_box((std::mem::discriminant(matcher), *target, *status, *place));
    }
}

impl AliasMatcher {
    /// Makes a matcher of a regular expression.
    pub(crate) fn of(pattern: Pattern) -> AliasMatcher {
        match pattern.literal() {
            Some((path, Reach::Exact)) => AliasMatcher::Exact(path),
            _ => AliasMatcher::Match(Box::new(pattern)),
        }
    }
}

impl AliasList {
    /// Makes a list of rules and of how each is filed.
    pub(crate) fn new(
        pool: &Pool,
        rules: Vec<AliasRule>,
        filings: &[Filing],
        lookup: Lookup,
    ) -> AliasList {
        let index = Index::build(pool, filings, lookup);
        AliasList { rules, index }
    }

    /// How a rule with this URL-path is filed.
    pub(crate) fn file_path(pool: &mut Pool, path: Str) -> Filing {
        let text = pool.get(path);
        if !memchr::memchr_iter(b'/', text).any(|at| text.get(at + 1) == Some(&b'/')) {
            return Filing::Path(path);
        }
        let mut merged = Vec::new();
        merge_slashes(pool.get(path), &mut merged);
        Filing::Path(pool.add(&merged))
    }
}
