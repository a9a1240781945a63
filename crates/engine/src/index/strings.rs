//! Literals that a string can equal, begin with or contain, and the rules filed under each.

use std::hash::BuildHasher;

use aho_corasick::AhoCorasick;
use foldhash::fast::RandomState;
use hashbrown::HashTable;

use super::postings::{Cursor, List, Postings};
use super::trie::Trie;
use crate::pattern::Reach;
use crate::pool::{Pool, Str};

/// Literals for one subject. The hash is seeded anew in each process: its keys come from the network.
#[derive(Debug, Default)]
pub(super) struct Strings {
    hasher: RandomState,
    exact: HashTable<Key>,
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
        self.exact.is_empty() && self.prefixes.is_empty() && self.contained.is_empty()
    }

    /// Makes room for literals that a string equals.
    pub(super) fn reserve(&mut self, literals: usize) {
        // An empty table has nothing to hash again.
        self.exact.reserve(literals, |_| 0);
    }

    /// Files `rule` under `text`. Rules come in rising order.
    pub(super) fn add(
        &mut self,
        pool: &Pool,
        text: Str,
        reach: Reach,
        rule: u32,
        postings: &mut Postings,
    ) {
        match reach {
            Reach::Exact => {
                let bytes = pool.get(text);
                let hash = self.hasher.hash_one(bytes);
                let rehash = |key: &Key| self.hasher.hash_one(pool.get(key.text));
                let mut entry = self
                    .exact
                    .entry(hash, |key| pool.get(key.text) == bytes, rehash)
                    .or_insert_with(|| Key { text, rules: List::default() });
                postings.push(&mut entry.get_mut().rules, rule);
            }
            Reach::Prefix => postings.push(self.prefixes.list(pool, text), rule),
            Reach::Contains => {
                let mut key = Key { text, rules: List::default() };
                postings.push(&mut key.rules, rule);
                self.contained.push(key);
            }
        }
    }

    /// Makes the literals searchable. Nothing may be added after.
    pub(super) fn seal(&mut self, pool: &Pool) {
        if !self.contained.is_empty() {
            let literals = self.contained.iter().map(|key| pool.get(key.text));
            self.searcher = AhoCorasick::new(literals).ok();
        }
    }

    /// Calls up the rules of every literal that `subject` has.
    pub(super) fn find(&self, pool: &Pool, subject: &[u8], cursor: &mut Cursor) {
        if !self.exact.is_empty() {
            cursor.add(self.exact(pool, subject));
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

    /// The rules filed under exactly `subject`.
    pub(super) fn exact(&self, pool: &Pool, subject: &[u8]) -> List {
        let hash = self.hasher.hash_one(subject);
        let key = self.exact.find(hash, |key| pool.get(key.text) == subject);
        key.map(|key| key.rules).unwrap_or_default()
    }
}
