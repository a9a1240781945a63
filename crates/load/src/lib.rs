//! Load: when to send, what to time, what to check, what to report.
//!
//! [`run`] takes a [`Plan`] and returns a [`Report`]. Every answer is held against the
//! [`Expectation`] of its [`Target`]; a wrong answer is counted and never timed. No process, no file,
//! no terminal in here: only sockets, threads and the clock.

mod answer;
mod check;
mod clock;
mod connection;
mod control;
mod deadlines;
mod failure;
mod pacer;
mod plan;
mod record;
mod report;
mod run;
mod schedule;
mod summary;
mod target;
mod url;
mod url_list;
mod wire;
mod worker;

pub use control::{Control, Progress};
pub use failure::{FailureKind, RunError};
pub use plan::{
    Arrival, CONNECTIONS_DEFAULT, Order, Persistence, Plan, Stop, TIMEOUT_DEFAULT, WarmUp,
};
pub use report::{
    Bytes, Connections, Ended, ErrorCount, Generator, PlanSummary, Report, Times, WarmUpCounts,
    Warning, WarningKind, WrongAnswer,
};
pub use run::run;
pub use target::{Expectation, STATUS_WRONG_MIN, Target};
pub use url::{HttpUrl, UrlError, UrlErrorKind};
pub use url_list::{ListedUrl, UrlListError, UrlListErrorKind, parse_url_list};
