//! What one worker counts in one part of a run. Nothing in here is shared; merged at the end.

use std::collections::BTreeMap;

use milepost_stats::histogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::answer::Failure;
use crate::chains::Chains;
use crate::failure::FailureKind;
use crate::interval::Counts;
use crate::meter::Recent;
use crate::report::{Bytes, TlsSession, WrongAnswer};
use crate::target::Target;

/// Wrong answers that are kept as examples, each of another target.
pub(crate) const EXAMPLES_MAX: usize = 5;

/// One more than the largest status that three digits can say.
pub(crate) const STATUSES: usize = 1000;

/// Counters and distributions.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) right: u64,
    pub(crate) wrong: u64,
    pub(crate) errors: u64,
    pub(crate) unanswered: u64,
    /// Requests that went out for the first time.
    pub(crate) sent: u64,
    #[serde(with = "crate::wire_form::histogram")]
    pub(crate) service: Histogram,
    #[serde(with = "crate::wire_form::histogram")]
    pub(crate) response: Histogram,
    #[serde(with = "crate::wire_form::histogram")]
    pub(crate) first_byte: Histogram,
    #[serde(with = "crate::wire_form::histogram")]
    pub(crate) connect: Histogram,
    #[serde(with = "crate::wire_form::histogram")]
    pub(crate) tls: Histogram,
    /// Handshakes of TLS that were full ones, and those that took up a session.
    pub(crate) handshakes: [u64; 2],
    /// What was negotiated first.
    pub(crate) session: Option<TlsSession>,
    #[serde(with = "crate::wire_form::histogram")]
    pub(crate) lateness: Histogram,
    #[serde(with = "crate::wire_form::counts")]
    pub(crate) statuses: Box<[u64; STATUSES]>,
    pub(crate) bytes: Bytes,
    pub(crate) opened: u64,
    pub(crate) closed_by_server: u64,
    pub(crate) resent: u64,
    pub(crate) longest_turn: u64,
    /// Most requests outstanding at a time.
    pub(crate) busy_max: u64,
    /// With the index of their target.
    pub(crate) examples: Vec<(usize, WrongAnswer)>,
    /// What became of chains, if answers lead to further requests.
    pub(crate) chains: Option<Box<Chains>>,
    pub(crate) failures: BTreeMap<FailureKind, (u64, String)>,
    /// Times since they were told last, if anybody wants to be told.
    #[serde(skip)]
    pub(crate) recent: Option<Box<Recent>>,
}

/// Times of one right answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    pub(crate) intended: u64,
    pub(crate) sent: u64,
    pub(crate) first_byte: u64,
    pub(crate) ended: u64,
}

impl Record {
    pub(crate) fn new() -> Self {
        Self {
            right: 0,
            wrong: 0,
            errors: 0,
            unanswered: 0,
            sent: 0,
            service: Histogram::new(),
            response: Histogram::new(),
            first_byte: Histogram::new(),
            connect: Histogram::new(),
            tls: Histogram::new(),
            handshakes: [0; 2],
            session: None,
            lateness: Histogram::new(),
            statuses: Box::new([0; STATUSES]),
            bytes: Bytes::default(),
            opened: 0,
            closed_by_server: 0,
            resent: 0,
            longest_turn: 0,
            busy_max: 0,
            examples: Vec::new(),
            chains: None,
            failures: BTreeMap::new(),
            recent: None,
        }
    }

    /// Complete answers.
    pub(crate) fn answered(&self) -> u64 {
        self.right + self.wrong
    }

    /// What is told while the run goes on.
    pub(crate) fn counts(&self) -> Counts {
        Counts {
            sent: self.sent,
            requests: self.answered(),
            wrong_answers: self.wrong,
            errors: self.errors,
            bytes_received: self.bytes.received,
        }
    }

    /// Whether an example of a wrong answer to `target` is wanted.
    #[inline]
    pub(crate) fn wants_example(&self, target: usize) -> bool {
        self.examples.len() < EXAMPLES_MAX
            && self.examples.iter().all(|(other, _)| *other != target)
    }

    #[inline]
    pub(crate) fn status(&mut self, status: u16) {
        self.statuses[usize::from(status).min(STATUSES - 1)] += 1;
    }

    #[inline]
    pub(crate) fn sample(&mut self, sample: Sample) {
        self.right += 1;
        self.service.record(sample.ended - sample.sent);
        self.response.record(sample.ended - sample.intended);
        self.first_byte.record(sample.first_byte - sample.sent);
        if let Some(recent) = &mut self.recent {
            recent.service.record(sample.ended - sample.sent);
            recent.response.record(sample.ended - sample.intended);
        }
    }

    /// A handshake of TLS that took `took` nanoseconds; `session` tells what was agreed upon.
    pub(crate) fn handshake(
        &mut self,
        took: u64,
        is_resumed: bool,
        session: impl FnOnce() -> Option<TlsSession>,
    ) {
        self.tls.record(took);
        self.handshakes[usize::from(is_resumed)] += 1;
        if self.session.is_none() {
            self.session = session();
        }
    }

    /// A request that was given up at `now`, `sent` or not.
    pub(crate) fn censored(&mut self, intended: u64, sent: Option<u64>, now: u64) {
        self.response.record_censored(now.saturating_sub(intended));
        if let Some(sent) = sent {
            self.service.record_censored(now.saturating_sub(sent));
        }
        if let Some(recent) = &mut self.recent {
            recent.response.record_censored(now.saturating_sub(intended));
            if let Some(sent) = sent {
                recent.service.record_censored(now.saturating_sub(sent));
            }
        }
    }

    pub(crate) fn failure(&mut self, failure: Failure, target: &Target) {
        self.errors += 1;
        let entry = self.failures.entry(failure.kind);
        entry.or_insert_with(|| (0, format!("{}: {}", target.uri(), failure.detail))).0 += 1;
    }

    /// Adds what another worker counted in the same part.
    pub(crate) fn merge(&mut self, other: Record) {
        self.right += other.right;
        self.wrong += other.wrong;
        self.errors += other.errors;
        self.unanswered += other.unanswered;
        self.sent += other.sent;
        self.service.merge(&other.service);
        self.response.merge(&other.response);
        self.first_byte.merge(&other.first_byte);
        self.connect.merge(&other.connect);
        self.tls.merge(&other.tls);
        for (ours, theirs) in self.handshakes.iter_mut().zip(other.handshakes) {
            *ours += theirs;
        }
        self.session = self.session.take().or(other.session);
        self.lateness.merge(&other.lateness);
        for (ours, theirs) in self.statuses.iter_mut().zip(other.statuses.iter()) {
            *ours += theirs;
        }
        self.bytes.sent += other.bytes.sent;
        self.bytes.received += other.bytes.received;
        self.bytes.content += other.bytes.content;
        self.opened += other.opened;
        self.closed_by_server += other.closed_by_server;
        self.resent += other.resent;
        self.longest_turn = self.longest_turn.max(other.longest_turn);
        self.busy_max += other.busy_max;
        for (target, example) in other.examples {
            if self.wants_example(target) {
                self.examples.push((target, example));
            }
        }
        match (&mut self.chains, other.chains) {
            (Some(ours), Some(theirs)) => ours.merge(*theirs),
            (ours, theirs) => *ours = ours.take().or(theirs),
        }
        for (kind, (count, example)) in other.failures {
            self.failures.entry(kind).or_insert((0, example)).0 += count;
        }
    }
}
