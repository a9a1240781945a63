//! The seam between connections and answers: a connection sees only `respond(head) -> reply`.
//!
//! A responder does not know how the request came or how its answer is framed and sent; a connection
//! does not know why the answer is what it is. Both a request and its reply live in storage that the
//! worker reuses, so that a redirect allocates nothing.

use std::net::SocketAddr;

use milepost_http::request::RequestHead;

use crate::reply::Reply;

/// The two ends of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// The socket's own address.
    pub local: SocketAddr,
    /// The client's address.
    pub remote: SocketAddr,
}

/// Answers requests. Each worker has its own, so it needs no locks.
///
/// It is not asynchronous: an answer comes from memory or from a local file. While it is made, the
/// other connections of the worker wait.
pub trait Respond {
    /// Makes the reply to one request. `reply` is empty, with status 200.
    fn respond(&mut self, request: &RequestHead<'_>, peer: &Peer, reply: &mut Reply);
}

impl<F: FnMut(&RequestHead<'_>, &Peer, &mut Reply)> Respond for F {
    fn respond(&mut self, request: &RequestHead<'_>, peer: &Peer, reply: &mut Reply) {
        self(request, peer, reply);
    }
}
