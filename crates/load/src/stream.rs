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
    /// A socket and nothing on top, in a ring that is read from and written to in its place.
    Ring,
    /// What is below something on top of a socket in a ring.
    Piped(Piped),
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
            Self::Piped(piped) => piped.read(buffer),
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
            Self::Piped(piped) => Ok(piped.write(bytes)),
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
            Self::Piped(piped) => Ok(slices.iter().map(|slice| piped.write(slice)).sum()),
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
            Self::Ring | Self::Piped(_) => true,
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

/// Bytes on their way between a ring and what lies on top of one of its sockets.
#[derive(Debug, Default)]
pub(crate) struct Piped {
    incoming: Vec<u8>,
    /// How much of that was read.
    taken: usize,
    /// Whether nothing more comes.
    ended: bool,
    outgoing: Vec<u8>,
}

impl Piped {
    /// Something has come from the server.
    pub(crate) fn receive(&mut self, bytes: &[u8]) {
        self.incoming.extend_from_slice(bytes);
    }

    /// The server sends nothing more.
    pub(crate) fn end(&mut self) {
        self.ended = true;
    }

    /// What goes to the server.
    pub(crate) fn outgoing(&mut self) -> &mut Vec<u8> {
        &mut self.outgoing
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let rest = &self.incoming[self.taken..];
        if rest.is_empty() {
            return if self.ended { Ok(0) } else { Err(io::ErrorKind::WouldBlock.into()) };
        }
        let length = rest.len().min(buffer.len());
        buffer[..length].copy_from_slice(&rest[..length]);
        self.taken += length;
        if self.taken == self.incoming.len() {
            self.incoming.clear();
            self.taken = 0;
        }
        Ok(length)
    }

    fn write(&mut self, bytes: &[u8]) -> usize {
        self.outgoing.extend_from_slice(bytes);
        bytes.len()
    }
}

impl Source for Stream {
    fn register(&mut self, registry: &Registry, token: Token, to: Interest) -> io::Result<()> {
        match self {
            Self::Tcp(socket) => socket.register(registry, token, to),
            Self::Unix(socket) => socket.register(registry, token, to),
            Self::Ring | Self::Piped(_) => Ok(()),
            Self::Layered(layered) => layered.socket().register(registry, token, to),
        }
    }

    fn reregister(&mut self, registry: &Registry, token: Token, to: Interest) -> io::Result<()> {
        match self {
            Self::Tcp(socket) => socket.reregister(registry, token, to),
            Self::Unix(socket) => socket.reregister(registry, token, to),
            Self::Ring | Self::Piped(_) => Ok(()),
            Self::Layered(layered) => layered.socket().reregister(registry, token, to),
        }
    }

    fn deregister(&mut self, registry: &Registry) -> io::Result<()> {
        match self {
            Self::Tcp(socket) => socket.deregister(registry),
            Self::Unix(socket) => socket.deregister(registry),
            Self::Ring | Self::Piped(_) => Ok(()),
            Self::Layered(layered) => layered.socket().deregister(registry),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_through_a_pipe_is_read_in_pieces_up_to_its_end() {
        let mut stream = Stream::Piped(Piped::default());
        let mut buffer = [0; 4];
        let mut read = |stream: &mut Stream| {
            stream.read(&mut buffer).map(|length| buffer[..length].to_vec()).map_err(|it| it.kind())
        };
        assert_eq!(read(&mut stream), Err(io::ErrorKind::WouldBlock));
        let Stream::Piped(piped) = &mut stream else { unreachable!() };
        piped.receive(b"abc");
        piped.receive(b"def");
        piped.end();
        assert_eq!(read(&mut stream), Ok(b"abcd".to_vec()));
        assert_eq!(read(&mut stream), Ok(b"ef".to_vec()));
        assert_eq!(read(&mut stream), Ok(Vec::new()));
        assert_eq!(stream.write(b"x").unwrap(), 1);
        assert_eq!(stream.write_vectored(&[IoSlice::new(b"y"), IoSlice::new(b"zz")]).unwrap(), 3);
        let Stream::Piped(piped) = &mut stream else { unreachable!() };
        assert_eq!(piped.outgoing(), b"xyzz");
    }
}
