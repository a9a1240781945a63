//! Requests that are wrong: each is refused with its status, and the connection is closed, because
//! nobody can tell where the next request would begin.
//!
//! Source: RFC 9112 sections 2 to 7; where a choice is left, what httpd 2.4.71 answers.

use milepost_engine::Settings;

use crate::support::TestServer;

#[test]
fn malformed_requests_are_refused_and_the_connection_closed() {
    let server = TestServer::start(Settings::default());
    let rows: &[(u16, &[u8])] = &[
        // The request line.
        (400, b"GET  / HTTP/1.1\r\nHost: a\r\n\r\n"),
        (400, b"GET /  HTTP/1.1\r\nHost: a\r\n\r\n"),
        (400, b"GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n"),
        (400, b"GET / HTTP/1.1 \r\nHost: a\r\n\r\n"),
        (400, b"GET /\r\n\r\n"),
        (400, b"GET\r\n\r\n"),
        (400, b"GET /a b HTTP/1.1\r\nHost: a\r\n\r\n"),
        (400, b"GET /\x01 HTTP/1.1\r\nHost: a\r\n\r\n"),
        (400, b"G(T / HTTP/1.1\r\nHost: a\r\n\r\n"),
        (400, b"GET / HTTP/0.9\r\nHost: a\r\n\r\n"),
        (400, b"GET / HTTP/1.10\r\nHost: a\r\n\r\n"),
        (400, b"GET / http/1.1\r\nHost: a\r\n\r\n"),
        (505, b"GET / HTTP/2.0\r\nHost: a\r\n\r\n"),
        (505, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
        (400, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\r\n\r\n"),
        // Line ends.
        (400, b"GET / HTTP/1.1\nHost: a\n\n"),
        (400, b"GET / HTTP/1.1\r\nHost: a\n\r\n"),
        (400, b"GET / HTTP/1.1\r\nHost: a\r\nX: a\rb\r\n\r\n"),
        (400, b"GET / HTTP/1.1\r\r\nHost: a\r\n\r\n"),
        (400, b"\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"),
        (400, b"\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"),
        // Field lines.
        (400, b"GET / HTTP/1.1\r\nHost: a\r\nX : b\r\n\r\n"),
        (400, b"GET / HTTP/1.1\r\nHost : a\r\n\r\n"),
        (400, b"GET / HTTP/1.1\r\nHost: a\r\nX: b\r\n c\r\n\r\n"),
        (400, b"GET / HTTP/1.1\r\n X: b\r\nHost: a\r\n\r\n"),
        (400, b"GET / HTTP/1.1\r\nHost: a\r\nX\r\n\r\n"),
        (400, b"GET / HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n"),
        (400, b"GET / HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n"),
        (400, b"GET / HTTP/1.1\r\nHost: a\r\nX: a\x7fb\r\n\r\n"),
        // Host.
        (400, b"GET / HTTP/1.1\r\n\r\n"),
        (400, b"GET / HTTP/1.1\r\nHost:\r\n\r\n"),
        (400, b"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n"),
        (400, b"GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n"),
        (400, b"GET / HTTP/1.1\r\nHost: a b\r\n\r\n"),
        (400, b"GET / HTTP/1.1\r\nHost: a/b\r\n\r\n"),
        (400, b"GET / HTTP/1.1\r\nHost: u@a\r\n\r\n"),
        (400, b"GET / HTTP/1.1\r\nHost: a:99999\r\n\r\n"),
        (400, b"GET / HTTP/1.1\r\nHost: [::1\r\n\r\n"),
        // Framing that two servers could read differently.
        (400, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx"),
        (400, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx"),
        (400, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1, 1\r\n\r\nx"),
        (400, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\nx"),
        (400, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\nx"),
        (400, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0x1\r\n\r\nx"),
        (400, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\nx"),
        (400, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\nx"),
        (
            400,
            b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        ),
        (400, b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n0\r\n\r\n"),
        (400, b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n"),
        (400, b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"),
        (400, b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n"),
        (400, b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        (501, b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
        // Expectations.
        (417, b"GET / HTTP/1.1\r\nHost: a\r\nExpect: the-unexpected\r\n\r\n"),
    ];
    for &(status, request) in rows {
        // What follows must not be taken for a request.
        let smuggled = b"GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";
        let answers = server.ask(&[request, smuggled].concat());
        let shown = request.escape_ascii();
        assert_eq!(answers.len(), 1, "{shown}");
        assert_eq!(answers[0].status, status, "{shown}");
        assert_eq!(answers[0].field("Connection"), Some("close"), "{shown}");
    }
}

#[test]
fn requests_before_a_malformed_one_are_answered() {
    let server = TestServer::start(Settings::default());
    let answers = server.ask(b"GET /a HTTP/1.1\r\nHost: a\r\n\r\nBAD\r\n\r\n");
    let statuses: Vec<_> = answers.iter().map(|answer| answer.status).collect();
    assert_eq!(statuses, [301, 400]);
}
