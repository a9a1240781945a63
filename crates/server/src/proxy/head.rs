//! The heads that the proxy writes: of requests to backends, and of their responses to clients.
//!
//! Fields of one connection are not passed on to another, whoever sent them: those that RFC 9110 names,
//! those that `Connection` names, and what frames the content, which is said anew.
//!
//! Source: RFC 9110 section 7.6; RFC 9112 sections 6 and 7; httpd 2.4.71 `modules/proxy/proxy_util.c`,
//! `ap_proxy_create_hdrbrgd`; `mod_proxy_http.c`, `process_proxy_header`.

use std::io::Write;

use milepost_engine::{Upgrade, Via};

use super::Plan;
use super::address::Address;
use super::client::Beginning;

/// How the content of a request is framed for the backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outgoing {
    None,
    Length(u64),
    Chunked,
}

/// Fields of one connection, in lower case.
const OF_CONNECTION: &[&[u8]] = &[
    b"connection",
    b"keep-alive",
    b"proxy-connection",
    b"te",
    b"trailer",
    b"transfer-encoding",
    b"upgrade",
];

/// The name and the value of each line.
pub(super) fn fields(lines: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    lines.split(|&byte| byte == b'\n').filter_map(|line| {
        let line = line.trim_ascii_end();
        let colon = memchr::memchr(b':', line)?;
        Some((&line[..colon], line[colon + 1..].trim_ascii()))
    })
}

/// Appends one line. Bytes that would end it become spaces.
pub(super) fn push_line(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend(value.iter().map(|&byte| match byte {
        b'\r' | b'\n' | 0 => b' ',
        byte => byte,
    }));
    out.extend_from_slice(b"\r\n");
}

/// Whether `Connection` fields of these lines name `name`.
fn is_named(lines: &[u8], name: &[u8]) -> bool {
    fields(lines)
        .filter(|(field, _)| field.eq_ignore_ascii_case(b"connection"))
        .flat_map(|(_, value)| value.split(|&byte| byte == b','))
        .any(|option| option.trim_ascii().eq_ignore_ascii_case(name))
}

/// Whether a field belongs to the connection that it came through.
fn is_of_connection(lines: &[u8], name: &[u8]) -> bool {
    OF_CONNECTION.iter().any(|known| name.eq_ignore_ascii_case(known)) || is_named(lines, name)
}

/// The protocol that the client wants to go on in, if the backend may.
pub(super) fn wanted_upgrade<'a>(lines: &'a [u8], allowed: &Upgrade) -> Option<&'a [u8]> {
    let (_, wanted) = fields(lines).find(|(name, _)| name.eq_ignore_ascii_case(b"upgrade"))?;
    let fits = match allowed {
        Upgrade::None => false,
        Upgrade::Any => true,
        Upgrade::Only(name) => wanted.eq_ignore_ascii_case(name.as_bytes()),
    };
    (fits && is_named(lines, b"upgrade")).then_some(wanted)
}

/// What a request head says besides the fields of the client.
pub(super) struct Request<'a> {
    pub(super) plan: &'a Plan,
    pub(super) method: &'a [u8],
    pub(super) address: &'a Address<'a>,
    pub(super) content: Outgoing,
    pub(super) upgrade: Option<&'a [u8]>,
    /// The connection is to be used again.
    pub(super) keep: bool,
    /// The backend is to say that it wants the content.
    pub(super) expect: bool,
    /// The version of the client: `1.1`.
    pub(super) version: &'a str,
}

/// Appends the head of a request.
pub(super) fn write_request(out: &mut Vec<u8>, request: &Request<'_>) {
    let Request { plan, address, .. } = request;
    let lines = &plan.fields[..];
    out.extend_from_slice(request.method);
    out.push(b' ');
    out.extend_from_slice(if address.target.is_empty() { b"/" } else { address.target });
    out.extend_from_slice(b" HTTP/1.1\r\n");
    let sent_host = fields(lines).find(|(name, _)| name.eq_ignore_ascii_case(b"host"));
    let sent_host = sent_host.map(|(_, value)| value);
    let host = match sent_host.filter(|_| plan.preserve_host) {
        Some(host) => host,
        None if plan.preserve_host && !plan.server_name.is_empty() => &plan.server_name,
        None => address.authority.as_bytes(),
    };
    push_line(out, b"Host", host);
    let (mut forwarded_for, mut forwarded_host, mut forwarded_server, mut via) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (name, value) in fields(lines) {
        let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
        if is("host") || is("expect") || is("content-length") || is_of_connection(lines, name) {
            continue;
        }
        if plan.as_get && is_of_content(name) {
            continue;
        }
        let merged = if is("x-forwarded-for") {
            &mut forwarded_for
        } else if is("x-forwarded-host") {
            &mut forwarded_host
        } else if is("x-forwarded-server") {
            &mut forwarded_server
        } else if is("via") {
            &mut via
        } else {
            push_line(out, name, value);
            continue;
        };
        join(merged, value);
    }
    if plan.add_fields {
        join(&mut forwarded_for, plan.client.to_string().as_bytes());
        if let Some(host) = sent_host {
            join(&mut forwarded_host, host);
        }
        join(&mut forwarded_server, &plan.own_name());
    }
    match plan.via {
        Via::Off => {}
        Via::Block => via.clear(),
        Via::On | Via::Full => join(&mut via, &plan.via_value(request.version)),
    }
    for (name, value) in [
        (&b"X-Forwarded-For"[..], forwarded_for),
        (b"X-Forwarded-Host", forwarded_host),
        (b"X-Forwarded-Server", forwarded_server),
        (b"Via", via),
    ] {
        if !value.is_empty() {
            push_line(out, name, &value);
        }
    }
    match request.content {
        Outgoing::None => {}
        Outgoing::Length(length) => {
            // Writing to memory does not fail.
            let _ = write!(out, "Content-Length: {length}\r\n");
        }
        Outgoing::Chunked => out.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
    }
    if request.expect {
        out.extend_from_slice(b"Expect: 100-continue\r\n");
    }
    if let Some(protocol) = request.upgrade {
        push_line(out, b"Upgrade", protocol);
        out.extend_from_slice(b"Connection: Upgrade\r\n");
    } else if request.keep {
        out.extend_from_slice(b"Connection: Keep-Alive\r\n");
    } else {
        out.extend_from_slice(b"Connection: close\r\n");
    }
    out.extend_from_slice(b"\r\n");
}

/// Fields that say something about content, or about a version of it that the client has.
fn is_of_content(name: &[u8]) -> bool {
    const NAMES: &[&str] = &[
        "content-type",
        "content-encoding",
        "content-language",
        "content-location",
        "content-range",
        "if-match",
        "if-modified-since",
        "if-none-match",
        "if-range",
        "if-unmodified-since",
        "range",
    ];
    NAMES.iter().any(|known| name.eq_ignore_ascii_case(known.as_bytes()))
}

fn join(list: &mut Vec<u8>, value: &[u8]) {
    if !list.is_empty() {
        list.extend_from_slice(b", ");
    }
    list.extend_from_slice(value);
}

/// The fields of a response that are passed on: names and values.
pub(super) fn passed_fields(head: &[u8], upgraded: bool) -> impl Iterator<Item = (&[u8], &[u8])> {
    let first_line = memchr::memchr(b'\n', head).map_or(head.len(), |end| end + 1);
    let lines = &head[first_line..];
    fields(lines).filter(move |(name, _)| {
        let is_upgrade = upgraded && name.eq_ignore_ascii_case(b"upgrade");
        !name.eq_ignore_ascii_case(b"content-length")
            && (is_upgrade || !is_of_connection(lines, name))
    })
}

/// Appends the trailer lines that may be passed on: fields that frame, route or control are no trailers.
pub(super) fn write_trailers(lines: &[u8], out: &mut Vec<u8>) {
    const NEVER: &[&str] = &[
        "authorization",
        "cache-control",
        "content-encoding",
        "content-length",
        "content-range",
        "content-type",
        "cookie",
        "expect",
        "host",
        "set-cookie",
    ];
    for (name, value) in fields(lines) {
        let is_token = !name.is_empty()
            && name
                .iter()
                .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte));
        let never = NEVER.iter().any(|known| name.eq_ignore_ascii_case(known.as_bytes()));
        let is_clean = !value.iter().any(|byte| *byte < b' ' && *byte != b'\t' || *byte == 0x7f);
        if is_token && !never && is_clean && !is_of_connection(&[], name) {
            push_line(out, name, value);
        }
    }
}

/// A response of the proxy itself before the final one.
pub(super) fn interim(status: u16, fields: &[u8]) -> Beginning<'_> {
    Beginning { status, reason: b"", fields, length: None, has_content: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_the_connection_stay_there() {
        let head =
            b"HTTP/1.1 200 OK\r\nA: 1\r\nConnection: x-b, close\r\nX-B: 2\r\nKeep-Alive: 3\r\n\
            Content-Length: 4\r\nTransfer-Encoding: chunked\r\nUpgrade: h2c\r\nC: 5:6\r\n\r\n";
        let passed: Vec<_> = passed_fields(head, false).collect();
        let expected: [(&[u8], &[u8]); 2] = [(b"A", b"1"), (b"C", b"5:6")];
        assert_eq!(passed, expected);
        assert_eq!(passed_fields(head, true).count(), 3);
    }

    #[test]
    fn trailers_say_nothing_about_the_message() {
        let mut out = Vec::new();
        write_trailers(b"X: 1\r\nContent-Length: 3\r\nHost: a\r\nbad name: x\r\nY: \r\n", &mut out);
        assert_eq!(out, b"X: 1\r\nY: \r\n");
    }

    #[test]
    fn an_upgrade_must_be_wanted_and_allowed() {
        let lines = b"Connection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\n";
        let only = Upgrade::Only("websocket".to_owned());
        assert_eq!(wanted_upgrade(lines, &only), Some(&b"WebSocket"[..]));
        assert_eq!(wanted_upgrade(lines, &Upgrade::None), None);
        assert_eq!(wanted_upgrade(lines, &Upgrade::Only("x".to_owned())), None);
        assert_eq!(wanted_upgrade(b"Upgrade: websocket\r\n", &Upgrade::Any), None);
    }
}
