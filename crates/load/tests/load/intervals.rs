//! What is told while a run goes on, and a run in shares.

use std::time::Duration;

use milepost_load::{Arrival, Control, Interval, Report, Share, ShareResult, Stop, run, run_share};

use crate::peer::{OK, Peer};
use crate::{plan, target};

const TENTH: Duration = Duration::from_millis(100);

#[test]
fn the_intervals_of_a_run_add_up_to_its_report() {
    let peer = Peer::answering(OK);
    for threads in [1, 3] {
        let mut plan = plan(&peer, 0);
        (plan.connections, plan.threads) = (6, threads);
        plan.stop = Stop::Duration(Duration::from_millis(450));
        let control = Control::new().watching(TENTH);
        let report = run(&plan, &control).unwrap();
        let intervals = control.take_intervals();
        let numbers: Vec<_> = intervals.iter().map(|interval| interval.number).collect();
        assert_eq!(numbers, [0, 1, 2, 3, 4]);
        check(&intervals, &report);
        assert_eq!(intervals[3].start, TENTH * 3);
        assert!(intervals[4].length >= TENTH / 2 && intervals[4].length < TENTH * 20);
        assert_eq!(control.take_intervals().len(), 0);
    }
}

#[test]
fn a_run_of_whole_intervals_has_no_crumb_at_its_end() {
    let peer = Peer::answering(OK);
    let mut plan = plan(&peer, 0);
    plan.stop = Stop::Duration(TENTH * 3);
    let control = Control::new().watching(TENTH);
    let report = run(&plan, &control).unwrap();
    let intervals = control.take_intervals();
    assert_eq!(intervals.len(), 3);
    check(&intervals, &report);
}

#[test]
fn nothing_is_kept_unless_it_is_watched() {
    let peer = Peer::answering(OK);
    let control = Control::new();
    run(&plan(&peer, 10), &control).unwrap();
    assert_eq!(control.take_intervals().len(), 0);
    assert_eq!((control.progress().sent, control.progress().answered), (10, 10));
}

#[test]
fn shares_make_the_report_of_the_whole() {
    let peer = Peer::answering(OK);
    let mut whole = plan(&peer, 1_001);
    (whole.connections, whole.threads) = (7, 2);
    whole.targets.push(target(&peer, "/b"));
    let shares = (0..3).map(|index| {
        let mut plan = whole.clone();
        plan.share = Share { index, of: 3 };
        let share = run_share(&plan, &Control::new()).unwrap();
        // As it goes from one process to another.
        let text = serde_json::to_string(&share).unwrap();
        serde_json::from_str::<ShareResult>(&text).unwrap()
    });
    let shares: Vec<_> = shares.collect();
    let report = ShareResult::report(&whole, shares).unwrap();
    assert_eq!((report.requests, report.errors, report.unanswered), (1_001, 0, 0));
    assert_eq!(report.service_ns.samples, 1_001);
    assert_eq!(report.statuses[&200], 1_001);
    assert_eq!((report.connections.opened, report.generator.threads), (7, 6));
    assert_eq!(peer.requests().len(), 1_001);
}

#[test]
fn shares_of_an_open_loop_send_each_request_once() {
    let peer = Peer::answering(OK);
    let mut whole = plan(&peer, 100);
    whole.connections = 4;
    whole.arrival = Arrival::uniform(1_000.0);
    let sent: Vec<_> = (0..3)
        .map(|index| {
            let mut plan = whole.clone();
            plan.share = Share { index, of: 3 };
            let result = run_share(&plan, &Control::new()).unwrap();
            ShareResult::report(&plan, vec![result]).unwrap().requests
        })
        .collect();
    assert_eq!(sent, [34, 33, 33]);
}

#[test]
fn each_share_needs_a_connection() {
    let peer = Peer::answering(OK);
    let mut plan = plan(&peer, 10);
    (plan.connections, plan.share) = (2, Share { index: 0, of: 3 });
    let error = run_share(&plan, &Control::new()).unwrap_err().to_string();
    assert_eq!(error, "3 processes need as many connections, and there are 2");
}

#[track_caller]
fn check(intervals: &[Interval], report: &Report) {
    let sum = |count: fn(&Interval) -> u64| intervals.iter().map(count).sum::<u64>();
    assert_eq!(sum(|it| it.counts.requests), report.requests);
    assert_eq!(sum(|it| it.counts.wrong_answers), report.wrong_answers);
    assert_eq!(sum(|it| it.counts.errors), report.errors);
    assert_eq!(sum(|it| it.counts.bytes_received), report.bytes.received);
    assert_eq!(sum(|it| it.response.len()), report.response_ns.samples);
    assert_eq!(sum(|it| it.service.len()), report.service_ns.samples);
    assert_eq!(sum(|it| it.service.censored_len()), report.service_ns.censored);
    assert!(intervals.iter().all(|it| it.counts.requests > 0), "{intervals:?}");
}
