//! One request to a backend and its response, on one connection, both directions at a time.
//!
//! A backend may answer before it has the whole request, so while the request is sent the response is
//! waited for, and while the response is passed on the rest of the request is sent. Neither side is read
//! faster than the other takes it: at most one piece waits in each direction.
//!
//! Source: RFC 9112 sections 6, 7 and 9; httpd 2.4.71 `modules/proxy/mod_proxy_http.c`,
//! `ap_proxy_http_process_response`.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use milepost_http::chunked::{Chunked, Step};
use milepost_http::response::{self, Framing, RequestMethod, ResponseHead};
use tokio::io::ReadBuf;
use tokio::time::{Instant, Sleep, sleep_until};

use super::client::{Client, Piece};
use super::fault::Fault;
use super::head;
use super::held::Held;
use super::pool::Taken;
use crate::limits::{PROXY_HEAD_BYTES_MAX, PROXY_PIECE_BYTES, PROXY_WAITING_BYTES_MAX};

/// Where the content of a request comes from.
pub(super) enum Source<'c> {
    /// There is none, or all of it has been sent.
    Done,
    Held {
        held: &'c Held,
        offset: u64,
    },
    /// From the client while it arrives: with a length, or in chunks.
    Live {
        chunked: bool,
    },
}

/// A request under way.
pub(super) struct Exchange<'x, C> {
    pub(super) client: &'x mut C,
    taken: Taken,
    outgoing: Vec<u8>,
    written: usize,
    source: Source<'x>,
    /// Content is sent when the backend has asked for it.
    holding: Option<Duration>,
    incoming: Vec<u8>,
    start: usize,
    /// Nothing more can be sent; an answer may still come.
    deaf: Option<io::Error>,
    /// The client has to send something before anything can go on.
    waits_for_client: bool,
    timeout: Duration,
    timer: Pin<Box<Sleep>>,
}

/// The head of a response, copied out of the buffer.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) head: Vec<u8>,
    pub(super) status: u16,
    pub(super) framing: Framing,
    pub(super) persistent: bool,
}

/// How the content of a response goes on.
enum Content {
    Length(u64),
    Chunked(Chunked),
    UntilClose,
}

impl<'x, C: Client> Exchange<'x, C> {
    /// Begins with a head that is ready to be sent.
    pub(super) fn new(
        client: &'x mut C,
        taken: Taken,
        outgoing: Vec<u8>,
        source: Source<'x>,
        timeout: Duration,
        ping: Option<Duration>,
    ) -> Self {
        Exchange {
            client,
            taken,
            outgoing,
            written: 0,
            source,
            holding: ping,
            incoming: Vec::new(),
            start: 0,
            deaf: None,
            waits_for_client: false,
            timeout,
            timer: Box::pin(sleep_until(Instant::now() + ping.unwrap_or(timeout))),
        }
    }

    /// Sends the request, and waits for the head of a response, which may be one before the final one.
    pub(super) async fn answer(&mut self, method: RequestMethod) -> Result<Answer, Fault> {
        let mut seen = 0;
        let end = poll_fn(|context| {
            loop {
                let unread = &self.incoming[self.start..];
                if let Some(end) = response::head_end(unread, seen) {
                    let fits = end <= PROXY_HEAD_BYTES_MAX;
                    return Poll::Ready(if fits { Ok(end) } else { Err(Fault::HeadTooLarge) });
                }
                seen = unread.len();
                if seen > PROXY_HEAD_BYTES_MAX {
                    return Poll::Ready(Err(Fault::HeadTooLarge));
                }
                if let Poll::Ready(Err(fault)) = self.poll_send(context) {
                    return Poll::Ready(Err(fault));
                }
                match self.poll_receive(context) {
                    Poll::Ready(Ok(0)) if seen > 0 => return Poll::Ready(Err(Fault::HeadCut)),
                    Poll::Ready(Ok(0)) => {
                        let error = self.deaf.take().map_or(Fault::Closed, Fault::Broken);
                        return Poll::Ready(Err(error));
                    }
                    Poll::Ready(Ok(_)) => continue,
                    Poll::Ready(Err(_)) if seen > 0 => return Poll::Ready(Err(Fault::HeadCut)),
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(Fault::Broken(error))),
                    Poll::Pending => {}
                }
                if let Poll::Ready(Err(error)) = self.client.poll_flush(context) {
                    return Poll::Ready(Err(Fault::ClientGone(error)));
                }
                ready!(self.poll_late(context));
                let seconds = self.timeout.as_secs_f64();
                return Poll::Ready(Err(match self.holding {
                    Some(ping) => Fault::LatePing { seconds: ping.as_secs_f64() },
                    None if self.is_sent() => Fault::Late { seconds },
                    None => Fault::LateSending { seconds },
                }));
            }
        })
        .await?;
        let head = self.incoming[self.start..self.start + end].to_vec();
        self.start += end;
        let parsed = ResponseHead::parse(&head, method)?;
        let (status, framing) = (parsed.status, parsed.framing);
        let persistent = parsed.persistent;
        self.holding = None;
        self.touch();
        Ok(Answer { status, framing, persistent, head })
    }

    /// Passes the content of a response on. Returns the bytes of content; the connection is kept if it can
    /// be.
    pub(super) async fn pass(mut self, answer: &Answer, keep: bool) -> Result<u64, (Fault, u64)> {
        let mut content = match answer.framing {
            Framing::Length(length) => Content::Length(length),
            Framing::Chunked => Content::Chunked(Chunked::keeping_trailers()),
            Framing::UntilClose => Content::UntilClose,
        };
        let mut bytes = 0;
        let result = poll_fn(|context| {
            loop {
                match self.decode(&mut content, &mut bytes) {
                    Ok(true) => return Poll::Ready(Ok(())),
                    Ok(false) => {}
                    Err(fault) => return Poll::Ready(Err(fault)),
                }
                // The answer is there: what becomes of the rest of the request does not matter for it.
                if let Poll::Ready(Err(_)) = self.poll_send(context) {
                    self.source = Source::Done;
                }
                match self.client.poll_flush(context) {
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(Fault::ClientGone(error))),
                    Poll::Ready(Ok(())) => {}
                    // Without room on that side, time passes for the client and not for the backend.
                    Poll::Pending if self.client.waiting() >= PROXY_WAITING_BYTES_MAX => {
                        self.touch();
                        return Poll::Pending;
                    }
                    Poll::Pending => {}
                }
                match self.poll_receive(context) {
                    Poll::Ready(Ok(0)) => {
                        return Poll::Ready(match content {
                            Content::UntilClose => Ok(()),
                            _ => Err(Fault::ContentCut { bytes }),
                        });
                    }
                    Poll::Ready(Ok(_)) => continue,
                    Poll::Ready(Err(_)) => return Poll::Ready(Err(Fault::ContentCut { bytes })),
                    Poll::Pending => {}
                }
                ready!(self.poll_late(context));
                let seconds = self.timeout.as_secs_f64();
                return Poll::Ready(Err(Fault::LateContent { seconds }));
            }
        })
        .await;
        if let Err(fault) = result {
            if fault.is_of_backend() {
                // What has come is the client's all the same. If it cannot have it, nothing is lost.
                let _ = poll_fn(|context| self.client.poll_flush(context)).await;
            }
            return Err((fault, bytes));
        }
        let mut trailers = Vec::new();
        if let Content::Chunked(decoder) = &content {
            head::write_trailers(decoder.trailers(), &mut trailers);
        }
        self.client.finish(&trailers);
        let clean = self.is_sent() && self.start == self.incoming.len() && self.deaf.is_none();
        let Exchange { client, taken, .. } = self;
        if keep && clean && answer.persistent && !matches!(content, Content::UntilClose) {
            // The backend is free before a slow client has everything.
            taken.give_back();
        } else {
            drop(taken);
        }
        let flushed = poll_fn(|context| client.poll_flush(context)).await;
        flushed.map_err(|error| (Fault::ClientGone(error), bytes)).map(|()| bytes)
    }

    /// Passes bytes both ways until both sides have said that no more will come, or nothing has come from
    /// either for too long.
    pub(super) async fn tunnel(mut self) -> u64 {
        let mut bytes = 0_u64;
        let (mut from_client, mut from_backend) = (true, true);
        // Bytes of a request that was pipelined do not belong here: what is sent is all new.
        self.source = Source::Done;
        self.outgoing.clear();
        self.written = 0;
        poll_fn(|context| {
            loop {
                let mut moved = false;
                if self.start < self.incoming.len()
                    && self.client.waiting() < PROXY_WAITING_BYTES_MAX
                {
                    bytes += (self.incoming.len() - self.start) as u64;
                    self.client.push(&self.incoming[self.start..]);
                    self.start = self.incoming.len();
                    moved = true;
                }
                match self.client.poll_flush(context) {
                    Poll::Ready(Ok(())) => {}
                    Poll::Ready(Err(_)) => return Poll::Ready(()),
                    Poll::Pending => {}
                }
                if from_backend && self.client.waiting() < PROXY_WAITING_BYTES_MAX {
                    match self.poll_receive(context) {
                        Poll::Ready(Ok(0)) => {
                            from_backend = false;
                            moved = true;
                        }
                        Poll::Ready(Ok(_)) => moved = true,
                        Poll::Ready(Err(_)) => return Poll::Ready(()),
                        Poll::Pending => {}
                    }
                }
                if !from_backend && self.client.waiting() == 0 {
                    match self.client.poll_close(context) {
                        Poll::Ready(Ok(())) if !from_client => return Poll::Ready(()),
                        Poll::Ready(Err(_)) => return Poll::Ready(()),
                        _ => {}
                    }
                }
                if from_client && self.written == self.outgoing.len() {
                    self.outgoing.clear();
                    self.written = 0;
                    match self.client.poll_content(context, &mut self.outgoing) {
                        Poll::Ready(Ok(Piece::More)) => moved = true,
                        Poll::Ready(Ok(Piece::End)) => {
                            from_client = false;
                            moved = true;
                        }
                        Poll::Ready(Err(_)) => return Poll::Ready(()),
                        Poll::Pending => {}
                    }
                }
                match self.poll_write(context) {
                    Poll::Ready(Ok(true)) => moved = true,
                    Poll::Ready(Ok(false)) | Poll::Pending => {}
                    Poll::Ready(Err(_)) => return Poll::Ready(()),
                }
                if !from_client && self.written == self.outgoing.len() {
                    match self.taken.stream.poll_close(context) {
                        Poll::Ready(Ok(())) if from_backend => {}
                        Poll::Ready(Err(_)) => return Poll::Ready(()),
                        _ => {}
                    }
                }
                if moved {
                    self.touch();
                    continue;
                }
                return self.timer.as_mut().poll(context);
            }
        })
        .await;
        bytes
    }

    /// Whether all of the request is on its way.
    fn is_sent(&self) -> bool {
        self.written == self.outgoing.len() && matches!(self.source, Source::Done)
    }

    fn touch(&mut self) {
        let deadline = Instant::now() + self.timeout;
        self.timer.as_mut().reset(deadline);
    }

    fn poll_late(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.waits_for_client && self.holding.is_none() {
            // The client has a time of its own.
            return Poll::Pending;
        }
        self.timer.as_mut().poll(context)
    }

    /// Sends what there is of the request. Ready when that is all, or when the content cannot be had.
    fn poll_send(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        loop {
            self.waits_for_client = false;
            if self.deaf.is_some() {
                return Poll::Ready(Ok(()));
            }
            match ready!(self.poll_write(context)) {
                Ok(_) => {}
                Err(error) => {
                    self.deaf = Some(error);
                    return Poll::Ready(Ok(()));
                }
            }
            if self.holding.is_some() {
                return Poll::Pending;
            }
            self.outgoing.clear();
            self.written = 0;
            match &mut self.source {
                Source::Done => return Poll::Ready(Ok(())),
                Source::Held { held, offset } => match held.read(*offset, &mut self.outgoing) {
                    Ok(0) => self.source = Source::Done,
                    Ok(count) => *offset += count as u64,
                    Err(error) => return Poll::Ready(Err(Fault::Held(error))),
                },
                Source::Live { chunked } => {
                    let chunked = *chunked;
                    let mut piece = Vec::new();
                    match self.client.poll_content(context, &mut piece) {
                        Poll::Pending => {
                            self.waits_for_client = true;
                            return Poll::Pending;
                        }
                        Poll::Ready(Err(error)) => return Poll::Ready(Err(error.into())),
                        Poll::Ready(Ok(end)) => {
                            if !piece.is_empty() {
                                self.append(&piece, chunked);
                            }
                            if end == Piece::End {
                                if chunked {
                                    self.outgoing.extend_from_slice(b"0\r\n");
                                    head::write_trailers(
                                        self.client.trailers(),
                                        &mut self.outgoing,
                                    );
                                    self.outgoing.extend_from_slice(b"\r\n");
                                }
                                self.source = Source::Done;
                            }
                        }
                    }
                }
            }
        }
    }

    fn append(&mut self, piece: &[u8], chunked: bool) {
        if chunked {
            self.outgoing.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
        }
        self.outgoing.extend_from_slice(piece);
        if chunked {
            self.outgoing.extend_from_slice(b"\r\n");
        }
    }

    /// Writes what is ready; true if that was anything.
    fn poll_write(&mut self, context: &mut Context<'_>) -> Poll<io::Result<bool>> {
        let mut moved = false;
        while self.written < self.outgoing.len() {
            match ready!(self.taken.stream.poll_write(context, &self.outgoing[self.written..])) {
                Ok(0) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Ok(count) => {
                    self.written += count;
                    moved = true;
                    if self.holding.is_none() {
                        self.touch();
                    }
                }
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        ready!(self.taken.stream.poll_flush(context))?;
        Poll::Ready(Ok(moved))
    }

    /// Reads a piece behind what is unread.
    fn poll_receive(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if self.start > 0 {
            self.incoming.drain(..self.start);
            self.start = 0;
        }
        let length = self.incoming.len();
        self.incoming.resize(length + PROXY_PIECE_BYTES, 0);
        let mut buffer = ReadBuf::new(&mut self.incoming[length..]);
        let result = self.taken.stream.poll_read(context, &mut buffer);
        let count = buffer.filled().len();
        self.incoming.truncate(length + count);
        ready!(result)?;
        if count > 0 && self.holding.is_none() {
            self.touch();
        }
        Poll::Ready(Ok(count))
    }

    /// Hands what has come to the client; true at the end of the content.
    fn decode(&mut self, content: &mut Content, bytes: &mut u64) -> Result<bool, Fault> {
        let unread = &self.incoming[self.start..];
        match content {
            Content::Length(left) => {
                let count = usize::try_from(*left).unwrap_or(usize::MAX).min(unread.len());
                self.client.push(&unread[..count]);
                self.start += count;
                *left -= count as u64;
                *bytes += count as u64;
                Ok(*left == 0)
            }
            Content::Chunked(decoder) => {
                let mut at = 0;
                loop {
                    match decoder.step(unread, at).map_err(|_| Fault::ContentMalformed)? {
                        Step::Content(range) => {
                            *bytes += range.len() as u64;
                            at = range.end;
                            self.client.push(&unread[range]);
                        }
                        Step::More => {
                            self.start = self.incoming.len();
                            return Ok(false);
                        }
                        Step::End(end) => {
                            self.start += end;
                            return Ok(true);
                        }
                    }
                }
            }
            Content::UntilClose => {
                *bytes += unread.len() as u64;
                self.client.push(unread);
                self.start = self.incoming.len();
                Ok(false)
            }
        }
    }
}
