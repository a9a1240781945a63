//! What a decision went through, step by step, for `milepost explain`.
//!
//! The steps are noted by the evaluator itself while it decides, so they are what happened and not a
//! second opinion. Without a trace nothing is noted, and a decision costs one branch a step.

mod rewriting;

use std::path::PathBuf;

pub use rewriting::{RewriteNote, rewrite_notes};

/// One step of a decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// How many subrequests deep it happened; 0 is the request itself.
    pub depth: u32,
    /// The directive that it is about.
    pub directive: Option<Directive>,
    /// What happened.
    pub event: Event,
    /// How much of mod_rewrite the sections ask for that hold then; `None`: as the server.
    pub rewrite_level: Option<u8>,
}

/// A directive of the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directive {
    /// Its file.
    pub file: PathBuf,
    /// Its line, from 1.
    pub line: u32,
    /// The line, blanks trimmed.
    pub text: String,
}

/// What can happen in a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The request was given to a server.
    Server {
        /// `ServerName`, if it has one.
        name: Option<String>,
    },
    /// The path was normalised and decoded.
    Path {
        /// The URL-path that rules see.
        path: Vec<u8>,
        /// The query string.
        query: Option<Vec<u8>>,
    },
    /// A list of rules began.
    Rules {
        /// Whose rules: of the server, or of a directory.
        of: String,
        /// How many there are.
        count: usize,
    },
    /// A rule was tried.
    Tried {
        /// The string that its pattern saw.
        input: Vec<u8>,
        /// The groups, the whole match first, if it matched.
        groups: Option<Vec<Vec<u8>>>,
    },
    /// A condition was tested.
    Condition {
        /// The test string, expanded.
        input: Vec<u8>,
        /// Whether it holds, a leading `!` taken into account.
        holds: bool,
    },
    /// A rule changed the string.
    Rewritten {
        /// The new string.
        to: Vec<u8>,
        /// The new query string.
        query: Option<Vec<u8>>,
    },
    /// The path was mapped to the file system.
    File {
        /// The file's path.
        path: Vec<u8>,
        /// What stands there: `file`, `directory`, `missing`, `other`.
        kind: &'static str,
        /// What of the path is left after it.
        path_info: Vec<u8>,
    },
    /// A subrequest began.
    Subrequest {
        /// Its URL-path or file.
        target: Vec<u8>,
    },
    /// There is no such file, and others have names like it.
    Respelled {
        /// Their names, the nearest first.
        names: Vec<Vec<u8>>,
    },
    /// The request goes to a server behind this one.
    Proxied {
        /// The URL, as it was put together.
        url: Vec<u8>,
    },
    /// The request starts over.
    InternalRedirect {
        /// The new URL-path and query string.
        target: Vec<u8>,
    },
}
