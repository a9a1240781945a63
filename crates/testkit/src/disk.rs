//! The engine's [`Outside`] over the real file system, with the environment that httpd gets.

use std::collections::BTreeSet;
use std::fs::{FileType, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{SystemTime, UNIX_EPOCH};

use milepost_engine::{Diagnostic, FileKind, Outside, Severity, Stamp};

use crate::httpd::ENVIRONMENT;

/// The file system as it is, and what was found wrong with `.htaccess` files in it.
#[derive(Debug, Default)]
pub struct Disk {
    reports: Mutex<BTreeSet<String>>,
}

impl Disk {
    /// Returns what was found wrong since the last time, each thing once.
    pub fn take_reports(&self) -> BTreeSet<String> {
        self.reports.lock().map(|mut reports| std::mem::take(&mut *reports)).unwrap_or_default()
    }
}

impl Outside for Disk {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        std::fs::read(path)
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<PathBuf>> {
        let entries = std::fs::read_dir(directory)?;
        entries.map(|entry| Ok(PathBuf::from(entry?.file_name()))).collect()
    }

    fn home(&self, user: &[u8]) -> Option<Vec<u8>> {
        milepost_server::FileSystem.home(user)
    }

    fn stamp(&self, path: &Path) -> io::Result<Option<Stamp>> {
        match std::fs::metadata(path) {
            Ok(metadata) if metadata.is_file() => Ok(Some(Stamp {
                inode: (metadata.dev(), metadata.ino()),
                len: metadata.len(),
                modified_ns: nanos(metadata.mtime(), metadata.mtime_nsec()),
                changed_ns: nanos(metadata.ctime(), metadata.ctime_nsec()),
            })),
            Ok(_) => Ok(None),
            Err(error) => match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Ok(None),
                _ => Err(error),
            },
        }
    }

    /// A `.htaccess` that does not compile is a 500, which the case expects or not.
    fn report(&self, diagnostics: &[Diagnostic]) {
        let errors = diagnostics.iter().filter(|found| found.severity == Severity::Error);
        if let Ok(mut reports) = self.reports.lock() {
            reports.extend(errors.map(|found| format!("line {}: {}", found.line, found.message)));
        }
    }

    fn kind(&self, path: &Path) -> FileKind {
        kind(std::fs::metadata(path))
    }

    fn kind_of_link(&self, path: &Path) -> FileKind {
        kind(std::fs::symlink_metadata(path))
    }

    fn owners(&self, path: &Path) -> Option<(u32, u32)> {
        let (link, target) = (std::fs::symlink_metadata(path).ok()?, std::fs::metadata(path).ok()?);
        Some((link.uid(), target.uid()))
    }

    fn is_executable(&self, path: &Path) -> bool {
        rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
    }

    fn random(&self) -> u64 {
        fastrand::u64(..)
    }

    fn environment(&self, name: &str) -> Option<String> {
        let found = ENVIRONMENT.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    }

    fn now(&self) -> (i64, i32) {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        (i64::try_from(since.as_secs()).unwrap_or(i64::MAX), 0)
    }
}

fn nanos(seconds: i64, nanos: i64) -> i128 {
    i128::from(seconds) * 1_000_000_000 + i128::from(nanos)
}

fn kind(metadata: io::Result<Metadata>) -> FileKind {
    let Ok(metadata) = metadata else { return FileKind::Missing };
    let kind: FileType = metadata.file_type();
    if kind.is_file() {
        FileKind::File(metadata.len())
    } else if kind.is_dir() {
        FileKind::Directory
    } else if kind.is_symlink() {
        FileKind::Link
    } else {
        FileKind::Other
    }
}
