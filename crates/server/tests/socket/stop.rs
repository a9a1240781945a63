//! Stopping: nobody who has been accepted goes without an answer, and it does not take long.

use std::net::TcpStream;
use std::time::{Duration, Instant};

use milepost_engine::Settings;

use crate::support::{LARGE_BYTES, TestServer};

#[test]
fn stopping_closes_idle_connections_and_ends() {
    let mut server = TestServer::start_with(Settings::default(), 2);
    let mut idle: Vec<_> = (0..8).map(|_| server.connect()).collect();
    for client in &mut idle {
        client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        client.answer();
    }
    let running = server.running.take().unwrap();
    let start = Instant::now();
    running.stopper().stop();
    running.join().unwrap();
    assert!(start.elapsed() < Duration::from_secs(3), "{:?}", start.elapsed());
    for client in &mut idle {
        client.closed_after();
    }
    assert!(TcpStream::connect(server.address).is_err());
}

#[test]
fn stopping_finishes_what_is_being_answered() {
    let mut server = TestServer::start(Settings::default());
    let mut reading = server.connect();
    reading.send(b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n");
    let mut sending = server.connect();
    sending.send(b"GET /a HTTP/1.1\r\nHo");
    // Both have been seen by the server when a third has been answered.
    let mut third = server.connect();
    third.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    third.answer();

    let running = server.running.take().unwrap();
    running.stopper().stop();
    // The idle one is closed when the server has begun to stop.
    third.closed_after();
    sending.send(b"st: a\r\n\r\n");
    assert_eq!(sending.answer().field("Connection"), Some("close"));
    assert_eq!(reading.answer().content.len(), LARGE_BYTES);
    running.join().unwrap();
}

#[test]
fn a_connection_that_waits_to_be_accepted_is_answered() {
    let mut server = TestServer::start(Settings::default());
    // They are in the listener's queue before the worker can know of the stop.
    let mut clients: Vec<_> = (0..20).map(|_| server.connect()).collect();
    for client in &mut clients {
        client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    }
    let running = server.running.take().unwrap();
    running.stopper().stop();
    running.join().unwrap();
    for client in &mut clients {
        assert_eq!(client.answer().status, 301);
    }
}

#[test]
fn dropping_stops_too() {
    let server = TestServer::start(Settings::default());
    let address = server.address;
    drop(server);
    let end = Instant::now() + Duration::from_secs(5);
    while TcpStream::connect(address).is_ok() {
        assert!(Instant::now() < end, "it still accepts");
        std::thread::sleep(Duration::from_millis(10));
    }
}
