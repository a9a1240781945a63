//! The connections of one worker to one backend: those in use are counted, those that are idle kept.
//!
//! An idle connection is used again, the latest first, if it is younger than its `ttl` and the system
//! says that it is open and silent. What has been closed or has grown too old is dropped every second.
//!
//! Source: httpd 2.4.71 `modules/proxy/proxy_util.c`, `ap_proxy_acquire_connection`,
//! `ap_proxy_retry_worker`, `ap_proxy_check_connection`.

use std::cell::{Cell, RefCell};
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use milepost_engine::Backend;
use tokio::net::lookup_host;
use tokio::sync::Notify;
use tokio::task::spawn_local;
use tokio::time::{Instant, sleep, timeout_at};

use super::address::Address;
use super::stream::{Secure, Stream};
use crate::limits::{
    PROXY_ADDRESS_AGE_MAX, PROXY_IDLE_LOOK, PROXY_IDLE_MAX, PROXY_IDLE_TIMEOUT,
    PROXY_UNREPEATABLE_IDLE_MAX,
};

/// What a worker knows of a backend.
#[derive(Debug)]
pub(crate) struct Pool {
    connections_max: Option<usize>,
    acquire: Duration,
    ttl: Duration,
    retry: Duration,
    reuse: bool,
    keep_alive: bool,
    idle: RefCell<Vec<Idle>>,
    /// Connections in use.
    used: Cell<usize>,
    /// One of them is not any more.
    freed: Notify,
    /// A connection has failed, or the backend asked to be left alone.
    failed: Cell<Option<Instant>>,
    /// The addresses of its name, and when they were looked up.
    addresses: RefCell<Option<(Instant, Vec<SocketAddr>)>>,
    /// Somebody looks at the idle ones.
    watched: Cell<bool>,
}

#[derive(Debug)]
struct Idle {
    stream: Stream,
    since: Instant,
}

/// A connection that is taken. Dropping it closes it; [`Taken::give_back`] keeps it.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) stream: Stream,
    /// It has carried a request before.
    pub(crate) reused: bool,
    permit: Permit,
}

/// One of the connections that a backend may have.
#[derive(Debug)]
struct Permit {
    pool: Rc<Pool>,
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PoolError {
    #[error("cannot connect to {address}: {error}")]
    Connect { address: String, error: io::Error },
    #[error("no connection to {address} within {seconds:.1} s (connectiontimeout)")]
    ConnectTimeout { address: String, seconds: f64 },
    #[error("cannot find the address of {host}: {error}")]
    Name { host: String, error: io::Error },
    #[error("all {max} connections of this worker to {address} are in use (max)")]
    Exhausted { address: String, max: usize },
    #[error("{address} is left alone for {seconds} s more after a failure (retry)")]
    LeftAlone { address: String, seconds: u64 },
    #[error("no TLS with {address}: {error}")]
    Tls { address: String, error: io::Error },
    #[error("{address} is to be spoken to by TLS, and {reason}")]
    NoTls { address: String, reason: &'static str },
}

impl PoolError {
    /// The number that the system has for what is behind it.
    pub(super) fn system_error(&self) -> Option<i32> {
        match self {
            PoolError::Connect { error, .. }
            | PoolError::Name { error, .. }
            | PoolError::Tls { error, .. } => error.raw_os_error(),
            _ => None,
        }
    }
}

impl Pool {
    /// For a backend of the configuration.
    pub(crate) fn new(backend: &Backend) -> Rc<Pool> {
        Pool::with(
            backend.connections_max,
            backend.acquire.unwrap_or_default(),
            backend.ttl.unwrap_or(PROXY_IDLE_TIMEOUT),
            backend.retry,
            (backend.reuse, backend.keep_alive),
        )
    }

    /// For a server that is no backend of the configuration: nothing is kept.
    pub(crate) fn none() -> Rc<Pool> {
        Pool::with(None, Duration::ZERO, Duration::ZERO, Duration::ZERO, (false, false))
    }

    fn with(
        connections_max: Option<usize>,
        acquire: Duration,
        ttl: Duration,
        retry: Duration,
        (reuse, keep_alive): (bool, bool),
    ) -> Rc<Pool> {
        Rc::new(Pool {
            connections_max,
            acquire,
            ttl,
            retry,
            reuse,
            keep_alive,
            idle: RefCell::default(),
            used: Cell::new(0),
            freed: Notify::new(),
            failed: Cell::new(None),
            addresses: RefCell::default(),
            watched: Cell::new(false),
        })
    }

    /// Whether connections are used for more than one request.
    pub(crate) fn reuses(&self) -> bool {
        self.reuse
    }

    /// Connections in use.
    pub(crate) fn used(&self) -> usize {
        self.used.get()
    }

    /// How much longer it is left alone after a failure.
    pub(crate) fn left_alone(&self) -> Option<Duration> {
        let left = self.retry.checked_sub(self.failed.get()?.elapsed())?;
        (!left.is_zero()).then_some(left)
    }

    /// Leaves the backend alone for a while.
    pub(crate) fn fail(&self) {
        self.failed.set(Some(Instant::now()));
    }

    /// Takes a connection: an idle one if `may_reuse`, else a new one. `repeatable` tells whether the
    /// request could be sent again.
    pub(crate) async fn take(
        self: &Rc<Self>,
        address: &Address<'_>,
        may_reuse: bool,
        repeatable: bool,
        connect_timeout: Duration,
        secure: Option<Secure>,
    ) -> Result<Taken, PoolError> {
        if address.secure && (secure.is_none() || address.socket.is_some()) {
            let reason = match secure {
                None => "`SSLProxyEngine` is off, or its name is none",
                Some(_) => "is a Unix socket",
            };
            return Err(PoolError::NoTls { address: address.describe(), reason });
        }
        let permit = self.permit(address).await?;
        if may_reuse && let Some(stream) = self.idle(repeatable, secure.as_ref()) {
            return Ok(Taken { stream, reused: true, permit });
        }
        let deadline = Instant::now() + connect_timeout;
        let connected = timeout_at(deadline, self.connect(address, secure)).await;
        let result = connected.unwrap_or_else(|_| {
            let address = address.describe();
            Err(PoolError::ConnectTimeout { address, seconds: connect_timeout.as_secs_f64() })
        });
        match result {
            Ok(stream) => {
                self.failed.set(None);
                if self.keep_alive {
                    stream.probe();
                }
                Ok(Taken { stream, reused: false, permit })
            }
            // It is there, and another request may please it.
            Err(error @ PoolError::Tls { .. }) => Err(error),
            Err(error) => {
                // The address may be another one by now.
                self.addresses.take();
                self.fail();
                Err(error)
            }
        }
    }

    async fn permit(self: &Rc<Self>, address: &Address<'_>) -> Result<Permit, PoolError> {
        let deadline = Instant::now() + self.acquire;
        loop {
            let freed = self.freed.notified();
            match self.connections_max.filter(|max| self.used.get() >= *max) {
                None => {
                    self.used.set(self.used.get() + 1);
                    return Ok(Permit { pool: Rc::clone(self) });
                }
                Some(max) => {
                    if timeout_at(deadline, freed).await.is_err() {
                        return Err(PoolError::Exhausted { address: address.describe(), max });
                    }
                }
            }
        }
    }

    fn idle(&self, repeatable: bool, secure: Option<&Secure>) -> Option<Stream> {
        let mut idle = self.idle.borrow_mut();
        let age_max = if repeatable { self.ttl } else { self.ttl.min(PROXY_UNREPEATABLE_IDLE_MAX) };
        // The latest is last: if it is too old, all are.
        while let Some(last) = idle.pop_if(|last| last.since.elapsed() < age_max) {
            if last.stream.is_as(secure) && last.stream.is_idle() {
                return Some(last.stream);
            }
        }
        None
    }

    async fn connect(
        &self,
        address: &Address<'_>,
        secure: Option<Secure>,
    ) -> Result<Stream, PoolError> {
        let failed = |error| PoolError::Connect { address: address.describe(), error };
        if let Some(path) = address.socket {
            return Stream::connect_unix(path).await.map_err(failed);
        }
        let addresses = self.addresses(address).await?;
        let stream = Stream::connect(&addresses).await.map_err(failed)?;
        let Some(secure) = secure else { return Ok(stream) };
        let failed = |error| PoolError::Tls { address: address.describe(), error };
        stream.secure(secure).await.map_err(failed)
    }

    async fn addresses(&self, address: &Address<'_>) -> Result<Vec<SocketAddr>, PoolError> {
        if let Ok(ip) = address.host.parse() {
            return Ok(vec![SocketAddr::new(ip, address.port)]);
        }
        if let Some((since, known)) = &*self.addresses.borrow()
            && since.elapsed() < PROXY_ADDRESS_AGE_MAX
        {
            return Ok(known.clone());
        }
        let failed = |error| PoolError::Name { host: address.host.to_owned(), error };
        let found = lookup_host((address.host, address.port)).await.map_err(failed)?;
        let found: Vec<_> = found.collect();
        self.addresses.replace(Some((Instant::now(), found.clone())));
        Ok(found)
    }

    fn keep(self: &Rc<Self>, stream: Stream) {
        let max = self.connections_max.unwrap_or(PROXY_IDLE_MAX).min(PROXY_IDLE_MAX);
        let mut idle = self.idle.borrow_mut();
        if idle.len() >= max {
            idle.remove(0);
        }
        idle.push(Idle { stream, since: Instant::now() });
        drop(idle);
        if !self.watched.replace(true) {
            spawn_local(watch(Rc::downgrade(self)));
        }
    }
}

/// Drops idle connections that are too old or closed, until there is none left.
async fn watch(pool: std::rc::Weak<Pool>) {
    loop {
        sleep(PROXY_IDLE_LOOK).await;
        let Some(pool) = pool.upgrade() else { return };
        let mut idle = pool.idle.borrow_mut();
        idle.retain(|kept| kept.since.elapsed() < pool.ttl && kept.stream.is_idle());
        if idle.is_empty() {
            pool.watched.set(false);
            return;
        }
    }
}

impl Taken {
    /// Keeps the connection for another request.
    pub(crate) fn give_back(self) {
        let Taken { stream, permit, .. } = self;
        if permit.pool.reuse {
            permit.pool.keep(stream);
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.pool.used.set(self.pool.used.get() - 1);
        self.pool.freed.notify_one();
    }
}
