//! Holds back what is written until somebody says that it is to be sent.
//!
//! `h2` flushes whenever it has nothing more to write at the moment, which is after each answer. The
//! connection knows better: it sends when no request is left that could be answered now.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::limits::OUTPUT_BYTES;

/// The connection's handle.
pub(super) struct Held<S> {
    shared: Rc<RefCell<Shared<S>>>,
}

/// The handle of `h2`.
pub(super) struct Handle<S> {
    shared: Rc<RefCell<Shared<S>>>,
}

struct Shared<S> {
    stream: S,
    /// What is held back; up to `sent` it has been sent already.
    bytes: Vec<u8>,
    sent: usize,
    needs_flush: bool,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Held<S> {
    pub(super) fn new(stream: S) -> Held<S> {
        let shared = Shared { stream, bytes: Vec::new(), sent: 0, needs_flush: false };
        Held { shared: Rc::new(RefCell::new(shared)) }
    }

    /// The same stream, for `h2`.
    pub(super) fn handle(&self) -> Handle<S> {
        Handle { shared: Rc::clone(&self.shared) }
    }

    /// Sends what is held back.
    pub(super) fn poll_send(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.shared.borrow_mut().poll_send(context)
    }
}

impl<S: AsyncWrite + Unpin> Shared<S> {
    fn poll_send(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.sent < self.bytes.len() {
            let stream = Pin::new(&mut self.stream);
            match ready!(stream.poll_write(context, &self.bytes[self.sent..]))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                count => self.sent += count,
            }
            self.needs_flush = true;
        }
        if !self.bytes.is_empty() {
            // An idle connection keeps no buffer.
            self.bytes = Vec::new();
            self.sent = 0;
        }
        if self.needs_flush {
            ready!(Pin::new(&mut self.stream).poll_flush(context))?;
            self.needs_flush = false;
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Handle<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.shared.borrow_mut().stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Handle<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut shared = self.shared.borrow_mut();
        if shared.bytes.len() >= OUTPUT_BYTES {
            ready!(shared.poll_send(context))?;
        }
        shared.bytes.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut shared = self.shared.borrow_mut();
        ready!(shared.poll_send(context))?;
        Pin::new(&mut shared.stream).poll_shutdown(context)
    }
}
