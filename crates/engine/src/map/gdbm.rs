//! Reads GDBM files: a directory of buckets, each a small table of hashes and places of the pairs.
//!
//! The header says where the directory is and how long a bucket is. Buckets that were not split stand
//! in the directory several times. An entry of a bucket says where its key starts in the file; the
//! value follows. Read are files with 64-bit offsets in little-endian order, as 64-bit machines write
//! them; with and without crash tolerance (`numsync`), which only adds to the header.
//!
//! Source: GDBM 1.23 `src/gdbmdefs.h` (`gdbm_file_header`, `hash_bucket`, `bucket_element`),
//! `src/gdbmconst.h` (magic numbers).

use super::dbm::{DbmError, u32_at, u64_at};
use super::table::Table;

/// Magic numbers of files with 64-bit offsets: 1.8 and later, before, with `numsync`.
const MAGICS: [u32; 3] = [0x1357_9acf, 0x1357_9ace, 0x1357_9ad1];
/// Magic numbers of files with 32-bit offsets.
const MAGICS_32: [u32; 2] = [0x1357_9acd, 0x1357_9ad0];

/// Where the entries of a bucket start: after its list of free room, its depth and its count.
const BUCKET_HEAD_BYTES: usize = 112;
/// Hash, start of the key, place, length of key and value.
const ELEMENT_BYTES: usize = 24;
/// The hash of an entry that is not used.
const UNUSED: u32 = u32::MAX;

/// Whether the file starts as one of GDBM's.
pub(super) fn is_one(file: &[u8]) -> bool {
    let known = |magic| MAGICS.contains(&magic) || MAGICS_32.contains(&magic);
    u32_at(file, 0).is_some_and(|magic| known(magic) || known(magic.swap_bytes()))
}

/// Reads all pairs.
pub(super) fn read(file: &[u8]) -> Result<Table, DbmError> {
    let magic = u32_at(file, 0).ok_or(DbmError::Short)?;
    if !MAGICS.contains(&magic) {
        return Err(if is_one(file) {
            DbmError::OtherMachine
        } else {
            DbmError::NotOne { kind: "GDBM" }
        });
    }
    let buckets = buckets(file).ok_or(DbmError::Short)?;
    let bucket_bytes = u32_at(file, 24).ok_or(DbmError::Short)? as usize;
    let mut table = Table::default();
    for bucket in buckets {
        let end = bucket.saturating_add(bucket_bytes).min(file.len());
        let mut at = bucket.saturating_add(BUCKET_HEAD_BYTES);
        while at + ELEMENT_BYTES <= end {
            if let Some((key, value)) = element(file, at) {
                table.add(key, value);
            }
            at += ELEMENT_BYTES;
        }
    }
    Ok(table)
}

/// The places of all buckets, each once.
fn buckets(file: &[u8]) -> Option<Vec<usize>> {
    let start = usize::try_from(u64_at(file, 8)?).ok()?;
    let len = u32_at(file, 16)? as usize;
    let directory = file.get(start..start.checked_add(len)?)?;
    let place = |bytes: &[u8]| u64_at(bytes, 0).and_then(|place| usize::try_from(place).ok());
    let mut buckets: Vec<_> = directory.chunks_exact(8).filter_map(place).collect();
    buckets.sort_unstable();
    buckets.dedup();
    buckets.retain(|&bucket| bucket < file.len());
    Some(buckets)
}

/// Key and value of an entry; `None` for one that is not used, and for texts outside the file, which GDBM
/// cannot read either.
fn element(file: &[u8], at: usize) -> Option<(&[u8], &[u8])> {
    if u32_at(file, at)? == UNUSED {
        return None;
    }
    let place = usize::try_from(u64_at(file, at + 8)?).ok()?;
    let (key, value) = (u32_at(file, at + 16)? as usize, u32_at(file, at + 20)? as usize);
    let (key, rest) = file.get(place..)?.split_at_checked(key)?;
    Some((key, rest.get(..value)?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_bucket_that_stands_twice_in_the_directory_is_read_once() {
        let table = read(&file()).unwrap();
        assert_eq!((table.get(b"key"), table.len()), (Some(&b"value"[..]), 1));
    }

    #[test]
    fn files_of_other_machines_are_told() {
        let error = |file: &[u8]| read(file).unwrap_err().to_string();
        let mut other = file();
        other[..4].copy_from_slice(&MAGICS_32[0].to_le_bytes());
        assert_eq!(error(&other), DbmError::OtherMachine.to_string());
        other[..4].reverse();
        assert_eq!(error(&other), DbmError::OtherMachine.to_string());
        assert_eq!(error(b"no"), DbmError::Short.to_string());
        assert_eq!(error(b"plain text"), "not a GDBM file");
    }

    /// A file with one bucket of two entries, one of which is not used.
    fn file() -> Vec<u8> {
        let mut file = vec![0; 512];
        file[..4].copy_from_slice(&MAGICS[0].to_le_bytes());
        file[8] = 64;
        file[16] = 16;
        file[24..26].copy_from_slice(&200_u16.to_le_bytes());
        file[64] = 128;
        file[72] = 128;
        let element = 128 + BUCKET_HEAD_BYTES;
        file[element + 8..element + 10].copy_from_slice(&400_u16.to_le_bytes());
        file[element + 16] = 3;
        file[element + 20] = 5;
        file[element + 24..element + 28].fill(0xff);
        // The third entry that has room is empty: a key of no bytes at the start of the file.
        file[element + 48..element + 52].fill(0xff);
        file[400..408].copy_from_slice(b"keyvalue");
        file
    }

    proptest! {
        #[test]
        fn a_damaged_file_is_read(at in 4_usize..512, bytes: [u8; 4]) {
            let mut file = file();
            for (offset, byte) in bytes.into_iter().enumerate() {
                if let Some(place) = file.get_mut(at + offset) {
                    *place = byte;
                }
            }
            let _ = read(&file);
        }

        #[test]
        fn any_bytes_are_read(mut bytes: Vec<u8>) {
            bytes.splice(..bytes.len().min(4), MAGICS[0].to_le_bytes());
            let _ = read(&bytes);
        }
    }
}
