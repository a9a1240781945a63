//! Backends that close, reset, lie, drip or say nothing.

use std::thread;
use std::time::Duration;

use crate::support::{Backend, NOBODY, Proxy, eventually};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

#[test]
fn an_idle_connection_that_was_closed_is_not_used() {
    // It gives up its connection after each answer, without a word.
    let backend = Backend::start(|link| {
        link.request();
        link.say(OK);
    });
    let proxy = Proxy::start(&format!("ProxyPass / http://{}/", backend.address));
    let mut client = proxy.connect();
    for number in 1..=5 {
        client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx");
        assert_eq!(client.answer(false).content, "ok");
        assert_eq!(backend.connections(), number);
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_request_that_met_a_closing_connection_is_sent_again() {
    // The second request of a connection is read, and the connection closed instead of an answer.
    let backend = Backend::start(|link| {
        link.request();
        link.say(OK);
        link.request();
    });
    let proxy = Proxy::start(&format!("ProxyPass / http://{}/", backend.address));
    let mut client = proxy.connect();
    for _ in 0..4 {
        client.send(b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc");
        assert_eq!(client.answer(false).content, "ok");
    }
    let requests = backend.requests();
    assert!(requests.iter().all(|request| request.content == b"abc"));
    assert_eq!((requests.len(), backend.connections()), (7, 4));
}

#[test]
fn a_request_that_may_do_harm_is_never_sent_twice() {
    let backend = Backend::start(|link| {
        link.request();
        if link.number == 0 {
            link.say(OK);
            link.request();
        }
    });
    let proxy = Proxy::start(&format!("ProxyPass / http://{}/", backend.address));
    let post = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx";
    assert_eq!(proxy.get("/").status, 200);
    assert_eq!(proxy.ask(post).status, 502);
    assert_eq!(backend.requests().len(), 2);
}

#[test]
fn a_request_that_may_do_harm_goes_on_a_young_connection_or_a_new_one() {
    let backend = Backend::answering(OK);
    let proxy = Proxy::start(&format!("ProxyPass / http://{}/", backend.address));
    let post = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx";
    proxy.get("/");
    proxy.ask(post);
    assert_eq!(backend.connections(), 1);
    thread::sleep(Duration::from_millis(1100));
    proxy.get("/");
    assert_eq!(backend.connections(), 1);
    thread::sleep(Duration::from_millis(1100));
    proxy.ask(post);
    assert_eq!(backend.connections(), 2);
}

#[test]
fn failures_have_statuses_and_documents() {
    let silent = Backend::start(|link| while link.more().is_some() {});
    let closing = Backend::start(|link| {
        link.request();
    });
    let garbage = Backend::answering("SSH-2.0-x\r\n\r\n");
    let lengths =
        Backend::answering("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab");
    let endless = Backend::start(|link| {
        link.request();
        link.say("HTTP/1.1 200 OK\r\n");
        for _ in 0..3000 {
            link.say("X-Padding: 0123456789012345678901234567890123456789\r\n");
        }
    });
    // All of it may be there with one read.
    let large = Backend::start(|link| {
        link.request();
        let field = "x".repeat(65_536);
        link.say(&format!("HTTP/1.1 200 OK\r\nX: {field}\r\nContent-Length: 0\r\n\r\n"));
    });
    let proxy = Proxy::start(&format!(
        "ProxyPass /large http://{}/\nProxyPass /silent http://{}/ timeout=1\nProxyPass /closing http://{}/\n\
         ProxyPass /garbage http://{}/\nProxyPass /lengths http://{}/\n\
         ProxyPass /endless http://{}/\nProxyPass /refused http://{NOBODY}/\n\
         ProxyPass /socket unix:@ROOT@/none.sock|http://localhost/\n\
         <Location /refused>\nErrorDocument 503 \"come back later\"\n</Location>\n\
         <Location /closing>\nErrorDocument 502 /document.html\n</Location>",
        large.address,
        silent.address,
        closing.address,
        garbage.address,
        lengths.address,
        endless.address,
    ));
    std::fs::write(proxy.directory.path().join("document.html"), "a document").unwrap();
    for (target, status, content) in [
        ("/silent", 504, "<p>The server behind this one sent no answer within 1.0 s.</p>"),
        ("/closing", 502, "a document"),
        (
            "/garbage",
            502,
            "<p>The server behind this one gave an answer that cannot be understood.</p>",
        ),
        ("/lengths", 502, "502 Bad Gateway"),
        ("/endless", 502, "502 Bad Gateway"),
        ("/large", 502, "502 Bad Gateway"),
        ("/refused", 503, "come back later"),
        // It is left alone for a while: the same answer, without asking.
        ("/refused", 503, "come back later"),
        ("/socket", 503, "<p>The server behind this one cannot be reached.</p>"),
        (
            "/socket",
            503,
            "<p>The server behind this one failed a moment ago, and is asked again in ",
        ),
    ] {
        let answer = proxy.get(target);
        assert_eq!(answer.status, status, "{target} {answer:?}");
        assert!(answer.content.contains(content), "{target} {answer:?}");
        for inner in ["127.0.0.1", "none.sock"] {
            assert!(!answer.content.contains(inner), "{target} tells where: {answer:?}");
        }
    }
}

#[test]
fn an_answer_that_cannot_be_ended_is_cut_off() {
    for answer in [
        "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nshort\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nshort\r\nzz\r\n",
    ] {
        let backend = Backend::start(move |link| {
            link.request();
            link.say(answer);
        });
        let proxy = Proxy::start(&format!("ProxyPass / http://{}/", backend.address));
        let got = proxy.get("/");
        assert_eq!((got.status, got.whole), (200, false), "{answer:?} {got:?}");
    }
}

#[test]
fn what_follows_an_answer_is_nobodys() {
    // More than it said: the next request must not get the rest as its answer.
    let backend = Backend::answering(
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 500 Evil\r\n\r\n",
    );
    let proxy = Proxy::start(&format!("ProxyPass / http://{}/", backend.address));
    let mut client = proxy.connect();
    for _ in 0..5 {
        client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        let answer = client.answer(false);
        assert_eq!((answer.status, &*answer.content), (200, "ok"), "{answer:?}");
    }
    // Both framings at once: the first that counts is believed, and the connection not used again.
    let backend = Backend::answering(
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    );
    let proxy = Proxy::start(&format!("ProxyPass / http://{}/", backend.address));
    for number in 1..3 {
        let answer = proxy.get("/");
        assert_eq!(answer.content, "abc");
        assert_eq!(answer.field("Content-Length"), None);
        assert_eq!(backend.connections(), number);
    }
}

#[test]
fn a_client_that_does_not_read_slows_the_backend_down() {
    let sent = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counter = std::sync::Arc::clone(&sent);
    let backend = Backend::start(move |link| {
        link.request();
        link.say("HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n");
        let piece = vec![b'x'; 64 * 1024];
        while std::io::Write::write_all(&mut link.stream, &piece).is_ok() {
            counter.fetch_add(piece.len(), std::sync::atomic::Ordering::SeqCst);
        }
    });
    let proxy = Proxy::start(&format!("ProxyPass / http://{}/", backend.address));
    let mut client = proxy.connect();
    client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    client.head();
    thread::sleep(Duration::from_millis(500));
    // The buffers of the sockets and one piece: far from a gigabyte.
    let taken = sent.load(std::sync::atomic::Ordering::SeqCst);
    assert!(taken < 64 * 1024 * 1024, "{taken}");
    drop(client);
    // The backend is told when the client has gone.
    let done = || {
        std::sync::Arc::strong_count(&sent) == 1 || {
            let before = sent.load(std::sync::atomic::Ordering::SeqCst);
            thread::sleep(Duration::from_millis(50));
            before == sent.load(std::sync::atomic::Ordering::SeqCst)
        }
    };
    eventually("the backend's connection to end", done);
}

#[test]
fn an_error_of_the_backend_may_be_answered_here() {
    let backend = Backend::answering("HTTP/1.1 500 Oops\r\nContent-Length: 6\r\n\r\nsecret");
    let proxy = Proxy::start(&format!(
        "ProxyPass /a http://{0}/\nProxyPass /b http://{0}/\n\
         <Location /a>\nProxyErrorOverride On\nErrorDocument 500 \"ours\"\n</Location>\n\
         <Location /b>\nProxyErrorOverride On 404\n</Location>",
        backend.address
    ));
    let answer = proxy.get("/a");
    assert_eq!((answer.status, &*answer.content), (500, "ours"));
    let answer = proxy.get("/b");
    assert_eq!((answer.status, &*answer.content), (500, "secret"));
    assert!(answer.head.starts_with("HTTP/1.1 500 Oops\r\n"));
}

#[test]
fn a_client_that_stops_in_its_content_is_told_so() {
    let backend = Backend::answering(OK);
    let proxy = Proxy::start(&format!("ProxyPass / http://{}/\nTimeout 1", backend.address));
    let answer = proxy.ask("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc");
    assert_eq!((answer.status, answer.field("Connection")), (408, Some("close")));
    assert_eq!(backend.connections(), 0);
}
