//! What the engine must be told of the world: the one door for file systems, clocks and processes.

use std::io;
use std::path::{Path, PathBuf};

use crate::diagnostic::Diagnostic;
use crate::helper::Database;
use crate::serving::EtagParts;
use crate::tls::{TlsBackend, TlsFault, TlsServer};

/// The world outside, as the engine needs it. The server implements it over the file system; tests
/// over a table.
///
/// What an implementation leaves out is as in the world [below](Outside::below) it; with none below there
/// are no files, no environment, no programs and no databases.
pub trait Outside {
    /// The world that answers what this one does not.
    fn below(&self) -> Option<&dyn Outside> {
        None
    }

    /// Reads a whole file: a configuration or a map.
    ///
    /// # Errors
    /// As the file system reports them.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.below().map_or_else(|| Err(io::ErrorKind::NotFound.into()), |it| it.read(path))
    }

    /// Lists the entries of a directory by name, unsorted, for `Include` with wildcards.
    ///
    /// # Errors
    /// As the file system reports them.
    fn list(&self, directory: &Path) -> io::Result<Vec<PathBuf>> {
        self.below().map_or_else(|| Ok(Vec::new()), |it| it.list(directory))
    }

    /// Tells which version of a regular file stands at `path`; `None` if there is none.
    ///
    /// # Errors
    /// When something is there that may not be looked at.
    fn stamp(&self, path: &Path) -> io::Result<Option<Stamp>> {
        self.below().map_or(Ok(None), |it| it.stamp(path))
    }

    /// Takes what is wrong with a file that a request met: a `.htaccess`, after which the request ends
    /// in a 500, or a map that has changed, in which the request finds nothing.
    fn report(&self, diagnostics: &[Diagnostic]) {
        if let Some(it) = self.below() {
            it.report(diagnostics);
        }
    }

    /// Tells what stands at `path`, following symbolic links.
    fn kind(&self, path: &Path) -> FileKind {
        self.below().map_or(FileKind::Missing, |it| it.kind(path))
    }

    /// Tells what stands at `path` itself, without following a last symbolic link. With no world below it
    /// there are no links.
    fn kind_of_link(&self, path: &Path) -> FileKind {
        self.below().map_or_else(|| self.kind(path), |it| it.kind_of_link(path))
    }

    /// Tells who owns the symbolic link at `path` and who owns what it leads to. Without an answer the
    /// link is not followed where the owners must be the same.
    fn owners(&self, path: &Path) -> Option<(u32, u32)> {
        self.below()?.owners(path)
    }

    /// Returns the home directory of a user of this machine, for `UserDir`.
    fn home(&self, user: &[u8]) -> Option<Vec<u8>> {
        self.below()?.home(user)
    }

    /// Whether this process may execute the file.
    fn is_executable(&self, path: &Path) -> bool {
        self.below().is_some_and(|it| it.is_executable(path))
    }

    /// Returns a number that nobody can guess, for `rnd:` maps.
    fn random(&self) -> u64;

    /// Asks the program of a `prg:` map, by its number in [`crate::Site::map_programs`], for the value
    /// of `key`, and appends it to `value`. False if the program says that there is none, or if it
    /// cannot be asked.
    fn ask_program(&self, program: usize, key: &[u8], value: &mut Vec<u8>) -> bool {
        self.below().is_some_and(|it| it.ask_program(program, key, value))
    }

    /// Asks a database for the value of `key`: the first column of a row that `sql` selects, any one
    /// if there are several. Its `%s` stands for the key.
    fn query(&self, database: &Database, sql: &str, key: &[u8]) -> Option<Vec<u8>> {
        self.below()?.query(database, sql, key)
    }

    /// Tells what is wrong with the certificates and keys of a server that speaks TLS.
    fn examine_tls(&self, server: &TlsServer) -> Vec<TlsFault> {
        self.below().map_or_else(Vec::new, |it| it.examine_tls(server))
    }

    /// The same for TLS to backends.
    fn examine_backend_tls(&self, backend: &TlsBackend) -> Vec<TlsFault> {
        self.below().map_or_else(Vec::new, |it| it.examine_backend_tls(backend))
    }

    /// Returns a variable of the process environment.
    fn environment(&self, name: &str) -> Option<String> {
        self.below()?.environment(name)
    }

    /// Returns the time as seconds since the epoch, and the offset of local time from UTC in seconds.
    fn now(&self) -> (i64, i32);

    /// Returns the offset of local time from UTC, in seconds, at a time in seconds since the epoch.
    fn utc_offset(&self, _at: i64) -> i32 {
        self.now().1
    }

    /// Returns when a file or directory was last changed, in nanoseconds since the epoch. Lists of
    /// directories show it; without it they show no time.
    fn modified_ns(&self, _path: &Path) -> Option<i128> {
        None
    }

    /// Returns the entity tag of a directory, with its quotes; `None` if it has none.
    fn directory_tag(&self, _path: &Path, _parts: EtagParts) -> Option<String> {
        None
    }
}

/// What changes when a file does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// Device and number of the file.
    pub inode: (u64, u64),
    /// Length in bytes.
    pub len: u64,
    /// Last change of the content, in nanoseconds since the epoch. Whoever writes may set it back.
    pub modified_ns: i128,
    /// Last change of content, name or rights, in nanoseconds since the epoch. Nobody can set it.
    pub changed_ns: i128,
}

/// How long a file must have stayed as it is before an equal [`Stamp`] means an equal content, in seconds:
/// two changes within one tick of the file system's clock look alike, and FAT counts in steps of 2 s.
const SETTLED_SECONDS: i128 = 2;

impl Stamp {
    /// Whether no later change can have this stamp, as seen at `now`, in seconds since the epoch.
    pub(crate) fn is_settled(&self, now: i64) -> bool {
        let last_ns = self.modified_ns.max(self.changed_ns);
        i128::from(now) - last_ns / 1_000_000_000 > SETTLED_SECONDS
    }
}

/// What stands at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// Nothing, or something that may not be looked at.
    Missing,
    /// A regular file, with its length in bytes.
    File(u64),
    /// A directory.
    Directory,
    /// A symbolic link; from [`Outside::kind_of_link`] only.
    Link,
    /// A device, a socket, a pipe.
    Other,
}
