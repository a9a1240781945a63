//! How many connections there may be, and what they come through.

use std::io::{Read, Write};
use std::num::NonZeroUsize;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use milepost_engine::{Listen, Settings};
use milepost_server::{Endpoint, Server};

use crate::support::{Elsewhere, TestServer};

const REQUEST: &[u8] = b"GET /a HTTP/1.1\r\nHost: a\r\n\r\n";

#[test]
fn at_the_bound_who_is_idle_makes_room() {
    let settings = Settings {
        requests_max: Some(1),
        async_factor_percent: 100,
        keep_alive_timeout: Duration::from_secs(600),
        ..Settings::default()
    };
    assert_eq!(settings.connections_max(), Some(2));
    let server = TestServer::start(settings);
    let mut first = server.connect();
    first.send(REQUEST);
    assert_eq!(first.answer().status, 301);
    // Two are the most that there may be, and this one has not been answered yet.
    let mut second = server.connect();
    first.closed_after();
    // It is kept until there are too many again.
    for _ in 0..2 {
        second.send(REQUEST);
        assert_eq!(second.answer().status, 301);
    }
    let _third = server.connect();
    second.closed_after();
}

#[test]
fn at_the_bound_nobody_else_is_accepted_until_one_goes() {
    let settings =
        Settings { requests_max: Some(1), async_factor_percent: 100, ..Settings::default() };
    let server = TestServer::start(settings);
    let mut busy: Vec<_> = (0..2).map(|_| server.connect()).collect();
    for client in &mut busy {
        // Half of a head: nobody may be sent away in the middle of a request.
        client.send(&REQUEST[..10]);
    }
    std::thread::sleep(Duration::from_millis(200));
    let mut third = server.connect();
    third.send(REQUEST);
    std::thread::sleep(Duration::from_millis(200));
    assert!(!third.has_answer());
    let mut first = busy.remove(0);
    first.send(&REQUEST[10..]);
    assert_eq!(first.answer().status, 301);
    first.closed_after();
    assert_eq!(third.answer().status, 301);
}

#[test]
fn a_unix_socket_is_served_and_removed_at_the_end() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("milepost.sock");
    let listen = Listen { unix: Some(path.clone()), ..Listen::default() };
    let settings = Settings { listens: vec![listen], ..Settings::default() };
    let server = Server::bind(&settings, NonZeroUsize::new(2).unwrap()).unwrap();
    assert_eq!(server.endpoints(), [Endpoint::Unix(path.clone())]);
    let running = server.start(|| Elsewhere).unwrap();
    // Both workers have it, and nobody is lost between them.
    for _ in 0..50 {
        let mut client = UnixStream::connect(&path).unwrap();
        client.write_all(b"GET /a HTTP/1.0\r\n\r\n").unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 301 "), "{answer}");
    }
    running.stopper().stop();
    running.join().unwrap();
    assert!(!path.exists());
}

#[test]
fn workers_say_that_they_live() {
    let server = TestServer::start_with(Settings::default(), 2);
    let reloader = server.running.as_ref().unwrap().reloader();
    assert!(reloader.is_alive(Duration::from_secs(5)));
}
