//! The loop of one thread: waits for sockets, reads answers, sends the next requests.
//!
//! A slot is one request at a time: it has a connection for each origin and uses one of them. With a
//! single origin, which is nearly always, a slot is a connection.
//!
//! Readiness is edge-triggered and registered once, the next request is written where the last
//! answer ended, and a read that does not fill the buffer has emptied the socket. So a request on a
//! persistent connection costs one write, one read, and its share of one wait. Nothing is allocated
//! for a request, and nothing is shared with other threads but a counter that is touched once in
//! many requests.
//!
//! Source: epoll(7), "Questions and answers", for the short read; RFC 9112 section 9.3.1 for sending
//! again what died on an idle connection.

mod answered;
mod chain;
mod establish;
mod fill;
mod linger;
mod recover;
mod rest;
mod throttle;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io::{self, ErrorKind};
use std::sync::Arc;

use mio::{Interest, Token};
use rustls::ClientConfig;

use crate::answer::Judge;
use crate::browse::Visit;
use crate::clock::nanos;
use crate::connection::{Connection, Exchange, State, Watch};
use crate::deadlines::Deadlines;
use crate::driver::{Driver, Outgoing, READ_BYTES, Ready, Sent};
use crate::elsewhere::Elsewhere;
use crate::origin::Origin;
use crate::part::{Part, Shared};
use crate::plan::{Order, TimeoutFrom};
use crate::schedule::{Due, Schedule};
use crate::socket::Opening;
use crate::target::Target;
use crate::turns::{self, Core, Work};

use linger::Lingering;

pub(crate) use establish::cut_off;
pub(crate) use recover::{broken, not_connected};

/// Requests up to this length go out in one segment on any network, so nothing waits for an
/// acknowledgement (Nagle's algorithm) and the socket needs no option against it.
const ONE_SEGMENT_BYTES: usize = 500;

/// A place for one request at a time.
#[derive(Debug, Default)]
struct Slot {
    /// Requests of the list so far.
    sent: u64,
    /// As many are sent before it is finished.
    sent_end: u64,
    visit: Visit,
}

/// One thread's loop and everything it needs.
pub(crate) struct Worker<'a> {
    core: Core<'a>,
    /// Addresses: those of the list, then those that redirects led to.
    origins: Vec<Origin>,
    /// How TLS is spoken, if anybody may want it.
    tls: Option<Arc<ClientConfig>>,
    elsewhere: Elsewhere,
    /// Origin by origin, for each the slots.
    connections: Vec<Connection>,
    slots: Vec<Slot>,
    /// Number of the first slot among those of all workers.
    first_slot: usize,
    /// By target.
    judges: Vec<Judge>,
    deadlines: Deadlines,
    /// Connections that are paused, by when they are tried again.
    paused: BinaryHeap<Reverse<(u64, usize)>>,
    /// Slots without a request, the one that rested longest in front, and since when they rest.
    free: VecDeque<(usize, u64)>,
    /// Slots that rest, by when they have rested.
    resting: BinaryHeap<Reverse<(u64, usize)>>,
    /// Connections that are ahead of the rate at which they may receive, by until when.
    aside: BinaryHeap<Reverse<(u64, usize)>>,
    /// Bytes a second of each connection; 0 without a limit.
    receive_rate: f64,
    /// Slots that have sent all their requests.
    finished: usize,
    random: fastrand::Rng,
    /// Whether a request may be longer than a segment.
    needs_no_delay: bool,
    /// Whether answers are looked at for what follows from them.
    browses: bool,
    /// Whether there are requests with places to be filled.
    fills: bool,
    /// Buffer for a content with places.
    content: Vec<u8>,
    timeout_ns: u64,
    pause_max_ns: u64,
    /// Connections opened so far: says which source address is next.
    openings: usize,
    /// Whether the next connection that is used up is left open.
    may_linger: bool,
    lingering: Option<Lingering>,
    /// Whether any connection was ever opened, and the last reason why not.
    connected: bool,
    refusal: Option<(Origin, io::Error)>,
}

impl<'a> Work<'a> for Worker<'a> {
    fn core(&mut self) -> &mut Core<'a> {
        &mut self.core
    }

    fn begin(&mut self, part: &Part<'_>) {
        self.finished = 0;
        for slot in &mut self.slots {
            slot.sent_end = slot.sent.saturating_add(part.requests_each);
        }
    }

    /// To each slot one at most: a slot that fails at once must not keep the loop from looking at the clock.
    fn fill(&mut self, schedule: &mut Schedule<'_>) {
        for _ in 0..self.free.len() {
            let Some(due) = schedule.take(self.core.now) else { break };
            let Some((slot, since)) = self.free.pop_front() else { break };
            self.begin_request(slot, due, since);
        }
    }

    fn sent(&mut self, at: usize) {
        let connection = &mut self.connections[at];
        let is_on_its_way = matches!(connection.state, State::Sending | State::Waiting);
        // It may have failed meanwhile, and been queued again.
        if is_on_its_way && connection.exchange.sent == 0 {
            connection.exchange.sent = self.core.now;
            self.lateness(at);
        }
    }

    fn is_finished(&self) -> bool {
        self.finished > 0 && self.finished == self.core.alive
    }

    fn until(&self, part: &Part<'_>) -> (u64, Option<u64>) {
        if !self.core.is_open_loop && !self.free.is_empty() && !part.schedule.is_over(self.core.now)
        {
            // A slot failed when it was filled; the next turn fills it again.
            return (self.core.now, None);
        }
        let deadline = self.deadlines.first().map(|(_, at)| at);
        let waits = [&self.paused, &self.resting, &self.aside];
        let first = waits.into_iter().filter_map(|heap| heap.peek().map(|&Reverse((at, _))| at));
        let until = first.chain(deadline).min().unwrap_or(u64::MAX);
        (until, part.schedule.next_at().filter(|_| !self.free.is_empty()))
    }

    fn handle(&mut self, ready: Ready, schedule: &mut Schedule<'_>) {
        let Ready { token, read_closed } = ready;
        let Token(at) = token;
        if token == linger::TOKEN {
            return self.see_lingering();
        }
        let Some(connection) = self.connections.get_mut(at) else { return };
        match connection.state {
            State::Waiting if connection.aside_until > 0 => {}
            State::Waiting => self.read(at, read_closed, schedule),
            State::Connecting => self.establish(at),
            State::Sending if self.core.driver.sent() == Sent::Later => {
                // The news is that what was sent is out, or something has come before that.
                if !self.core.driver.is_sending(at) {
                    self.write(at);
                }
                self.read(at, read_closed, schedule);
            }
            State::Sending => {
                // An answer may come before the request is out; it is read when that fails or ends.
                self.write(at);
                if self.connections[at].state == State::Waiting || read_closed {
                    self.read(at, read_closed, schedule);
                }
            }
            State::Free => self.read_idle(at),
            State::Paused => {}
        }
    }

    fn look(&mut self, schedule: &mut Schedule<'_>) {
        self.expire();
        self.resume();
        self.rouse();
        self.read_aside(schedule);
    }

    fn abandon(&mut self) {
        for at in 0..self.connections.len() {
            let connection = &mut self.connections[at];
            if connection.state == State::Free {
                continue;
            }
            let Exchange { intended, sent, .. } = connection.exchange;
            self.core.record.unanswered += 1;
            self.core.record.censored(intended, (sent > 0).then_some(sent), self.core.now);
            self.core.driver.close(at, connection);
            connection.state = State::Free;
            self.deadlines.clear(at);
            self.core.busy -= 1;
            self.free.push_back((self.slot(at), self.core.now));
        }
    }
}

impl<'a> Worker<'a> {
    /// A worker with `slots` connections, of which the first is number `first_slot` of all.
    ///
    /// # Errors
    ///
    /// When the system refuses a poll or a timer.
    pub(crate) fn new(
        shared: &'a Shared<'a>,
        index: usize,
        first_slot: usize,
        slots: usize,
        tls: Option<Arc<ClientConfig>>,
    ) -> io::Result<Self> {
        let plan = shared.plan;
        let places = slots * shared.requests.origins().len();
        let driver = Driver::new(shared.io, places, shared.requests, shared.clock)?;
        let connection = || Connection::new(shared.keep);
        let browses = plan.browsing.is_active();
        let fills = shared.requests.has_templates();
        Ok(Self {
            core: Core::new(shared, index, driver, slots),
            origins: shared.requests.origins().to_vec(),
            tls,
            elsewhere: Elsewhere::default(),
            connections: std::iter::repeat_with(connection).take(places).collect(),
            slots: std::iter::repeat_with(Slot::default).take(slots).collect(),
            first_slot,
            judges: shared.judges(),
            deadlines: Deadlines::new(places),
            paused: BinaryHeap::new(),
            free: (0..slots).map(|slot| (slot, 0)).collect(),
            resting: BinaryHeap::new(),
            aside: BinaryHeap::new(),
            receive_rate: plan.receive_rate.unwrap_or_default(),
            finished: 0,
            random: fastrand::Rng::with_seed(plan.seed ^ (first_slot as u64).rotate_left(32)),
            needs_no_delay: browses || fills || shared.requests.longest() > ONE_SEGMENT_BYTES,
            browses,
            fills,
            content: Vec::new(),
            timeout_ns: nanos(plan.timeout),
            pause_max_ns: nanos(plan.pause_max),
            openings: index,
            may_linger: index == 0 && plan.linger_max.is_some(),
            lingering: None,
            connected: false,
            refusal: None,
        })
    }

    /// Why no connection could be opened, if none could.
    pub(crate) fn into_refusal(self) -> Option<(Origin, io::Error)> {
        if self.connected { None } else { self.refusal }
    }

    /// Records how late a request was sent that its connection could have sent in time. In the closed
    /// loop a request is due whenever it is sent. Time that a connection takes to be opened is the
    /// server's.
    #[inline]
    fn lateness(&mut self, at: usize) {
        let Exchange { sent, ready, .. } = self.connections[at].exchange;
        if self.core.is_open_loop && ready > 0 {
            self.core.record.lateness.record(sent - ready);
        }
    }

    /// Puts a request on a slot that could have taken it since `free_since`.
    #[inline]
    fn begin_request(&mut self, slot: usize, due: Due, free_since: u64) {
        let places = self.core.shared.choice.places();
        let target = match self.core.shared.plan.order {
            _ if places == 1 => 0,
            Order::Sequential => {
                self.core.shared.choice.target((due.number % places as u64) as usize)
            }
            Order::Random => self.core.shared.choice.target(self.random.usize(..places)),
            Order::Each => self.core.shared.choice.target(self.place_of(slot)),
        };
        let at = self.core.shared.requests.target(target).origin * self.slots.len() + slot;
        self.slots[slot].sent += 1;
        self.core.take_place();
        let is_open = self.connections[at].socket.is_some();
        let ready = if is_open { due.intended.max(free_since) } else { 0 };
        self.connections[at].exchange = Exchange {
            target,
            intended: due.intended,
            chain_began: due.intended,
            ready,
            ..Exchange::default()
        };
        if self.fills {
            self.fill_in(at, due);
        }
        if self.browses {
            self.begin_chain(at, due);
        }
        self.send(at);
        if self.connections[at].exchange.sent > 0 {
            self.lateness(at);
        }
    }

    /// Sends the request of a connection from its beginning.
    #[inline]
    fn send(&mut self, at: usize) {
        let connection = &mut self.connections[at];
        connection.incoming.reset();
        connection.aside_until = 0;
        if connection.socket.is_some() {
            connection.state = State::Sending;
            self.write(at);
        } else {
            self.open(at);
        }
    }

    /// Opens a connection, or arranges for it when it is too early to try again.
    fn open(&mut self, at: usize) {
        let now = self.core.shared.clock.now();
        let connection = &mut self.connections[at];
        if connection.retry_at > now {
            connection.state = State::Paused;
            self.paused.push(Reverse((connection.retry_at, at)));
            self.deadlines.clear(at);
            return;
        }
        connection.opened = now;
        connection.connected = 0;
        connection.exchange.opened = now;
        connection.state = State::Connecting;
        let sources = &self.core.shared.plan.sources;
        let opening = Opening {
            tls: self.tls.as_ref(),
            address: self.origins[at / self.slots.len()]
                .endpoint
                .in_turn(self.core.shared.plan.names.as_deref(), self.openings),
            source: sources.get(self.openings % sources.len().max(1)).copied(),
            buffer: self.core.shared.plan.socket_buffer,
            no_delay: self.needs_no_delay,
        };
        self.openings += 1;
        let origin = &self.origins[at / self.slots.len()];
        let (socket, is_writable) = match self.core.driver.open(at, origin, opening) {
            Ok(opened) => opened,
            Err(error) => return self.refused(at, error),
        };
        self.connections[at].socket = Some(socket);
        self.deadlines.set(at, now.saturating_add(self.timeout_ns));
        if !is_writable {
            return;
        }
        // On a loopback interface the connection is there already, and with the request on its way
        // there is nothing to wait for but the answer.
        self.establish(at);
        let watch = if self.connections[at].wants_write() { Watch::Both } else { Watch::Read };
        if self.connections[at].watch != watch {
            self.watch(at, watch);
        }
    }

    /// Tells the poll what to watch, unless the socket is gone.
    fn watch(&mut self, at: usize, watch: Watch) {
        let connection = &mut self.connections[at];
        let Some(socket) = &mut connection.socket else { return };
        let interest = match watch {
            Watch::Nothing => return,
            Watch::Read => Interest::READABLE,
            Watch::Both => Interest::READABLE | Interest::WRITABLE,
        };
        let Some(registry) = self.core.driver.registry() else { return };
        let outcome = match connection.watch {
            Watch::Nothing => registry.register(socket, Token(at), interest),
            _ => registry.reregister(socket, Token(at), interest),
        };
        match outcome {
            Ok(()) => connection.watch = watch,
            Err(error) => self.fail(at, broken(&error)),
        }
    }

    /// Writes what is left of the request.
    #[inline]
    fn write(&mut self, at: usize) {
        loop {
            let connection = &mut self.connections[at];
            let Some(socket) = &mut connection.socket else { return };
            let exchange = &mut connection.exchange;
            let (bytes, length) = match &connection.own {
                None if !connection.filled.is_empty() => {
                    let bytes = &connection.filled[exchange.written..];
                    (Outgoing::Own(bytes), bytes.len())
                }
                None => {
                    let mut range = self.core.shared.requests.range(exchange.target);
                    range.start += exchange.written;
                    let length = range.len();
                    (Outgoing::Rendered(range), length)
                }
                Some(own) => {
                    let bytes = &own.request.bytes[exchange.written..];
                    (Outgoing::Own(bytes), bytes.len())
                }
            };
            if length == 0 {
                connection.state = State::Waiting;
                return;
            }
            let is_later = self.core.driver.sent() == Sent::Later;
            let now = match exchange.sent {
                0 if is_later => self.core.now,
                0 => self.core.shared.clock.now(),
                sent => sent,
            };
            match self.core.driver.write(at, socket, self.core.shared.requests, bytes) {
                Ok(written) => {
                    let is_complete = written == length;
                    exchange.written += written;
                    self.core.record.bytes.sent += written as u64;
                    if exchange.sent == 0 {
                        exchange.sent = if is_later { 0 } else { now };
                        self.deadlines.set(at, now.saturating_add(self.timeout_ns));
                    }
                    if connection.state == State::Connecting {
                        self.connected = true;
                        connection.failures = 0;
                        self.core.record.opened += 1;
                        if connection.connected == 0 {
                            self.core.record.connect.record(now.saturating_sub(connection.opened));
                        }
                    }
                    let is_out = is_complete && !self.core.driver.is_sending(at);
                    connection.state = if is_out { State::Waiting } else { State::Sending };
                    if is_complete {
                        return;
                    }
                }
                Err(error) => match (error.kind(), connection.state) {
                    (ErrorKind::Interrupted, _) => {}
                    (ErrorKind::WouldBlock, _) | (ErrorKind::NotConnected, State::Connecting) => {
                        if connection.watch == Watch::Read {
                            self.watch(at, Watch::Both);
                        }
                        return;
                    }
                    (_, State::Connecting) => return self.refused(at, error),
                    _ => return self.died(at, broken(&error)),
                },
            }
        }
    }

    /// Reads until the answer is complete or the socket is empty.
    #[inline]
    fn read(&mut self, at: usize, read_closed: bool, schedule: &mut Schedule<'_>) {
        let is_later = self.core.driver.sent() == Sent::Later;
        if is_later && self.connections[at].exchange.sent == 0 {
            // Something came before the request was out.
            turns::hand_over(self);
        }
        loop {
            let connection = &mut self.connections[at];
            let Some(socket) = &mut connection.socket else { return };
            let judge = match &mut connection.own {
                None => &mut self.judges[connection.exchange.target],
                Some(own) => &mut own.judge,
            };
            let describe = self.core.record.wants_example(connection.exchange.target);
            match self.core.driver.read(at, socket) {
                Ok([]) => {
                    if !is_later {
                        self.core.now = self.core.shared.clock.now();
                    }
                    let is_whole = socket.layered().is_none_or(|layered| !layered.is_truncated());
                    return match connection.incoming.close(judge, describe) {
                        Ok(_) if !is_whole => self.died(at, cut_off()),
                        Ok(answer) => self.answered(at, answer, true, schedule),
                        Err(failure) => self.died(at, failure),
                    };
                }
                Ok(bytes) => {
                    // What is reported as come had come before the turn began.
                    if !is_later {
                        self.core.now = self.core.shared.clock.now();
                    }
                    let length = bytes.len();
                    self.core.record.bytes.received += length as u64;
                    if connection.exchange.first_byte == 0 {
                        connection.exchange.first_byte = self.core.now;
                    }
                    match connection.incoming.receive(bytes, judge, describe) {
                        Ok(Some(answer)) => {
                            return self.answered(at, answer, read_closed, schedule);
                        }
                        Ok(None) => {
                            if self.receive_rate > 0.0 && self.is_ahead(at, length) {
                                return;
                            }
                            // Borrowed anew: what is ahead is put aside by the worker as a whole.
                            let Some(socket) = &self.connections[at].socket else { return };
                            if self.core.shared.plan.timeout_from == TimeoutFrom::LastByte {
                                self.deadlines
                                    .set(at, self.core.now.saturating_add(self.timeout_ns));
                            }
                            // Less than there was room for: the socket is empty. But the end of the
                            // stream, once announced, is not announced again.
                            if socket.is_emptied(length, READ_BYTES) && !read_closed {
                                return;
                            }
                        }
                        Err(failure) => return self.fail(at, failure),
                    }
                }
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock => return,
                    ErrorKind::Interrupted => {}
                    _ => return self.died(at, broken(&error)),
                },
            }
        }
    }

    /// A connection without a request became readable: the server has closed it, or says something
    /// that nobody asked for, such as 408 before it closes.
    fn read_idle(&mut self, at: usize) {
        let connection = &mut self.connections[at];
        let Some(socket) = &mut connection.socket else { return };
        match self.core.driver.read(at, socket) {
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            _ => {
                self.core.driver.close(at, connection);
                self.core.record.closed_by_server += 1;
            }
        }
    }

    /// What the request on a connection asks for.
    fn target(&self, at: usize) -> &Target {
        let connection = &self.connections[at];
        match &connection.own {
            None => &self.core.shared.plan.targets[connection.exchange.target],
            Some(own) => &own.target,
        }
    }

    fn slot(&self, at: usize) -> usize {
        at % self.slots.len()
    }

    fn origin(&self, at: usize) -> &Origin {
        &self.origins[at / self.slots.len()]
    }
}
