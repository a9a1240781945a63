//! Persistent connections: used as long as the server likes, and its right to end them.

use milepost_load::{FailureKind, Persistence};

use crate::peer::{OK, Peer};
use crate::{kinds, load, plan};

#[test]
fn the_request_says_what_becomes_of_the_connection() {
    for (persistence, field, connections) in [
        (Persistence::KeepAlive, "\r\nConnection: keep-alive\r\n", 1),
        (Persistence::Close, "\r\nConnection: close\r\n", 20),
    ] {
        // The peer leaves it to the client to close.
        let peer = Peer::answering(OK);
        let mut plan = plan(&peer, 20);
        plan.persistence = persistence;
        let report = load(&plan);
        assert_eq!((report.requests, report.errors), (20, 0));
        assert_eq!(peer.connections(), connections);
        assert_eq!(report.connections.opened, connections);
        assert!(peer.requests().iter().all(|head| head.contains(field)));
    }
}

#[test]
fn a_server_may_announce_that_it_closes() {
    let peer = Peer::start(|it| {
        for _ in 0..9 {
            it.request();
            it.send(OK);
        }
        it.request();
        it.send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok");
        it.wait();
    });
    let report = load(&plan(&peer, 100));
    assert_eq!((report.requests, report.errors, report.wrong_answers), (100, 0, 0));
    assert_eq!((peer.connections(), peer.requests().len()), (10, 100));
    assert_eq!((report.connections.closed_by_server, report.connections.resent), (10, 0));
}

#[test]
fn a_server_may_close_without_a_word() {
    let peer = Peer::start(|it| {
        for _ in 0..10 {
            it.request();
            it.send(OK);
        }
    });
    let mut plan = plan(&peer, 1_000);
    plan.connections = 4;
    let report = load(&plan);
    assert_eq!((report.requests, report.errors, report.wrong_answers), (1_000, 0, 0));
    assert_eq!(report.service_ns.samples, 1_000);
    assert!(report.connections.closed_by_server >= 96, "{:?}", report.connections);
}

#[test]
fn a_request_is_sent_again_once() {
    // Each connection answers once and then closes upon a request; a fresh one after that, at once.
    let peer = Peer::start(|it| {
        if it.number == 0 {
            it.request();
            it.send(OK);
        }
        it.request();
    });
    let report = load(&plan(&peer, 2));
    assert_eq!((report.requests, report.errors), (1, 1));
    assert_eq!(kinds(&report), [(FailureKind::ClosedBeforeAnswer, 1)]);
    assert_eq!((report.connections.resent, peer.requests().len()), (1, 3));
}

#[test]
fn a_request_that_is_not_idempotent_is_not_sent_again() {
    let peer = Peer::start(|it| {
        it.request();
        it.send(OK);
        it.request();
    });
    let mut plan = plan(&peer, 2);
    plan.targets[0].method = "POST".to_owned();
    let report = load(&plan);
    assert_eq!((report.requests, report.connections.resent), (1, 0));
    assert_eq!(kinds(&report), [(FailureKind::ClosedBeforeAnswer, 1)]);
}

#[test]
fn http_1_0_closes_unless_it_says_otherwise() {
    let peer = Peer::start(|it| {
        it.request();
        it.send("HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok");
        // Stays open: whoever waits for the end of the connection waits for long.
        it.wait();
    });
    let report = load(&plan(&peer, 20));
    assert_eq!((report.requests, report.errors), (20, 0));
    assert_eq!(peer.connections(), 20);
}
