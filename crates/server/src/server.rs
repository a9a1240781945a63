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
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::{self, JoinHandle};

use milepost_engine::Settings;
use tokio::sync::{mpsc as async_mpsc, watch};

use crate::limits::Limits;
use crate::listener::{self, BindError, Bound, Listeners};
use crate::respond::Respond;
use crate::site::SiteResponder;
use crate::worker::{self, Change, MakeResponder};

/// A server whose addresses are bound and whose workers do not run yet.
#[derive(Debug)]
pub struct Server {
    listeners: Listeners,
    limits: Limits,
}

/// A server that serves. Dropping it without [`Running::join`] stops it too.
#[derive(Debug)]
pub struct Running<R = SiteResponder> {
    workers: Vec<JoinHandle<io::Result<()>>>,
    stop: watch::Sender<bool>,
    reloader: Reloader<R>,
}

/// Stops a [`Running`] server, from any thread.
#[derive(Debug, Clone)]
pub struct Stopper {
    stop: watch::Sender<bool>,
}

/// Changes the configuration of a [`Running`] server, from any thread.
pub struct Reloader<R = SiteResponder> {
    state: Arc<Mutex<State<R>>>,
}

/// What a reload needs to know of the workers.
struct State<R> {
    bound: Vec<Bound>,
    workers: Vec<async_mpsc::UnboundedSender<Change<R>>>,
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
        let listeners = listener::bind(settings, &[], workers)?;
        Ok(Server { listeners, limits: Limits::from(settings) })
    }

    /// The addresses, with the ports that were chosen where 0 was asked for.
    #[must_use]
    pub fn addresses(&self) -> Vec<SocketAddr> {
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
        let (stop, _) = watch::channel(false);
        let (ready, readiness) = mpsc::channel();
        let mut workers = Vec::new();
        let mut senders = Vec::new();
        let count = self.listeners.workers.len();
        for (number, listeners) in self.listeners.workers.into_iter().enumerate() {
            let (limits, responder) = (self.limits.clone(), Arc::clone(&responder));
            let (stop, ready) = (stop.subscribe(), ready.clone());
            let (sender, changes) = async_mpsc::unbounded_channel();
            senders.push(sender);
            let body = move || {
                let first = responder();
                // The responder of a configuration that has been replaced must not be kept.
                drop(responder);
                worker::run(listeners, limits, first, stop, changes, move || {
                    // Whoever does not wait any more does not need to know.
                    let _ = ready.send(());
                })
            };
            let name = format!("milepost-{number}");
            workers.push(thread::Builder::new().name(name).spawn(body)?);
        }
        drop(ready);
        let state = State { bound: self.listeners.addresses, workers: senders };
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
                self.stop.send_replace(true);
            }
            outcome = outcome.and(ended);
        }
        outcome
    }
}

impl<R> Drop for Running<R> {
    fn drop(&mut self) {
        self.stop.send_replace(true);
    }
}

impl Stopper {
    /// Tells the workers to accept no more, to finish what they are answering, and to end.
    pub fn stop(&self) {
        self.stop.send_replace(true);
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
        let listeners = listener::bind(settings, &state.bound, count)?;
        let wanted = |bound: &Bound| {
            let mut all = settings.listens.iter().flat_map(|listen| &listen.addresses);
            all.any(|&address| address == bound.configured)
        };
        let closed: Vec<_> = state.bound.extract_if(.., |bound| !wanted(bound)).collect();
        let close: Vec<_> = closed.iter().map(|bound| bound.configured).collect();
        state.bound.extend(listeners.addresses);

        let responder: MakeResponder<R> = Arc::new(responder);
        let (done, finished) = mpsc::channel();
        for (worker, open) in state.workers.iter().zip(listeners.workers) {
            let change = Change {
                limits: Limits::from(settings),
                responder: Arc::clone(&responder),
                open,
                close: close.clone(),
                done: done.clone(),
            };
            // A worker that has ended answers nothing, neither old nor new.
            let _ = worker.send(change);
        }
        drop(done);
        if finished.iter().count() < count.get() {
            return Err(ReloadError::Stopping);
        }
        Ok(())
    }

    /// The addresses that are listened on now.
    #[must_use]
    pub fn addresses(&self) -> Vec<SocketAddr> {
        actual(&self.lock().bound)
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

fn actual(bound: &[Bound]) -> Vec<SocketAddr> {
    bound.iter().map(|bound| bound.actual).collect()
}
