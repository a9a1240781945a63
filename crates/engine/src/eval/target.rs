//! Reads the request-target and the `Host` field.
//!
//! Source: httpd 2.4.71 `server/protocol.c` `ap_parse_uri`, `server/vhost.c` `fix_hostname`,
//! `fix_hostname_non_v6`; RFC 9112 section 3.2.

use milepost_http::uri::{Uri, default_port};

use super::identity::select;
use crate::program::Program;
use crate::request::{Request, Scheme, Version};
use crate::words::is_bare_path;

/// The name in the last `Host` field. Most clients say the same again and again.
#[derive(Debug, Default)]
pub(super) struct Host {
    /// In lower case, without a last dot; empty if there is none.
    pub(super) name: Vec<u8>,
    /// The field that was read, and the port in it; empty if there was none, or none that is right.
    field: Vec<u8>,
    port: Option<u16>,
    /// The request has one `Host` field, and it is what was read.
    is_sent: bool,
}

impl Host {
    /// There is no host.
    pub(super) fn clear(&mut self) {
        self.name.clear();
        self.field.clear();
        self.is_sent = false;
    }

    /// The value of the `Host` field; `None` if there is none, or there are several, or the target has an
    /// authority of its own.
    pub(super) fn sent(&self) -> Option<&[u8]> {
        self.is_sent.then_some(&self.field)
    }

    /// Reads the value of a `Host` field and returns its port.
    fn read(&mut self, field: &[u8]) -> Result<Option<u16>, u16> {
        if !field.is_empty() && self.field == field {
            return Ok(self.port);
        }
        self.clear();
        self.port = split_host(field, &mut self.name)?;
        self.field.extend_from_slice(field);
        Ok(self.port)
    }
}

/// What a request-target names.
pub(super) enum Target<'a> {
    /// A path and a query string, for the host that was written into the buffer.
    Path {
        path: &'a [u8],
        /// The path needs no decoding, and nothing in it needs to be merged.
        is_bare: bool,
        args: Option<&'a [u8]>,
        port: Option<u16>,
        /// The authority of an absolute-form, which replaces the `Host` field.
        authority: Option<&'a [u8]>,
    },
    /// `OPTIONS *`
    Asterisk,
}

/// Parses target and host; the host's name goes to `host`.
///
/// Errors are statuses.
pub(super) fn parse<'a>(
    program: &Program,
    request: &Request<'a>,
    line_bytes_max: usize,
    host: &mut Host,
) -> Result<Target<'a>, u16> {
    let target = request.target;
    let is_bare = is_bare_path(target);
    let scan = if is_bare {
        Scan { is_forbidden: false, path_end: target.len() }
    } else {
        Scan::of(target)
    };
    if scan.is_forbidden {
        return Err(400);
    }
    let (hosts, field) = request.fields.counted("host");
    if hosts > 1 || hosts == 0 && request.version >= Version::Http11 {
        return Err(400);
    }
    let uri = (!is_bare && target.first() != Some(&b'/')).then(|| Uri::parse(target));
    let authority = if is_bare { None } else { own_authority(program, request) };
    // That of the target counts where the `Host` field names none, even if its host does not count.
    let named_port = uri.as_ref().and_then(port_of);
    let port = match (authority, &field) {
        (Some(authority), _) if !authority.is_empty() => {
            let port = uri.as_ref().and_then(|uri| uri.port);
            let name_end = port.map_or(authority.len(), |port| authority.len() - port.len() - 1);
            host.read(&authority[..name_end])?;
            named_port
        }
        (None, Some(field)) => match host.read(field)? {
            Some(0) => return Err(400),
            port => port.or(named_port),
        },
        (Some(_) | None, _) => {
            host.clear();
            named_port
        }
    };
    host.is_sent = hosts == 1 && authority.is_none();
    if request.method.len() + target.len() + b"  HTTP/1.1".len() > line_bytes_max {
        return Err(414);
    }
    if request.method == b"CONNECT" {
        return Ok(Target::Path { path: b"/", is_bare: true, args: None, port, authority: None });
    }
    if target == b"*" {
        return if request.method == b"OPTIONS" { Ok(Target::Asterisk) } else { Err(400) };
    }
    if is_bare {
        return Ok(Target::Path { path: target, is_bare, args: None, port, authority: None });
    }
    if target.first() == Some(&b'/') {
        // More than one leading slash would read as an authority.
        let slashes = target.iter().take_while(|&&byte| byte == b'/').count();
        let path = &target[slashes - 1..scan.path_end];
        let args = target.get(scan.path_end + 1..);
        return Ok(Target::Path { path, is_bare, args, port, authority: None });
    }
    let uri = uri.unwrap_or_default();
    if uri.is_cut {
        return Err(400);
    }
    let path = uri.path.unwrap_or(b"/");
    if path.first() != Some(&b'/') || uri.user.is_some() || uri.password.is_some() {
        return Err(400);
    }
    if uri.scheme.is_some_and(|scheme| !is_web(scheme)) {
        return Err(400);
    }
    let authority = authority.filter(|_| hosts > 0);
    Ok(Target::Path { path, is_bare, args: uri.query, port, authority })
}

/// What is understood of a target that is refused: path and query string, and whether the line itself is refused,
/// so that no field of the request is read.
pub(super) fn refused<'a>(request: &Request<'a>) -> (&'a [u8], Option<&'a [u8]>, bool) {
    let target = request.target;
    let end = target.iter().position(|byte| *byte <= b' ' || *byte == 0x7f);
    let is_cut = end.is_some() || target.contains(&b'#');
    let target = &target[..end.unwrap_or(target.len())];
    if target.first() == Some(&b'/') {
        let slashes = target.iter().take_while(|&&byte| byte == b'/').count();
        let (path, args) = split_query(&target[slashes - 1..]);
        return (path, args, is_cut);
    }
    let uri = Uri::parse(target);
    if uri.is_cut {
        return (target, None, true);
    }
    let path = uri.path.unwrap_or(b"/");
    let is_path = path.first() == Some(&b'/') || request.method == b"OPTIONS" && path == b"*";
    let is_wrong = !is_path || uri.user.is_some() || uri.password.is_some();
    (path, uri.query, is_cut || is_wrong)
}

/// The port that a target names, as 16 bits hold it: without digits that of its scheme.
fn port_of(uri: &Uri<'_>) -> Option<u16> {
    let port = uri.port?;
    if port.is_empty() {
        return uri.scheme.and_then(default_port);
    }
    let digit = |byte: &u8| u16::from(byte.wrapping_sub(b'0'));
    Some(port.iter().fold(0, |port: u16, byte| port.wrapping_mul(10).wrapping_add(digit(byte))))
}

fn is_web(scheme: &[u8]) -> bool {
    scheme.eq_ignore_ascii_case(b"http") || scheme.eq_ignore_ascii_case(b"https")
}

/// The authority of an absolute-form, which may be empty. It stands for the `Host` field where its scheme is that of the
/// connection, or of the first server there.
fn own_authority<'a>(program: &Program, request: &Request<'a>) -> Option<&'a [u8]> {
    let target = request.target;
    let colon = memchr::memchr(b':', target).filter(|_| target.first() != Some(&b'/'))?;
    // Which server it is for is not known yet.
    let server = &program.servers[select(program, request.local, b"", b"")];
    let is_https = request.scheme == Scheme::Https || server.name.is_some_and(|name| name.https);
    if !target[..colon].eq_ignore_ascii_case(if is_https { b"https" } else { b"http" }) {
        return None;
    }
    let rest = target[colon..].strip_prefix(b"://")?;
    let end = rest.iter().position(|byte| b"/?".contains(byte)).unwrap_or(rest.len());
    Some(&rest[..end])
}

/// What one look at a request-target tells.
struct Scan {
    /// It has a byte that no request-target has: a blank, a control byte, the sign of a fragment.
    is_forbidden: bool,
    /// Where the first `?` is, or the end.
    path_end: usize,
}

impl Scan {
    fn of(target: &[u8]) -> Scan {
        let is_plain = |&byte: &u8| IS_PLAIN[usize::from(byte)];
        let path_end = target.iter().position(|byte| !is_plain(byte)).unwrap_or(target.len());
        let is_forbidden = match target.get(path_end..) {
            Some([b'?', query @ ..]) => !query.iter().all(|byte| is_plain(byte) || *byte == b'?'),
            rest => !rest.unwrap_or_default().is_empty(),
        };
        Scan { is_forbidden, path_end }
    }
}

/// The bytes that a request-target may have, but for `?`.
static IS_PLAIN: [bool; 256] = {
    let mut table = [true; 256];
    let mut byte = 0;
    while byte < table.len() {
        let is_forbidden = byte <= b' ' as usize || byte == 0x7f || byte == b'#' as usize;
        table[byte] = !is_forbidden && byte != b'?' as usize;
        byte += 1;
    }
    table
};

/// Splits the target of an internal redirect or a subrequest at its first `?`. What follows a `#` goes.
///
/// Source: httpd 2.4.71 `server/protocol.c`, `ap_parse_uri`; apr-util `uri/apr_uri.c`, `apr_uri_parse`.
pub(super) fn split_query(target: &[u8]) -> (&[u8], Option<&[u8]>) {
    let target = &target[..memchr::memchr(b'#', target).unwrap_or(target.len())];
    match memchr::memchr(b'?', target) {
        Some(at) => (&target[..at], Some(&target[at + 1..])),
        None => (target, None),
    }
}

/// Splits `host[:port]`, checks it, and writes the name to `host` in lower case without a last dot.
fn split_host(field: &[u8], host: &mut Vec<u8>) -> Result<Option<u16>, u16> {
    let field = field.trim_ascii();
    let (name, port) = match field.first() {
        Some(b'[') => {
            let end = memchr::memchr(b']', field).ok_or(400_u16)?;
            let inner = std::str::from_utf8(&field[1..end]).map_err(|_| 400_u16)?;
            inner.parse::<std::net::Ipv6Addr>().map_err(|_| 400_u16)?;
            let port = match &field[end + 1..] {
                b"" => None,
                [b':', port @ ..] => Some(port),
                _ => return Err(400),
            };
            (&field[1..end], port)
        }
        _ => match memchr::memchr(b':', field) {
            None => (field, None),
            Some(colon) => (&field[..colon], Some(&field[colon + 1..])),
        },
    };
    if field.first() != Some(&b'[') && !is_host_name(name) {
        return Err(400);
    }
    let name = name.strip_suffix(b".").filter(|name| !name.is_empty()).unwrap_or(name);
    host.extend_from_slice(name);
    host.make_ascii_lowercase();
    match port {
        None => Ok(None),
        Some(port) => {
            let port = std::str::from_utf8(port).ok().and_then(|port| port.parse::<u16>().ok());
            port.map(Some).ok_or(400)
        }
    }
}

/// Whether a name is one that httpd takes: letters, digits, `-` and `_` between dots; an address has
/// four numbers without leading zeroes; the last label of anything else begins with a letter.
///
/// Source: httpd 2.4.71 `server/vhost.c`, `strict_hostname_check`; RFC 1123 section 2.1.
fn is_host_name(name: &[u8]) -> bool {
    let name = name.strip_suffix(b".").filter(|rest| !rest.is_empty()).unwrap_or(name);
    let name = name.strip_prefix(b".").unwrap_or(name);
    let (mut kinds, mut has_gap, mut label) = (0, false, 0);
    for (at, &byte) in name.iter().enumerate() {
        kinds |= KINDS[usize::from(byte)];
        if byte == b'.' {
            // A label has a byte at least.
            has_gap |= at == label;
            label = at + 1;
        }
    }
    if kinds & OTHER != 0 || has_gap || label == name.len() {
        return false;
    }
    if kinds & LETTER == 0 {
        let plain = |label: &[u8]| label.len() == 1 || label[0] != b'0';
        let mut labels = name.split(|&byte| byte == b'.');
        return labels.clone().count() == 4 && labels.all(plain);
    }
    label == 0 || name[label].is_ascii_alphabetic()
}

const LETTER: u8 = 1;
const OTHER: u8 = 2;

/// The kinds of bytes in a host name: digits and dots are none, `-` and `_` are letters.
static KINDS: [u8; 256] = {
    let mut table = [OTHER; 256];
    let mut byte = 0;
    while byte < table.len() {
        match byte as u8 {
            b'0'..=b'9' | b'.' => table[byte] = 0,
            b'a'..=b'z' | b'A'..=b'Z' | b'-' | b'_' => table[byte] = LETTER,
            _ => {}
        }
        byte += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_names() {
        for name in ["a", "a.b", ".a.b", "a.b.", "a_b-c", "1.a", "-a", "127.0.0.1", "0.0.0.0"] {
            assert!(is_host_name(name.as_bytes()), "{name}");
        }
        for name in
            ["", ".", "..", "a..b", "..a", "a..", "a.1b", "1", "1.2.3", "1.2.3.04", "a/b", "é"]
        {
            assert!(!is_host_name(name.as_bytes()), "{name}");
        }
    }
}
