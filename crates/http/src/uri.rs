//! Splits a URI as APR does, which decides what `RedirectMatch` makes of its target.
//!
//! It is looser than RFC 3986: nothing is checked but the port, and what cannot be parsed is dropped.
//!
//! Source: apr-util 1.6 `uri/apr_uri.c`, `apr_uri_parse` and `apr_uri_unparse`.

/// The parts of a URI, borrowed from its text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Uri<'a> {
    /// Before the first `:`.
    pub scheme: Option<&'a [u8]>,
    /// Before the last `@` of the authority, up to its first `:`.
    pub user: Option<&'a [u8]>,
    /// After that `:`.
    pub password: Option<&'a [u8]>,
    /// Without brackets.
    pub host: Option<&'a [u8]>,
    /// After the `:`, as written.
    pub port: Option<&'a [u8]>,
    /// Up to `?` or `#`; `None` also when the port was malformed.
    pub path: Option<&'a [u8]>,
    /// Between `?` and `#`.
    pub query: Option<&'a [u8]>,
    /// After `#`.
    pub fragment: Option<&'a [u8]>,
    /// The authority is malformed, and what follows it left out.
    pub is_cut: bool,
}

impl<'a> Uri<'a> {
    /// Splits `text`. What follows a malformed authority is left out, as APR does.
    pub fn parse(text: &'a [u8]) -> Uri<'a> {
        let mut uri = Uri::default();
        let scheme_end = text.iter().position(|byte| b":/?#".contains(byte));
        let rest = match scheme_end {
            Some(end) if end > 0 && text[end] == b':' => {
                uri.scheme = Some(&text[..end]);
                &text[end + 1..]
            }
            _ => text,
        };
        match rest.strip_prefix(b"//") {
            Some(after) if uri.scheme.is_some() => {
                let end =
                    after.iter().position(|byte| b"/?#".contains(byte)).unwrap_or(after.len());
                uri.is_cut = !uri.parse_authority(&after[..end]);
                if !uri.is_cut {
                    uri.parse_path(&after[end..]);
                }
            }
            _ => uri.parse_path(rest),
        }
        uri
    }

    /// Appends scheme, authority and path, without query and fragment; a default port is left out and
    /// a password is hidden.
    pub fn write_without_query(&self, out: &mut Vec<u8>) {
        if let Some(scheme) = self.scheme {
            out.extend_from_slice(scheme);
            out.push(b':');
        }
        if let Some(host) = self.host {
            out.extend_from_slice(b"//");
            if self.user.is_some() || self.password.is_some() {
                out.extend_from_slice(self.user.unwrap_or_default());
                if self.password.is_some() {
                    out.extend_from_slice(b":XXXXXXXX");
                }
                out.push(b'@');
            }
            let brackets = host.contains(&b':');
            out.extend_from_slice(if brackets { b"[" } else { b"" });
            out.extend_from_slice(host);
            out.extend_from_slice(if brackets { b"]" } else { b"" });
            if let Some(port) = self.port
                && let number = leading_number(port)
                && number != 0
                && Some(number) != self.scheme.and_then(default_port).map(u64::from)
            {
                out.push(b':');
                out.extend_from_slice(port);
            }
        }
        out.extend_from_slice(self.path.unwrap_or_default());
    }

    /// Splits the authority; false when nothing after it is to be read.
    fn parse_authority(&mut self, authority: &'a [u8]) -> bool {
        let host_and_port = match memchr::memrchr(b'@', authority) {
            None => authority,
            Some(at) => {
                let user = &authority[..at];
                match memchr::memchr(b':', user) {
                    None => self.user = Some(user),
                    Some(colon) => {
                        self.user = Some(&user[..colon]);
                        self.password = Some(&user[colon + 1..]);
                    }
                }
                &authority[at + 1..]
            }
        };
        let port = if host_and_port.first() == Some(&b'[') {
            let Some(end) = memchr::memchr(b']', host_and_port) else { return false };
            self.host = Some(&host_and_port[1..end]);
            host_and_port[end + 1..].strip_prefix(b":")
        } else {
            let end = memchr::memchr(b':', host_and_port);
            self.host = Some(&host_and_port[..end.unwrap_or(host_and_port.len())]);
            end.map(|colon| &host_and_port[colon + 1..])
        };
        self.port = port;
        port.is_none_or(|port| port.iter().all(u8::is_ascii_digit))
    }

    fn parse_path(&mut self, rest: &'a [u8]) {
        let end = rest.iter().position(|byte| b"?#".contains(byte)).unwrap_or(rest.len());
        self.path = (end > 0).then(|| &rest[..end]);
        match rest.get(end) {
            Some(b'?') => {
                let query = &rest[end + 1..];
                match memchr::memchr(b'#', query) {
                    None => self.query = Some(query),
                    Some(hash) => {
                        self.query = Some(&query[..hash]);
                        self.fragment = Some(&query[hash + 1..]);
                    }
                }
            }
            Some(_) => self.fragment = Some(&rest[end + 1..]),
            None => {}
        }
    }
}

/// Returns the port that a URI of `scheme` (any case) has when it names none.
pub fn default_port(scheme: &[u8]) -> Option<u16> {
    const PORTS: &[(&[u8], u16)] = &[
        (b"http", 80),
        (b"https", 443),
        (b"ftp", 21),
        (b"ssh", 22),
        (b"telnet", 23),
        (b"gopher", 70),
        (b"pop", 110),
        (b"nntp", 119),
        (b"imap", 143),
        (b"prospero", 191),
        (b"wais", 210),
        (b"ldap", 389),
        (b"rtsp", 554),
        (b"snews", 563),
        (b"acap", 674),
        (b"nfs", 2049),
        (b"tip", 3372),
        (b"sip", 5060),
    ];
    PORTS.iter().find(|(name, _)| name.eq_ignore_ascii_case(scheme)).map(|&(_, port)| port)
}

/// The value of the digits that `text` starts with, as `strtol` reads it.
fn leading_number(text: &[u8]) -> u64 {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit());
    digits.fold(0, |number: u64, digit| {
        number.saturating_mul(10).saturating_add(u64::from(digit - b'0'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_ports_and_passwords_go() {
        check("http://t:80/x", "http://t/x");
        check("https://t:443", "https://t");
        check("http://t:8080/x?y#z", "http://t:8080/x");
        check("http://u:p@t/x", "http://u:XXXXXXXX@t/x");
        check("http://[::1]/x", "http://[::1]/x");
    }

    #[test]
    fn a_bad_port_drops_the_rest() {
        check("http://t:abc/x", "http://t");
    }

    #[test]
    fn relative_and_opaque() {
        check("/a/b?c", "/a/b");
        check("mailto:a@b", "mailto:a@b");
        check("//host/x", "//host/x");
        assert_eq!(Uri::parse(b"a?b?c#d#e").query, Some(&b"b?c"[..]));
        assert_eq!(Uri::parse(b"a#d?e").fragment, Some(&b"d?e"[..]));
    }

    #[track_caller]
    fn check(text: &str, written: &str) {
        let mut out = Vec::new();
        Uri::parse(text.as_bytes()).write_without_query(&mut out);
        assert_eq!(String::from_utf8(out).unwrap(), written);
    }
}
