//! Connections that wait for nothing but their next request, and what makes them wait for more.

use std::io::Write;

use milepost_engine::Settings;

use crate::support::TestServer;

/// More than a worker hears of at once.
const CROWD: usize = 600;

#[test]
fn all_of_a_crowd_are_answered_again_and_again() {
    let server = TestServer::start(Settings::default());
    let mut clients: Vec<_> = (0..CROWD).map(|_| server.connect()).collect();
    for round in 0..3 {
        for (number, client) in clients.iter_mut().enumerate() {
            client.send(format!("GET /{round}/{number} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes());
        }
        for (number, client) in clients.iter_mut().enumerate() {
            let expected = format!("http://other.example/{round}/{number}");
            assert_eq!(client.answer().field("Location"), Some(&*expected));
        }
    }
}

#[test]
fn whoever_had_to_wait_is_served_as_before() {
    let server = TestServer::start(Settings::default());
    let mut client = server.connect();
    for number in 0..3 {
        client.send(format!("GET /{number} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes());
        assert_eq!(client.answer().status, 301);
        // A head in two parts, content, and an answer that does not fit.
        client.send(b"GET /a HTTP/1.1\r\n");
        std::thread::yield_now();
        client.send(b"Host: a\r\n\r\n");
        assert_eq!(client.answer().field("Location"), Some("http://other.example/a"));
        client.send(b"POST /b HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab");
        assert_eq!(client.answer().field("Location"), Some("http://other.example/b"));
        client.send(b"cde");
        client.send(b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(client.answer().status, 200);
    }
}

#[test]
fn who_sends_more_than_is_read_at_once_is_answered_in_order() {
    const COUNT: usize = 10_000;
    let settings = Settings { keep_alive_requests_max: None, ..Settings::default() };
    let server = TestServer::start(settings);
    let requests: String =
        (0..COUNT).map(|number| format!("GET /{number} HTTP/1.1\r\nHost: a\r\n\r\n")).collect();
    let mut client = server.connect();
    let mut sending = client.sender();
    std::thread::scope(|scope| {
        scope.spawn(move || sending.write_all(requests.as_bytes()).unwrap());
        for number in 0..COUNT {
            let expected = format!("http://other.example/{number}");
            assert_eq!(client.answer().field("Location"), Some(&*expected));
        }
    });
}
