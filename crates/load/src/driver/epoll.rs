//! Readiness: edge-triggered, registered once for each socket.
//!
//! A read that does not fill the buffer has emptied the socket, so a request costs one write, one read
//! and its share of one wait.

use std::io::{self, ErrorKind};
use std::time::Duration;

use mio::{Events, Poll, Registry, Token};

use super::{EVENTS_MAX, Ready};
use crate::clock::Clock;
use crate::pacer::Pacer;
use crate::stream::Stream;

/// One read takes at most this much. An answer that fits needs one read; a larger one, few.
pub(crate) const READ_BYTES: usize = 64 * 1024;

/// The pacer's token; connections have their index.
const PACER: Token = Token(usize::MAX);

/// A poll, and a timer that is more precise than the poll's own.
#[derive(Debug)]
pub(crate) struct Epoll {
    poll: Poll,
    pacer: Pacer,
    events: Events,
    /// What the last wait brought, the last of it first.
    ready: Vec<Ready>,
    buffer: Box<[u8]>,
}

impl Epoll {
    pub(super) fn new(clock: Clock) -> io::Result<Self> {
        let poll = Poll::new()?;
        let pacer = Pacer::new(poll.registry(), PACER, clock)?;
        Ok(Self {
            poll,
            pacer,
            events: Events::with_capacity(EVENTS_MAX),
            ready: Vec::with_capacity(EVENTS_MAX),
            buffer: vec![0; READ_BYTES].into_boxed_slice(),
        })
    }

    pub(super) fn wait(
        &mut self,
        mut timeout: Duration,
        wake_at: Option<u64>,
        now: u64,
    ) -> io::Result<()> {
        if let Some(at) = wake_at
            && let Some(limit) = self.pacer.wake_at(at, now)?
        {
            timeout = timeout.min(limit);
        }
        self.ready.clear();
        match self.poll.poll(&mut self.events, Some(timeout)) {
            Err(error) if error.kind() == ErrorKind::Interrupted => return Ok(()),
            outcome => outcome?,
        }
        let ready = self
            .events
            .iter()
            .map(|event| Ready { token: event.token(), read_closed: event.is_read_closed() });
        self.ready.extend(ready);
        self.ready.reverse();
        Ok(())
    }

    pub(super) fn has_news(&self) -> bool {
        !self.ready.is_empty()
    }

    #[inline]
    pub(super) fn next(&mut self) -> Option<Ready> {
        self.ready.pop()
    }

    #[inline]
    pub(super) fn read(&mut self, stream: &mut Stream) -> io::Result<&[u8]> {
        let length = stream.read(&mut self.buffer)?;
        Ok(&self.buffer[..length])
    }

    pub(super) fn registry(&self) -> &Registry {
        self.poll.registry()
    }
}
