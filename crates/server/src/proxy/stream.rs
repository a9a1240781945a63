//! A connection to a backend, by TCP, TLS or a Unix socket.

use std::io;
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// The stream.
#[derive(Debug)]
pub(crate) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
    Tls(Box<TlsStream<TcpStream>>, Secure),
}

/// How a backend is spoken to by TLS.
#[derive(Debug, Clone)]
pub(crate) struct Secure {
    pub(crate) config: Arc<ClientConfig>,
    /// Whom we want to speak to.
    pub(crate) name: ServerName<'static>,
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

    /// Shakes hands.
    pub(crate) async fn secure(self, secure: Secure) -> io::Result<Stream> {
        let Stream::Tcp(stream) = self else { return Err(io::ErrorKind::Unsupported.into()) };
        let connector = TlsConnector::from(Arc::clone(&secure.config));
        let stream = connector.connect(secure.name.clone(), stream).await?;
        Ok(Stream::Tls(Box::new(stream), secure))
    }

    /// Whether it serves for a request that is to be sent like this.
    pub(crate) fn is_as(&self, wanted: Option<&Secure>) -> bool {
        match (self, wanted) {
            (Stream::Tls(_, own), Some(wanted)) => {
                Arc::ptr_eq(&own.config, &wanted.config) && own.name == wanted.name
            }
            (Stream::Tls(..), None) | (_, Some(_)) => false,
            _ => true,
        }
    }

    /// Has the system probe the connection while it is idle.
    pub(crate) fn probe(&self) {
        let stream = match self {
            Stream::Tcp(stream) => stream,
            Stream::Tls(stream, _) => stream.get_ref().0,
            Stream::Unix(_) => return,
        };
        // Without the probes it works as well.
        let _ = SockRef::from(stream).set_keepalive(true);
    }

    /// Whether the connection is open and silent, as an idle one must be. One system call: the runtime may
    /// not yet have heard what the system knows.
    pub(crate) fn is_idle(&self) -> bool {
        let mut byte = [MaybeUninit::uninit()];
        let peeked = match self {
            Stream::Tcp(stream) => SockRef::from(stream).peek(&mut byte),
            Stream::Unix(stream) => SockRef::from(stream).peek(&mut byte),
            Stream::Tls(stream, _) => SockRef::from(stream.get_ref().0).peek(&mut byte),
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
            Stream::Tls(stream, _) => Pin::new(stream).poll_read(context, buffer),
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
            Stream::Tls(stream, _) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    /// Sends what TLS has kept back.
    pub(crate) fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Stream::Tcp(_) | Stream::Unix(_) => Poll::Ready(Ok(())),
            Stream::Tls(stream, _) => Pin::new(stream).poll_flush(context),
        }
    }

    pub(crate) fn poll_close(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Stream::Tcp(stream) => Pin::new(stream).poll_shutdown(context),
            Stream::Unix(stream) => Pin::new(stream).poll_shutdown(context),
            Stream::Tls(stream, _) => Pin::new(stream).poll_shutdown(context),
        }
    }
}
