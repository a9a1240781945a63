//! Limits of the head: what is at the bound passes, what is one past it does not.

use milepost_engine::Settings;

use crate::support::TestServer;

#[test]
fn the_request_line_has_a_limit() {
    let server = TestServer::start(Settings::default());
    let request = |bytes: usize| {
        let padding = "a".repeat(bytes - "GET / HTTP/1.1".len());
        format!("GET /{padding} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    };
    // Apache reads one byte more than LimitRequestLine says.
    check(&server, &request(8191), 301);
    check(&server, &request(8192), 414);
}

#[test]
fn a_request_line_without_end_is_refused_before_it_ends() {
    let server = TestServer::start(Settings::default());
    check(&server, &format!("GET /{}", "a".repeat(9000)), 414);
    check(&server, &format!("GET / HTTP/1.1\r\nX: {}", "a".repeat(9000)), 400);
}

#[test]
fn field_lines_have_a_limit() {
    let server = TestServer::start(Settings::default());
    let request = |bytes: usize| {
        let padding = "a".repeat(bytes - "X: ".len());
        format!("GET / HTTP/1.1\r\nHost: a\r\nX: {padding}\r\nConnection: close\r\n\r\n")
    };
    check(&server, &request(8191), 301);
    check(&server, &request(8192), 400);
}

#[test]
fn the_number_of_field_lines_has_a_limit() {
    let server = TestServer::start(Settings::default());
    let request = |fields: usize| {
        let others = "X: a\r\n".repeat(fields - 2);
        format!("GET / HTTP/1.1\r\nHost: a\r\n{others}Connection: close\r\n\r\n")
    };
    check(&server, &request(100), 301);
    check(&server, &request(101), 400);
    let server = TestServer::start(Settings { fields_max: 0, ..Settings::default() });
    check(&server, &request(5000), 301);
}

#[test]
fn the_largest_head_that_the_defaults_allow_is_answered() {
    let server = TestServer::start(Settings::default());
    let field = format!("X: {}\r\n", "a".repeat(8180));
    let fields = field.repeat(98);
    check(&server, &format!("GET / HTTP/1.0\r\n{fields}Host: a\r\n\r\n"), 301);
}

#[test]
fn a_head_has_a_limit_even_when_the_configuration_has_none() {
    let server = TestServer::start(Settings { fields_max: 0, ..Settings::default() });
    let field = format!("X: {}\r\n", "a".repeat(8180));
    // Never complete, so that only its size can be the reason; 1 MiB is the most.
    check(&server, &format!("GET / HTTP/1.0\r\n{}", field.repeat(140)), 400);
}

#[track_caller]
fn check(server: &TestServer, request: &str, status: u16) {
    let answers = server.ask(request.as_bytes());
    assert_eq!(answers.iter().map(|answer| answer.status).collect::<Vec<_>>(), [status]);
    assert_eq!(answers[0].field("Connection"), Some("close"));
}
