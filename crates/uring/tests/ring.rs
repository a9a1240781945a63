//! The ring against real sockets: every order of events that a connection can have.

#![cfg(target_os = "linux")]

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use milepost_uring::{Event, Ring};
use socket2::{Domain, Socket, Type};

/// No test takes as long.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a kernel says that has no io_uring, or that is told to forbid it.
const EPERM: i32 = 1;
const ENOSYS: i32 = 38;

const REQUEST: &[u8] = b"twelve bytes";

/// What happened, without what only the test of that event looks at.
#[derive(Debug, PartialEq, Eq)]
enum Seen {
    Connected,
    Sent,
    Bytes(Vec<u8>),
    Ended,
    Failed(std::io::ErrorKind),
}

#[test]
fn a_request_is_answered_on_many_sockets_many_times() {
    let peer = peer(|mut socket| {
        let mut request = [0; REQUEST.len()];
        while socket.read_exact(&mut request).is_ok() {
            socket.write_all(&request).unwrap();
        }
    });
    // More than the ring has room for at once, so it has to hand over in between.
    let slots = 200;
    let Some(mut ring) = ring(slots) else { return };
    for slot in 0..slots {
        connect(&mut ring, slot, peer);
    }
    let mut rounds = vec![0; slots];
    let mut open = slots;
    let mut come = vec![0; slots];
    until(&mut ring, |ring, slot, seen| {
        match seen {
            Seen::Connected => {
                ring.receive(slot).unwrap();
                ring.send(slot, 0..REQUEST.len()).unwrap();
            }
            Seen::Bytes(bytes) => {
                come[slot] += bytes.len();
                if come[slot] == REQUEST.len() {
                    come[slot] = 0;
                    rounds[slot] += 1;
                    if rounds[slot] < 20 {
                        ring.send(slot, 0..REQUEST.len()).unwrap();
                    } else {
                        ring.close(slot).unwrap();
                        open -= 1;
                    }
                }
            }
            other => panic!("{other:?} on {slot}"),
        }
        open == 0
    });
    assert!(rounds.iter().all(|&rounds| rounds == 20));
}

#[test]
fn much_comes_in_order_and_much_goes() {
    // Far more than the buffers, and than those of the sockets.
    let length = 20_000_000;
    let body: Vec<u8> = (0..length).map(|at| (at * 7 + at / 251) as u8).collect();
    let expected = body.clone();
    let peer = peer(move |mut socket| {
        let mut all = vec![0; length];
        socket.read_exact(&mut all).unwrap();
        socket.write_all(&all).unwrap();
    });
    let Some(mut ring) = ring(1) else { return };
    connect(&mut ring, 0, peer);
    let mut seen_sent = false;
    let mut come = Vec::new();
    until(&mut ring, |ring, slot, seen| {
        match seen {
            Seen::Connected => {
                ring.receive(slot).unwrap();
                ring.send_copy(slot, &body).unwrap();
                assert!(ring.is_sending(slot));
                // One at a time.
                let again = ring.send_copy(slot, &body).unwrap_err();
                assert_eq!(again.kind(), std::io::ErrorKind::WouldBlock);
            }
            Seen::Sent => seen_sent = true,
            Seen::Bytes(bytes) => come.extend(bytes),
            Seen::Ended => return true,
            other => panic!("{other:?}"),
        }
        false
    });
    assert!(seen_sent && !ring.is_sending(0));
    assert!(come == expected, "{} bytes of {length}", come.len());
}

#[test]
fn a_long_range_is_reported() {
    let block: Arc<[u8]> = vec![b'x'; 1_000_000].into();
    let peer = peer(|mut socket| {
        let mut all = vec![0; 1_000_000];
        socket.read_exact(&mut all).unwrap();
    });
    let Some(mut ring) = ring_with(1, block) else { return };
    connect(&mut ring, 0, peer);
    let mut events = Vec::new();
    until(&mut ring, |ring, slot, seen| {
        if seen == Seen::Connected {
            ring.receive(slot).unwrap();
            ring.send(slot, 0..1_000_000).unwrap();
        }
        events.push(seen);
        events.len() == 3
    });
    assert_eq!(events, [Seen::Connected, Seen::Sent, Seen::Ended]);
}

#[test]
fn nobody_listens() {
    let Some(mut ring) = ring(1) else { return };
    // No system gives this port to a program that asks for any.
    connect(&mut ring, 0, SocketAddr::from((Ipv4Addr::LOCALHOST, 1)));
    until(&mut ring, |_, slot, seen| {
        assert_eq!((slot, seen), (0, Seen::Failed(std::io::ErrorKind::ConnectionRefused)));
        true
    });
}

#[test]
fn a_closed_socket_says_nothing_and_its_slot_is_free() {
    let peer = peer(|mut socket| {
        let mut request = [0; REQUEST.len()];
        while socket.read_exact(&mut request).is_ok() {
            // The client is gone when this comes.
            thread::sleep(Duration::from_millis(20));
            if socket.write_all(&request).is_err() {
                return;
            }
        }
    });
    let Some(mut ring) = ring(2) else { return };
    connect(&mut ring, 0, peer);
    let (mut connected, mut answers) = (0, 0);
    until(&mut ring, |ring, slot, seen| {
        match seen {
            Seen::Connected => {
                connected += 1;
                ring.receive(slot).unwrap();
                ring.send(slot, 0..REQUEST.len()).unwrap();
                if connected < 5 {
                    // In place of the one that waits for its answer.
                    connect(ring, slot, peer);
                }
            }
            Seen::Bytes(_) => answers += 1,
            other => panic!("{other:?}"),
        }
        answers == 1
    });
    assert_eq!(connected, 5);
    ring.close(0).unwrap();
    let began = Instant::now();
    while began.elapsed() < Duration::from_millis(100) {
        ring.wait(Duration::from_millis(10)).unwrap();
        assert!(ring.take().is_none());
    }
}

#[test]
fn the_peer_sees_the_end_of_what_is_closed() {
    let (told, ended) = std::sync::mpsc::channel();
    let peer = peer(move |mut socket| {
        let mut rest = Vec::new();
        let _ = socket.read_to_end(&mut rest);
        told.send(()).unwrap();
    });
    let Some(mut ring) = ring(1) else { return };
    connect(&mut ring, 0, peer);
    until(&mut ring, |ring, slot, seen| {
        assert_eq!(seen, Seen::Connected);
        ring.receive(slot).unwrap();
        true
    });
    ring.wait(Duration::ZERO).unwrap();
    ring.close(0).unwrap();
    ring.wait(Duration::ZERO).unwrap();
    ended.recv_timeout(PATIENCE).unwrap();
    drop(ring);
}

#[test]
fn a_ring_can_be_dropped_at_any_time_and_waits_as_long_as_it_is_told() {
    let peer = peer(|mut socket| {
        // Says something all the time.
        while socket.write_all(&[b'x'; 10_000]).is_ok() {}
    });
    for turns in 0..5 {
        let Some(mut ring) = ring(20) else { return };
        for slot in 0..20 {
            connect(&mut ring, slot, peer);
        }
        for _ in 0..turns {
            ring.wait(Duration::from_millis(5)).unwrap();
            while let Some((slot, event)) = ring.take() {
                if let Event::Connected = event {
                    ring.receive(slot).unwrap();
                    ring.send_copy(slot, &[0; 3_000_000]).unwrap();
                }
            }
        }
    }
    let Some(mut ring) = ring(1) else { return };
    let began = Instant::now();
    ring.wait(Duration::from_millis(50)).unwrap();
    assert!(began.elapsed() >= Duration::from_millis(50));
    assert!(ring.take().is_none() && ring.bytes().is_empty());
}

#[test]
fn a_ring_belongs_to_the_thread_that_waits() {
    let Some(mut ring) = ring(1) else { return };
    // Made here, used there.
    let mut ring = thread::spawn(move || {
        ring.wait(Duration::ZERO).unwrap();
        ring
    })
    .join()
    .unwrap();
    assert!(ring.wait(Duration::ZERO).is_err());
}

/// A ring, or none where the kernel or the container does not allow io_uring. That is said, and then
/// nothing can be tested: what works without is tested where the ring is used.
fn ring(slots: usize) -> Option<Ring> {
    ring_with(slots, REQUEST.into())
}

fn ring_with(slots: usize, block: Arc<[u8]>) -> Option<Ring> {
    match Ring::new(slots, block) {
        Ok(ring) => Some(ring),
        Err(error) if [Some(EPERM), Some(ENOSYS)].contains(&error.raw_os_error()) => {
            eprintln!("io_uring is not allowed here, so it is not tested: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn connect(ring: &mut Ring, slot: usize, address: SocketAddr) {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None).unwrap();
    ring.connect(slot, socket.into(), address.into()).unwrap();
}

/// Waits and shows everything that happens until `done` says so.
#[track_caller]
fn until(ring: &mut Ring, mut done: impl FnMut(&mut Ring, usize, Seen) -> bool) {
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        ring.wait(Duration::from_millis(100)).unwrap();
        while let Some((slot, event)) = ring.take() {
            let seen = match event {
                Event::Connected => Seen::Connected,
                Event::Sent => Seen::Sent,
                Event::Received => Seen::Bytes(ring.bytes().to_vec()),
                Event::Ended => Seen::Ended,
                Event::Failed(error) => Seen::Failed(error.kind()),
            };
            if done(ring, slot, seen) {
                return;
            }
        }
    }
    panic!("not done in time");
}

/// Has `serve` talk on every connection, each in a thread of its own.
fn peer(serve: impl Fn(TcpStream) + Send + Clone + 'static) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for socket in listener.incoming() {
            let (socket, serve) = (socket.unwrap(), serve.clone());
            thread::spawn(move || serve(socket));
        }
    });
    address
}
