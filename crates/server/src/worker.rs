//! One worker: a thread with its own runtime, its own listeners and its own connections.
//!
//! Workers share nothing that changes. The kernel spreads new connections over their listeners, and a
//! connection stays with the worker that accepted it.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use milepost_http::request::FieldLine;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::{Notify, watch};
use tokio::task::spawn_local;
use tokio::time::{sleep, timeout};

use crate::buffer::Pool;
use crate::clock::{Clock, TICK};
use crate::connection;
use crate::deadline::Deadlines;
use crate::limits::{ACCEPT_PAUSE, Limits, STOP_GRACE};
use crate::reply::Reply;
use crate::respond::{Peer, Respond};

/// What the connections of one worker have in common.
pub(crate) struct Worker<R> {
    pub(crate) limits: Limits,
    pub(crate) clock: Clock,
    pub(crate) deadlines: Deadlines,
    pub(crate) pool: Pool,
    pub(crate) answering: RefCell<Answering<R>>,
    stopping: Cell<bool>,
    connections: Cell<usize>,
    /// The number of connections has become 0, or is no longer.
    changed: Notify,
}

/// The responder, and the storage that one request after the other is answered with.
pub(crate) struct Answering<R> {
    pub(crate) responder: R,
    pub(crate) reply: Reply,
    pub(crate) lines: Vec<FieldLine>,
}

impl<R: Respond> Worker<R> {
    pub(crate) fn new(limits: Limits, responder: R) -> Rc<Worker<R>> {
        Rc::new(Worker {
            limits,
            clock: Clock::new(),
            deadlines: Deadlines::default(),
            pool: Pool::default(),
            answering: RefCell::new(Answering {
                responder,
                reply: Reply::default(),
                lines: Vec::new(),
            }),
            stopping: Cell::new(false),
            connections: Cell::new(0),
            changed: Notify::new(),
        })
    }

    /// Whether the server is being stopped: connections end after the answer under way.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.get()
    }

    pub(crate) fn stop(&self) {
        self.stopping.set(true);
        self.deadlines.wake_all();
    }

    /// Counts a connection, for as long as the result lives.
    pub(crate) fn enter(self: &Rc<Self>) -> Presence<R> {
        // While there was no connection the clock stood still.
        self.clock.tick();
        self.connections.set(self.connections.get() + 1);
        if self.connections.get() == 1 {
            self.changed.notify_waiters();
        }
        Presence { worker: Rc::clone(self) }
    }

    /// Moves the clock and looks at the deadlines, as long as there are connections.
    pub(crate) async fn sweep(self: Rc<Self>) {
        loop {
            while self.connections.get() == 0 {
                self.changed.notified().await;
            }
            sleep(TICK).await;
            self.clock.tick();
            self.deadlines.sweep(self.clock.now());
        }
    }

    async fn empty(&self) {
        while self.connections.get() > 0 {
            self.changed.notified().await;
        }
    }
}

/// A connection that is counted.
pub(crate) struct Presence<R: Respond> {
    worker: Rc<Worker<R>>,
}

impl<R: Respond> Drop for Presence<R> {
    fn drop(&mut self) {
        let connections = &self.worker.connections;
        connections.set(connections.get() - 1);
        if connections.get() == 0 {
            self.worker.changed.notify_waiters();
        }
    }
}

/// Runs a worker on this thread until `stop` says so and its connections have ended.
///
/// `ready` is called when connections are accepted.
///
/// # Errors
/// When the system has no room for a runtime.
pub(crate) fn run<R: Respond + 'static>(
    listeners: Vec<std::net::TcpListener>,
    limits: Limits,
    responder: R,
    mut stop: watch::Receiver<bool>,
    ready: impl FnOnce(),
) -> io::Result<()> {
    let runtime = Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build_local(LocalOptions::default())?;
    runtime.block_on(async {
        let worker = Worker::new(limits, responder);
        let listeners: io::Result<Vec<_>> =
            listeners.into_iter().map(TcpListener::from_std).collect();
        let accepting: Vec<_> = listeners?
            .into_iter()
            .map(|listener| spawn_local(accept(listener, Rc::clone(&worker), stop.clone())))
            .collect();
        spawn_local(Rc::clone(&worker).sweep());
        ready();
        // An error means that nobody is left who could say stop, so it is time.
        let _ = stop.wait_for(|&stop| stop).await;
        for accepting in accepting {
            // What is in the queues is accepted first; a task that panicked has closed its listener.
            let _ = accepting.await;
        }
        worker.stop();
        // Those that need longer are cut off.
        let _ = timeout(STOP_GRACE, worker.empty()).await;
        Ok(())
    })
}

/// Accepts connections until the server is stopped and nobody waits to be accepted.
async fn accept<R: Respond + 'static>(
    listener: TcpListener,
    worker: Rc<Worker<R>>,
    mut stop: watch::Receiver<bool>,
) {
    let Ok(address) = listener.local_addr() else { return };
    loop {
        let accepted = {
            let mut stopped = pin!(stop.wait_for(|&stop| stop));
            poll_fn(|context| match listener.poll_accept(context) {
                Poll::Ready(accepted) => Poll::Ready(Some(accepted)),
                Poll::Pending => stopped.as_mut().poll(context).map(|_| None),
            })
            .await
        };
        match accepted {
            None => break,
            Some(Ok((stream, remote))) => enter(stream, remote, address, &worker),
            Some(Err(error)) if is_about_one_connection(&error) => {}
            // No descriptor or no memory is left. The queue keeps what waits, for now.
            Some(Err(_)) => sleep(ACCEPT_PAUSE).await,
        }
    }
    // The runtime may not have heard of those that came last; the system has.
    let Ok(listener) = listener.into_std() else { return };
    while let Ok((stream, remote)) = listener.accept() {
        if stream.set_nonblocking(true).is_ok()
            && let Ok(stream) = TcpStream::from_std(stream)
        {
            enter(stream, remote, address, &worker);
        }
    }
}

/// Starts to serve an accepted connection.
fn enter<R: Respond + 'static>(
    stream: TcpStream,
    remote: SocketAddr,
    listener: SocketAddr,
    worker: &Rc<Worker<R>>,
) {
    // Only a wildcard address leaves open which of our addresses the client has called.
    let local = if listener.ip().is_unspecified() {
        stream.local_addr().unwrap_or(listener)
    } else {
        listener
    };
    let presence = worker.enter();
    let worker = Rc::clone(worker);
    spawn_local(async move {
        connection::serve(stream, Peer { local, remote }, worker).await;
        drop(presence);
    });
}

/// Whether the error is that of the connection that was to be accepted, and not of the listener.
fn is_about_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}
