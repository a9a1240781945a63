//! A server that answers without looking: what it costs is what no server can save.
//!
//! The second byte of the path chooses the answer: `/f` is a file of 10 KB, everything else a redirect of
//! 150 bytes, head and all. One read is one request: no generator here pipelines.

use std::io::{ErrorKind, Read, Write};
use std::net::Ipv4Addr;
use std::thread;

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};

/// Where the redirect leads to.
pub(crate) const LOCATION: &str = "http://127.0.0.1/new/1";
/// Length of the redirect.
const REDIRECT_BYTES: usize = 150;
/// Length of the file.
pub(crate) const FILE_BYTES: usize = 10 * 1024;

const LISTENER: Token = Token(usize::MAX);
const EVENTS_MAX: usize = 1024;
const READ_BYTES: usize = 16 * 1024;
/// Where the second byte of the path is in `GET /f HTTP/1.1`.
const CHOICE_AT: usize = 5;

/// Serves until it is killed; says its address first.
pub(crate) fn run() -> Result<(), String> {
    serve().map_err(|error| error.to_string())
}

fn serve() -> std::io::Result<()> {
    let mut poll = Poll::new()?;
    let mut listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0).into())?;
    poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
    println!("{}", listener.local_addr()?);
    let answers = [redirect(), file()];
    let mut connections: Vec<Option<TcpStream>> = Vec::new();
    let mut free = Vec::new();
    let mut events = Events::with_capacity(EVENTS_MAX);
    let mut buffer = vec![0; READ_BYTES];
    loop {
        match poll.poll(&mut events, None) {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            outcome => outcome?,
        }
        for event in &events {
            if event.token() == LISTENER {
                while let Ok((mut socket, _)) = listener.accept() {
                    let at = free.pop().unwrap_or_else(|| {
                        connections.push(None);
                        connections.len() - 1
                    });
                    socket.set_nodelay(true)?;
                    poll.registry().register(&mut socket, Token(at), Interest::READABLE)?;
                    connections[at] = Some(socket);
                }
                continue;
            }
            let Token(at) = event.token();
            let Some(socket) = &mut connections[at] else { continue };
            let goes_on = match socket.read(&mut buffer) {
                Ok(0) => false,
                Ok(_) => answer(socket, &answers[usize::from(buffer[CHOICE_AT] == b'f')]),
                Err(error) => error.kind() == ErrorKind::WouldBlock,
            };
            if !goes_on {
                connections[at] = None;
                free.push(at);
            }
        }
    }
}

/// Writes all of an answer. Waits where the socket is full, which here it hardly ever is.
fn answer(socket: &mut TcpStream, mut bytes: &[u8]) -> bool {
    while !bytes.is_empty() {
        match socket.write(bytes) {
            Ok(length) => bytes = &bytes[length..],
            Err(error) if error.kind() == ErrorKind::WouldBlock => thread::yield_now(),
            Err(_) => return false,
        }
    }
    true
}

fn redirect() -> Vec<u8> {
    let start = format!(
        "HTTP/1.1 301 Moved Permanently\r\nServer: null\r\nLocation: {LOCATION}\r\nContent-Length: 0\r\nX: "
    );
    let rest = REDIRECT_BYTES - start.len() - "\r\n\r\n".len();
    format!("{start}{}\r\n\r\n", "x".repeat(rest)).into_bytes()
}

fn file() -> Vec<u8> {
    let head = format!("HTTP/1.1 200 OK\r\nServer: null\r\nContent-Length: {FILE_BYTES}\r\n\r\n");
    [head.into_bytes(), vec![b'x'; FILE_BYTES]].concat()
}
