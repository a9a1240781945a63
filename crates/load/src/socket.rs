//! Opens the socket of a connection.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use mio::net::{TcpStream, UnixStream};
use rustix::io::Errno;
use rustls::ClientConfig;
use socket2::{Domain, Socket, Type};

use crate::endpoint::Endpoint;
use crate::layered::Layered;
use crate::origin::Origin;
use crate::stream::Stream;

/// How sockets are opened.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Opening<'a> {
    /// How TLS is spoken, if any origin wants it.
    pub(crate) tls: Option<&'a Arc<ClientConfig>>,
    /// Address of the server, if not that of the origin.
    pub(crate) address: Option<SocketAddr>,
    /// Local address, if not any.
    pub(crate) source: Option<IpAddr>,
    /// Bytes of the send and of the receive buffer, if not the system's.
    pub(crate) buffer: Option<usize>,
    /// Whether nothing waits for an acknowledgement.
    pub(crate) no_delay: bool,
}

/// Starts to connect to `origin`. The stream can be written to when it is connected.
///
/// # Errors
///
/// When the system refuses at once.
pub(crate) fn open(origin: &Origin, opening: Opening<'_>) -> io::Result<Stream> {
    let socket = match &origin.endpoint {
        Endpoint::Tcp(address) => {
            Stream::Tcp(open_tcp(opening.address.unwrap_or(*address), opening)?)
        }
        Endpoint::Unix(path) => Stream::Unix(UnixStream::connect(path)?),
    };
    if has_layers(origin, opening) { cover(socket, origin, opening) } else { Ok(socket) }
}

/// Whether something lies on top of a socket to `origin`.
pub(crate) fn has_layers(origin: &Origin, opening: Opening<'_>) -> bool {
    origin.tunnel.is_some() || (origin.secure.is_some() && opening.tls.is_some())
}

/// Puts on top of `socket` what has to be there.
///
/// # Errors
///
/// When rustls will not begin.
pub(crate) fn cover(socket: Stream, origin: &Origin, opening: Opening<'_>) -> io::Result<Stream> {
    let tls = opening.tls.zip(origin.secure.as_ref());
    let layered = Layered::new(socket, origin.tunnel.as_deref(), tls)?;
    Ok(Stream::Layered(Box::new(layered)))
}

fn open_tcp(address: SocketAddr, opening: Opening<'_>) -> io::Result<TcpStream> {
    let socket = if opening.source.is_none() && opening.buffer.is_none() {
        TcpStream::connect(address)?
    } else {
        let socket = prepare(address, opening)?;
        socket.set_nonblocking(true)?;
        match socket.connect(&address.into()) {
            Err(error) if error.raw_os_error() != Some(Errno::INPROGRESS.raw_os_error()) => {
                return Err(error);
            }
            _ => TcpStream::from_std(socket.into()),
        }
    };
    if opening.no_delay {
        socket.set_nodelay(true)?;
    }
    Ok(socket)
}

/// Makes a socket that is to be connected to `address`.
///
/// # Errors
///
/// When the system has none, or not as it should be.
pub(crate) fn prepare(address: SocketAddr, opening: Opening<'_>) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    if let Some(bytes) = opening.buffer {
        socket.set_send_buffer_size(bytes)?;
        socket.set_recv_buffer_size(bytes)?;
    }
    if let Some(source) = opening.source {
        socket.bind(&SocketAddr::new(source, 0).into())?;
    }
    if opening.no_delay {
        socket.set_tcp_nodelay(true)?;
    }
    Ok(socket)
}
