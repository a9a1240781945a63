//! From an accepted connection to one that is encrypted; then it is served like any other.
//!
//! Source: RFC 8446 section 4; httpd 2.4.71 `modules/ssl/ssl_engine_io.c`, `ssl_io_filter_handshake`,
//! `ssl_io_filter_error` for plain HTTP on a port of TLS.

use std::io;
use std::rc::Rc;
use std::sync::Arc;

use rustls::HandshakeKind;
use rustls::server::Acceptor;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio_rustls::LazyConfigAcceptor;
use tokio_rustls::server::TlsStream;

use crate::deadline::before;
use crate::limits::{TLS_GOODBYE_TIMEOUT, TLS_RECORD_HANDSHAKE};
use crate::respond::{Peer, Respond};
use crate::worker::Worker;
use crate::{connection, http2};

use super::{Tls, TlsSession, name};

/// Shakes hands, and serves the connection until it ends.
pub(crate) async fn serve<R: Respond + 'static>(
    stream: TcpStream,
    peer: Peer,
    worker: Rc<Worker<R>>,
    tls: Arc<Tls>,
) {
    let slot = worker.deadlines.slot();
    let limit = worker.limits(worker.server_at(&peer)).handshake();
    slot.arm(worker.clock.after(limit));
    let first = before(&slot, &worker.clock, first_byte(&stream)).await;
    match first {
        Some(Ok(Some(TLS_RECORD_HANDSHAKE))) => {}
        Some(Ok(Some(_))) => return connection::refuse_plain(stream, peer, worker).await,
        Some(Ok(None) | Err(_)) | None => return,
    }
    let shaken = before(&slot, &worker.clock, shake(stream, &peer, &tls)).await;
    // Whoever fails in a handshake has been told so by an alert.
    let Some(Ok((mut stream, session))) = shaken else { return worker.counters.shaken(None) };
    let connection = stream.get_ref().1;
    let version = connection.protocol_version().and_then(name::of_version).unwrap_or_default();
    let resumed = connection.handshake_kind() == Some(HandshakeKind::Resumed);
    worker.counters.shaken(Some((version, resumed)));
    let speaks_h2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    let peer = Peer { tls: Some(Rc::new(session)), ..peer };
    drop(slot);
    drop(tls);
    if speaks_h2 {
        // Boxed, as the other kind needs less room.
        Box::pin(http2::serve(&mut stream, peer, Rc::clone(&worker))).await;
    } else {
        connection::serve(&mut stream, peer, Rc::clone(&worker)).await;
    }
    // Without this a client could not tell the end from somebody who cuts the line.
    let slot = worker.deadlines.slot();
    slot.arm(worker.clock.after(TLS_GOODBYE_TIMEOUT));
    let _ = before(&slot, &worker.clock, stream.shutdown()).await;
}

/// Waits for the first byte, and leaves it where it is; `None` at the end.
async fn first_byte(stream: &TcpStream) -> io::Result<Option<u8>> {
    let mut byte = [0];
    let count = stream.peek(&mut byte).await?;
    Ok((count > 0).then_some(byte[0]))
}

async fn shake(
    stream: TcpStream,
    peer: &Peer,
    tls: &Tls,
) -> io::Result<(TlsStream<TcpStream>, TlsSession)> {
    let start = LazyConfigAcceptor::new(Acceptor::default(), stream).await?;
    let hello = start.client_hello();
    let name = hello.server_name().map(Box::<str>::from);
    let chosen = tls.choose(peer.local, &hello).ok_or(io::ErrorKind::Unsupported)?;
    let stream = start.into_stream(Arc::clone(&chosen.config)).await?;
    let session = TlsSession::new(stream.get_ref().1, name, chosen);
    Ok((stream, session))
}
