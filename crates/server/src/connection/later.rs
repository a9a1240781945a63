//! The HTTP/1 client of a proxied request: its content comes from the connection's input, the answer goes
//! into its output.
//!
//! The connection lends itself to the proxy until the answer is complete, and goes on with the next request
//! then. An answer whose length nobody knows is sent in chunks, or ends with the connection where the
//! client speaks HTTP/1.0.
//!
//! Source: RFC 9112 sections 6, 7.1, 9.3 and 9.6; RFC 9110 sections 7.8 and 10.1.1.

use std::io::{self, Write};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use milepost_http::chunked::{Chunked, Step};
use milepost_http::request::{Content, Persistence, RequestHead, Version};
use tokio::io::ReadBuf;

use super::Connection;
use super::discard::Discard;
use super::head::{self, Ending};
use super::talk::{Closing, Wait, ending};
use crate::deferred::{Deferred, Ended};
use crate::limits::{LOGGED_HEAD_BYTES_MAX, PROXY_PIECE_BYTES};
use crate::metrics::Counters;
use crate::proxy::client::{Beginning, Client, ContentError, Incoming, Piece};
use crate::respond::{Answered, Respond};
use crate::socket::Transport;
use crate::status;

/// A request that waits for a backend, and what the connection has to know of it.
pub(super) struct Later {
    deferred: Box<Deferred>,
    content: Content,
    version: Version,
    persistence: Persistence,
    expects_continue: bool,
    is_head: bool,
}

impl Later {
    pub(super) fn new(deferred: Box<Deferred>, head: &RequestHead<'_>) -> Later {
        Later {
            deferred,
            content: head.content,
            version: head.version,
            persistence: head.persistence,
            expects_continue: head.expects_continue,
            is_head: head.method == b"HEAD",
        }
    }
}

/// The rest of the content of a request.
enum Rest {
    None,
    Length(u64),
    Chunks(Chunked),
    /// Whatever comes: the connection was upgraded.
    Raw,
    /// It is malformed: where it ends cannot be known.
    Lost,
}

/// How the content of the response is framed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Framed {
    Plain,
    Chunks,
}

/// The connection as a client of the proxy.
struct Http1<'c, S, R> {
    connection: &'c mut Connection<S, R>,
    request: Request,
    rest: Rest,
    trailers: Vec<u8>,
    framed: Framed,
    /// Bytes of the output that have been written.
    written: usize,
    writing: bool,
    /// The deadline of the content stands.
    reading: bool,
    asked: bool,
    taken: u64,
    sent_head: Vec<u8>,
    content_bytes: u64,
    ending: Ending,
}

/// What of a request decides how its answer is sent.
#[derive(Clone, Copy)]
struct Request {
    content: Content,
    version: Version,
    persistence: Persistence,
    expects_continue: bool,
    is_head: bool,
}

impl<S: Transport, R: Respond> Connection<S, R> {
    /// Has a backend answer a request, and sends the answer.
    pub(super) async fn answer_later(&mut self, later: Later) -> io::Result<()> {
        let Later { mut deferred, content, version, persistence, expects_continue, is_head } =
            later;
        // Answers to the requests before this one.
        self.write().await?;
        let takes_notes = self.talk.worker.answering.borrow().responder.takes_notes();
        let mut client = Http1 {
            request: Request { content, version, persistence, expects_continue, is_head },
            rest: match content {
                Content::None => Rest::None,
                Content::Length(length) => Rest::Length(length),
                Content::Chunked => Rest::Chunks(Chunked::keeping_trailers()),
            },
            connection: self,
            trailers: Vec::new(),
            framed: Framed::Plain,
            written: 0,
            writing: false,
            reading: false,
            asked: false,
            taken: 0,
            sent_head: Vec::new(),
            content_bytes: 0,
            ending: Ending::Close,
        };
        let ended = deferred.run(&mut client).await;
        let rest = client.leftover();
        let Http1 { rest: kind, sent_head, content_bytes, ending, .. } = client;
        let is_raw = matches!(kind, Rest::Raw);
        self.talk.message = None;
        match ended {
            Ended::Passed if is_raw => self.talk.closing = Some(Closing::Now),
            Ended::Passed => self.go_on(ending, persistence, rest),
            Ended::Cut => {
                let counters = &self.talk.worker.counters;
                counters.answered(deferred.status(), content_bytes, Some(deferred.begun()));
                if takes_notes {
                    let answered = answered(deferred.status(), &sent_head, content_bytes, false);
                    deferred.note(&Answered { kept: self.talk.kept, ..answered });
                }
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
            Ended::Reply(mut reply) => {
                let unasked =
                    expects_continue && !matches!(rest, Left::Nothing) && self.received_none(&rest);
                let ending = {
                    let worker = std::rc::Rc::clone(&self.talk.worker);
                    let answering = worker.answering.borrow();
                    let keeps = reply.status() != 408 && !unasked && rest.is_discardable();
                    ending_of(
                        &worker,
                        answering.limits.of(self.talk.server),
                        persistence,
                        reply.status(),
                        self.talk.kept,
                        keeps,
                    )
                };
                let start = self.talk.output.len();
                head::write(&mut self.talk.output, &reply, &self.talk.worker.clock, ending);
                let without = is_head || !status::has_content(reply.status());
                let bytes = if without { 0 } else { reply.length() };
                let counters = &self.talk.worker.counters;
                counters.answered(reply.status(), bytes, Some(deferred.begun()));
                if takes_notes {
                    let sent_head = self.talk.output[start..].to_vec();
                    let goes_on = ending != Ending::Close;
                    let answered = answered(reply.status(), &sent_head, bytes, goes_on);
                    deferred.note(&Answered { kept: self.talk.kept, ..answered });
                }
                let file = if without { None } else { reply.take_content(&mut self.talk.output) };
                if let Some(content) = file {
                    self.send(content).await?;
                }
                self.go_on(ending, persistence, rest);
                return Ok(());
            }
        }
        let counters = &self.talk.worker.counters;
        counters.answered(deferred.status(), content_bytes, Some(deferred.begun()));
        if takes_notes {
            let goes_on = self.talk.closing.is_none();
            let answered = answered(deferred.status(), &sent_head, content_bytes, goes_on);
            deferred.note(&Answered {
                kept: self.talk.kept.saturating_sub(u32::from(goes_on)),
                ..answered
            });
        }
        Ok(())
    }

    /// Nothing of the content has come.
    fn received_none(&self, rest: &Left) -> bool {
        self.talk.input.unread().is_empty() && !matches!(rest, Left::Some { touched: true, .. })
    }

    /// What happens to the connection after the answer.
    fn go_on(&mut self, ending: Ending, persistence: Persistence, rest: Left) {
        if ending == Ending::Close {
            let quiet = persistence == Persistence::Close
                && matches!(rest, Left::Nothing)
                && self.talk.input.unread().is_empty();
            self.talk.closing = Some(if quiet { Closing::Now } else { Closing::Linger });
            return;
        }
        self.talk.kept = self.talk.kept.saturating_add(1);
        match rest {
            Left::Nothing => {}
            Left::Some { discard, .. } => self.talk.content = Some(discard),
            Left::Lost => self.talk.closing = Some(Closing::Linger),
        }
    }
}

/// What of a request's content nobody has read.
enum Left {
    Nothing,
    Some {
        discard: Discard,
        touched: bool,
    },
    /// Where it ends cannot be known.
    Lost,
}

impl Left {
    fn is_discardable(&self) -> bool {
        match self {
            Left::Nothing => true,
            Left::Some { discard, .. } => discard.is_short(),
            Left::Lost => false,
        }
    }
}

fn answered(status: u16, sent_head: &[u8], content_bytes: u64, goes_on: bool) -> Answered<'_> {
    Answered {
        head: None,
        line: b"",
        status,
        sent_head,
        content_bytes,
        kept: 0,
        goes_on,
        begun: None,
    }
}

fn ending_of<R: Respond>(
    worker: &crate::worker::Worker<R>,
    limits: &crate::limits::Limits,
    persistence: Persistence,
    status: u16,
    kept: u32,
    keeps: bool,
) -> Ending {
    if keeps { ending(worker, limits, persistence, status, kept) } else { Ending::Close }
}

impl<S: Transport, R: Respond> Http1<'_, S, R> {
    /// What is left of the content.
    fn leftover(&mut self) -> Left {
        let touched = self.taken > 0 || self.asked;
        match &self.rest {
            Rest::None | Rest::Raw | Rest::Length(0) => Left::Nothing,
            Rest::Length(left) => Left::Some { discard: Discard::Length { left: *left }, touched },
            Rest::Chunks(decoder) => {
                let discard = Discard::Chunks { decoder: decoder.clone(), taken: 0 };
                Left::Some { discard, touched }
            }
            Rest::Lost => Left::Lost,
        }
    }

    /// Takes content out of the input; `None` if more must be read first.
    fn decode(&mut self, into: &mut Vec<u8>) -> Result<Option<Piece>, ContentError> {
        let input = &mut self.connection.talk.input;
        let unread = input.unread();
        match &mut self.rest {
            Rest::None => Ok(Some(Piece::End)),
            Rest::Lost => Err(ContentError::Malformed),
            Rest::Raw => {
                let count = unread.len().min(PROXY_PIECE_BYTES);
                into.extend_from_slice(&unread[..count]);
                input.consume(count);
                Ok((count > 0).then_some(Piece::More))
            }
            Rest::Length(left) => {
                let count = usize::try_from(*left).unwrap_or(usize::MAX);
                let count = count.min(unread.len()).min(PROXY_PIECE_BYTES);
                into.extend_from_slice(&unread[..count]);
                input.consume(count);
                *left -= count as u64;
                self.taken += count as u64;
                Ok(match (*left, count) {
                    (0, _) => Some(Piece::End),
                    (_, 0) => None,
                    _ => Some(Piece::More),
                })
            }
            Rest::Chunks(decoder) => {
                let mut at = 0;
                let (end, progress) = loop {
                    let Ok(step) = decoder.step(unread, at) else {
                        self.rest = Rest::Lost;
                        return Err(ContentError::Malformed);
                    };
                    match step {
                        Step::Content(range) => {
                            at = range.end;
                            into.extend_from_slice(&unread[range]);
                        }
                        Step::More if into.is_empty() => break (unread.len(), None),
                        Step::More => break (unread.len(), Some(Piece::More)),
                        Step::End(end) => break (end, Some(Piece::End)),
                    }
                };
                if progress == Some(Piece::End) {
                    self.trailers = decoder.trailers().to_vec();
                    self.rest = Rest::None;
                }
                self.taken += end as u64;
                input.consume(end);
                Ok(progress)
            }
        }
    }

    fn late(&self) -> ContentError {
        let limits = self.connection.talk.worker.limits(self.connection.talk.server);
        let limit = limits.content_timeout.map_or(limits.timeout, |limit| limit.first);
        ContentError::Late { seconds: limit.as_secs() }
    }
}

impl<S: Transport, R: Respond> Client for Http1<'_, S, R> {
    fn content(&self) -> Incoming {
        match self.request.content {
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
        loop {
            if let Some(piece) = self.decode(into)? {
                self.reading = false;
                return Poll::Ready(Ok(piece));
            }
            if self.request.expects_continue && !self.asked && self.taken == 0 {
                self.connection.talk.output.extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
            }
            self.asked = true;
            if self.waiting() > 0 {
                ready!(self.poll_flush(context)).map_err(|_| ContentError::Gone)?;
            }
            let connection = &mut *self.connection;
            if !self.reading && !matches!(self.rest, Rest::Raw) {
                self.reading = true;
                let (limit, timeout) = {
                    let limits = connection.talk.worker.limits(connection.talk.server);
                    (limits.content_timeout, limits.timeout)
                };
                // `Timeout` is for each piece, `RequestReadTimeout` for all of it.
                let piece = connection.talk.worker.clock.after(timeout);
                let whole = limit.map(|_| connection.talk.deadline(Wait::Content));
                connection.talk.slot.arm(whole.map_or(piece, |whole| whole.min(piece)));
            }
            let mut spare = ReadBuf::new(connection.talk.input.spare(&connection.talk.worker.pool));
            match Pin::new(&mut connection.stream).poll_read(context, &mut spare) {
                Poll::Ready(result) => {
                    let count = spare.filled().len();
                    connection.talk.input.advance(count);
                    connection.talk.received += count as u64;
                    self.reading = false;
                    if count == 0 && matches!(self.rest, Rest::Raw) {
                        return Poll::Ready(Ok(Piece::End));
                    }
                    if count == 0 || result.is_err() {
                        return Poll::Ready(Err(ContentError::Gone));
                    }
                }
                Poll::Pending => {
                    if matches!(self.rest, Rest::Raw) {
                        return Poll::Pending;
                    }
                    ready!(connection.or_late(context));
                    return Poll::Ready(Err(self.late()));
                }
            }
        }
    }

    fn trailers(&self) -> &[u8] {
        &self.trailers
    }

    fn interim(&mut self, answer: &Beginning<'_>) {
        if self.request.version == Version::Http11 {
            let output = &mut self.connection.talk.output;
            status::write_line(answer.status, output);
            output.extend_from_slice(answer.fields);
            output.extend_from_slice(b"\r\n");
        }
    }

    fn begin(&mut self, answer: &Beginning<'_>) {
        let left = self.leftover();
        let expects = self.request.expects_continue && !self.asked;
        let ends_there = answer.has_content && answer.length.is_none();
        let unframed = ends_there && self.request.version == Version::Http10;
        let connection = &mut *self.connection;
        let worker = std::rc::Rc::clone(&connection.talk.worker);
        let keeps = !unframed
            && left.is_discardable()
            && (!expects || matches!(left, Left::Nothing))
            && answer.status != 101;
        self.ending = {
            let limits = worker.limits(connection.talk.server);
            let persistence = self.request.persistence;
            ending_of(&worker, &limits, persistence, answer.status, connection.talk.kept, keeps)
        };
        let output = &mut connection.talk.output;
        let start = output.len();
        // Writing to memory does not fail.
        if answer.reason.is_empty() {
            status::write_line(answer.status, output);
        } else {
            let _ = write!(output, "HTTP/1.1 {} ", answer.status);
            output.extend_from_slice(answer.reason);
            output.extend_from_slice(b"\r\n");
        }
        // What the backend says about itself and about time stays.
        worker.clock.write_missing_fields(answer.fields, output);
        output.extend_from_slice(answer.fields);
        if answer.status == 101 {
            output.extend_from_slice(b"Connection: Upgrade\r\n\r\n");
            self.rest = Rest::Raw;
            self.reading = false;
        } else {
            if let Some(length) = answer.length {
                let _ = write!(output, "Content-Length: {length}\r\n");
            } else if ends_there && !unframed {
                output.extend_from_slice(b"Transfer-Encoding: chunked\r\n");
                self.framed = Framed::Chunks;
            }
            head::write_ending(output, self.ending);
        }
        if self.request.is_head || !answer.has_content {
            self.framed = Framed::Plain;
        }
        let length = output.len() - start;
        self.sent_head.extend_from_slice(&output[start..start + length.min(LOGGED_HEAD_BYTES_MAX)]);
    }

    fn push(&mut self, content: &[u8]) {
        if content.is_empty() {
            return;
        }
        self.content_bytes += content.len() as u64;
        let output = &mut self.connection.talk.output;
        if self.framed == Framed::Chunks {
            let _ = write!(output, "{:x}\r\n", content.len());
        }
        output.extend_from_slice(content);
        if self.framed == Framed::Chunks {
            output.extend_from_slice(b"\r\n");
        }
    }

    fn finish(&mut self, trailers: &[u8]) {
        if self.framed == Framed::Chunks {
            let output = &mut self.connection.talk.output;
            output.extend_from_slice(b"0\r\n");
            output.extend_from_slice(trailers);
            output.extend_from_slice(b"\r\n");
        }
    }

    fn waiting(&self) -> usize {
        self.connection.talk.output.len() - self.written
    }

    fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let connection = &mut *self.connection;
        while self.written < connection.talk.output.len() {
            let bytes = &connection.talk.output[self.written..];
            match Pin::new(&mut connection.stream).poll_write(context, bytes) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(count)) => {
                    self.written += count;
                    self.writing = false;
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => {
                    if !self.writing {
                        self.writing = true;
                        self.reading = false;
                        let timeout = connection.talk.worker.limits(connection.talk.server).timeout;
                        connection.talk.slot.arm(connection.talk.worker.clock.after(timeout));
                    }
                    ready!(connection.or_late(context));
                    return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
                }
            }
        }
        connection.talk.output.clear();
        self.written = 0;
        Poll::Ready(Ok(()))
    }

    fn counters(&self) -> &Counters {
        &self.connection.talk.worker.counters
    }

    fn poll_close(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.connection.stream).poll_shutdown(context)
    }
}
