//! One worker: a thread with its own runtime, its own listeners and its own connections.
//!
//! Workers share nothing that changes. The kernel spreads new connections over their listeners, and a
//! connection stays with the worker that accepted it.

use std::cell::{Cell, Ref, RefCell};
use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use milepost_http::request::HeadRoom;
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::{JoinHandle, spawn_local};
use tokio::time::{sleep, timeout};

use crate::buffer::Pool;
use crate::clock::{Clock, TICK};
use crate::connection::lane::Lane;
use crate::deadline::Deadlines;
use crate::endpoint::{Accepted, Acceptor, Endpoint, Listener};
use crate::error_log::Seldom;
use crate::limits::{ACCEPT_PAUSE, AllLimits, CROWDED_PAUSE, Limits};
use crate::metrics::Counters;
use crate::reply::Reply;
use crate::respond::{Peer, Respond};
use crate::socket::Socket;
use crate::{connection, http2, tls};

/// What the connections of one worker have in common.
pub(crate) struct Worker<R> {
    pub(crate) clock: Clock,
    pub(crate) deadlines: Deadlines,
    pub(crate) pool: Pool,
    pub(crate) answering: RefCell<Answering<R>>,
    pub(crate) counters: Arc<Counters>,
    stopping: Cell<bool>,
    connections: Cell<usize>,
    /// The connections of all workers.
    open: Arc<AtomicUsize>,
    /// The number of connections has become 0, or is no longer.
    changed: Notify,
}

/// What a worker has from its server, besides its configuration.
pub(crate) struct Shared {
    /// The connections of all workers.
    pub(crate) open: Arc<AtomicUsize>,
    pub(crate) counters: Arc<Counters>,
}

#[cfg(test)]
impl Shared {
    /// For a worker without a server.
    pub(crate) fn alone() -> Shared {
        Shared { open: Arc::default(), counters: crate::metrics::Metrics::default().worker() }
    }
}

/// The responder, its limits, and the storage that one request after the other is answered with.
pub(crate) struct Answering<R> {
    pub(crate) responder: R,
    pub(crate) limits: AllLimits,
    pub(crate) reply: Reply,
    pub(crate) room: HeadRoom,
}

impl<R: Respond> Worker<R> {
    pub(crate) fn new(limits: AllLimits, responder: R, shared: Shared) -> Rc<Worker<R>> {
        let Shared { open, counters } = shared;
        Rc::new(Worker {
            clock: Clock::new(),
            deadlines: Deadlines::default(),
            pool: Pool::default(),
            answering: RefCell::new(Answering {
                responder,
                limits,
                reply: Reply::default(),
                room: HeadRoom::default(),
            }),
            counters,
            stopping: Cell::new(false),
            connections: Cell::new(0),
            open,
            changed: Notify::new(),
        })
    }

    /// The limits of a server.
    pub(crate) fn limits(&self, server: usize) -> Ref<'_, Limits> {
        Ref::map(self.answering.borrow(), |answering| answering.limits.of(server))
    }

    /// The number of the server that a connection is for, before a request says otherwise; 0 where it does
    /// not matter.
    pub(crate) fn server_at(&self, peer: &Peer) -> usize {
        let answering = self.answering.borrow();
        if answering.limits.differ() { answering.responder.server_at(peer) } else { 0 }
    }

    /// Whether the server is being stopped: connections end after the answer under way.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.get()
    }

    /// Whether as many connections are open as may be: then nobody is kept who has been answered.
    pub(crate) fn is_crowded(&self) -> bool {
        let max = self.answering.borrow().limits.main.connections_max;
        max.is_some_and(|max| self.open.load(Ordering::Relaxed) >= max)
    }

    /// Answers from here on with another responder, under other limits.
    ///
    /// Answering borrows both only between two awaits, so each request sees either the old pair or the
    /// new one.
    pub(crate) fn replace(&self, limits: AllLimits, responder: R) {
        let old = {
            let mut answering = self.answering.borrow_mut();
            answering.limits = limits;
            std::mem::replace(&mut answering.responder, responder)
        };
        drop(old);
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
        self.open.fetch_add(1, Ordering::Relaxed);
        self.counters.accepted();
        if self.connections.get() == 1 {
            self.changed.notify_waiters();
        }
        Presence { worker: Rc::clone(self) }
    }

    /// Moves the clock and looks at the deadlines, as long as there are connections; then does `then`.
    pub(crate) async fn sweep(self: Rc<Self>, then: impl Fn()) {
        loop {
            while self.connections.get() == 0 {
                self.changed.notified().await;
            }
            sleep(TICK).await;
            self.clock.tick();
            self.deadlines.sweep(self.clock.now());
            if self.is_crowded() {
                self.deadlines.wake_all();
            }
            then();
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
        self.worker.open.fetch_sub(1, Ordering::Relaxed);
        self.worker.counters.ended();
        if connections.get() == 0 {
            self.worker.changed.notify_waiters();
        }
    }
}

/// Makes the responder of a worker, on the worker's own thread.
pub(crate) type MakeResponder<R> = Arc<dyn Fn() -> R + Send + Sync>;

/// Whether the server is to stop, and how long what is under way may take then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    No,
    Within(Duration),
    WhenDone,
}

/// What a running worker is told.
pub(crate) enum Message<R> {
    Change(Box<Change<R>>),
    /// To answer, as a sign of life.
    Ping(std::sync::mpsc::Sender<()>),
}

/// A new configuration for a worker that runs.
pub(crate) struct Change<R> {
    pub(crate) limits: AllLimits,
    pub(crate) responder: MakeResponder<R>,
    /// Listeners to add.
    pub(crate) open: Vec<Opened>,
    /// Addresses, as configured, to listen on no more.
    pub(crate) close: Vec<Endpoint>,
    /// Told when all this has been done.
    pub(crate) done: std::sync::mpsc::Sender<()>,
}

/// A listener, and the address that the configuration has for it.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) endpoint: Endpoint,
    pub(crate) listener: Listener,
}

/// The listeners of a running worker.
#[derive(Default)]
struct Listening {
    accepting: Vec<Accepting>,
}

/// A listener at work.
struct Accepting {
    endpoint: Endpoint,
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Listening {
    /// Starts to accept connections.
    fn open<R: Respond + 'static>(
        &mut self,
        opened: Vec<Opened>,
        lane: &Rc<Lane<R>>,
    ) -> io::Result<()> {
        for Opened { endpoint, listener } in opened {
            let acceptor = Acceptor::new(listener)?;
            let (stop, stopped) = watch::channel(false);
            let task = spawn_local(accept(acceptor, Rc::clone(lane), stopped));
            self.accepting.push(Accepting { endpoint, stop, task });
        }
        Ok(())
    }

    /// Stops to accept what comes to the addresses that `is_over` names. What is in the queues is
    /// accepted first.
    async fn close(&mut self, is_over: impl Fn(&Endpoint) -> bool) {
        let over = |accepting: &mut Accepting| is_over(&accepting.endpoint);
        let closing: Vec<_> = self.accepting.extract_if(.., over).collect();
        for accepting in &closing {
            accepting.stop.send_replace(true);
        }
        for accepting in closing {
            // A task that panicked has closed its listener.
            let _ = accepting.task.await;
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
    listeners: Vec<Opened>,
    (limits, shared): (AllLimits, Shared),
    responder: R,
    mut stop: watch::Receiver<Stop>,
    mut messages: mpsc::UnboundedReceiver<Message<R>>,
    ready: impl FnOnce(),
) -> io::Result<()> {
    let runtime = Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build_local(LocalOptions::default())?;
    runtime.block_on(async {
        let worker = Worker::new(limits, responder, shared);
        let lane = Rc::new(Lane::new(Rc::clone(&worker))?);
        let mut listening = Listening::default();
        listening.open(listeners, &lane)?;
        spawn_local(Rc::clone(&lane).drive());
        let swept = Rc::clone(&lane);
        spawn_local(Rc::clone(&worker).sweep(move || swept.sweep()));
        ready();
        while let Some(message) = next_message(&mut messages, &mut stop).await {
            match message {
                Message::Change(change) => apply(*change, &lane, &mut listening).await?,
                // Whoever does not wait any more does not need to know.
                Message::Ping(done) => drop(done.send(())),
            }
        }
        listening.close(|_| true).await;
        worker.stop();
        lane.call_last();
        finish(&worker, &mut stop).await;
        Ok(())
    })
}

/// Waits until the connections have ended, or their time is over: those that need longer are cut off. The
/// time can still be made shorter meanwhile.
async fn finish<R: Respond>(worker: &Worker<R>, stop: &mut watch::Receiver<Stop>) {
    loop {
        let how = *stop.borrow_and_update();
        let mut empty = pin!(worker.empty());
        let mut changed = pin!(stop.changed());
        let next = poll_fn(|context| {
            if empty.as_mut().poll(context).is_ready() {
                return Poll::Ready(false);
            }
            // An error means that nobody is left who could change it.
            match changed.as_mut().poll(context) {
                Poll::Ready(Ok(())) => Poll::Ready(true),
                Poll::Ready(Err(_)) | Poll::Pending => Poll::Pending,
            }
        });
        let goes_on = match how {
            Stop::Within(grace) => timeout(grace, next).await.unwrap_or(false),
            Stop::No | Stop::WhenDone => next.await,
        };
        if !goes_on {
            return;
        }
    }
}

/// Waits for the next message; `None` when it is time to stop.
async fn next_message<R>(
    messages: &mut mpsc::UnboundedReceiver<Message<R>>,
    stop: &mut watch::Receiver<Stop>,
) -> Option<Message<R>> {
    // An error means that nobody is left who could say stop, so it is time.
    let mut stopped = pin!(stop.wait_for(|&stop| stop != Stop::No));
    poll_fn(|context| {
        if stopped.as_mut().poll(context).is_ready() {
            return Poll::Ready(None);
        }
        messages.poll_recv(context)
    })
    .await
}

/// Puts a new configuration in place of the old one.
async fn apply<R: Respond + 'static>(
    change: Change<R>,
    lane: &Rc<Lane<R>>,
    listening: &mut Listening,
) -> io::Result<()> {
    let Change { limits, responder, open, close, done } = change;
    lane.worker().replace(limits, responder());
    listening.open(open, lane)?;
    listening.close(|endpoint| close.contains(endpoint)).await;
    // Whoever does not wait any more does not need to know.
    let _ = done.send(());
    Ok(())
}

/// When it was said that nobody else is let in.
static CROWDED: Seldom = Seldom::new();
static NOT_ACCEPTED: Seldom = Seldom::new();

/// Accepts connections until the listener is to be closed and nobody waits to be accepted.
async fn accept<R: Respond + 'static>(
    acceptor: Acceptor,
    lane: Rc<Lane<R>>,
    mut stop: watch::Receiver<bool>,
) {
    loop {
        while lane.worker().is_crowded() && !*stop.borrow() {
            CROWDED.report_error(|| {
                "as many connections are open as MaxRequestWorkers allows: new ones wait".to_owned()
            });
            // The queue keeps what waits. Another worker may be the one that has room to make.
            sleep(CROWDED_PAUSE).await;
        }
        let accepted = {
            let mut stopped = pin!(stop.wait_for(|&stop| stop));
            poll_fn(|context| match acceptor.poll_accept(context) {
                Poll::Ready(accepted) => Poll::Ready(Some(accepted)),
                Poll::Pending => stopped.as_mut().poll(context).map(|_| None),
            })
            .await
        };
        match accepted {
            None => break,
            Some(Ok(accepted)) => enter(accepted, &lane),
            Some(Err(error)) if is_about_one_connection(&error) => {}
            // No descriptor or no memory is left. The queue keeps what waits, for now.
            Some(Err(error)) => {
                NOT_ACCEPTED.report_error(|| format!("cannot accept connections: {error}"));
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    // The runtime may not have heard of those that came last; the system has.
    acceptor.drain(|accepted| enter(accepted, &lane));
}

/// Starts to serve an accepted connection.
fn enter<R: Respond + 'static>(accepted: Accepted, lane: &Lane<R>) {
    let worker = lane.worker();
    let is_direct =
        |peer: &Peer| worker.answering.borrow().responder.takes_direct_http2(peer.local);
    match accepted {
        Accepted::Tcp(bare, peer) => {
            let tls = worker.answering.borrow().responder.tls(peer.local);
            if let Some(tls) = tls {
                // No room to wait for it: as if it had not been accepted.
                let Ok(stream) = bare.into_known() else { return };
                spawn(worker, |worker| tls::serve(stream, peer, worker, tls));
            } else if is_direct(&peer) {
                let Ok(stream) = Socket::try_from(bare) else { return };
                spawn(worker, |worker| http2::serve_direct(stream, peer, worker));
            } else {
                lane.enter(bare, peer);
            }
        }
        Accepted::Unix(stream, peer) if is_direct(&peer) => {
            spawn(worker, |worker| http2::serve_direct(stream, peer, worker));
        }
        Accepted::Unix(stream, peer) => {
            spawn(worker, |worker| connection::serve(stream, peer, worker));
        }
    }
}

/// Starts a task that serves a connection.
fn spawn<R, F>(worker: &Rc<Worker<R>>, serve: impl FnOnce(Rc<Worker<R>>) -> F)
where
    R: Respond + 'static,
    F: Future<Output = ()> + 'static,
{
    let presence = worker.enter();
    let serving = serve(Rc::clone(worker));
    spawn_local(async move {
        serving.await;
        drop(presence);
    });
}

/// Whether the error is that of the connection that was to be accepted, and not of the listener.
fn is_about_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}
