//! A hash table whose keys and values are ranges of one buffer.

use std::hash::BuildHasher;
use std::ops::Range;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

/// Longest text of a table: positions in it are 32 bits.
pub(crate) const TEXT_BYTES_MAX: usize = milepost_syntax::SOURCE_BYTES_MAX;

/// Keys and values of a map. Of equal keys the first counts.
#[derive(Debug, Default)]
pub(crate) struct Table {
    text: Vec<u8>,
    hasher: RandomState,
    entries: HashTable<Entry>,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    key_at: u32,
    key_len: u32,
    value_at: u32,
    value_len: u32,
}

impl Table {
    /// Makes a table without entries over `text`, which has at most [`TEXT_BYTES_MAX`] bytes.
    pub(super) fn over(text: Vec<u8>) -> Table {
        assert!(text.len() <= TEXT_BYTES_MAX, "whoever reads a map checks its length");
        Table { text, ..Table::default() }
    }

    /// The buffer.
    pub(super) fn text(&self) -> &[u8] {
        &self.text
    }

    /// Adds an entry unless the key is there. A value ends at a zero byte, as strings of C do.
    ///
    /// Returns whether both ranges are in the buffer; otherwise nothing is added.
    pub(super) fn add(&mut self, key: Range<usize>, value: Range<usize>) -> bool {
        let Table { text, hasher, entries } = self;
        let (Some(bytes), Some(value_bytes)) = (text.get(key.clone()), text.get(value.clone()))
        else {
            return false;
        };
        let value_len = memchr::memchr(0, value_bytes).unwrap_or(value.len());
        let entry = Entry {
            key_at: key.start as u32,
            key_len: key.len() as u32,
            value_at: value.start as u32,
            value_len: value_len as u32,
        };
        let same = |old: &Entry| old.key(text) == bytes;
        let rehash = |old: &Entry| hasher.hash_one(old.key(text));
        entries.entry(hasher.hash_one(bytes), same, rehash).or_insert(entry);
        true
    }

    /// Appends bytes that do not stand in the file in one piece, and says where they are now.
    pub(super) fn append(&mut self, bytes: &[u8]) -> Option<Range<usize>> {
        let start = self.text.len();
        let end = start.checked_add(bytes.len()).filter(|&end| end <= TEXT_BYTES_MAX)?;
        self.text.extend_from_slice(bytes);
        Some(start..end)
    }

    /// Returns the value of `key`. Does not allocate.
    pub(crate) fn get(&self, key: &[u8]) -> Option<&[u8]> {
        let hash = self.hasher.hash_one(key);
        let entry = self.entries.find(hash, |entry| entry.key(&self.text) == key)?;
        Some(&self.text[entry.value_at as usize..][..entry.value_len as usize])
    }

    /// Number of entries.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }
}

impl Entry {
    fn key<'t>(&self, text: &'t [u8]) -> &'t [u8] {
        &text[self.key_at as usize..][..self.key_len as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_equal_keys_counts() {
        let mut table = Table::over(b"k1k2".to_vec());
        assert!(table.add(0..1, 1..2) && table.add(2..3, 3..4));
        assert_eq!((table.get(b"k"), table.get(b"1"), table.len()), (Some(&b"1"[..]), None, 1));
    }

    #[test]
    fn values_end_at_a_zero_byte_and_ranges_in_the_buffer() {
        let mut table = Table::over(b"kv\0w".to_vec());
        assert!(table.add(0..1, 1..4));
        assert!(!table.add(0..1, 1..5) && !table.add(4..6, 1..2));
        let more = table.append(b"longer").unwrap();
        assert!(table.add(1..2, more));
        assert_eq!(table.get(b"k"), Some(&b"v"[..]));
        assert_eq!(table.get(b"v"), Some(&b"longer"[..]));
    }
}
