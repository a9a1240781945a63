//! Every way in which a request can fail is an error of its kind, counted once, and the run ends.

use std::net::{Ipv4Addr, TcpListener};
use std::time::{Duration, Instant};

use milepost_load::{
    Control, Expectation, FailureKind, Persistence, Plan, RunError, Stop, Target, run,
};

use crate::peer::{Conversation, OK, Peer};
use crate::{kinds, load, plan};

#[test]
fn closing_too_early_is_an_error() {
    check("", FailureKind::ClosedBeforeAnswer);
    check("HTTP/1.1 200 OK\r\nContent-Le", FailureKind::ClosedInHead);
    check("HTTP/1.1 100 Continue\r\n\r\n", FailureKind::ClosedInHead);
    check("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc", FailureKind::ClosedInContent);
    check(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
        FailureKind::ClosedInContent,
    );
}

#[test]
fn what_is_not_http_is_an_error() {
    check("SSH-2.0-OpenSSH_9.2\r\n\r\n", FailureKind::MalformedHead);
    check("HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n", FailureKind::MalformedHead);
    check("HTTP/1.1 301 Moved\r\nLocation: /a\r\nLocation: /b\r\n\r\n", FailureKind::MalformedHead);
    check(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n",
        FailureKind::MalformedChunk,
    );
}

#[test]
fn a_head_without_bounds_is_an_error() {
    let line = format!("A: {}\r\n", "x".repeat(1_000));
    check(&format!("HTTP/1.1 200 OK\r\n{}", line.repeat(70)), FailureKind::HeadTooLarge);
    check(&format!("HTTP/1.1 200 OK\r\n{}\r\n", "A: b\r\n".repeat(101)), FailureKind::HeadTooLarge);
}

#[test]
fn a_second_answer_is_an_error() {
    check(&format!("{OK}{OK}"), FailureKind::SurplusBytes);
    check("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nok", FailureKind::SurplusBytes);
}

#[test]
fn a_reset_is_an_error() {
    check_script(
        |it| {
            it.request();
            it.reset();
        },
        FailureKind::Reset,
    );
}

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

/// An answer sent on each connection, which is then closed.
#[track_caller]
fn check(answer: &str, kind: FailureKind) {
    let answer = answer.to_owned();
    check_script(
        move |it| {
            it.request();
            it.send(&answer);
            if kind == FailureKind::HeadTooLarge || kind == FailureKind::MalformedChunk {
                // Whether the client notices must not depend on the end of the connection.
                it.wait();
            }
        },
        kind,
    );
}

#[track_caller]
fn check_script(script: impl Fn(&mut Conversation) + Send + Sync + 'static, kind: FailureKind) {
    let peer = Peer::start(script);
    let mut plan = plan(&peer, 10);
    plan.connections = 2;
    plan.targets[0].expectation = Expectation::status(200);
    let report = load(&plan);
    assert_eq!(kinds(&report), [(kind, 10)]);
    assert_eq!((report.requests, report.errors, report.unanswered), (0, 10, 0));
    assert!(report.errors_by_kind[0].example.starts_with("http://localhost/a: "));
}
