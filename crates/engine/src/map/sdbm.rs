//! Reads SDBM files, as APR writes them: pages of pairs in `NAME.pag`, the tree of splits in `NAME.dir`.
//!
//! A page of 1024 bytes starts with the number of 16-bit offsets, then the offsets: key, value, key,
//! value, … Texts fill the page from its end, so each one ends where the one before it starts. The
//! `.dir` file is a bitmap of the binary tree by which pages were split: the bits of a key's hash lead
//! to a leaf, and so many low bits of the hash as its depth are the number of the page.
//!
//! A pair on a page that its hash does not lead to is out of reach for APR, and so it is here. Numbers
//! are in the byte order of the machine that wrote them; little-endian is read.
//!
//! Source: APR `dbm/sdbm/sdbm.c` (`getpage`, `getdbit`), `sdbm_pair.c` (page format, `chkpage`,
//! `seepair`), `sdbm_hash.c`.

use super::table::Table;

const PAGE_BYTES: usize = 1024;
/// Blocks in which the `.dir` file is read; one that is cut short counts as zeros.
const DIRECTORY_BLOCK_BYTES: usize = 4096;
/// A hash has no more bits that could tell pages apart.
const DEPTH_MAX: u32 = 31;

/// Reads all pairs. Pages that are damaged are left out, as in APR.
pub(super) fn read(pages: &[u8], directory: &[u8]) -> Table {
    let mut table = Table::default();
    for (page, number) in pages.chunks_exact(PAGE_BYTES).zip(0..) {
        let mut end = PAGE_BYTES;
        for (key_at, value_at) in pairs(page).unwrap_or_default() {
            let (key, value) = (&page[key_at..end], &page[value_at..key_at]);
            end = value_at;
            // APR refuses to look for an empty key.
            if !key.is_empty() && page_of(hash(key), directory) == number {
                table.add(key, value);
            }
        }
    }
    table
}

/// Where the keys and values of a page start; `None` if they cannot be so.
fn pairs(page: &[u8]) -> Option<Vec<(usize, usize)>> {
    let offset = |at: usize| {
        let bytes = page.get(2 * at..2 * at + 2)?;
        usize::try_from(i16::from_le_bytes([bytes[0], bytes[1]])).ok()
    };
    let count = offset(0).filter(|&count| count <= PAGE_BYTES / 2)?;
    let mut end = PAGE_BYTES;
    let mut pairs = Vec::with_capacity(count / 2);
    for at in (1..=count).step_by(2) {
        let (key, value) = (offset(at)?, offset(at + 1)?);
        if key > end || value > key {
            return None;
        }
        // The last of an odd number is checked and never found.
        if at < count {
            pairs.push((key, value));
        }
        end = value;
    }
    Some(pairs)
}

/// The page that a hash leads to.
fn page_of(hash: u64, directory: &[u8]) -> u64 {
    let bits = directory.len() as u64 * 8;
    let mut bit = 0_u64;
    let mut depth = 0;
    while depth < DEPTH_MAX && bit < bits && is_split(bit, directory) {
        bit = 2 * bit + 1 + (hash >> depth & 1);
        depth += 1;
    }
    hash & ((1 << depth) - 1)
}

fn is_split(bit: u64, directory: &[u8]) -> bool {
    let at = (bit / 8) as usize;
    let block_end = (at / DIRECTORY_BLOCK_BYTES + 1) * DIRECTORY_BLOCK_BYTES;
    block_end <= directory.len() && directory[at] >> (bit % 8) & 1 == 1
}

/// The hash of a key. Bytes are signed in it.
fn hash(key: &[u8]) -> u64 {
    key.iter().fold(0_u64, |hash, &byte| {
        let signed = i64::from(byte.cast_signed()).cast_unsigned();
        signed.wrapping_add(hash.wrapping_mul(65_599))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_page_is_read_from_its_end() {
        let table = read(&page(&[(b"one", b"1"), (b"two", b"second")]), &[]);
        assert_eq!(table.get(b"one"), Some(&b"1"[..]));
        assert_eq!(table.get(b"two"), Some(&b"second"[..]));
        assert_eq!(table.len(), 2);
    }

    #[test]
    fn a_split_puts_pairs_on_the_page_of_their_hash() {
        let key = |odd: u64| {
            let mut names = ["a", "b", "c", "d"].into_iter();
            names.find(|name| hash(name.as_bytes()) & 1 == odd).unwrap().as_bytes()
        };
        let mut directory = vec![0; DIRECTORY_BLOCK_BYTES];
        directory[0] = 1;
        let right = [page(&[(key(0), b"0")]), page(&[(key(1), b"1")])].concat();
        let table = read(&right, &directory);
        assert_eq!((table.get(key(0)), table.get(key(1))), (Some(&b"0"[..]), Some(&b"1"[..])));
        let wrong = [&right[PAGE_BYTES..], &right[..PAGE_BYTES]].concat();
        assert_eq!(read(&wrong, &directory).len(), 0);
        // Without the directory all keys are looked for on the first page.
        assert_eq!(read(&right, &directory[..100]).get(key(1)), None);
    }

    #[test]
    fn a_damaged_page_is_left_out() {
        let good = page(&[(b"k", b"v")]);
        for (at, byte) in [(1, 3), (1, 128), (3, 5), (5, 4), (5, 128)] {
            let mut bad = good.clone();
            bad[at] = byte;
            assert_eq!(read(&bad, &[]).len(), 0, "byte {at}");
        }
        assert_eq!(read(&good[..1000], &[]).len(), 0);
    }

    fn page(entries: &[(&[u8], &[u8])]) -> Vec<u8> {
        let mut page = vec![0; PAGE_BYTES];
        page[..2].copy_from_slice(&(entries.len() as u16 * 2).to_le_bytes());
        let mut end = PAGE_BYTES;
        let texts = entries.iter().flat_map(|(key, value)| [key, value]);
        for (text, at) in texts.zip(1..) {
            end -= text.len();
            page[end..end + text.len()].copy_from_slice(text);
            page[2 * at..2 * at + 2].copy_from_slice(&(end as u16).to_le_bytes());
        }
        page
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(mut pages: Vec<u8>, directory: Vec<u8>, count in 0_u8..8) {
            pages.resize(2 * PAGE_BYTES, 3);
            pages[..2].copy_from_slice(&[count, 0]);
            read(&pages, &directory);
        }
    }
}
