//! Fetches the text of a rule at the time at which the rule itself is fetched.
//!
//! Among a million rules neither is in a cache of the processor, and only the rule says where its text
//! stands. Four bytes a rule, which mostly are in a cache, let it wait for both at once.

use std::hint::black_box;

use crate::decision::Place;
use crate::pool::{Pool, Str};

/// Lists with fewer rules are in the caches as they are.
const RULES_MIN: usize = 1 << 13;

/// Farthest from a key that its rule is looked at a second time: a cache line.
const LINE_BYTES: usize = 64;

/// Stands for a text in another file.
const ELSEWHERE: u32 = u32::MAX;

/// Where the key of each rule stands in the file that they come from.
#[derive(Debug, Default)]
pub(super) struct Texts {
    file: Option<u32>,
    offsets: Vec<u32>,
    /// How far behind its key the rest of what a rule needs stands, as a rule.
    rest: usize,
}

impl Texts {
    /// Makes room for so many rules, if they are many.
    pub(super) fn reserve(&mut self, rules: usize) {
        if rules >= RULES_MIN {
            self.offsets = vec![ELSEWHERE; rules];
        }
    }

    /// Notes a key of a rule.
    pub(super) fn note(&mut self, rule: u32, key: Str) {
        if let Some(offset) = self.offsets.get_mut(rule as usize)
            && let Some(Place { file, offset: at }) = key.place()
            && *self.file.get_or_insert(file) == file
        {
            *offset = at;
        }
    }

    /// Learns how long rules are. Two thirds of the way from a key to the next one are its own rule's target;
    /// what comes then is the name of the next directive.
    pub(super) fn seal(&mut self) {
        let here = self.offsets.iter().filter(|&&offset| offset != ELSEWHERE);
        if let (Some(&first), Some(&last)) = (here.clone().min(), here.clone().max()) {
            self.rest = ((last - first) as usize * 2 / 3 / here.count()).min(LINE_BYTES);
        }
    }

    /// Touches the text of a rule.
    #[inline]
    pub(super) fn fetch(&self, pool: &Pool, rule: u32) {
        if let Some(&offset) = self.offsets.get(rule as usize)
            && let Some(file) = self.file
        {
            let text = pool.tree(file).buffer();
            let at = offset as usize;
            black_box((text.get(at).copied(), text.get(at + self.rest).copied()));
        }
    }
}
