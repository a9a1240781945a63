//! The server as a whole: bind, start the workers, stop them, wait for their end.

use std::io;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use milepost_engine::Settings;
use tokio::sync::watch;

use crate::limits::Limits;
use crate::listener::{self, BindError, Listeners};
use crate::respond::Respond;
use crate::worker;

/// A server whose addresses are bound and whose workers do not run yet.
#[derive(Debug)]
pub struct Server {
    listeners: Listeners,
    limits: Limits,
}

/// A server that serves. Dropping it without [`Running::join`] stops it too.
#[derive(Debug)]
pub struct Running {
    workers: Vec<JoinHandle<io::Result<()>>>,
    stop: watch::Sender<bool>,
}

/// Stops a [`Running`] server, from any thread.
#[derive(Debug, Clone)]
pub struct Stopper {
    stop: watch::Sender<bool>,
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

impl Server {
    /// Binds all addresses of `settings`, once for each worker.
    ///
    /// # Errors
    /// When one of them cannot be had; then none is kept.
    pub fn bind(settings: &Settings, workers: NonZeroUsize) -> Result<Server, BindError> {
        let listeners = listener::bind(settings, workers)?;
        Ok(Server { listeners, limits: Limits::from(settings) })
    }

    /// The addresses, with the ports that were chosen where 0 was asked for.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.listeners.addresses
    }

    /// Starts the workers, each with its own responder, and returns when all accept connections.
    ///
    /// # Errors
    /// When one of them cannot be started; then all are stopped again.
    pub fn start<R: Respond + 'static>(
        self,
        responder: impl Fn() -> R + Clone + Send + 'static,
    ) -> Result<Running, ServeError> {
        let (stop, _) = watch::channel(false);
        let (ready, readiness) = mpsc::channel();
        let mut running = Running { workers: Vec::new(), stop };
        for (number, listeners) in self.listeners.workers.into_iter().enumerate() {
            let (limits, responder) = (self.limits.clone(), responder.clone());
            let (stop, ready) = (running.stop.subscribe(), ready.clone());
            let body = move || {
                worker::run(listeners, limits, responder(), stop, move || {
                    // Whoever does not wait any more does not need to know.
                    let _ = ready.send(());
                })
            };
            let name = format!("milepost-{number}");
            running.workers.push(thread::Builder::new().name(name).spawn(body)?);
        }
        drop(ready);
        let count = running.workers.len();
        if readiness.iter().take(count).count() < count {
            // A worker has ended before it was ready.
            running.stopper().stop();
            running.join()?;
            return Err(ServeError::Panic);
        }
        Ok(running)
    }
}

impl Running {
    /// Returns a handle that stops the server.
    #[must_use]
    pub fn stopper(&self) -> Stopper {
        Stopper { stop: self.stop.clone() }
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

impl Drop for Running {
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
