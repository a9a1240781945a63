//! Answers one question about an ordered list of rules: which is the next one that could match?
//!
//! A rule is filed once, at load, under what a matching string must have: a whole path cut at a segment
//! (`Redirect`), a literal that it equals, begins with or contains, or, if its pattern says nothing, the
//! same for the variable of one of its conditions. What has nothing to hold on to is always a candidate.
//! A lookup is a few hash probes and one walk down a trie, however many rules there are. The index may
//! name a rule that does not match; it never leaves out one that does.

mod contained;
mod exact;
mod postings;
mod strings;
mod texts;
mod trie;

use crate::pattern::Reach;
use crate::pool::{Pool, Str};
use crate::words::{MASKED_BYTES_MAX, slashes};

use exact::Exact;
use postings::{Cursor, List, Postings};
use strings::Strings;
use texts::Texts;

/// How the next rule is found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lookup {
    /// By the index.
    #[default]
    Index,
    /// Each rule after the other, as Apache does: the ablation.
    Scan,
}

/// A variable that conditions often pin down, so that rules are filed under it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    /// The string that the rule's pattern is matched against.
    Input,
    /// `%{HTTP_HOST}`
    Host,
    /// `%{REQUEST_URI}`
    Uri,
    /// `%{QUERY_STRING}`
    Query,
}

/// What one string must have for a rule to match: at least one of `keys`.
#[derive(Debug, Clone)]
pub(crate) struct Handle {
    pub(crate) subject: Subject,
    pub(crate) keys: Keys,
    /// Letters match in both cases; the keys are in lower case.
    pub(crate) folded: bool,
}

/// Literals of a pattern. Nearly all have one, which is kept without an allocation.
#[derive(Debug, Clone)]
pub(crate) enum Keys {
    One((Str, Reach)),
    Many(Vec<(Str, Reach)>),
}

impl Keys {
    pub(crate) fn as_slice(&self) -> &[(Str, Reach)] {
        match self {
            Keys::One(key) => std::slice::from_ref(key),
            Keys::Many(keys) => keys,
        }
    }

    /// Adds the keys of another pattern, either of which is enough.
    pub(crate) fn extend(&mut self, more: &Keys) {
        *self = Keys::Many([self.as_slice(), more.as_slice()].concat());
    }
}

/// How a rule is filed.
#[derive(Debug, Clone)]
pub(crate) enum Filing {
    /// A `Redirect` or `Alias` with this URL-path, its runs of slashes merged.
    Path(Str),
    /// Under this.
    Handle(Handle),
    /// Any one of these is enough; the rarest is used. None at all: the rule is always a candidate.
    Handles(Vec<Handle>),
    /// Never on its own: it follows a chained rule.
    Follower,
}

/// An index over the rules 0, 1, 2, … of one list.
#[derive(Debug, Default)]
pub(crate) struct Index {
    lookup: Lookup,
    len: u32,
    postings: Postings,
    paths: Exact,
    /// For each [`Subject`], case-sensitive and folded.
    subjects: [[Strings; 2]; 4],
    /// Whether there is any rule for each.
    is_used: [[bool; 2]; 4],
    always: List,
    texts: Texts,
}

/// The state of one walk through an [`Index`]. Reused, so that a lookup does not allocate.
#[derive(Debug, Default)]
pub(crate) struct Candidates {
    cursor: Cursor,
    folded: Vec<u8>,
    merged: Vec<u8>,
}

/// The values of the subjects other than the input.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Values<'v> {
    pub(crate) host: &'v [u8],
    pub(crate) uri: &'v [u8],
    pub(crate) query: &'v [u8],
}

impl Filing {
    /// Under whichever handle is there.
    pub(crate) fn of(handle: Option<Handle>) -> Filing {
        handle.map_or_else(|| Filing::Handles(Vec::new()), Filing::Handle)
    }

    fn handles(&self) -> &[Handle] {
        match self {
            Filing::Handle(handle) => std::slice::from_ref(handle),
            Filing::Handles(handles) => handles,
            Filing::Path(_) | Filing::Follower => &[],
        }
    }
}

impl Index {
    /// Files the rules, in order.
    pub(crate) fn build(pool: &Pool, filings: &[Filing], lookup: Lookup) -> Index {
        let mut index = Index { lookup, len: filings.len() as u32, ..Index::default() };
        if lookup == Lookup::Scan {
            return index;
        }
        index.reserve(pool, filings);
        let frequencies = Frequencies::count(pool, filings);
        index.texts.reserve(filings.len());
        // Lists are made from their ends.
        for (filing, rule) in filings.iter().zip(0..filings.len() as u32).rev() {
            match filing {
                Filing::Follower => {}
                Filing::Path(path) => {
                    index.paths.add(pool.get(*path), rule, &mut index.postings);
                    index.texts.note(rule, *path);
                }
                Filing::Handle(_) | Filing::Handles(_) => {
                    match frequencies.rarest(pool, filing.handles()) {
                        None => index.postings.push_front(&mut index.always, rule),
                        Some(handle) => {
                            let folded = usize::from(handle.folded);
                            let strings = &mut index.subjects[handle.subject as usize][folded];
                            for &(key, reach) in handle.keys.as_slice() {
                                strings.add(pool, key, reach, rule, &mut index.postings);
                                index.texts.note(rule, key);
                            }
                        }
                    }
                }
            }
        }
        index.paths.settle(&mut index.postings);
        index.texts.seal();
        for (strings, is_used) in
            index.subjects.iter_mut().flatten().zip(index.is_used.iter_mut().flatten())
        {
            strings.seal(&mut index.postings);
            *is_used = !strings.is_empty();
        }
        index
    }

    /// Makes room for the keys that come, so that the tables need not grow step by step.
    fn reserve(&mut self, pool: &Pool, filings: &[Filing]) {
        let mut paths = 0;
        let mut counts = [[(0, 0); 2]; 4];
        for filing in filings {
            match filing {
                Filing::Path(_) => paths += 1,
                Filing::Handle(Handle { subject, keys, folded }) => {
                    let (exact, cuts) = &mut counts[*subject as usize][usize::from(*folded)];
                    for &(text, reach) in keys.as_slice() {
                        *exact += usize::from(reach == Reach::Exact);
                        *cuts += usize::from(Strings::is_cut(pool, text, reach));
                    }
                }
                _ => {}
            }
        }
        self.paths.reserve(paths);
        for (strings, (exact, cuts)) in
            self.subjects.iter_mut().flatten().zip(counts.into_iter().flatten())
        {
            strings.reserve(exact, cuts);
        }
    }

    /// Starts a walk for the string `input`.
    pub(crate) fn start(
        &self,
        pool: &Pool,
        input: &[u8],
        values: Values<'_>,
        candidates: &mut Candidates,
    ) {
        let Candidates { cursor, folded, merged } = candidates;
        cursor.clear();
        if self.lookup == Lookup::Scan {
            return;
        }
        cursor.add(self.always);
        if !self.paths.is_empty() {
            self.find_paths(input, merged, cursor);
        }
        for (number, is_used) in self.is_used.iter().enumerate() {
            if *is_used == [false, false] {
                continue;
            }
            let [plain, caseless] = &self.subjects[number];
            let value = match SUBJECTS[number] {
                Subject::Input => input,
                Subject::Host => values.host,
                Subject::Uri => values.uri,
                Subject::Query => values.query,
            };
            if is_used[0] {
                plain.find(pool, value, cursor);
            }
            if is_used[1] {
                folded.clear();
                folded.extend(value.iter().map(u8::to_ascii_lowercase));
                caseless.find(pool, folded, cursor);
            }
        }
    }

    /// Returns the first rule from `from` on that could match.
    pub(crate) fn next(&self, pool: &Pool, from: u32, candidates: &mut Candidates) -> Option<u32> {
        if self.lookup == Lookup::Scan {
            return (from < self.len).then_some(from);
        }
        let rule = candidates.cursor.next(from, &self.postings)?;
        self.texts.fetch(pool, rule);
        Some(rule)
    }

    /// How many rules are candidates for every string.
    pub(crate) fn always_count(&self) -> usize {
        self.postings.iter(self.always).count()
    }

    /// Looks up every place where the path can be cut: `/docs` ends before a slash, `/docs/` after it.
    fn find_paths(&self, input: &[u8], merged: &mut Vec<u8>, cursor: &mut Cursor) {
        if input.len() <= MASKED_BYTES_MAX {
            let before = slashes(input);
            let after = before << 1;
            if before & after == 0 {
                let lengths = (before | after | 1 << input.len()) & !1;
                return self.paths.find_starts(input, lengths, cursor);
            }
        }
        let mut previous = 0;
        for (at, &byte) in input.iter().enumerate() {
            if byte == b'/' {
                if previous == b'/' {
                    merge_slashes(input, merged);
                    // What the cuts up to here have is called up again, which does not matter.
                    return self.find_paths(merged, &mut Vec::new(), cursor);
                }
                if at > 0 {
                    cursor.add(self.paths.get(&input[..at]));
                }
                cursor.add(self.paths.get(&input[..=at]));
            }
            previous = byte;
        }
        if !input.is_empty() && previous != b'/' {
            cursor.add(self.paths.get(input));
        }
    }
}

const SUBJECTS: [Subject; 4] = [Subject::Input, Subject::Host, Subject::Uri, Subject::Query];

/// Writes `path` to `out` with one slash for each run of them.
pub(crate) fn merge_slashes(path: &[u8], out: &mut Vec<u8>) {
    out.clear();
    for &byte in path {
        if byte != b'/' || out.last() != Some(&b'/') {
            out.push(byte);
        }
    }
}

/// How many rules have each key, for those lists where a rule can be filed in more than one way.
struct Frequencies<'p> {
    count: std::collections::HashMap<(u8, bool, &'p [u8]), u32, foldhash::fast::RandomState>,
}

impl<'p> Frequencies<'p> {
    fn count(pool: &'p Pool, filings: &[Filing]) -> Frequencies<'p> {
        let mut count = std::collections::HashMap::default();
        let choice =
            |filing: &Filing| matches!(filing, Filing::Handles(handles) if handles.len() > 1);
        if filings.iter().any(choice) {
            for filing in filings {
                for handle in filing.handles() {
                    for &(key, _) in handle.keys.as_slice() {
                        let key = (handle.subject as u8, handle.folded, pool.get(key));
                        *count.entry(key).or_default() += 1;
                    }
                }
            }
        }
        Frequencies { count }
    }

    /// The handle whose most frequent key is the rarest; a key of one byte says nothing.
    fn rarest<'h>(&self, pool: &Pool, handles: &'h [Handle]) -> Option<&'h Handle> {
        let weight = |handle: &&Handle| -> u32 {
            let weigh = |&(key, reach): &(Str, Reach)| {
                if key.len() <= 1 && reach != Reach::Exact {
                    return u32::MAX;
                }
                let key = (handle.subject as u8, handle.folded, pool.get(key));
                self.count.get(&key).copied().unwrap_or(1)
            };
            handle.keys.as_slice().iter().map(weigh).max().unwrap_or(0)
        };
        match handles {
            [only] => Some(only),
            handles => handles.iter().min_by_key(weight),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        /// The index names exactly the rules whose key the string has, in order, from any start.
        #[test]
        fn finds_all_in_order(
            rules in prop::collection::vec(("[ab/]{0,4}", 0..5_usize, any::<bool>()), 0..24),
            subject in "[abAB/]{0,6}",
            from in 0..6_u32,
        ) {
            let mut pool = Pool::default();
            let reaches = [Reach::Exact, Reach::Prefix, Reach::Contains];
            let mut filings = Vec::new();
            for (key, kind, folded) in &rules {
                let mut merged = Vec::new();
                merge_slashes(key.as_bytes(), &mut merged);
                filings.push(match kind {
                    3 => Filing::Path(pool.add(&merged)),
                    4 => Filing::Handles(Vec::new()),
                    &kind => {
                        let keys = Keys::One((pool.add(key.as_bytes()), reaches[kind]));
                        Filing::Handles(vec![Handle { subject: Subject::Input, keys, folded: *folded }])
                    }
                });
            }
            let covers = |(key, kind, folded): &(String, usize, bool)| {
                let subject = if *folded && *kind < 3 { subject.to_lowercase() } else { subject.clone() };
                match kind {
                    0 => subject == *key,
                    1 => subject.starts_with(key),
                    2 => subject.contains(key),
                    3 => {
                        let mut path = Vec::new();
                        merge_slashes(subject.as_bytes(), &mut path);
                        let mut fake = Vec::new();
                        merge_slashes(key.as_bytes(), &mut fake);
                        path.starts_with(&fake) && !fake.is_empty() && (
                            fake.ends_with(b"/") || path.len() == fake.len() || path[fake.len()] == b'/')
                    }
                    _ => true,
                }
            };
            let expected: Vec<u32> = (0..).zip(&rules)
                .filter(|(rule, _)| *rule >= from)
                .filter(|(_, rule)| covers(rule)).map(|(rule, _)| rule).collect();
            let index = Index::build(&pool, &filings, Lookup::Index);
            let mut candidates = Candidates::default();
            index.start(&pool, subject.as_bytes(), Values::default(), &mut candidates);
            let mut found = Vec::new();
            let mut at = from;
            while let Some(rule) = index.next(&pool, at, &mut candidates) {
                found.push(rule);
                at = rule + 1;
            }
            prop_assert_eq!(found, expected);
        }
    }
}
