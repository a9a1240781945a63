//! What a connection reads from and writes to, whatever it is made of.
//!
//! The loop of a worker sees bytes and readiness and nothing else. A stream may hold back bytes that it
//! has taken off its socket, so only the stream can say whether there is more to read without waiting.

use std::io::{self, IoSlice, Read, Write};

use mio::event::Source;
use mio::net::{TcpStream, UnixStream};
use mio::{Interest, Registry, Token};

use crate::layered::Layered;

/// An open connection, never blocking.
#[derive(Debug)]
pub(crate) enum Stream {
    /// TCP and nothing on top: the path of nearly every run.
    Tcp(TcpStream),
    /// A Unix socket and nothing on top.
    Unix(UnixStream),
    /// TCP and nothing on top, in a ring that is read from and written to in its place.
    Ring,
    /// One of these with something on top.
    Layered(Box<Layered>),
}

impl Stream {
    /// Reads as [`Read::read`]; 0 is the end of what the server sends.
    ///
    /// # Errors
    ///
    /// As the socket has them; `WouldBlock` when there is nothing to read now.
    #[inline]
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(socket) => socket.read(buffer),
            Self::Unix(socket) => socket.read(buffer),
            Self::Ring => Err(io::ErrorKind::WouldBlock.into()),
            Self::Layered(layered) => layered.read(buffer),
        }
    }

    /// Writes as [`Write::write`].
    ///
    /// # Errors
    ///
    /// As the socket has them; `WouldBlock` when it takes nothing now.
    #[inline]
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(socket) => socket.write(bytes),
            Self::Unix(socket) => socket.write(bytes),
            Self::Ring => Err(io::ErrorKind::WouldBlock.into()),
            Self::Layered(layered) => layered.write(bytes),
        }
    }

    /// Writes as [`Write::write_vectored`].
    ///
    /// # Errors
    ///
    /// As [`Stream::write`].
    pub(crate) fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Self::Tcp(socket) => socket.write_vectored(slices),
            Self::Unix(socket) => socket.write_vectored(slices),
            Self::Ring => Err(io::ErrorKind::WouldBlock.into()),
            Self::Layered(layered) => {
                layered.write(slices.iter().find(|it| !it.is_empty()).map_or(&[], |it| it))
            }
        }
    }

    /// Whether a read that gave `length` bytes where there was `room` has left nothing behind: the
    /// next news comes from the poll.
    #[inline]
    pub(crate) fn is_emptied(&self, length: usize, room: usize) -> bool {
        match self {
            Self::Tcp(_) | Self::Unix(_) => length < room,
            Self::Ring => true,
            Self::Layered(layered) => layered.is_emptied(),
        }
    }
}

impl Stream {
    /// What lies on top of the socket, if anything does.
    pub(crate) fn layered(&self) -> Option<&Layered> {
        match self {
            Self::Layered(layered) => Some(layered),
            _ => None,
        }
    }
}

impl Source for Stream {
    fn register(&mut self, registry: &Registry, token: Token, to: Interest) -> io::Result<()> {
        match self {
            Self::Tcp(socket) => socket.register(registry, token, to),
            Self::Unix(socket) => socket.register(registry, token, to),
            Self::Ring => Ok(()),
            Self::Layered(layered) => layered.socket().register(registry, token, to),
        }
    }

    fn reregister(&mut self, registry: &Registry, token: Token, to: Interest) -> io::Result<()> {
        match self {
            Self::Tcp(socket) => socket.reregister(registry, token, to),
            Self::Unix(socket) => socket.reregister(registry, token, to),
            Self::Ring => Ok(()),
            Self::Layered(layered) => layered.socket().reregister(registry, token, to),
        }
    }

    fn deregister(&mut self, registry: &Registry) -> io::Result<()> {
        match self {
            Self::Tcp(socket) => socket.deregister(registry),
            Self::Unix(socket) => socket.deregister(registry),
            Self::Ring => Ok(()),
            Self::Layered(layered) => layered.socket().deregister(registry),
        }
    }
}
