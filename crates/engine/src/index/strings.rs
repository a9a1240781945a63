//! Literals that a string can equal, begin with or contain, and the rules filed under each.

use super::contained::Contained;
use super::exact::Exact;
use super::postings::{Cursor, Postings};
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
    /// Made for the first of them: nearly all lists of rules have none.
    contained: Option<Box<Contained>>,
}

impl Strings {
    pub(super) fn is_empty(&self) -> bool {
        self.exact.is_empty()
            && self.cuts.is_empty()
            && self.prefixes.is_empty()
            && self.contained.is_none()
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
            Reach::Contains if text.len() > 0 => {
                let contained = self.contained.get_or_insert_default();
                contained.add(pool.get(text), rule, postings);
            }
            // Every string contains nothing, and begins with it.
            Reach::Prefix | Reach::Contains => {
                postings.push_front(self.prefixes.list(pool, text), rule);
            }
        }
    }

    /// Makes the literals searchable. Nothing may be added after.
    pub(super) fn seal(&mut self, postings: &mut Postings) {
        self.exact.settle(postings);
        self.cuts.settle(postings);
        if let Some(contained) = &mut self.contained {
            contained.seal();
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
        if let Some(contained) = &self.contained {
            contained.find(subject, cursor);
        }
    }
}
