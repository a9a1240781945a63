//! What time and absence do to a run, and plans that make no sense. What a server can do is in
//! `misbehaviour.rs`.

use std::net::{Ipv4Addr, TcpListener};
use std::time::{Duration, Instant};

use milepost_load::{Control, FailureKind, Persistence, Plan, RunError, Stop, Target, run};

use crate::peer::{Conversation, OK, Peer};
use crate::{kinds, load, plan};

#[test]
fn silence_is_an_error_after_the_timeout() {
    let peer = Peer::start(Conversation::wait);
    let mut plan = plan(&peer, 6);
    plan.connections = 3;
    plan.timeout = Duration::from_millis(200);
    let began = Instant::now();
    let report = load(&plan);
    assert_eq!(kinds(&report), [(FailureKind::TimedOut, 6)]);
    assert!(began.elapsed() >= 2 * plan.timeout, "{:?}", began.elapsed());
    // The age of what was given up is the least that the time can have been.
    assert_eq!((report.service_ns.samples, report.service_ns.censored), (0, 6));
    assert_eq!(report.service_ns.at_least, ["p50", "p75", "p90", "p95", "p99", "p999", "max"]);
    assert!(report.service_ns.p50.unwrap() >= 200_000_000);
}

#[test]
fn dripping_does_not_extend_the_timeout() {
    let peer = Peer::start(|it| {
        it.request();
        it.drip(&"x".repeat(1_000), Duration::from_millis(20));
    });
    let mut plan = plan(&peer, 1);
    plan.timeout = Duration::from_millis(200);
    let began = Instant::now();
    assert_eq!(kinds(&load(&plan)), [(FailureKind::TimedOut, 1)]);
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}

#[test]
fn nobody_there_is_no_run() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    for persistence in [Persistence::KeepAlive, Persistence::Close] {
        let mut plan = Plan::new(vec![Target::new(address, "localhost", "/")]);
        plan.persistence = persistence;
        plan.threads = 2;
        plan.stop = Stop::Requests(1_000_000);
        let began = Instant::now();
        let error = run(&plan, &Control::new()).unwrap_err();
        assert!(matches!(error, RunError::Connect { .. }), "{error}");
        assert_eq!(error.to_string(), format!("cannot connect to {address}"));
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    }
}

#[test]
fn a_plan_that_makes_no_sense_is_no_run() {
    let peer = Peer::answering(OK);
    let refused = |change: &dyn Fn(&mut Plan)| {
        let mut plan = plan(&peer, 1);
        change(&mut plan);
        run(&plan, &Control::new()).unwrap_err().to_string()
    };
    assert_eq!(refused(&|plan| plan.targets.clear()), "no target to request");
    assert_eq!(
        refused(&|plan| plan.connections = 0),
        "the number of connections must be at least 1"
    );
    assert_eq!(refused(&|plan| plan.threads = 0), "the number of threads must be at least 1");
    for per_second in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        refused(&|plan| plan.arrival = milepost_load::Arrival::uniform(per_second));
    }
    refused(&|plan| plan.targets[0].request_target = "/a b".to_owned());
    refused(&|plan| plan.connections = usize::MAX / 4);
    assert_eq!(peer.connections(), 0);
}
