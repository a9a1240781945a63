//! Experiments on real servers: raw samples, plots and the report.
//!
//! [`experiment`] says what to do, [`run()`] does it and returns [`results`], [`analysis`] turns
//! these into what may be said, and [`table`] and [`report`] say it. Processes and result files are
//! known here and nowhere else; what is sent and timed is the business of `milepost-load`, and every
//! estimate that of `milepost-stats`.

mod account;
pub mod analysis;
mod cpu;
mod doubt;
pub mod environment;
pub mod experiment;
mod layout;
mod plan;
mod port;
mod process;
pub mod report;
pub mod results;
mod run;
#[cfg(test)]
mod sample;
mod server;
mod site;
pub mod table;
mod workspace;

pub use cpu::{CpuTime, Reading};
pub use plan::{Options, PlanError};
pub use process::StartError;
pub use run::{Event, Request, RunError, run};
pub use server::{Missing, Server, ServerKind};
pub use workspace::WorkspaceError;

/// Returns a seed for a run that asks for none: short enough to be typed again.
pub fn random_seed() -> u64 {
    fastrand::u32(..).into()
}
