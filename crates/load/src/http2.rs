//! A worker that speaks HTTP/2: some connections, on each some streams at a time.
//!
//! The same plan, the same checks, the same record as over HTTP/1.1; what is a connection there is a
//! stream here. The protocol is that of the `h2` crate on a runtime of the worker's own thread, so a
//! request costs more of the generator than over HTTP/1.1, and the report says how much.
//!
//! Source: RFC 9113; section 3.3 for prior knowledge, 6.8 and 8.7 for what may be sent again.

mod exchange;
mod link;
mod pace;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::select_all;
use futures_util::stream::{FuturesUnordered, StreamExt};
use rustls::ClientConfig;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, sleep_until};

use crate::browse::Visit;
use crate::clock::{nanos, thread_cpu};
use crate::elsewhere::Elsewhere;
use crate::failure::RunError;
use crate::idle::Idle;
use crate::meter::{Meter, TICK};
use crate::origin::Origin;
use crate::part::{End, Part, PartResult, Shared};
use crate::plan::Plan;
use crate::record::Record;
use crate::schedule::{Due, Schedule};

use exchange::Prepared;
use link::{Link, Opening};

/// One thread's connections and streams.
pub(crate) struct Http2Worker<'a> {
    shared: &'a Shared<'a>,
    index: usize,
    /// Number of the first stream among those of all workers.
    first_slot: usize,
    runtime: Runtime,
    /// By target.
    requests: Vec<Prepared>,
    /// Addresses: those of the list, then those that redirects led to.
    origins: RefCell<Vec<Origin>>,
    /// Origin by origin, for each the connections.
    links: RefCell<Vec<Arc<Link>>>,
    elsewhere: RefCell<Elsewhere>,
    /// How TLS is spoken, if anybody may want it.
    tls: Option<Arc<ClientConfig>>,
    /// Number of the first connection among those of all workers.
    first_connection: usize,
    /// What each stream's place remembers from request to request.
    visits: RefCell<Vec<Visit>>,
    /// Whether answers are looked at for what follows from them.
    browses: bool,
    connections: usize,
    slots: usize,
    /// Requests of each stream of the list so far.
    sent: RefCell<Vec<u64>>,
    random: RefCell<fastrand::Rng>,
    record: RefCell<Record>,
    /// Requests under way, by stream: when they were meant to be sent, and when they were.
    under_way: RefCell<Vec<Option<UnderWay>>>,
    /// How many they are.
    busy: Cell<u64>,
    idle: RefCell<Idle>,
    /// Counts what streams have noticed, to tell a turn with news from one without.
    noticed: Cell<u64>,
    refusal: RefCell<Option<(Origin, io::Error)>>,
    connected: Cell<bool>,
}

/// A request that has been begun.
#[derive(Clone, Copy)]
struct UnderWay {
    intended: u64,
    /// Since when it could have been sent; 0 if it had to wait for its connection.
    ready: u64,
    sent: Option<u64>,
}

/// What a part shares with its streams.
struct Running<'p> {
    schedule: RefCell<Schedule<'p>>,
    /// Requests of an open loop that are due, and how many streams may take one.
    due: RefCell<VecDeque<Due>>,
    permits: Semaphore,
    requests_each: u64,
    is_open_loop: bool,
}

/// Why a plan has no HTTP/2, if it wants something that streams cannot have.
pub(crate) fn check(plan: &Plan) -> Result<(), RunError> {
    let what = if plan.http2.is_none() {
        return Ok(());
    } else if plan.requests_per_connection.is_some() {
        "a number of requests for each connection"
    } else if plan.pause_max > Duration::ZERO {
        "pauses of each connection"
    } else {
        return Ok(());
    };
    Err(RunError::Http2(what))
}

impl<'a> Http2Worker<'a> {
    /// A worker with some connections, and streams on each, of which the first is number `first_slot`
    /// of all.
    ///
    /// # Errors
    ///
    /// When the system refuses a runtime, or something of the plan cannot be done over HTTP/2.
    pub(crate) fn new(
        shared: &'a Shared<'a>,
        index: usize,
        first_connection: usize,
        connections: usize,
        streams: usize,
        tls: Option<Arc<ClientConfig>>,
    ) -> Result<Self, RunError> {
        let plan = shared.plan;
        let runtime = Builder::new_current_thread().enable_io().enable_time().build();
        let runtime = runtime.map_err(RunError::Worker)?;
        let prepare = |(at, target)| exchange::prepare(target, shared.requests.target(at).origin);
        let requests =
            plan.targets.iter().enumerate().map(prepare).collect::<Result<Vec<_>, _>>()?;
        let slots = connections * streams;
        let worker = Self {
            shared,
            index,
            first_slot: first_connection * streams,
            runtime,
            requests,
            origins: RefCell::new(Vec::new()),
            links: RefCell::new(Vec::new()),
            elsewhere: RefCell::default(),
            tls,
            first_connection,
            visits: RefCell::new(std::iter::repeat_with(Visit::default).take(slots).collect()),
            browses: plan.browsing.is_active(),
            connections,
            slots,
            sent: RefCell::new(vec![0; slots]),
            random: RefCell::new(fastrand::Rng::with_seed(
                plan.seed ^ (index as u64).rotate_left(32),
            )),
            record: RefCell::new(Record::new()),
            under_way: RefCell::new(vec![None; slots]),
            busy: Cell::new(0),
            idle: RefCell::new(Idle::new(plan.waiting)),
            noticed: Cell::new(0),
            refusal: RefCell::new(None),
            connected: Cell::new(false),
        };
        for origin in shared.requests.origins() {
            worker.add_origin(origin.clone());
        }
        Ok(worker)
    }

    /// Makes room for the connections to an origin.
    fn add_origin(&self, origin: Origin) {
        let sources = &self.shared.plan.sources;
        for connection in 0..self.connections {
            let source = sources.get((self.first_connection + connection) % sources.len().max(1));
            let opening = Opening {
                source: source.copied(),
                tls: self.tls.clone(),
                names: self.shared.plan.names.clone(),
                number: self.first_connection + connection,
            };
            self.links.borrow_mut().push(Arc::new(Link::new(origin.clone(), opening)));
        }
        self.origins.borrow_mut().push(origin);
    }

    /// The connection of a stream's place to an origin.
    fn link(&self, origin: usize, slot: usize) -> Arc<Link> {
        Arc::clone(&self.links.borrow()[origin * self.connections + slot % self.connections])
    }

    /// Why no connection could be opened, if none could.
    pub(crate) fn into_refusal(self) -> Option<(Origin, io::Error)> {
        if self.connected.get() { None } else { self.refusal.into_inner() }
    }

    /// Loads until the part is over.
    pub(crate) fn run(&mut self, part: Part<'_>) -> PartResult {
        let control = self.shared.control;
        self.record.replace(Record::new());
        let mut meter = Meter::new(control, self.index, &part, &mut self.record.borrow_mut());
        let Part { schedule, cut_at, requests_each, .. } = part;
        self.sent.replace(vec![0; self.slots]);
        self.idle.borrow_mut().begin(self.shared.clock.now());
        let cpu = thread_cpu();
        let running = Running {
            schedule: RefCell::new(schedule),
            due: RefCell::new(VecDeque::new()),
            permits: Semaphore::new(0),
            requests_each,
            is_open_loop: self.shared.plan.arrival.rate().is_some(),
        };
        let end = self.runtime.block_on(async {
            let slots = async {
                let mut slots: FuturesUnordered<_> =
                    (0..self.slots).map(|slot| self.slot(slot, &running)).collect();
                let mut gave_up = 0;
                while let Some(is_done) = slots.next().await {
                    gave_up += usize::from(!is_done);
                }
                if gave_up == self.slots { End::GaveUp } else { End::Done }
            };
            let ticks = async {
                loop {
                    sleep(TICK).await;
                    if control.is_stopped() {
                        return End::Interrupted;
                    }
                    meter.tell(&mut self.record.borrow_mut(), self.shared.clock.now());
                }
            };
            let cut = async {
                match cut_at {
                    Some(at) => sleep_until(self.instant(at)).await,
                    None => std::future::pending().await,
                }
                End::Done
            };
            let pace = async {
                self.pace(&running).await;
                End::Done
            };
            let all: [Pin<Box<dyn Future<Output = End> + '_>>; 4] =
                [Box::pin(slots), Box::pin(ticks), Box::pin(cut), Box::pin(pace)];
            select_all(all).await.0
        });
        let now = self.shared.clock.now();
        self.abandon(&running, now);
        for link in &*self.links.borrow() {
            link.tell(self);
        }
        meter.end(&mut self.record.borrow_mut(), now);
        let record = self.record.replace(Record::new());
        let polled = self.idle.borrow().total();
        PartResult { record, ended: now, cpu: thread_cpu() - cpu, polled, end }
    }

    /// The life of a stream's place: one request after the other. False if its connection was given up.
    async fn slot(&self, slot: usize, running: &Running<'_>) -> bool {
        loop {
            if self.sent.borrow()[slot] >= running.requests_each {
                return true;
            }
            let free_since = self.shared.clock.now();
            let due = if running.is_open_loop {
                if let Ok(permit) = running.permits.acquire().await {
                    permit.forget();
                }
                running.due.borrow_mut().pop_front()
            } else {
                running.schedule.borrow_mut().take(self.shared.clock.now())
            };
            let Some(due) = due else { return true };
            if !self.request(slot, due, free_since).await {
                return false;
            }
        }
    }

    /// Counts what is under way, and what was due and not sent, as unanswered.
    fn abandon(&self, running: &Running<'_>, now: u64) {
        self.busy.set(0);
        let mut record = self.record.borrow_mut();
        for UnderWay { intended, sent, .. } in
            self.under_way.borrow_mut().iter_mut().filter_map(Option::take)
        {
            record.unanswered += 1;
            record.censored(intended, sent, now);
        }
        if running.is_open_loop {
            let mut due = running.due.borrow_mut();
            let mut schedule = running.schedule.borrow_mut();
            while let Some(due) = due.pop_front().or_else(|| schedule.take(now)) {
                record.unanswered += 1;
                record.censored(due.intended, None, now);
            }
        }
    }

    /// A time of the run as the runtime has it.
    fn instant(&self, at: u64) -> Instant {
        let now = self.shared.clock.now();
        Instant::now() + Duration::from_nanos(at.saturating_sub(now))
    }

    /// A connection was opened: counts it.
    fn opened(&self, times: &link::Times) {
        self.connected.set(true);
        let mut record = self.record.borrow_mut();
        record.opened += 1;
        record.connect.record(nanos(times.connect));
        if let Some((handshake, is_resumed, session)) = &times.tls {
            record.handshake(nanos(*handshake), *is_resumed, || session.clone());
        }
    }

    /// Adds bytes that went over a connection.
    fn traffic(&self, [sent, received]: [u64; 2]) {
        let mut record = self.record.borrow_mut();
        record.bytes.sent += sent;
        record.bytes.received += received;
    }
}
