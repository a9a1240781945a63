//! How a connection with a pipeline comes to be: opened when it has something to send, tried again when that
//! fails, given up after some times.

use std::io;

use mio::event::Source;
use mio::{Interest, Token};

use super::PipelineWorker;
use crate::answer::Failure;
use crate::clock::nanos;
use crate::layered::Stage;
use crate::patience;
use crate::socket::Opening;
use crate::stream::Stream;
use crate::worker;

impl PipelineWorker<'_> {
    /// Opens the connection of a lane. False if it is too early, or fails.
    pub(super) fn open(&mut self, at: usize) -> bool {
        let now = self.core.shared.clock.now();
        let lane = &self.lanes[at];
        if lane.pending.is_empty() || lane.retry_at > now {
            return false;
        }
        let plan = self.core.shared.plan;
        let opening = Opening {
            tls: self.tls.as_ref(),
            address: self.core.shared.requests.origins()[at / self.connections]
                .endpoint
                .in_turn(self.core.shared.plan.names.as_deref(), self.openings),
            source: plan.sources.get(self.openings % plan.sources.len().max(1)).copied(),
            buffer: plan.socket_buffer,
            no_delay: true,
        };
        self.openings += 1;
        let origin = &self.core.shared.requests.origins()[at / self.connections];
        let opened =
            self.core.driver.open(at, origin, opening).and_then(|(mut socket, is_ready)| {
                if let Some(registry) = self.core.driver.registry() {
                    let interest = Interest::READABLE | Interest::WRITABLE;
                    socket.register(registry, Token(at), interest)?;
                }
                Ok((socket, is_ready))
            });
        match opened {
            Ok((socket, is_ready)) => {
                let lane = &mut self.lanes[at];
                (lane.opened_at, lane.socket) = (now, Some(socket));
                lane.is_connecting = !is_ready;
                true
            }
            Err(error) => {
                self.lanes[at].opened_at = now;
                self.refused(at, error);
                false
            }
        }
    }

    /// Goes on with what lies on top of a socket. True when requests can be written.
    pub(super) fn establish(&mut self, at: usize) -> bool {
        let lane = &mut self.lanes[at];
        let Some(Stream::Layered(layered)) = &mut lane.socket else { return true };
        let stage = match self.core.driver.establish(at, layered) {
            Ok(stage) => stage,
            Err(error) => {
                self.refused(at, error);
                return false;
            }
        };
        let now = self.core.shared.clock.now();
        if stage != Stage::Connecting && lane.connected_at == 0 {
            lane.connected_at = now;
            self.core.record.connect.record(now.saturating_sub(lane.opened_at));
        }
        if stage != Stage::Ready {
            return false;
        }
        if let Some(is_resumed) = layered.is_resumed() {
            let took = now.saturating_sub(lane.connected_at);
            self.core.record.handshake(took, is_resumed, || layered.session());
        }
        true
    }

    /// A connection has taken its first bytes.
    pub(super) fn opened(&mut self, at: usize, now: u64) {
        let lane = &mut self.lanes[at];
        if !std::mem::replace(&mut lane.is_open, true) {
            self.connected = true;
            lane.failures = 0;
            self.core.record.opened += 1;
            if lane.connected_at == 0 {
                self.core.record.connect.record(now.saturating_sub(lane.opened_at));
            }
        }
    }

    /// A connection could not be opened: costs the request in front, then a pause, and after some times
    /// the connection.
    pub(super) fn refused(&mut self, at: usize, error: io::Error) {
        let origin = &self.core.shared.requests.origins()[at / self.connections];
        let failure = worker::not_connected(origin, &error);
        let refusal = (origin.clone(), error);
        let lane = &mut self.lanes[at];
        let mut left = lane.close();
        self.core.driver.release(at);
        lane.failures += 1;
        lane.retry_at = self.core.shared.clock.now() + nanos(patience::PAUSE);
        lane.is_given_up = lane.failures >= patience::tries(self.connected);
        self.refusal = Some(refusal);
        if !self.lanes[at].is_given_up {
            if let Some(front) = left.pop_front() {
                self.fail(at, front, failure);
            }
            for pending in left {
                self.push(at, pending.target, pending.due, pending.ready);
            }
            return;
        }
        for pending in left {
            let Failure { kind, ref detail, os_error } = failure;
            self.fail(at, pending, Failure { kind, detail: detail.clone(), os_error });
        }
        // No more of its places are given out.
        let connection = at % self.connections;
        let before = self.free.len();
        self.free.retain(|(other, _)| *other != connection);
        self.core.alive -= before - self.free.len();
    }
}
