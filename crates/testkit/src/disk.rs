//! The engine's [`Outside`] over the real file system, with the environment that httpd gets.

use std::fs::{FileType, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use milepost_engine::{FileKind, Outside};

use crate::httpd::ENVIRONMENT;

/// The file system as it is.
#[derive(Debug, Clone, Copy, Default)]
pub struct Disk;

impl Outside for Disk {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        std::fs::read(path)
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<PathBuf>> {
        let entries = std::fs::read_dir(directory)?;
        entries.map(|entry| Ok(PathBuf::from(entry?.file_name()))).collect()
    }

    fn kind(&self, path: &Path) -> FileKind {
        kind(std::fs::metadata(path))
    }

    fn kind_of_link(&self, path: &Path) -> FileKind {
        kind(std::fs::symlink_metadata(path))
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
