//! Completions: all requests of a turn go to the kernel with the wait for their answers.
//!
//! Receives are armed once for each socket, so a request costs its share of one system call. What the
//! ring reports is shown to the worker as readiness: news of a connection, and a read that gives it.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use milepost_uring::{Event, Ring};
use mio::Token;

use super::{EVENTS_MAX, Outgoing, Ready};
use crate::endpoint::Endpoint;
use crate::socket::{self, Opening};
use crate::stream::Stream;

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
        endpoint: &Endpoint,
        opening: Opening<'_>,
    ) -> io::Result<Stream> {
        let Endpoint::Tcp(address) = endpoint else { return Err(ErrorKind::Unsupported.into()) };
        let address = opening.address.unwrap_or(*address);
        let socket = socket::prepare(address, opening)?;
        self.ring.connect(at, socket.into(), address)?;
        Ok(Stream::Ring)
    }

    #[inline]
    pub(super) fn read(&mut self, at: usize) -> io::Result<&[u8]> {
        match self.event.take_if(|(about, _)| *about == at) {
            Some((_, Event::Received)) => Ok(self.ring.bytes()),
            Some((_, Event::Ended)) => Ok(&[]),
            Some((_, Event::Failed(error))) => Err(error),
            Some((_, Event::Connected | Event::Sent)) | None => Err(ErrorKind::WouldBlock.into()),
        }
    }

    #[inline]
    pub(super) fn write(&mut self, at: usize, bytes: Outgoing<'_>) -> io::Result<usize> {
        if let Some((_, event)) = self.event.take_if(|(about, _)| *about == at) {
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
