//! One HTTP/1 connection: reads requests, has them answered, writes the answers.
//!
//! What is said on it is a [`Talk`], which neither reads nor writes. As long as it waits for nothing but the next
//! request, the [`lane`] reads and writes for it; a [`Connection`] does where there is more to wait for, in a task
//! of its own. The loop is ours because hyper, measured alone, needs a quarter more CPU
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
pub(crate) mod lane;
mod later;
mod talk;
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

use tokio::io::ReadBuf;

use crate::limits::{
    FILE_PIECE_BYTES, INPUT_BYTES, LINGER_BYTES_MAX, LINGER_PAUSE, LINGER_TIMEOUT,
};
use crate::reply::{FileContent, Piece};
use crate::respond::{Peer, Respond};
use crate::socket::Transport;
use crate::worker::Worker;

use talk::{Closing, Talk, Turn, Wait, request_line};

/// Serves one connection until it ends.
pub(crate) async fn serve<S, R>(stream: S, peer: Peer, worker: Rc<Worker<R>>)
where
    S: Transport,
    R: Respond,
{
    let slot = worker.deadlines.slot();
    let talk = Talk::new(peer, worker, slot);
    serve_from(Turn::Read(Wait::Request), Connection { stream, talk }).await;
}

/// Serves the rest of a connection.
async fn serve_from<S: Transport, R: Respond>(turn: Turn, mut connection: Connection<S, R>) {
    // The only errors are that the client has gone or does not read: nobody is left to tell.
    let _ = connection.run(turn).await;
    connection.talk.give_back();
}

/// Tells a client that speaks plain HTTP to a port of TLS so, and closes.
///
/// Source: httpd 2.4.71 `modules/ssl/ssl_engine_kernel.c`, `ssl_hook_ReadReq`.
pub(crate) async fn refuse_plain<S, R>(stream: S, peer: Peer, worker: Rc<Worker<R>>)
where
    S: Transport,
    R: Respond,
{
    let slot = worker.deadlines.slot();
    let mut connection = Connection { stream, talk: Talk::new(peer, worker, slot) };
    let _ = connection.refuse_as_plain().await;
    connection.talk.give_back();
}

/// A connection in a task of its own.
struct Connection<S, R> {
    stream: S,
    talk: Talk<R>,
}

/// What came of waiting.
enum Event {
    Bytes,
    End,
    Late,
}

impl<S: Transport, R: Respond> Connection<S, R> {
    /// Goes on until the connection ends. `turn` comes first.
    async fn run(&mut self, mut turn: Turn) -> io::Result<()> {
        loop {
            match turn {
                Turn::Read(wait) => {
                    self.write().await?;
                    match self.read(wait).await? {
                        Event::Bytes => {}
                        Event::Late if wait == Wait::Head => self.talk.refuse(408),
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
            turn = self.talk.answer();
        }
    }

    /// Answers 400 to whatever the first head says.
    async fn refuse_as_plain(&mut self) -> io::Result<()> {
        while request_line(self.talk.input.unread()).is_empty()
            && self.talk.input.unread().len() < INPUT_BYTES
        {
            match self.read(Wait::Head).await? {
                Event::Bytes => {}
                Event::Late => break,
                Event::End => return Ok(()),
            }
        }
        self.talk.refuse_with(|_, _, _, reply| reply.error_because(400, PLAIN_ON_TLS));
        self.write().await?;
        self.linger().await
    }

    /// Waits for bytes, and puts them into the buffer.
    async fn read(&mut self, wait: Wait) -> io::Result<Event> {
        let deadline = self.talk.deadline(wait);
        self.talk.slot.arm(deadline);
        let mut last_call = false;
        poll_fn(|context| {
            let mut spare = ReadBuf::new(self.talk.input.spare(&self.talk.worker.pool));
            match Pin::new(&mut self.stream).poll_read(context, &mut spare) {
                Poll::Ready(result) => {
                    let count = spare.filled().len();
                    self.talk.input.advance(count);
                    self.talk.received += count as u64;
                    let event = if count == 0 { Event::End } else { Event::Bytes };
                    Poll::Ready(result.map(|()| event))
                }
                Poll::Pending => {
                    self.talk.input.rest(&self.talk.worker.pool);
                    if wait == Wait::Request && !last_call && self.talk.is_to_leave() {
                        // A request may be on its way that the runtime has not seen yet.
                        last_call = true;
                        self.talk.slot.arm(self.talk.worker.clock.after(Duration::ZERO));
                    }
                    self.or_late(context).map(|()| Ok(Event::Late))
                }
            }
        })
        .await
    }

    /// Ready when the deadline has passed; otherwise the task will be woken when it has.
    fn or_late(&self, context: &Context<'_>) -> Poll<()> {
        if self.talk.slot.is_over(self.talk.worker.clock.now()) {
            return Poll::Ready(());
        }
        self.talk.slot.watch(context);
        Poll::Pending
    }

    /// Ready when the client has taken nothing for too long; `armed` is set when that time has begun.
    fn or_stuck(&self, armed: &mut bool, context: &Context<'_>) -> Poll<io::Result<()>> {
        if !std::mem::replace(armed, true) {
            let timeout = self.talk.worker.limits(self.talk.server).timeout;
            self.talk.slot.arm(self.talk.worker.clock.after(timeout));
        }
        self.or_late(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }

    /// Writes all that is in the output buffer, and gives the buffer back.
    async fn write(&mut self) -> io::Result<()> {
        if self.talk.output.is_empty() {
            return Ok(());
        }
        let mut written = 0;
        let mut armed = false;
        poll_fn(|context| {
            while written < self.talk.output.len() {
                match Pin::new(&mut self.stream).poll_write(context, &self.talk.output[written..]) {
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
        self.talk.worker.pool.give_output(std::mem::take(&mut self.talk.output));
        Ok(())
    }

    /// Sends a part of a file, after what is in the output buffer.
    async fn send(&mut self, content: FileContent) -> io::Result<()> {
        let FileContent { file, pieces } = content;
        for piece in pieces {
            let Range { start: mut offset, end } = match piece {
                Piece::Part(part) => part,
                Piece::Text(text) => {
                    self.talk.output.extend_from_slice(&text);
                    continue;
                }
            };
            while offset < end {
                let piece = usize::try_from(end - offset).unwrap_or(usize::MAX);
                let start = self.talk.output.len();
                self.talk.output.resize(start + piece.min(FILE_PIECE_BYTES), 0);
                let count = file.read_at(&mut self.talk.output[start..], offset)?;
                if count == 0 {
                    // The file has become shorter than we said. Cutting off is all that tells the client.
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                self.talk.output.truncate(start + count);
                offset += count as u64;
                self.write().await?;
            }
        }
        self.write().await
    }

    /// Says that nothing more will come, and listens for a while to what does.
    async fn linger(&mut self) -> io::Result<()> {
        poll_fn(|context| Pin::new(&mut self.stream).poll_shutdown(context)).await?;
        let end = self.talk.worker.clock.after(LINGER_TIMEOUT);
        let mut left = LINGER_BYTES_MAX;
        loop {
            self.talk.input.consume(self.talk.input.unread().len());
            self.talk.slot.arm(self.talk.worker.clock.after(LINGER_PAUSE).min(end));
            let count = poll_fn(|context| {
                let mut spare = ReadBuf::new(self.talk.input.spare(&self.talk.worker.pool));
                match Pin::new(&mut self.stream).poll_read(context, &mut spare) {
                    Poll::Ready(result) => Poll::Ready(result.map(|()| spare.filled().len())),
                    // Late and done are the same here.
                    Poll::Pending => self.or_late(context).map(|()| Ok(0)),
                }
            })
            .await?;
            left = left.saturating_sub(count as u64);
            if count == 0 || left == 0 || self.talk.slot.is_over(self.talk.worker.clock.now()) {
                return Ok(());
            }
        }
    }
}

/// What to tell somebody who speaks HTTP where TLS is spoken.
const PLAIN_ON_TLS: &str = "This port speaks TLS, and the request came as plain HTTP. Write https:// in front of the address.";
