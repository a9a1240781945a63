//! A worker that speaks HTTP/2: some connections, on each some streams at a time.
//!
//! The same plan, the same checks, the same record as over HTTP/1.1; what is a connection there is a
//! stream here. The protocol is that of the `h2` crate on a runtime of the worker's own thread, so a
//! request costs more of the generator than over HTTP/1.1, and the report says how much.
//!
//! Source: RFC 9113; section 3.3 for prior knowledge, 6.8 and 8.7 for what may be sent again.

mod link;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::select_all;
use futures_util::stream::{FuturesUnordered, StreamExt};
use h2::Reason;
use http::Request;
use rustls::ClientConfig;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use crate::answer::Failure;
use crate::check::{describe, push_content, push_sha256};
use crate::clock::{nanos, thread_cpu};
use crate::failure::{FailureKind, RunError};
use crate::meter::{Meter, TICK};
use crate::origin::Origin;
use crate::plan::{Order, Refusal};
use crate::record::{Record, Sample};
use crate::report::WrongAnswer;
use crate::schedule::{Due, Schedule};
use crate::sha256::{Hasher, Sha256};
use crate::target::Target;
use crate::worker::{End, Part, PartResult, Shared};

use link::{Link, Opening};

/// Pause before a stream tries to connect again, as long as the connection cannot be opened.
const PAUSE: Duration = Duration::from_millis(100);

/// A connection that could not be opened as often in a row is given up: the server is gone.
const FAILURES_MAX: u32 = 20;

/// One thread's connections and streams.
pub(crate) struct Http2Worker<'a> {
    shared: &'a Shared<'a>,
    index: usize,
    /// Number of the first stream among those of all workers.
    first_slot: usize,
    runtime: Runtime,
    /// By target.
    requests: Vec<Prepared>,
    /// Origin by origin, for each the connections.
    links: Vec<Link>,
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
    refusal: RefCell<Option<(Origin, io::Error)>>,
    connected: Cell<bool>,
}

/// A request that has been begun.
#[derive(Clone, Copy)]
struct UnderWay {
    intended: u64,
    sent: Option<u64>,
}

/// A request that is ready to be sent.
struct Prepared {
    head: Request<()>,
    content: Bytes,
    origin: usize,
    idempotent: bool,
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

/// A complete answer.
struct Answer {
    status: u16,
    location: Option<Vec<u8>>,
    content_bytes: u64,
    /// Of the content, if it is expected.
    sha256: Option<Sha256>,
    sent: u64,
    first_byte: u64,
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
        let prepare = |(at, target)| prepare(target, shared.requests.target(at).origin);
        let requests =
            plan.targets.iter().enumerate().map(prepare).collect::<Result<Vec<_>, _>>()?;
        let mut links = Vec::new();
        for origin in shared.requests.origins() {
            for connection in 0..connections {
                let sources = &plan.sources;
                let source = sources.get((first_connection + connection) % sources.len().max(1));
                let opening = Opening { source: source.copied(), tls: tls.clone() };
                links.push(Link::new(origin.clone(), opening));
            }
        }
        let slots = connections * streams;
        Ok(Self {
            shared,
            index,
            first_slot: first_connection * streams,
            runtime,
            requests,
            links,
            connections,
            slots,
            sent: RefCell::new(vec![0; slots]),
            random: RefCell::new(fastrand::Rng::with_seed(
                plan.seed ^ (index as u64).rotate_left(32),
            )),
            record: RefCell::new(Record::new()),
            under_way: RefCell::new(vec![None; slots]),
            busy: Cell::new(0),
            refusal: RefCell::new(None),
            connected: Cell::new(false),
        })
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
                if running.is_open_loop {
                    self.pace(&running).await;
                }
                std::future::pending().await
            };
            let all: [Pin<Box<dyn Future<Output = End> + '_>>; 4] =
                [Box::pin(slots), Box::pin(ticks), Box::pin(cut), Box::pin(pace)];
            select_all(all).await.0
        });
        let now = self.shared.clock.now();
        self.abandon(&running, now);
        for link in &self.links {
            link.tell(self);
        }
        meter.end(&mut self.record.borrow_mut(), now);
        let record = self.record.replace(Record::new());
        PartResult { record, ended: now, cpu: thread_cpu() - cpu, end }
    }

    /// Gives out requests of an open loop when they are due. Does not end.
    async fn pace(&self, running: &Running<'_>) {
        loop {
            let now = self.shared.clock.now();
            while let Some(due) = running.schedule.borrow_mut().take(now) {
                running.due.borrow_mut().push_back(due);
                running.permits.add_permits(1);
            }
            let next = running.schedule.borrow().next_at();
            match next {
                Some(at) => sleep_until(self.instant(at)).await,
                None => {
                    // Whoever waits for more learns that there is none.
                    running.permits.close();
                    std::future::pending::<()>().await;
                }
            }
        }
    }

    /// The life of a stream's place: one request after the other. False if its connection was given up.
    async fn slot(&self, slot: usize, running: &Running<'_>) -> bool {
        loop {
            if self.sent.borrow()[slot] >= running.requests_each {
                return true;
            }
            let due = if running.is_open_loop {
                if let Ok(permit) = running.permits.acquire().await {
                    permit.forget();
                }
                running.due.borrow_mut().pop_front()
            } else {
                running.schedule.borrow_mut().take(self.shared.clock.now())
            };
            let Some(due) = due else { return true };
            if !self.request(slot, due).await {
                return false;
            }
        }
    }

    /// Sends a request and counts what becomes of it. False if its connection is to be given up.
    async fn request(&self, slot: usize, due: Due) -> bool {
        let plan = self.shared.plan;
        let at = self.choose(slot, due);
        let filled = self.fill(at, due);
        let prepared = filled.as_ref().unwrap_or(&self.requests[at]);
        let link =
            &self.links[self.requests[at].origin * self.connections + slot % self.connections];
        self.sent.borrow_mut()[slot] += 1;
        self.under_way.borrow_mut()[slot] = Some(UnderWay { intended: due.intended, sent: None });
        {
            let mut record = self.record.borrow_mut();
            record.sent += 1;
            self.busy.set(self.busy.get() + 1);
            record.busy_max = record.busy_max.max(self.busy.get());
        }
        let deadline = self.instant(self.shared.clock.now()) + plan.timeout;
        let exchanged = match timeout_at(deadline, self.exchange(slot, at, prepared, link)).await {
            Ok(exchanged) => exchanged,
            Err(_) => {
                let detail = format!("no complete answer within {:?}", plan.timeout);
                let now = self.shared.clock.now();
                let under_way = self.under_way.borrow()[slot];
                if let Some(UnderWay { intended, sent }) = under_way {
                    self.record.borrow_mut().censored(intended, sent, now);
                }
                Err(Failure::new(FailureKind::TimedOut, detail))
            }
        };
        self.under_way.borrow_mut()[slot] = None;
        self.busy.set(self.busy.get() - 1);
        match exchanged {
            Ok(answer) => self.count(at, due, answer),
            Err(failure) => {
                self.record.borrow_mut().failure(failure, &plan.targets[at]);
                if link.failures() > 0 && plan.refusal == Refusal::Retry {
                    if link.failures() >= FAILURES_MAX {
                        return false;
                    }
                    sleep(PAUSE).await;
                }
            }
        }
        true
    }

    /// The request for a target, if it has places to be filled.
    fn fill(&self, at: usize, due: Due) -> Option<Prepared> {
        let rendered = self.shared.requests.target(at);
        let template = rendered.template.as_ref()?;
        let filled = template.target(&self.shared.plan.targets[at], self.shared.values(due)?);
        // Its values were looked through; one that is no request all the same is sent as it stands.
        prepare(&filled, rendered.origin).ok()
    }

    /// The target of the next request.
    fn choose(&self, slot: usize, due: Due) -> usize {
        let choice = &self.shared.choice;
        let places = choice.places();
        choice.target(match self.shared.plan.order {
            _ if places == 1 => 0,
            Order::Sequential => (due.number % places as u64) as usize,
            Order::Random => self.random.borrow_mut().usize(..places),
            Order::Each => (self.first_slot + slot + self.sent.borrow()[slot] as usize) % places,
        })
    }

    /// Sends a request and reads its answer; once more where the server says that it has not seen it.
    async fn exchange(
        &self,
        slot: usize,
        at: usize,
        prepared: &Prepared,
        link: &Link,
    ) -> Result<Answer, Failure> {
        let mut tries = 0;
        loop {
            tries += 1;
            let (generation, mut sender) = match link.sender(self).await {
                Ok(sender) => sender,
                Err(error) => {
                    let failure = link::refused(link.origin(), &error);
                    if !self.connected.get() {
                        self.refusal.replace(Some((link.origin().clone(), error)));
                    }
                    return Err(failure);
                }
            };
            let error = match self.send(slot, at, prepared, &mut sender).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            if !error.is_reset() || error.is_go_away() {
                link.drop(generation);
            }
            let is_unseen = error.reason() == Some(Reason::REFUSED_STREAM)
                || error.is_go_away()
                || (error.is_io() && prepared.idempotent);
            if tries > 1 || !is_unseen {
                return Err(broken(&error));
            }
            let mut record = self.record.borrow_mut();
            record.resent += 1;
            record.closed_by_server += 1;
        }
    }

    async fn send(
        &self,
        slot: usize,
        at: usize,
        prepared: &Prepared,
        sender: &mut h2::client::SendRequest<Bytes>,
    ) -> Result<Answer, h2::Error> {
        std::future::poll_fn(|context| sender.poll_ready(context)).await?;
        let has_content = !prepared.content.is_empty();
        let sent = self.shared.clock.now();
        let (response, mut body) = sender.send_request(prepared.head.clone(), !has_content)?;
        if let Some(UnderWay { sent: since, .. }) = &mut self.under_way.borrow_mut()[slot] {
            *since = Some(sent);
        }
        if has_content {
            body.send_data(prepared.content.clone(), true)?;
        }
        let response = response.await?;
        let first_byte = self.shared.clock.now();
        let (head, mut body) = response.into_parts();
        let mut content_bytes = 0;
        let expected = &self.shared.plan.targets[at].expectation.content_sha256;
        let mut hasher = expected.is_some().then(Hasher::new);
        while let Some(data) = body.data().await {
            let data = data?;
            content_bytes += data.len() as u64;
            if let Some(hasher) = &mut hasher {
                hasher.update(&data);
            }
            body.flow_control().release_capacity(data.len())?;
        }
        Ok(Answer {
            status: head.status.as_u16(),
            location: head.headers.get(http::header::LOCATION).map(|it| it.as_bytes().to_vec()),
            content_bytes,
            sha256: hasher.map(Hasher::finish),
            sent,
            first_byte,
        })
    }

    /// Counts a complete answer.
    fn count(&self, at: usize, due: Due, answer: Answer) {
        let target = &self.shared.plan.targets[at];
        let expectation = &target.expectation;
        let Answer { status, location, content_bytes, sha256, sent, first_byte } = answer;
        let location = location.as_deref();
        let right = expectation.accepts(status, location)
            && expectation.accepts_content(content_bytes, sha256);
        let mut record = self.record.borrow_mut();
        record.status(status);
        record.bytes.content += content_bytes;
        if right {
            let ended = self.shared.clock.now();
            // In the closed loop a request waits for its connection alone.
            let intended = due.intended.min(sent);
            record.sample(Sample { intended, sent, first_byte, ended });
            return;
        }
        record.wrong += 1;
        if record.wants_example(at) {
            let mut got = describe(status, location);
            push_content(&mut got, content_bytes);
            if let Some(sha256) = &sha256 {
                push_sha256(&mut got, sha256);
            }
            let expected = expectation.describe();
            record.examples.push((at, WrongAnswer { url: target.uri(), expected, got }));
        }
    }

    /// Counts what is under way, and what was due and not sent, as unanswered.
    fn abandon(&self, running: &Running<'_>, now: u64) {
        self.busy.set(0);
        let mut record = self.record.borrow_mut();
        for UnderWay { intended, sent } in
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
            record.tls.record(nanos(*handshake));
            record.handshakes[usize::from(*is_resumed)] += 1;
            if record.session.is_none() {
                record.session.clone_from(session);
            }
        }
    }

    /// Adds bytes that went over a connection.
    fn traffic(&self, [sent, received]: [u64; 2]) {
        let mut record = self.record.borrow_mut();
        record.bytes.sent += sent;
        record.bytes.received += received;
    }
}

/// Makes the head of a request, as HTTP/2 has it.
fn prepare(target: &Target, origin: usize) -> Result<Prepared, RunError> {
    let unfit = |what, value: &str| RunError::Unsendable {
        uri: target.uri(),
        what,
        value: value.to_owned(),
    };
    if target.tunnel.is_some() || !target.request_target.starts_with('/') {
        return Err(unfit(
            "over HTTP/2 through a proxy, the request-target",
            &target.request_target,
        ));
    }
    let own_host = target.fields.iter().find(|(name, _)| name.eq_ignore_ascii_case("Host"));
    let authority = own_host.map_or(&target.authority, |(_, value)| value);
    let uri = format!("{}://{authority}{}", target.scheme, target.request_target);
    let mut head = Request::builder().method(&*target.method).uri(&uri);
    for (name, value) in [("user-agent", crate::wire::USER_AGENT), ("accept", "*/*")] {
        if !target.fields.iter().any(|(own, _)| own.eq_ignore_ascii_case(name)) {
            head = head.header(name, value);
        }
    }
    for (name, value) in &target.fields {
        if !name.eq_ignore_ascii_case("Host") {
            head = head.header(name, value);
        }
    }
    if !target.content.is_empty() {
        head = head.header("content-length", target.content.len());
    }
    let head = head.body(()).map_err(|_| unfit("over HTTP/2, the request", &uri))?;
    let idempotent = head.method().is_idempotent();
    Ok(Prepared { head, content: Bytes::copy_from_slice(&target.content), origin, idempotent })
}

/// What an error of a stream or connection means for its request.
fn broken(error: &h2::Error) -> Failure {
    let kind = if error.is_go_away() {
        FailureKind::ClosedBeforeAnswer
    } else if error.is_reset() {
        FailureKind::Reset
    } else {
        match error.get_io().map(io::Error::kind) {
            Some(io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe) => FailureKind::Reset,
            Some(io::ErrorKind::UnexpectedEof) => FailureKind::ClosedInContent,
            _ => FailureKind::Io,
        }
    };
    Failure::new(kind, format!("HTTP/2: {error}"))
}
