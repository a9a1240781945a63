//! How often each rule has answered, and when last.
//!
//! A worker counts in a hash table of its own, which grows with the rules that are hit and not with those
//! that there are. It alone writes; whoever adds up reads the same memory, at the cost of numbers that are
//! some nanoseconds old. A table that has become too small is copied to one of twice the size.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use milepost_engine::{Rule, Site, SourceFile};
use rustix::time::{ClockId, clock_gettime};

use super::counters::{add, get};
use super::{Rules, lock};

/// A table begins with room for so many rules, less a quarter.
const SLOTS_MIN: usize = 256;

/// A rule, by its number within the site.
type Id = (u32, u32);

/// Stands for all rules of `.htaccess` files: those come and go, so that one by one they are nobody's.
pub(super) const HTACCESS: Id = (u32::MAX, 0);

/// How often, and when last in seconds since the epoch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Hit {
    pub(super) count: u64,
    pub(super) last: u64,
}

impl Hit {
    fn merge(&mut self, other: Hit) {
        self.count += other.count;
        self.last = self.last.max(other.last);
    }
}

/// What the rules of a site had been hit when another one was served.
pub(super) type Past = HashMap<Id, Hit>;

/// Counts the hits of one worker.
#[derive(Debug)]
pub(crate) struct Hits {
    table: Arc<Table>,
    used: usize,
    published: Arc<Mutex<Arc<Table>>>,
}

/// Slots by hash, with linear probing. Nothing is ever removed.
#[derive(Debug)]
pub(super) struct Table {
    slots: Box<[Slot]>,
}

#[derive(Debug, Default)]
struct Slot {
    /// The rule, plus one so that 0 is nobody's.
    key: AtomicU64,
    count: AtomicU64,
    last: AtomicU64,
}

impl Default for Hits {
    fn default() -> Self {
        let table = Arc::new(Table::new(SLOTS_MIN));
        Hits { published: Arc::new(Mutex::new(Arc::clone(&table))), table, used: 0 }
    }
}

impl Hits {
    /// Where the table can be found by others.
    pub(super) fn published(&self) -> Arc<Mutex<Arc<Table>>> {
        Arc::clone(&self.published)
    }

    /// Counts one, now.
    pub(crate) fn hit(&mut self, rule: &Rule<'_>) {
        let now = clock_gettime(ClockId::RealtimeCoarse).tv_sec;
        let id = if rule.is_lasting() { rule.id() } else { HTACCESS };
        self.hit_at(id, u64::try_from(now).unwrap_or(0));
    }

    fn hit_at(&mut self, id: Id, now: u64) {
        let key = key(id);
        let slot = self.table.slot(key);
        if get(&slot.key) == key {
            add(&slot.count, 1);
            slot.last.store(now, Ordering::Relaxed);
            return;
        }
        // The count is there before the key is: who reads never sees a rule without its hit.
        slot.count.store(1, Ordering::Relaxed);
        slot.last.store(now, Ordering::Relaxed);
        slot.key.store(key, Ordering::Release);
        self.used += 1;
        if self.used * 4 > self.table.slots.len() * 3 {
            self.table = Arc::new(self.table.grown());
            *lock(&self.published) = Arc::clone(&self.table);
        }
    }
}

impl Table {
    fn new(slots: usize) -> Table {
        Table { slots: (0..slots).map(|_| Slot::default()).collect() }
    }

    /// The slot of a key, or the free one where it belongs.
    fn slot(&self, key: u64) -> &Slot {
        // Fibonacci hashing: the offsets of neighbouring rules differ in their low bits.
        const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;
        let mask = self.slots.len() - 1;
        let mut at = (key.wrapping_mul(FACTOR) >> 32) as usize & mask;
        loop {
            let slot = &self.slots[at];
            let found = get(&slot.key);
            if found == key || found == 0 {
                return slot;
            }
            at = (at + 1) & mask;
        }
    }

    fn grown(&self) -> Table {
        let table = Table::new(2 * self.slots.len());
        for old in &self.slots {
            let key = get(&old.key);
            if key != 0 {
                let new = table.slot(key);
                new.key.store(key, Ordering::Relaxed);
                new.count.store(get(&old.count), Ordering::Relaxed);
                new.last.store(get(&old.last), Ordering::Relaxed);
            }
        }
        table
    }

    fn hits(&self) -> impl Iterator<Item = (Id, Hit)> {
        self.slots.iter().filter_map(|slot| {
            let key = slot.key.load(Ordering::Acquire).checked_sub(1)?;
            let hit = Hit { count: get(&slot.count), last: get(&slot.last) };
            Some((((key >> 32) as u32, key as u32), hit))
        })
    }
}

fn key((file, offset): Id) -> u64 {
    (u64::from(file) << 32 | u64::from(offset)) + 1
}

impl Rules {
    /// The hits of all workers, and those before, in the order of the rules.
    pub(super) fn sum(&self) -> Vec<(Id, Hit)> {
        let mut sum = self.past.clone();
        for table in &self.tables {
            // Only the pointer is taken under the lock.
            let table = Arc::clone(&lock(table));
            for (id, hit) in table.hits() {
                sum.entry(id).or_default().merge(hit);
            }
        }
        let mut hits: Vec<_> = sum.into_iter().collect();
        hits.sort_unstable_by_key(|&(id, _)| id);
        hits
    }

    /// The hits so far, by the rules of another site: the same line in the same file is the same rule. Of
    /// equal lines in a file that has changed, the first one takes the hits of all.
    pub(super) fn carry_over(&self, next: &Site) -> Past {
        let Some(site) = &self.site else { return Past::default() };
        let hits = self.sum();
        let same =
            |(a, b): (SourceFile<'_>, SourceFile<'_>)| a.path() == b.path() && a.text() == b.text();
        if site.files().count() == next.files().count() && site.files().zip(next.files()).all(same)
        {
            return hits.into_iter().collect();
        }
        let mut past = Past::default();
        if let Some(&(_, hit)) = hits.iter().find(|&&(id, _)| id == HTACCESS) {
            past.insert(HTACCESS, hit);
        }
        let mut by_line: HashMap<(&Path, &[u8]), Hit> = HashMap::new();
        for (place, hit) in places(site, &hits) {
            by_line.entry((place.file, place.text)).or_default().merge(hit);
        }
        for (number, file) in (0..).zip(next.files()) {
            let mut offset = 0;
            for line in file.text().split_inclusive(|&byte| byte == b'\n') {
                let blanks = line.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
                if let Some(hit) = by_line.remove(&(file.path(), line.trim_ascii())) {
                    past.insert((number, (offset + blanks) as u32), hit);
                }
                offset += line.len();
            }
        }
        past
    }
}

/// Where a rule stands.
pub(super) struct Placed<'s> {
    pub(super) file: &'s Path,
    pub(super) line: u32,
    /// Its first line, without blanks around it.
    pub(super) text: &'s [u8],
}

/// The rules of a site and where they stand, in the order of its files; with one pass over each file.
pub(super) fn places<'s>(site: &'s Site, hits: &[(Id, Hit)]) -> Vec<(Placed<'s>, Hit)> {
    let files: Vec<_> = site.files().collect();
    // Lines that were joined stand elsewhere, so the order of the rules is not that of their places.
    let mut order: Vec<(u32, usize, Hit)> = hits
        .iter()
        .filter_map(|&((number, id), hit)| {
            let file = files.get(number as usize)?;
            Some((number, file.offset(id).min(file.text().len()), hit))
        })
        .collect();
    order.sort_unstable_by_key(|&(number, offset, _)| (number, offset));
    let mut found = Vec::with_capacity(order.len());
    let (mut last, mut seen, mut line) = (u32::MAX, 0, 1);
    for (number, offset, hit) in order {
        if number != last {
            (last, seen, line) = (number, 0, 1);
        }
        let file = &files[number as usize];
        let text = file.text();
        line += memchr::memchr_iter(b'\n', &text[seen..offset]).count() as u32;
        seen = offset;
        let start = memchr::memrchr(b'\n', &text[..offset]).map_or(0, |newline| newline + 1);
        let end = memchr::memchr(b'\n', &text[offset..]).map_or(text.len(), |end| offset + end);
        let placed = Placed { file: file.path(), line, text: text[start..end].trim_ascii() };
        found.push((placed, hit));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hits_survive_the_growth_of_the_table() {
        let mut hits = Hits::default();
        let rules = 10 * SLOTS_MIN as u32;
        for round in 100..103 {
            for rule in 0..rules {
                hits.hit_at((rule % 3, rule * 40), round);
            }
        }
        let rules_of = Rules { tables: vec![hits.published()], ..Rules::default() };
        let sum = rules_of.sum();
        assert_eq!(sum.len(), rules as usize);
        assert!(sum.iter().all(|&(_, hit)| hit == Hit { count: 3, last: 102 }));
        assert!(sum.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }

    #[test]
    fn workers_are_added_up() {
        let (mut first, mut second) = (Hits::default(), Hits::default());
        first.hit_at((0, 0), 7);
        second.hit_at((0, 0), 9);
        second.hit_at((0, 5), 8);
        let tables = vec![first.published(), second.published()];
        let rules =
            Rules { tables, past: [((0, 5), Hit { count: 10, last: 1 })].into(), site: None };
        assert_eq!(
            rules.sum(),
            [((0, 0), Hit { count: 2, last: 9 }), ((0, 5), Hit { count: 11, last: 8 })]
        );
    }
}
