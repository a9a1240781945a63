//! Plans and runs of the tests.

use milepost_load::{Control, FailureKind, Plan, Report, RunError, Stop, Target, run};

use crate::peer::Peer;

/// A plan of `requests` requests for `/a` on one connection.
pub(crate) fn plan(peer: &Peer, requests: u64) -> Plan {
    let mut plan = Plan::new(vec![target(peer, "/a")]);
    plan.io = crate::IO;
    plan.connections = 1;
    plan.stop = Stop::Requests(requests);
    plan
}

pub(crate) fn target(peer: &Peer, request_target: &str) -> Target {
    Target::new(peer.address(), "localhost", request_target)
}

#[track_caller]
pub(crate) fn load(plan: &Plan) -> Report {
    let result: Result<Report, RunError> = run(plan, &Control::new());
    result.expect("the plan is sound and the peer listens")
}

/// Errors as pairs of kind and count.
pub(crate) fn kinds(report: &Report) -> Vec<(FailureKind, u64)> {
    report.errors_by_kind.iter().map(|error| (error.kind, error.count)).collect()
}
