//! Literals that a string contains, found in one pass of an automaton.
//!
//! Most strings have none of them. One without any byte that a literal begins with is known at a glance, and
//! the automaton does not start.

use std::collections::HashMap;

use aho_corasick::AhoCorasick;
use foldhash::fast::RandomState;

use super::postings::{Cursor, List, Postings};

/// The literals, each once, and the rules filed under each.
#[derive(Debug)]
pub(super) struct Contained {
    lists: Vec<List>,
    /// The number of each literal's list; none are kept once the automaton is made.
    numbers: HashMap<Box<[u8]>, usize, RandomState>,
    /// The bytes that literals begin with.
    starts: [bool; 256],
    searcher: Option<AhoCorasick>,
}

impl Default for Contained {
    fn default() -> Self {
        let (lists, numbers, starts, searcher) =
            (Vec::new(), HashMap::default(), [false; 256], None);
        Contained { lists, numbers, starts, searcher }
    }
}

impl Contained {
    /// Files `rule` under `literal`, which is not empty. Rules come from the last to the first.
    pub(super) fn add(&mut self, literal: &[u8], rule: u32, postings: &mut Postings) {
        let number = self.numbers.get(literal).copied().unwrap_or_else(|| {
            self.starts[usize::from(literal[0])] = true;
            self.numbers.insert(literal.into(), self.lists.len());
            self.lists.push(List::EMPTY);
            self.lists.len() - 1
        });
        postings.push_front(&mut self.lists[number], rule);
    }

    /// Makes the literals searchable. Nothing may be added after.
    pub(super) fn seal(&mut self) {
        let numbers = std::mem::take(&mut self.numbers);
        let mut literals: Vec<_> =
            numbers.into_iter().map(|(text, number)| (number, text)).collect();
        literals.sort_unstable();
        self.searcher = AhoCorasick::new(literals.iter().map(|(_, text)| text)).ok();
    }

    /// Calls up the rules of every literal that `subject` has.
    pub(super) fn find(&self, subject: &[u8], cursor: &mut Cursor) {
        if !subject.iter().any(|&byte| self.starts[usize::from(byte)]) {
            return;
        }
        match &self.searcher {
            Some(searcher) => {
                for found in searcher.find_overlapping_iter(subject) {
                    cursor.add(self.lists[found.pattern().as_usize()]);
                }
            }
            // More literals than an automaton can hold: all are candidates.
            None => self.lists.iter().for_each(|&list| cursor.add(list)),
        }
    }
}
