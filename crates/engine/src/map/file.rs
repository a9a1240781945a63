//! A map in a file, read again when the file has changed.
//!
//! The newest contents are shared. Each thread holds on to the contents that it knows and compares the
//! stamp of the file once a request, so a lookup takes no lock and a request waits for nobody: while
//! one thread reads a changed file, the others answer from the old contents. A file that is gone fails
//! every lookup, as in httpd, until it is back.
//!
//! Source: httpd 2.4.71 `modules/mappers/mod_rewrite.c`, `lookup_map`, `get_cache_value`.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use super::dbm::{DbmError, DbmType};
use super::table::{TEXT_BYTES_MAX, Table};
use super::text;
use crate::outside::{Outside, Stamp};

/// What a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// `txt:`
    Text,
    /// `rnd:` as `txt:`, with alternatives separated by `|`.
    Random,
    /// `dbm:`
    Dbm(DbmType),
}

/// A map in a file.
#[derive(Debug)]
pub(crate) struct FileMap {
    /// Its number among the maps of the program.
    pub(crate) number: usize,
    pub(crate) form: Form,
    path: PathBuf,
    second: Option<PathBuf>,
    newest: Mutex<Option<Version>>,
}

/// Contents, and of which version of the files.
#[derive(Debug, Clone)]
pub(crate) struct Version {
    stamps: Stamps,
    table: Arc<Table>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamps(Stamp, Option<Stamp>);

/// Why a map cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    #[error("cannot read {}: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
    #[error("{}: a map has at most {TEXT_BYTES_MAX} bytes", path.display())]
    TooLong { path: PathBuf },
    #[error("{}: {error}", path.display())]
    Dbm { path: PathBuf, error: DbmError },
}

impl FileMap {
    /// Makes a map that has not been read.
    pub(crate) fn new(number: usize, form: Form, path: PathBuf) -> FileMap {
        let (path, second) = match form {
            Form::Text | Form::Random => (path, None),
            Form::Dbm(kind) => kind.files(path),
        };
        FileMap { number, form, path, second, newest: Mutex::new(None) }
    }

    /// The file that must be there when the configuration is loaded.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Brings what a thread knows up to date: `None` if the file is gone or cannot be read.
    ///
    /// Looks at the stamp of each of its files, and at nothing else when they have not changed.
    ///
    /// # Errors
    /// When the file has changed and cannot be read.
    pub(crate) fn refresh(
        &self,
        known: &mut Option<Version>,
        outside: &dyn Outside,
    ) -> Result<(), ReadError> {
        let Some(stamps) = self.stamps(outside) else {
            *known = None;
            return Ok(());
        };
        if known.as_ref().is_some_and(|known| known.stamps == stamps) {
            return Ok(());
        }
        let Some(mut newest) = self.lock(known.is_some()) else { return Ok(()) };
        if newest.as_ref().is_none_or(|newest| newest.stamps != stamps) {
            *known = None;
            let table = Arc::new(self.read(outside)?);
            *newest = Some(Version { stamps, table });
        }
        known.clone_from(&newest);
        Ok(())
    }

    /// The shared contents. Whoever knows older ones does not wait for them.
    fn lock(&self, knows_older: bool) -> Option<MutexGuard<'_, Option<Version>>> {
        if !knows_older {
            return Some(self.newest.lock().unwrap_or_else(PoisonError::into_inner));
        }
        match self.newest.try_lock() {
            Ok(newest) => Some(newest),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    fn stamps(&self, outside: &dyn Outside) -> Option<Stamps> {
        let stamp = |path: &Path| outside.stamp(path).ok().flatten();
        let second = match &self.second {
            Some(second) => Some(stamp(second)?),
            None => None,
        };
        Some(Stamps(stamp(&self.path)?, second))
    }

    fn read(&self, outside: &dyn Outside) -> Result<Table, ReadError> {
        let read = |path: &Path| match outside.read(path) {
            Ok(text) if text.len() <= TEXT_BYTES_MAX => Ok(text),
            Ok(_) => Err(ReadError::TooLong { path: path.to_owned() }),
            Err(error) => Err(ReadError::Io { path: path.to_owned(), error }),
        };
        let first = read(&self.path)?;
        let table = match self.form {
            Form::Text | Form::Random => text::read(&first),
            Form::Dbm(kind) => {
                let second = self.second.as_deref().map(read).transpose()?.unwrap_or_default();
                let damage = |error| ReadError::Dbm { path: self.path.clone(), error };
                kind.read(&first, &second).map_err(damage)?
            }
        };
        if table.is_whole() {
            Ok(table)
        } else {
            Err(ReadError::TooLong { path: self.path.clone() })
        }
    }
}

impl Version {
    /// The contents.
    pub(crate) fn table(&self) -> &Table {
        &self.table
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use super::*;

    use crate::outside::FileKind;

    #[test]
    fn a_file_is_read_when_its_stamp_changes_and_only_then() {
        let world = World::default();
        let map = FileMap::new(0, Form::Text, PathBuf::from("/map"));
        let mut known = None;
        let mut check = |expected: Option<&str>, reads: u32| {
            map.refresh(&mut known, &world).unwrap();
            let value = known.as_ref().map(|known| known.table().get(b"k"));
            assert_eq!(value, expected.map(|text| Some(text.as_bytes())));
            assert_eq!(world.reads.take(), reads);
        };
        check(None, 0);
        world.set(Some("k 1\n"));
        check(Some("1"), 1);
        check(Some("1"), 0);
        world.set(Some("k 2\n"));
        check(Some("2"), 1);
        world.set(None);
        check(None, 0);
        world.set(Some("k 3\n"));
        check(Some("3"), 1);
    }

    #[test]
    fn threads_share_what_one_of_them_has_read() {
        let world = World::default();
        world.set(Some("k 1\n"));
        let map = FileMap::new(0, Form::Text, PathBuf::from("/map"));
        let (mut one, mut other) = (None, None);
        map.refresh(&mut one, &world).unwrap();
        map.refresh(&mut other, &world).unwrap();
        assert_eq!(world.reads.take(), 1);
        assert!(Arc::ptr_eq(&one.unwrap().table, &other.unwrap().table));
    }

    #[test]
    fn who_knows_older_contents_does_not_wait_for_newer() {
        let world = World::default();
        world.set(Some("k 1\n"));
        let map = FileMap::new(0, Form::Text, PathBuf::from("/map"));
        let mut known = None;
        map.refresh(&mut known, &world).unwrap();
        world.set(Some("k 2\n"));
        let reading = map.newest.lock().unwrap();
        map.refresh(&mut known, &world).unwrap();
        assert_eq!(known.as_ref().unwrap().table().get(b"k"), Some(&b"1"[..]));
        drop(reading);
        map.refresh(&mut known, &world).unwrap();
        assert_eq!(known.unwrap().table().get(b"k"), Some(&b"2"[..]));
    }

    #[test]
    fn a_changed_file_that_cannot_be_read_fails_until_it_can() {
        let world = World::default();
        world.set(Some("k 1\n"));
        let map = FileMap::new(0, Form::Text, PathBuf::from("/map"));
        let mut known = None;
        map.refresh(&mut known, &world).unwrap();
        world.set(Some("k 2\n"));
        world.locked.set(true);
        assert!(matches!(map.refresh(&mut known, &world), Err(ReadError::Io { .. })));
        assert!(known.is_none());
        world.locked.set(false);
        map.refresh(&mut known, &world).unwrap();
        assert_eq!(known.unwrap().table().get(b"k"), Some(&b"2"[..]));
    }

    /// One file, and how often it was read.
    #[derive(Default)]
    struct World {
        text: RefCell<Option<&'static str>>,
        changes: Cell<u64>,
        locked: Cell<bool>,
        reads: Cell<u32>,
    }

    impl World {
        fn set(&self, text: Option<&'static str>) {
            self.text.replace(text);
            self.changes.set(self.changes.get() + 1);
        }
    }

    impl Outside for World {
        fn read(&self, _path: &Path) -> io::Result<Vec<u8>> {
            self.reads.set(self.reads.get() + 1);
            if self.locked.get() {
                return Err(io::ErrorKind::PermissionDenied.into());
            }
            self.text
                .borrow()
                .map(|text| text.as_bytes().to_vec())
                .ok_or_else(|| io::ErrorKind::NotFound.into())
        }

        fn stamp(&self, _path: &Path) -> io::Result<Option<Stamp>> {
            let stamp = |text: &str| Stamp {
                inode: (0, self.changes.get()),
                len: text.len() as u64,
                modified_ns: 0,
                changed_ns: 0,
            };
            Ok(self.text.borrow().map(stamp))
        }

        fn kind(&self, _path: &Path) -> FileKind {
            FileKind::File(0)
        }

        fn random(&self) -> u64 {
            0
        }

        fn now(&self) -> (i64, i32) {
            (0, 0)
        }
    }
}
