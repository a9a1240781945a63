//! The share of a run that one process does, and the report made of all shares.
//!
//! Connections and, in the closed loop, requests are dealt out; in the open loop each process has its
//! own numbers of the one schedule, so that the rate is that of the whole run however many they are.

use serde::{Deserialize, Serialize};

use crate::plan::{Io, Plan};
use crate::report::{Ended, Linger, Report};
use crate::summary::{self, Measured};

/// Which share of a run a process does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// From 0.
    pub index: usize,
    /// Number of processes.
    pub of: usize,
}

/// What a process brings back of its share. Travels as JSON.
#[derive(Debug, Serialize, Deserialize)]
pub struct ShareResult {
    pub(crate) threads: usize,
    pub(crate) io: Io,
    pub(crate) warm_up: Option<Measured>,
    pub(crate) measured: Measured,
    pub(crate) ended: Ended,
    pub(crate) linger: Option<Linger>,
}

impl Share {
    /// The whole run.
    pub const WHOLE: Self = Self { index: 0, of: 1 };

    /// How much of `total` it has, and how much comes before it.
    pub(crate) fn of_total(self, total: u64) -> (u64, u64) {
        let (index, of) = (self.index as u64, self.of.max(1) as u64);
        let (each, rest) = (total / of, total % of);
        (each + u64::from(index < rest), index * each + index.min(rest))
    }
}

impl ShareResult {
    /// The report of a run of which these are all the shares; `None` without any.
    #[must_use]
    pub fn report(plan: &Plan, shares: Vec<Self>) -> Option<Report> {
        let all = shares.into_iter().reduce(|mut all, one| {
            all.threads += one.threads;
            all.warm_up = match (all.warm_up, one.warm_up) {
                (Some(all), Some(one)) => Some(all.merge(one)),
                (all, one) => all.or(one),
            };
            all.measured = all.measured.merge(one.measured);
            all.ended = worse(all.ended, one.ended);
            all.linger = all.linger.or(one.linger);
            all
        })?;
        let Self { threads, io, warm_up, measured, ended, linger } = all;
        Some(summary::report(plan, threads, io, warm_up, measured, ended, linger))
    }
}

/// Why the run ended, of the reasons of two shares.
fn worse(one: Ended, other: Ended) -> Ended {
    let badness = |ended| match ended {
        Ended::Requests => 0,
        Ended::Duration => 1,
        Ended::Interrupted => 2,
        Ended::GaveUp => 3,
    };
    if badness(other) > badness(one) { other } else { one }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_even_and_leave_nothing() {
        for (total, of) in [(10, 3), (3, 3), (0, 2), (1_000_003, 7), (5, 1)] {
            let mut next = 0;
            for index in 0..of {
                let (count, before) = Share { index, of }.of_total(total);
                assert_eq!(before, next);
                assert!(count.abs_diff(total / of as u64) <= 1);
                next += count;
            }
            assert_eq!(next, total);
        }
    }
}
