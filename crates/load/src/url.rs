//! Reads the URL of a target: what to connect to, and what goes into the request.
//!
//! Strict where guessing would measure something else: no user information, no character that a
//! server would have to repair, and no scheme but `http` and `https`.
//!
//! Source: RFC 3986 section 3, RFC 9110 section 4.2.1.

use std::io;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

use crate::endpoint::Endpoint;
use crate::target::{Scheme, Target};

/// How long one of several addresses of a host may take to answer when the first that works is
/// looked for.
const CONNECT_TRY: Duration = Duration::from_secs(1);

/// An absolute `http` or `https` URL, checked and taken apart.
///
/// ```
/// use milepost_load::HttpUrl;
///
/// let url = HttpUrl::parse("http://localhost:8080/test/1?a=b#part").unwrap();
/// assert_eq!((url.host(), url.port()), ("localhost", 8080));
/// assert_eq!(url.request_target(), "/test/1?a=b");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpUrl {
    scheme: Scheme,
    authority: String,
    host: String,
    port: u16,
    request_target: String,
}

/// Why a text is no URL that can be loaded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind}")]
pub struct UrlError {
    /// What is wrong.
    pub kind: UrlErrorKind,
    /// Where, in bytes from the start of the text.
    pub at: usize,
}

/// What can be wrong with a URL.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UrlErrorKind {
    /// Neither `http://` nor `https://` in front.
    #[error("a URL begins with http:// or https://")]
    NoScheme,
    /// A proxy that TLS is spoken with.
    #[error("TLS with the proxy itself is not done; the connection through it may well be TLS")]
    SecureProxy,
    /// Nothing between `//` and the path.
    #[error("the host is missing")]
    NoHost,
    /// `user@` in front of the host.
    #[error("user information before the host is not supported; send a field with -H")]
    UserInformation,
    /// The host has a character that none may have, or unbalanced brackets.
    #[error("the host is malformed")]
    Host,
    /// Not a number from 1 to 65535.
    #[error("the port is not a number from 1 to 65535")]
    Port,
    /// Space, control or non-ASCII character.
    #[error("{0:?} must be percent-encoded")]
    Character(char),
}

impl HttpUrl {
    /// Reads `text`. A fragment is left out: it is never sent.
    ///
    /// # Errors
    ///
    /// When it is not an absolute `http` or `https` URL.
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        let fail = |kind, at| Err(UrlError { kind, at });
        let Some((scheme, rest)) = text.split_once("://") else {
            return fail(UrlErrorKind::NoScheme, 0);
        };
        let scheme = match scheme {
            it if it.eq_ignore_ascii_case("http") => Scheme::Http,
            it if it.eq_ignore_ascii_case("https") => Scheme::Https,
            _ => return fail(UrlErrorKind::NoScheme, 0),
        };
        if let Some((at, character)) = text.char_indices().find(|(_, it)| !it.is_ascii_graphic()) {
            return fail(UrlErrorKind::Character(character), at);
        }
        let start = text.len() - rest.len();
        let rest = rest.split('#').next().unwrap_or_default();
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        if authority.contains('@') {
            return fail(UrlErrorKind::UserInformation, start);
        }
        let (host, port) = split_authority(authority, scheme)
            .map_err(|(kind, at)| UrlError { kind, at: start + at })?;
        let request_target = match path.chars().next() {
            Some('/') => path.to_owned(),
            _ => format!("/{path}"),
        };
        Ok(Self {
            scheme,
            authority: authority.trim_end_matches(':').to_owned(),
            host: host.to_owned(),
            port,
            request_target,
        })
    }

    /// The scheme.
    #[must_use]
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// Host and port as written, the value of the Host field.
    #[must_use]
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// Host without brackets.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Port; that of the scheme if none was written.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Path and query.
    #[must_use]
    pub fn request_target(&self) -> &str {
        &self.request_target
    }

    /// Looks up the address, once for the run. Of several, takes the first that accepts a
    /// connection, or the first if none does.
    ///
    /// # Errors
    ///
    /// When the host has no address.
    pub fn resolve(&self) -> io::Result<SocketAddr> {
        look_up(&self.host, self.port)
    }

    /// A `GET` of this URL from `address`.
    #[must_use]
    pub fn target(&self, address: impl Into<Endpoint>) -> Target {
        let mut target = Target::new(address, &*self.authority, &*self.request_target);
        target.scheme = self.scheme;
        target
    }
}

/// Looks up a host. Of several addresses, takes the first that accepts a connection, or the first if
/// none does.
pub(crate) fn look_up(host: &str, port: u16) -> io::Result<SocketAddr> {
    let addresses: Vec<_> = (host, port).to_socket_addrs()?.collect();
    if let [only] = addresses[..] {
        return Ok(only);
    }
    addresses
        .iter()
        .find(|address| TcpStream::connect_timeout(address, CONNECT_TRY).is_ok())
        .or(addresses.first())
        .copied()
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no address"))
}

/// Splits host and port; an error says where in the authority.
fn split_authority(authority: &str, scheme: Scheme) -> Result<(&str, u16), (UrlErrorKind, usize)> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, after) = rest.split_once(']').ok_or((UrlErrorKind::Host, 0))?;
            let port = match after.strip_prefix(':') {
                None if !after.is_empty() => {
                    return Err((UrlErrorKind::Host, authority.len() - after.len()));
                }
                port => port,
            };
            if host.parse::<std::net::Ipv6Addr>().is_err() {
                return Err((UrlErrorKind::Host, 1));
            }
            (host, port)
        }
        None => match authority.split_once(':') {
            None => (authority, None),
            Some((host, port)) => (host, Some(port)),
        },
    };
    if host.is_empty() {
        return Err((UrlErrorKind::NoHost, 0));
    }
    if let Some(at) = host.find(['[', ']', '\\', '<', '>', '"', '^', '`', '{', '|', '}']) {
        return Err((UrlErrorKind::Host, at));
    }
    let port = match port {
        None | Some("") => scheme.port(),
        Some(port) => {
            let at = authority.len() - port.len();
            let digits = port.bytes().all(|byte| byte.is_ascii_digit());
            let number = port.parse().ok().filter(|&number| digits && number > 0);
            number.ok_or((UrlErrorKind::Port, at))?
        }
    };
    Ok((host, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_taken_apart() {
        check("http://h", "h", "h", 80, "/");
        check("HTTP://H:8080/", "H:8080", "H", 8080, "/");
        check("http://h:/a", "h", "h", 80, "/a");
        check("http://127.0.0.1:1/a?b=c#d", "127.0.0.1:1", "127.0.0.1", 1, "/a?b=c");
        check("http://h?a", "h", "h", 80, "/?a");
        check("http://h#a", "h", "h", 80, "/");
        check("http://[::1]:81/a:b@c", "[::1]:81", "::1", 81, "/a:b@c");
        check("http://[::1]", "[::1]", "::1", 80, "/");
        check("http://h/a%20b//", "h", "h", 80, "/a%20b//");
        check("https://h", "h", "h", 443, "/");
        check("HTTPS://h:80/", "h:80", "h", 80, "/");
    }

    #[test]
    fn what_cannot_be_loaded_is_refused_with_its_place() {
        refuse("/a", UrlErrorKind::NoScheme, 0);
        refuse("localhost:80/a", UrlErrorKind::NoScheme, 0);
        refuse("ftp://h/", UrlErrorKind::NoScheme, 0);
        refuse("http:///a", UrlErrorKind::NoHost, 7);
        refuse("http://:80/a", UrlErrorKind::NoHost, 7);
        refuse("http://u@h/", UrlErrorKind::UserInformation, 7);
        refuse("http://h/a b", UrlErrorKind::Character(' '), 10);
        refuse("http://h/\u{e4}", UrlErrorKind::Character('\u{e4}'), 9);
        refuse("http://h:0/", UrlErrorKind::Port, 9);
        refuse("http://h:65536/", UrlErrorKind::Port, 9);
        refuse("http://h:+80/", UrlErrorKind::Port, 9);
        refuse("http://::1/", UrlErrorKind::NoHost, 7);
        refuse("http://[::1/", UrlErrorKind::Host, 7);
        refuse("http://[h]/", UrlErrorKind::Host, 8);
        refuse("http://[::1]80/", UrlErrorKind::Host, 12);
        refuse("http://a]/", UrlErrorKind::Host, 8);
    }

    #[track_caller]
    fn check(text: &str, authority: &str, host: &str, port: u16, request_target: &str) {
        let url = HttpUrl::parse(text).unwrap();
        let parts = (url.authority(), url.host(), url.port(), url.request_target());
        assert_eq!(parts, (authority, host, port, request_target));
    }

    #[track_caller]
    fn refuse(text: &str, kind: UrlErrorKind, at: usize) {
        assert_eq!(HttpUrl::parse(text), Err(UrlError { kind, at }));
    }
}
