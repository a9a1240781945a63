//! The HTTP/2 client of a proxied request: its content comes from the stream, the answer goes into it.
//!
//! Each such request is a task, with deadlines of its own: while a backend thinks, nothing need move on the
//! connection. The client's window opens as its content is taken, so that it sends no faster than we keep
//! it or the backend takes it. A client that resets the stream ends the request to the backend with it.
//!
//! Source: RFC 9113 sections 5.2, 8.1 and 8.2.2; RFC 9110 section 15.2.

use std::io;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use h2::server::SendResponse;
use h2::{RecvStream, SendStream};
use http::HeaderMap;
use milepost_http::request::{Content, RequestHead};
use tokio::time::Instant;

use super::{CANNOT_GO_ON, Moved, content, fields, hand_over};
use crate::clock::Clock;
use crate::connection::head::{Ending, write as write_head};
use crate::deadline::Slot;
use crate::deferred::{Deferred, Ended};
use crate::limits::{FILE_PIECE_BYTES, LOGGED_HEAD_BYTES_MAX};
use crate::metrics::Counters;
use crate::proxy::client::{Beginning, Client, ContentError, Incoming, Piece};
use crate::respond::{Answered, Respond};
use crate::status;
use crate::worker::Worker;

/// A stream whose request waits for a backend.
pub(super) struct Stream {
    pub(super) head: Head,
    pub(super) content: RecvStream,
    pub(super) respond: SendResponse<Bytes>,
    /// Requests that came through the connection before.
    pub(super) kept: u32,
}

/// What of a request decides how its answer is sent.
#[derive(Clone, Copy)]
pub(super) struct Head {
    content: Content,
    expects_continue: bool,
    is_head: bool,
}

impl From<&RequestHead<'_>> for Head {
    fn from(head: &RequestHead<'_>) -> Head {
        Head {
            content: head.content,
            expects_continue: head.expects_continue,
            is_head: head.method == b"HEAD",
        }
    }
}

impl Stream {
    /// Has a backend answer the request, and sends the answer.
    pub(super) async fn answer<R: Respond + 'static>(
        self,
        mut deferred: Box<Deferred>,
        worker: Rc<Worker<R>>,
        moved: Rc<Moved>,
    ) {
        let under_way = UnderWay::begin(&worker, &moved);
        let Stream { head, content, respond, kept } = self;
        let mut client = Http2 {
            head,
            content,
            trailers: Vec::new(),
            asked: false,
            taken: 0,
            reading: Deadline::new(&worker),
            reading_all: Deadline::new(&worker),
            writing: Deadline::new(&worker),
            out: Out::Head(respond),
            output: BytesMut::new(),
            end: None,
            sent_head: Vec::new(),
            content_bytes: 0,
            worker: &worker,
            moved: &moved,
        };
        let ended = deferred.run(&mut client).await;
        let Http2 { content, out, mut sent_head, mut content_bytes, .. } = client;
        let mut status = deferred.status();
        match (ended, out) {
            (Ended::Passed, _) => {}
            (Ended::Reply(mut reply), Out::Head(respond)) => {
                let without = head.is_head || !status::has_content(reply.status());
                status = reply.status();
                content_bytes = if without { 0 } else { reply.length() };
                write_head(&mut sent_head, &reply, &worker.clock, Ending::Persist);
                hand_over(respond, &mut reply, without, &worker, &moved);
            }
            // Nobody is left to hear it.
            (Ended::Reply(reply), Out::Gone) => status = reply.status(),
            (_, Out::Content(mut stream)) => stream.send_reset(CANNOT_GO_ON),
            (_, Out::Head(mut respond)) => respond.send_reset(CANNOT_GO_ON),
            (_, Out::Gone) => {}
        }
        worker.counters.answered(status, content_bytes, Some(deferred.begun()));
        if worker.answering.borrow().responder.takes_notes() {
            deferred.note(&Answered {
                head: None,
                line: b"",
                status,
                sent_head: &sent_head,
                content_bytes,
                kept,
                goes_on: true,
                begun: None,
            });
        }
        drop(under_way);
        if !content.is_end_stream() {
            content::discard(content, worker, moved).await;
        }
    }
}

/// Keeps the connection from being taken for idle.
struct UnderWay<R> {
    worker: Rc<Worker<R>>,
    moved: Rc<Moved>,
}

impl<R> UnderWay<R> {
    fn begin(worker: &Rc<Worker<R>>, moved: &Rc<Moved>) -> Self {
        moved.deferred.set(moved.deferred.get() + 1);
        UnderWay { worker: Rc::clone(worker), moved: Rc::clone(moved) }
    }
}

impl<R> Drop for UnderWay<R> {
    fn drop(&mut self) {
        self.moved.deferred.set(self.moved.deferred.get() - 1);
        self.moved.note(self.worker.clock.now());
    }
}

/// The stream as a client of the proxy.
struct Http2<'w, R> {
    head: Head,
    content: RecvStream,
    trailers: Vec<u8>,
    /// The client has been told that its content is wanted.
    asked: bool,
    /// Bytes of content that have been taken.
    taken: u64,
    /// For the next piece of content, and for all of it.
    reading: Deadline,
    reading_all: Deadline,
    writing: Deadline,
    out: Out,
    output: BytesMut,
    /// The answer is complete, with these trailers.
    end: Option<HeaderMap>,
    sent_head: Vec<u8>,
    content_bytes: u64,
    worker: &'w Rc<Worker<R>>,
    moved: &'w Moved,
}

/// How far the answer is.
enum Out {
    Head(SendResponse<Bytes>),
    Content(SendStream<Bytes>),
    /// It is complete, or the client wants no more of it.
    Gone,
}

/// Until when something is waited for.
struct Deadline {
    slot: Rc<Slot>,
    /// When it began to be waited for.
    since: Option<Instant>,
}

impl Deadline {
    fn new<R>(worker: &Worker<R>) -> Deadline {
        Deadline { slot: worker.deadlines.slot(), since: None }
    }

    /// Ready when `timeout` has passed.
    fn poll(&mut self, clock: &Clock, timeout: Duration, context: &Context<'_>) -> Poll<()> {
        let since = *self.since.get_or_insert_with(|| clock.now());
        self.slot.arm(Clock::since(since, timeout));
        if self.slot.is_over(clock.now()) {
            return Poll::Ready(());
        }
        self.slot.watch(context);
        Poll::Pending
    }

    fn end(&mut self) {
        self.since = None;
        self.slot.disarm();
    }
}

impl<R: Respond> Http2<'_, R> {
    /// Ready when the client has sent too little for too long: `Timeout` is for each piece, and
    /// `RequestReadTimeout` for all of the content.
    fn poll_late(&mut self, context: &Context<'_>) -> Poll<ContentError> {
        let (clock, limits) = (&self.worker.clock, self.worker.limits(self.moved.server));
        let piece = self.reading.poll(clock, limits.timeout, context);
        let whole = limits.content_timeout.map_or(Poll::Pending, |limit| {
            self.reading_all.poll(clock, limit.after(self.taken), context)
        });
        if piece.is_pending() && whole.is_pending() {
            return Poll::Pending;
        }
        let limit = limits.content_timeout.map_or(limits.timeout, |limit| limit.first);
        Poll::Ready(ContentError::Late { seconds: limit.as_secs() })
    }

    /// Ready when the client has taken nothing for too long.
    fn poll_stuck(&mut self, context: &Context<'_>) -> Poll<()> {
        let timeout = self.worker.limits(self.moved.server).timeout;
        self.writing.poll(&self.worker.clock, timeout, context)
    }

    /// Whether the client has reset the stream, or its connection is gone.
    fn is_reset(&mut self, context: &mut Context<'_>) -> bool {
        match &mut self.out {
            Out::Head(respond) => respond.poll_reset(context).is_ready(),
            Out::Content(stream) => stream.poll_reset(context).is_ready(),
            Out::Gone => false,
        }
    }

    /// Sends the end of the answer; its content has been sent.
    fn send_end(&mut self) -> Result<(), h2::Error> {
        let Some(trailers) = self.end.take() else { return Ok(()) };
        match std::mem::replace(&mut self.out, Out::Gone) {
            Out::Content(mut stream) if trailers.is_empty() => stream.send_data(Bytes::new(), true),
            Out::Content(mut stream) => stream.send_trailers(trailers),
            Out::Head(_) | Out::Gone => Ok(()),
        }
    }
}

fn gone() -> io::Error {
    io::ErrorKind::ConnectionReset.into()
}

impl<R: Respond> Client for Http2<'_, R> {
    fn content(&self) -> Incoming {
        match self.head.content {
            Content::None => Incoming::None,
            Content::Length(length) => Incoming::Length(length),
            Content::Chunked => Incoming::Unknown,
        }
    }

    fn poll_content(
        &mut self,
        context: &mut Context<'_>,
        into: &mut Vec<u8>,
    ) -> Poll<Result<Piece, ContentError>> {
        if self.content.is_end_stream() {
            self.reading_all.end();
            return Poll::Ready(Ok(Piece::End));
        }
        let Poll::Ready(data) = self.content.poll_data(context) else {
            if !std::mem::replace(&mut self.asked, true) && self.head.expects_continue {
                self.interim(&Beginning {
                    status: 100,
                    reason: b"",
                    fields: b"",
                    length: None,
                    has_content: false,
                });
            }
            return self.poll_late(context).map(Err);
        };
        self.moved.note(self.worker.clock.now());
        self.reading.end();
        match data {
            Some(Ok(bytes)) => {
                self.taken += bytes.len() as u64;
                into.extend_from_slice(&bytes);
                let window = self.content.flow_control();
                window.release_capacity(bytes.len()).map_err(|_| ContentError::Gone)?;
                // The end, if this is it, is found at the next call.
                Poll::Ready(Ok(Piece::More))
            }
            Some(Err(_)) => Poll::Ready(Err(ContentError::Gone)),
            None => {
                let Poll::Ready(trailers) = self.content.poll_trailers(context) else {
                    return self.poll_late(context).map(Err);
                };
                if let Some(trailers) = trailers.map_err(|_| ContentError::Gone)? {
                    fields::write_lines(&trailers, &mut self.trailers)
                        .map_err(|_| ContentError::Malformed)?;
                }
                self.reading_all.end();
                Poll::Ready(Ok(Piece::End))
            }
        }
    }

    fn trailers(&self) -> &[u8] {
        &self.trailers
    }

    fn interim(&mut self, answer: &Beginning<'_>) {
        if let Out::Head(respond) = &mut self.out {
            let response = fields::response_of_lines(answer.status, answer.fields, None);
            // Whether the stream is still there is asked later.
            let _ = respond.send_informational(response);
        }
    }

    fn begin(&mut self, answer: &Beginning<'_>) {
        let Out::Head(mut respond) = std::mem::replace(&mut self.out, Out::Gone) else { return };
        status::write_line(answer.status, &mut self.sent_head);
        let start = self.sent_head.len();
        // What the backend says about itself and about time stays.
        self.worker.clock.write_missing_fields(answer.fields, &mut self.sent_head);
        self.sent_head.extend_from_slice(answer.fields);
        let lines = &self.sent_head[start..];
        let response = fields::response_of_lines(answer.status, lines, answer.length);
        self.sent_head.truncate(LOGGED_HEAD_BYTES_MAX);
        self.sent_head.extend_from_slice(b"\r\n");
        let is_empty = self.head.is_head || !answer.has_content;
        match respond.send_response(response, is_empty) {
            Ok(stream) if !is_empty => self.out = Out::Content(stream),
            Ok(_) => {}
            Err(_) => self.out = Out::Head(respond),
        }
    }

    fn push(&mut self, content: &[u8]) {
        if let Out::Content(_) = self.out {
            self.content_bytes += content.len() as u64;
            self.output.extend_from_slice(content);
        }
    }

    fn finish(&mut self, trailers: &[u8]) {
        let mut fields = HeaderMap::new();
        fields::add_lines(trailers, &mut fields);
        self.end = Some(fields);
    }

    fn waiting(&self) -> usize {
        self.output.len()
    }

    fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.is_reset(context) {
            self.out = Out::Gone;
            return Poll::Ready(Err(gone()));
        }
        while let Out::Content(stream) = &mut self.out
            && !self.output.is_empty()
        {
            stream.reserve_capacity(self.output.len().min(FILE_PIECE_BYTES));
            let granted = match stream.capacity() {
                0 => match stream.poll_capacity(context) {
                    Poll::Ready(Some(Ok(granted))) => granted,
                    Poll::Ready(_) => return Poll::Ready(Err(gone())),
                    Poll::Pending => {
                        ready!(self.poll_stuck(context));
                        return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
                    }
                },
                granted => granted,
            };
            let piece = self.output.split_to(granted.min(self.output.len())).freeze();
            self.moved.note(self.worker.clock.now());
            self.writing.end();
            if stream.send_data(piece, false).is_err() {
                return Poll::Ready(Err(gone()));
            }
        }
        Poll::Ready(self.send_end().map_err(|_| gone()))
    }

    fn counters(&self) -> &Counters {
        &self.worker.counters
    }

    fn poll_close(&mut self, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Nothing is upgraded here.
        Poll::Ready(Ok(()))
    }
}
