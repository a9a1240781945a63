//! One HTTP/2 connection: takes requests from the `h2` crate, has them answered, and hands back answers.
//!
//! Frames, header compression, streams and windows are `h2`'s. Ours are the deadlines, what a request is
//! for the responder, and when bytes go to the socket: `h2` would write after each answer, and with
//! [`held::Held`] all answers to the requests of one read go out in one write.
//!
//! An answer that is small and in memory is handed over at once. What is longer, or a file, is sent by a
//! task of its own, piece by piece as the client's windows allow; so is the content of a request dropped.
//! A request whose answer must wait is a task too ([`later`]).
//! The connection ends when it has been idle for `KeepAliveTimeout`, or when nothing has moved on any of
//! its streams for `Timeout`; it is told so (GOAWAY), and what is under way may end.
//!
//! Source: RFC 9113 sections 3.4, 5.1.2, 6.8, 8.1 to 8.5; httpd 2.4.71 `modules/http2/h2_session.c` for
//! what is a timeout when.

mod content;
mod direct;
mod fields;
mod held;
mod later;

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use h2::server::{Builder, Connection, SendResponse};
use h2::{Reason, RecvStream};
use http::Request;
use milepost_http::request::{Content, HeadError, Version, parse};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::spawn_local;
use tokio::time::Instant;

use crate::connection::head;
use crate::deadline::{Slot, before};
use crate::limits::{
    FILE_PIECE_BYTES, H2_CONNECTION_WINDOW_BYTES, H2_CONTENT_AT_ONCE_BYTES_MAX, H2_HEAD_BYTES_MAX,
    H2_RESET_MEMORY, H2_RESETS_MAX, H2_STREAM_ERRORS_MAX,
};
use crate::reply::Reply;
use crate::respond::{Answered, Peer, Respond};
use crate::status;
use crate::worker::{Answering, Worker};

use content::Source;
use held::Held;

pub(crate) use direct::serve as serve_direct;

/// Serves one connection until it ends.
pub(crate) async fn serve<S, R>(stream: S, peer: Peer, worker: Rc<Worker<R>>)
where
    S: AsyncRead + AsyncWrite + Unpin,
    R: Respond + 'static,
{
    let slot = worker.deadlines.slot();
    let server = worker.server_at(&peer);
    let first = worker.limits(server).first();
    let limits = worker.answering.borrow().responder.http2(&peer);
    slot.arm(worker.clock.after(first));
    let held = Held::new(stream);
    let handshake = Builder::new()
        .max_concurrent_streams(limits.streams_max)
        .initial_window_size(limits.window_bytes)
        .initial_connection_window_size(H2_CONNECTION_WINDOW_BYTES)
        .max_header_list_size(H2_HEAD_BYTES_MAX)
        .max_send_buffer_size(FILE_PIECE_BYTES)
        .max_pending_accept_reset_streams(H2_RESETS_MAX)
        .max_concurrent_reset_streams(H2_RESETS_MAX)
        .reset_stream_duration(H2_RESET_MEMORY)
        .max_local_error_reset_streams(Some(H2_STREAM_ERRORS_MAX))
        .handshake::<_, Bytes>(held.handle());
    let flushed = async {
        let mut handshake = std::pin::pin!(handshake);
        poll_fn(|context| {
            let ready = handshake.as_mut().poll(context);
            let _ = held.poll_send(context);
            ready
        })
        .await
    };
    let Some(Ok(connection)) = before(&slot, &worker.clock, flushed).await else { return };
    let session = Session {
        peer,
        slot,
        moved: Moved::new(server, worker.clock.now()),
        worker,
        held,
        answered: 0,
        leaving: false,
    };
    session.run(connection).await;
}

/// What a site says about its HTTP/2 connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Http2Limits {
    /// Requests that a connection may have at a time.
    pub streams_max: u32,
    /// Bytes of content that a client may send ahead on a stream.
    pub window_bytes: u32,
}

impl Default for Http2Limits {
    fn default() -> Self {
        Http2Limits { streams_max: 100, window_bytes: 65_535 }
    }
}

struct Session<S, R> {
    peer: Peer,
    worker: Rc<Worker<R>>,
    slot: Rc<Slot>,
    moved: Rc<Moved>,
    held: Held<S>,
    /// Requests that came through this connection.
    answered: u32,
    /// The client has been told that the connection ends.
    leaving: bool,
}

/// When something last moved on a stream: a request came, or content went either way.
pub(crate) struct Moved {
    /// The number of the server whose limits the connection has, whatever its requests are for.
    server: usize,
    last: Cell<Instant>,
    /// Requests that have timeouts of their own: those of a backend may be longer than ours.
    deferred: Cell<usize>,
}

impl Moved {
    fn new(server: usize, now: Instant) -> Rc<Moved> {
        Rc::new(Moved { server, last: Cell::new(now), deferred: Cell::new(0) })
    }

    pub(crate) fn note(&self, now: Instant) {
        self.last.set(now);
    }
}

/// What came of waiting.
#[allow(
    clippy::large_enum_variant,
    reason = "it lives for one turn of the loop, and a box is an allocation a request"
)]
enum Event {
    Request(Request<RecvStream>, SendResponse<Bytes>),
    End,
    Late,
}

impl<S: AsyncRead + AsyncWrite + Unpin, R: Respond + 'static> Session<S, R> {
    async fn run(mut self, mut connection: Connection<held::Handle<S>, Bytes>) {
        loop {
            match self.wait(&mut connection).await {
                Event::Request(request, respond) => self.answer(request, respond),
                Event::End => break,
                // Once told, a connection that does not end is cut off.
                Event::Late if self.leaving => return,
                Event::Late => self.leave(&mut connection),
            }
        }
        let timeout = self.worker.limits(self.moved.server).timeout;
        self.slot.arm(self.worker.clock.after(timeout));
        let sent = poll_fn(|context| self.held.poll_send(context));
        let _ = before(&self.slot, &self.worker.clock, sent).await;
    }

    async fn wait(&mut self, connection: &mut Connection<held::Handle<S>, Bytes>) -> Event {
        poll_fn(|context| {
            if !self.leaving && self.is_to_leave(connection) {
                self.leave(connection);
            }
            match connection.poll_accept(context) {
                Poll::Ready(Some(Ok((request, respond)))) => {
                    return Poll::Ready(Event::Request(request, respond));
                }
                Poll::Ready(Some(Err(_)) | None) => return Poll::Ready(Event::End),
                Poll::Pending => {}
            }
            if let Poll::Ready(Err(_)) = self.held.poll_send(context) {
                return Poll::Ready(Event::End);
            }
            self.or_late(connection, context)
        })
        .await
    }

    /// Whether the connection is to end: the server stops, or others wait for room.
    fn is_to_leave(&self, connection: &Connection<held::Handle<S>, Bytes>) -> bool {
        self.worker.is_stopping()
            || self.answered > 0 && !connection.has_streams() && self.worker.is_crowded()
    }

    fn leave(&mut self, connection: &mut Connection<held::Handle<S>, Bytes>) {
        self.leaving = true;
        self.moved.note(self.worker.clock.now());
        connection.graceful_shutdown();
    }

    /// Ready when nothing has moved for too long.
    fn or_late(
        &self,
        connection: &Connection<held::Handle<S>, Bytes>,
        context: &Context<'_>,
    ) -> Poll<Event> {
        if self.moved.deferred.get() > 0 {
            self.slot.disarm();
            self.slot.watch(context);
            return Poll::Pending;
        }
        let limits = self.worker.limits(self.moved.server);
        let timeout = if connection.has_streams() || self.leaving {
            limits.timeout
        } else if self.answered == 0 {
            limits.first()
        } else {
            limits.keep_alive_timeout
        };
        let clock = &self.worker.clock;
        self.slot.arm(crate::clock::Clock::since(self.moved.last.get(), timeout));
        if self.slot.is_over(clock.now()) {
            return Poll::Ready(Event::Late);
        }
        self.slot.watch(context);
        Poll::Pending
    }

    /// Has a request answered, and hands the answer over.
    fn answer(&mut self, request: Request<RecvStream>, respond: SendResponse<Bytes>) {
        self.moved.note(self.worker.clock.now());
        let kept = self.answered;
        self.answered = self.answered.saturating_add(1);
        let (parts, content) = request.into_parts();
        let worker = Rc::clone(&self.worker);
        let mut answering = worker.answering.borrow_mut();
        let Answering { responder, limits, reply, room } = &mut *answering;
        let mut output = worker.pool.output();
        let written = fields::write_head(&parts, &mut output);
        reply.clear();
        let takes_notes = responder.takes_notes();
        let begun = (takes_notes || worker.counters.is_timed).then(std::time::Instant::now);
        let parsed = match written {
            // A head that came in frames is complete.
            Ok(()) => parse(&output, &limits.of(self.moved.server).head, room)
                .and_then(|head| head.ok_or(HeadError::RequestLine)),
            Err(error) => Err(error),
        };
        let head = match parsed {
            Ok(mut head) => {
                head.version = Version::Http2;
                if head.content == Content::None && !content.is_end_stream() {
                    head.content = Content::Chunked;
                }
                responder.respond(&head, &self.peer, reply);
                Some(head)
            }
            Err(error) => {
                responder.respond_unread(error.status(), &output, &self.peer, reply);
                None
            }
        };
        if let (Some(deferred), Some(head)) = (reply.take_deferred(), &head) {
            let stream = later::Stream { head: head.into(), content, respond, kept };
            let (worker, moved) = (Rc::clone(&self.worker), Rc::clone(&self.moved));
            spawn_local(stream.answer(deferred, worker, moved));
            return;
        }
        let without =
            head.is_some_and(|head| head.method == b"HEAD") || !status::has_content(reply.status());
        let content_bytes = if without { 0 } else { reply.length() };
        worker.counters.answered(reply.status(), content_bytes, begun);
        if takes_notes {
            let mut sent_head = worker.pool.output();
            head::write(&mut sent_head, reply, &worker.clock, head::Ending::Persist);
            let answered = Answered {
                head: head.as_ref(),
                line: &fields::request_line(&parts),
                status: reply.status(),
                sent_head: &sent_head,
                content_bytes,
                kept,
                goes_on: !self.leaving,
                begun,
            };
            responder.note(&answered, &self.peer);
            worker.pool.give_output(sent_head);
        }
        hand_over(respond, reply, without, &self.worker, &self.moved);
        worker.pool.give_output(output);
        drop(answering);
        if !content.is_end_stream() {
            let (worker, moved) = (Rc::clone(&self.worker), Rc::clone(&self.moved));
            spawn_local(content::discard(content, worker, moved));
        }
    }
}

/// Hands a reply over, without its content if it is to have none.
fn hand_over<R: Respond + 'static>(
    mut respond: SendResponse<Bytes>,
    reply: &mut Reply,
    without: bool,
    worker: &Rc<Worker<R>>,
    moved: &Rc<Moved>,
) {
    let response = fields::response(reply, &worker.clock);
    let mut bytes = worker.pool.output();
    let file = if without { None } else { reply.take_content(&mut bytes) };
    let is_empty = file.is_none() && bytes.is_empty();
    // An error means that the stream, or all of the connection, is gone.
    let Ok(mut stream) = respond.send_response(response, is_empty) else { return };
    if file.is_none() && bytes.len() <= H2_CONTENT_AT_ONCE_BYTES_MAX {
        if !is_empty {
            let _ = stream.send_data(Bytes::copy_from_slice(&bytes), true);
        }
        worker.pool.give_output(bytes);
        return;
    }
    let source = match file {
        Some(content) => Source::File(content),
        None => Source::Bytes(Bytes::from(bytes)),
    };
    spawn_local(content::send(stream, source, Rc::clone(worker), Rc::clone(moved)));
}

/// What a stream is reset with whose content cannot be sent to its end.
const CANNOT_GO_ON: Reason = Reason::INTERNAL_ERROR;
