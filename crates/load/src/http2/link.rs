//! One connection of HTTP/2: opened by whoever needs it first, shared by its streams, and opened again
//! when the server has ended it.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use h2::client::SendRequest;
use rustls::{ClientConfig, HandshakeKind};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::{TcpSocket, TcpStream, UnixStream};
use tokio::sync::Mutex;
use tokio::time::Instant;
use tokio_rustls::TlsConnector;

use super::Http2Worker;
use crate::answer::Failure;
use crate::endpoint::Endpoint;
use crate::failure::FailureKind;
use crate::layered::{self, Hindrance, session_of};
use crate::names::Names;
use crate::origin::Origin;
use crate::report::TlsSession;

/// What a stream may be sent before somebody has read it: enough for fast networks, and far less than
/// what a run has memory for.
const WINDOW_BYTES: u32 = 1024 * 1024;

/// A place for a connection. It outlives its sockets. One thread has it, which may be another than the
/// one that made it.
pub(super) struct Link {
    origin: Origin,
    opening: Opening,
    open: Mutex<Option<Open>>,
    /// Counts connections, so that whoever finds one broken does not close the next.
    generation: AtomicU64,
    broken: AtomicU64,
    /// Failures to connect in a row.
    failures: AtomicU32,
}

/// How a connection is opened.
pub(super) struct Opening {
    pub(super) source: Option<IpAddr>,
    pub(super) tls: Option<Arc<ClientConfig>>,
    /// All addresses, and which of them is the first for this connection.
    pub(super) names: Option<Arc<Names>>,
    pub(super) number: usize,
}

struct Open {
    sender: SendRequest<Bytes>,
    traffic: Arc<[AtomicU64; 2]>,
    told: [u64; 2],
}

/// A sender on an open connection.
pub(super) struct Opened {
    pub(super) generation: u64,
    pub(super) sender: SendRequest<Bytes>,
    /// How long opening took, if it was opened for whoever asked.
    pub(super) connect: Option<Duration>,
}

/// How long opening took.
pub(super) struct Times {
    pub(super) connect: Duration,
    /// The handshake, whether it took up a session, and what was agreed upon.
    pub(super) tls: Option<(Duration, bool, Option<TlsSession>)>,
}

impl Link {
    pub(super) fn new(origin: Origin, opening: Opening) -> Self {
        Self {
            origin,
            opening,
            open: Mutex::new(None),
            generation: AtomicU64::new(0),
            broken: AtomicU64::new(0),
            failures: AtomicU32::new(0),
        }
    }

    pub(super) fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Whether a request can go out without anything being opened for it.
    pub(super) fn is_open(&self) -> bool {
        self.open.try_lock().is_ok_and(|open| open.is_some())
            && self.broken.load(Relaxed) < self.generation.load(Relaxed)
    }

    pub(super) fn failures(&self) -> u32 {
        self.failures.load(Relaxed)
    }

    /// A sender on the open connection, which is opened if there is none.
    ///
    /// # Errors
    ///
    /// When it cannot be opened.
    pub(super) async fn sender(&self, worker: &Http2Worker<'_>) -> io::Result<Opened> {
        let mut open = self.open.lock().await;
        if let Some(open) = &*open
            && self.broken.load(Relaxed) < self.generation.load(Relaxed)
        {
            let (generation, sender) = (self.generation.load(Relaxed), open.sender.clone());
            return Ok(Opened { generation, sender, connect: None });
        }
        if let Some(mut old) = open.take() {
            old.tell(worker);
        }
        match self.connect().await {
            Ok((fresh, times)) => {
                self.generation.fetch_add(1, Relaxed);
                self.failures.store(0, Relaxed);
                worker.opened(&times);
                let sender = fresh.sender.clone();
                *open = Some(fresh);
                let (generation, connect) = (self.generation.load(Relaxed), Some(times.connect));
                Ok(Opened { generation, sender, connect })
            }
            Err(error) => {
                self.failures.fetch_add(1, Relaxed);
                Err(error)
            }
        }
    }

    /// The connection of a generation is of no use any more.
    pub(super) fn drop(&self, generation: u64) {
        self.broken.fetch_max(generation, Relaxed);
    }

    /// Tells the worker of what went over the open connection.
    pub(super) fn tell(&self, worker: &Http2Worker<'_>) {
        if let Ok(mut open) = self.open.try_lock()
            && let Some(open) = &mut *open
        {
            open.tell(worker);
        }
    }

    async fn connect(&self) -> io::Result<(Open, Times)> {
        let began = Instant::now();
        let traffic = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
        match &self.origin.endpoint {
            Endpoint::Tcp(address) => {
                // A turn of its own for each connection.
                let turn = self.opening.number + self.generation.load(Relaxed) as usize;
                let names = self.opening.names.as_deref();
                let address = self.origin.endpoint.in_turn(names, turn).unwrap_or(*address);
                let mut socket = self.connect_tcp(address).await?;
                if let Some(request) = &self.origin.tunnel {
                    open_tunnel(&mut socket, request).await?;
                }
                self.secure(socket, began.elapsed(), traffic).await
            }
            Endpoint::Unix(path) => {
                let socket = UnixStream::connect(path).await?;
                self.secure(socket, began.elapsed(), traffic).await
            }
        }
    }

    async fn connect_tcp(&self, address: SocketAddr) -> io::Result<TcpStream> {
        let socket = match address {
            SocketAddr::V4(_) => TcpSocket::new_v4()?,
            SocketAddr::V6(_) => TcpSocket::new_v6()?,
        };
        if let Some(source) = self.opening.source {
            socket.bind(SocketAddr::new(source, 0))?;
        }
        let socket = socket.connect(address).await?;
        socket.set_nodelay(true)?;
        Ok(socket)
    }

    async fn secure<S>(
        &self,
        socket: S,
        connect: Duration,
        traffic: Arc<[AtomicU64; 2]>,
    ) -> io::Result<(Open, Times)>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let counted = Counted { inner: socket, traffic: traffic.clone() };
        let (Some(name), Some(tls)) = (&self.origin.secure, &self.opening.tls) else {
            return shake_hands(counted, traffic, Times { connect, tls: None }).await;
        };
        let began = Instant::now();
        let stream = TlsConnector::from(tls.clone()).connect(name.clone(), counted).await;
        let stream = stream.map_err(|error| match error.get_ref() {
            Some(inner) if inner.is::<rustls::Error>() => {
                let inner = inner.downcast_ref::<rustls::Error>().cloned();
                io::Error::other(Hindrance::Tls(
                    inner.unwrap_or(rustls::Error::HandshakeNotComplete),
                ))
            }
            _ => error,
        })?;
        let (_, connection) = stream.get_ref();
        if connection.alpn_protocol() != Some(b"h2") {
            return Err(io::Error::other(Hindrance::NoHttp2));
        }
        let is_resumed = connection.handshake_kind() == Some(HandshakeKind::Resumed);
        let tls = Some((began.elapsed(), is_resumed, session_of(connection)));
        shake_hands(stream, traffic, Times { connect, tls }).await
    }
}

impl Open {
    fn tell(&mut self, worker: &Http2Worker<'_>) {
        let now = [0, 1].map(|at| self.traffic[at].load(Relaxed));
        worker.traffic([0, 1].map(|at| now[at] - self.told[at]));
        self.told = now;
    }
}

/// Has a proxy make a tunnel.
async fn open_tunnel(socket: &mut TcpStream, request: &[u8]) -> io::Result<()> {
    socket.write_all(request).await?;
    let mut answer = Vec::new();
    loop {
        if socket.read_buf(&mut answer).await? == 0 {
            return Err(layered::tunnel_closed());
        }
        if layered::is_tunnel_made(&answer)? {
            return Ok(());
        }
    }
}

/// Begins HTTP/2 on a stream. The connection then lives in a task of its own.
async fn shake_hands<S>(
    stream: S,
    traffic: Arc<[AtomicU64; 2]>,
    times: Times,
) -> io::Result<(Open, Times)>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut builder = h2::client::Builder::new();
    builder
        .enable_push(false)
        .initial_window_size(WINDOW_BYTES)
        .initial_connection_window_size(WINDOW_BYTES);
    let (sender, connection) = builder
        .handshake::<_, Bytes>(stream)
        .await
        .map_err(|error| io::Error::other(Hindrance::Http2(error.to_string())))?;
    // Its streams are told of what ends it.
    drop(tokio::spawn(connection));
    Ok((Open { sender, traffic, told: [0; 2] }, times))
}

/// What an error on the way to the first request is counted as.
pub(super) fn refused(origin: &Origin, error: &io::Error) -> Failure {
    let hindrance = error.get_ref().and_then(|inner| inner.downcast_ref::<Hindrance>());
    let kind = match hindrance {
        Some(Hindrance::Http2(_)) => FailureKind::MalformedHead,
        Some(Hindrance::Tunnel(_)) => FailureKind::TunnelRefused,
        Some(_) => FailureKind::TlsFailed,
        None => match error.kind() {
            io::ErrorKind::ConnectionRefused => FailureKind::ConnectRefused,
            io::ErrorKind::AddrNotAvailable => FailureKind::NoLocalPort,
            _ => FailureKind::ConnectFailed,
        },
    };
    let detail = format!("cannot connect to {origin}: {error}");
    Failure { kind, detail, os_error: error.raw_os_error() }
}

/// A socket whose bytes are counted: sent, received.
struct Counted<S> {
    inner: S,
    traffic: Arc<[AtomicU64; 2]>,
}

impl<S: AsyncRead + Unpin> AsyncRead for Counted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(context, buffer))?;
        self.traffic[1].fetch_add((buffer.filled().len() - before) as u64, Relaxed);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Counted<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.inner).poll_write(context, bytes))?;
        self.traffic[0].fetch_add(written as u64, Relaxed);
        Poll::Ready(Ok(written))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.inner).poll_write_vectored(context, slices))?;
        self.traffic[0].fetch_add(written as u64, Relaxed);
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}
