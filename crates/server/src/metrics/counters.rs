//! The counters of one worker: written by its thread alone, so that no store needs to be an exchange.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::lock;

/// Statuses are below this.
const STATUSES: usize = 1000;

/// Upper bounds of the classes of times, in nanoseconds. A redirect takes less than the first.
pub(super) const BOUNDS_NS: [u64; 16] = [
    10_000,
    25_000,
    50_000,
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    25_000_000,
    50_000_000,
    100_000_000,
    500_000_000,
    1_000_000_000,
    10_000_000_000,
];

/// What one worker has done.
#[derive(Debug)]
pub(crate) struct Counters {
    /// Whether times are to be taken, which costs looking at the clock.
    pub(crate) is_timed: bool,
    pub(super) accepted: AtomicU64,
    pub(super) ended: AtomicU64,
    pub(super) content_bytes: AtomicU64,
    pub(super) statuses: Box<[AtomicU64]>,
    pub(super) times: [AtomicU64; BOUNDS_NS.len() + 1],
    pub(super) time_ns: AtomicU64,
    /// Handshakes by [`TLS_VERSIONS`]: from the beginning, and of a session that was resumed.
    pub(super) handshakes: [[AtomicU64; 2]; TLS_VERSIONS.len()],
    pub(super) handshakes_failed: AtomicU64,
    /// By the URL of the backend. The lock is free but for the moment of a scrape.
    pub(super) backends: Mutex<BTreeMap<String, Backend>>,
}

/// The versions of TLS there are.
pub(super) const TLS_VERSIONS: [&str; 2] = ["TLSv1.2", "TLSv1.3"];

/// What one worker has asked of one backend.
#[derive(Debug, Default, Clone)]
pub(crate) struct Backend {
    /// Requests whose answers were passed on.
    pub(crate) answered: u64,
    /// Requests without an answer that could be passed on.
    pub(crate) failed: u64,
    /// Answers that broke off.
    pub(crate) cut: u64,
    /// Requests that were sent once more, as an idle connection had been closed.
    pub(crate) retried: u64,
    /// Connections that were made.
    pub(crate) opened: u64,
    /// Requests on a connection that had carried another one.
    pub(crate) reused: u64,
}

impl Backend {
    pub(super) fn add(&mut self, other: &Backend) {
        self.answered += other.answered;
        self.failed += other.failed;
        self.cut += other.cut;
        self.retried += other.retried;
        self.opened += other.opened;
        self.reused += other.reused;
    }
}

impl Counters {
    pub(super) fn new(is_timed: bool) -> Counters {
        Counters {
            is_timed,
            accepted: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            content_bytes: AtomicU64::new(0),
            statuses: (0..STATUSES).map(|_| AtomicU64::new(0)).collect(),
            times: Default::default(),
            time_ns: AtomicU64::new(0),
            handshakes: Default::default(),
            handshakes_failed: AtomicU64::new(0),
            backends: Mutex::default(),
        }
    }

    /// A connection begins.
    pub(crate) fn accepted(&self) {
        add(&self.accepted, 1);
    }

    /// A connection has ended.
    pub(crate) fn ended(&self) {
        add(&self.ended, 1);
    }

    /// An answer is ready; `begun` is when its request had been read.
    pub(crate) fn answered(&self, status: u16, content_bytes: u64, begun: Option<Instant>) {
        if let Some(counter) = self.statuses.get(usize::from(status)) {
            add(counter, 1);
        }
        add(&self.content_bytes, content_bytes);
        if let Some(begun) = begun
            && self.is_timed
        {
            self.took(begun.elapsed());
        }
    }

    /// A handshake has ended: in a connection of this version, of a session that was resumed or not, or not.
    pub(crate) fn shaken(&self, done: Option<(&str, bool)>) {
        let Some((version, resumed)) = done else { return add(&self.handshakes_failed, 1) };
        if let Some(number) = TLS_VERSIONS.iter().position(|known| *known == version) {
            add(&self.handshakes[number][usize::from(resumed)], 1);
        }
    }

    /// Something has happened between us and a backend.
    pub(crate) fn backend(&self, url: &str, count: impl FnOnce(&mut Backend)) {
        let mut backends = lock(&self.backends);
        match backends.get_mut(url) {
            Some(backend) => count(backend),
            None => count(backends.entry(url.to_owned()).or_default()),
        }
    }

    fn took(&self, time: Duration) {
        let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let class = BOUNDS_NS.iter().position(|&bound| ns <= bound).unwrap_or(BOUNDS_NS.len());
        add(&self.times[class], 1);
        add(&self.time_ns, ns);
    }
}

/// Adds to a counter that nobody else writes.
pub(super) fn add(counter: &AtomicU64, count: u64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(count), Ordering::Relaxed);
}

pub(super) fn get(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}
