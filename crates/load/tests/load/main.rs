//! Runs against a peer that answers from a script, well or badly.

mod ab;
mod answers;
mod chain;
mod desk;
mod failures;
mod http_load;
mod observer;
mod open_loop;
mod peer;
mod persistence;
mod siege;
mod slots;
mod sockets;
mod stop;

use milepost_load::{Control, FailureKind, Plan, Report, RunError, Stop, Target, run};

use crate::peer::Peer;

/// A plan of `requests` requests for `/a` on one connection.
fn plan(peer: &Peer, requests: u64) -> Plan {
    let mut plan = Plan::new(vec![target(peer, "/a")]);
    plan.connections = 1;
    plan.stop = Stop::Requests(requests);
    plan
}

fn target(peer: &Peer, request_target: &str) -> Target {
    Target::new(peer.address(), "localhost", request_target)
}

#[track_caller]
fn load(plan: &Plan) -> Report {
    let result: Result<Report, RunError> = run(plan, &Control::new());
    result.expect("the plan is sound and the peer listens")
}

/// Errors as pairs of kind and count.
fn kinds(report: &Report) -> Vec<(FailureKind, u64)> {
    report.errors_by_kind.iter().map(|error| (error.kind, error.count)).collect()
}
