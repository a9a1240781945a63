//! Counts what siege counts, and prints its line for each exchange.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::settings::{Mode, Quirks, Settings};
use super::text;
use crate::control::Control;
use crate::dropin::Outside;
use crate::failure::FailureKind;
use crate::keep::{Keep, KeepContent};
use crate::observer::{Answered, Exchanged, Observer, Outcome};

/// So much of a content is printed by `-p`.
const PRINTED_BYTES_MAX: usize = 64 * 1024 * 1024;

/// siege's clock ticks a hundred times a second.
const TICK: Duration = Duration::from_millis(10);

/// Sees every exchange.
pub(super) struct Recorder<'a> {
    settings: &'a Settings,
    outside: &'a dyn Outside,
    control: &'a Control,
    taken: Mutex<Taken>,
}

/// What came of the exchanges.
#[derive(Debug, Default)]
pub(super) struct Taken {
    /// Exchanges that ended with an answer that is no failure.
    pub(super) transactions: u64,
    /// Answers below 400, and those that ask for credentials.
    pub(super) successful: u64,
    pub(super) failed: u64,
    /// Of the transactions.
    pub(super) time: Duration,
    pub(super) longest: Duration,
    pub(super) shortest: Option<Duration>,
    pub(super) content_bytes: u64,
    pub(super) socket_failures: u64,
    /// Whether there were too many of them.
    pub(super) aborted: bool,
    /// For each user, times of the transactions of a chain that goes on. Only siege 4.0 waits for its
    /// end before it counts them.
    pub(super) pending: Vec<Vec<Duration>>,
}

impl Taken {
    fn count(&mut self, time: Duration) {
        self.transactions += 1;
        self.time += time;
        self.longest = self.longest.max(time);
        self.shortest = Some(self.shortest.map_or(time, |shortest| shortest.min(time)));
    }
}

impl<'a> Recorder<'a> {
    pub(super) fn new(
        settings: &'a Settings,
        outside: &'a dyn Outside,
        control: &'a Control,
        users: usize,
    ) -> Self {
        let taken = Taken { pending: vec![Vec::new(); users], ..Taken::default() };
        Self { settings, outside, control, taken: Mutex::new(taken) }
    }

    pub(super) fn into_taken(self) -> Taken {
        self.taken.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answered(&self, exchange: &Exchanged<'_>, answer: &Answered<'_>) {
        let mut taken = self.taken();
        taken.content_bytes += answer.content_bytes;
        taken.successful += u64::from(answer.status < 400 || matches!(answer.status, 401 | 407));
        let is_failed = matches!(answer.status, 408 | 500..=509);
        let time = if self.settings.quirks == Quirks::Siege40 {
            ticks(exchange.ended) - ticks(exchange.began)
        } else {
            exchange.ended - exchange.began
        };
        match (is_failed, self.settings.quirks) {
            (true, _) => {
                taken.failed += 1;
                taken.pending[exchange.connection].clear();
            }
            (false, Quirks::Siege40) => {
                taken.pending[exchange.connection].push(time);
                if !exchange.goes_on {
                    let pending = std::mem::take(&mut taken.pending[exchange.connection]);
                    pending.into_iter().for_each(|time| taken.count(time));
                }
            }
            (false, _) => taken.count(time),
        }
        drop(taken);
        let is_quiet = self.settings.quiet || self.settings.json;
        match self.settings.mode {
            Mode::Siege if is_quiet || !self.settings.verbose => {}
            Mode::Siege => self.outside.out(&text::line(self.settings, exchange, answer)),
            Mode::Get => self.outside.out(&text::shown(exchange.request, answer.head)),
            Mode::Print => self.outside.out(&text::shown(exchange.request, answer.content)),
        }
    }

    fn failed(&self, exchange: &Exchanged<'_>, kind: FailureKind, detail: &str) {
        let mut taken = self.taken();
        taken.failed += 1;
        taken.pending[exchange.connection].clear();
        // A redirect that leads nowhere is no fault of a socket.
        if !matches!(
            kind,
            FailureKind::RedirectLoop | FailureKind::RedirectLimit | FailureKind::RedirectUnfit
        ) {
            taken.socket_failures += 1;
            if taken.socket_failures > self.settings.failures {
                taken.aborted = true;
                self.control.stop();
            }
        }
        drop(taken);
        if !self.settings.quiet && !self.settings.json {
            self.outside.err(&format!("[error] {}: {detail}\n", exchange.target.uri()));
        }
    }
}

impl Observer for Recorder<'_> {
    fn keep(&self) -> Keep {
        match self.settings.mode {
            Mode::Siege => Keep::default(),
            Mode::Get => Keep { head: true, content: KeepContent::Length },
            Mode::Print => Keep { head: true, content: KeepContent::Bytes(PRINTED_BYTES_MAX) },
        }
    }

    fn ended(&self, exchange: &Exchanged<'_>) {
        match exchange.outcome {
            Outcome::Answered(answer) => self.answered(exchange, &answer),
            Outcome::Failed { kind, detail, .. } => self.failed(exchange, kind, detail),
        }
    }
}

/// A time as siege's clock shows it.
pub(super) fn ticks(time: Duration) -> Duration {
    let count = u32::try_from(time.as_nanos() / TICK.as_nanos()).unwrap_or(u32::MAX);
    TICK * count
}
