//! One HTTP/1 connection: reads requests, has them answered, writes the answers.
//!
//! All complete requests in the buffer are answered before anything is written, so pipelined requests
//! cost one read and one write together; a single one costs one of each and nothing else. Nothing is
//! allocated per request. The loop is ours because hyper, measured alone, needs a quarter more CPU
//! than a server that parses nothing, and because persistence, limits and what counts as malformed
//! are what this server is about.
//!
//! An answer that waits for the content of its request, or for a backend, is a future of its own ([`later`]).
//! Where a responder asks for neither, content is only counted and dropped, after the answer has been sent,
//! and a client that asks first (`Expect: 100-continue`) is told the answer and not asked to go on.
//!
//! Persistence is RFC 9112 section 9.3 to the letter: an HTTP/1.0 request that does not ask for
//! `keep-alive` is answered and the connection closed at once, and the response always says which.
//!
//! Source: RFC 9112 sections 6, 9.3 and 9.6; httpd 2.4.71 `modules/http/http_protocol.c`,
//! `ap_set_keepalive`, and `server/connection.c`, `ap_lingering_close`.

mod discard;
pub(crate) mod head;
mod later;
#[cfg(test)]
mod tests;

use std::future::poll_fn;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use milepost_http::request::{
    Content, EMPTY_LINES_MAX, HeadError, HeadScan, Persistence, RequestHead, empty_lines, parse,
};
use tokio::io::ReadBuf;
use tokio::time::Instant;

use crate::buffer::Input;
use crate::clock::Clock;
use crate::deadline::Slot;
use crate::limits::{
    FILE_PIECE_BYTES, HEAD_BYTES_MAX, INPUT_BYTES, LINGER_BYTES_MAX, LINGER_PAUSE, LINGER_TIMEOUT,
    Limits, OUTPUT_BYTES,
};
use crate::reply::{FileContent, Piece, Reply};
use crate::respond::{Answered, Peer, Respond};
use crate::socket::Transport;
use crate::status;
use crate::worker::{Answering, Worker};

use discard::{Discard, Progress};
use head::Ending;
use later::Later;

/// Serves one connection until it ends.
pub(crate) async fn serve<S, R>(stream: S, peer: Peer, worker: Rc<Worker<R>>)
where
    S: Transport,
    R: Respond,
{
    let mut connection = Connection::new(stream, peer, worker);
    // The only errors are that the client has gone or does not read: nobody is left to tell.
    let _ = connection.run().await;
    connection.give_back();
}

/// Tells a client that speaks plain HTTP to a port of TLS so, and closes.
///
/// Source: httpd 2.4.71 `modules/ssl/ssl_engine_kernel.c`, `ssl_hook_ReadReq`.
pub(crate) async fn refuse_plain<S, R>(stream: S, peer: Peer, worker: Rc<Worker<R>>)
where
    S: Transport,
    R: Respond,
{
    let mut connection = Connection::new(stream, peer, worker);
    let _ = connection.refuse_as_plain().await;
    connection.give_back();
}

struct Connection<S, R> {
    stream: S,
    peer: Peer,
    worker: Rc<Worker<R>>,
    slot: Rc<Slot>,
    input: Input,
    output: Vec<u8>,
    /// Answers after which the connection stayed open.
    kept: u32,
    /// The number of the server whose limits heads have: none knows the host before the head is read.
    base: usize,
    /// The number of the server that the last request was for.
    server: usize,
    /// Empty lines seen before the request line.
    empty_lines: usize,
    /// How far the head has been looked at, when it arrives in pieces.
    scan: Option<HeadScan>,
    /// When the head, or the content, began to be waited for, and what had been received by then.
    message: Option<(Instant, u64)>,
    /// Bytes received through this connection.
    received: u64,
    /// Content of the last request that is still to be read and dropped.
    content: Option<Discard>,
    /// How to close, once everything is written.
    closing: Option<Closing>,
}

/// What to do when all that is in the buffer has been answered.
enum Turn {
    Read(Wait),
    Write,
    Send(FileContent),
    Later(Box<Later>),
    Close(Closing),
}

/// What is waited for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wait {
    /// The first byte of a request: nobody is in debt.
    Request,
    /// The rest of a head.
    Head,
    /// Content that will be dropped.
    Content,
}

/// How a connection ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Closing {
    /// At once: the client has said that it sends nothing more.
    Now,
    /// After listening to what the client may still be sending.
    Linger,
}

/// What came of waiting.
enum Event {
    Bytes,
    End,
    Late,
}

impl<S: Transport, R: Respond> Connection<S, R> {
    fn new(stream: S, peer: Peer, worker: Rc<Worker<R>>) -> Self {
        let base = worker.server_at(&peer);
        Connection {
            stream,
            peer,
            base,
            server: base,
            slot: worker.deadlines.slot(),
            worker,
            input: Input::default(),
            output: Vec::new(),
            kept: 0,
            empty_lines: 0,
            scan: None,
            message: None,
            received: 0,
            content: None,
            closing: None,
        }
    }

    /// Gives the buffers back: the connection is over.
    fn give_back(&mut self) {
        self.input.give(&self.worker.pool);
        self.worker.pool.give_output(std::mem::take(&mut self.output));
    }

    async fn run(&mut self) -> io::Result<()> {
        loop {
            match self.answer() {
                Turn::Read(wait) => {
                    self.write().await?;
                    match self.read(wait).await? {
                        Event::Bytes => {}
                        Event::Late if wait == Wait::Head => self.refuse(408),
                        Event::End | Event::Late => return Ok(()),
                    }
                }
                Turn::Write => self.write().await?,
                Turn::Send(content) => self.send(content).await?,
                // In a box of its own, so that connections without it are no larger for it.
                Turn::Later(later) => Box::pin(self.answer_later(*later)).await?,
                Turn::Close(closing) => {
                    self.stream.expect_end();
                    self.write().await?;
                    return match closing {
                        Closing::Now => Ok(()),
                        Closing::Linger => self.linger().await,
                    };
                }
            }
        }
    }

    /// Answers 400 to whatever the first head says.
    async fn refuse_as_plain(&mut self) -> io::Result<()> {
        while request_line(self.input.unread()).is_empty()
            && self.input.unread().len() < INPUT_BYTES
        {
            match self.read(Wait::Head).await? {
                Event::Bytes => {}
                Event::Late => break,
                Event::End => return Ok(()),
            }
        }
        self.refuse_with(|_, _, reply| reply.error_because(400, PLAIN_ON_TLS));
        self.write().await?;
        self.linger().await
    }

    /// Answers what is complete in the buffer, and says what is to be done then.
    fn answer(&mut self) -> Turn {
        let worker = Rc::clone(&self.worker);
        let mut answering = worker.answering.borrow_mut();
        loop {
            if let Some(closing) = self.closing {
                return Turn::Close(closing);
            }
            if self.output.len() >= OUTPUT_BYTES {
                return Turn::Write;
            }
            if let Some(content) = &mut self.content {
                match content.take(&mut self.input) {
                    Ok(Progress::More) => return Turn::Read(Wait::Content),
                    Ok(Progress::Done) => {
                        self.content = None;
                        self.message = None;
                    }
                    // Where the next request begins cannot be known.
                    Err(_) => self.closing = Some(Closing::Linger),
                }
                continue;
            }
            match self.answer_one(&worker, &mut answering) {
                Ok(None) => {}
                Ok(Some(turn)) => return turn,
                Err(error) => {
                    drop(answering);
                    self.refuse(error.status());
                    return Turn::Close(Closing::Linger);
                }
            }
        }
    }

    /// Answers the request at the start of the buffer; `None` when the next one can follow.
    fn answer_one(
        &mut self,
        worker: &Worker<R>,
        answering: &mut Answering<R>,
    ) -> Result<Option<Turn>, HeadError> {
        let empty = empty_lines(self.input.unread());
        if empty > 0 && self.scan.is_none() {
            self.empty_lines += empty;
            if self.empty_lines > EMPTY_LINES_MAX {
                return Err(HeadError::RequestLine);
            }
            self.input.consume(2 * empty);
        }
        let unread = self.input.unread();
        if unread.is_empty() {
            self.message = None;
            return Ok(Some(Turn::Read(Wait::Request)));
        }
        if unread == b"\r" && self.scan.is_none() {
            // Half of an empty line, which is not yet a part of the head.
            return Ok(Some(Turn::Read(Wait::Head)));
        }
        let Answering { responder, limits, reply, room } = answering;
        let head_limits = &limits.of(self.base).head;
        if let Some(scan) = &mut self.scan
            && !scan.advance(unread, head_limits)?
        {
            if unread.len() >= HEAD_BYTES_MAX {
                return Err(HeadError::TooManyFields);
            }
            return Ok(Some(Turn::Read(Wait::Head)));
        }
        let Some(head) = parse(unread, head_limits, room)? else {
            // From here on only new bytes are looked at, until the head is complete.
            let scan = self.scan.insert(HeadScan::default());
            scan.advance(unread, head_limits)?;
            return Ok(Some(Turn::Read(Wait::Head)));
        };
        self.scan = None;
        self.message = None;
        self.empty_lines = 0;

        reply.clear();
        let takes_notes = responder.takes_notes();
        let begun = (takes_notes || worker.counters.is_timed).then(std::time::Instant::now);
        responder.respond(&head, &self.peer, reply);
        if limits.differ() {
            self.server = responder.server();
        }

        if let Some(deferred) = reply.take_deferred() {
            let later = Box::new(Later::new(deferred, &head));
            let length = head.bytes.len();
            self.input.consume(length);
            return Ok(Some(Turn::Later(later)));
        }
        let ending = ending_after(worker, limits.of(self.server), &head, reply.status(), self.kept);
        if self.output.capacity() == 0 {
            self.output = worker.pool.output();
        }
        let start = self.output.len();
        head::write(&mut self.output, reply, &worker.clock, ending);
        let without = head.method == b"HEAD" || !status::has_content(reply.status());
        let content_bytes = if without { 0 } else { reply.length() };
        worker.counters.answered(reply.status(), content_bytes, begun);
        if takes_notes {
            let answered = Answered {
                head: Some(&head),
                line: request_line(unread),
                status: reply.status(),
                sent_head: &self.output[start..],
                content_bytes,
                kept: self.kept,
                goes_on: ending != Ending::Close,
                begun,
            };
            responder.note(&answered, &self.peer);
        }
        let file = if without { None } else { reply.take_content(&mut self.output) };
        if ending == Ending::Close {
            // What is unread, or was announced, is still to come; a reset would overtake the answer.
            let quiet = head.persistence == Persistence::Close
                && head.content == Content::None
                && head.bytes.len() == unread.len();
            self.closing = Some(if quiet { Closing::Now } else { Closing::Linger });
        } else {
            self.kept = self.kept.saturating_add(1);
            self.content = Discard::new(head.content);
        }
        let length = head.bytes.len();
        self.input.consume(length);
        Ok(file.map(Turn::Send))
    }

    /// Answers a request that cannot be understood, or came too late, and closes.
    fn refuse(&mut self, status: u16) {
        self.refuse_with(|responder, peer, reply| responder.respond_unread(status, peer, reply));
    }

    fn refuse_with(&mut self, write: impl FnOnce(&mut R, &Peer, &mut Reply)) {
        let worker = Rc::clone(&self.worker);
        let Answering { responder, reply, .. } = &mut *worker.answering.borrow_mut();
        reply.clear();
        write(responder, &self.peer, reply);
        let status = reply.status();
        let start = self.output.len();
        head::write(&mut self.output, reply, &worker.clock, Ending::Close);
        worker.counters.answered(status, reply.length(), None);
        if responder.takes_notes() {
            let answered = Answered {
                head: None,
                line: request_line(self.input.unread()),
                status,
                sent_head: &self.output[start..],
                content_bytes: reply.length(),
                kept: self.kept,
                goes_on: false,
                begun: None,
            };
            responder.note(&answered, &self.peer);
        }
        reply.take_content(&mut self.output);
        self.closing = Some(Closing::Linger);
    }

    /// Waits for bytes, and puts them into the buffer.
    async fn read(&mut self, wait: Wait) -> io::Result<Event> {
        let deadline = self.deadline(wait);
        self.slot.arm(deadline);
        let mut last_call = false;
        poll_fn(|context| {
            let mut spare = ReadBuf::new(self.input.spare(&self.worker.pool));
            match Pin::new(&mut self.stream).poll_read(context, &mut spare) {
                Poll::Ready(result) => {
                    let count = spare.filled().len();
                    self.input.advance(count);
                    self.received += count as u64;
                    let event = if count == 0 { Event::End } else { Event::Bytes };
                    Poll::Ready(result.map(|()| event))
                }
                Poll::Pending => {
                    self.input.rest(&self.worker.pool);
                    if wait == Wait::Request && !last_call && self.is_to_leave() {
                        // A request may be on its way that the runtime has not seen yet.
                        last_call = true;
                        self.slot.arm(self.worker.clock.after(Duration::ZERO));
                    }
                    self.or_late(context).map(|()| Ok(Event::Late))
                }
            }
        })
        .await
    }

    /// Whether an idle connection is to end: the server stops, or others wait for room.
    fn is_to_leave(&self) -> bool {
        self.worker.is_stopping() || self.kept > 0 && self.worker.is_crowded()
    }

    /// Until when to wait.
    fn deadline(&mut self, wait: Wait) -> Instant {
        let clock = &self.worker.clock;
        let limits = self.worker.limits(if wait == Wait::Head { self.base } else { self.server });
        let limit = match wait {
            Wait::Request if self.kept > 0 => return clock.after(limits.keep_alive_timeout),
            Wait::Request => {
                return clock.after(limits.first());
            }
            Wait::Head => limits.head_timeout,
            Wait::Content => limits.content_timeout,
        };
        // One deadline for all of it: many small pieces do not buy more time, unless there is a rate.
        let (began, before) = *self.message.get_or_insert_with(|| (clock.now(), self.received));
        let timeout = limit.map_or(limits.timeout, |limit| limit.after(self.received - before));
        Clock::since(began, timeout)
    }

    /// Ready when the deadline has passed; otherwise the task will be woken when it has.
    fn or_late(&self, context: &Context<'_>) -> Poll<()> {
        if self.slot.is_over(self.worker.clock.now()) {
            return Poll::Ready(());
        }
        self.slot.watch(context);
        Poll::Pending
    }

    /// Ready when the client has taken nothing for too long; `armed` is set when that time has begun.
    fn or_stuck(&self, armed: &mut bool, context: &Context<'_>) -> Poll<io::Result<()>> {
        if !std::mem::replace(armed, true) {
            let timeout = self.worker.limits(self.server).timeout;
            self.slot.arm(self.worker.clock.after(timeout));
        }
        self.or_late(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }

    /// Writes all that is in the output buffer, and gives the buffer back.
    async fn write(&mut self) -> io::Result<()> {
        if self.output.is_empty() {
            return Ok(());
        }
        let mut written = 0;
        let mut armed = false;
        poll_fn(|context| {
            while written < self.output.len() {
                match Pin::new(&mut self.stream).poll_write(context, &self.output[written..]) {
                    Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                    Poll::Ready(Ok(count)) => {
                        written += count;
                        armed = false;
                    }
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                    Poll::Pending => return self.or_stuck(&mut armed, context),
                }
            }
            // TLS has a buffer of its own between us and the socket.
            match Pin::new(&mut self.stream).poll_flush(context) {
                Poll::Pending => self.or_stuck(&mut armed, context),
                ready => ready,
            }
        })
        .await?;
        self.worker.pool.give_output(std::mem::take(&mut self.output));
        Ok(())
    }

    /// Sends a part of a file, after what is in the output buffer.
    async fn send(&mut self, content: FileContent) -> io::Result<()> {
        let FileContent { file, pieces } = content;
        for piece in pieces {
            let Range { start: mut offset, end } = match piece {
                Piece::Part(part) => part,
                Piece::Text(text) => {
                    self.output.extend_from_slice(&text);
                    continue;
                }
            };
            while offset < end {
                let piece = usize::try_from(end - offset).unwrap_or(usize::MAX);
                let start = self.output.len();
                self.output.resize(start + piece.min(FILE_PIECE_BYTES), 0);
                let count = file.read_at(&mut self.output[start..], offset)?;
                if count == 0 {
                    // The file has become shorter than we said. Cutting off is all that tells the client.
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                self.output.truncate(start + count);
                offset += count as u64;
                self.write().await?;
            }
        }
        self.write().await
    }

    /// Says that nothing more will come, and listens for a while to what does.
    async fn linger(&mut self) -> io::Result<()> {
        poll_fn(|context| Pin::new(&mut self.stream).poll_shutdown(context)).await?;
        let end = self.worker.clock.after(LINGER_TIMEOUT);
        let mut left = LINGER_BYTES_MAX;
        loop {
            self.input.consume(self.input.unread().len());
            self.slot.arm(self.worker.clock.after(LINGER_PAUSE).min(end));
            let count = poll_fn(|context| {
                let mut spare = ReadBuf::new(self.input.spare(&self.worker.pool));
                match Pin::new(&mut self.stream).poll_read(context, &mut spare) {
                    Poll::Ready(result) => Poll::Ready(result.map(|()| spare.filled().len())),
                    // Late and done are the same here.
                    Poll::Pending => self.or_late(context).map(|()| Ok(0)),
                }
            })
            .await?;
            left = left.saturating_sub(count as u64);
            if count == 0 || left == 0 || self.slot.is_over(self.worker.clock.now()) {
                return Ok(());
            }
        }
    }
}

/// What to tell somebody who speaks HTTP where TLS is spoken.
const PLAIN_ON_TLS: &str = "This port speaks TLS, and the request came as plain HTTP. Write https:// in front of the address.";

/// The request line at the start of `bytes`, if all of it is there.
fn request_line(bytes: &[u8]) -> &[u8] {
    memchr::memmem::find(bytes, b"\r\n").map_or(b"", |end| &bytes[..end])
}

/// Decides what happens to the connection after this answer.
fn ending_after<R: Respond>(
    worker: &Worker<R>,
    limits: &Limits,
    head: &RequestHead<'_>,
    status: u16,
    kept: u32,
) -> Ending {
    // Whether a client that asked first now sends its content is not known.
    let unasked = head.expects_continue && head.content != Content::None;
    if unasked || !Discard::is_allowed(head.content) {
        return Ending::Close;
    }
    ending(worker, limits, head.persistence, status, kept)
}

/// The same for an answer after which all of the content is read, or can be.
fn ending<R: Respond>(
    worker: &Worker<R>,
    limits: &Limits,
    persistence: Persistence,
    status: u16,
    kept: u32,
) -> Ending {
    // As in Apache, the answer that uses up the last allowed one still stays open.
    let left = limits.keep_alive_requests_max.map(|max| max.saturating_sub(kept));
    let keep = persistence != Persistence::Close
        && limits.keep_alive
        && left != Some(0)
        && !worker.is_stopping()
        && !status::ends_connection(status);
    match persistence {
        _ if !keep => Ending::Close,
        Persistence::Asked => Ending::KeepAlive { timeout: limits.keep_alive_timeout, left },
        Persistence::Close | Persistence::Implied => Ending::Persist,
    }
}
