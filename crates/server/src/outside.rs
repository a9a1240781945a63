//! The world as the engine may ask for it: the file system, the environment and the clock of this
//! machine.

use std::cell::{Cell, RefCell};
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Local, TimeZone};
use milepost_engine::{
    Database, Diagnostic, EtagParts, FileKind, Outside, Stamp, TlsBackend, TlsFault, TlsServer,
};
use rustix::rand::{GetRandomFlags, getrandom};

use crate::error_log::report_diagnostic;
use crate::files::etag_of;
use crate::helpers::{Helpers, owner};
use crate::tls;

/// The real file system, environment and clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct FileSystem;

impl Outside for FileSystem {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        fs::read(path)
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<PathBuf>> {
        fs::read_dir(directory)?.map(|entry| Ok(entry?.file_name().into())).collect()
    }

    fn home(&self, user: &[u8]) -> Option<Vec<u8>> {
        owner::home(user)
    }

    fn stamp(&self, path: &Path) -> io::Result<Option<Stamp>> {
        match fs::metadata(path) {
            Ok(metadata) if metadata.is_file() => Ok(Some(Stamp {
                inode: (metadata.dev(), metadata.ino()),
                len: metadata.len(),
                modified_ns: modified_ns(&metadata),
                changed_ns: nanos(metadata.ctime(), metadata.ctime_nsec()),
            })),
            Ok(_) => Ok(None),
            Err(error) => match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Ok(None),
                _ => Err(error),
            },
        }
    }

    fn report(&self, diagnostics: &[Diagnostic]) {
        diagnostics.iter().for_each(report_diagnostic);
    }

    fn kind(&self, path: &Path) -> FileKind {
        fs::metadata(path).map_or(FileKind::Missing, |metadata| kind(&metadata))
    }

    fn kind_of_link(&self, path: &Path) -> FileKind {
        fs::symlink_metadata(path).map_or(FileKind::Missing, |metadata| kind(&metadata))
    }

    fn owners(&self, path: &Path) -> Option<(u32, u32)> {
        let (link, target) = (fs::symlink_metadata(path).ok()?, fs::metadata(path).ok()?);
        Some((link.uid(), target.uid()))
    }

    /// As Apache's `-x`: anybody may execute it, not only this process.
    fn is_executable(&self, path: &Path) -> bool {
        fs::metadata(path).is_ok_and(|metadata| metadata.mode() & 0o111 != 0)
    }

    fn random(&self) -> u64 {
        let mut bytes = [0; 8];
        // Fails only before the machine has gathered its first randomness; then any number will do.
        let _ = getrandom(&mut bytes, GetRandomFlags::empty());
        u64::from_ne_bytes(bytes)
    }

    fn examine_tls(&self, server: &TlsServer) -> Vec<TlsFault> {
        tls::examine(server)
    }

    fn examine_backend_tls(&self, backend: &TlsBackend) -> Vec<TlsFault> {
        tls::examine_backend(backend)
    }

    fn environment(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn now(&self) -> (i64, i32) {
        let now = Local::now();
        (now.timestamp(), now.offset().local_minus_utc())
    }

    fn utc_offset(&self, at: i64) -> i32 {
        let offset = |time: DateTime<Local>| time.offset().local_minus_utc();
        Local.timestamp_opt(at, 0).earliest().map_or(0, offset)
    }

    fn modified_ns(&self, path: &Path) -> Option<i128> {
        fs::metadata(path).ok().map(|metadata| modified_ns(&metadata))
    }

    fn directory_tag(&self, path: &Path, parts: EtagParts) -> Option<String> {
        // There is no content to make a digest of.
        let metadata = fs::metadata(path).ok().filter(|_| !parts.digest)?;
        Some(etag_of(&metadata, parts))
    }
}

/// The file system with a memory of the last thing looked at, and the helpers of a site.
///
/// The engine looks whether there is a file, and then the file is answered with: one `stat` does for
/// both. What is remembered must not outlive the request, so it is forgotten before each.
#[derive(Default)]
pub struct LastLook {
    path: RefCell<Vec<u8>>,
    seen: Cell<Option<Metadata>>,
    helpers: Helpers,
}

impl LastLook {
    /// Makes one whose maps can ask their programs and databases.
    #[must_use]
    pub fn with_helpers(helpers: Helpers) -> LastLook {
        LastLook { helpers, ..LastLook::default() }
    }

    /// Makes another one that asks the same programs and databases.
    pub(crate) fn again(&self) -> LastLook {
        LastLook::with_helpers(self.helpers.share())
    }

    pub(crate) fn forget(&self) {
        self.seen.set(None);
    }

    /// Returns what was seen if the last look was at `path`.
    pub(crate) fn take(&self, path: &[u8]) -> Option<Metadata> {
        self.seen.take().filter(|_| *self.path.borrow() == path)
    }
}

impl Outside for LastLook {
    fn below(&self) -> Option<&dyn Outside> {
        Some(&FileSystem)
    }

    fn kind(&self, path: &Path) -> FileKind {
        let Ok(metadata) = fs::metadata(path) else {
            self.forget();
            return FileKind::Missing;
        };
        let kind = kind(&metadata);
        let mut last = self.path.borrow_mut();
        last.clear();
        last.extend_from_slice(path.as_os_str().as_bytes());
        self.seen.set(Some(metadata));
        kind
    }

    fn random(&self) -> u64 {
        FileSystem.random()
    }

    fn ask_program(&self, program: usize, key: &[u8], value: &mut Vec<u8>) -> bool {
        self.helpers.ask_program(program, key, value)
    }

    fn query(&self, database: &Database, sql: &str, key: &[u8]) -> Option<Vec<u8>> {
        self.helpers.query(database, sql, key)
    }

    fn now(&self) -> (i64, i32) {
        FileSystem.now()
    }

    fn utc_offset(&self, at: i64) -> i32 {
        FileSystem.utc_offset(at)
    }

    fn modified_ns(&self, path: &Path) -> Option<i128> {
        FileSystem.modified_ns(path)
    }

    fn directory_tag(&self, path: &Path, parts: EtagParts) -> Option<String> {
        FileSystem.directory_tag(path, parts)
    }
}

/// When a file was last changed, in nanoseconds since the epoch.
fn modified_ns(metadata: &Metadata) -> i128 {
    nanos(metadata.mtime(), metadata.mtime_nsec())
}

fn nanos(seconds: i64, nanos: i64) -> i128 {
    i128::from(seconds) * 1_000_000_000 + i128::from(nanos)
}

/// Tells what was found.
fn kind(metadata: &Metadata) -> FileKind {
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
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path();
        let (file, link) = (directory.join("file"), directory.join("link"));
        fs::write(&file, "12345").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();

        assert_eq!(FileSystem.kind(directory), FileKind::Directory);
        assert_eq!(FileSystem.kind(&link), FileKind::File(5));
        assert_eq!(FileSystem.kind_of_link(&link), FileKind::Link);
        assert_eq!(FileSystem.kind(&directory.join("none")), FileKind::Missing);
        assert_eq!(FileSystem.kind(Path::new("/dev/null")), FileKind::Other);
        let mut listed = FileSystem.list(directory).unwrap();
        listed.sort();
        assert_eq!(listed, [file, link].map(|path| PathBuf::from(path.file_name().unwrap())));
    }

    #[test]
    fn executable_is_what_anybody_may_execute() {
        assert!(FileSystem.is_executable(Path::new("/bin/sh")));
        assert!(!FileSystem.is_executable(Path::new("/etc/passwd")));
        assert!(!FileSystem.is_executable(Path::new("/nonexistent")));
        assert_ne!(FileSystem.random(), FileSystem.random());
    }

    #[test]
    fn the_last_look_serves_one_path_once() {
        let outside = LastLook::default();
        assert_eq!(outside.kind(Path::new("/dev")), FileKind::Directory);
        assert_eq!(outside.kind(Path::new("/dev/null")), FileKind::Other);
        assert!(outside.take(b"/dev").is_none());
        assert_eq!(outside.kind(Path::new("/dev/null")), FileKind::Other);
        assert!(outside.take(b"/dev/null").is_some());
        assert!(outside.take(b"/dev/null").is_none());
        outside.kind(Path::new("/dev/null"));
        outside.forget();
        assert!(outside.take(b"/dev/null").is_none());
    }

    #[test]
    fn the_offset_is_one_that_exists() {
        let (seconds, offset) = FileSystem.now();
        assert!(seconds > 1_700_000_000);
        assert!((-12 * 3600..=14 * 3600).contains(&offset));
    }
}
