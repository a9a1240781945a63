//! What happened in each second of a run, put together from what the workers say, in constant memory.
//!
//! Each worker adds what it counted since it last did so, at the first turn of its loop after the end
//! of an interval: some milliseconds late at most. An interval is complete when all have added to it.
//! Whoever wants them takes them from the [`crate::Control`]; those that nobody takes are merged.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use milepost_stats::histogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::clock::nanos;

/// Intervals that wait to be complete, and that wait to be taken. Half a megabyte each.
const WAITING_MAX: usize = 16;

/// What happened in one interval of the measured part.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Interval {
    /// Number, from 0.
    pub number: u64,
    /// From the start of the measured part.
    pub start: Duration,
    /// How long it was.
    pub length: Duration,
    /// Counts.
    pub counts: Counts,
    /// See [`crate::Report::response_ns`].
    #[serde(with = "crate::wire_form::histogram")]
    pub response: Histogram,
    /// See [`crate::Report::service_ns`].
    #[serde(with = "crate::wire_form::histogram")]
    pub service: Histogram,
}

/// What was counted in an interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Requests, each counted once however often it was sent.
    pub sent: u64,
    /// Complete answers, right or wrong.
    pub requests: u64,
    /// Wrong answers among them.
    pub wrong_answers: u64,
    /// Requests without a complete answer.
    pub errors: u64,
    /// Bytes received.
    pub bytes_received: u64,
}

/// Puts intervals together.
#[derive(Debug)]
pub(crate) struct Intervals {
    every: Duration,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// For each contributor the next interval that it will add to.
    next: Vec<u64>,
    /// Number of the first that is not complete.
    first: u64,
    /// Those that are not complete, ascending and without gaps.
    open: VecDeque<Interval>,
    complete: VecDeque<Interval>,
    /// How far the first of the contributors is.
    reached: Duration,
}

impl Interval {
    fn new(number: u64, every: Duration) -> Self {
        let start = Duration::from_nanos(nanos(every).saturating_mul(number));
        Self {
            number,
            start,
            length: every,
            counts: Counts::default(),
            response: Histogram::new(),
            service: Histogram::new(),
        }
    }

    /// Adds what another counted in the same time, or right after it.
    fn merge(&mut self, other: &Self) {
        self.length = self.length.max((other.start + other.length).saturating_sub(self.start));
        self.counts.add(other.counts);
        self.response.merge(&other.response);
        self.service.merge(&other.service);
    }
}

impl Counts {
    /// Adds those of another.
    pub fn add(&mut self, other: Self) {
        self.sent += other.sent;
        self.requests += other.requests;
        self.wrong_answers += other.wrong_answers;
        self.errors += other.errors;
        self.bytes_received += other.bytes_received;
    }

    /// What came to `self` since it was `before`.
    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            sent: self.sent - before.sent,
            requests: self.requests - before.requests,
            wrong_answers: self.wrong_answers - before.wrong_answers,
            errors: self.errors - before.errors,
            bytes_received: self.bytes_received - before.bytes_received,
        }
    }
}

impl Intervals {
    /// Intervals of the length `every`.
    pub(crate) fn new(every: Duration) -> Self {
        Self { every, state: Mutex::default() }
    }

    /// Length of an interval in nanoseconds.
    pub(crate) fn every_ns(&self) -> u64 {
        nanos(self.every).max(1)
    }

    /// How many add to each interval. Called before anybody does.
    pub(crate) fn expect(&self, contributors: usize) {
        self.state().next = vec![0; contributors];
    }

    /// Adds what `contributor` counted in interval `number`. `last` is when it ended, if it will not add
    /// again, from the start of the measured part.
    pub(crate) fn add(
        &self,
        contributor: usize,
        number: u64,
        last: Option<Duration>,
        act: impl FnOnce(&mut Interval),
    ) {
        let reach = last.unwrap_or_else(|| self.start_of(number.saturating_add(1)));
        self.add_until(contributor, number, reach, last.is_some(), act);
    }

    /// The same of a contributor that has come as far as `reach`.
    fn add_until(
        &self,
        contributor: usize,
        number: u64,
        reach: Duration,
        is_last: bool,
        act: impl FnOnce(&mut Interval),
    ) {
        let mut state = self.state();
        let state = &mut *state;
        let Some(next) = state.next.get_mut(contributor) else { return };
        *next = if is_last { u64::MAX } else { number + 1 };
        state.reached = state.reached.max(reach);
        // One that comes too late adds to the first that is not complete. One that stays behind must not
        // make those of the others heap up.
        let at = number.saturating_sub(state.first).min(WAITING_MAX as u64 - 1) as usize;
        while state.open.len() <= at {
            let number = state.first + state.open.len() as u64;
            state.open.push_back(Interval::new(number, self.every));
        }
        act(&mut state.open[at]);
        self.complete(state);
    }

    /// Hands over what all have added to.
    fn complete(&self, state: &mut State) {
        let complete = state.next.iter().copied().min().unwrap_or(u64::MAX);
        while state.first < complete
            && let Some(mut interval) = state.open.pop_front()
        {
            state.first += 1;
            let length = state.reached.saturating_sub(interval.start);
            let is_last = complete == u64::MAX && state.open.is_empty();
            interval.length = if is_last { length } else { length.min(self.every) };
            let is_full = state.complete.len() >= WAITING_MAX;
            match state.complete.back_mut() {
                Some(last) if is_full => last.merge(&interval),
                _ => state.complete.push_back(interval),
            }
        }
    }

    /// Adds an interval that was put together elsewhere, by contributor number `share`.
    pub(crate) fn add_from(&self, share: usize, other: &Interval) {
        let reach = other.start + other.length;
        self.add_until(share, other.number, reach, false, |interval| {
            interval.counts.add(other.counts);
            interval.response.merge(&other.response);
            interval.service.merge(&other.service);
        });
    }

    /// Contributor number `share` adds nothing more.
    pub(crate) fn end(&self, share: usize) {
        let mut state = self.state();
        if let Some(next) = state.next.get_mut(share) {
            *next = u64::MAX;
        }
        self.complete(&mut state);
    }

    fn start_of(&self, number: u64) -> Duration {
        Duration::from_nanos(self.every_ns().saturating_mul(number))
    }

    /// Takes what is complete.
    pub(crate) fn take(&self) -> Vec<Interval> {
        self.state().complete.drain(..).collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn an_interval_is_complete_when_all_have_added_to_it() {
        let intervals = intervals(2);
        add(&intervals, 0, 0, 5, None);
        add(&intervals, 0, 1, 6, None);
        assert_eq!(taken(&intervals), []);
        add(&intervals, 1, 0, 7, None);
        assert_eq!(taken(&intervals), [(0, 12, 1_000)]);
        add(&intervals, 1, 1, 8, Some(1_500));
        assert_eq!(taken(&intervals), [(1, 14, 1_000)]);
        // The other has ended: what the one adds is complete at once.
        add(&intervals, 0, 2, 1, None);
        assert_eq!(taken(&intervals), [(2, 1, 1_000)]);
        add(&intervals, 0, 3, 2, Some(3_250));
        assert_eq!(taken(&intervals), [(3, 2, 250)]);
    }

    #[test]
    fn intervals_of_shares_are_put_together_as_those_of_workers_are() {
        let intervals = intervals(2);
        let told = |number, sent, millis| {
            let mut interval = Interval::new(number, SECOND);
            (interval.counts.sent, interval.length) = (sent, Duration::from_millis(millis));
            interval
        };
        intervals.add_from(0, &told(0, 5, 1_000));
        intervals.add_from(1, &told(0, 6, 1_000));
        intervals.add_from(0, &told(1, 1, 300));
        assert_eq!(taken(&intervals), [(0, 11, 1_000)]);
        intervals.end(0);
        intervals.add_from(1, &told(1, 2, 310));
        assert_eq!(taken(&intervals), [(1, 3, 310)]);
        intervals.end(1);
        assert_eq!(taken(&intervals), []);
    }

    #[test]
    fn what_nobody_takes_is_merged() {
        let intervals = intervals(1);
        (0..100).for_each(|number| add(&intervals, 0, number, 1, None));
        let taken = taken(&intervals);
        assert_eq!(taken.len(), WAITING_MAX);
        assert_eq!(taken[0], (0, 1, 1_000));
        let rest = 100 - (WAITING_MAX as u64 - 1);
        assert_eq!(taken[WAITING_MAX - 1], (WAITING_MAX as u64 - 1, rest, rest * 1_000));
    }

    #[test]
    fn one_that_stays_behind_does_not_make_the_others_heap_up() {
        let intervals = intervals(2);
        (0..100).for_each(|number| add(&intervals, 0, number, 1, None));
        assert_eq!(intervals.state().open.len(), WAITING_MAX);
        (0..101).for_each(|number| {
            add(&intervals, 1, number, 1, Some(100_500).filter(|_| number == 100))
        });
        add(&intervals, 0, 100, 1, Some(100_500));
        let sum: u64 = taken(&intervals).iter().map(|(_, sent, _)| sent).sum();
        assert_eq!(sum, 202);
    }

    fn intervals(contributors: usize) -> Intervals {
        let intervals = Intervals::new(SECOND);
        intervals.expect(contributors);
        intervals
    }

    fn add(intervals: &Intervals, who: usize, number: u64, sent: u64, last_ms: Option<u64>) {
        let last = last_ms.map(Duration::from_millis);
        intervals.add(who, number, last, |interval| interval.counts.sent += sent);
    }

    /// Number, requests sent, length in milliseconds.
    fn taken(intervals: &Intervals) -> Vec<(u64, u64, u64)> {
        let taken = intervals.take().into_iter();
        taken.map(|it| (it.number, it.counts.sent, it.length.as_millis() as u64)).collect()
    }
}
