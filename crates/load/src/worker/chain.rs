//! What a worker does with an answer that another request follows from, and whom it tells.
//!
//! Nothing in here happens in a run that only loads its list: that neither looks at answers beyond
//! checking them nor shows them to anybody.

use std::time::Duration;

use super::Worker;
use crate::answer::{Answer, Failure, Judge};
use crate::browse::{Step, digest};
use crate::chains::Link;
use crate::connection::{Connection, Exchange, Own};
use crate::elsewhere;
use crate::failure::FailureKind;
use crate::observer::{Answered, Exchanged, Outcome};
use crate::schedule::Due;
use crate::target::Target;
use crate::wire::Single;

/// A request of a chain that is ready to be sent.
#[derive(Debug)]
pub(super) struct Ready {
    /// The connection for it.
    at: usize,
    own: Box<Own>,
}

impl Worker<'_> {
    /// A request of the list is about to be sent: adds what its visitor has for it.
    pub(super) fn begin_chain(&mut self, at: usize, due: Due) {
        let slot = self.slot(at);
        let plan = self.core.shared.plan;
        let listed = self.connections[at].exchange.target;
        let template = self.core.shared.requests.target(listed).template.as_ref();
        let filled = template.zip(self.core.shared.values(due));
        let filled =
            filled.map(|(template, values)| template.target(&plan.targets[listed], values));
        let target = filled.as_ref().unwrap_or(&plan.targets[listed]);
        let visit = &mut self.slots[slot].visit;
        visit.begin();
        let dressed = visit.dress(target, &plan.browsing).or_else(|| filled.clone());
        let own = dressed.and_then(|dressed| {
            // What was added has been looked through; without it the request was rendered before.
            let request = Single::render(&dressed, plan.persistence).ok()?;
            let judge = Judge::new(request.traits.method, target.expectation.clone());
            Some(Box::new(Own { target: target.clone(), request, judge }))
        });
        self.connections[at].own = own;
        let sent = digest(self.request(at));
        // The first of a chain has none before it that it could repeat.
        let _ = self.slots[slot].visit.send(sent);
    }

    /// What follows from the answer on a connection, if anything does.
    ///
    /// # Errors
    ///
    /// When the answer leads nowhere: its request has failed.
    #[cold]
    pub(super) fn next_of_chain(
        &mut self,
        at: usize,
        answer: Answer,
    ) -> Result<Option<Ready>, Failure> {
        let slot = self.slot(at);
        let plan = self.core.shared.plan;
        let connection = &self.connections[at];
        let target = match &connection.own {
            None => &plan.targets[connection.exchange.target],
            Some(own) => &own.target,
        };
        let kept = connection.incoming.kept();
        let visit = &mut self.slots[slot].visit;
        let (head, content) = (kept.head_bytes(), kept.content_bytes());
        let mut next = match visit.step(&plan.browsing, target, answer.status, head, content) {
            Step::Done => return Ok(None),
            Step::Failed(failure) => return Err(failure),
            Step::Next(next) => next,
        };
        let dressed = visit.dress(&next, &plan.browsing);
        let request = Single::render(dressed.as_ref().unwrap_or(&next), plan.persistence)
            .map_err(|error| Failure::new(FailureKind::RedirectUnfit, error.to_string()))?;
        visit.send(digest(&request.bytes))?;
        self.elsewhere.find(&mut next, target, &plan.connect_to)?;
        let at = self.place(&next, slot)?;
        let judge = Judge::new(request.traits.method, next.expectation.clone());
        Ok(Some(Ready { at, own: Box::new(Own { target: *next, request, judge }) }))
    }

    /// Sends the next request of the chain that `before` belongs to.
    pub(super) fn go_on(&mut self, next: Ready, before: Exchange, was_right: bool) {
        let Ready { at, own } = next;
        self.core.take_place();
        let connection = &mut self.connections[at];
        connection.own = Some(own);
        connection.exchange = Exchange {
            target: before.target,
            hop: before.hop + 1,
            intended: self.core.now,
            chain_began: before.chain_began,
            chain_is_wrong: before.chain_is_wrong || !was_right,
            ..Exchange::default()
        };
        self.send(at);
    }

    /// Shows the observer what became of the request on a connection.
    #[cold]
    pub(super) fn observe(&self, at: usize, outcome: Result<Answer, &Failure>, goes_on: bool) {
        let Some(observer) = self.core.shared.observer else { return };
        let connection = &self.connections[at];
        let exchange = connection.exchange;
        let request = self.request(at);
        let kept = connection.incoming.kept();
        let answered = outcome.is_ok();
        let outcome = match outcome {
            Ok(answer) => Outcome::Answered(Answered {
                version_minor: answer.version_minor,
                status: answer.status,
                right: answer.right,
                persistent: answer.persistent,
                content_bytes: answer.content_bytes,
                head: kept.head_bytes(),
                content: kept.content_bytes(),
                digest: kept.digest(),
            }),
            Err(failure) => Outcome::Failed {
                kind: failure.kind,
                detail: &failure.detail,
                os_error: failure.os_error,
            },
        };
        // What fails may have been tried since the worker looked at the clock.
        let now = if answered { self.core.now } else { self.core.shared.clock.now() };
        let Exchange { opened, sent, first_byte, .. } = exchange;
        let or = |time: u64, other| if time > 0 { time } else { other };
        let began = or(opened, or(sent, now));
        observer.ended(&Exchanged {
            connection: self.first_slot + self.slot(at),
            target: self.target(at),
            listed: exchange.target,
            hop: exchange.hop,
            goes_on,
            request,
            outcome,
            connect: (opened > 0 && sent >= opened).then(|| Duration::from_nanos(sent - opened)),
            began: Duration::from_nanos(began),
            sent: Duration::from_nanos(or(sent, began)),
            first_byte: Duration::from_nanos(or(first_byte, now)),
            ended: Duration::from_nanos(now),
        });
    }

    /// Counts a complete answer in its chain.
    #[cold]
    pub(super) fn count_link(&mut self, exchange: Exchange, answer: Answer, goes_on: bool) {
        let Exchange { hop, chain_began, chain_is_wrong, sent, .. } = exchange;
        self.core.record.chains.get_or_insert_default().answered(Link {
            hop,
            began: chain_began,
            sent,
            ended: self.core.now,
            right: answer.right && !chain_is_wrong,
            goes_on,
        });
    }

    /// The connection of a slot for a target, with a new place if there is none yet.
    fn place(&mut self, target: &Target, slot: usize) -> Result<usize, Failure> {
        let slots = self.slots.len();
        let plan = self.core.shared.plan;
        let origin = elsewhere::place(&mut self.origins, target, plan, self.tls.is_some())?;
        let places = self.origins.len() * slots;
        if places > self.connections.len() {
            let keep = self.core.shared.keep;
            self.connections.resize_with(places, || Connection::new(keep));
            self.deadlines.grow(places);
            self.core.driver.grow(places);
        }
        Ok(origin * slots + slot)
    }
}
