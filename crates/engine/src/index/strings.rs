//! Literals that a string can equal, begin with or contain, and the rules filed under each.

use aho_corasick::AhoCorasick;

use super::exact::Exact;
use super::postings::{Cursor, List, Postings};
use super::trie::Trie;
use crate::pattern::Reach;
use crate::pool::{Pool, Str};
use crate::words::{MASKED_BYTES_MAX, slashes};

/// Literals for one subject.
#[derive(Debug, Default)]
pub(super) struct Strings {
    exact: Exact,
    /// Prefixes that end in a slash: looked up at every slash of a string.
    cuts: Exact,
    /// The other prefixes.
    prefixes: Trie,
    contained: Vec<Key>,
    searcher: Option<AhoCorasick>,
}

#[derive(Clone, Copy, Debug)]
struct Key {
    text: Str,
    rules: List,
}

impl Strings {
    pub(super) fn is_empty(&self) -> bool {
        self.exact.is_empty()
            && self.cuts.is_empty()
            && self.prefixes.is_empty()
            && self.contained.is_empty()
    }

    /// Makes room for literals that a string equals, and for prefixes that end in a slash.
    pub(super) fn reserve(&mut self, exact: usize, cuts: usize) {
        self.exact.reserve(exact);
        self.cuts.reserve(cuts);
    }

    /// Whether a literal is looked up at slashes.
    pub(super) fn is_cut(pool: &Pool, text: Str, reach: Reach) -> bool {
        reach == Reach::Prefix && pool.get(text).last() == Some(&b'/')
    }

    /// Files `rule` under `text`. Rules come from the last to the first.
    pub(super) fn add(
        &mut self,
        pool: &Pool,
        text: Str,
        reach: Reach,
        rule: u32,
        postings: &mut Postings,
    ) {
        match reach {
            Reach::Exact => self.exact.add(pool.get(text), rule, postings),
            Reach::Prefix if Strings::is_cut(pool, text, reach) => {
                self.cuts.add(pool.get(text), rule, postings);
            }
            Reach::Prefix => postings.push_front(self.prefixes.list(pool, text), rule),
            Reach::Contains => {
                let mut key = Key { text, rules: List::default() };
                postings.push_front(&mut key.rules, rule);
                self.contained.push(key);
            }
        }
    }

    /// Makes the literals searchable. Nothing may be added after.
    pub(super) fn seal(&mut self, pool: &Pool, postings: &mut Postings) {
        self.exact.settle(postings);
        self.cuts.settle(postings);
        if !self.contained.is_empty() {
            let literals = self.contained.iter().map(|key| pool.get(key.text));
            self.searcher = AhoCorasick::new(literals).ok();
        }
    }

    /// Calls up the rules of every literal that `subject` has.
    pub(super) fn find(&self, pool: &Pool, subject: &[u8], cursor: &mut Cursor) {
        if !self.exact.is_empty() {
            cursor.add(self.exact.get(subject));
        }
        if !self.cuts.is_empty() {
            if subject.len() <= MASKED_BYTES_MAX {
                self.cuts.find_starts(subject, slashes(subject) << 1, cursor);
            } else {
                for at in memchr::memchr_iter(b'/', subject) {
                    cursor.add(self.cuts.get(&subject[..=at]));
                }
            }
        }
        self.prefixes.find(pool, subject, cursor);
        match &self.searcher {
            Some(searcher) => {
                for found in searcher.find_overlapping_iter(subject) {
                    cursor.add(self.contained[found.pattern().as_usize()].rules);
                }
            }
            // More literals than an automaton can hold: all are candidates.
            None => self.contained.iter().for_each(|key| cursor.add(key.rules)),
        }
    }
}
