//! Pipelines: several requests on a connection before the first answer, each checked and timed by itself.

use std::thread;
use std::time::{Duration, Instant};

use milepost_load::{Arrival, Ended, Expectation, FailureKind, Stop};

use crate::misbehaviour::for_each_fault;
use crate::peer::{Conversation, OK, Peer};
use crate::{kinds, load, plan, target};

#[test]
fn so_many_requests_are_under_way_and_no_more() {
    let depth = 4;
    // Answers when it has as many, and all at once.
    let peer = Peer::start(move |it| {
        loop {
            for _ in 0..depth {
                if it.request().is_none() {
                    return;
                }
            }
            it.send(OK.repeat(depth));
        }
    });
    let mut plan = plan(&peer, 400);
    plan.pipeline = Some(depth);
    let report = load(&plan);
    assert_eq!((report.requests, report.errors, report.wrong_answers), (400, 0, 0));
    assert_eq!((report.connections.opened, report.connections.busy_max), (1, 4));
    assert_eq!(report.service_ns.samples, 400);
}

#[test]
fn answers_are_held_against_their_own_requests() {
    let answer = |path: &str| {
        format!("HTTP/1.1 301 ?\r\nLocation: /new{path}\r\nContent-Length: 2\r\n\r\nok")
    };
    let answer_to = move |head: &str| answer(head.split(' ').nth(1).unwrap_or_default());
    let orderly = Peer::start(move |it| {
        while let Some(head) = it.request() {
            it.send(answer_to(&head));
        }
    });
    let swapping = Peer::start(move |it| {
        while let (Some(first), Some(second)) = (it.request(), it.request()) {
            it.send(answer_to(&second));
            it.send(answer_to(&first));
        }
    });
    for (peer, wrong) in [(&orderly, 0), (&swapping, 300)] {
        let mut plan = plan(peer, 300);
        plan.targets = ["/1", "/2"]
            .map(|path| {
                target(peer, path).expect(Expectation::redirect(301, format!("/new{path}")))
            })
            .to_vec();
        plan.pipeline = Some(2);
        let report = load(&plan);
        assert_eq!((report.requests, report.wrong_answers), (300, wrong), "{report:?}");
    }
    let mut plan = plan(&orderly, 2_000);
    plan.connections = 3;
    plan.threads = 2;
    plan.pipeline = Some(50);
    plan.targets[0].expectation = Expectation::redirect(301, "/new/a");
    let report = load(&plan);
    assert_eq!((report.requests, report.wrong_answers, report.errors), (2_000, 0, 0));
}

#[test]
fn an_answer_waits_for_those_in_front_and_its_time_says_so() {
    let pause = Duration::from_millis(20);
    let peer = Peer::start(move |it| {
        while it.request().is_some() {
            thread::sleep(pause);
            it.send(OK);
        }
    });
    let mut plan = plan(&peer, 40);
    plan.pipeline = Some(4);
    let times = load(&plan).service_ns;
    assert!(u128::from(times.p50.unwrap()) >= (3 * pause).as_nanos(), "{times:?}");
    // The last ones wait for fewer.
    plan.stop = Stop::Requests(1);
    let times = load(&plan).service_ns;
    assert!(u128::from(times.p50.unwrap()) < (3 * pause).as_nanos(), "{times:?}");
}

#[test]
fn the_rate_is_kept_over_pipelines() {
    let peer = Peer::answering(OK);
    let mut plan = plan(&peer, 600);
    plan.arrival = Arrival::uniform(2_000.0);
    plan.connections = 2;
    plan.pipeline = Some(8);
    let began = Instant::now();
    let report = load(&plan);
    assert_eq!((report.requests, report.errors), (600, 0));
    assert!(began.elapsed() >= Duration::from_millis(290), "{:?}", began.elapsed());
    assert!(report.generator.lateness_ns.samples > 0);
}

#[test]
fn what_a_server_leaves_unanswered_is_sent_again_if_it_may_be() {
    let peer = Peer::start(|it| {
        for _ in 0..3 {
            if it.request().is_some() {
                it.send(OK);
            }
        }
    });
    let mut plan = plan(&peer, 100);
    plan.pipeline = Some(8);
    let report = load(&plan);
    assert_eq!((report.requests, report.errors), (100, 0), "{:?}", report.errors_by_kind);
    assert!(report.connections.resent > 0 && report.connections.opened >= 34, "{report:?}");

    plan.targets[0].method = "POST".to_owned();
    let report = load(&plan);
    assert_eq!(report.requests + report.errors, 100);
    assert_eq!(kinds(&report), [(FailureKind::ClosedBeforeAnswer, report.errors)]);
    assert!(report.requests > 0 && report.connections.resent == 0, "{report:?}");
}

#[test]
fn what_is_given_up_after_a_timeout_was_not_closed_by_the_server() {
    let peer = Peer::start(|it| while it.request().is_some() {});
    let mut plan = plan(&peer, 4);
    plan.pipeline = Some(2);
    plan.timeout = Duration::from_millis(100);
    let report = load(&plan);
    assert_eq!(kinds(&report), [(FailureKind::TimedOut, 4)], "{report:?}");
    assert_eq!(report.connections.closed_by_server, 0);
}

#[test]
fn each_misbehaviour_fails_the_request_in_front_and_none_hangs() {
    for_each_fault(|fault, peer| {
        if fault.kinds == [FailureKind::SurplusBytes] {
            // With two requests under way, two answers are as they should be.
            return;
        }
        let mut plan = plan(peer, 4);
        plan.pipeline = Some(2);
        plan.timeout = Duration::from_millis(1_000);
        plan.targets[0].expectation = Expectation::status(200);
        let report = load(&plan);
        let what = format!("{}: {:?}", fault.name, report.errors_by_kind);
        assert_eq!((report.requests, report.errors, report.unanswered), (0, 4, 0), "{what}");
        assert!(kinds(&report).iter().all(|(kind, _)| fault.kinds.contains(kind)), "{what}");
    });
}

#[test]
fn a_run_over_pipelines_ends_at_its_time_and_without_a_server() {
    let peer = Peer::start(Conversation::wait);
    let mut plan = plan(&peer, 0);
    plan.pipeline = Some(5);
    plan.connections = 2;
    plan.stop = Stop::Duration(Duration::from_millis(300));
    let report = load(&plan);
    assert_eq!((report.requests, report.unanswered, report.ended), (0, 10, Ended::Duration));
    assert_eq!(report.service_ns.censored, 10);

    let mut peer = Peer::answering(OK);
    plan.targets = vec![target(&peer, "/a")];
    plan.stop = Stop::Duration(Duration::from_secs(60));
    let began = Instant::now();
    let report = thread::scope(|scope| {
        let running = scope.spawn(|| load(&plan));
        while peer.requests().len() < 100 && began.elapsed() < Duration::from_secs(20) {
            thread::sleep(Duration::from_millis(5));
        }
        peer.kill();
        running.join().unwrap()
    });
    assert_eq!(report.ended, Ended::GaveUp);
    assert!(began.elapsed() < Duration::from_secs(40), "{:?}", began.elapsed());
    assert!(kinds(&report).iter().any(|(kind, _)| *kind == FailureKind::ConnectRefused));
}
