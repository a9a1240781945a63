//! What became of chains: a request of the list with everything that followed from its answers.
//!
//! A visitor waits for the whole chain, so it has a time of its own, and each hop has one, so that one sees
//! which redirect costs it.

use milepost_stats::histogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::report::{ChainSummary, HopSummary};
use crate::summary::times;

/// Hops that have figures of their own; all further ones share the last.
pub(crate) const HOPS_MAX: usize = 32;

/// Chains of one worker.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Chains {
    right: u64,
    wrong: u64,
    failed: u64,
    #[serde(with = "crate::wire_form::histogram")]
    response: Histogram,
    hops: Vec<Hop>,
}

/// All requests with the same number in their chains.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Hop {
    answers: u64,
    ended: u64,
    #[serde(with = "crate::wire_form::histogram")]
    service: Histogram,
}

/// A complete answer of a chain.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Link {
    /// Which request of its chain, from 0.
    pub(crate) hop: u32,
    /// When the first request of the chain was meant to be sent.
    pub(crate) began: u64,
    /// When this one was sent.
    pub(crate) sent: u64,
    pub(crate) ended: u64,
    /// Whether all answers of the chain were right so far.
    pub(crate) right: bool,
    /// Whether another request follows.
    pub(crate) goes_on: bool,
}

impl Chains {
    pub(crate) fn answered(&mut self, link: Link) {
        let hop = self.hop(link.hop);
        hop.answers += 1;
        hop.service.record(link.ended.saturating_sub(link.sent));
        if link.goes_on {
            return;
        }
        hop.ended += 1;
        if link.right {
            self.right += 1;
            self.response.record(link.ended.saturating_sub(link.began));
        } else {
            self.wrong += 1;
        }
    }

    /// A chain ended with a request that failed.
    pub(crate) fn failed(&mut self) {
        self.failed += 1;
    }

    fn hop(&mut self, hop: u32) -> &mut Hop {
        let at = (hop as usize).min(HOPS_MAX - 1);
        if self.hops.len() <= at {
            self.hops.resize_with(at + 1, Hop::default);
        }
        &mut self.hops[at]
    }

    pub(crate) fn merge(&mut self, other: Self) {
        self.right += other.right;
        self.wrong += other.wrong;
        self.failed += other.failed;
        self.response.merge(&other.response);
        for (theirs, at) in other.hops.into_iter().zip(0..) {
            let ours = self.hop(at);
            ours.answers += theirs.answers;
            ours.ended += theirs.ended;
            ours.service.merge(&theirs.service);
        }
    }

    pub(crate) fn summary(&self) -> ChainSummary {
        let hop = |hop: &Hop| HopSummary {
            answers: hop.answers,
            ended: hop.ended,
            service_ns: times(&hop.service),
        };
        ChainSummary {
            right: self.right,
            wrong: self.wrong,
            failed: self.failed,
            response_ns: times(&self.response),
            hops: self.hops.iter().map(hop).collect(),
        }
    }
}
