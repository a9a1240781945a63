//! Sessions that can be resumed: in a cache of ours, and in tickets that clients keep.
//!
//! A session remembers that its client showed a good certificate. So servers share sessions only if they
//! ask the same of their clients and trust the same authorities; who resumes elsewhere shakes hands anew.
//! (rustls also wants the same name in both handshakes.)
//!
//! Source: httpd 2.4.71 `modules/ssl/ssl_engine_init.c`, `ssl_init_ctx_session_cache`,
//! `ssl_init_ticket_key`; RFC 8446 section 4.6.1, RFC 5077.

use std::collections::{HashMap, VecDeque};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use milepost_engine::{TlsFault, TlsPart, TlsServer, TlsSettings, TlsVerify};
use rustls::server::{ProducesTickets, StoresServerSessions};

use super::config::fault;
use super::pem;
use super::ticket::{TICKET_KEY_BYTES, Tickets};

/// What it costs to keep a session beside its own bytes.
const SESSION_OVERHEAD_BYTES: usize = 128;

/// The sessions of a site, by what its servers ask of clients.
#[derive(Default)]
pub(super) struct Sessions {
    cache_bytes: Option<usize>,
    timeout: Duration,
    contexts: Mutex<HashMap<u64, Context>>,
    /// Those of the configuration before this one, to be taken over.
    before: HashMap<u64, Context>,
}

/// Servers of one context can resume each other's sessions.
#[derive(Clone)]
pub(super) struct Context {
    pub(super) cache: Option<Arc<dyn StoresServerSessions>>,
    pub(super) tickets: Option<Arc<dyn ProducesTickets>>,
}

impl Sessions {
    pub(super) fn new(settings: &TlsSettings, before: Option<&Sessions>) -> Sessions {
        Sessions {
            cache_bytes: settings.session_cache_bytes,
            timeout: settings.session_timeout,
            contexts: Mutex::default(),
            before: before.map(|before| lock(&before.contexts).clone()).unwrap_or_default(),
        }
    }

    /// The context of a server.
    pub(super) fn context(&self, server: &TlsServer) -> Result<Context, TlsFault> {
        let secret = match server.ticket_key.as_deref().filter(|_| server.tickets) {
            None => None,
            Some(path) => {
                let bytes = pem::read(path).map_err(|error| fault(TlsPart::TicketKey, error))?;
                let secret: [u8; TICKET_KEY_BYTES] = bytes.try_into().map_err(|_| TlsFault {
                    part: TlsPart::TicketKey,
                    message: format!("{} does not have {TICKET_KEY_BYTES} bytes", path.display()),
                    hint: Some(format!("`openssl rand -out FILE {TICKET_KEY_BYTES}` makes one")),
                    is_warning: false,
                })?;
                Some(secret)
            }
        };
        let audience = audience(server);
        let mut hasher = DefaultHasher::new();
        (audience, server.tickets, secret, self.cache_bytes, self.timeout).hash(&mut hasher);
        let key = hasher.finish();
        let mut contexts = lock(&self.contexts);
        let context = contexts.entry(key).or_insert_with(|| {
            self.before.get(&key).cloned().unwrap_or_else(|| Context {
                cache: self.cache_bytes.map(|bytes| Arc::new(Cache::new(bytes, self.timeout)) as _),
                tickets: server
                    .tickets
                    .then(|| Tickets::new(secret.as_ref(), audience, self.timeout))
                    .flatten()
                    .map(|tickets| Arc::new(tickets) as _),
            })
        });
        Ok(context.clone())
    }
}

/// What a server asks of its clients, contents of files included, as a number.
fn audience(server: &TlsServer) -> u64 {
    let client = &server.client;
    if client.verify == TlsVerify::None {
        return 0;
    }
    let mut hasher = DefaultHasher::new();
    client.hash(&mut hasher);
    for file in client.authorities.iter().chain(&client.revoked) {
        // What cannot be read has been complained about.
        fs::read(file).unwrap_or_default().hash(&mut hasher);
    }
    hasher.finish().max(1)
}

/// Sessions in memory, forgotten after a time and when there are too many: the oldest first.
#[derive(Debug)]
struct Cache {
    bytes_max: usize,
    timeout: Duration,
    stored: Mutex<Stored>,
}

#[derive(Debug, Default)]
struct Stored {
    sessions: HashMap<Vec<u8>, (Instant, Vec<u8>)>,
    /// Keys by age. Those that were taken meanwhile are still here.
    order: VecDeque<(Instant, Vec<u8>)>,
    bytes: usize,
}

impl Cache {
    fn new(bytes_max: usize, timeout: Duration) -> Cache {
        Cache { bytes_max, timeout, stored: Mutex::default() }
    }

    fn put_at(&self, now: Instant, key: Vec<u8>, value: Vec<u8>) -> bool {
        let mut stored = lock(&self.stored);
        let bytes = size(&key, &value);
        if bytes > self.bytes_max {
            return false;
        }
        stored.remove(&key);
        while let Some((since, _)) = stored.order.front() {
            let is_old = now.saturating_duration_since(*since) >= self.timeout;
            if !is_old && stored.bytes + bytes <= self.bytes_max {
                break;
            }
            let Some((since, oldest)) = stored.order.pop_front() else { break };
            // The same key may have been put again.
            if stored.sessions.get(&oldest).is_some_and(|(put, _)| *put == since) {
                stored.remove(&oldest);
            }
            stored.bytes -= SESSION_OVERHEAD_BYTES;
        }
        stored.bytes += bytes;
        stored.order.push_back((now, key.clone()));
        stored.sessions.insert(key, (now, value));
        true
    }

    fn look(&self, now: Instant, key: &[u8], take: bool) -> Option<Vec<u8>> {
        let mut stored = lock(&self.stored);
        let (put, value) = stored.sessions.get(key)?;
        let is_old = now.saturating_duration_since(*put) >= self.timeout;
        let value = (!is_old).then(|| value.clone());
        if is_old || take {
            stored.remove(key);
        }
        value
    }
}

impl Stored {
    /// Forgets a session; its place in the order keeps its overhead until it comes to the front.
    fn remove(&mut self, key: &[u8]) {
        if let Some((_, value)) = self.sessions.remove(key) {
            self.bytes -= size(key, &value) - SESSION_OVERHEAD_BYTES;
        }
    }
}

fn size(key: &[u8], value: &[u8]) -> usize {
    key.len() + value.len() + SESSION_OVERHEAD_BYTES
}

impl StoresServerSessions for Cache {
    fn put(&self, key: Vec<u8>, value: Vec<u8>) -> bool {
        self.put_at(Instant::now(), key, value)
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.look(Instant::now(), key, false)
    }

    fn take(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.look(Instant::now(), key, true)
    }

    fn can_cache(&self) -> bool {
        true
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing in there can panic half way.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn sessions_are_forgotten_after_their_time() {
        let cache = Cache::new(100_000, 10 * SECOND);
        let start = Instant::now();
        assert!(cache.put_at(start, b"a".to_vec(), b"1".to_vec()));
        assert_eq!(cache.look(start + 9 * SECOND, b"a", false), Some(b"1".to_vec()));
        assert_eq!(cache.look(start + 10 * SECOND, b"a", false), None);
        assert_eq!(cache.look(start, b"a", false), None);
    }

    #[test]
    fn what_is_taken_is_gone() {
        let cache = Cache::new(100_000, 10 * SECOND);
        let now = Instant::now();
        cache.put_at(now, b"a".to_vec(), b"1".to_vec());
        assert_eq!(cache.look(now, b"a", true), Some(b"1".to_vec()));
        assert_eq!(cache.look(now, b"a", true), None);
    }

    #[test]
    fn the_cache_keeps_its_size_and_the_newest() {
        let cache = Cache::new(10 * (SESSION_OVERHEAD_BYTES + 12), 100 * SECOND);
        let start = Instant::now();
        for number in 0..1000_u32 {
            let key = (number % 300).to_be_bytes().to_vec();
            assert!(cache.put_at(start, key.clone(), vec![0; 8]));
            if number % 3 == 0 {
                assert!(cache.look(start, &key, true).is_some());
            }
            let stored = lock(&cache.stored);
            assert!(stored.bytes <= cache.bytes_max, "{}", stored.bytes);
            assert!(stored.sessions.len() <= 10 && stored.order.len() <= 10);
        }
        assert!(cache.look(start, &(998_u32 % 300).to_be_bytes(), false).is_some());
        assert!(cache.look(start, &(500_u32 % 300).to_be_bytes(), false).is_none());
        assert!(!cache.put_at(start, vec![0; 10_000], Vec::new()));
    }
}
