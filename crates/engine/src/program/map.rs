//! `RewriteMap`: tables and functions that a substitution can look up.

use crate::map::FileMap;

/// One map.
#[derive(Debug)]
pub(crate) enum Map {
    /// `txt:`, `rnd:`, `dbm:`
    File(FileMap),
    /// `int:`
    Internal(InternalMap),
    /// `prg:`, by its number among the programs of the site.
    Program(usize),
    /// `dbd:`, `fastdbd:`
    Query(QueryMap),
}

/// The functions of `int:`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InternalMap {
    ToUpper,
    ToLower,
    Escape,
    Unescape,
}

/// A statement that the database of the server answers.
#[derive(Debug)]
pub(crate) struct QueryMap {
    /// Its number among the maps of the program.
    pub(crate) number: usize,
    pub(crate) sql: String,
    /// `fastdbd:` what was answered once is not asked again.
    pub(crate) cached: bool,
}
