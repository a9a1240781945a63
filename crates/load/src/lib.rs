//! Load: when to send, what to time, what to check, what to report.

mod control;
mod failure;
mod plan;
mod report;
mod run;
mod target;

pub use control::{Control, Progress};
pub use failure::{FailureKind, RunError};
pub use plan::{
    Arrival, CONNECTIONS_DEFAULT, Order, Persistence, Plan, Stop, TIMEOUT_DEFAULT, WarmUp,
};
pub use report::{
    Bytes, Connections, Ended, ErrorCount, Generator, Report, Times, WarmUpCounts, Warning,
    WarningKind, WrongAnswer,
};
pub use run::run;
pub use target::{Expectation, STATUS_WRONG_MIN, Target};
