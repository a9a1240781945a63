//! The wires between a run and whoever started it: stop early, watch progress.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use crate::interval::{Counts, Interval, Intervals};

/// Shared by the caller and the worker threads. Workers look at it about ten times a second and
/// add to it about as often, so it costs the run nothing.
#[derive(Debug, Default)]
pub struct Control {
    stop: Arc<AtomicBool>,
    measuring_since: OnceLock<SystemTime>,
    sent: AtomicU64,
    answered: AtomicU64,
    wrong: AtomicU64,
    errors: AtomicU64,
    intervals: Option<Intervals>,
}

/// How far the measured part has come, a tenth of a second old at most.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// False during the warm-up.
    pub measuring: bool,
    /// Requests, each counted once however often it was sent.
    pub sent: u64,
    /// Complete answers, right or wrong.
    pub answered: u64,
    /// Wrong answers among them.
    pub wrong: u64,
    /// Requests that failed.
    pub errors: u64,
}

impl Control {
    /// A control that lets the run go its way.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A control that stops the run when `flag` becomes true, such as by a signal.
    #[must_use]
    pub fn stopped_by(flag: Arc<AtomicBool>) -> Self {
        Self { stop: flag, ..Self::default() }
    }

    /// The same, and keeps what happened in each interval of the length `every`, a multiple of a tenth of a
    /// second, for [`Control::take_intervals`].
    #[must_use]
    pub fn watching(self, every: Duration) -> Self {
        Self { intervals: Some(Intervals::new(every)), ..self }
    }

    /// Takes the intervals of the measured part that are complete and were not taken yet. Whoever takes
    /// none for long finds many of them merged.
    #[must_use]
    pub fn take_intervals(&self) -> Vec<Interval> {
        self.intervals.as_ref().map(Intervals::take).unwrap_or_default()
    }

    /// Says how many other processes do the run, so that what they tell is put together here: each tells
    /// its intervals with [`Control::add_interval`] and then [`Control::end_share`].
    pub fn expect_shares(&self, shares: usize) {
        if let Some(intervals) = &self.intervals {
            intervals.expect(shares);
        }
    }

    /// Adds an interval of share number `share`, whose measured part began at `began`.
    pub fn add_interval(&self, share: usize, interval: &Interval, began: SystemTime) {
        self.measuring_since.get_or_init(|| began);
        self.add(interval.counts);
        if let Some(intervals) = &self.intervals {
            intervals.add_from(share, interval);
        }
    }

    /// Share number `share` has told everything.
    pub fn end_share(&self, share: usize) {
        if let Some(intervals) = &self.intervals {
            intervals.end(share);
        }
    }

    /// Asks the run to end now. It reports what it has measured so far.
    pub fn stop(&self) {
        self.stop.store(true, Relaxed);
    }

    /// Whether [`Control::stop`] was called.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Relaxed)
    }

    /// How far the run has come. Cheap enough to be called at any rate.
    #[must_use]
    pub fn progress(&self) -> Progress {
        Progress {
            measuring: self.measuring_since.get().is_some(),
            sent: self.sent.load(Relaxed),
            answered: self.answered.load(Relaxed),
            wrong: self.wrong.load(Relaxed),
            errors: self.errors.load(Relaxed),
        }
    }

    /// When the measured part began, if it has.
    #[must_use]
    pub fn measuring_since(&self) -> Option<SystemTime> {
        self.measuring_since.get().copied()
    }

    pub(crate) fn start_measuring(&self) {
        // The first of the workers says it for all.
        self.measuring_since.get_or_init(SystemTime::now);
    }

    pub(crate) fn intervals(&self) -> Option<&Intervals> {
        self.intervals.as_ref()
    }

    /// Adds what one worker counted since it last called this.
    pub(crate) fn add(&self, counts: Counts) {
        self.sent.fetch_add(counts.sent, Relaxed);
        self.answered.fetch_add(counts.requests, Relaxed);
        self.wrong.fetch_add(counts.wrong_answers, Relaxed);
        self.errors.fetch_add(counts.errors, Relaxed);
    }
}
