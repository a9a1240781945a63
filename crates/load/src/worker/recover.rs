//! What a worker does when a request or a connection fails.
//!
//! Every failure ends in a request that is counted once and a slot that is free, paused or given up,
//! so a run ends whatever the server does. Nothing in here happens in a run that goes well.

use std::cmp::Reverse;
use std::io::{self, ErrorKind};
use std::time::Duration;

use super::Worker;
use super::establish::hindered;
use crate::answer::Failure;
use crate::clock::nanos;
use crate::connection::{Exchange, State};
use crate::failure::FailureKind;
use crate::origin::Origin;
use crate::patience::{GIVE_UP_AFTER, GIVE_UP_FIRST};
use crate::plan::Refusal;

/// Failures to connect in a row that cost one request.
const CONNECT_TRIES: u32 = 4;

/// Pause after the first failure to connect. Doubles with each further one.
const PAUSE_MIN: Duration = Duration::from_millis(10);

/// Longest pause: a server that comes back is found soon.
const PAUSE_MAX: Duration = Duration::from_millis(500);

impl Worker<'_> {
    /// A connection ended under its request. If it had been idle, the server may have ended it
    /// before it saw the request: that is sent again, once, on a fresh connection.
    pub(super) fn died(&mut self, at: usize, failure: Failure) {
        let connection = &mut self.connections[at];
        let traits = match &connection.own {
            None => self.core.shared.requests.target(connection.exchange.target).traits,
            Some(own) => own.request.traits,
        };
        if connection.carried == 0 || connection.incoming.is_started() || !traits.idempotent {
            return self.fail(at, failure);
        }
        self.core.record.closed_by_server += 1;
        self.core.record.resent += 1;
        self.core.driver.close(at, connection);
        connection.exchange.written = 0;
        connection.exchange.sent = 0;
        self.send(at);
    }

    /// The request has failed; its slot is free for the next.
    pub(super) fn fail(&mut self, at: usize, failure: Failure) {
        self.forget(at, failure);
        let slot = self.slot(at);
        if !self.rests(slot) {
            self.free.push_back((slot, self.core.now));
        }
    }

    /// Counts a request as failed.
    pub(super) fn count_failure(&mut self, at: usize, failure: Failure) {
        if self.browses {
            self.core.record.chains.get_or_insert_default().failed();
        }
        let connection = &self.connections[at];
        let target = match &connection.own {
            None => &self.core.shared.plan.targets[connection.exchange.target],
            Some(own) => &own.target,
        };
        self.core.record.failure(failure, target);
    }

    /// Counts the request as failed and takes it off its connection.
    fn forget(&mut self, at: usize, failure: Failure) {
        if self.core.shared.observer.is_some() {
            self.observe(at, Err(&failure), false);
        }
        self.count_failure(at, failure);
        let connection = &mut self.connections[at];
        self.core.driver.close(at, connection);
        connection.state = State::Free;
        self.deadlines.clear(at);
        self.core.busy -= 1;
    }

    /// A connection could not be opened: pause and try again, give up the request after some times,
    /// give up the slot after some time.
    pub(super) fn refused(&mut self, at: usize, error: io::Error) {
        let now = self.core.shared.clock.now();
        let address = self.origin(at).clone();
        let connection = &mut self.connections[at];
        self.core.driver.close(at, connection);
        if connection.failures == 0 {
            connection.failing_since = connection.opened;
        }
        let doublings = connection.failures.min(u32::BITS - 1);
        connection.failures = connection.failures.saturating_add(1);
        let pause = PAUSE_MIN.saturating_mul(1 << doublings.min(16)).min(PAUSE_MAX);
        connection.retry_at = now + nanos(pause);

        let patience = if self.connected { GIVE_UP_AFTER } else { GIVE_UP_FIRST };
        let failing_for = now - connection.failing_since;
        let failure = not_connected(&address, &error);
        self.refusal = Some((address, error));
        if self.core.shared.plan.refusal == Refusal::Fail {
            connection.retry_at = 0;
            self.fail(at, failure);
        } else if failing_for >= nanos(patience) {
            self.forget(at, failure);
            self.core.alive -= 1;
        } else if connection.failures.is_multiple_of(CONNECT_TRIES) {
            self.fail(at, failure);
        } else {
            connection.state = State::Paused;
            self.paused.push(Reverse((connection.retry_at, at)));
            self.deadlines.clear(at);
        }
    }

    /// Fails the requests whose time is over.
    pub(super) fn expire(&mut self) {
        while let Some((at, deadline)) = self.deadlines.first()
            && deadline <= self.core.now
        {
            let Exchange { intended, sent, .. } = self.connections[at].exchange;
            self.core.record.censored(intended, (sent > 0).then_some(sent), self.core.now);
            let timeout = self.core.shared.plan.timeout;
            if self.connections[at].state != State::Connecting {
                let detail = format!("no complete answer within {timeout:?}");
                self.fail(at, Failure::new(FailureKind::TimedOut, detail));
                continue;
            }
            let address = self.origin(at).clone();
            let detail = format!("not connected to {address} within {timeout:?}");
            let failure = Failure::new(FailureKind::TimedOut, detail);
            if self.connected || self.core.shared.plan.refusal == Refusal::Fail {
                self.fail(at, failure);
            } else {
                self.refusal = Some((address, ErrorKind::TimedOut.into()));
                self.forget(at, failure);
                self.core.alive -= 1;
            }
        }
    }

    /// Tries the connections again whose pause is over.
    pub(super) fn resume(&mut self) {
        while let Some(&Reverse((retry_at, at))) = self.paused.peek()
            && retry_at <= self.core.now
        {
            self.paused.pop();
            if self.connections[at].state == State::Paused {
                self.open(at);
            }
        }
    }
}

/// What an error on the way to the first request means for it.
pub(crate) fn not_connected(address: &Origin, error: &io::Error) -> Failure {
    let kind = hindered(error).unwrap_or(match error.kind() {
        ErrorKind::ConnectionRefused => FailureKind::ConnectRefused,
        ErrorKind::AddrNotAvailable => FailureKind::NoLocalPort,
        // Of a handshake; the system's own is no answer in its own time.
        ErrorKind::TimedOut if error.raw_os_error().is_none() => FailureKind::TimedOut,
        _ => FailureKind::ConnectFailed,
    });
    let detail = format!("cannot connect to {address}: {error}");
    Failure { kind, detail, os_error: error.raw_os_error() }
}

/// What the error of a read or write means for the request.
pub(crate) fn broken(error: &io::Error) -> Failure {
    let kind = match error.kind() {
        ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted | ErrorKind::BrokenPipe => {
            FailureKind::Reset
        }
        _ => FailureKind::Io,
    };
    Failure { kind, detail: error.to_string(), os_error: error.raw_os_error() }
}
