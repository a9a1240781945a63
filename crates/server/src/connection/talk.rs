//! The server's side of HTTP/1 on one connection, without the reading and writing: bytes that came in, bytes that are
//! to go out, and what is to be done next.
//!
//! All complete requests in the buffer are answered before anything is written, so pipelined requests
//! cost one read and one write together. Nothing is allocated per request.

use std::rc::Rc;

use milepost_http::request::{
    Content, EMPTY_LINES_MAX, HeadError, HeadScan, Persistence, RequestHead, empty_lines, parse,
};
use tokio::time::Instant;

use super::discard::{Discard, Progress};
use super::head::{self, Ending};
use super::later::Later;
use crate::buffer::Input;
use crate::clock::Clock;
use crate::deadline::Slot;
use crate::limits::{HEAD_BYTES_MAX, Limits, OUTPUT_BYTES};
use crate::reply::{FileContent, Reply};
use crate::respond::{Answered, Peer, Respond};
use crate::status;
use crate::worker::{Answering, Worker};

/// What is said on a connection, and by whom.
pub(super) struct Talk<R> {
    pub(super) peer: Peer,
    pub(super) worker: Rc<Worker<R>>,
    pub(super) slot: Rc<Slot>,
    pub(super) input: Input,
    pub(super) output: Vec<u8>,
    /// Answers after which the connection stayed open.
    pub(super) kept: u32,
    /// The number of the server whose limits heads have: none knows the host before the head is read.
    pub(super) base: usize,
    /// The number of the server that the last request was for.
    pub(super) server: usize,
    /// Empty lines seen before the request line.
    pub(super) empty_lines: usize,
    /// How far the head has been looked at, when it arrives in pieces.
    pub(super) scan: Option<HeadScan>,
    /// When the head, or the content, began to be waited for, and what had been received by then.
    pub(super) message: Option<(Instant, u64)>,
    /// Bytes received through this connection.
    pub(super) received: u64,
    /// Content of the last request that is still to be read and dropped.
    pub(super) content: Option<Discard>,
    /// How to close, once everything is written.
    pub(super) closing: Option<Closing>,
}

/// What to do when all that is in the buffer has been answered.
pub(super) enum Turn {
    Read(Wait),
    Write,
    Send(FileContent),
    Later(Box<Later>),
    Close(Closing),
}

/// What is waited for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Wait {
    /// The first byte of a request: nobody is in debt.
    Request,
    /// The rest of a head.
    Head,
    /// Content that will be dropped.
    Content,
}

/// How a connection ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Closing {
    /// At once: the client has said that it sends nothing more.
    Now,
    /// After listening to what the client may still be sending.
    Linger,
}

impl<R: Respond> Talk<R> {
    pub(super) fn new(peer: Peer, worker: Rc<Worker<R>>, slot: Rc<Slot>) -> Talk<R> {
        let base = worker.server_at(&peer);
        Talk {
            peer,
            base,
            server: base,
            slot,
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
    pub(super) fn give_back(&mut self) {
        self.input.give(&self.worker.pool);
        self.worker.pool.give_output(std::mem::take(&mut self.output));
    }

    /// Answers what is complete in the buffer, and says what is to be done then.
    pub(super) fn answer(&mut self) -> Turn {
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
    pub(super) fn answer_one(
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
    pub(super) fn refuse(&mut self, status: u16) {
        self.refuse_with(|responder, unread, peer, reply| {
            responder.respond_unread(status, unread, peer, reply);
        });
    }

    pub(super) fn refuse_with(&mut self, write: impl FnOnce(&mut R, &[u8], &Peer, &mut Reply)) {
        let worker = Rc::clone(&self.worker);
        let Answering { responder, reply, .. } = &mut *worker.answering.borrow_mut();
        reply.clear();
        write(responder, self.input.unread(), &self.peer, reply);
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

    /// Whether an idle connection is to end: the server stops, or others wait for room.
    pub(super) fn is_to_leave(&self) -> bool {
        self.worker.is_stopping() || self.kept > 0 && self.worker.is_crowded()
    }

    /// Until when to wait.
    pub(super) fn deadline(&mut self, wait: Wait) -> Instant {
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
}

/// The request line at the start of `bytes`, if all of it is there.
pub(super) fn request_line(bytes: &[u8]) -> &[u8] {
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
pub(super) fn ending<R: Respond>(
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
