//! A request as the engine sees it: borrowed parts of a message head and of its connection.

use std::borrow::Cow;
use std::net::SocketAddr;

use crate::tls::Tls;

/// The parts of a request that can decide where it goes.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// The method, as sent: `GET`.
    pub method: &'a [u8],
    /// The request-target as sent, any of the four forms of RFC 9112 section 3.2.
    pub target: &'a [u8],
    /// The protocol version of the message head.
    pub version: Version,
    /// `https` when the connection is TLS.
    pub scheme: Scheme,
    /// What is known of the connection if it is TLS.
    pub tls: Option<Tls<'a>>,
    /// All field lines, for `%{HTTP:name}`, `Host` included.
    pub fields: &'a dyn Fields,
    /// The socket's own address.
    pub local: SocketAddr,
    /// The client's address.
    pub remote: SocketAddr,
}

/// Looks up field values by name.
pub trait Fields {
    /// Returns the value of field `name` (any case); several field lines are joined with `, `.
    fn value(&self, name: &str) -> Option<Cow<'_, [u8]>>;

    /// Returns how many field lines are called `name` (any case).
    fn count(&self, name: &str) -> usize;

    /// Returns how many field lines are called `name` (any case), and what [`Fields::value`] says.
    fn counted(&self, name: &str) -> (usize, Option<Cow<'_, [u8]>>) {
        (self.count(name), self.value(name))
    }

    /// Returns the name of field line `number`, counted from 0; `None` when there are no more.
    fn name(&self, number: usize) -> Option<&str>;
}

/// A request without any field line.
pub struct NoFields;

impl Fields for NoFields {
    fn value(&self, _name: &str) -> Option<Cow<'_, [u8]>> {
        None
    }

    fn count(&self, _name: &str) -> usize {
        0
    }

    fn name(&self, _number: usize) -> Option<&str> {
        None
    }
}

impl Fields for [(&str, &[u8])] {
    fn value(&self, name: &str) -> Option<Cow<'_, [u8]>> {
        let mut found: Option<Cow<'_, [u8]>> = None;
        for (_, value) in self.iter().filter(|(field, _)| field.eq_ignore_ascii_case(name)) {
            match &mut found {
                None => found = Some(Cow::Borrowed(value)),
                Some(joined) => {
                    let joined = joined.to_mut();
                    joined.extend_from_slice(b", ");
                    joined.extend_from_slice(value);
                }
            }
        }
        found
    }

    fn count(&self, name: &str) -> usize {
        self.iter().filter(|(field, _)| field.eq_ignore_ascii_case(name)).count()
    }

    fn counted(&self, name: &str) -> (usize, Option<Cow<'_, [u8]>>) {
        let mut same = self.iter().filter(|(field, _)| field.eq_ignore_ascii_case(name));
        let first = same.next().map(|&(_, value)| Cow::Borrowed(value));
        match same.count() {
            0 => (usize::from(first.is_some()), first),
            more => (1 + more, self.value(name)),
        }
    }

    fn name(&self, number: usize) -> Option<&str> {
        self.get(number).map(|(name, _)| *name)
    }
}

/// Whether the request came over TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// Plain TCP.
    Http,
    /// TLS.
    Https,
}

/// The HTTP version of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// HTTP/1.0.
    Http10,
    /// HTTP/1.1.
    Http11,
    /// HTTP/2.
    Http2,
}
