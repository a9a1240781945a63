//! A worker that does not wait for an answer before it sends the next request on the same connection.
//!
//! Each connection has so many requests under way; what is due goes to the connection whose place has been
//! free for longest, and requests that come together are written together. The checks and the record are
//! those of the other workers. An answer waits for those in front of it, and its time says so. When a server
//! closes, the requests behind the last answer are sent again on a fresh connection if that is safe.
//!
//! Source: RFC 9112 section 9.3.2 (pipelining) and 9.3.1 (what may be sent again).

mod lane;
mod opening;

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::Duration;

use mio::Token;
use rustls::ClientConfig;

use crate::answer::{Failure, Judge};
use crate::clock::nanos;
use crate::driver::{Driver, Outgoing, Ready, Sent};
use crate::failure::{FailureKind, RunError};
use crate::origin::Origin;
use crate::part::{Part, Shared};
use crate::plan::{Order, Persistence, Plan};
use crate::schedule::{Due, Schedule};
use crate::turns::{self, Core, Work};
use crate::worker;

use lane::{Desk, Lane, Pending, Received};

/// Requests under way on a connection at most. Servers read ahead less than this.
pub const PIPELINE_MAX: usize = 1_000;

/// How often timeouts and pauses are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// One thread's connections.
pub(crate) struct PipelineWorker<'a> {
    core: Core<'a>,
    tls: Option<Arc<ClientConfig>>,
    connections: usize,
    depth: usize,
    /// Origin by origin, for each the connections.
    lanes: Vec<Lane>,
    /// By target.
    judges: Vec<Judge>,
    /// Connections, each as often as it has a place, and since when the place is free.
    free: VecDeque<(usize, u64)>,
    /// Lanes that have something to be written.
    dirty: Vec<usize>,
    /// Buffers for requests with places.
    filled: [Vec<u8>; 2],
    random: fastrand::Rng,
    openings: usize,
    timeout_ns: u64,
    look_at: u64,
    connected: bool,
    refusal: Option<(Origin, io::Error)>,
}

/// Why a plan has no pipelines, if it wants something that they cannot have.
pub(crate) fn check(plan: &Plan) -> Result<(), RunError> {
    let Some(depth) = plan.pipeline else { return Ok(()) };
    let what = if !(1..=PIPELINE_MAX).contains(&depth) {
        "any length but 1 to 1000"
    } else if plan.http2.is_some() {
        "HTTP/2, which has streams"
    } else if plan.persistence != Persistence::KeepAlive {
        "a connection for each request"
    } else if plan.requests_per_connection.is_some() {
        "a number of requests for each connection"
    } else if plan.browsing.is_active() {
        "requests that follow from answers"
    } else if plan.order == Order::Each || plan.pause_max > Duration::ZERO {
        "an order or pauses of each connection"
    } else if plan.receive_rate.is_some() || plan.linger_max.is_some() {
        "a limited rate or a connection that is left open"
    } else {
        return Ok(());
    };
    Err(RunError::Pipeline(what))
}

impl<'a> Work<'a> for PipelineWorker<'a> {
    fn core(&mut self) -> &mut Core<'a> {
        &mut self.core
    }

    fn begin(&mut self, _: &Part<'_>) {
        self.core.alive = self.connections * self.depth;
        // Round about, so that all connections have work before one has much.
        let places = (0..self.depth).flat_map(|_| 0..self.connections);
        self.free = places.map(|connection| (connection, self.core.now)).collect();
        for lane in &mut self.lanes {
            (lane.is_given_up, lane.failures, lane.retry_at) = (false, 0, 0);
        }
    }

    fn fill(&mut self, schedule: &mut Schedule<'_>) {
        for _ in 0..self.free.len() {
            let Some(due) = schedule.take(self.core.now) else { break };
            let Some((connection, since)) = self.free.pop_front() else { break };
            let choice = &self.core.shared.choice;
            let place = match self.core.shared.plan.order {
                Order::Random => self.random.usize(..choice.places()),
                _ => (due.number % choice.places() as u64) as usize,
            };
            let target = choice.target(place);
            let at =
                self.core.shared.requests.target(target).origin * self.connections + connection;
            self.core.take_place();
            self.push(at, target, due, due.intended.max(since));
        }
        for at in std::mem::take(&mut self.dirty) {
            self.lanes[at].is_dirty = false;
            self.write(at);
        }
    }

    fn sent(&mut self, at: usize) {
        let Core { record, now, is_open_loop, .. } = &mut self.core;
        for pending in self.lanes[at].sent(*now) {
            if *is_open_loop && pending.ready > 0 {
                record.lateness.record(now.saturating_sub(pending.ready));
            }
        }
    }

    fn until(&self, part: &Part<'_>) -> (u64, Option<u64>) {
        let until = if self.core.busy > 0 { self.look_at } else { u64::MAX };
        (until, part.schedule.next_at().filter(|_| !self.free.is_empty()))
    }

    fn handle(&mut self, ready: Ready, _: &mut Schedule<'_>) {
        let Token(at) = ready.token;
        let Some(lane) = self.lanes.get(at) else { return };
        if lane.socket.is_some() {
            self.lanes[at].is_connecting = false;
            self.write(at);
            self.read(at);
        }
    }

    /// Fails requests whose time is over, and tries connections again whose pause is.
    fn look(&mut self, _: &mut Schedule<'_>) {
        if self.core.now < self.look_at {
            return;
        }
        self.look_at = self.core.now + nanos(LOOK_EVERY);
        for at in 0..self.lanes.len() {
            let lane = &self.lanes[at];
            let Some(&front) = lane.pending.front() else { continue };
            if lane.socket.is_none() {
                self.write(at);
                continue;
            }
            let since = if lane.is_open { front.sent } else { lane.opened_at };
            if since == 0 || since.saturating_add(self.timeout_ns) > self.core.now {
                continue;
            }
            let sent = (front.sent > 0).then_some(front.sent);
            self.core.record.censored(front.due.intended, sent, self.core.now);
            if !lane.is_open {
                self.refused(at, ErrorKind::TimedOut.into());
                continue;
            }
            let detail = format!("no complete answer within {:?}", self.core.shared.plan.timeout);
            self.died(at, Some(Failure::new(FailureKind::TimedOut, detail)));
        }
    }

    fn abandon(&mut self) {
        for (at, lane) in self.lanes.iter_mut().enumerate() {
            self.core.driver.release(at);
            for Pending { due, sent, .. } in lane.close() {
                self.core.record.unanswered += 1;
                self.core.record.censored(due.intended, (sent > 0).then_some(sent), self.core.now);
            }
            lane.is_dirty = false;
        }
        self.dirty.clear();
        self.core.busy = 0;
    }
}

impl<'a> PipelineWorker<'a> {
    /// A worker with some connections of `depth` requests each, the first of them number `first` of all.
    ///
    /// # Errors
    ///
    /// When the system refuses a poll or a timer.
    pub(crate) fn new(
        shared: &'a Shared<'a>,
        index: usize,
        first: usize,
        connections: usize,
        depth: usize,
        tls: Option<Arc<ClientConfig>>,
    ) -> io::Result<Self> {
        let plan = shared.plan;
        let places = connections * shared.requests.origins().len();
        let driver = Driver::new(shared.io, places, shared.requests, shared.clock)?;
        Ok(Self {
            core: Core::new(shared, index, driver, connections * depth),
            tls,
            connections,
            depth,
            lanes: std::iter::repeat_with(Lane::new).take(places).collect(),
            judges: shared.judges(),
            free: VecDeque::new(),
            dirty: Vec::new(),
            filled: [Vec::new(), Vec::new()],
            random: fastrand::Rng::with_seed(plan.seed ^ (first as u64).rotate_left(32)),
            openings: index,
            timeout_ns: nanos(plan.timeout),
            look_at: 0,
            connected: false,
            refusal: None,
        })
    }

    /// Why no connection could be opened, if none could.
    pub(crate) fn into_refusal(self) -> Option<(Origin, io::Error)> {
        if self.connected { None } else { self.refusal }
    }

    /// Puts a request on a lane, to be written soon.
    fn push(&mut self, at: usize, target: usize, due: Due, ready: u64) {
        let [filled, content] = &mut self.filled;
        let rendered = self.core.shared.requests.target(target);
        let bytes = match (&rendered.template, self.core.shared.values(due)) {
            (Some(template), Some(values)) => {
                template.fill(values, filled, content);
                &**filled
            }
            _ => self.core.shared.requests.bytes(target),
        };
        let lane = &mut self.lanes[at];
        lane.push(target, due, ready, bytes);
        if !std::mem::replace(&mut lane.is_dirty, true) {
            self.dirty.push(at);
        }
    }

    /// Writes what a lane has, and opens its connection before that if need be.
    fn write(&mut self, at: usize) {
        if self.lanes[at].socket.is_none() && !self.open(at) || self.lanes[at].is_connecting {
            return;
        }
        if !self.lanes[at].is_open && !self.establish(at) {
            return;
        }
        loop {
            let lane = &mut self.lanes[at];
            let (Some(socket), bytes) = lane.unwritten() else { return };
            if bytes.is_empty() {
                return;
            }
            let now = self.core.shared.clock.now();
            let (driver, requests) = (&mut self.core.driver, self.core.shared.requests);
            match driver.write(at, socket, requests, Outgoing::Own(bytes)) {
                Ok(length) => {
                    self.core.record.bytes.sent += length as u64;
                    self.lanes[at].wrote(length);
                    if self.core.driver.sent() == Sent::Now {
                        self.core.now = now;
                        self.sent(at);
                    }
                    self.opened(at, now);
                }
                Err(error) => match error.kind() {
                    ErrorKind::Interrupted => {}
                    ErrorKind::WouldBlock => return,
                    ErrorKind::NotConnected if !self.lanes[at].is_open => return,
                    _ if !self.lanes[at].is_open => return self.refused(at, error),
                    // What came before that may still be read.
                    _ => return self.read(at),
                },
            }
        }
    }

    /// Reads until the socket is empty. It says so itself: with so many answers to a read that costs little,
    /// and the end of the stream, announced once, is not missed.
    fn read(&mut self, at: usize) {
        loop {
            let lane = &mut self.lanes[at];
            if !lane.is_open {
                return;
            }
            if self.core.driver.sent() == Sent::Later && lane.is_unsent() {
                // Something came before the requests were out.
                turns::hand_over(self);
            }
            let lane = &mut self.lanes[at];
            let Some(mut socket) = lane.socket.take() else { return };
            let read = self.core.driver.read(at, &mut socket);
            self.core.now = self.core.shared.clock.now();
            let (plan, now) = (self.core.shared.plan, self.core.now);
            let (judges, record) = (&mut *self.judges, &mut self.core.record);
            let mut desk = Desk { plan, judges, record, now };
            let received = match read {
                Ok([]) => {
                    let is_whole = socket.layered().is_none_or(|it| !it.is_truncated());
                    lane.end(is_whole, &mut desk)
                }
                Ok(bytes) => {
                    desk.record.bytes.received += bytes.len() as u64;
                    lane.receive(bytes, &mut desk)
                }
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock => {
                        lane.socket = Some(socket);
                        return;
                    }
                    ErrorKind::Interrupted => Received::default(),
                    _ => {
                        let failure = worker::broken(&error);
                        Received { answered: 0, end: Some(Some(failure)) }
                    }
                },
            };
            lane.socket = Some(socket);
            self.core.busy -= received.answered;
            let connection = at % self.connections;
            self.free.extend(std::iter::repeat_n((connection, now), received.answered));
            if let Some(failure) = received.end {
                let is_to_blame = self.lanes[at].is_started() || !self.lanes[at].has_answered();
                return self.died(at, failure.filter(|it| is_to_blame || is_answer(it)));
            }
        }
    }

    /// The socket of a lane is of no use any more. The request in front has failed, if there is a reason;
    /// the others are sent again if they may be.
    fn died(&mut self, at: usize, failure: Option<Failure>) {
        let mut left = self.lanes[at].close();
        self.core.driver.release(at);
        // With a failure it is we who close, or it counts as that.
        self.core.record.closed_by_server += u64::from(failure.is_none());
        if let Some(failure) = failure
            && let Some(front) = left.pop_front()
        {
            self.fail(at, front, failure);
        }
        for pending in left {
            if self.core.shared.requests.target(pending.target).traits.idempotent {
                self.core.record.resent += u64::from(pending.sent > 0);
                self.push(at, pending.target, pending.due, pending.ready);
            } else {
                let detail = "closed before it was answered, and it may not be sent twice";
                self.fail(at, pending, Failure::new(FailureKind::ClosedBeforeAnswer, detail));
            }
        }
    }

    /// Counts a request as failed.
    fn fail(&mut self, at: usize, pending: Pending, failure: Failure) {
        self.core.busy -= 1;
        self.core.record.failure(failure, &self.core.shared.plan.targets[pending.target]);
        if self.lanes[at].is_given_up {
            self.core.alive -= 1;
        } else {
            self.free.push_back((at % self.connections, self.core.now));
        }
    }
}

/// Whether a failure is one of what the server said, and not of the connection.
fn is_answer(failure: &Failure) -> bool {
    !matches!(failure.kind, FailureKind::ClosedBeforeAnswer | FailureKind::Reset | FailureKind::Io)
}
