//! What an observer sees of each exchange.

use std::sync::Mutex;
use std::time::Duration;

use milepost_load::{
    Control, Exchanged, FailureKind, Keep, KeepContent, Observer, Outcome, Persistence, Refusal,
    Stop, Version, run_observed,
};

use crate::peer::{OK, Peer};
use crate::{plan, target};

/// What is noted of one exchange.
#[derive(Debug, Clone, PartialEq)]
struct Noted {
    uri: String,
    hop: u32,
    goes_on: bool,
    request: String,
    answer: Result<(u16, String, String, u64), FailureKind>,
    connects: bool,
}

struct Notebook {
    keep: Keep,
    noted: Mutex<Vec<Noted>>,
}

impl Notebook {
    fn new(keep: Keep) -> Self {
        Self { keep, noted: Mutex::default() }
    }

    fn noted(self) -> Vec<Noted> {
        self.noted.into_inner().unwrap()
    }
}

impl Observer for Notebook {
    fn keep(&self) -> Keep {
        self.keep
    }

    fn ended(&self, it: &Exchanged<'_>) {
        assert!(it.began <= it.sent && it.sent <= it.first_byte && it.first_byte <= it.ended);
        assert!(it.connect.is_none_or(|connect| it.began + connect == it.sent));
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let answer = match it.outcome {
            Outcome::Answered(answer) => {
                Ok((answer.status, text(answer.head), text(answer.content), answer.digest))
            }
            Outcome::Failed { kind, .. } => Err(kind),
        };
        self.noted.lock().unwrap().push(Noted {
            uri: it.target.uri(),
            hop: it.hop,
            goes_on: it.goes_on,
            request: text(it.request),
            answer,
            connects: it.connect.is_some(),
        });
    }
}

#[test]
fn heads_and_contents_are_kept_when_asked_for() {
    let chunked =
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
    // In one piece, so that the second is recognised as like the first; in many, so that none is.
    let peer = Peer::start(move |it| {
        while it.request().is_some() {
            match it.number {
                0 => it.send(chunked),
                _ => it.drip(chunked, Duration::from_micros(100)),
            }
        }
    });
    let head = chunked.split_inclusive("\r\n\r\n").next().unwrap();
    for (content, kept) in [
        (KeepContent::Length, ""),
        (KeepContent::Bytes(100), "abcde"),
        (KeepContent::Bytes(4), "abcd"),
    ] {
        let notebook = Notebook::new(Keep { head: true, content });
        run_observed(&plan(&peer, 3), &Control::new(), &notebook).unwrap();
        let noted = notebook.noted();
        assert_eq!(noted.len(), 3);
        for (at, it) in noted.iter().enumerate() {
            let (status, got_head, got_content, _) = it.answer.clone().unwrap();
            assert_eq!((status, &*got_head, &*got_content), (200, head, kept));
            assert_eq!((&*it.uri, it.connects), ("http://localhost/a", at == 0));
            assert!(it.request.starts_with("GET /a HTTP/1.1\r\n"));
        }
    }
}

#[test]
fn a_digest_tells_contents_apart() {
    let peer = Peer::start(|it| {
        for content in ["ab", "ab", "ba"] {
            if it.request().is_none() {
                return;
            }
            it.send(OK.replace("ok", content));
        }
    });
    let notebook = Notebook::new(Keep { head: false, content: KeepContent::Digest });
    run_observed(&plan(&peer, 3), &Control::new(), &notebook).unwrap();
    let digests: Vec<_> = notebook.noted().iter().map(|it| it.answer.clone().unwrap().3).collect();
    assert!(digests[0] == digests[1] && digests[1] != digests[2], "{digests:?}");
}

#[test]
fn the_hops_of_a_chain_are_told_apart() {
    let peer = Peer::start(|it| {
        while let Some(head) = it.request() {
            match head.starts_with("GET /a") {
                true => it.send("HTTP/1.1 301 ?\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n"),
                false => it.send("HTTP/1.1 301 ?\r\nLocation: /a\r\nContent-Length: 0\r\n\r\n"),
            }
        }
    });
    let mut plan = plan(&peer, 1);
    plan.browsing.redirects_max = 9;
    let notebook = Notebook::new(Keep::default());
    run_observed(&plan, &Control::new(), &notebook).unwrap();
    let seen: Vec<_> = notebook
        .noted()
        .into_iter()
        .map(|it| (it.uri, it.hop, it.goes_on, it.answer.map(|answer| answer.0)))
        .collect();
    let uri = |path: &str| format!("http://localhost{path}");
    assert_eq!(
        seen,
        [(uri("/a"), 0, true, Ok(301)), (uri("/b"), 1, false, Err(FailureKind::RedirectLoop))]
    );
}

#[test]
fn version_and_content_of_a_request_go_over_the_wire() {
    let peer = Peer::start(|it| {
        while let Some(head) = it.request() {
            let length = head
                .to_ascii_lowercase()
                .split("content-length: ")
                .nth(1)
                .map_or(0, |rest| rest.split("\r\n").next().unwrap().parse().unwrap());
            let content = String::from_utf8(it.content(length)).unwrap();
            it.send(format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{content}",
                content.len()
            ));
        }
    });
    // More than a socket takes at once.
    let content = "0123456789".repeat(1_000_000);
    let mut plan = plan(&peer, 2);
    let mut upload = target(&peer, "/a");
    upload.method = "PUT".into();
    upload.version = Version::Http10;
    upload.content = content.as_bytes().into();
    upload.expectation = milepost_load::Expectation::status(200).content_bytes(10_000_000);
    plan.targets = vec![upload];
    plan.persistence = Persistence::Unsaid;
    let report = milepost_load::run(&plan, &Control::new()).unwrap();
    assert_eq!((report.requests, report.wrong_answers, report.errors), (2, 0, 0), "{report:?}");
    let head = &peer.requests()[0];
    assert!(head.starts_with("PUT /a HTTP/1.0\r\n"), "{head}");
    assert!(
        !head.contains("Connection:") && head.contains("Content-Length: 10000000\r\n"),
        "{head}"
    );
}

#[test]
fn refused_connections_fail_at_once_when_the_plan_says_so() {
    let mut peer = Peer::answering(OK);
    let mut plan = plan(&peer, 50);
    plan.connections = 3;
    plan.refusal = Refusal::Fail;
    peer.kill();
    let notebook = Notebook::new(Keep::default());
    let report = run_observed(&plan, &Control::new(), &notebook).unwrap();
    assert_eq!((report.requests, report.errors), (0, 50));
    assert!(report.seconds < 1.0, "{}", report.seconds);
    let noted = notebook.noted();
    assert!(
        noted.len() == 50 && noted.iter().all(|it| it.answer == Err(FailureKind::ConnectRefused))
    );

    // And for as long as it takes, until somebody stops the run.
    plan.stop = Stop::Duration(Duration::from_millis(200));
    let report = milepost_load::run(&plan, &Control::new()).unwrap();
    assert!(report.errors > 50 && report.seconds >= 0.2, "{report:?}");
}
