//! One connection of a worker: its socket and the request that is on it.

use crate::answer::{Incoming, Judge};
use crate::keep::Keep;
use crate::stream::Stream;
use crate::target::Target;
use crate::wire::Single;

/// A place for a connection. There is one for each slot and origin; it outlives its sockets.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) socket: Option<Stream>,
    pub(crate) state: State,
    /// The request, while there is one.
    pub(crate) exchange: Exchange,
    /// What is requested instead of the target of the list, if anything is.
    pub(crate) own: Option<Box<Own>>,
    /// The request with its places filled; empty if it has none.
    pub(crate) filled: Vec<u8>,
    pub(crate) incoming: Incoming,
    /// Complete answers that the socket has carried: if it ends after one, that is the server's right.
    pub(crate) carried: u64,
    /// What the poll tells about the socket.
    pub(crate) watch: Watch,
    /// When the socket was opened.
    pub(crate) opened: u64,
    /// When what lies on top of the socket could begin; 0 before, and without such.
    pub(crate) connected: u64,
    /// Failures to connect without a success in between, and since when.
    pub(crate) failures: u32,
    pub(crate) failing_since: u64,
    /// Not to be opened before.
    pub(crate) retry_at: u64,
    /// Not to be read before, for it is ahead of its rate; 0 if it is not.
    pub(crate) aside_until: u64,
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
    /// Which request of its chain.
    pub(crate) hop: u32,
    /// Bytes of the answer that have come; counted only where they may not come faster than at some rate.
    pub(crate) received: u64,
    /// Bytes of the request that have been written.
    pub(crate) written: usize,
    /// When it was meant to be sent.
    pub(crate) intended: u64,
    /// When the first request of its chain was.
    pub(crate) chain_began: u64,
    /// Whether an answer of its chain was wrong.
    pub(crate) chain_is_wrong: bool,
    /// Since when its connection could have sent it; 0 if that had to be opened for it.
    pub(crate) ready: u64,
    /// When its connection was opened, if it had to be; 0 otherwise.
    pub(crate) opened: u64,
    /// When it was sent, by the socket that it is on now; 0 before.
    pub(crate) sent: u64,
    /// When the first byte of the answer came; 0 before.
    pub(crate) first_byte: u64,
}

/// A request that is not in the list: a hop of a chain, or one of the list with cookies.
#[derive(Debug)]
pub(crate) struct Own {
    /// Without what the visitor adds.
    pub(crate) target: Target,
    pub(crate) request: Single,
    pub(crate) judge: Judge,
}

impl Connection {
    /// A place for answers of which `keep` is kept.
    pub(crate) fn new(keep: Keep) -> Self {
        Self {
            socket: None,
            state: State::Free,
            exchange: Exchange::default(),
            own: None,
            filled: Vec::new(),
            incoming: Incoming::keeping(keep),
            carried: 0,
            watch: Watch::Nothing,
            opened: 0,
            connected: 0,
            failures: 0,
            failing_since: 0,
            retry_at: 0,
            aside_until: 0,
        }
    }

    /// Whether the poll has to tell when the socket can be written to.
    pub(crate) fn wants_write(&self) -> bool {
        match self.state {
            State::Connecting => match self.socket.as_ref().and_then(Stream::layered) {
                // As long as it is not connected, that is what is waited for.
                Some(layered) => self.connected == 0 || layered.wants_write(),
                None => true,
            },
            State::Sending => true,
            State::Waiting | State::Free | State::Paused => false,
        }
    }

    /// Closes the socket. Whatever it still had to say is lost.
    pub(crate) fn close(&mut self) {
        self.socket = None;
        self.carried = 0;
        self.watch = Watch::Nothing;
    }
}
