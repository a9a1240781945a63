//! Reads Berkeley DB files of type hash, which is what APR makes of `DB`.
//!
//! Every page starts with 26 bytes: its number, its neighbours, how many items it has, its type. A hash
//! page has 16-bit offsets after them, of a key, its value, the next key, …; items fill the page from
//! its end, so each ends where the one before it starts. The first byte of an item tells whether it is
//! the text itself, or where a chain of overflow pages starts that has it. All hash pages of the file
//! are read in turn: free pages have another type, so the buckets need not be followed.
//!
//! Source: Berkeley DB 5.3 `src/dbinc/db_page.h` (`DBMETA`, `HMETA33`, `PAGE`, `HKEYDATA`, `HOFFPAGE`).

use std::borrow::Cow;

use super::dbm::{DbmError, u16_at, u32_at};
use super::table::Table;

const HASH_MAGIC: u32 = 0x0006_1561;
/// Other kinds of file, by the same number at the same place: B-tree, queue.
const OTHER_MAGICS: [u32; 2] = [0x0005_3162, 0x0004_2253];
/// Versions of the format that differ only in the order of items on a page.
const VERSIONS: std::ops::RangeInclusive<u32> = 7..=9;
/// Page lengths that Berkeley DB allows.
const PAGE_BYTES: std::ops::RangeInclusive<usize> = 512..=65_536;

const PAGE_HEAD_BYTES: usize = 26;
/// Page type: hash, as written before 4.6.
const HASH_UNSORTED: u8 = 2;
/// Page type: hash.
const HASH: u8 = 13;
/// Page type: a part of a text that is too long for a hash page.
const OVERFLOW: u8 = 7;
/// Kind of item: the text itself.
const TEXT: u8 = 1;
/// Kind of item: the start of a chain of overflow pages.
const CHAIN: u8 = 3;

/// Whether the file starts as one of Berkeley DB's.
pub(super) fn is_one(file: &[u8]) -> bool {
    let known = |magic| magic == HASH_MAGIC || OTHER_MAGICS.contains(&magic);
    u32_at(file, 12).is_some_and(|magic| known(magic) || known(magic.swap_bytes()))
}

/// Reads all pairs.
pub(super) fn read(file: &[u8]) -> Result<Table, DbmError> {
    let magic = u32_at(file, 12).ok_or(DbmError::Short)?;
    if OTHER_MAGICS.contains(&magic) {
        return Err(DbmError::NotHash);
    }
    if magic != HASH_MAGIC {
        return Err(if is_one(file) {
            DbmError::OtherMachine
        } else {
            DbmError::NotOne { kind: "Berkeley DB" }
        });
    }
    let version = u32_at(file, 16).ok_or(DbmError::Short)?;
    if !VERSIONS.contains(&version) {
        return Err(DbmError::Version { version });
    }
    let page_bytes = u32_at(file, 20).ok_or(DbmError::Short)? as usize;
    let (Some(&encryption), Some(&checksum)) = (file.get(24), file.get(26)) else {
        return Err(DbmError::Short);
    };
    if encryption != 0 || checksum & 1 != 0 {
        return Err(DbmError::Sealed);
    }
    if !PAGE_BYTES.contains(&page_bytes) || !page_bytes.is_power_of_two() {
        return Err(DbmError::Short);
    }
    let mut reader = Reader { file, page_bytes, copied: 0, table: Table::default() };
    for page in file.chunks_exact(page_bytes).skip(1) {
        reader.read_page(page)?;
    }
    Ok(reader.table)
}

struct Reader<'f> {
    file: &'f [u8],
    page_bytes: usize,
    /// Bytes put together of overflow pages so far.
    copied: usize,
    table: Table,
}

impl<'f> Reader<'f> {
    fn read_page(&mut self, page: &'f [u8]) -> Result<(), DbmError> {
        if ![HASH_UNSORTED, HASH].contains(&page[25]) {
            return Ok(());
        }
        let count = usize::from(u16_at(page, 20).unwrap_or(0));
        let mut end = self.page_bytes;
        let mut key = None;
        for number in 0..count {
            let Some(at) = u16_at(page, PAGE_HEAD_BYTES + 2 * number).map(usize::from) else {
                break;
            };
            // A page of 64 KiB would have an offset of 0 for its end.
            if at >= end || at < PAGE_HEAD_BYTES {
                break;
            }
            let item = &page[at..end];
            end = at;
            if number % 2 == 0 {
                key = self.text_of(item)?;
            } else if let (Some(key), Some(value)) = (key.take(), self.text_of(item)?) {
                self.table.add(&key, &value);
            }
        }
        Ok(())
    }

    /// The text of an item; `None` for one that is neither text nor chain.
    fn text_of(&mut self, item: &'f [u8]) -> Result<Option<Cow<'f, [u8]>>, DbmError> {
        match item {
            [TEXT, text @ ..] => Ok(Some(Cow::Borrowed(text))),
            [CHAIN, ..] => match (u32_at(item, 4), u32_at(item, 8)) {
                (Some(page), Some(len)) => {
                    Ok(self.chain(page as usize, len as usize)?.map(Cow::Owned))
                }
                _ => Ok(None),
            },
            _ => Ok(None),
        }
    }

    /// Collects `len` bytes from the overflow pages that start with page `number`.
    fn chain(&mut self, mut number: usize, len: usize) -> Result<Option<Vec<u8>>, DbmError> {
        let whole = self.file.len();
        // Texts do not share pages, so all of them together are no longer than the file. What claims
        // to be longer goes in circles.
        if self.copied.saturating_add(len) > whole {
            return Err(DbmError::Circle);
        }
        let mut text = Vec::with_capacity(len);
        for _ in 0..whole / self.page_bytes {
            let Some(start) = number.checked_mul(self.page_bytes) else { return Ok(None) };
            if number == 0 || start.saturating_add(self.page_bytes) > whole {
                break;
            }
            let page = &self.file[start..start + self.page_bytes];
            let here = usize::from(u16_at(page, 22).unwrap_or(0));
            let part = page.get(PAGE_HEAD_BYTES..PAGE_HEAD_BYTES + here);
            let (OVERFLOW, Some(part)) = (page[25], part) else { return Ok(None) };
            text.extend_from_slice(&part[..part.len().min(len - text.len())]);
            if text.len() == len {
                self.copied += len;
                return Ok(Some(text));
            }
            number = u32_at(page, 16).unwrap_or(0) as usize;
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PAGE: usize = 512;

    #[test]
    fn texts_stand_on_the_page_or_on_a_chain_of_others() {
        let table = read(&file()).unwrap();
        assert_eq!(table.get(b"key"), Some(&b"value"[..]));
        assert_eq!(table.get(b"long"), Some(&[b'x'; 600][..]));
        assert_eq!(table.len(), 2);
    }

    #[test]
    fn what_cannot_be_read_is_told() {
        let check = |at: usize, byte: u8, message: &str| {
            let mut file = file();
            file[at] = byte;
            assert_eq!(read(&file).unwrap_err().to_string(), message);
        };
        check(12, 0, "not a Berkeley DB file");
        check(16, 6, "format version 6 of Berkeley DB is not read");
        check(24, 1, "encrypted or with checksums");
        check(26, 1, "encrypted or with checksums");
        check(21, 0, "cut short or damaged");
        let mut tree = file();
        tree[12..16].copy_from_slice(&OTHER_MAGICS[0].to_le_bytes());
        assert_eq!(read(&tree).unwrap_err().to_string(), DbmError::NotHash.to_string());
        let mut other = file();
        other[12..16].reverse();
        assert_eq!(read(&other).unwrap_err().to_string(), DbmError::OtherMachine.to_string());
    }

    #[test]
    fn a_chain_in_a_circle_ends() {
        let mut file = file();
        // The second overflow page is followed by the first, and has no bytes of its own.
        file[3 * PAGE + 16] = 2;
        file[3 * PAGE + 22] = 0;
        let table = read(&file).unwrap();
        assert_eq!(table.get(b"key"), Some(&b"value"[..]));
    }

    /// Pages: meta, hash, overflow, overflow.
    fn file() -> Vec<u8> {
        let mut file = vec![0; 4 * PAGE];
        file[12..16].copy_from_slice(&HASH_MAGIC.to_le_bytes());
        file[16] = 9;
        file[20..22].copy_from_slice(&(PAGE as u16).to_le_bytes());
        let hash = &mut file[PAGE..2 * PAGE];
        hash[25] = HASH;
        let chain = [CHAIN, 0, 0, 0, 2, 0, 0, 0, 88, 2, 0, 0];
        let items: [&[u8]; 4] = [b"\x01key", b"\x01value", b"\x01long", &chain];
        hash[20] = items.len() as u8;
        let mut end = PAGE;
        for (number, item) in items.into_iter().enumerate() {
            end -= item.len();
            hash[end..end + item.len()].copy_from_slice(item);
            let place = PAGE_HEAD_BYTES + 2 * number;
            hash[place..place + 2].copy_from_slice(&(end as u16).to_le_bytes());
        }
        for (page, len, next) in [(2, 486_u16, 3), (3, 114, 0)] {
            let page = &mut file[page * PAGE..(page + 1) * PAGE];
            page[16] = next;
            page[22..24].copy_from_slice(&len.to_le_bytes());
            page[25] = OVERFLOW;
            page[PAGE_HEAD_BYTES..PAGE_HEAD_BYTES + usize::from(len)].fill(b'x');
        }
        file
    }

    proptest! {
        #[test]
        fn a_damaged_file_is_read(at in 0_usize..4 * PAGE, bytes: [u8; 4]) {
            let mut file = file();
            for (offset, byte) in bytes.into_iter().enumerate() {
                if let Some(place) = file.get_mut(at + offset) {
                    *place = byte;
                }
            }
            let _ = read(&file);
        }

        #[test]
        fn a_file_cut_short_is_read(len in 0_usize..4 * PAGE) {
            let _ = read(&file()[..len]);
        }
    }
}
