//! Requests with content: answered, and the content read up to the next request or the connection
//! closed, always with the answer delivered.

use std::time::Duration;

use milepost_engine::Settings;

use crate::support::TestServer;

const NEXT: &[u8] = b"GET /next HTTP/1.1\r\nHost: a\r\n\r\n";

#[test]
fn the_next_request_begins_after_the_content() {
    let server = TestServer::start(Settings::default());
    let hidden = "GET /hidden HTTP/1.1\r\nHost: a\r\n\r\n";
    let length = hidden.len();
    let chunk = format!("{length:x};ext\r\n{hidden}\r\n0\r\nTrailer: x\r\n\r\n");
    for request in [
        format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n{hidden}"),
        format!("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n{hidden}"),
        format!("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n{chunk}"),
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n".to_owned(),
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n".to_owned(),
    ] {
        let mut client = server.connect();
        client.send(&[request.as_bytes(), NEXT].concat());
        assert_eq!(client.answer().field("Location"), Some("http://other.example/"), "{request:?}");
        let next = client.answer();
        assert_eq!(next.field("Location"), Some("http://other.example/next"), "{request:?}");
    }
}

#[test]
fn large_content_is_answered_first_and_then_read() {
    let server = TestServer::start(Settings::default());
    let mut client = server.connect();
    let length = 4 * 1024 * 1024;
    client
        .send(format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n").as_bytes());
    assert_eq!(client.answer().status, 301);
    client.send(&vec![b'x'; length]);
    client.send(NEXT);
    assert_eq!(client.answer().field("Location"), Some("http://other.example/next"));
}

#[test]
fn content_over_the_limit_closes_with_the_answer_delivered() {
    let server = TestServer::start(Settings::default());
    // The client sends all before it reads: a reset would take the answer away.
    let length = 16 * 1024 * 1024 + 1;
    let mut request =
        format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n").into_bytes();
    request.resize(request.len() + 8 * 1024 * 1024, b'x');
    let answers = server.ask(&request);
    assert_eq!(answers.len(), 1);
    assert_eq!(answers[0].field("Connection"), Some("close"));

    let mut client = server.connect();
    let length = length - 1;
    client
        .send(format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n").as_bytes());
    assert_eq!(client.answer().field("Connection"), None);
}

#[test]
fn malformed_chunks_close_after_the_answer() {
    let server = TestServer::start(Settings::default());
    for chunks in ["zz\r\n", "1\r\nxx\r\n0\r\n\r\n", "1\nx\n0\n\n", "fffffffffffffffff\r\n"] {
        let head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
        let answers = server.ask(&[head.as_bytes(), chunks.as_bytes(), NEXT].concat());
        assert_eq!(answers.len(), 1, "{chunks:?}");
    }
}

#[test]
fn who_expects_continue_gets_the_answer_and_is_not_asked_for_content() {
    let server = TestServer::start(Settings::default());
    let mut client = server.connect();
    client.send(b"POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n");
    let answer = client.answer();
    assert_eq!(answer.status, 301);
    // Whether the content comes now is not known, so nothing can come after it.
    assert_eq!(answer.field("Connection"), Some("close"));
    assert!(client.closed_after() < Duration::from_millis(500));

    // Without content there is nothing to wait for.
    let mut client = server.connect();
    client.send(b"GET / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n");
    assert_eq!(client.answer().field("Connection"), None);
}

#[test]
fn a_client_that_goes_on_sending_still_gets_the_refusal() {
    let server = TestServer::start(Settings::default());
    let mut request = b"BAD\r\n\r\n".to_vec();
    request.resize(4 * 1024 * 1024, b'x');
    let answers = server.ask(&request);
    assert_eq!(answers[0].status, 400);
}
