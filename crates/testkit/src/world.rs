//! The engine's [`Outside`] for one site: the file system, and the helpers that its maps ask.

use milepost_engine::{Database, Outside};
use milepost_server::Helpers;

use crate::disk::Disk;

/// [`Disk`], with the programs and databases of a site.
pub(crate) struct World<'d> {
    pub(crate) disk: &'d Disk,
    pub(crate) helpers: Helpers,
}

impl Outside for World<'_> {
    fn below(&self) -> Option<&dyn Outside> {
        Some(self.disk)
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

    fn now(&self) -> (i64, i32) {
        self.disk.now()
    }
}
