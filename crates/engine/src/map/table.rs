//! A hash table of keys and values, made for one look into memory that no cache holds after another.
//!
//! A slot is 32 bits of a key's hash and where the pair stands; key and value stand side by side. So a lookup
//! among a million keys waits for memory twice, for the slot and for the pair, and a pair costs its bytes and
//! some thirty more.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;

/// Longest file of a map, and longest text of a table: positions in it are 32 bits.
pub(crate) const TEXT_BYTES_MAX: usize = milepost_syntax::SOURCE_BYTES_MAX;

/// Keys and values of a map. Of equal keys the first counts.
///
/// The hash is seeded anew in each table: what is looked up comes from the network.
#[derive(Debug, Default)]
pub(crate) struct Table {
    hasher: RandomState,
    /// A power of two, at most three quarters of them in use, or none.
    slots: Vec<Slot>,
    used: usize,
    /// Each pair: the length of its key and that of its value, 32 bits each, then both.
    pairs: Vec<u8>,
    is_full: bool,
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    hash: u32,
    /// Where the pair stands, or [`UNUSED`].
    at: u32,
}

const UNUSED: u32 = u32::MAX;

impl Table {
    /// Makes a table with room for so many pairs.
    pub(super) fn with_room_for(pairs: usize) -> Table {
        let mut table = Table::default();
        table.grow((pairs * 4).div_ceil(3));
        table
    }

    /// Adds a pair unless the key is there. A value ends at a zero byte, as strings of C do.
    pub(super) fn add(&mut self, key: &[u8], value: &[u8]) {
        if self.used * 4 >= self.slots.len() * 3 {
            self.grow(self.slots.len() * 2);
        }
        let hash = self.hash(key);
        let (at, found) = self.find(hash, key);
        if found.is_some() {
            return;
        }
        let value = &value[..memchr::memchr(0, value).unwrap_or(value.len())];
        let start = self.pairs.len();
        if start + 2 * size_of::<u32>() + key.len() + value.len() > TEXT_BYTES_MAX {
            self.is_full = true;
            return;
        }
        for text in [key, value] {
            self.pairs.extend_from_slice(&(text.len() as u32).to_le_bytes());
        }
        self.pairs.extend_from_slice(key);
        self.pairs.extend_from_slice(value);
        self.slots[at] = Slot { hash, at: start as u32 };
        self.used += 1;
    }

    /// Whether all that was added fits into it.
    pub(super) fn is_whole(&self) -> bool {
        !self.is_full
    }

    /// Returns the value of `key`. Does not allocate.
    #[inline]
    pub(crate) fn get(&self, key: &[u8]) -> Option<&[u8]> {
        if self.slots.is_empty() { None } else { self.find(self.hash(key), key).1 }
    }

    /// Number of pairs.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.used
    }

    /// The slot of a key, or the one where it belongs, and its value. There is always a slot that is not used.
    #[inline]
    fn find(&self, hash: u32, key: &[u8]) -> (usize, Option<&[u8]>) {
        let mask = self.slots.len() - 1;
        let mut number = hash as usize & mask;
        loop {
            let slot = self.slots[number];
            if slot.at == UNUSED {
                return (number, None);
            }
            if slot.hash == hash
                && let Some(value) = self.value(slot.at as usize, key)
            {
                return (number, Some(value));
            }
            number = (number + 1) & mask;
        }
    }

    /// The value of the pair that stands at `at`, if it has this key.
    #[inline]
    fn value(&self, at: usize, key: &[u8]) -> Option<&[u8]> {
        let (key_len, rest) = self.pairs[at..].split_first_chunk()?;
        let (value_len, rest) = rest.split_first_chunk()?;
        let rest = rest.strip_prefix(key)?;
        let is_same = u32::from_le_bytes(*key_len) as usize == key.len();
        rest.get(..u32::from_le_bytes(*value_len) as usize).filter(|_| is_same)
    }

    /// Makes so many slots, or some more.
    fn grow(&mut self, slots: usize) {
        let unused = Slot { hash: 0, at: UNUSED };
        let slots = vec![unused; slots.max(4).next_power_of_two()];
        let old = std::mem::replace(&mut self.slots, slots);
        let mask = self.slots.len() - 1;
        for slot in old.into_iter().filter(|slot| slot.at != UNUSED) {
            let mut number = slot.hash as usize & mask;
            while self.slots[number].at != UNUSED {
                number = (number + 1) & mask;
            }
            self.slots[number] = slot;
        }
    }

    #[inline]
    fn hash(&self, key: &[u8]) -> u32 {
        self.hasher.hash_one(key) as u32
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_first_of_equal_keys_counts() {
        let mut table = Table::default();
        assert_eq!(table.get(b"k"), None);
        table.add(b"k", b"1");
        table.add(b"k", b"2");
        assert_eq!((table.get(b"k"), table.get(b"1"), table.len()), (Some(&b"1"[..]), None, 1));
    }

    #[test]
    fn values_end_at_a_zero_byte() {
        let mut table = Table::default();
        table.add(b"k", b"v\0w");
        table.add(b"", b"");
        assert_eq!((table.get(b"k"), table.get(b"")), (Some(&b"v"[..]), Some(&b""[..])));
    }

    proptest! {
        /// Whatever room it began with, it has what a map of the library has.
        #[test]
        fn equals_a_hash_map(
            pairs in prop::collection::vec(("[ab]{0,6}", "[ab]{0,3}"), 0..200),
            room in 0_usize..300,
        ) {
            let mut table = Table::with_room_for(room);
            let mut map = std::collections::HashMap::new();
            for (key, value) in &pairs {
                table.add(key.as_bytes(), value.as_bytes());
                map.entry(key).or_insert(value);
            }
            prop_assert_eq!(table.len(), map.len());
            for (key, _) in &pairs {
                prop_assert_eq!(table.get(key.as_bytes()), map.get(key).map(|value| value.as_bytes()));
                let longer = format!("{key}c");
                prop_assert_eq!(table.get(longer.as_bytes()), None);
            }
        }
    }
}
