//! A connection to a backend, by TCP or a Unix socket.

use std::io;
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll};

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

/// The stream.
#[derive(Debug)]
pub(crate) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    /// Connects to the first of the addresses that can be had.
    pub(crate) async fn connect(addresses: &[SocketAddr]) -> io::Result<Stream> {
        let stream = TcpStream::connect(addresses).await?;
        stream.set_nodelay(true)?;
        Ok(Stream::Tcp(stream))
    }

    pub(crate) async fn connect_unix(path: &Path) -> io::Result<Stream> {
        Ok(Stream::Unix(UnixStream::connect(path).await?))
    }

    /// Has the system probe the connection while it is idle.
    pub(crate) fn probe(&self) {
        if let Stream::Tcp(stream) = self {
            // Without the probes it works as well.
            let _ = SockRef::from(stream).set_keepalive(true);
        }
    }

    /// Whether the connection is open and silent, as an idle one must be. One system call: the runtime may
    /// not yet have heard what the system knows.
    pub(crate) fn is_idle(&self) -> bool {
        let mut byte = [MaybeUninit::uninit()];
        let peeked = match self {
            Stream::Tcp(stream) => SockRef::from(stream).peek(&mut byte),
            Stream::Unix(stream) => SockRef::from(stream).peek(&mut byte),
        };
        peeked.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }

    pub(crate) fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self {
            Stream::Tcp(stream) => Pin::new(stream).poll_read(context, buffer),
            Stream::Unix(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }

    pub(crate) fn poll_write(
        &mut self,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self {
            Stream::Tcp(stream) => Pin::new(stream).poll_write(context, bytes),
            Stream::Unix(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    pub(crate) fn poll_close(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Stream::Tcp(stream) => Pin::new(stream).poll_shutdown(context),
            Stream::Unix(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}
