//! How a worker reaches its sockets: asking each when it is ready, or handing all requests of a turn to
//! the kernel at once.
//!
//! A worker sees the same either way: connections that have news, reads that take what is there, writes
//! that take what fits. So the two do the same checks and make the same report, and one loop serves
//! both. What they differ in is when a request leaves: with io_uring at the end of the turn, which is
//! then when it counts as sent.

mod epoll;
#[cfg(target_os = "linux")]
mod uring;

use std::io;
use std::ops::Range;
use std::time::Duration;

use mio::{Registry, Token};

use crate::clock::Clock;
use crate::connection::Connection;
use crate::failure::RunError;
use crate::layered::{Layered, Stage};
use crate::origin::Origin;
use crate::plan::{Io, Plan};
use crate::socket::Opening;
use crate::stream::Stream;
use crate::wire::Requests;

pub(crate) use epoll::{Epoll, READ_BYTES};
#[cfg(target_os = "linux")]
pub(crate) use uring::Uring;

/// Events taken with one wait. Beyond this many connections that are ready at once, waits cost little.
const EVENTS_MAX: usize = 512;

/// A connection that has news.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ready {
    /// Its index, or another number that was registered.
    pub(crate) token: Token,
    /// Whether the peer has said that nothing more will come.
    pub(crate) read_closed: bool,
}

/// What is written: a part of the requests that were rendered before the run, or bytes of its own.
#[derive(Debug)]
pub(crate) enum Outgoing<'a> {
    Rendered(Range<usize>),
    Own(&'a [u8]),
}

impl<'a> Outgoing<'a> {
    /// The bytes themselves.
    fn of(self, requests: &'a Requests) -> &'a [u8] {
        match self {
            Self::Rendered(range) => requests.part(range),
            Self::Own(bytes) => bytes,
        }
    }
}

/// When a request that was written counts as sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sent {
    /// It was, just before it was written.
    Now,
    /// When the turn is handed over: [`Driver::take_queued`] names it then.
    Later,
}

/// One of the ways.
#[derive(Debug)]
pub(crate) enum Driver {
    Epoll(Epoll),
    #[cfg(target_os = "linux")]
    Uring(Box<Uring>),
}

impl Driver {
    /// A driver for `places` connections; `io` has been settled.
    ///
    /// # Errors
    ///
    /// When the system refuses it.
    pub(crate) fn new(
        io: Io,
        places: usize,
        requests: &Requests,
        clock: Clock,
    ) -> io::Result<Self> {
        match io {
            #[cfg(target_os = "linux")]
            Io::Uring => Ok(Self::Uring(Box::new(Uring::new(places, requests.block())?))),
            _ => Ok(Self::Epoll(Epoll::new(clock)?)),
        }
    }

    /// Waits for news: until `timeout` is over, or until `wake_at`, which is met more precisely.
    ///
    /// # Errors
    ///
    /// When the system is out of resources.
    pub(crate) fn wait(
        &mut self,
        timeout: Duration,
        wake_at: Option<u64>,
        now: u64,
    ) -> io::Result<()> {
        match self {
            Self::Epoll(epoll) => epoll.wait(timeout, wake_at, now),
            #[cfg(target_os = "linux")]
            Self::Uring(uring) => uring.wait(timeout, wake_at, now),
        }
    }

    /// Asks for news, and does not wait.
    ///
    /// # Errors
    ///
    /// When the system is out of resources.
    pub(crate) fn poll(&mut self) -> io::Result<()> {
        match self {
            Self::Epoll(epoll) => epoll.wait(Duration::ZERO, None, 0),
            #[cfg(target_os = "linux")]
            Self::Uring(uring) => uring.poll(),
        }
    }

    /// Whether there is news that was not taken.
    pub(crate) fn has_news(&mut self) -> bool {
        match self {
            Self::Epoll(epoll) => epoll.has_news(),
            #[cfg(target_os = "linux")]
            Self::Uring(uring) => uring.has_news(),
        }
    }

    /// Takes the next news of a turn.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<Ready> {
        match self {
            Self::Epoll(epoll) => epoll.next(),
            #[cfg(target_os = "linux")]
            Self::Uring(uring) => uring.next(),
        }
    }

    /// Opens a connection. With it comes whether a request may be written at once; otherwise there will be
    /// news.
    ///
    /// # Errors
    ///
    /// When the system refuses at once.
    pub(crate) fn open(
        &mut self,
        at: usize,
        origin: &Origin,
        opening: Opening<'_>,
    ) -> io::Result<(Stream, bool)> {
        match self {
            Self::Epoll(_) => Ok((crate::socket::open(origin, opening)?, true)),
            #[cfg(target_os = "linux")]
            Self::Uring(uring) => Ok((uring.open(at, origin, opening)?, false)),
        }
    }

    /// Goes on with what comes before the first request on a connection with layers.
    ///
    /// # Errors
    ///
    /// As [`Layered::establish`].
    pub(crate) fn establish(&mut self, at: usize, layered: &mut Layered) -> io::Result<Stage> {
        match self {
            Self::Epoll(_) => layered.establish(),
            #[cfg(target_os = "linux")]
            Self::Uring(uring) => uring.establish(at, layered),
        }
    }

    /// Reads what is there, up to some length. Nothing is the end of what the server sends.
    ///
    /// # Errors
    ///
    /// As the socket has them; `WouldBlock` when there is nothing to read now.
    #[inline]
    pub(crate) fn read(&mut self, at: usize, stream: &mut Stream) -> io::Result<&[u8]> {
        match self {
            Self::Epoll(epoll) => epoll.read(stream),
            #[cfg(target_os = "linux")]
            Self::Uring(uring) => uring.read(at, stream),
        }
    }

    /// Writes what fits.
    ///
    /// # Errors
    ///
    /// As the socket has them; `WouldBlock` when it takes nothing now.
    #[inline]
    pub(crate) fn write(
        &mut self,
        at: usize,
        stream: &mut Stream,
        requests: &Requests,
        bytes: Outgoing<'_>,
    ) -> io::Result<usize> {
        match self {
            Self::Epoll(_) => stream.write(bytes.of(requests)),
            #[cfg(target_os = "linux")]
            Self::Uring(uring) => match stream {
                Stream::Layered(layered) => uring.write_layered(at, layered, bytes.of(requests)),
                _ => uring.write(at, bytes),
            },
        }
    }

    /// Whether what was written is known to be on its way out only when there is news of it.
    #[inline]
    pub(crate) fn is_sending(&self, at: usize) -> bool {
        match self {
            Self::Epoll(_) => false,
            #[cfg(target_os = "linux")]
            Self::Uring(uring) => uring.is_sending(at),
        }
    }

    /// When a request counts as sent that is written now.
    #[inline]
    pub(crate) fn sent(&self) -> Sent {
        match self {
            Self::Epoll(_) => Sent::Now,
            #[cfg(target_os = "linux")]
            Self::Uring(_) => Sent::Later,
        }
    }

    /// Requests that are queued and not handed over yet, the oldest first. Taking them says that they
    /// are about to be.
    #[inline]
    pub(crate) fn take_queued(&mut self) -> Option<usize> {
        match self {
            Self::Epoll(_) => None,
            #[cfg(target_os = "linux")]
            Self::Uring(uring) => uring.take_queued(),
        }
    }

    /// Whether so much is queued that it should be handed over before the end of the turn.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        match self {
            Self::Epoll(_) => false,
            #[cfg(target_os = "linux")]
            Self::Uring(uring) => uring.is_full(),
        }
    }

    /// Hands over what is queued, without waiting.
    ///
    /// # Errors
    ///
    /// When the system is out of resources.
    pub(crate) fn hand_over(&mut self) -> io::Result<()> {
        match self {
            Self::Epoll(_) => Ok(()),
            #[cfg(target_os = "linux")]
            Self::Uring(uring) => uring.hand_over(),
        }
    }

    /// Closes the socket of a connection. Whatever it still had to say is lost.
    pub(crate) fn close(&mut self, at: usize, connection: &mut Connection) {
        self.release(at);
        connection.close();
    }

    /// Lets go of a socket whose stream is given up.
    pub(crate) fn release(&mut self, at: usize) {
        match self {
            Self::Epoll(_) => {}
            #[cfg(target_os = "linux")]
            Self::Uring(uring) => uring.close(at),
        }
    }

    /// Makes room for the connections below `places`.
    pub(crate) fn grow(&mut self, places: usize) {
        match self {
            Self::Epoll(_) => {}
            #[cfg(target_os = "linux")]
            Self::Uring(uring) => uring.grow(places),
        }
    }

    /// Where a stream is registered that has to be told of. `None` if nothing has to.
    pub(crate) fn registry(&self) -> Option<&Registry> {
        match self {
            Self::Epoll(epoll) => Some(epoll.registry()),
            #[cfg(target_os = "linux")]
            Self::Uring(_) => None,
        }
    }
}

/// Decides which way a run goes.
///
/// # Errors
///
/// When io_uring is asked for and cannot be used.
pub(crate) fn settle(plan: &Plan, requests: &Requests) -> Result<Io, RunError> {
    if plan.io == Io::Epoll {
        return Ok(Io::Epoll);
    }
    match why_not_uring(plan, requests) {
        None => Ok(Io::Uring),
        Some(_) if plan.io == Io::Auto => Ok(Io::Epoll),
        Some(why) => Err(RunError::Uring(why)),
    }
}

/// Why io_uring cannot be used for this run, if it cannot.
fn why_not_uring(plan: &Plan, requests: &Requests) -> Option<String> {
    let what = if plan.http2.is_some() {
        "HTTP/2"
    } else if plan.receive_rate.is_some() {
        "connections that receive at a limited rate"
    } else if plan.linger_max.is_some() {
        "a connection that is left open"
    } else {
        #[cfg(target_os = "linux")]
        return milepost_uring::Ring::new(1, requests.block()).err().map(|error| error.to_string());
        #[cfg(not(target_os = "linux"))]
        return Some("it is a thing of Linux".to_owned());
    };
    Some(format!("it is not used for {what}"))
}
