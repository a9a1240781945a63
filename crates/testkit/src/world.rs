//! The engine's [`Outside`] for one site: the file system, and the helpers that its maps ask.

use std::io;
use std::path::{Path, PathBuf};

use milepost_engine::{Database, Diagnostic, FileKind, Outside, Stamp};
use milepost_server::Helpers;

use crate::disk::Disk;

/// [`Disk`], with the programs and databases of a site.
pub(crate) struct World<'d> {
    pub(crate) disk: &'d Disk,
    pub(crate) helpers: Helpers,
}

impl Outside for World<'_> {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.disk.read(path)
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<PathBuf>> {
        self.disk.list(directory)
    }

    fn stamp(&self, path: &Path) -> io::Result<Option<Stamp>> {
        self.disk.stamp(path)
    }

    fn report(&self, diagnostics: &[Diagnostic]) {
        self.disk.report(diagnostics);
    }

    fn kind(&self, path: &Path) -> FileKind {
        self.disk.kind(path)
    }

    fn kind_of_link(&self, path: &Path) -> FileKind {
        self.disk.kind_of_link(path)
    }

    fn owners(&self, path: &Path) -> Option<(u32, u32)> {
        self.disk.owners(path)
    }

    fn is_executable(&self, path: &Path) -> bool {
        self.disk.is_executable(path)
    }

    fn random(&self) -> u64 {
        self.disk.random()
    }

    fn ask_program(&self, program: usize, key: &[u8], value: &mut Vec<u8>) -> bool {
        self.helpers.ask_program(program, key, value)
    }

    fn query(&self, database: &Database, sql: &str, key: &[u8]) -> Option<Vec<u8>> {
        self.helpers.query(database, sql, key)
    }

    fn environment(&self, name: &str) -> Option<String> {
        self.disk.environment(name)
    }

    fn now(&self) -> (i64, i32) {
        self.disk.now()
    }
}
