//! The seam between connections and answers: a connection sees only `respond(head) -> reply`.
//!
//! A responder does not know how the request came or how its answer is framed and sent; a connection
//! does not know why the answer is what it is. Both a request and its reply live in storage that the
//! worker reuses, so that a redirect allocates nothing.

use std::cell::OnceCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use milepost_http::request::RequestHead;

use crate::http2::Http2Limits;
use crate::reply::Reply;
use crate::tls::{Tls, TlsSession};

/// The two ends of a connection.
#[derive(Debug, Clone)]
pub struct Peer {
    /// The socket's own address.
    pub local: SocketAddr,
    /// The client's address.
    pub remote: SocketAddr,
    /// What is known of the connection if it is TLS.
    pub tls: Option<Rc<TlsSession>>,
    /// What logs call the connection, once the error log has said anything about it.
    pub name: Rc<OnceCell<Box<str>>>,
}

impl Peer {
    /// The ends of a connection in the clear.
    #[must_use]
    pub fn new(local: SocketAddr, remote: SocketAddr) -> Peer {
        Peer { local, remote, tls: None, name: Rc::default() }
    }
}

/// Answers requests. Each worker has its own, so it needs no locks.
///
/// It is not asynchronous: an answer comes from memory or from a local file. While it is made, the
/// other connections of the worker wait.
pub trait Respond {
    /// Makes the reply to one request. `reply` is empty, with status 200.
    fn respond(&mut self, request: &RequestHead<'_>, peer: &Peer, reply: &mut Reply);

    /// Makes the reply to a request whose head could not be read, or did not arrive in time.
    fn respond_unread(&mut self, status: u16, _unread: &[u8], _peer: &Peer, reply: &mut Reply) {
        reply.error(status);
    }

    /// Whether [`Respond::note`] is to be called. Asked for each request, so it should know at once.
    fn takes_notes(&self) -> bool {
        false
    }

    /// The TLS of connections to `local`; `None` if they are in the clear. Asked once a connection.
    fn tls(&self, _local: SocketAddr) -> Option<Arc<Tls>> {
        None
    }

    /// The number of the server that a connection is for, before a request says otherwise. Asked only if
    /// servers have limits of their own, as is the next one.
    fn server_at(&self, _peer: &Peer) -> usize {
        0
    }

    /// The number of the server that [`Respond::respond`] has found for its request.
    fn server(&self) -> usize {
        0
    }

    /// Whether a connection to `local` that is in the clear may begin with HTTP/2.
    fn takes_direct_http2(&self, _local: SocketAddr) -> bool {
        false
    }

    /// What holds for an HTTP/2 connection.
    fn http2(&self, _peer: &Peer) -> Http2Limits {
        Http2Limits::default()
    }

    /// Takes note of an answer, after [`Respond::respond`] and before the next one; and of requests that
    /// could not be read, which nobody is asked to respond to.
    fn note(&mut self, _answered: &Answered<'_>, _peer: &Peer) {}
}

/// An answer as it is about to be sent.
#[derive(Debug, Clone, Copy)]
pub struct Answered<'a> {
    /// The request; `None` if it could not be read.
    pub head: Option<&'a RequestHead<'a>>,
    /// The request line as sent; empty if it did not arrive whole.
    pub line: &'a [u8],
    /// The status.
    pub status: u16,
    /// The head of the response.
    pub sent_head: &'a [u8],
    /// The number of bytes of content that are sent.
    pub content_bytes: u64,
    /// Answers that went through the connection before.
    pub kept: u32,
    /// Whether the connection goes on.
    pub goes_on: bool,
    /// When the request had been read.
    pub begun: Option<Instant>,
}

impl<F: FnMut(&RequestHead<'_>, &Peer, &mut Reply)> Respond for F {
    fn respond(&mut self, request: &RequestHead<'_>, peer: &Peer, reply: &mut Reply) {
        self(request, peer, reply);
    }
}
