//! Who keeps the connection, who closes it, and how it is said.
//!
//! Source: RFC 9112 section 9.3.

use std::time::Duration;

use milepost_engine::Settings;

use crate::support::TestServer;

/// Far below any timeout of the server, far above what an answer takes.
const AT_ONCE: Duration = Duration::from_millis(500);

#[test]
fn version_and_connection_field_decide() {
    let server = TestServer::start(Settings::default());
    let keeps = [
        ("1.0", "", false),
        ("1.0", "Connection: close\r\n", false),
        ("1.0", "Connection: keep-alive\r\n", true),
        ("1.1", "", true),
        ("1.1", "Connection: close\r\n", false),
        ("1.1", "Connection: keep-alive\r\n", true),
    ];
    for (version, connection, kept) in keeps {
        let request = format!("GET /a HTTP/{version}\r\nHost: a\r\n{connection}\r\n");
        let mut client = server.connect();
        client.send(request.as_bytes());
        let answer = client.answer();
        assert_eq!(answer.status, 301, "{request:?}");
        assert_eq!(answer.field("Location"), Some("http://other.example/a"));
        if kept {
            client.send(request.as_bytes());
            assert_eq!(client.answer().status, 301, "{request:?}");
        } else {
            assert!(client.closed_after() < AT_ONCE, "{request:?}");
        }
        let expected = match (kept, connection) {
            (false, _) => Some("close"),
            (true, "") => None,
            (true, _) => Some("Keep-Alive"),
        };
        assert_eq!(answer.field("Connection"), expected, "{request:?}");
        let parameters = (expected == Some("Keep-Alive")).then_some("timeout=5, max=100");
        assert_eq!(answer.field("Keep-Alive"), parameters, "{request:?}");
    }
}

#[test]
fn http_1_0_is_closed_within_milliseconds_of_the_answer() {
    let server = TestServer::start(Settings::default());
    // Tried several times, as the machine may be busy; the fastest counts.
    let fastest = (0..20).map(|_| {
        let mut client = server.connect();
        client.send(b"GET / HTTP/1.0\r\n\r\n");
        assert_eq!(client.answer().field("Connection"), Some("close"));
        client.closed_after()
    });
    assert!(fastest.min().unwrap() < Duration::from_millis(5));
}

#[test]
fn keep_alive_off_closes_every_connection() {
    let server = TestServer::start(Settings { keep_alive: false, ..Settings::default() });
    for request in [
        "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive\r\n\r\n",
        "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
    ] {
        let answers = server.ask(request.as_bytes());
        assert_eq!(answers.len(), 1);
        assert_eq!(answers[0].field("Connection"), Some("close"), "{request:?}");
    }
}

#[test]
fn the_number_of_requests_is_counted_as_apache_counts() {
    let settings = Settings { keep_alive_requests_max: Some(2), ..Settings::default() };
    let server = TestServer::start(settings);
    let request = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive\r\n\r\n";
    let mut client = server.connect();
    let mut said = Vec::new();
    for _ in 0..3 {
        client.send(request);
        let answer = client.answer();
        said.push(answer.field("Keep-Alive").unwrap_or("close").to_owned());
    }
    // So many answers leave it open; the one after them closes it.
    assert_eq!(said, ["timeout=5, max=2", "timeout=5, max=1", "close"]);
    assert!(client.closed_after() < AT_ONCE);

    let settings = Settings { keep_alive_requests_max: None, ..Settings::default() };
    let server = TestServer::start(settings);
    let mut client = server.connect();
    for _ in 0..250 {
        client.send(request);
        assert_eq!(client.answer().field("Keep-Alive"), Some("timeout=5"));
    }
}

#[test]
fn an_idle_connection_is_closed_after_keep_alive_timeout() {
    let keep_alive_timeout = Duration::from_millis(300);
    let server = TestServer::start(Settings { keep_alive_timeout, ..Settings::default() });
    let mut client = server.connect();
    client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    client.answer();
    let elapsed = client.closed_after();
    assert!(elapsed >= keep_alive_timeout && elapsed < Duration::from_secs(2), "{elapsed:?}");
}

#[test]
fn a_partial_head_is_answered_408_after_timeout() {
    let timeout = Duration::from_millis(300);
    let server = TestServer::start(Settings { timeout, ..Settings::default() });
    let mut client = server.connect();
    client.send(b"GET / HTTP/1.1\r\nHo");
    let answer = client.answer();
    assert_eq!(answer.status, 408);
    assert_eq!(answer.field("Connection"), Some("close"));
    assert!(client.closed_after() < AT_ONCE);
}

#[test]
fn a_status_that_says_the_request_may_be_misread_closes() {
    let server = TestServer::start(Settings::default());
    for (status, kept) in
        [(400, false), (500, false), (501, false), (503, false), (404, true), (410, true)]
    {
        let mut client = server.connect();
        client.send(format!("GET /status/{status} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes());
        let answer = client.answer();
        assert_eq!(answer.status, status);
        assert_eq!(answer.field("Connection"), (!kept).then_some("close"), "{status}");
    }
}

#[test]
fn a_client_that_has_finished_sending_is_answered() {
    let server = TestServer::start(Settings::default());
    let mut client = server.connect();
    client.send(b"GET /a HTTP/1.1\r\nHost: a\r\n\r\nGET /b HTTP/1.1\r\nHost: a\r\n\r\n");
    client.finish();
    let locations: Vec<_> = client
        .answers_to_end()
        .iter()
        .map(|answer| answer.field("Location").unwrap().to_owned())
        .collect();
    assert_eq!(locations, ["http://other.example/a", "http://other.example/b"]);
}
