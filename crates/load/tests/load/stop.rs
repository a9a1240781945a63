//! A run ends: after its requests, at its time, when told to, and when the server is gone.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use milepost_load::{Control, Ended, FailureKind, Stop, WarmUp, WarningKind, run};

use crate::peer::{Conversation, OK, Peer};
use crate::{kinds, load, plan};

/// What a busy machine may add to a time that is asked for.
const SLACK: Duration = Duration::from_secs(3);

#[test]
fn the_number_of_requests_is_exact() {
    for (requests, connections, threads) in [(1, 1, 1), (1, 10, 4), (1_000, 7, 3), (5_000, 50, 2)] {
        let peer = Peer::answering(OK);
        let mut plan = plan(&peer, requests);
        plan.connections = connections;
        plan.threads = threads;
        let report = load(&plan);
        assert_eq!((report.requests, report.errors, report.unanswered), (requests, 0, 0));
        assert_eq!(peer.requests().len() as u64, requests);
        assert_eq!(report.service_ns.samples, requests);
        assert_eq!(report.ended, Ended::Requests);
    }
}

#[test]
fn the_time_is_kept_and_what_is_outstanding_is_unanswered() {
    let peer = Peer::start(|it| {
        it.request();
        it.send(OK);
        it.wait();
    });
    let mut plan = plan(&peer, 0);
    plan.connections = 3;
    plan.stop = Stop::Duration(Duration::from_millis(500));
    let began = Instant::now();
    let report = load(&plan);
    let took = began.elapsed();
    assert!(took >= Duration::from_millis(500) && took < SLACK, "{took:?}");
    assert!((report.seconds - 0.5).abs() < 1.0, "{}", report.seconds);
    assert_eq!((report.requests, report.errors, report.unanswered), (3, 0, 3));
    assert_eq!(report.ended, Ended::Duration);
    // Half of all requests took at least as long as the run had left for them.
    assert_eq!(report.service_ns.censored, 3);
    assert!(report.service_ns.at_least.contains(&"p90"), "{:?}", report.service_ns);
    assert!(report.service_ns.p90.unwrap() > 100_000_000, "{:?}", report.service_ns);
}

#[test]
fn a_control_ends_the_run_and_sees_its_progress() {
    let peer = Peer::answering(OK);
    let mut plan = plan(&peer, 0);
    plan.stop = Stop::Duration(Duration::from_secs(600));
    let flag = Arc::new(AtomicBool::new(false));
    let control = Control::stopped_by(flag.clone());
    let report = thread::scope(|scope| {
        let running = scope.spawn(|| run(&plan, &control));
        let began = Instant::now();
        while control.progress().answered == 0 && began.elapsed() < Duration::from_secs(20) {
            thread::sleep(Duration::from_millis(10));
        }
        flag.store(true, std::sync::atomic::Ordering::SeqCst);
        running.join().unwrap().unwrap()
    });
    assert_eq!(report.ended, Ended::Interrupted);
    assert!(report.requests > 0);
    assert_eq!(control.progress().answered, report.requests);
    assert!(report.warnings.iter().any(|warning| warning.kind == WarningKind::EndedEarly));
}

#[test]
fn a_server_that_dies_ends_the_run() {
    let mut peer = Peer::answering(OK);
    let mut plan = plan(&peer, u64::MAX);
    plan.connections = 4;
    plan.threads = 2;
    let began = Instant::now();
    let control = Control::new();
    let report = thread::scope(|scope| {
        let running = scope.spawn(|| run(&plan, &control));
        while control.progress().answered == 0 && began.elapsed() < Duration::from_secs(20) {
            thread::sleep(Duration::from_millis(10));
        }
        peer.kill();
        running.join().unwrap().unwrap()
    });
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    assert_eq!(report.ended, Ended::GaveUp);
    assert!(report.requests > 0 && report.errors > 0);
    let refused = |&(kind, _): &(FailureKind, u64)| kind == FailureKind::ConnectRefused;
    assert!(kinds(&report).iter().any(refused), "{:?}", report.errors_by_kind);
}

#[test]
fn a_server_that_comes_back_is_found() {
    let mut peer = Peer::answering(OK);
    let port = peer.address().port();
    let mut plan = plan(&peer, u64::MAX);
    plan.connections = 2;
    let control = Control::new();
    thread::scope(|scope| {
        let running = scope.spawn(|| run(&plan, &control));
        wait_for(|| control.progress().answered > 0);
        peer.kill();
        wait_for(|| control.progress().errors > 0);
        let again = Peer::start_at(port, |it| {
            while it.request().is_some() {
                it.send(OK);
            }
        });
        wait_for(|| !again.requests().is_empty());
        control.stop();
        let report = running.join().unwrap().unwrap();
        assert_eq!(report.ended, Ended::Interrupted);
    });
}

#[test]
fn the_warm_up_is_checked_and_not_measured() {
    for (warm_up, at_least) in
        [(WarmUp::Requests(50), 50), (WarmUp::Duration(Duration::from_millis(100)), 1)]
    {
        // Slow and wrong until it is warm.
        let peer = Peer::start(|it| {
            let wrong = OK.replace("200", "500");
            it.request();
            thread::sleep(Duration::from_millis(50));
            it.send(wrong);
            while it.request().is_some() {
                it.send(OK);
            }
        });
        let mut plan = plan(&peer, 100);
        plan.connections = 2;
        plan.threads = 2;
        plan.warm_up = warm_up;
        let report = load(&plan);
        assert_eq!((report.requests, report.wrong_answers), (100, 0));
        let counts = report.warm_up.unwrap();
        assert!(counts.requests >= at_least && counts.wrong_answers > 0, "{counts:?}");
        assert!(report.warnings.iter().any(|warning| warning.kind == WarningKind::WarmUpNotClean));
        assert_eq!(peer.requests().len() as u64, 100 + counts.requests);
    }
}

#[test]
fn a_warm_up_without_answers_ends_too() {
    let peer = Peer::start(Conversation::wait);
    let mut plan = plan(&peer, 2);
    plan.timeout = Duration::from_millis(100);
    plan.warm_up = WarmUp::Requests(2);
    let report = load(&plan);
    assert_eq!((report.errors, report.warm_up.unwrap().errors), (2, 2));
}

fn wait_for(done: impl Fn() -> bool) {
    let began = Instant::now();
    while !done() {
        assert!(began.elapsed() < Duration::from_secs(20), "nothing happens");
        thread::sleep(Duration::from_millis(5));
    }
}
