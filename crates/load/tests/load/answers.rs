//! What counts as an answer, and as the right one.

use std::time::Duration;

use milepost_load::{Control, Expectation, Order, Plan, run};

use crate::peer::{OK, Peer};
use crate::{load, plan, target};

/// The first law: whoever removes the check of the answer breaks this test.
#[test]
fn a_wrong_location_is_counted_and_never_timed() {
    let wrong = "HTTP/1.1 301 Moved\r\nLocation: http://h/new/1\r\nContent-Length: 0\r\n\r\n";
    let right = wrong.replace("new/1", "new/10000");
    let peer = Peer::start(move |it| {
        while let Some(head) = it.request() {
            it.send(if head.starts_with("GET /test/10000 ") { &right } else { wrong });
        }
    });
    let expectation = Expectation::redirect(301, "http://h/new/10000");
    let mut plan = plan(&peer, 100);
    plan.targets = vec![
        target(&peer, "/test/10000").expect(expectation.clone()),
        target(&peer, "/test/2").expect(expectation),
    ];
    let report = load(&plan);
    assert_eq!((report.requests, report.wrong_answers, report.errors), (100, 50, 0));
    assert_eq!((report.service_ns.samples, report.response_ns.samples), (50, 50));
    let rate = report.requests_per_second * report.seconds;
    assert!((rate - 50.0).abs() < 0.001, "only right answers make the rate: {rate}");
    let example = &report.wrong_answer_examples[0];
    assert_eq!(example.url, "http://localhost/test/2");
    assert_eq!(example.expected, "status 301, Location http://h/new/10000");
    assert_eq!(example.got, "status 301, Location http://h/new/1");
}

#[test]
fn without_an_expectation_an_error_status_is_wrong() {
    let peer = Peer::answering("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n");
    let report = load(&plan(&peer, 10));
    assert_eq!((report.requests, report.wrong_answers), (10, 10));
    assert_eq!(report.service_ns.p50, None);
    assert_eq!(report.statuses.get(&503), Some(&10));
}

#[test]
fn answers_end_where_their_framing_says() {
    check("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 0);
    check(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nA: b\r\n\r\n",
        5,
    );
    check("HTTP/1.1 204 No Content\r\n\r\n", 0);
    check("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", 0);
    check(
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nA: b\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx",
        1,
    );
    check("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 3\r\n\r\nabc", 3);
    check(
        &format!("HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n{}", "x".repeat(300_000)),
        300_000,
    );

    /// The answer on a persistent connection, twenty times.
    #[track_caller]
    fn check(answer: &str, content_bytes: u64) {
        let peer = Peer::answering(answer);
        let mut plan = plan(&peer, 20);
        plan.targets[0].expectation = Expectation::default().content_bytes(content_bytes);
        let report = load(&plan);
        assert_eq!((report.requests, report.wrong_answers, report.errors), (20, 0, 0));
        assert_eq!(report.bytes.content, 20 * content_bytes);
        assert_eq!(report.bytes.received, 20 * answer.len() as u64);
        assert_eq!(peer.connections(), 1);
    }
}

#[test]
fn answers_without_length_end_with_the_connection() {
    for answer in ["HTTP/1.1 200 OK\r\n\r\nabc", "HTTP/1.0 200 OK\r\nServer: x\r\n\r\nabc"] {
        let peer = Peer::start(move |it| {
            it.request();
            it.send(answer);
        });
        let mut plan = plan(&peer, 20);
        plan.targets[0].expectation = Expectation::status(200).content_bytes(3);
        let report = load(&plan);
        assert_eq!((report.requests, report.wrong_answers, report.errors), (20, 0, 0));
        assert_eq!(peer.connections(), 20);
    }
}

#[test]
fn an_answer_to_head_has_no_content() {
    let peer = Peer::answering("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n");
    let mut plan = plan(&peer, 20);
    plan.targets[0].method = "HEAD".to_owned();
    let report = load(&plan);
    assert_eq!((report.requests, report.wrong_answers, report.errors), (20, 0, 0));
    assert!(peer.requests()[0].starts_with("HEAD /a HTTP/1.1\r\n"));
}

#[test]
fn an_answer_may_come_byte_by_byte() {
    let answer = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
    let peer = Peer::start(move |it| {
        while it.request().is_some() {
            it.drip(answer, Duration::from_micros(500));
        }
    });
    let report = load(&plan(&peer, 5));
    assert_eq!((report.requests, report.wrong_answers, report.errors), (5, 0, 0));
    let drip = Duration::from_micros(500) * answer.len() as u32;
    assert!(
        u128::from(report.service_ns.p50.unwrap()) >= drip.as_nanos(),
        "{:?}",
        report.service_ns
    );
    assert!(report.first_byte_ns.p50 < report.service_ns.p50);
}

#[test]
fn content_of_another_length_is_wrong() {
    let peer = Peer::answering(OK);
    let mut plan = plan(&peer, 10);
    plan.targets[0].expectation = Expectation::status(200).content_bytes(8);
    let report = load(&plan);
    assert_eq!(report.wrong_answers, 10);
    assert_eq!(report.wrong_answer_examples[0].got, "status 200, 2 bytes of content");
}

#[test]
fn targets_are_taken_in_order_over_all_threads() {
    let peer = Peer::answering(OK);
    let mut plan = plan(&peer, 9_000);
    plan.targets = (0..9).map(|at| target(&peer, &format!("/{at}"))).collect();
    plan.connections = 5;
    plan.threads = 2;
    let report = load(&plan);
    assert_eq!((report.requests, report.errors), (9_000, 0));
    assert_eq!(counts(&peer, 9), [1_000; 9]);
}

#[test]
fn random_order_is_even_and_follows_the_seed() {
    let order = |seed| {
        let peer = Peer::answering(OK);
        let mut plan = plan(&peer, 4_000);
        plan.targets = (0..4).map(|at| target(&peer, &format!("/{at}"))).collect();
        plan.order = Order::Random;
        plan.seed = seed;
        load(&plan);
        // Each is drawn 1,000 times on average, with a standard deviation of 27.
        assert!(counts(&peer, 4).iter().all(|count| (800..1_200).contains(count)));
        peer.requests()
    };
    assert_eq!(order(1), order(1));
    assert_ne!(order(1), order(2));
}

#[test]
fn several_origins_each_have_their_connections() {
    let (first, second) = (Peer::answering(OK), Peer::answering(OK));
    let mut plan = Plan::new(vec![target(&first, "/a"), target(&second, "/b")]);
    plan.connections = 3;
    plan.stop = milepost_load::Stop::Requests(600);
    let report = run(&plan, &Control::new()).unwrap();
    assert_eq!((report.requests, report.errors), (600, 0));
    assert_eq!((first.requests().len(), second.requests().len()), (300, 300));
    assert!(first.connections() <= 3 && second.connections() <= 3);
}

/// How often `/0` to `/n-1` were requested.
fn counts(peer: &Peer, n: usize) -> Vec<usize> {
    let requests = peer.requests();
    let count = |at| requests.iter().filter(|it| it.starts_with(&format!("GET /{at} "))).count();
    (0..n).map(count).collect()
}
