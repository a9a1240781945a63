//! What can answer cases: real httpd, milepost by scan, by index and through a socket.

use crate::answer::Answer;
use crate::case::Case;

/// Something that answers cases.
pub trait Engine {
    /// Its name in reports.
    fn name(&self) -> &str;

    /// Answers every request of every case; the verdicts are in the order of `cases`.
    ///
    /// # Errors
    /// [`EngineError`] when the engine itself failed, and not a case.
    fn run(&self, cases: &[&Case]) -> Result<Vec<Verdict>, EngineError>;
}

/// What became of one case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Its configuration was not accepted: line (where known) and message.
    Refused(String),
    /// The answers to its requests, in order; the text says why there is none.
    Answers(Vec<Result<Answer, String>>),
}

/// The engine failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// No httpd, or one that does not run.
    #[error(transparent)]
    Httpd(#[from] crate::httpd::HttpdError),
    /// The server does not serve what the engine loads; what it says of it.
    #[error("milepost does not serve: {0}")]
    Served(String),
    /// The files of the cases could not be written.
    #[error("cannot lay out the cases: {0}")]
    Stage(#[from] std::io::Error),
}
