//! The open loop: requests are due by the clock, and waiting for the server counts.

use std::thread;
use std::time::Duration;

use milepost_load::{Arrival, Stop, Waiting, WarningKind};

use crate::peer::{OK, Peer};
use crate::{load, plan};

#[test]
fn the_rate_is_kept_whatever_the_number_of_threads() {
    for threads in [1, 3] {
        let peer = Peer::answering(OK);
        let mut plan = plan(&peer, 0);
        plan.connections = 6;
        plan.threads = threads;
        plan.arrival = Arrival::uniform(500.0);
        plan.stop = Stop::Duration(Duration::from_secs(1));
        let report = load(&plan);
        // Those due in the last moment may be outstanding.
        assert_eq!(report.requests + report.unanswered, 500, "{report:?}");
        assert!(report.unanswered < 100, "{report:?}");
        assert!(report.generator.lateness_ns.samples >= report.requests - 6);
    }
}

#[test]
fn busy_polling_keeps_the_rate_and_says_what_it_polled_in_vain() {
    let peer = Peer::answering(OK);
    for pipeline in [None, Some(2)] {
        let mut plan = plan(&peer, 100);
        plan.connections = 4;
        plan.pipeline = pipeline;
        plan.waiting = Waiting::BusyPoll;
        plan.arrival = Arrival::uniform(200.0);
        let report = load(&plan);
        assert_eq!((report.requests, report.errors, report.unanswered), (100, 0, 0), "{report:?}");
        assert!(report.seconds >= 0.49, "{}", report.seconds);
        assert!(report.generator.busy_poll);
        assert!(report.generator.polled_seconds > 0.0, "{:?}", report.generator);
        let is_saturated = |it: &milepost_load::Warning| it.kind == WarningKind::GeneratorSaturated;
        assert!(!report.warnings.iter().any(is_saturated), "{:?}", report.warnings);
    }
}

#[test]
fn a_sleeping_worker_polls_for_a_tenth_of_its_time_at_most() {
    let peer = Peer::answering(OK);
    let mut plan = plan(&peer, 2_000);
    plan.arrival = Arrival::uniform(4_000.0);
    let report = load(&plan);
    assert!(!report.generator.busy_poll);
    // One that is put aside by the system while it polls counts that as well.
    assert!(report.generator.polled_seconds < 0.5 * report.seconds, "{:?}", report.generator);
}

#[test]
fn a_count_ends_the_open_loop_too() {
    let peer = Peer::answering(OK);
    let mut plan = plan(&peer, 100);
    plan.arrival = Arrival::uniform(1_000.0);
    let report = load(&plan);
    assert_eq!((report.requests, report.unanswered), (100, 0));
    assert!(report.seconds >= 0.099, "{}", report.seconds);
}

/// Coordinated omission: one stall of 400 ms delays all requests that were due during it. The
/// closed loop sees one slow request; the open loop sees them all.
#[test]
fn a_stall_is_in_the_response_time_of_everything_that_waited() {
    let stall = Duration::from_millis(400);
    let stalling = move || {
        Peer::start(move |it| {
            let mut answered = 0;
            while it.request().is_some() {
                answered += 1;
                if answered == 50 {
                    thread::sleep(stall);
                }
                it.send(OK);
            }
        })
    };
    let peer = stalling();
    let mut plan = plan(&peer, 200);
    plan.arrival = Arrival::uniform(200.0);
    let open = load(&plan);
    // 80 of 200 requests were due during the stall and waited 400, 395, 390 ... ms.
    assert!(open.response_ns.p90.unwrap() > 250_000_000, "{:?}", open.response_ns);
    assert!(open.service_ns.p90.unwrap() < 200_000_000, "{:?}", open.service_ns);
    // The generator was not late: the connection was busy.
    assert!(open.generator.lateness_ns.p50.unwrap() < 50_000_000, "{:?}", open.generator);

    let peer = stalling();
    let mut plan = crate::plan(&peer, 200);
    plan.arrival = Arrival::Closed;
    let closed = load(&plan);
    assert!(closed.response_ns.p90.unwrap() < 200_000_000, "{:?}", closed.response_ns);
    assert!(closed.response_ns.max.unwrap() >= 400_000_000, "{:?}", closed.response_ns);
}

#[test]
fn a_rate_that_the_server_cannot_keep_is_reported() {
    let peer = Peer::start(|it| {
        while it.request().is_some() {
            thread::sleep(Duration::from_millis(20));
            it.send(OK);
        }
    });
    let mut plan = plan(&peer, 0);
    plan.arrival = Arrival::uniform(200.0);
    plan.stop = Stop::Duration(Duration::from_secs(1));
    let report = load(&plan);
    // At most 50 a second can be answered; the rest was due and not sent.
    assert_eq!(report.requests + report.unanswered, 200);
    assert!(report.unanswered > 140, "{report:?}");
    assert!(report.response_ns.at_least.contains(&"p90"), "{:?}", report.response_ns);
    assert!(report.warnings.iter().any(|warning| warning.kind == WarningKind::RateNotReached));
}
