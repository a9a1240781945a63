//! Completions: all requests of a turn go to the kernel with the wait for their answers.
//!
//! Receives are armed once for each socket, so a request costs its share of one system call. What the
//! ring reports is shown to the worker as readiness: news of a connection, and a read that gives it. What lies
//! on top of a socket (TLS, a tunnel) has its bytes brought and taken.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use milepost_uring::{Event, Ring};
use mio::Token;
use socket2::{Domain, SockAddr, Socket, Type};

use super::{EVENTS_MAX, Outgoing, READ_BYTES, Ready};
use crate::endpoint::Endpoint;
use crate::layered::{Layered, Stage};
use crate::origin::Origin;
use crate::socket::{self, Opening};
use crate::stream::{Piped, Stream};

/// Requests that are handed over together. The kernel sends one after the other, some microseconds each:
/// with more, the last would leave long after the time at which all of them count as sent.
const QUEUED_MAX: usize = 32;

/// The kernel may be late by as much when a wait is over. Its default is 50 µs.
const TIMER_SLACK: Option<NonZeroU64> = NonZeroU64::new(1);

/// A ring, and what it has reported.
#[derive(Debug)]
pub(crate) struct Uring {
    ring: Ring,
    /// What the last news is about, until the worker has read it.
    event: Option<(usize, Event)>,
    /// News taken in this turn.
    taken: usize,
    /// Connections whose request waits to be handed over.
    queued: VecDeque<usize>,
    /// What came on a connection with layers, without them.
    plain: Vec<u8>,
    /// Whether the thread's timers have been made precise.
    is_precise: bool,
}

impl Uring {
    pub(super) fn new(places: usize, block: Arc<[u8]>) -> io::Result<Self> {
        Ok(Self {
            ring: Ring::new(places, block)?,
            event: None,
            taken: 0,
            queued: VecDeque::with_capacity(QUEUED_MAX * 2),
            plain: Vec::new(),
            is_precise: false,
        })
    }

    pub(super) fn wait(
        &mut self,
        timeout: Duration,
        wake_at: Option<u64>,
        now: u64,
    ) -> io::Result<()> {
        if !self.is_precise {
            // Where that is not allowed, lateness will show it.
            let _ = rustix::thread::set_current_timer_slack(TIMER_SLACK);
            self.is_precise = true;
        }
        let until_due = wake_at.map(|at| Duration::from_nanos(at.saturating_sub(now)));
        self.event = None;
        self.taken = 0;
        self.ring.wait(until_due.map_or(timeout, |until| until.min(timeout)))
    }

    pub(super) fn poll(&mut self) -> io::Result<()> {
        self.event = None;
        self.taken = 0;
        self.ring.poll()
    }

    pub(super) fn has_news(&mut self) -> bool {
        self.ring.has_events()
    }

    #[inline]
    pub(super) fn next(&mut self) -> Option<Ready> {
        // What happens meanwhile would make a turn endless.
        if self.taken >= EVENTS_MAX {
            return None;
        }
        self.taken += 1;
        self.event = self.ring.take();
        self.event.as_ref().map(|(at, _)| Ready { token: Token(*at), read_closed: false })
    }

    pub(super) fn open(
        &mut self,
        at: usize,
        origin: &Origin,
        opening: Opening<'_>,
    ) -> io::Result<Stream> {
        let (socket, address) = match &origin.endpoint {
            Endpoint::Tcp(address) => {
                let address = opening.address.unwrap_or(*address);
                (socket::prepare(address, opening)?, address.into())
            }
            Endpoint::Unix(path) => {
                (Socket::new(Domain::UNIX, Type::STREAM, None)?, SockAddr::unix(path)?)
            }
        };
        let stream = if socket::has_layers(origin, opening) {
            socket::cover(Stream::Piped(Piped::default()), origin, opening)?
        } else {
            Stream::Ring
        };
        self.ring.connect(at, socket.into(), address)?;
        Ok(stream)
    }

    pub(super) fn establish(&mut self, at: usize, layered: &mut Layered) -> io::Result<Stage> {
        self.feed(at, layered)?;
        let stage = layered.establish();
        self.flush(at, layered)?;
        stage
    }

    #[inline]
    pub(super) fn read(&mut self, at: usize, stream: &mut Stream) -> io::Result<&[u8]> {
        if let Stream::Layered(layered) = stream {
            return self.read_layered(at, layered);
        }
        match self.event.take_if(|(about, _)| *about == at) {
            Some((_, Event::Received)) => Ok(self.ring.bytes()),
            Some((_, Event::Ended)) => Ok(&[]),
            Some((_, Event::Failed(error))) => Err(error),
            Some((_, Event::Connected | Event::Sent)) | None => Err(ErrorKind::WouldBlock.into()),
        }
    }

    fn read_layered(&mut self, at: usize, layered: &mut Layered) -> io::Result<&[u8]> {
        self.feed(at, layered)?;
        self.plain.resize(READ_BYTES, 0);
        let length = layered.read(&mut self.plain);
        // What TLS itself has to say about what came.
        self.flush(at, layered)?;
        Ok(&self.plain[..length?])
    }

    #[inline]
    pub(super) fn write(&mut self, at: usize, bytes: Outgoing<'_>) -> io::Result<usize> {
        let is_read = |event: &Event| matches!(event, Event::Received | Event::Ended);
        if let Some((_, event)) = self.event.take_if(|(about, it)| *about == at && !is_read(it)) {
            match event {
                Event::Failed(error) => return Err(error),
                Event::Connected => self.ring.receive(at)?,
                Event::Sent | Event::Received | Event::Ended => {}
            }
        }
        let length = match bytes {
            Outgoing::Rendered(range) => {
                let length = range.len();
                self.ring.send(at, range)?;
                length
            }
            Outgoing::Own(bytes) => {
                self.ring.send_copy(at, bytes)?;
                bytes.len()
            }
        };
        self.queued.push_back(at);
        Ok(length)
    }

    pub(super) fn write_layered(
        &mut self,
        at: usize,
        layered: &mut Layered,
        bytes: &[u8],
    ) -> io::Result<usize> {
        self.feed(at, layered)?;
        let length = layered.write(bytes)?;
        self.flush(at, layered)?;
        self.queued.push_back(at);
        Ok(length)
    }

    /// Gives what has happened to a socket to what lies on top of it.
    fn feed(&mut self, at: usize, layered: &mut Layered) -> io::Result<()> {
        let event = self.event.take_if(|(about, _)| *about == at);
        let Stream::Piped(piped) = layered.socket() else { return Ok(()) };
        match event {
            None | Some((_, Event::Sent)) => {}
            Some((_, Event::Connected)) => self.ring.receive(at)?,
            Some((_, Event::Received)) => piped.receive(self.ring.bytes()),
            Some((_, Event::Ended)) => piped.end(),
            Some((_, Event::Failed(error))) => return Err(error),
        }
        Ok(())
    }

    /// Sends what lies on top of a socket has left for it. What does not go now goes when there is news of
    /// what went before.
    fn flush(&mut self, at: usize, layered: &mut Layered) -> io::Result<()> {
        let Stream::Piped(piped) = layered.socket() else { return Ok(()) };
        let bytes = piped.outgoing();
        if !bytes.is_empty() && !self.ring.is_sending(at) {
            self.ring.send_copy(at, bytes)?;
            bytes.clear();
        }
        Ok(())
    }

    #[inline]
    pub(super) fn is_sending(&self, at: usize) -> bool {
        self.ring.is_sending(at)
    }

    #[inline]
    pub(super) fn take_queued(&mut self) -> Option<usize> {
        self.queued.pop_front()
    }

    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.queued.len() >= QUEUED_MAX
    }

    pub(super) fn hand_over(&mut self) -> io::Result<()> {
        self.ring.submit()
    }

    pub(super) fn close(&mut self, at: usize) {
        // Fails when the system is out of resources; then the next wait fails as well.
        let _ = self.ring.close(at);
    }

    pub(super) fn grow(&mut self, places: usize) {
        self.ring.grow(places);
    }
}
