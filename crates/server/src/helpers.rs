//! The helpers of a site: the programs and databases that its maps ask.
//!
//! Programs run once and are asked by all workers in turn, as in httpd; connections to databases belong
//! to one worker each, so that no query waits for another.

#[cfg(feature = "dbd")]
mod database;
#[cfg(not(feature = "dbd"))]
#[path = "helpers/no_database.rs"]
mod database;
pub(crate) mod owner;
mod program;

use std::fmt;
use std::io;
use std::sync::Arc;

use milepost_engine::{Database, Site};

use self::database::Connections;
use self::program::Program;

/// The helpers of one site, for one worker. They end with the last worker that has them.
#[derive(Default)]
pub struct Helpers {
    /// By the number of the map; `None` for a program that no server with `RewriteEngine On` has.
    programs: Arc<[Option<Program>]>,
    connections: Connections,
}

/// Why a site cannot be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HelperError {
    /// The program of a `prg:` map does not start.
    #[error("cannot start {program}, the program of map {map}: {error}")]
    Program {
        /// The name of the map.
        map: String,
        /// Its path.
        program: String,
        /// What the system says.
        error: io::Error,
    },
    /// There is a `dbd:` map, and this milepost cannot ask databases.
    #[error("maps of type dbd need a milepost that is built with its feature `dbd`")]
    NoDatabases,
}

impl Helpers {
    /// Starts the programs of a site.
    ///
    /// # Errors
    /// When one of them does not start; then none runs.
    pub fn start(site: &Site) -> Result<Helpers, HelperError> {
        let asks = |database: &Database| !database.statements.is_empty();
        if cfg!(not(feature = "dbd")) && site.databases().iter().any(asks) {
            return Err(HelperError::NoDatabases);
        }
        let mut programs = Vec::new();
        for program in site.map_programs() {
            let started = program.starts.then(|| Program::start(program)).transpose();
            programs.push(started.map_err(|error| HelperError::Program {
                map: String::from_utf8_lossy(&program.map).into_owned(),
                program: String::from_utf8_lossy(&program.argv[0]).into_owned(),
                error,
            })?);
        }
        Ok(Helpers { programs: programs.into(), connections: Connections::default() })
    }

    /// The same programs for another worker, which opens connections of its own.
    #[must_use]
    pub fn share(&self) -> Helpers {
        Helpers { programs: Arc::clone(&self.programs), connections: Connections::default() }
    }

    /// Ends the programs at once, whoever else has them. Lookups in them give an empty value from now on.
    pub fn stop(&self) {
        self.programs.iter().flatten().for_each(Program::stop);
    }

    /// As [`milepost_engine::Outside::ask_program`].
    pub fn ask_program(&self, number: usize, key: &[u8], value: &mut Vec<u8>) -> bool {
        let program = self.programs.get(number).and_then(Option::as_ref);
        program.is_some_and(|program| program.ask(key, value))
    }

    /// As [`milepost_engine::Outside::query`].
    pub fn query(&self, database: &Database, sql: &str, key: &[u8]) -> Option<Vec<u8>> {
        self.connections.query(database, sql, key)
    }
}

impl fmt::Debug for Helpers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let running = self.programs.iter().flatten().count();
        f.debug_struct("Helpers").field("programs", &running).finish_non_exhaustive()
    }
}
