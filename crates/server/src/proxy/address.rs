//! Where a URL leads: the socket to connect to, and what to ask for there.
//!
//! Source: RFC 9110 section 4.2; httpd 2.4.71 `modules/proxy/proxy_util.c`, `ap_proxy_determine_connection`.

use std::path::Path;

/// The parts of a URL of the engine, which has checked and normalised it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Address<'u> {
    /// The path of a Unix socket that is connected to instead of the host.
    pub(crate) socket: Option<&'u Path>,
    pub(crate) secure: bool,
    /// The scheme asks for a connection that is upgraded.
    pub(crate) is_web_socket: bool,
    /// Host and port as they stand in the URL: for `Host`.
    pub(crate) authority: &'u str,
    /// The host without brackets.
    pub(crate) host: &'u str,
    pub(crate) port: u16,
    /// Path and query.
    pub(crate) target: &'u [u8],
}

/// Splits a URL; `None` for one that leads nowhere, like that of a balancer.
pub(crate) fn split(url: &[u8]) -> Option<Address<'_>> {
    let (socket, url) = match url.strip_prefix(b"unix:") {
        Some(rest) => {
            let bar = memchr::memchr(b'|', rest)?;
            (Some(Path::new(std::str::from_utf8(&rest[..bar]).ok()?)), &rest[bar + 1..])
        }
        None => (None, url),
    };
    let colon = memchr::memchr(b':', url)?;
    let (secure, is_web_socket) = match &url[..colon] {
        b"http" => (false, false),
        b"https" => (true, false),
        b"ws" => (false, true),
        b"wss" => (true, true),
        _ => return None,
    };
    let rest = url[colon..].strip_prefix(b"://")?;
    let end = rest.iter().position(|byte| matches!(byte, b'/' | b'?')).unwrap_or(rest.len());
    let (authority, target) = rest.split_at(end);
    let authority = std::str::from_utf8(authority).ok().filter(|text| !text.is_empty())?;
    let bracket = authority.rfind(']').unwrap_or(0);
    let (host, port) = match authority[bracket..].rsplit_once(':') {
        Some((before, port)) => (&authority[..bracket + before.len()], port.parse().ok()?),
        None => (authority, if secure { 443 } else { 80 }),
    };
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    Some(Address { socket, secure, is_web_socket, authority, host, port, target })
}

impl Address<'_> {
    /// What is connected to, for messages.
    pub(crate) fn describe(&self) -> String {
        match self.socket {
            Some(path) => format!("unix:{}", path.display()),
            None if self.host.contains(':') => format!("[{}]:{}", self.host, self.port),
            None => format!("{}:{}", self.host, self.port),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_split() {
        for (url, authority, host, port, target) in [
            ("http://h/a?b", "h", "h", 80, "/a?b"),
            ("https://h:8443/", "h:8443", "h", 8443, "/"),
            ("http://[::1]:81/x", "[::1]:81", "::1", 81, "/x"),
            ("ws://[::1]/", "[::1]", "::1", 80, "/"),
            ("wss://h/", "h", "h", 443, "/"),
        ] {
            let address = split(url.as_bytes()).unwrap();
            assert_eq!((address.authority, address.host, address.port), (authority, host, port));
            assert_eq!(address.target, target.as_bytes());
        }
        let address = split(b"unix:/run/x.sock|http://h/a").unwrap();
        assert_eq!(address.socket, Some(Path::new("/run/x.sock")));
        assert_eq!(address.describe(), "unix:/run/x.sock");
        for url in ["balancer://x/", "http:///x", "http://h:x/", "unix:/x", "x"] {
            assert_eq!(split(url.as_bytes()), None, "{url}");
        }
    }
}
