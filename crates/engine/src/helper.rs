//! What a site needs besides files: programs that answer for `prg:` maps, and databases.
//!
//! The engine names them, and whoever runs it starts them: see [`crate::Outside::ask_program`] and
//! [`crate::Outside::query`].

/// The program of a `prg:` map: started with the server, asked one line at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MapProgram {
    /// The name of the map.
    pub map: Vec<u8>,
    /// Path and arguments.
    pub argv: Vec<Vec<u8>>,
    /// User to run it as.
    pub user: Option<Vec<u8>>,
    /// Group to run it as.
    pub group: Option<Vec<u8>>,
    /// Whether it is started: only if a server that has the map also has `RewriteEngine On`.
    /// Lookups in a program that is not started fail.
    pub starts: bool,
}

/// The database of a server, as the directives of mod_dbd name it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Database {
    /// Its number among the databases of the site.
    pub number: usize,
    /// `DBDriver`
    pub driver: Option<Driver>,
    /// `DBDParams`: with SQLite the path of the file; else where the server is, and as whom to ask it.
    pub params: Vec<u8>,
    /// `DBDInitSQL`: run on each new connection.
    pub init: Vec<String>,
    /// Statements of `DBDPrepareSQL` and of the maps. As in mod_dbd, a connection on which one of them
    /// cannot be prepared is not used.
    pub statements: Vec<String>,
}

/// A kind of database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Driver {
    /// `sqlite3`
    Sqlite3,
    /// `pgsql`: PostgreSQL.
    Pgsql,
    /// `mysql`: MySQL and MariaDB.
    Mysql,
}
