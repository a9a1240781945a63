//! The server as a whole: bind, start the workers, change their configuration, stop them, wait for
//! their end.
//!
//! A reload hands each worker its own copy of what is new, as a message; the worker puts it in place
//! between two requests. So nothing is shared that a request would have to look at, and there is no
//! moment at which a request finds half of a configuration.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use milepost_engine::Settings;
use tokio::sync::{mpsc as async_mpsc, watch};

use crate::endpoint::Endpoint;
use crate::inherited::Inherited;
use crate::limits::{AllLimits, STOP_GRACE};
use crate::listener::{self, BindError, Bound, Listeners};
use crate::metrics::Metrics;
use crate::respond::Respond;
use crate::site::SiteResponder;
use crate::worker::{self, Change, MakeResponder, Message, Shared, Stop};

/// A server whose addresses are bound and whose workers do not run yet.
#[derive(Debug)]
pub struct Server {
    listeners: Listeners,
    limits: AllLimits,
    inherited: Inherited,
    metrics: Arc<Metrics>,
}

/// A server that serves. Dropping it without [`Running::join`] stops it too.
#[derive(Debug)]
pub struct Running<R = SiteResponder> {
    workers: Vec<JoinHandle<io::Result<()>>>,
    stop: watch::Sender<Stop>,
    reloader: Reloader<R>,
}

/// Stops a [`Running`] server, from any thread.
#[derive(Debug, Clone)]
pub struct Stopper {
    stop: watch::Sender<Stop>,
}

/// Changes the configuration of a [`Running`] server, from any thread.
pub struct Reloader<R = SiteResponder> {
    state: Arc<Mutex<State<R>>>,
}

/// What a reload needs to know of the workers.
struct State<R> {
    bound: Vec<Bound>,
    inherited: Inherited,
    workers: Vec<async_mpsc::UnboundedSender<Message<R>>>,
}

/// Why a server does not run any more, or never did.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The system has no room for a thread or its runtime.
    #[error("cannot run a worker: {0}")]
    Worker(#[from] io::Error),
    /// A worker panicked.
    #[error("a worker panicked")]
    Panic,
}

/// Why a server goes on as it was.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReloadError {
    /// An address that is new cannot be had.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The server is being stopped.
    #[error("the server is stopping")]
    Stopping,
}

impl Server {
    /// Binds all addresses of `settings`, once for each worker.
    ///
    /// # Errors
    /// When one of them cannot be had; then none is kept.
    pub fn bind(settings: &Settings, workers: NonZeroUsize) -> Result<Server, BindError> {
        Server::bind_with(settings, Inherited::default(), workers)
    }

    /// As [`Server::bind`], with sockets that were handed over.
    ///
    /// # Errors
    /// The same.
    pub fn bind_with(
        settings: &Settings,
        inherited: Inherited,
        workers: NonZeroUsize,
    ) -> Result<Server, BindError> {
        let listeners = listener::bind(settings, &[], &inherited, workers)?;
        Ok(Server {
            listeners,
            limits: AllLimits::from(settings),
            inherited,
            metrics: Arc::default(),
        })
    }

    /// Counts there what the server does.
    #[must_use]
    pub fn with_metrics(self, metrics: Arc<Metrics>) -> Server {
        Server { metrics, ..self }
    }

    /// The TCP addresses, with the ports that were chosen where 0 was asked for.
    #[must_use]
    pub fn addresses(&self) -> Vec<SocketAddr> {
        tcp(&self.listeners.addresses)
    }

    /// All that is listened on.
    #[must_use]
    pub fn endpoints(&self) -> Vec<Endpoint> {
        actual(&self.listeners.addresses)
    }

    /// Starts the workers, each with its own responder, and returns when all accept connections.
    ///
    /// # Errors
    /// When one of them cannot be started; then all are stopped again.
    pub fn start<R: Respond + 'static>(
        self,
        responder: impl Fn() -> R + Send + Sync + 'static,
    ) -> Result<Running<R>, ServeError> {
        let responder: MakeResponder<R> = Arc::new(responder);
        let (stop, _) = watch::channel(Stop::No);
        let (ready, readiness) = mpsc::channel();
        let mut workers = Vec::new();
        let mut senders = Vec::new();
        let count = self.listeners.workers.len();
        let open = Arc::new(AtomicUsize::new(0));
        for (number, listeners) in self.listeners.workers.into_iter().enumerate() {
            let (limits, responder) = (self.limits.clone(), Arc::clone(&responder));
            let (stop, ready) = (stop.subscribe(), ready.clone());
            let shared = Shared { open: Arc::clone(&open), counters: self.metrics.worker() };
            let (sender, changes) = async_mpsc::unbounded_channel();
            senders.push(sender);
            let body = move || {
                let first = responder();
                // The responder of a configuration that has been replaced must not be kept.
                drop(responder);
                worker::run(listeners, (limits, shared), first, stop, changes, move || {
                    // Whoever does not wait any more does not need to know.
                    let _ = ready.send(());
                })
            };
            let name = format!("milepost-{number}");
            workers.push(thread::Builder::new().name(name).spawn(body)?);
        }
        drop(ready);
        let bound = self.listeners.addresses;
        let state = State { bound, inherited: self.inherited, workers: senders };
        let reloader = Reloader { state: Arc::new(Mutex::new(state)) };
        let running = Running { workers, stop, reloader };
        if readiness.iter().take(count).count() < count {
            // A worker has ended before it was ready.
            running.stopper().stop();
            running.join()?;
            return Err(ServeError::Panic);
        }
        Ok(running)
    }
}

impl<R> Running<R> {
    /// Returns a handle that stops the server.
    #[must_use]
    pub fn stopper(&self) -> Stopper {
        Stopper { stop: self.stop.clone() }
    }

    /// Returns a handle that changes the configuration.
    #[must_use]
    pub fn reloader(&self) -> Reloader<R> {
        self.reloader.clone()
    }

    /// Waits until all workers have ended.
    ///
    /// # Errors
    /// The first of what went wrong in a worker.
    pub fn join(mut self) -> Result<(), ServeError> {
        let mut outcome = Ok(());
        for worker in self.workers.drain(..) {
            let ended = match worker.join() {
                Ok(ended) => ended.map_err(ServeError::from),
                Err(_) => Err(ServeError::Panic),
            };
            if ended.is_err() {
                // The others would serve on, as if nothing had happened, on their share of the ports.
                self.stop.send_replace(Stop::Within(STOP_GRACE));
            }
            outcome = outcome.and(ended);
        }
        self.reloader.lock().bound.iter().for_each(Bound::remove);
        outcome
    }
}

impl<R> Drop for Running<R> {
    fn drop(&mut self) {
        self.stop.send_replace(Stop::Within(STOP_GRACE));
    }
}

impl Stopper {
    /// Tells the workers to accept no more, to finish what they are answering, and to end; after some
    /// seconds in any case.
    pub fn stop(&self) {
        self.stop.send_replace(Stop::Within(STOP_GRACE));
    }

    /// As [`Stopper::stop`], with another time for what is under way; `None` for as long as it takes.
    pub fn stop_within(&self, grace: Option<Duration>) {
        self.stop.send_replace(grace.map_or(Stop::WhenDone, Stop::Within));
    }
}

impl<R: Respond + 'static> Reloader<R> {
    /// Puts another configuration in place of the one that is served, and returns when every worker
    /// answers by it: requests that are read from then on see nothing of the old one.
    ///
    /// Addresses that are in both go on being listened on, without a gap. Connections stay open, those
    /// of addresses that are listened on no more too; their next request is answered by the new
    /// configuration. `ListenBacklog` is that of the time when the address was bound.
    ///
    /// # Errors
    /// When an address that is new cannot be had; then nothing has changed.
    pub fn reload(
        &self,
        settings: &Settings,
        responder: impl Fn() -> R + Send + Sync + 'static,
    ) -> Result<(), ReloadError> {
        let mut state = self.lock();
        let count = NonZeroUsize::new(state.workers.len()).ok_or(ReloadError::Stopping)?;
        let listeners = listener::bind(settings, &state.bound, &state.inherited, count)?;
        let State { bound, inherited, .. } = &mut *state;
        let is_over =
            |bound: &mut Bound| !listener::is_wanted(settings, inherited, &bound.configured);
        let closed: Vec<_> = bound.extract_if(.., is_over).collect();
        let close: Vec<_> = closed.iter().map(|bound| bound.configured.clone()).collect();
        bound.extend(listeners.addresses);

        let responder: MakeResponder<R> = Arc::new(responder);
        let (done, finished) = mpsc::channel();
        for (worker, open) in state.workers.iter().zip(listeners.workers) {
            let change = Change {
                limits: AllLimits::from(settings),
                responder: Arc::clone(&responder),
                open,
                close: close.clone(),
                done: done.clone(),
            };
            // A worker that has ended answers nothing, neither old nor new.
            let _ = worker.send(Message::Change(Box::new(change)));
        }
        drop(done);
        let answered = finished.iter().count();
        closed.iter().for_each(Bound::remove);
        if answered < count.get() {
            return Err(ReloadError::Stopping);
        }
        Ok(())
    }

    /// The TCP addresses that are listened on now.
    #[must_use]
    pub fn addresses(&self) -> Vec<SocketAddr> {
        tcp(&self.lock().bound)
    }

    /// All that is listened on now.
    #[must_use]
    pub fn endpoints(&self) -> Vec<Endpoint> {
        actual(&self.lock().bound)
    }

    /// Whether every worker takes a message within `patience`: none is stuck.
    #[must_use]
    pub fn is_alive(&self, patience: Duration) -> bool {
        let (done, finished) = mpsc::channel();
        let workers = self.lock().workers.clone();
        let sent = workers.iter().filter(|worker| worker.send(Message::Ping(done.clone())).is_ok());
        let expected = sent.count();
        drop(done);
        let end = std::time::Instant::now() + patience;
        let left = || end.saturating_duration_since(std::time::Instant::now());
        expected == workers.len() && (0..expected).all(|_| finished.recv_timeout(left()).is_ok())
    }
}

impl<R> Reloader<R> {
    fn lock(&self) -> std::sync::MutexGuard<'_, State<R>> {
        // The state is whole between two statements, so a panic elsewhere has not spoilt it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<R> Clone for Reloader<R> {
    fn clone(&self) -> Self {
        Reloader { state: Arc::clone(&self.state) }
    }
}

impl<R> fmt::Debug for Reloader<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reloader").field("bound", &self.lock().bound).finish_non_exhaustive()
    }
}

fn actual(bound: &[Bound]) -> Vec<Endpoint> {
    bound.iter().map(|bound| bound.actual.clone()).collect()
}

fn tcp(bound: &[Bound]) -> Vec<SocketAddr> {
    let address = |bound: &Bound| match bound.actual {
        Endpoint::Tcp(address) => Some(address),
        Endpoint::Unix(_) => None,
    };
    bound.iter().filter_map(address).collect()
}
