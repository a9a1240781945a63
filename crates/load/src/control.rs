//! The wires between a run and whoever started it: stop early, watch progress.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Shared by the caller and the worker threads. Workers look at it about ten times a second and
/// add to it about as often, so it costs the run nothing.
#[derive(Debug, Default)]
pub struct Control {
    stop: Arc<AtomicBool>,
    measuring: AtomicBool,
    sent: AtomicU64,
    answered: AtomicU64,
    wrong: AtomicU64,
    errors: AtomicU64,
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
            measuring: self.measuring.load(Relaxed),
            sent: self.sent.load(Relaxed),
            answered: self.answered.load(Relaxed),
            wrong: self.wrong.load(Relaxed),
            errors: self.errors.load(Relaxed),
        }
    }

    pub(crate) fn start_measuring(&self) {
        self.measuring.store(true, Relaxed);
    }

    /// Adds what one worker counted since it last called this.
    pub(crate) fn add(&self, sent: u64, answered: u64, wrong: u64, errors: u64) {
        self.sent.fetch_add(sent, Relaxed);
        self.answered.fetch_add(answered, Relaxed);
        self.wrong.fetch_add(wrong, Relaxed);
        self.errors.fetch_add(errors, Relaxed);
    }
}
