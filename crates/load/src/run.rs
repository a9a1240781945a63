//! Runs a plan: checks it, starts the workers, merges what they recorded.

use crate::control::Control;
use crate::failure::RunError;
use crate::plan::{Arrival, Plan};
use crate::report::Report;

/// Runs `plan` and returns when its stop is reached, `control` says so, or the server is gone.
///
/// # Errors
///
/// When the plan makes no sense, the process lacks files or threads, or not one connection could be
/// opened. What goes wrong with single requests is in the report.
pub fn run(plan: &Plan, _control: &Control) -> Result<Report, RunError> {
    check(plan)?;
    // The worker loop comes with the next commit; until then the run says that it cannot start.
    Err(RunError::Worker(std::io::ErrorKind::Unsupported.into()))
}

fn check(plan: &Plan) -> Result<(), RunError> {
    if plan.targets.is_empty() {
        return Err(RunError::NoTarget);
    }
    for (name, value) in [("connections", plan.connections), ("threads", plan.threads)] {
        if value == 0 {
            return Err(RunError::Zero(name));
        }
    }
    match plan.arrival {
        Arrival::Uniform { per_second } if !(per_second.is_finite() && per_second > 0.0) => {
            Err(RunError::Rate(per_second))
        }
        Arrival::Uniform { .. } | Arrival::Closed => Ok(()),
    }
}
