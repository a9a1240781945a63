//! What the workers of a run are given, and what they bring back.

use std::time::Duration;

use crate::answer::Judge;
use crate::choice::Choice;
use crate::clock::Clock;
use crate::control::Control;
use crate::keep::Keep;
use crate::observer::Observer;
use crate::plan::{Io, Plan};
use crate::record::Record;
use crate::schedule::Schedule;
use crate::target::Target;
use crate::wire::Requests;

/// What all workers of a run read.
pub(crate) struct Shared<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) requests: &'a Requests,
    pub(crate) choice: Choice,
    pub(crate) control: &'a Control,
    pub(crate) observer: Option<&'a dyn Observer>,
    /// What is kept of each answer.
    pub(crate) keep: Keep,
    pub(crate) clock: Clock,
    /// How sockets are reached: settled.
    pub(crate) io: Io,
}

impl Shared<'_> {
    /// What says of answers whether they are right, by target.
    pub(crate) fn judges(&self) -> Vec<Judge> {
        let targets = self.plan.targets.iter().enumerate();
        let judge = |(at, target): (usize, &Target)| {
            Judge::new(self.requests.target(at).traits.method, target.expectation.clone())
        };
        targets.map(judge).collect()
    }
}

/// One part of a run: the warm-up, or what is measured.
#[derive(Debug)]
pub(crate) struct Part<'a> {
    pub(crate) schedule: Schedule<'a>,
    /// When it began, for all workers.
    pub(crate) start: u64,
    /// When it is over even if requests are outstanding.
    pub(crate) cut_at: Option<u64>,
    /// Requests of each slot.
    pub(crate) requests_each: u64,
    /// Whether it counts as progress.
    pub(crate) is_measured: bool,
}

/// What a worker brings back from a part.
#[derive(Debug)]
pub(crate) struct PartResult {
    pub(crate) record: Record,
    pub(crate) ended: u64,
    pub(crate) cpu: Duration,
    /// Time that was spent asking for news when there was none.
    pub(crate) polled: Duration,
    pub(crate) end: End,
}

/// Why a part ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum End {
    /// Everything was sent and answered, or the time was over.
    Done,
    /// The control said so.
    Interrupted,
    /// No slot could connect any more.
    GaveUp,
}
