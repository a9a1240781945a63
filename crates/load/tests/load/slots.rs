//! What each connection does by itself: its way through the list, its requests, its rests, its socket.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use milepost_load::{FailureKind, Order, Persistence, Stop, TimeoutFrom};

use crate::peer::{OK, Peer};
use crate::{kinds, load, plan, target};

#[test]
fn each_connection_walks_the_list_from_its_own_start() {
    let peer = Peer::answering(OK);
    for (threads, connections, each) in [(1, 2, 4), (2, 4, 4), (2, 3, 9)] {
        let mut plan = plan(&peer, 0);
        plan.targets = (0..4).map(|number| target(&peer, &format!("/{number}"))).collect();
        plan.order = Order::Each;
        plan.stop = Stop::RequestsEach(each);
        plan.threads = threads;
        plan.connections = connections;
        let before = peer.requests().len();
        let report = load(&plan);
        assert_eq!(report.requests, connections as u64 * each);
        let requests = peer.requests();
        let count = |path: &str| {
            requests[before..]
                .iter()
                .filter(|head| head.starts_with(&format!("GET {path} ")))
                .count()
        };
        let counts: Vec<_> = (0..4).map(|number| count(&format!("/{number}"))).collect();
        let expected = match connections {
            // Starts at 0, 1 and 2, and each walks twice around and one more.
            3 => vec![7, 7, 7, 6],
            connections => vec![connections; 4],
        };
        assert_eq!(counts, expected, "{connections} connections");
    }
}

#[test]
fn a_rest_is_not_longer_than_its_limit_and_in_no_time() {
    let peer = Peer::answering(OK);
    let mut plan = plan(&peer, 0);
    plan.connections = 4;
    plan.stop = Stop::RequestsEach(11);
    plan.pause_max = Duration::from_millis(40);
    let began = Instant::now();
    let report = load(&plan);
    // Ten rests of 20 ms in the mean, on four connections at the same time.
    let took = began.elapsed();
    assert!(took > Duration::from_millis(100) && took < Duration::from_secs(2), "{took:?}");
    assert_eq!(report.requests, 44);
    assert!(report.response_ns.max.unwrap() < 20_000_000, "a rest is no response time");
}

#[test]
fn a_run_ends_with_what_comes_first() {
    let peer = Peer::answering(OK);
    let mut plan = plan(&peer, 0);
    plan.stop = Stop::Either(20, Duration::from_secs(60));
    let report = load(&plan);
    assert_eq!((report.requests, report.ended), (20, milepost_load::Ended::Requests));
    plan.stop = Stop::Either(u64::MAX, Duration::from_millis(50));
    assert_eq!(load(&plan).ended, milepost_load::Ended::Duration);
}

#[test]
fn an_answer_that_goes_on_may_take_its_time_if_the_plan_says_so() {
    let peer = Peer::start(|it| {
        while it.request().is_some() {
            it.drip(OK, Duration::from_millis(10));
        }
    });
    let mut plan = plan(&peer, 1);
    plan.timeout = Duration::from_millis(200);
    assert_eq!(kinds(&load(&plan)), [(FailureKind::TimedOut, 1)]);
    plan.timeout_from = TimeoutFrom::LastByte;
    assert_eq!(load(&plan).requests, 1);
}

#[test]
fn connections_come_from_the_addresses_of_the_plan() {
    let peer = Peer::start(|it| {
        let status = if it.client().ip() == IpAddr::from([127, 0, 0, 7]) { "207" } else { "209" };
        while it.request().is_some() {
            it.send(OK.replace("200", status));
        }
    });
    let mut plan = plan(&peer, 10);
    plan.persistence = Persistence::Close;
    plan.sources = vec![[127, 0, 0, 7].into(), [127, 0, 0, 9].into()];
    plan.socket_buffer = Some(16 * 1024);
    let report = load(&plan);
    assert_eq!(report.statuses.into_iter().collect::<Vec<_>>(), [(207, 5), (209, 5)]);
}

#[test]
fn how_long_a_server_keeps_a_used_connection_is_told() {
    let kept = Duration::from_millis(600);
    let keeping = Peer::start(move |it| {
        it.request();
        it.send(OK);
        std::thread::sleep(kept);
    });
    let mut plan = plan(&keeping, 3);
    plan.persistence = Persistence::Unsaid;
    assert_eq!(load(&plan).linger, None);

    plan.linger_max = Some(Duration::from_secs(10));
    let began = Instant::now();
    let report = load(&plan);
    let linger = report.linger.unwrap();
    assert!(linger.closed && (0.5..5.0).contains(&linger.seconds), "{linger:?}");
    assert!(began.elapsed() >= kept && report.seconds < 0.5, "waiting is not part of the run");

    plan.linger_max = Some(Duration::from_millis(50));
    let linger = load(&plan).linger.unwrap();
    assert!(!linger.closed && linger.seconds < 0.5, "{linger:?}");

    let closing = Peer::start(|it| {
        it.request();
        it.send(OK);
    });
    plan.targets = vec![target(&closing, "/a")];
    plan.linger_max = Some(Duration::from_secs(10));
    let linger = load(&plan).linger.unwrap();
    assert!(linger.closed && linger.seconds < 1.0, "{linger:?}");
}
