//! Where a server listens, and how connections come from there: TCP addresses and Unix sockets.
//!
//! A connection through a Unix socket has no addresses. It is given that of the loopback interface on both
//! ends, as its client is on this machine; so `Require local` lets it in, as it would let in a proxy that
//! comes over TCP.

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::task::{Context, Poll, ready};

use tokio::io::Interest;
use tokio::net::{TcpStream, UnixListener, UnixStream};

use crate::respond::Peer;
use crate::socket::{self, Bare};

/// The port that a connection through a Unix socket is taken to have come to: the one that URLs need not
/// name.
const UNIX_PORT: u16 = 80;

/// An address to listen on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    /// An address and a port.
    Tcp(SocketAddr),
    /// A socket in the file system.
    Unix(PathBuf),
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Endpoint::Tcp(address) => address.fmt(f),
            Endpoint::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// A socket that listens, before a runtime has it.
#[derive(Debug)]
pub(crate) enum Listener {
    Tcp(std::net::TcpListener),
    Unix(std::os::unix::net::UnixListener),
}

impl Listener {
    /// Another handle of the same socket, for another worker.
    pub(crate) fn share(&self) -> io::Result<Listener> {
        match self {
            Listener::Tcp(listener) => listener.try_clone().map(Listener::Tcp),
            Listener::Unix(listener) => listener.try_clone().map(Listener::Unix),
        }
    }
}

/// A listener at work in a runtime.
pub(crate) enum Acceptor {
    /// To the runtime the listener is a socket that gets readable; accepting is our own.
    Tcp {
        listener: TcpStream,
        address: SocketAddr,
    },
    Unix(UnixListener),
}

/// A connection as it was accepted.
pub(crate) enum Accepted {
    Tcp(Bare, Peer),
    Unix(UnixStream, Peer),
}

impl Acceptor {
    pub(crate) fn new(listener: Listener) -> io::Result<Acceptor> {
        Ok(match listener {
            Listener::Tcp(listener) => {
                let address = listener.local_addr()?;
                let listener = TcpStream::from_std(OwnedFd::from(listener).into())?;
                Acceptor::Tcp { listener, address }
            }
            Listener::Unix(listener) => Acceptor::Unix(UnixListener::from_std(listener)?),
        })
    }

    pub(crate) fn poll_accept(&self, context: &mut Context<'_>) -> Poll<io::Result<Accepted>> {
        Poll::Ready(match self {
            Acceptor::Tcp { listener, address } => loop {
                ready!(listener.poll_read_ready(context))?;
                match listener.try_io(Interest::READABLE, || socket::accept(listener)) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    accepted => {
                        let (socket, remote) = accepted?;
                        break Ok(Accepted::tcp(socket, remote, *address));
                    }
                }
            },
            Acceptor::Unix(listener) => {
                let (stream, _) = ready!(listener.poll_accept(context))?;
                Ok(Accepted::unix(stream))
            }
        })
    }

    /// Closes the listener, after handing out the connections that have come and that the runtime has not
    /// heard of yet.
    pub(crate) fn drain(self, mut take: impl FnMut(Accepted)) {
        // An error means that nothing is left, or nothing can be done about it.
        match self {
            Acceptor::Tcp { listener, address } => {
                while let Ok((socket, remote)) = socket::accept(&listener) {
                    take(Accepted::tcp(socket, remote, address));
                }
            }
            Acceptor::Unix(listener) => {
                let Ok(listener) = listener.into_std() else { return };
                while let Ok((stream, _)) = listener.accept() {
                    if stream.set_nonblocking(true).is_ok()
                        && let Ok(stream) = UnixStream::from_std(stream)
                    {
                        take(Accepted::unix(stream));
                    }
                }
            }
        }
    }
}

impl Accepted {
    fn tcp(socket: Bare, remote: SocketAddr, listener: SocketAddr) -> Accepted {
        // Only a wildcard address leaves open which of our addresses the client has called.
        let local = if listener.ip().is_unspecified() {
            socket.local_addr().unwrap_or(listener)
        } else {
            listener
        };
        Accepted::Tcp(socket, Peer::new(local, remote))
    }

    fn unix(stream: UnixStream) -> Accepted {
        let local = (Ipv4Addr::LOCALHOST, UNIX_PORT).into();
        Accepted::Unix(stream, Peer::new(local, (Ipv4Addr::LOCALHOST, 0).into()))
    }
}
