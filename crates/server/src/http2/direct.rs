//! Connections without TLS that may begin with HTTP/2 (prior knowledge) or with HTTP/1.
//!
//! The first bytes tell: no request of HTTP/1 begins like the preface. What has been read goes in front of
//! what is still to be read.
//!
//! Source: RFC 9113 section 3.3 and 3.4; httpd 2.4.71 `modules/http2/h2_c1.c`, `h2_c1_can_upgrade` and
//! `h2_c1_hook_process_connection` for `H2Direct`.

use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};

use crate::connection;
use crate::deadline::before;
use crate::respond::{Peer, Respond};
use crate::socket::Transport;
use crate::worker::Worker;

/// The first bytes of a connection that speaks HTTP/2 from the start.
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Finds out what a connection speaks, and serves it until it ends.
pub(crate) async fn serve<S, R>(mut stream: S, peer: Peer, worker: Rc<Worker<R>>)
where
    S: Transport,
    R: Respond + 'static,
{
    let slot = worker.deadlines.slot();
    let limit = worker.limits(worker.server_at(&peer)).first();
    slot.arm(worker.clock.after(limit));
    let mut first = [0; PREFACE.len()];
    let mut length = 0;
    let is_h2 = loop {
        if first[..length] != PREFACE[..length] {
            break false;
        }
        if length == PREFACE.len() {
            break true;
        }
        match before(&slot, &worker.clock, stream.read(&mut first[length..])).await {
            Some(Ok(count @ 1..)) => length += count,
            Some(Ok(0) | Err(_)) => return,
            // Whoever has begun is told what was missed.
            None if length > 0 => break false,
            None => return,
        }
    };
    drop(slot);
    let stream = Rewound { first, at: 0, length, stream };
    if is_h2 {
        Box::pin(super::serve(stream, peer, worker)).await;
    } else {
        connection::serve(stream, peer, worker).await;
    }
}

/// A stream, and the bytes of it that have been read already.
struct Rewound<S> {
    first: [u8; PREFACE.len()],
    at: usize,
    length: usize,
    stream: S,
}

impl<S: Transport> Transport for Rewound<S> {
    fn expect_end(&mut self) {
        self.stream.expect_end();
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Rewound<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.at < self.length {
            let count = buffer.remaining().min(self.length - self.at);
            buffer.put_slice(&self.first[self.at..self.at + count]);
            self.at += count;
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Rewound<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
