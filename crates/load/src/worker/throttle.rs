//! Receives no faster than the plan allows: a connection that is ahead of its rate is not read until it
//! is no more. Meanwhile its answer fills the buffers of the system, and then the server waits.

use std::cmp::Reverse;

use super::Worker;
use crate::connection::State;
use crate::schedule::Schedule;

const NANOS_PER_SECOND: f64 = 1e9;

impl Worker<'_> {
    /// Counts what came, and puts the connection aside if that was more than its rate allows by now.
    /// Returns whether it did.
    #[cold]
    pub(super) fn is_ahead(&mut self, at: usize, length: usize) -> bool {
        let exchange = &mut self.connections[at].exchange;
        exchange.received += length as u64;
        let nanos = exchange.received as f64 / self.receive_rate * NANOS_PER_SECOND;
        // A cast from a number that is too large gives the largest.
        let until = exchange.sent.saturating_add(nanos as u64);
        if until <= self.core.now {
            return false;
        }
        self.connections[at].aside_until = until;
        self.aside.push(Reverse((until, at)));
        // It is not the server that makes it wait.
        self.deadlines.set(at, until.saturating_add(self.timeout_ns));
        true
    }

    /// Reads the connections that were put aside for long enough.
    pub(super) fn read_aside(&mut self, schedule: &mut Schedule<'_>) {
        while let Some(&Reverse((until, at))) = self.aside.peek()
            && until <= self.core.now
        {
            self.aside.pop();
            let connection = &mut self.connections[at];
            // The request may be another one by now.
            if connection.aside_until == until && connection.state == State::Waiting {
                connection.aside_until = 0;
                // Whatever was announced meanwhile, the end of the stream too, is not announced again.
                self.read(at, true, schedule);
            }
        }
    }
}
