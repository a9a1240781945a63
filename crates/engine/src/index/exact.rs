//! A hash table of literals that says which rules are filed under one.
//!
//! It keeps no text: an entry is 32 bits of a literal's hash and its list, eight bytes, so that a lookup among
//! a million literals costs one cache miss. Where two literals have the same bits (some hundred of a million
//! do), their rules stand in one list: the index may name a rule that does not match. A string of a length
//! that no literal has is not hashed at all.
//!
//! Beside the entries stands a byte for each, with seven bits of its hash. They fit into the caches when the
//! entries do not, and most strings that no literal equals are known from them alone.
//!
//! Literals are filed some hundred at a time: the processor then waits for many slots at once.

use std::hash::{BuildHasher, Hasher};

use foldhash::fast::RandomState;

use super::postings::{Cursor, List, Postings};

/// Literals that are hashed before they are filed.
const BATCH: usize = 256;

/// The table. The hash is seeded anew in each process: what is looked up comes from the network.
#[derive(Debug, Default)]
pub(super) struct Exact {
    hasher: RandomState,
    /// A power of two, at most three quarters of them in use, or none.
    slots: Vec<Slot>,
    /// The [`tag`] of each slot, 0 for one that is not in use.
    tags: Vec<u8>,
    used: usize,
    /// Which lengths there are.
    lengths: u64,
    /// Rules under their hashes, to be filed.
    pending: Vec<(u32, u32)>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    hash: u32,
    rules: List,
}

impl Exact {
    pub(super) fn is_empty(&self) -> bool {
        debug_assert!(self.pending.is_empty(), "asked before all is filed");
        self.used == 0
    }

    /// Makes room, so that the table need not grow step by step.
    pub(super) fn reserve(&mut self, literals: usize) {
        let slots = ((self.used + literals) * 4).div_ceil(3).next_power_of_two();
        if slots > self.slots.len() {
            let old = std::mem::replace(&mut self.slots, vec![Slot::default(); slots]);
            self.tags = vec![0; slots];
            for slot in old.into_iter().filter(|slot| slot.rules != List::EMPTY) {
                let at = self.position(slot.hash);
                self.slots[at] = slot;
                self.tags[at] = tag(slot.hash);
            }
        }
    }

    /// Files `rule` under `literal`. Rules come from the last to the first; [`Exact::settle`] comes after.
    pub(super) fn add(&mut self, literal: &[u8], rule: u32, postings: &mut Postings) {
        self.pending.push((self.hash(literal), rule));
        self.lengths |= length_bit(literal.len());
        if self.pending.len() >= BATCH {
            self.settle(postings);
        }
    }

    /// Files what has been added.
    pub(super) fn settle(&mut self, postings: &mut Postings) {
        let mut pending = std::mem::take(&mut self.pending);
        self.reserve(pending.len());
        for &(hash, rule) in &pending {
            let at = self.position(hash);
            let slot = &mut self.slots[at];
            if slot.rules == List::EMPTY {
                slot.hash = hash;
                self.tags[at] = tag(hash);
                self.used += 1;
            }
            postings.push_front(&mut slot.rules, rule);
        }
        pending.clear();
        self.pending = pending;
    }

    /// The rules filed under `literal`, and perhaps others.
    #[inline]
    pub(super) fn get(&self, literal: &[u8]) -> List {
        if self.lengths & length_bit(literal.len()) == 0 {
            return List::EMPTY;
        }
        let at = self.position(self.hash(literal));
        if self.tags[at] == 0 { List::EMPTY } else { self.slots[at].rules }
    }

    /// Calls up the rules filed under the starts of `text` that have one of these lengths: bit `n` for `n`
    /// bytes, of which there are less than 63.
    #[inline]
    pub(super) fn find_starts(&self, text: &[u8], lengths: u64, cursor: &mut Cursor) {
        let mut lengths = lengths & self.lengths;
        while lengths != 0 {
            cursor.add(self.get(&text[..lengths.trailing_zeros() as usize]));
            lengths &= lengths - 1;
        }
    }

    /// The slot with this hash, or the empty one where it belongs. There is always one that is empty.
    #[inline]
    fn position(&self, hash: u32) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let found = self.tags[at];
            if found == 0 || found == tag(hash) && self.slots[at].hash == hash {
                return at;
            }
            at = (at + 1) & mask;
        }
    }

    #[inline]
    fn hash(&self, literal: &[u8]) -> u32 {
        let mut hasher = self.hasher.build_hasher();
        hasher.write(literal);
        hasher.finish() as u32
    }
}

/// The bits of a hash that do not say where its slot is, and a bit that says that there is one.
#[inline]
fn tag(hash: u32) -> u8 {
    (hash >> 24) as u8 | 1
}

/// The bit of a length in a set of lengths: bit `n` for `n` bytes, the last for all that are longer.
#[inline]
fn length_bit(len: usize) -> u64 {
    1 << len.min(63)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grows_and_keeps_all_lists() {
        let (mut exact, mut postings) = (Exact::default(), Postings::default());
        assert_eq!(exact.get(b"/1"), List::EMPTY);
        let literal = |rule: u32| format!("/{}", rule / 2);
        for rule in (0..1000).rev() {
            exact.add(literal(rule).as_bytes(), rule, &mut postings);
        }
        exact.settle(&mut postings);
        for rule in 0..1000 {
            let found: Vec<u32> = postings.iter(exact.get(literal(rule).as_bytes())).collect();
            let pair = [rule & !1, rule | 1];
            assert!(pair.iter().all(|rule| found.contains(rule)), "{rule}: {found:?}");
        }
        assert_eq!(exact.get(b"/no such length"), List::EMPTY);
    }
}
