//! Leaves one used connection open, to see when the server closes it.
//!
//! A client that waits for the end of the connection instead of the end of the answer waits exactly
//! that long for each answer. The socket is taken out of the run, so nothing else is delayed by it.

use std::io::{self, ErrorKind};
use std::time::Duration;

use mio::{Interest, Token};

use super::Worker;
use crate::clock::nanos;
use crate::connection::Watch;
use crate::meter::TICK;
use crate::report::Linger;
use crate::stream::Stream;

/// The token of the socket; connections have their index.
pub(super) const TOKEN: Token = Token(usize::MAX - 1);

/// Nobody asked for what still comes; it is read in pieces of this length.
const REST_BYTES: usize = 4096;

/// The socket that was left open.
#[derive(Debug)]
pub(super) struct Lingering {
    socket: Option<Stream>,
    /// When the answer was complete.
    since: u64,
    /// When the server closed.
    closed_at: Option<u64>,
}

impl Worker<'_> {
    /// Takes the socket of a connection out of the run. `closed` says that the server has closed it.
    pub(super) fn let_linger(&mut self, at: usize, closed: bool) {
        self.may_linger = false;
        let connection = &mut self.connections[at];
        let (since, watch) = (self.core.now, connection.watch);
        let mut lingering = Lingering {
            socket: connection.socket.take(),
            since,
            closed_at: closed.then_some(since),
        };
        if let Some(socket) = &mut lingering.socket
            && !closed
        {
            let Some(registry) = self.core.driver.registry() else { return };
            let outcome = match watch {
                Watch::Nothing => registry.register(socket, TOKEN, Interest::READABLE),
                _ => registry.reregister(socket, TOKEN, Interest::READABLE),
            };
            // A socket that cannot be watched tells nothing.
            if outcome.is_err() {
                return;
            }
        }
        self.lingering = Some(lingering);
    }

    /// The socket that was left open has something to say.
    pub(super) fn see_lingering(&mut self) {
        let now = self.core.now;
        let Some(lingering) = &mut self.lingering else { return };
        let Some(socket) = &mut lingering.socket else { return };
        let mut buffer = [0; REST_BYTES];
        loop {
            match socket.read(&mut buffer) {
                // Nobody asked for more.
                Ok(length) if length > 0 => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                _ => {
                    lingering.closed_at = Some(now);
                    lingering.socket = None;
                    return;
                }
            }
        }
    }

    /// Waits until the server closes the socket that was left open, or for as long as the plan allows.
    ///
    /// # Errors
    ///
    /// When the poll fails.
    pub(crate) fn wait_for_lingering(&mut self) -> io::Result<Option<Linger>> {
        let ended = self.core.now;
        let until =
            ended.saturating_add(nanos(self.core.shared.plan.linger_max.unwrap_or_default()));
        while self.lingering.as_ref().is_some_and(|it| it.closed_at.is_none())
            && self.core.now < until
            && !self.core.shared.control.is_stopped()
        {
            let wait = TICK.min(Duration::from_nanos(until - self.core.now));
            self.core.driver.wait(wait, None, self.core.now)?;
            self.core.now = self.core.shared.clock.now();
            while let Some(ready) = self.core.driver.next() {
                if ready.token == TOKEN {
                    self.see_lingering();
                }
            }
        }
        Ok(self.lingering.take().map(|it| Linger {
            seconds: Duration::from_nanos(it.closed_at.unwrap_or(self.core.now) - it.since)
                .as_secs_f64(),
            closed: it.closed_at.is_some(),
        }))
    }
}
