//! A server that parses nothing: it answers as many times as a read has ends of heads, always the same.
//!
//! It does what any server must (wait, read, write) and nothing else, so its CPU time for a request is the
//! floor that `make bench-server` holds others against. `null ADDRESS LOCATION`

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};

/// The key of the listener.
const LISTENER: u64 = 0;

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let usage = || std::io::Error::other("usage: null ADDRESS LOCATION");
    let address: SocketAddr =
        arguments.next().and_then(|text| text.parse().ok()).ok_or_else(usage)?;
    let location = arguments.next().ok_or_else(usage)?;
    let content = "x".repeat(240);
    let answer = format!(
        "HTTP/1.1 301 Moved Permanently\r\nDate: Sat, 21 Nov 2026 12:00:00 GMT\r\nServer: null\r\n\
         Location: {location}\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\r\n{content}",
        content.len()
    );

    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    let poll = epoll::create(CreateFlags::CLOEXEC)?;
    epoll::add(&poll, &listener, EventData::new_u64(LISTENER), EventFlags::IN)?;
    let mut streams: HashMap<u64, TcpStream> = HashMap::new();
    let mut next = LISTENER + 1;
    let (mut input, mut output) = (vec![0; 64 * 1024], Vec::new());
    let mut events = Vec::with_capacity(256);
    loop {
        events.clear();
        epoll::wait(&poll, rustix::buffer::spare_capacity(&mut events), None)?;
        for event in &events {
            // The structure of the kernel is packed, so its parts are copied and not borrowed.
            let Event { data, .. } = *event;
            let key = data.u64();
            if key == LISTENER {
                while let Ok((stream, _)) = listener.accept() {
                    stream.set_nonblocking(true)?;
                    stream.set_nodelay(true)?;
                    epoll::add(&poll, stream.as_fd(), EventData::new_u64(next), EventFlags::IN)?;
                    streams.insert(next, stream);
                    next += 1;
                }
                continue;
            }
            let Some(stream) = streams.get_mut(&key) else { continue };
            let read = stream.read(&mut input).unwrap_or(0);
            output.clear();
            for _ in memchr::memmem::find_iter(&input[..read], b"\r\n\r\n") {
                output.extend_from_slice(answer.as_bytes());
            }
            // Who closes connections says so in each request; nobody parses it here.
            let closes = memchr::memmem::find(&input[..read], b"onnection: close").is_some();
            if read == 0 || stream.write_all(&output).is_err() || closes {
                streams.remove(&key);
            }
        }
    }
}
