//! A stream with something on top of its socket: a tunnel through a proxy, TLS, or both.
//!
//! What must be done before the first request goes step by step, as far as the socket lets it without
//! waiting. The plain path knows nothing of all this.
//!
//! Source: RFC 9110 section 9.3.6 (CONNECT), RFC 8446.

use std::cell::RefCell;
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, HandshakeKind};

use crate::report::TlsSession;
use crate::stream::Stream;
use crate::tls::{certificate, cipher_name};

/// One read of the socket takes at most this much: a record of TLS, which is also what rustls keeps of
/// plain bytes that nobody has asked for yet.
const CIPHERED_BYTES: usize = 16 * 1024;

/// Plain bytes that are encrypted at a time: what fits into one record.
const RECORD_BYTES_MAX: usize = 16 * 1024;

/// A proxy says in its head whether there is a tunnel, and need not say more than this.
const TUNNEL_HEAD_BYTES_MAX: usize = 16 * 1024;

thread_local! {
    /// What comes off a socket before it is decrypted. Empty between two reads, so one for all
    /// connections of a thread.
    static CIPHERED: RefCell<[u8; CIPHERED_BYTES]> = const { RefCell::new([0; CIPHERED_BYTES]) };
}

/// A socket, and what lies on top of it.
#[derive(Debug)]
pub(crate) struct Layered {
    socket: Stream,
    /// The tunnel, until it is there.
    tunnel: Option<Tunnel>,
    tls: Option<ClientConnection>,
    /// Whether the handshake has begun.
    begun: bool,
    /// Plain bytes that were taken and are not all on the socket.
    taken: usize,
    /// Whether the last read has emptied the socket.
    drained: bool,
    /// Whether the server has said that no more comes.
    ended: bool,
    /// Whether the socket ended and the server had not said so before.
    truncated: bool,
}

/// How far a connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The socket is not connected, or the proxy has not answered.
    Connecting,
    /// The handshake of TLS is under way.
    Handshake,
    /// Requests can be sent.
    Ready,
}

/// Why a connection came to nothing though its socket was connected.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Hindrance {
    /// The proxy will not.
    #[error("the proxy made no tunnel: {0}")]
    Tunnel(String),
    /// The handshake failed.
    #[error("{}", tls_text(.0))]
    Tls(rustls::Error),
    /// The server does not offer HTTP/2.
    #[error("the server does not speak HTTP/2 over TLS (ALPN)")]
    NoHttp2,
    /// The server answers HTTP/2 with something else.
    #[error("the server does not speak HTTP/2: {0}")]
    Http2(String),
    /// The server ended the connection instead.
    #[error("the connection was closed in the TLS handshake")]
    Closed,
}

#[derive(Debug)]
struct Tunnel {
    request: Vec<u8>,
    written: usize,
    answer: Vec<u8>,
}

impl Layered {
    /// Puts layers on a socket that is being connected: a tunnel that is asked for with `tunnel`, and
    /// TLS with a server of this name.
    ///
    /// # Errors
    ///
    /// When rustls will not begin.
    pub(crate) fn new(
        socket: Stream,
        tunnel: Option<&[u8]>,
        tls: Option<(&Arc<ClientConfig>, &ServerName<'static>)>,
    ) -> io::Result<Self> {
        let begin = |(configuration, name): (&Arc<ClientConfig>, &ServerName<'static>)| {
            ClientConnection::new(Arc::clone(configuration), name.clone())
                .map_err(|error| failed(Hindrance::Tls(error)))
        };
        Ok(Self {
            socket,
            tunnel: tunnel.map(|request| Tunnel {
                request: request.to_vec(),
                written: 0,
                answer: Vec::new(),
            }),
            tls: tls.map(begin).transpose()?,
            begun: false,
            taken: 0,
            drained: false,
            ended: false,
            truncated: false,
        })
    }

    /// The socket below.
    pub(crate) fn socket(&mut self) -> &mut Stream {
        &mut self.socket
    }

    /// Goes on with whatever comes before the first request.
    ///
    /// # Errors
    ///
    /// As the socket has them, and a [`Hindrance`].
    pub(crate) fn establish(&mut self) -> io::Result<Stage> {
        if let Some(tunnel) = &mut self.tunnel {
            match tunnel.advance(&mut self.socket) {
                Err(error) if is_waiting(&error) => return Ok(Stage::Connecting),
                other => other?,
            }
            self.tunnel = None;
            self.begun = true;
        }
        loop {
            let Some(tls) = &mut self.tls else { return Ok(Stage::Ready) };
            if !tls.is_handshaking() {
                // The last of the handshake goes out with the request.
                return Ok(Stage::Ready);
            }
            match flush(tls, &mut self.socket) {
                Err(error) if error.kind() == ErrorKind::NotConnected => {
                    return Ok(Stage::Connecting);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    return Ok(if self.begun { Stage::Handshake } else { Stage::Connecting });
                }
                other => other?,
            }
            self.begun = true;
            if !tls.is_handshaking() {
                return Ok(Stage::Ready);
            }
            match self.receive(&mut []) {
                Err(error) if is_waiting(&error) => return Ok(Stage::Handshake),
                Err(error) => return Err(error),
                Ok(_) if self.ended || self.truncated => return Err(failed(Hindrance::Closed)),
                Ok(_) => {}
            }
        }
    }

    /// Whether something waits until the socket takes it.
    pub(crate) fn wants_write(&self) -> bool {
        self.tunnel.as_ref().is_some_and(|tunnel| tunnel.written < tunnel.request.len())
            || self.tls.as_ref().is_some_and(|tls| tls.wants_write())
    }

    /// Whether the handshake took up an earlier session; `None` without TLS.
    pub(crate) fn is_resumed(&self) -> Option<bool> {
        let tls = self.tls.as_ref()?;
        Some(tls.handshake_kind() == Some(HandshakeKind::Resumed))
    }

    /// What was negotiated.
    pub(crate) fn session(&self) -> Option<TlsSession> {
        session_of(self.tls.as_ref()?)
    }

    /// As [`Stream::read`].
    ///
    /// # Errors
    ///
    /// As [`Stream::read`], and when what came is no TLS.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else {
            let length = self.socket.read(buffer)?;
            self.drained = length < buffer.len();
            return Ok(length);
        };
        match tls.reader().read(buffer) {
            Ok(length) if length > 0 => return Ok(length),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            // The end, said or not.
            _ => return Ok(0),
        }
        self.receive(buffer)
    }

    /// As [`Stream::write`]: bytes count as written when their record is on the socket.
    ///
    /// # Errors
    ///
    /// As [`Stream::write`].
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else { return self.socket.write(bytes) };
        if self.taken == 0 {
            self.taken = tls.writer().write(&bytes[..bytes.len().min(RECORD_BYTES_MAX)])?;
        }
        flush(tls, &mut self.socket)?;
        Ok(std::mem::take(&mut self.taken))
    }

    /// As [`Stream::is_emptied`].
    pub(crate) fn is_emptied(&self) -> bool {
        self.drained && !self.ended
    }

    /// Whether the socket ended and the server had not said before that this is all.
    pub(crate) fn is_truncated(&self) -> bool {
        self.truncated
    }

    /// Reads the socket and puts into `buffer` what it says. Zero is the end, or only news of TLS
    /// itself when `buffer` has no room.
    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Self { socket, tls: Some(tls), .. } = self else { return Ok(0) };
        CIPHERED.with_borrow_mut(|ciphered| {
            let mut filled = 0;
            loop {
                let length = socket.read(ciphered)?;
                self.drained = length < ciphered.len();
                let mut rest = &ciphered[..length];
                loop {
                    // An empty read tells rustls that the socket has ended.
                    tls.read_tls(&mut rest)?;
                    let state = tls.process_new_packets().map_err(|error| {
                        // The server is told why, if it still listens.
                        let _ = flush(tls, socket);
                        failed(Hindrance::Tls(error))
                    })?;
                    self.ended |= state.peer_has_closed();
                    if filled < buffer.len() {
                        match tls.reader().read(&mut buffer[filled..]) {
                            Ok(length) => filled += length,
                            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                            Err(_) => self.truncated = true,
                        }
                    }
                    if rest.is_empty() {
                        break;
                    }
                }
                if length == 0 {
                    self.truncated |= !self.ended;
                    return Ok(filled);
                }
                if filled > 0 || self.ended || buffer.is_empty() {
                    return Ok(filled);
                }
                if self.drained {
                    return Err(ErrorKind::WouldBlock.into());
                }
            }
        })
    }
}

impl Tunnel {
    /// Asks for the tunnel and reads the answer.
    fn advance(&mut self, socket: &mut Stream) -> io::Result<()> {
        while self.written < self.request.len() {
            self.written += socket.write(&self.request[self.written..])?;
        }
        let mut bytes = [0; 1024];
        loop {
            let length = socket.read(&mut bytes)?;
            if length == 0 {
                return Err(tunnel_closed());
            }
            self.answer.extend_from_slice(&bytes[..length]);
            if is_tunnel_made(&self.answer)? {
                return Ok(());
            }
        }
    }
}

/// Whether a proxy has made the tunnel, from its answer so far.
///
/// # Errors
///
/// When it has not, or when the answer is none.
pub(crate) fn is_tunnel_made(answer: &[u8]) -> io::Result<bool> {
    let Some(end) = memchr::memmem::find(answer, b"\r\n\r\n") else {
        if answer.len() > TUNNEL_HEAD_BYTES_MAX {
            return Err(failed(Hindrance::Tunnel("its answer has no end".to_owned())));
        }
        return Ok(false);
    };
    let line = answer.split(|&byte| byte == b'\r').next().unwrap_or_default();
    let is_made = line.starts_with(b"HTTP/1.") && line.get(8..10) == Some(b" 2");
    if !is_made {
        let line = line.escape_ascii().to_string();
        return Err(failed(Hindrance::Tunnel(line)));
    }
    if end + 4 < answer.len() {
        let surplus = "bytes of the server came before any were sent to it".to_owned();
        return Err(failed(Hindrance::Tunnel(surplus)));
    }
    Ok(true)
}

/// A proxy closed the connection that was to be a tunnel.
pub(crate) fn tunnel_closed() -> io::Error {
    failed(Hindrance::Tunnel("it closed the connection".to_owned()))
}

/// What was negotiated.
pub(crate) fn session_of(tls: &ClientConnection) -> Option<TlsSession> {
    let suite = tls.negotiated_cipher_suite()?.suite();
    let version = match tls.protocol_version()? {
        rustls::ProtocolVersion::TLSv1_2 => "TLSv1.2".to_owned(),
        rustls::ProtocolVersion::TLSv1_3 => "TLSv1.3".to_owned(),
        other => format!("{other:?}"),
    };
    let certificate = tls.peer_certificates().and_then(<[_]>::first);
    Some(TlsSession {
        version,
        cipher: cipher_name(suite),
        key_exchange: tls
            .negotiated_key_exchange_group()
            .map(|group| format!("{:?}", group.name())),
        server_key_bits: certificate.and_then(|it| certificate::key_bits(it)),
    })
}

/// Writes what TLS wants written.
fn flush(tls: &mut ClientConnection, socket: &mut Stream) -> io::Result<()> {
    while tls.wants_write() {
        tls.write_tls(&mut Sink(socket))?;
    }
    Ok(())
}

/// Records that wait go out with one system call.
struct Sink<'a>(&'a mut Stream);

impl Write for Sink<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.0.write_vectored(slices)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn is_waiting(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::NotConnected)
}

fn failed(hindrance: Hindrance) -> io::Error {
    io::Error::other(hindrance)
}

/// What rustls says, with what helps.
fn tls_text(error: &rustls::Error) -> String {
    let advice = match error {
        // Such as that of an authority, shown by a server as its own.
        rustls::Error::InvalidCertificate(rustls::CertificateError::Other(_)) => {
            "; only --insecure takes such a certificate"
        }
        rustls::Error::InvalidCertificate(_) => {
            "; trust its authority with --cacert, or any certificate with --insecure"
        }
        rustls::Error::InvalidMessage(_) => "; is it a TLS port at all?",
        rustls::Error::AlertReceived(_) => {
            "; versions, ciphers and the client's certificate are what servers refuse"
        }
        _ => "",
    };
    format!("TLS handshake failed: {error}{advice}")
}
