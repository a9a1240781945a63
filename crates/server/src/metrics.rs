//! Counts what a server does, for whoever watches it: in the text format of Prometheus.
//!
//! Each worker counts for itself, in memory that it alone writes; a scrape adds up. So counting costs a few
//! stores to lines that are in the worker's cache, and a scrape stops nobody. Times of requests and hits of
//! rules are counted only where somebody asks for metrics.
//!
//! Source: Prometheus, "Exposition formats", text-based format 0.0.4.

mod counters;
mod hits;
mod text;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use milepost_engine::Site;
use milepost_http::request::RequestHead;

pub(crate) use counters::Counters;
pub(crate) use hits::Hits;
use hits::{Past, Table};

use crate::reply::Reply;
use crate::respond::{Peer, Respond};

/// What a server has done, by all of its workers.
#[derive(Debug, Default)]
pub struct Metrics {
    workers: Mutex<Vec<Arc<Counters>>>,
    /// Whether times and hits are counted too.
    detailed: AtomicBool,
    rules: Mutex<Rules>,
    /// The site that will be served next, and what its rules have been hit before.
    next: Mutex<Option<(Arc<Site>, Past)>>,
    started: AtomicU64,
    reloads: AtomicU64,
    reloads_failed: AtomicU64,
    last_reload: AtomicU64,
}

/// The hits of the rules of the site that is served.
#[derive(Debug, Default)]
struct Rules {
    site: Option<Arc<Site>>,
    /// The table of each worker; the lock is held to look or to put a larger one in its place.
    tables: Vec<Arc<Mutex<Arc<Table>>>>,
    /// What the rules of this site had been hit before the last reload.
    past: Past,
}

impl Metrics {
    /// Counts for a server that begins now; `detailed` if times and hits are to be counted.
    #[must_use]
    pub fn new(detailed: bool) -> Metrics {
        Metrics {
            detailed: AtomicBool::new(detailed),
            started: AtomicU64::new(seconds()),
            ..Metrics::default()
        }
    }

    /// The counters of one more worker.
    pub(crate) fn worker(&self) -> Arc<Counters> {
        let counters = Arc::new(Counters::new(self.detailed.load(Ordering::Relaxed)));
        lock(&self.workers).push(Arc::clone(&counters));
        counters
    }

    /// Gets ready for a site that will be served: its rules take over the hits of those that the present site
    /// has too. Costs a pass over the files of both, so no worker does it.
    pub fn expect(&self, site: &Arc<Site>) {
        if self.detailed.load(Ordering::Relaxed) {
            let past = lock(&self.rules).carry_over(site);
            *lock(&self.next) = Some((Arc::clone(site), past));
        }
    }

    /// Where a worker counts the hits of the rules of `site`; nowhere if nobody asks for them. The first
    /// worker that asks with a new site begins its count.
    pub(crate) fn hits(&self, site: &Arc<Site>) -> Option<Hits> {
        if !self.detailed.load(Ordering::Relaxed) {
            return None;
        }
        let mut rules = lock(&self.rules);
        if !rules.site.as_ref().is_some_and(|known| Arc::ptr_eq(known, site)) {
            let expected = lock(&self.next).take().filter(|(next, _)| Arc::ptr_eq(next, site));
            let past = expected.map(|(_, past)| past).unwrap_or_default();
            *rules = Rules { site: Some(Arc::clone(site)), tables: Vec::new(), past };
        }
        let hits = Hits::default();
        rules.tables.push(hits.published());
        Some(hits)
    }

    /// Notes a reload and its end.
    pub fn reloaded(&self, done: bool) {
        let counter = if done { &self.reloads } else { &self.reloads_failed };
        counter.fetch_add(1, Ordering::Relaxed);
        if done {
            self.last_reload.store(seconds(), Ordering::Relaxed);
        }
    }
}

/// Answers requests for the metrics, for a server of its own.
pub struct Scrape(pub Arc<Metrics>);

impl Respond for Scrape {
    fn respond(&mut self, request: &RequestHead<'_>, _peer: &Peer, reply: &mut Reply) {
        let path = request.target.split(|&byte| byte == b'?').next().unwrap_or_default();
        match (request.method, path) {
            (b"GET" | b"HEAD", b"/metrics") => {
                reply.add_field("Content-Type", text::MEDIA_TYPE);
                text::write(&self.0, reply.content_mut());
            }
            (b"GET" | b"HEAD", _) => reply.error(404),
            _ => {
                reply.add_field("Allow", b"GET, HEAD");
                reply.error(405);
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is in there is whole between two statements.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Seconds since the epoch.
fn seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests;
