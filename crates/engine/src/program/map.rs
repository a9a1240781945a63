//! `RewriteMap`: tables and functions that a substitution can look up.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use milepost_syntax::Tree;

use crate::pool::{Pool, Str};

/// One map.
#[derive(Debug)]
pub(crate) enum Map {
    /// `txt:`
    Text(TextMap),
    /// `rnd:` as `txt:`, with alternatives separated by `|`.
    Random(TextMap),
    /// `int:`
    Internal(InternalMap),
}

/// The functions of `int:`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InternalMap {
    ToUpper,
    ToLower,
    Escape,
    Unescape,
}

/// A file of keys and values, read at load; the first line with a key wins.
#[derive(Debug, Default)]
pub(crate) struct TextMap {
    hasher: RandomState,
    entries: HashTable<(Str, Str)>,
}

/// Longest line of a map; the rest of a longer one is read as another line.
///
/// Source: httpd 2.4.71 `mod_rewrite.c`, `lookup_map_txtfile`, `REWRITE_MAX_TXT_MAP_LINE`.
const LINE_BYTES_MAX: usize = 1023;

impl TextMap {
    /// Reads the map in file `file` of the pool: a key up to a blank, then a value up to a blank.
    pub(crate) fn new(pool: &Pool, file: u32) -> TextMap {
        let mut map = TextMap::default();
        let tree: &Tree = pool.tree(file);
        let text = tree.buffer();
        let whole = pool.whole_file(file);
        let mut at = 0;
        while at < text.len() {
            let rest = &text[at..];
            let newline = memchr::memchr(b'\n', rest);
            let end = newline.unwrap_or(rest.len()).min(LINE_BYTES_MAX);
            let line = &rest[..end];
            if let Some((key, value)) = split(line) {
                let key = whole.slice(at + key.start, key.len());
                let value = whole.slice(at + value.start, value.len());
                map.add(pool, key, value);
            }
            at += if newline == Some(end) { end + 1 } else { end };
        }
        map
    }

    fn add(&mut self, pool: &Pool, key: Str, value: Str) {
        let hash = self.hasher.hash_one(pool.get(key));
        let rehash = |(key, _): &(Str, Str)| self.hasher.hash_one(pool.get(*key));
        let same = |(old, _): &(Str, Str)| pool.get(*old) == pool.get(key);
        self.entries.entry(hash, same, rehash).or_insert((key, value));
    }

    /// Returns the value of `key`.
    pub(crate) fn get<'p>(&self, pool: &'p Pool, key: &[u8]) -> Option<&'p [u8]> {
        let hash = self.hasher.hash_one(key);
        let (_, value) = self.entries.find(hash, |(old, _)| pool.get(*old) == key)?;
        Some(pool.get(*value))
    }
}

/// Key and value of a line, as ranges of it.
fn split(line: &[u8]) -> Option<(std::ops::Range<usize>, std::ops::Range<usize>)> {
    let blank = |byte: &u8| byte.is_ascii_whitespace() || *byte == 0x0b;
    let first = line.first()?;
    if *first == b'#' || blank(first) {
        return None;
    }
    let key_end = line.iter().position(blank)?;
    let value = key_end + line[key_end..].iter().position(|byte| !blank(byte))?;
    let value_end = line[value..].iter().position(blank).map_or(line.len(), |end| value + end);
    Some((0..key_end, value..value_end))
}
