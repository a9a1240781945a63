//! The kinds of DBM file: their names in `dbm=TYPE:`, the files they are made of, what can be wrong.
//!
//! What `dbm:` without a type means is chosen when APR is built: Berkeley DB on Debian, SDBM or GDBM
//! elsewhere. Here the file tells.
//!
//! Source: APR-util 1.6 `dbm/apr_dbm.c`, `dbm_open_type`, and the `usednames` function of each type.

use std::path::{Path, PathBuf};

use super::table::Table;
use super::{berkeley, gdbm, sdbm};

/// A kind of DBM file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DbmType {
    /// SDBM: `NAME.dir` and `NAME.pag`.
    Sdbm,
    /// GDBM: one file.
    Gdbm,
    /// Berkeley DB: one file.
    Berkeley,
    /// One file that is GDBM or Berkeley DB, as its start tells.
    Single,
}

/// Why a DBM file cannot be read.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DbmError {
    #[error("not a {kind} file")]
    NotOne { kind: &'static str },
    #[error("cut short or damaged")]
    Short,
    #[error("its texts go in circles")]
    Circle,
    #[error("written on a machine with another byte order or another length of offsets")]
    OtherMachine,
    #[error("a Berkeley DB file of another type than hash, the one that `httxt2dbm` writes")]
    NotHash,
    #[error("format version {version} of Berkeley DB is not read")]
    Version { version: u32 },
    #[error("encrypted or with checksums")]
    Sealed,
}

impl DbmType {
    /// The type called `name`; `default` is the one whose files are there.
    ///
    /// `exists` tells whether there is something at a path.
    pub(crate) fn named(
        name: &[u8],
        path: &Path,
        exists: impl Fn(&Path) -> bool,
    ) -> Option<DbmType> {
        match name.to_ascii_lowercase().as_slice() {
            b"sdbm" => Some(DbmType::Sdbm),
            b"gdbm" => Some(DbmType::Gdbm),
            b"db" => Some(DbmType::Berkeley),
            b"default" => {
                let [directory, _] = sdbm_files(path);
                let split = !exists(path) && exists(&directory);
                Some(if split { DbmType::Sdbm } else { DbmType::Single })
            }
            _ => None,
        }
    }

    /// The files of a map: the one that must be there, and perhaps another.
    pub(crate) fn files(self, path: PathBuf) -> (PathBuf, Option<PathBuf>) {
        match self {
            DbmType::Sdbm => {
                let [directory, pages] = sdbm_files(&path);
                (directory, Some(pages))
            }
            DbmType::Gdbm | DbmType::Berkeley | DbmType::Single => (path, None),
        }
    }

    /// Reads the texts of the files that [`DbmType::files`] names.
    pub(super) fn read(self, first: &[u8], second: &[u8]) -> Result<Table, DbmError> {
        match self {
            DbmType::Sdbm => Ok(sdbm::read(second, first)),
            DbmType::Gdbm => gdbm::read(first),
            DbmType::Berkeley => berkeley::read(first),
            DbmType::Single if gdbm::is_one(first) => gdbm::read(first),
            DbmType::Single if berkeley::is_one(first) => berkeley::read(first),
            DbmType::Single => Err(DbmError::NotOne { kind: "Berkeley DB or GDBM" }),
        }
    }
}

fn sdbm_files(path: &Path) -> [PathBuf; 2] {
    [".dir", ".pag"].map(|extension| {
        let mut name = path.as_os_str().to_owned();
        name.push(extension);
        PathBuf::from(name)
    })
}

pub(super) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_apr() {
        let named = |name: &str| DbmType::named(name.as_bytes(), Path::new("/m"), |_| true);
        assert_eq!(named("SDBM"), Some(DbmType::Sdbm));
        assert_eq!(named("gDbm"), Some(DbmType::Gdbm));
        assert_eq!(named("db"), Some(DbmType::Berkeley));
        assert_eq!(named("default"), Some(DbmType::Single));
        assert_eq!((named("ndbm"), named("")), (None, None));
        let only_pages = |path: &Path| path != Path::new("/m");
        let found = DbmType::named(b"default", Path::new("/m"), only_pages);
        assert_eq!(found, Some(DbmType::Sdbm));
        let files = DbmType::Sdbm.files(PathBuf::from("/m"));
        assert_eq!(files, (PathBuf::from("/m.dir"), Some(PathBuf::from("/m.pag"))));
    }
}
