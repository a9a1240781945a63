//! A TCP connection: by itself, and as the runtime has it when there is something to wait for.
//!
//! A client that connects sends its request at once, so the request is usually there when the connection has
//! been accepted. Reading it before anybody is told to wait for it, and closing after the answer, saves two system
//! calls of six in the life of a connection that is used once. It costs one where the request is not there yet.
//!
//! The last bytes before the end go in one packet with it, which they do when the kernel is told that more is to
//! come (`MSG_MORE`) and the end is what comes.
//!
//! Source: send(2); Linux `net/ipv4/tcp_output.c`, `tcp_send_fin`.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use rustix::net::{RecvFlags, SendFlags, SocketFlags, acceptfrom_with, recv, send};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::server::TlsStream;

/// What the bytes of a connection go over.
pub(crate) trait Transport: AsyncRead + AsyncWrite + Unpin {
    /// Says that the end follows the next write at once, so that its bytes may be kept until then.
    fn expect_end(&mut self) {}
}

impl Transport for TcpStream {}
impl Transport for UnixStream {}
impl<S: AsyncRead + AsyncWrite + Unpin> Transport for TlsStream<S> {}

#[cfg(test)]
impl Transport for tokio::io::DuplexStream {}

impl<T: Transport> Transport for &mut T {
    fn expect_end(&mut self) {
        T::expect_end(self);
    }
}

impl Transport for Socket {
    fn expect_end(&mut self) {
        self.flags |= SendFlags::MORE;
    }
}

/// A connection that was accepted, which nobody waits for yet.
#[derive(Debug)]
pub(crate) struct Bare {
    stream: std::net::TcpStream,
    /// How to send.
    flags: SendFlags,
}

/// Accepts the next connection that waits at a listener, if one does.
///
/// # Errors
/// Those of accept4(2); [`ErrorKind::WouldBlock`] if none waits.
pub(crate) fn accept(listener: impl AsFd) -> io::Result<(Bare, SocketAddr)> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let (socket, address) = acceptfrom_with(listener, flags)?;
    let address = address.and_then(|address| SocketAddr::try_from(address).ok());
    let remote = address.ok_or(ErrorKind::ConnectionAborted)?;
    Ok((Bare { stream: socket.into(), flags: SendFlags::NOSIGNAL }, remote))
}

impl Bare {
    /// The address of our end.
    ///
    /// # Errors
    /// Those of getsockname(2).
    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.stream.local_addr()
    }

    /// Reads what is there, and returns how many bytes that was; 0 at the end.
    ///
    /// # Errors
    /// Those of recv(2); [`ErrorKind::WouldBlock`] if there is nothing.
    pub(crate) fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let (_, count) = recv(&self.stream, buffer, RecvFlags::empty())?;
        Ok(count)
    }

    /// Says that the end follows the next bytes at once, so that they may be kept until then.
    pub(crate) fn expect_end(&mut self) {
        self.flags |= SendFlags::MORE;
    }

    /// Sends as many of the bytes as there is room for, and returns how many those were.
    ///
    /// # Errors
    /// Those of send(2); [`ErrorKind::WouldBlock`] if there is no room.
    pub(crate) fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        Ok(send(&self.stream, bytes, self.flags)?)
    }

    /// The connection as the runtime has it.
    ///
    /// # Errors
    /// When the runtime cannot wait for one more.
    pub(crate) fn into_known(self) -> io::Result<TcpStream> {
        TcpStream::from_std(self.stream)
    }
}

impl AsFd for Bare {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

/// A connection that the runtime waits for.
#[derive(Debug)]
pub(crate) struct Socket {
    stream: TcpStream,
    /// How to send.
    flags: SendFlags,
    /// The last read has left nothing behind.
    is_drained: bool,
    /// Something has been written since the last read.
    has_written: bool,
}

impl TryFrom<Bare> for Socket {
    type Error = io::Error;

    fn try_from(bare: Bare) -> io::Result<Socket> {
        let flags = bare.flags;
        Ok(Socket { stream: bare.into_known()?, flags, is_drained: true, has_written: false })
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        // The runtime makes a task pause that asks it too often, which is one that never has to wait. After
        // a read that has left nothing behind there is no need to ask: it says so by itself.
        let asks = !self.is_drained;
        let stream = &self.stream;
        if asks {
            ready!(stream.poll_read_ready(context))?;
        }
        let room = buffer.remaining();
        let count = loop {
            match read(stream, buffer.initialize_unfilled()) {
                Poll::Ready(count) => break count?,
                Poll::Pending => ready!(stream.poll_read_ready(context))?,
            }
        };
        buffer.advance(count);
        self.is_drained = count < room;
        self.has_written = false;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let flags = self.flags;
        // What follows a read is the answer to it. Whoever writes more must pause now and then.
        let asks = std::mem::replace(&mut self.has_written, true);
        let stream = &self.stream;
        if asks {
            ready!(stream.poll_write_ready(context))?;
        }
        loop {
            let result = stream.try_io(Interest::WRITABLE, || Ok(send(stream, bytes, flags)?));
            match at_once(result) {
                Poll::Ready(count) => return Poll::Ready(count),
                Poll::Pending => ready!(stream.poll_write_ready(context))?,
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // There is no buffer of ours.
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// Reads what is there, if the runtime has heard that there is something.
///
/// The runtime is told when all of it has been read, as [`TcpStream`] does by itself: it hears of what comes after.
#[inline]
fn read(stream: &TcpStream, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
    let mut read = None;
    let result = stream.try_io(Interest::READABLE, || {
        let (_, count) = recv(stream, &mut *buffer, RecvFlags::empty())?;
        read = Some(count);
        let is_drained = 0 < count && count < buffer.len();
        if is_drained { Err(ErrorKind::WouldBlock.into()) } else { Ok(count) }
    });
    match read {
        Some(count) => Poll::Ready(Ok(count)),
        None => at_once(result),
    }
}

/// What came of a system call, unless it has to be waited for.
fn at_once(result: io::Result<usize>) -> Poll<io::Result<usize>> {
    match result {
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
            Poll::Pending
        }
        result => Poll::Ready(result),
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::runtime::Builder;

    use super::*;

    fn run(test: impl Future<Output = ()>) {
        Builder::new_current_thread().enable_io().build().unwrap().block_on(test);
    }

    fn pair() -> (std::net::TcpStream, Bare) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        assert_eq!(accept(&listener).unwrap_err().kind(), ErrorKind::WouldBlock);
        let client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (bare, remote) = accept(&listener).unwrap();
        assert_eq!(remote, client.local_addr().unwrap());
        assert_eq!(bare.local_addr().unwrap(), client.peer_addr().unwrap());
        (client, bare)
    }

    #[test]
    fn what_is_there_needs_no_runtime() {
        let (mut client, bare) = pair();
        let mut bytes = [0; 16];
        assert_eq!(bare.receive(&mut bytes).unwrap_err().kind(), ErrorKind::WouldBlock);
        client.write_all(b"request").unwrap();
        assert_eq!(bare.receive(&mut bytes).unwrap(), 7);
        assert_eq!(bare.send(b"answer").unwrap(), 6);
        drop(bare);
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        assert_eq!(answer, "answer");
    }

    #[test]
    fn what_is_not_there_is_waited_for() {
        run(async {
            let (mut client, bare) = pair();
            let mut socket = Socket::try_from(bare).unwrap();
            let mut bytes = [0; 16];
            let first = poll_fn(|context| {
                let mut buffer = ReadBuf::new(&mut bytes);
                Poll::Ready(Pin::new(&mut socket).poll_read(context, &mut buffer).is_pending())
            });
            assert!(first.await);
            client.write_all(b"request").unwrap();
            let count = socket.read(&mut bytes).await;
            assert_eq!(count.unwrap(), 7);
            drop(client);
            assert_eq!(socket.read(&mut bytes).await.unwrap(), 0);
        });
    }

    #[test]
    fn what_is_kept_until_the_end_arrives() {
        for len in [1, 1 << 20] {
            let (mut client, mut bare) = pair();
            let reader = std::thread::spawn(move || {
                let mut received = Vec::new();
                client.read_to_end(&mut received).map(|count| (count, received[0]))
            });
            bare.send(b"first").unwrap();
            bare.expect_end();
            run(async {
                let mut socket = Socket::try_from(bare).unwrap();
                socket.write_all(&vec![b'x'; len]).await.unwrap();
            });
            assert_eq!(reader.join().unwrap().unwrap(), (b"first".len() + len, b'f'));
        }
    }

    #[test]
    fn a_client_that_does_not_read_is_waited_for() {
        run(async {
            let (mut client, bare) = pair();
            let mut socket = Socket::try_from(bare).unwrap();
            let sent = vec![b'x'; 16 << 20];
            let count = sent.len();
            let reader = std::thread::spawn(move || {
                let mut received = vec![0; count];
                client.read_exact(&mut received).map(|()| received)
            });
            socket.write_all(&sent).await.unwrap();
            assert_eq!(reader.join().unwrap().unwrap(), sent);
        });
    }

    #[test]
    fn who_never_has_to_wait_pauses_now_and_then() {
        const BYTES: usize = 1000;
        run(async {
            let (mut client, bare) = pair();
            let mut socket = Socket::try_from(bare).unwrap();
            client.write_all(&[b'x'; BYTES]).unwrap();
            let mut pauses = [0, 0];
            let mut byte = [0];
            for _ in 0..BYTES {
                let read = poll_fn(|context| {
                    let read =
                        Pin::new(&mut socket).poll_read(context, &mut ReadBuf::new(&mut byte));
                    pauses[0] += usize::from(read.is_pending());
                    read
                });
                read.await.unwrap();
            }
            for _ in 0..BYTES {
                let write = poll_fn(|context| {
                    let write = Pin::new(&mut socket).poll_write(context, b"x");
                    pauses[1] += usize::from(write.is_pending());
                    write
                });
                assert_eq!(write.await.unwrap(), 1);
            }
            // The runtime lets a task do some hundred things at a time.
            assert!(pauses.iter().all(|&pauses| pauses >= 3), "{pauses:?}");
        });
    }
}
