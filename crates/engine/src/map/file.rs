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
        let Form::Dbm(kind) = self.form else { return Ok(text::read(first)) };
        let second = self.second.as_deref().map(read).transpose()?.unwrap_or_default();
        kind.read(first, second).map_err(|error| ReadError::Dbm { path: self.path.clone(), error })
    }
}

impl Version {
    /// The contents.
    pub(crate) fn table(&self) -> &Table {
        &self.table
    }
}
