//! Counts what http_load counts, in memory that depends on the number of URLs and on nothing else.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::options::Options;
use crate::control::Control;
use crate::dropin::Outside;
use crate::failure::FailureKind;
use crate::keep::{Keep, KeepContent};
use crate::observer::{Answered, Exchanged, Observer, Outcome};

/// Complaints that are printed. Beyond, they are only counted: a server that is gone fails faster than
/// anybody reads.
const COMPLAINTS_MAX: u64 = 100;

/// As many connections in a row that could not be opened end the run: nobody is there any more.
const REFUSALS_MAX: u64 = 1_000;

/// Sees every exchange.
pub(super) struct Recorder<'a> {
    checksum: bool,
    outside: &'a dyn Outside,
    control: &'a Control,
    taken: Mutex<Taken>,
}

/// What came of the fetches.
#[derive(Debug, Default)]
pub(super) struct Taken {
    /// Fetches that ended, well or badly.
    pub(super) completed: u64,
    pub(super) content_bytes: u64,
    pub(super) connect: Extent,
    pub(super) first_response: Extent,
    pub(super) timeouts: u64,
    /// Contents unlike the first of the same URL.
    pub(super) bad: u64,
    pub(super) complaints: u64,
    /// Whether nobody was there any more.
    pub(super) gave_up: bool,
    refusals: u64,
    /// By number in the list: length or checksum of the first content.
    first: Vec<Option<u64>>,
}

/// Mean, longest and shortest of some times.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Extent {
    pub(super) count: u64,
    sum: Duration,
    pub(super) max: Duration,
    pub(super) min: Duration,
}

impl Extent {
    pub(super) fn add(&mut self, time: Duration) {
        self.min = if self.count == 0 { time } else { self.min.min(time) };
        self.max = self.max.max(time);
        self.sum += time;
        self.count += 1;
    }

    /// In seconds; zero without any.
    pub(super) fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum.as_secs_f64() / self.count as f64 }
    }
}

impl<'a> Recorder<'a> {
    pub(super) fn new(options: &Options, outside: &'a dyn Outside, control: &'a Control) -> Self {
        Self { checksum: options.checksum, outside, control, taken: Mutex::default() }
    }

    pub(super) fn into_taken(self) -> Taken {
        self.taken.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fetches that have ended so far.
    pub(super) fn completed(&self) -> u64 {
        self.taken().completed
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn complain(&self, taken: &mut Taken, exchange: &Exchanged<'_>, what: &str) {
        taken.complaints += 1;
        if taken.complaints <= COMPLAINTS_MAX {
            self.outside.err(&format!("{}: {what}\n", exchange.target.uri()));
        }
    }

    fn answered(&self, taken: &mut Taken, exchange: &Exchanged<'_>, answer: &Answered<'_>) {
        taken.content_bytes += answer.content_bytes;
        taken.first_response.add(exchange.first_byte - exchange.sent);
        let mark = if self.checksum { answer.digest } else { answer.content_bytes };
        if taken.first.len() <= exchange.listed {
            taken.first.resize(exchange.listed + 1, None);
        }
        if *taken.first[exchange.listed].get_or_insert(mark) != mark {
            taken.bad += 1;
            let what = if self.checksum { "checksum wrong" } else { "byte count wrong" };
            self.complain(taken, exchange, what);
        }
    }

    fn failed(&self, taken: &mut Taken, exchange: &Exchanged<'_>, kind: FailureKind, detail: &str) {
        if kind == FailureKind::TimedOut {
            taken.timeouts += 1;
            self.complain(taken, exchange, "timed out");
        } else {
            self.complain(taken, exchange, detail);
        }
        if exchange.connect.is_none() {
            taken.refusals += 1;
            if taken.refusals == REFUSALS_MAX {
                taken.gave_up = true;
                self.control.stop();
            }
        }
    }
}

impl Observer for Recorder<'_> {
    fn keep(&self) -> Keep {
        let content = if self.checksum { KeepContent::Digest } else { KeepContent::Length };
        Keep { head: false, content }
    }

    fn ended(&self, exchange: &Exchanged<'_>) {
        let mut taken = self.taken();
        taken.completed += 1;
        if let Some(time) = exchange.connect {
            taken.connect.add(time);
            taken.refusals = 0;
        }
        match exchange.outcome {
            Outcome::Answered(answer) => self.answered(&mut taken, exchange, &answer),
            Outcome::Failed { kind, detail, .. } => {
                self.failed(&mut taken, exchange, kind, detail);
            }
        }
    }
}

/// Complaints beyond those that were printed.
impl Taken {
    pub(super) fn complaints_left_out(&self) -> u64 {
        self.complaints.saturating_sub(COMPLAINTS_MAX)
    }
}
