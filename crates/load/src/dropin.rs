//! The command lines and the outputs of ab, siege and http_load, in front of this crate's engine.
//!
//! Scripts and habits that know one of the three go on working: options, files, labels, their order
//! and the exit codes are theirs. The figures are right by default; a defect that somebody has to
//! compare with is there under `--quirks=NAME`, where it is one of counting and not of waiting. What
//! is not done is refused by name and never ignored. Whatever is said beyond what the original prints
//! goes to stderr and begins with `milepost: `.
//!
//! The programs speak to files, environment and terminal through [`Outside`], so they are tested
//! without any.
//!
//! Source: the observed behaviour of ab 2.3 (httpd 2.4), siege 4.0.7 and http_load 12mar2006, and their
//! manuals.

mod ab;
mod general;
mod getopt;
mod http_load;
mod note;
mod sample;
mod siege;

use std::io;
use std::path::Path;

use crate::control::Control;

/// A program that this one can stand in for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program {
    /// ApacheBench.
    Ab,
    /// Siege.
    Siege,
    /// http_load.
    HttpLoad,
}

/// Files, environment and terminal of the process.
pub trait Outside: Sync {
    /// Reads a file as a whole.
    ///
    /// # Errors
    ///
    /// As the system reports them.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;

    /// Writes a file anew.
    ///
    /// # Errors
    ///
    /// As the system reports them.
    fn write(&self, path: &Path, text: &str) -> io::Result<()>;

    /// Adds to the end of a file, which is made if there is none.
    ///
    /// # Errors
    ///
    /// As the system reports them.
    fn append(&self, path: &Path, text: &str) -> io::Result<()>;

    /// Reads a variable of the environment.
    fn variable(&self, name: &str) -> Option<String>;

    /// Prints to stdout, at once. Whoever stopped reading stops the run by its control.
    fn out(&self, text: &str);

    /// Prints to stderr.
    fn err(&self, text: &str);
}

impl Program {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Ab, Self::Siege, Self::HttpLoad];

    /// The name of the program that it stands in for.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ab => "ab",
            Self::Siege => "siege",
            Self::HttpLoad => "http_load",
        }
    }

    /// The program called `name`.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|program| program.name() == name)
    }

    /// Runs the program with the words after its name, and returns its exit code.
    #[must_use]
    pub fn run(self, words: &[String], outside: &dyn Outside, control: &Control) -> u8 {
        match self {
            Self::Ab => ab::run(words, outside, control),
            Self::Siege => siege::run(words, outside, control),
            Self::HttpLoad => http_load::run(words, outside, control),
        }
    }
}

/// The report of a run that did nothing.
#[cfg(test)]
pub(crate) fn empty_report() -> crate::report::Report {
    let (length, cpu, cpu_max) = Default::default();
    let record = crate::record::Record::new();
    let measured = crate::summary::Measured {
        record,
        length,
        cpu,
        cpu_max,
        polled: std::time::Duration::ZERO,
        steal_percent: None,
    };
    let plan = crate::plan::Plan::new(Vec::new());
    crate::summary::report(
        &plan,
        1,
        crate::plan::Io::Epoll,
        None,
        measured,
        crate::report::Ended::Requests,
        None,
    )
}
