//! The requests of a stream's place: sent, answered, judged, and followed by what follows from them.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use h2::Reason;
use http::Request;
use tokio::time::{sleep, timeout_at};

use super::link::{self, Link};
use super::{Http2Worker, UnderWay};
use crate::answer::Failure;
use crate::browse::{Step, UNAUTHORIZED, digest};
use crate::chains::Link as ChainLink;
use crate::check::{describe, push_content, push_sha256};
use crate::clock::nanos;
use crate::elsewhere;
use crate::failure::{FailureKind, RunError};
use crate::keep::Kept;
use crate::observer::{Answered, Exchanged, Outcome};
use crate::patience;
use crate::plan::{Order, Refusal};
use crate::record::Sample;
use crate::report::WrongAnswer;
use crate::schedule::Due;
use crate::target::{Expectation, Target};
use crate::wire::Single;

/// A request that is ready to be sent.
#[derive(Debug)]
pub(super) struct Prepared {
    head: Request<()>,
    content: Bytes,
    origin: usize,
    idempotent: bool,
}

/// A request that is not in the list: one with its places filled, with cookies, or a hop of a chain.
struct Own {
    /// Without what the visitor adds.
    target: Target,
    prepared: Prepared,
}

/// A place in a chain.
#[derive(Clone, Copy)]
struct Hop {
    /// Of the list.
    listed: usize,
    number: u32,
    intended: u64,
    /// When the first of the chain was meant to be sent, and whether all answers were right so far.
    chain_began: u64,
    right: bool,
}

/// A complete answer.
struct Answer {
    status: u16,
    location: Option<Vec<u8>>,
    content_bytes: u64,
    kept: Kept,
    /// How long the connection took to open, if it was opened for this.
    connect: Option<Duration>,
    sent: u64,
    first_byte: u64,
    ended: u64,
}

impl Http2Worker<'_> {
    /// Sends a request of the list and all that follow from its answers, and counts what becomes of
    /// them. False if the connection is to be given up. The stream's place is free since `free_since`.
    pub(super) async fn request(&self, slot: usize, due: Due, free_since: u64) -> bool {
        let plan = self.shared.plan;
        let listed = self.choose(slot, due);
        self.sent.borrow_mut()[slot] += 1;
        let mut own = self.first(slot, listed, due);
        let mut hop = Hop {
            listed,
            number: 0,
            intended: due.intended,
            chain_began: due.intended,
            right: true,
        };
        loop {
            let (target, prepared) = match &own {
                None => (&plan.targets[listed], &self.requests[listed]),
                Some(own) => (&own.target, &own.prepared),
            };
            let link = self.link(prepared.origin, slot);
            let is_paced = self.shared.plan.arrival.rate().is_some() && hop.number == 0;
            let ready = if is_paced && link.is_open() { due.intended.max(free_since) } else { 0 };
            self.begin(slot, UnderWay { intended: hop.intended, ready, sent: None });
            let began = self.shared.clock.now();
            let deadline = self.instant(began) + plan.timeout;
            let exchanging = self.exchange(slot, prepared, &target.expectation, &link);
            let exchanged = match timeout_at(deadline, exchanging).await {
                Ok(exchanged) => exchanged,
                Err(_) => Err(self.timed_out(slot)),
            };
            self.under_way.borrow_mut()[slot] = None;
            self.busy.set(self.busy.get() - 1);
            let answer = match exchanged {
                Ok(answer) => answer,
                Err(failure) => {
                    self.fail(target, slot, hop, began, failure);
                    return self.recover(&link).await;
                }
            };
            let next = if self.browses { self.next(slot, target, &answer) } else { Ok(None) };
            let next = match next {
                Ok(next) => next,
                Err(failure) => {
                    self.fail(target, slot, hop, began, failure);
                    return true;
                }
            };
            // A login that is asked for and given is no wrong answer.
            let is_right = is_right(&answer, &target.expectation)
                || (answer.status == UNAUTHORIZED && next.is_some());
            self.count_answer(target, hop, &answer, is_right);
            hop.right &= is_right;
            if self.browses {
                self.record.borrow_mut().chains.get_or_insert_default().answered(ChainLink {
                    hop: hop.number,
                    began: hop.chain_began,
                    sent: answer.sent,
                    ended: answer.ended,
                    right: hop.right,
                    goes_on: next.is_some(),
                });
            }
            self.show_answer(target, slot, hop, &answer, is_right, next.is_some());
            let Some(next) = next else { return true };
            own = Some(next);
            hop.number += 1;
            hop.intended = answer.ended;
        }
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

    /// A request is about to go out.
    fn begin(&self, slot: usize, under_way: UnderWay) {
        self.under_way.borrow_mut()[slot] = Some(under_way);
        self.notice();
        self.busy.set(self.busy.get() + 1);
        let mut record = self.record.borrow_mut();
        record.sent += 1;
        record.busy_max = record.busy_max.max(self.busy.get());
    }

    /// A stream has something to do.
    fn notice(&self) {
        self.noticed.set(self.noticed.get() + 1);
    }

    /// What a request of the list is instead, if it is not sent as it was prepared.
    fn first(&self, slot: usize, listed: usize, due: Due) -> Option<Own> {
        let plan = self.shared.plan;
        let rendered = self.shared.requests.target(listed);
        let filled = match &rendered.template {
            None => None,
            Some(template) => {
                Some(template.target(&plan.targets[listed], self.shared.values(due)?))
            }
        };
        let target = filled.as_ref().unwrap_or(&plan.targets[listed]);
        let dressed = if self.browses {
            let visit = &mut self.visits.borrow_mut()[slot];
            visit.begin();
            visit.dress(target, &plan.browsing)
        } else {
            None
        };
        // What was filled in and added has been looked through; one that is no request all the same is
        // sent as it was prepared.
        let own = dressed.as_ref().or(filled.as_ref()).and_then(|own| {
            let prepared = prepare(own, rendered.origin).ok()?;
            Some(Own { target: target.clone(), prepared })
        });
        if self.browses {
            let prepared = own.as_ref().map_or(&self.requests[listed], |own| &own.prepared);
            // The first of a chain has none before it that it could repeat.
            let _ = self.visits.borrow_mut()[slot].send(prepared.digest());
        }
        own
    }

    /// What follows from an answer, if anything does.
    fn next(&self, slot: usize, target: &Target, answer: &Answer) -> Result<Option<Own>, Failure> {
        let plan = self.shared.plan;
        let visit = &mut self.visits.borrow_mut()[slot];
        let (head, content) = (answer.kept.head_bytes(), answer.kept.content_bytes());
        let mut next = match visit.step(&plan.browsing, target, answer.status, head, content) {
            Step::Done => return Ok(None),
            Step::Failed(failure) => return Err(failure),
            Step::Next(next) => next,
        };
        self.elsewhere.borrow_mut().find(&mut next, target, &plan.connect_to)?;
        let mut origins = self.origins.borrow_mut();
        let known = origins.len();
        let origin = elsewhere::place(&mut origins, &next, plan, self.tls.is_some())?;
        let fresh = if origin == known { origins.pop() } else { None };
        drop(origins);
        if let Some(fresh) = fresh {
            self.add_origin(fresh);
        }
        let dressed = visit.dress(&next, &plan.browsing);
        let prepared = prepare(dressed.as_ref().unwrap_or(&next), origin)
            .map_err(|error| Failure::new(FailureKind::RedirectUnfit, error.to_string()))?;
        visit.send(prepared.digest())?;
        Ok(Some(Own { target: *next, prepared }))
    }

    /// The time of the request on a stream's place is over.
    fn timed_out(&self, slot: usize) -> Failure {
        let now = self.shared.clock.now();
        if let Some(UnderWay { intended, sent, .. }) = self.under_way.borrow()[slot] {
            self.record.borrow_mut().censored(intended, sent, now);
        }
        let detail = format!("no complete answer within {:?}", self.shared.plan.timeout);
        Failure::new(FailureKind::TimedOut, detail)
    }

    /// After a failure: waits while the connection cannot be opened. False if it is to be given up.
    async fn recover(&self, link: &Link) -> bool {
        if link.failures() > 0 && self.shared.plan.refusal == Refusal::Retry {
            if link.failures() >= patience::tries(self.connected.get()) {
                return false;
            }
            sleep(patience::PAUSE).await;
        }
        true
    }

    /// Sends a request and reads its answer; once more where the server says that it has not seen it.
    async fn exchange(
        &self,
        slot: usize,
        prepared: &Prepared,
        expectation: &Expectation,
        link: &Link,
    ) -> Result<Answer, Failure> {
        let mut tries = 0;
        loop {
            tries += 1;
            let opened = match link.sender(self).await {
                Ok(opened) => opened,
                Err(error) => {
                    let failure = link::refused(link.origin(), &error);
                    if !self.connected.get() {
                        self.refusal.replace(Some((link.origin().clone(), error)));
                    }
                    return Err(failure);
                }
            };
            let link::Opened { generation, mut sender, connect } = opened;
            let error = match self.send(slot, prepared, expectation, &mut sender).await {
                Ok(answer) => return Ok(Answer { connect, ..answer }),
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
        prepared: &Prepared,
        expectation: &Expectation,
        sender: &mut h2::client::SendRequest<Bytes>,
    ) -> Result<Answer, h2::Error> {
        std::future::poll_fn(|context| sender.poll_ready(context)).await?;
        let has_content = !prepared.content.is_empty();
        let sent = self.shared.clock.now();
        let (response, mut body) = sender.send_request(prepared.head.clone(), !has_content)?;
        if let Some(under_way) = &mut self.under_way.borrow_mut()[slot] {
            under_way.sent = Some(sent);
            if under_way.ready > 0 {
                self.record.borrow_mut().lateness.record(sent.saturating_sub(under_way.ready));
                under_way.ready = 0;
            }
        }
        if has_content {
            body.send_data(prepared.content.clone(), true)?;
        }
        let response = response.await?;
        let first_byte = self.shared.clock.now();
        self.notice();
        let (head, mut body) = response.into_parts();
        let mut kept = Kept::new(self.shared.keep);
        if self.shared.keep.head {
            kept.head(&as_text(&head));
        }
        if expectation.content_sha256.is_some() {
            kept.begin_sha256();
        }
        let mut content_bytes = 0;
        while let Some(data) = body.data().await {
            let data = data?;
            self.notice();
            content_bytes += data.len() as u64;
            kept.content(&data);
            body.flow_control().release_capacity(data.len())?;
        }
        Ok(Answer {
            status: head.status.as_u16(),
            location: head.headers.get(http::header::LOCATION).map(|it| it.as_bytes().to_vec()),
            content_bytes,
            kept,
            connect: None,
            sent,
            first_byte,
            ended: self.shared.clock.now(),
        })
    }

    /// Counts a complete answer.
    fn count_answer(&self, target: &Target, hop: Hop, answer: &Answer, is_right: bool) {
        let Answer { status, content_bytes, sent, first_byte, ended, .. } = *answer;
        let mut record = self.record.borrow_mut();
        record.status(status);
        record.bytes.content += content_bytes;
        if is_right {
            // In the closed loop a request waits for its connection alone.
            let intended = hop.intended.min(sent);
            return record.sample(Sample { intended, sent, first_byte, ended });
        }
        record.wrong += 1;
        if record.wants_example(hop.listed) {
            let mut got = describe(status, answer.location.as_deref());
            push_content(&mut got, content_bytes);
            if let Some(sha256) = answer.kept.sha256() {
                push_sha256(&mut got, &sha256);
            }
            let expected = target.expectation.describe();
            let example = WrongAnswer { url: target.uri(), expected, got };
            record.examples.push((hop.listed, example));
        }
    }

    /// Counts a request that failed, and with it its chain.
    fn fail(&self, target: &Target, slot: usize, hop: Hop, began: u64, failure: Failure) {
        let Failure { kind, ref detail, os_error } = failure;
        let now = Duration::from_nanos(self.shared.clock.now());
        let began = Duration::from_nanos(began);
        let times = [began, began, now, now];
        let outcome = Outcome::Failed { kind, detail, os_error };
        self.show(target, slot, hop, false, None, outcome, times);
        let mut record = self.record.borrow_mut();
        if self.browses {
            record.chains.get_or_insert_default().failed();
        }
        record.failure(failure, target);
    }

    /// Shows an answer to the observer.
    fn show_answer(
        &self,
        target: &Target,
        slot: usize,
        hop: Hop,
        answer: &Answer,
        right: bool,
        goes_on: bool,
    ) {
        let outcome = Outcome::Answered(Answered {
            version_minor: 0,
            status: answer.status,
            right,
            persistent: true,
            content_bytes: answer.content_bytes,
            head: answer.kept.head_bytes(),
            content: answer.kept.content_bytes(),
            digest: answer.kept.digest(),
        });
        let began = answer.sent.saturating_sub(answer.connect.map_or(0, nanos));
        let times = [began, answer.sent, answer.first_byte, answer.ended].map(Duration::from_nanos);
        self.show(target, slot, hop, goes_on, answer.connect, outcome, times);
    }

    /// Shows an exchange to the observer, with when it began, was sent, had its first byte and ended.
    #[allow(clippy::too_many_arguments, reason = "it is what an exchange has")]
    fn show(
        &self,
        target: &Target,
        slot: usize,
        hop: Hop,
        goes_on: bool,
        connect: Option<Duration>,
        outcome: Outcome<'_>,
        [began, sent, first_byte, ended]: [Duration; 4],
    ) {
        let Some(observer) = self.shared.observer else { return };
        // Nobody reads the frames; the same request in text says what is in them.
        let request = Single::render(target, self.shared.plan.persistence);
        observer.ended(&Exchanged {
            connection: self.first_slot + slot,
            target,
            listed: hop.listed,
            hop: hop.number,
            goes_on,
            request: request.as_ref().map_or(&[], |request| &request.bytes),
            outcome,
            connect,
            began,
            sent,
            first_byte,
            ended,
        });
    }
}

impl Prepared {
    /// Tells one request from another.
    fn digest(&self) -> u64 {
        let head = &self.head;
        let mut text =
            format!("{} {} {:?}", head.method(), head.uri(), head.headers()).into_bytes();
        text.extend_from_slice(&self.content);
        digest(&text)
    }
}

fn is_right(answer: &Answer, expectation: &Expectation) -> bool {
    expectation.accepts(answer.status, answer.location.as_deref())
        && expectation.accepts_content(answer.content_bytes, answer.kept.sha256())
}

/// The head of an answer as HTTP/1 would write it, for what reads fields.
fn as_text(head: &http::response::Parts) -> Vec<u8> {
    let mut text = format!("HTTP/2 {}\r\n", head.status.as_u16()).into_bytes();
    for (name, value) in &head.headers {
        text.extend_from_slice(name.as_str().as_bytes());
        text.extend_from_slice(b": ");
        text.extend_from_slice(value.as_bytes());
        text.extend_from_slice(b"\r\n");
    }
    text.extend_from_slice(b"\r\n");
    text
}

/// Makes the head of a request, as HTTP/2 has it.
pub(super) fn prepare(target: &Target, origin: usize) -> Result<Prepared, RunError> {
    let unfit = |what, value: &str| RunError::Unsendable {
        uri: target.uri(),
        what,
        value: value.to_owned(),
    };
    if !target.request_target.starts_with('/') {
        return Err(unfit("over HTTP/2 the request-target", &target.request_target));
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
