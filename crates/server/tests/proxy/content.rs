//! Content of requests: kept until it is complete, or passed on while it comes.

use std::thread;
use std::time::Duration;

use crate::support::{Backend, Proxy, eventually, field};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

#[test]
fn no_connection_is_taken_before_the_content_is_complete() {
    let backend = Backend::answering(OK);
    let proxy = Proxy::start(&format!("ProxyPass / http://{}/", backend.address));
    let mut client = proxy.connect();
    client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\n");
    for byte in b"slowl" {
        client.send(&[*byte]);
        thread::sleep(Duration::from_millis(60));
    }
    assert_eq!(backend.connections(), 0);
    client.send(b"y");
    assert_eq!(client.answer(false).content, "ok");
    assert_eq!(backend.requests()[0].content, b"slowly");
}

#[test]
fn large_content_arrives_whole_with_a_length() {
    let backend = Backend::answering(OK);
    let proxy = Proxy::start(&format!("ProxyPass / http://{}/", backend.address));
    let content: Vec<u8> = (0..3 * 1024 * 1024).map(|number| (number % 251) as u8).collect();
    let mut client = proxy.connect();
    let head = format!("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", content.len());
    client.send(&[head.as_bytes(), &content].concat());
    assert_eq!(client.answer(false).status, 200);
    client.send(b"PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
    for piece in content.chunks(100_000) {
        client.send(format!("{:x};ext\r\n", piece.len()).as_bytes());
        client.send(&[piece, b"\r\n"].concat());
    }
    client.send(b"0\r\nX-T: 1\r\n\r\n");
    assert_eq!(client.answer(false).status, 200);
    for request in backend.requests() {
        assert!(request.content == content);
        assert_eq!(field(&request.head, "Content-Length"), Some("3145728"));
        assert_eq!(field(&request.head, "Transfer-Encoding"), None);
    }
}

#[test]
fn content_may_be_passed_on_while_it_comes() {
    let backend = Backend::answering(OK);
    let proxy = Proxy::start(&format!(
        "ProxyPass / http://{}/\nSetEnv proxy-request-buffering off",
        backend.address
    ));
    let mut client = proxy.connect();
    client.send(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
    thread::sleep(Duration::from_millis(100));
    // Nothing to send, no connection.
    assert_eq!(backend.connections(), 0);
    client.send(b"3\r\nabc\r\n");
    eventually("the connection", || backend.connections() == 1);
    client.send(b"2\r\nde\r\n0\r\nX-T: 1\r\nContent-Length: 9\r\n\r\n");
    assert_eq!(client.answer(false).content, "ok");
    let request = &backend.requests()[0];
    assert_eq!(request.content, b"abcde");
    assert_eq!(request.trailers, "X-T: 1\n");

    // Another one, which has no idle connection yet.
    let proxy = Proxy::start(&format!(
        "ProxyPass / http://{}/\nSetEnv proxy-sendchunked 1",
        backend.address
    ));
    let mut client = proxy.connect();
    client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab");
    eventually("the connection", || backend.connections() == 2);
    client.send(b"cde");
    assert_eq!(client.answer(false).content, "ok");
    assert_eq!(field(&backend.requests()[1].head, "Content-Length"), Some("5"));
}

#[test]
fn a_client_that_waits_to_be_asked_is_asked() {
    let backend = Backend::answering(OK);
    let proxy = Proxy::start(&format!("ProxyPass / http://{}/", backend.address));
    let mut client = proxy.connect();
    for _ in 0..2 {
        client.send(
            b"POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n",
        );
        assert_eq!(client.head(), "HTTP/1.1 100 Continue\r\n\r\n");
        client.send(b"hi");
        assert_eq!(client.answer(false).content, "ok");
    }
    assert_eq!(field(&backend.requests()[0].head, "Expect"), None);
}

#[test]
fn an_answer_may_come_before_the_content_has() {
    let backend = Backend::start(|link| {
        link.head();
        link.say("HTTP/1.1 413 Too Much\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno");
        while link.more().is_some() {}
    });
    let proxy = Proxy::start(&format!(
        "ProxyPass / http://{}/\nSetEnv proxy-request-buffering off",
        backend.address
    ));
    let mut client = proxy.connect();
    client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\nsome");
    let answer = client.answer(false);
    assert_eq!((answer.status, &*answer.content), (413, "no"), "{answer:?}");
}

#[test]
fn content_beyond_the_limit_reaches_no_backend() {
    let backend = Backend::answering(OK);
    let proxy =
        Proxy::start(&format!("ProxyPass / http://{}/\nLimitRequestBody 10", backend.address));
    let with = |fields: &str| proxy.ask(&format!("POST / HTTP/1.1\r\nHost: a\r\n{fields}"));
    assert_eq!(with("Content-Length: 10\r\n\r\n0123456789").status, 200);
    let answer = with("Content-Length: 11\r\n\r\n0123456789a");
    assert_eq!((answer.status, answer.field("Connection")), (413, Some("close")));
    let answer = with("Transfer-Encoding: chunked\r\n\r\nb\r\n0123456789a\r\n0\r\n\r\n");
    assert_eq!(answer.status, 413);
    assert_eq!(backend.connections(), 1);
}

#[test]
fn content_that_cannot_be_framed_reaches_no_backend() {
    let backend = Backend::answering(OK);
    let proxy = Proxy::start(&format!("ProxyPass / http://{}/", backend.address));
    for (rest, status) in [
        ("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        ("Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", 400),
        ("Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 400),
        ("Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501),
        ("Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
        ("Transfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n", 400),
        ("Content-Length : 3\r\n\r\nabc", 400),
        ("Content-Length: +3\r\n\r\nabc", 400),
        ("X: a\r\n b\r\n\r\n", 400),
        ("X: a\rb\r\n\r\n", 400),
    ] {
        let answer = proxy.ask(&format!("POST / HTTP/1.1\r\nHost: a\r\n{rest}"));
        assert_eq!(answer.status, status, "{rest:?}");
        assert_eq!(answer.field("Connection"), Some("close"), "{rest:?}");
    }
    assert_eq!(backend.connections(), 0);
}

#[test]
fn a_connection_can_be_upgraded() {
    let backend = Backend::start(|link| {
        let head = link.head().unwrap();
        assert_eq!(field(&head, "Upgrade"), Some("websocket"), "{head}");
        assert_eq!(field(&head, "Connection"), Some("Upgrade"), "{head}");
        link.say("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nfirst");
        while let Some(byte) = link.bytes(1) {
            link.say(&format!("<{}>", char::from(byte[0])));
        }
        link.say("end");
    });
    let proxy = Proxy::start(&format!("ProxyPass / http://{}/ upgrade=websocket", backend.address));
    let mut client = proxy.connect();
    client.send(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\r\n");
    let answer = client.head();
    assert!(answer.starts_with("HTTP/1.1 101 Switching Protocols\r\n"), "{answer}");
    assert_eq!(field(&answer, "Upgrade"), Some("websocket"));
    assert_eq!(client.bytes(5), "first");
    client.send(b"a");
    assert_eq!(client.bytes(3), "<a>");
    client.send(b"bc");
    assert_eq!(client.bytes(6), "<b><c>");
    client.stream.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(client.bytes(3), "end");
    assert!(!client.more());
}

#[test]
fn an_upgrade_that_is_not_allowed_is_not_passed_on() {
    let backend = Backend::answering(OK);
    let proxy = Proxy::start(&format!("ProxyPass / http://{}/", backend.address));
    let answer =
        proxy.ask("GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
    assert_eq!(answer.status, 200);
    assert_eq!(field(&backend.requests()[0].head, "Upgrade"), None);
    // And a backend that upgrades what nobody asked for is not believed.
    let backend = Backend::answering("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n");
    let proxy = Proxy::start(&format!("ProxyPass / http://{}/", backend.address));
    assert_eq!(proxy.get("/").status, 502);
}

#[test]
fn a_backend_without_patience_gets_an_upload_that_pauses() {
    // As a servlet container with a short `connectionTimeout`.
    let patience = Duration::from_millis(500);
    let backend = Backend::start(move |link| {
        link.stream.set_read_timeout(Some(patience)).unwrap();
        let answer = if link.request().is_some() { OK } else { "HTTP/1.1 500 Late\r\n\r\n" };
        link.say(answer);
    });
    let proxy = Proxy::start(&format!("ProxyPass / http://{}/", backend.address));
    let half = vec![b'x'; 1_000_000];
    let mut client = proxy.connect();
    client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2000000\r\n\r\n");
    client.send(&half);
    thread::sleep(3 * patience);
    client.send(&half);
    assert_eq!(client.answer(false).status, 200);
    assert_eq!(backend.requests()[0].content.len(), 2_000_000);
}
