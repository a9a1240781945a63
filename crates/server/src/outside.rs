//! The world as the engine may ask for it: the file system, the environment and the clock of this
//! machine.

use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use chrono::Local;
use milepost_engine::{FileKind, Outside};

/// The real file system, environment and clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct FileSystem;

impl Outside for FileSystem {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        fs::read(path)
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<PathBuf>> {
        fs::read_dir(directory)?.map(|entry| entry.map(|entry| entry.path())).collect()
    }

    fn kind(&self, path: &Path) -> FileKind {
        fs::metadata(path).map_or(FileKind::Missing, |metadata| kind(&metadata))
    }

    fn kind_of_link(&self, path: &Path) -> FileKind {
        fs::symlink_metadata(path).map_or(FileKind::Missing, |metadata| kind(&metadata))
    }

    fn environment(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn now(&self) -> (i64, i32) {
        let now = Local::now();
        (now.timestamp(), now.offset().local_minus_utc())
    }
}

/// Tells what was found.
pub(crate) fn kind(metadata: &Metadata) -> FileKind {
    let kind = metadata.file_type();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_follow_links_or_do_not() {
        let directory =
            std::env::temp_dir().join(format!("milepost-outside-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let (file, link) = (directory.join("file"), directory.join("link"));
        fs::write(&file, "12345").unwrap();
        let _ = fs::remove_file(&link);
        std::os::unix::fs::symlink(&file, &link).unwrap();

        assert_eq!(FileSystem.kind(&directory), FileKind::Directory);
        assert_eq!(FileSystem.kind(&link), FileKind::File(5));
        assert_eq!(FileSystem.kind_of_link(&link), FileKind::Link);
        assert_eq!(FileSystem.kind(&directory.join("none")), FileKind::Missing);
        assert_eq!(FileSystem.kind(Path::new("/dev/null")), FileKind::Other);
        let mut listed = FileSystem.list(&directory).unwrap();
        listed.sort();
        assert_eq!(listed, [file, link]);
        fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn the_offset_is_one_that_exists() {
        let (seconds, offset) = FileSystem.now();
        assert!(seconds > 1_700_000_000);
        assert!((-12 * 3600..=14 * 3600).contains(&offset));
    }
}
