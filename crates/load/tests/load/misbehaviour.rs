//! Every way in which a server can misbehave, and what each is counted as.
//!
//! One list for the load generator on io_uring and on epoll, and for the drop-ins.

use std::time::{Duration, Instant};

use milepost_load::{Expectation, FailureKind};

use crate::peer::{Conversation, OK, Peer};
use crate::{kinds, load, plan};

/// Far below the patience of the peer, far above what a busy machine needs for an answer.
const TIMEOUT: Duration = Duration::from_millis(1_000);

/// No run in here takes as long.
const ENDS_WITHIN: Duration = Duration::from_secs(30);

/// One way to misbehave, on each connection.
pub(crate) struct Fault {
    pub(crate) name: &'static str,
    script: fn(&mut Conversation),
    /// What it may be counted as: more than one only where the system decides.
    pub(crate) kinds: &'static [FailureKind],
}

/// All of them.
fn faults() -> Vec<Fault> {
    use FailureKind::{
        ClosedBeforeAnswer, ClosedInContent, ClosedInHead, HeadTooLarge, MalformedChunk,
        MalformedHead, Reset, SurplusBytes, TimedOut,
    };
    let fault = |name, kinds, script| Fault { name, script, kinds };
    vec![
        fault("closes without reading", &[ClosedBeforeAnswer, Reset], |_| {}),
        fault("closes instead of an answer", &[ClosedBeforeAnswer], |it| sends(it, "")),
        fault("closes in the status line", &[ClosedInHead], |it| sends(it, "HTTP/1.1 2")),
        fault("closes in a field", &[ClosedInHead], |it| sends(it, "HTTP/1.1 200 OK\r\nA: b")),
        fault("closes after an interim answer", &[ClosedInHead], |it| {
            sends(it, "HTTP/1.1 100 Continue\r\n\r\n")
        }),
        fault("closes in the content", &[ClosedInContent], |it| sends(it, "C5\r\n\r\nabc")),
        fault("closes in a chunk", &[ClosedInContent], |it| sends(it, "T\r\n\r\n5\r\nabc")),
        fault("closes after a chunk", &[ClosedInContent], |it| sends(it, "T\r\n\r\n3\r\nabc\r\n")),
        fault("closes in the trailer", &[ClosedInContent], |it| {
            sends(it, "T\r\n\r\n0\r\nA: b\r\n")
        }),
        fault("resets instead of an answer", &[Reset], |it| resets(it, "")),
        // What has come is lost with a reset, or not.
        fault("resets in the head", &[Reset], |it| resets(it, "HTTP/1.1 200 OK\r\nA")),
        fault("resets in the content", &[Reset], |it| resets(it, "C5\r\n\r\nab")),
        fault("never answers", &[TimedOut], |it| stops(it, "")),
        fault("stops in the head", &[TimedOut], |it| stops(it, "HTTP/1.1 200 OK\r\nA: b\r\n")),
        fault("stops in the content", &[TimedOut], |it| stops(it, "C5\r\n\r\nabc")),
        fault("stops in a chunk", &[TimedOut], |it| stops(it, "T\r\n\r\n5\r\nabc")),
        fault("stops before the last chunk", &[TimedOut], |it| stops(it, "T\r\n\r\n1\r\na\r\n")),
        fault("stops after an interim answer", &[TimedOut], |it| {
            stops(it, "HTTP/1.1 103 Early Hints\r\nA: b\r\n\r\n")
        }),
        fault("keeps a connection open whose end is that of the answer", &[TimedOut], |it| {
            stops(it, "HTTP/1.0 200 OK\r\n\r\nabc")
        }),
        fault("drips its head", &[TimedOut], |it| {
            it.request();
            it.drip(&format!("HTTP/1.1 200 OK\r\nA: {}", "x".repeat(120)), DRIP);
        }),
        fault("drips its content", &[TimedOut], |it| {
            it.request();
            it.send("HTTP/1.1 200 OK\r\nContent-Length: 120\r\n\r\n");
            it.drip(&"x".repeat(120), DRIP);
        }),
        fault("sends one interim answer after the other", &[TimedOut], |it| {
            it.request();
            for _ in 0..120 {
                it.send("HTTP/1.1 102 Processing\r\n\r\n");
                std::thread::sleep(DRIP);
            }
        }),
        fault("sends more than its length", &[SurplusBytes], |it| sends(it, "C1\r\n\r\nok")),
        fault("sends content to 204", &[SurplusBytes], |it| {
            sends(it, "HTTP/1.1 204 No Content\r\n\r\nok")
        }),
        fault("answers twice", &[SurplusBytes], |it| sends(it, &OK.repeat(2))),
        fault("answers twice in chunks", &[SurplusBytes], |it| {
            sends(it, &"T\r\n\r\n1\r\na\r\n0\r\n\r\n".repeat(2))
        }),
        fault("is no HTTP", &[MalformedHead], |it| stops(it, "SSH-2.0-OpenSSH_9.2\r\n\r\n")),
        fault("speaks TLS", &[ClosedInHead, MalformedHead], |it| {
            sends(it, "\u{15}\u{3}\u{1}\0\u{2}\u{2}\u{46}")
        }),
        fault("has a status of two digits", &[MalformedHead], |it| {
            stops(it, "HTTP/1.1 20 OK\r\n\r\n")
        }),
        fault("has a field without a colon", &[MalformedHead], |it| {
            stops(it, "HTTP/1.1 200 OK\r\nno colon\r\n\r\n")
        }),
        fault("has a length that is no number", &[MalformedHead], |it| stops(it, "Cmany\r\n\r\n")),
        fault("has a negative length", &[MalformedHead], |it| stops(it, "C-1\r\n\r\n")),
        fault("has a length beyond all bounds", &[MalformedHead], |it| {
            stops(it, "C99999999999999999999999\r\n\r\n")
        }),
        fault("has two lengths", &[MalformedHead], |it| {
            stops(it, "C1\r\nContent-Length: 2\r\n\r\nab")
        }),
        fault("has two places to go", &[MalformedHead], |it| {
            stops(it, "HTTP/1.1 301 Moved\r\nLocation: /a\r\nLocation: /b\r\n\r\n")
        }),
        fault("has a head without end", &[HeadTooLarge], |it| {
            stops(it, &format!("HTTP/1.1 200 OK\r\n{}", "A: b\r\n".repeat(12_000)))
        }),
        fault("has a line without end", &[HeadTooLarge], |it| stops(it, &"x".repeat(70_000))),
        fault("has a chunk size that is no number", &[MalformedChunk], |it| {
            stops(it, "T\r\n\r\nxyz\r\n")
        }),
        fault("has no chunk size", &[MalformedChunk], |it| stops(it, "T\r\n\r\n\r\nabc")),
        fault("has a chunk size beyond all bounds", &[MalformedChunk], |it| {
            stops(it, "T\r\n\r\nfffffffffffffffff\r\n")
        }),
        fault("has a chunk that is longer than its size", &[MalformedChunk], |it| {
            stops(it, "T\r\n\r\n3\r\nabcd\r\n0\r\n\r\n")
        }),
        fault("has a chunk line without end", &[MalformedChunk], |it| {
            stops(it, &format!("T\r\n\r\n3;{}", "x".repeat(70_000)))
        }),
        fault("has a trailer without end", &[MalformedChunk], |it| {
            stops(it, &format!("T\r\n\r\n0\r\n{}", "A: b\r\n".repeat(12_000)))
        }),
    ]
}

/// Between two bytes of an answer that comes one by one.
const DRIP: Duration = Duration::from_millis(20);

/// Answers and closes. A leading `C` stands for a head with that Content-Length, `T` for one that is
/// chunked.
fn sends(it: &mut Conversation, answer: &str) {
    it.request();
    let head = "HTTP/1.1 200 OK\r\n";
    let answer = answer.replace("T\r\n\r\n", &format!("{head}Transfer-Encoding: chunked\r\n\r\n"));
    it.send(match answer.strip_prefix('C') {
        Some(rest) => format!("{head}Content-Length: {rest}"),
        None => answer,
    });
}

/// Answers and waits for the client to go.
fn stops(it: &mut Conversation, answer: &str) {
    sends(it, answer);
    it.wait();
}

/// Answers, lets the answer arrive, and resets.
fn resets(it: &mut Conversation, answer: &str) {
    sends(it, answer);
    std::thread::sleep(Duration::from_millis(20));
    it.reset();
}

impl Fault {
    /// A server that does this.
    fn start(&self) -> Peer {
        Peer::start(self.script)
    }

    /// Whether something goes on coming: what waits for the next byte waits for the end.
    #[allow(dead_code, reason = "the drop-ins wait like that, and not every suite has them")]
    pub(crate) fn goes_on(&self) -> bool {
        self.name.starts_with("drips") || self.name.starts_with("sends one interim")
    }
}

/// Runs `check` for each fault, all at a time: most of them wait.
pub(crate) fn for_each_fault(check: impl Fn(&Fault, &Peer) + Sync) {
    std::thread::scope(|scope| {
        for fault in faults() {
            let check = &check;
            scope.spawn(move || {
                let peer = fault.start();
                let began = Instant::now();
                check(&fault, &peer);
                assert!(began.elapsed() < ENDS_WITHIN, "{}: {:?}", fault.name, began.elapsed());
            });
        }
    });
}

#[test]
fn each_is_counted_as_what_it_is_with_an_example() {
    for_each_fault(|fault, peer| {
        let mut plan = plan(peer, 4);
        plan.connections = 2;
        plan.timeout = TIMEOUT;
        plan.targets[0].expectation = Expectation::status(200);
        let report = load(&plan);
        let what = format!("{}: {:?}", fault.name, report.errors_by_kind);
        assert_eq!((report.requests, report.errors, report.unanswered), (0, 4, 0), "{what}");
        assert!(kinds(&report).iter().all(|(kind, _)| fault.kinds.contains(kind)), "{what}");
        for error in &report.errors_by_kind {
            assert!(error.example.starts_with("http://localhost/a: "), "{what}");
        }
    });
}

#[test]
fn what_a_server_may_do_is_no_fault() {
    for (name, answer) in [
        ("HTTP/1.0 that stays open", "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok"),
        (
            "HTTP/1.0 that says so",
            "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok",
        ),
        (
            "interim answers first",
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 ?\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
        ),
        (
            "chunks with extensions",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;a=\"b\"\r\nok\r\n000\r\nA: b\r\n\r\n",
        ),
    ] {
        let peer = Peer::answering(answer);
        let mut plan = plan(&peer, 10);
        plan.timeout = TIMEOUT;
        plan.targets[0].expectation = Expectation::status(200).content_bytes(2);
        let began = Instant::now();
        let report = load(&plan);
        assert_eq!((report.requests, report.wrong_answers), (10, 0), "{name}: {report:?}");
        assert!(began.elapsed() < TIMEOUT, "{name}: {:?}", began.elapsed());
    }
}
