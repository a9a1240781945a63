//! One connection of a worker: its socket and the request that is on it.

use mio::net::TcpStream;

use crate::answer::Incoming;

/// A place for a connection. There is one for each slot and origin; it outlives its sockets.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) socket: Option<TcpStream>,
    pub(crate) state: State,
    /// The request, while there is one.
    pub(crate) exchange: Exchange,
    pub(crate) incoming: Incoming,
    /// Whether the socket has carried a complete answer: if it ends now, that is the server's right.
    pub(crate) used: bool,
    /// What the poll tells about the socket.
    pub(crate) watch: Watch,
    /// When the socket was opened.
    pub(crate) opened: u64,
    /// Failures to connect without a success in between, and since when.
    pub(crate) failures: u32,
    pub(crate) failing_since: u64,
    /// Not to be opened before.
    pub(crate) retry_at: u64,
}

/// What a connection is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// It has no request. The socket may be open.
    Free,
    /// It has a request and waits before it tries to connect again.
    Paused,
    /// It has a request and is being opened.
    Connecting,
    /// A part of the request has been written.
    Sending,
    /// The answer is awaited.
    Waiting,
}

/// What the poll tells about a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Watch {
    /// Nothing: it is not registered yet.
    Nothing,
    /// When it can be read. Enough while every request goes out with the first write.
    Read,
    /// When it can be read and when it can be written to.
    Both,
}

/// One request on its way.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Exchange {
    pub(crate) target: usize,
    /// Bytes of the request that have been written.
    pub(crate) written: usize,
    /// When it was meant to be sent.
    pub(crate) intended: u64,
    /// When it was sent, by the socket that it is on now; 0 before.
    pub(crate) sent: u64,
    /// When the first byte of the answer came; 0 before.
    pub(crate) first_byte: u64,
}

impl Connection {
    pub(crate) fn new() -> Self {
        Self {
            socket: None,
            state: State::Free,
            exchange: Exchange::default(),
            incoming: Incoming::default(),
            used: false,
            watch: Watch::Nothing,
            opened: 0,
            failures: 0,
            failing_since: 0,
            retry_at: 0,
        }
    }

    /// Closes the socket. Whatever it still had to say is lost.
    pub(crate) fn close(&mut self) {
        self.socket = None;
        self.used = false;
        self.watch = Watch::Nothing;
    }
}
