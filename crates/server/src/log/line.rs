//! Writes one line of an access log.
//!
//! What a client has sent is escaped, so that no request can write a line of its own, or a terminal's
//! control sequences, into a log.
//!
//! Source: httpd 2.4.71 `modules/loggers/mod_log_config.c`; `server/util.c`, `ap_escape_logitem`.

use std::io::Write;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use chrono::{DateTime, Local};
use milepost_engine::{
    LogFormat, LogPort, LogTime, LogTraffic, LogUnit, LogWhat, Logged, TlsVariables,
};
use milepost_http::path::{AboveRoot, EncodedSlashes, Slashes, normalize, unescape};
use milepost_http::request::{Content, RequestHead, Version};

use super::Logs;
use crate::respond::{Answered, Peer};

/// Logs for one worker.
pub(crate) struct Lines {
    pub(super) logs: Arc<Logs>,
    wants_rule: bool,
    has_expressions: bool,
    traces_rewriting: bool,
    pub(super) buffer: Vec<u8>,
    pub(super) stamps: Stamps,
}

impl Lines {
    /// The logs that the lines go to.
    pub(crate) fn logs(&self) -> Arc<Logs> {
        Arc::clone(&self.logs)
    }

    pub(crate) fn new(logs: Arc<Logs>) -> Lines {
        let wants_rule = logs.wants_rule();
        let has_expressions = logs.has_expressions();
        let traces_rewriting = logs.errors.settings.traces_rewriting();
        let (buffer, stamps) = (Vec::new(), Stamps::default());
        Lines { logs, wants_rule, has_expressions, traces_rewriting, buffer, stamps }
    }

    /// Whether any log asks an expression what it is to have.
    pub(crate) fn has_expressions(&self) -> bool {
        self.has_expressions
    }

    /// Whether the error log is to have what mod_rewrite does.
    pub(crate) fn traces_rewriting(&self) -> bool {
        self.traces_rewriting
    }

    /// Whether a log shows the directive that answered.
    pub(crate) fn wants_rule(&self) -> bool {
        self.wants_rule
    }

    /// Whether there is nothing to log to.
    pub(crate) fn is_empty(&self) -> bool {
        self.logs.is_empty()
    }
}

/// All that is known of one request and its answer.
pub(crate) struct Exchange<'a> {
    pub(crate) answered: &'a Answered<'a>,
    pub(crate) peer: &'a Peer,
    /// What the engine knows of it; nothing of a request that could not be read.
    pub(crate) logged: Option<Logged<'a>>,
    /// File and line of the directive that answered.
    pub(crate) rule: &'a str,
    /// What the error log calls the request, if it has anything of it.
    pub(crate) id: Option<&'a str>,
    /// For each log with an expression, whether it does not hold.
    pub(crate) unwanted: &'a [bool],
}

impl Exchange<'_> {
    /// The client: who has connected, or whom that has asked for.
    pub(super) fn client(&self) -> SocketAddr {
        self.logged.and_then(|logged| logged.client()).unwrap_or(self.peer.remote)
    }
}

/// The time as the last line had it: most lines of a second share it.
#[derive(Default)]
pub(super) struct Stamps {
    second: u64,
    common: Vec<u8>,
}

/// Writes a line.
pub(super) struct Writer<'w> {
    exchange: &'w Exchange<'w>,
    out: &'w mut Vec<u8>,
    stamps: &'w mut Stamps,
}

impl<'w> Writer<'w> {
    pub(super) fn new(
        exchange: &'w Exchange<'w>,
        out: &'w mut Vec<u8>,
        stamps: &'w mut Stamps,
    ) -> Self {
        Writer { exchange, out, stamps }
    }

    /// Appends the line of `format`.
    pub(super) fn write(&mut self, format: &LogFormat) {
        let status = self.exchange.answered.status;
        for item in &format.items {
            let wanted = item
                .statuses
                .as_ref()
                .is_none_or(|(wanted, statuses)| statuses.contains(&status) == *wanted);
            if wanted {
                self.item(&item.what);
            } else {
                self.out.push(b'-');
            }
        }
    }

    fn item(&mut self, what: &LogWhat) {
        let Exchange { answered, peer, logged, rule, id, .. } = self.exchange;
        let head = answered.head;
        match what {
            LogWhat::Text(text) => self.out.extend_from_slice(text),
            LogWhat::RemoteAddress => self.address(self.exchange.client().ip()),
            LogWhat::PeerAddress => self.address(peer.remote.ip()),
            LogWhat::LocalAddress => self.address(peer.local.ip()),
            LogWhat::Bytes => self.number(answered.content_bytes),
            LogWhat::BytesOrDash => match answered.content_bytes {
                0 => self.out.push(b'-'),
                bytes => self.number(bytes),
            },
            LogWhat::Cookie(name) => {
                let fields = head.into_iter().flat_map(|head| head.fields.all("Cookie"));
                let mut values = fields.filter_map(|field| cookie(field, name));
                self.client(values.next());
            }
            LogWhat::Duration(unit) => {
                let time = answered.begun.map_or(Duration::ZERO, |begun: Instant| begun.elapsed());
                self.number(in_unit(time, *unit));
            }
            LogWhat::Variable(name) => {
                self.client(logged.and_then(|logged| logged.variable(name)));
            }
            LogWhat::File => self.client(logged.map(|logged| logged.file())),
            LogWhat::Protocol => self.text(head.map(|head| match head.version {
                Version::Http10 => "HTTP/1.0",
                Version::Http11 => "HTTP/1.1",
                Version::Http2 => "HTTP/2.0",
            })),
            LogWhat::Traffic(which) => {
                let received = head.map_or(answered.line.len(), |head| head.bytes.len()) as u64;
                let content = match head.map(|head| head.content) {
                    Some(Content::Length(length)) => length,
                    _ => 0,
                };
                let sent = answered.sent_head.len() as u64 + answered.content_bytes;
                self.number(match which {
                    LogTraffic::Received => received.saturating_add(content),
                    LogTraffic::Sent => sent,
                    LogTraffic::Both => received.saturating_add(content).saturating_add(sent),
                });
            }
            LogWhat::RequestField(name) => {
                let mut values = head.into_iter().flat_map(|head| head.fields.all(name)).peekable();
                if values.peek().is_none() {
                    return self.out.push(b'-');
                }
                let mut between: &[u8] = b"";
                for value in values {
                    self.out.extend_from_slice(between);
                    escape(self.out, value);
                    between = b", ";
                }
            }
            LogWhat::Kept => self.number(answered.kept.into()),
            LogWhat::Method => self.client(head.map(|head| head.method)),
            LogWhat::Rule => self.client((!rule.is_empty()).then_some(rule.as_bytes())),
            LogWhat::ResponseField(name) => self.client(response_field(answered.sent_head, name)),
            LogWhat::Port(port) => {
                let configured = logged.and_then(|logged| logged.server_port());
                self.number(u64::from(match port {
                    LogPort::Canonical => configured.unwrap_or(peer.local.port()),
                    LogPort::Local => peer.local.port(),
                    LogPort::Remote => self.exchange.client().port(),
                }));
            }
            LogWhat::Process => self.number(std::process::id().into()),
            LogWhat::Query => {
                if let Some(at) = head.and_then(|head| memchr::memchr(b'?', head.target)) {
                    escape(self.out, &head.map_or(&b""[..], |head| head.target)[at..]);
                }
            }
            LogWhat::RequestLine => {
                self.client((!answered.line.is_empty()).then_some(answered.line));
            }
            LogWhat::Status => self.number(answered.status.into()),
            LogWhat::Time(time) => self.time(time),
            LogWhat::Path => {
                let path = head.and_then(url_path);
                self.client(path.as_deref());
            }
            LogWhat::ServerName => {
                let name = logged.and_then(|logged| logged.server_name());
                self.name(name);
            }
            LogWhat::RequestedName => {
                let name = logged.and_then(|logged| logged.requested_name());
                self.name(name);
            }
            LogWhat::RequestId => self.text(*id),
            LogWhat::ConnectionId => self.text(peer.name.get().map(|name| &**name)),
            LogWhat::Handler => self.client(logged.and_then(|logged| logged.handler())),
            LogWhat::Tls(name) => match &peer.tls {
                Some(tls) => {
                    let mut value = Vec::new();
                    tls.write(name, &mut value);
                    self.client((!value.is_empty()).then_some(&value));
                }
                None => self.text((**name == *"HTTPS").then_some("off")),
            },
            LogWhat::Connection => self.out.push(if answered.goes_on { b'+' } else { b'-' }),
            LogWhat::Json => super::json::write(self.exchange, self.out),
            LogWhat::Nothing => self.out.push(b'-'),
        }
    }

    /// A server without a name is known by its address.
    fn name(&mut self, name: Option<&[u8]>) {
        match name {
            Some(name) => escape(self.out, name),
            None => self.address(self.exchange.peer.local.ip()),
        }
    }

    fn address(&mut self, address: IpAddr) {
        // Writing to memory does not fail.
        let _ = write!(self.out, "{}", address.to_canonical());
    }

    fn number(&mut self, number: u64) {
        let _ = write!(self.out, "{number}");
    }

    fn text(&mut self, text: Option<&str>) {
        self.out.extend_from_slice(text.unwrap_or("-").as_bytes());
    }

    /// Something that a client may have made up; a dash if it is not there.
    fn client(&mut self, value: Option<&[u8]>) {
        match value {
            None => self.out.push(b'-'),
            Some(value) => escape(self.out, value),
        }
    }

    fn time(&mut self, time: &LogTime) {
        let now = SystemTime::now();
        let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        match time {
            LogTime::Common => {
                if self.stamps.second != since.as_secs() {
                    self.stamps.second = since.as_secs();
                    let time = DateTime::<Local>::from(now).format("[%d/%b/%Y:%H:%M:%S %z]");
                    self.stamps.common = time.to_string().into_bytes();
                }
                self.out.extend_from_slice(&self.stamps.common);
            }
            LogTime::Since(unit) => self.number(in_unit(since, *unit)),
            LogTime::Fraction(LogUnit::Microseconds) => {
                let _ = write!(self.out, "{:06}", since.subsec_micros());
            }
            LogTime::Fraction(_) => {
                let _ = write!(self.out, "{:03}", since.subsec_millis());
            }
            LogTime::Strftime(format) => {
                let start = self.out.len();
                // A format that means nothing is an error only here.
                if write!(self.out, "{}", DateTime::<Local>::from(now).format(format)).is_err() {
                    self.out.truncate(start);
                    self.out.push(b'-');
                }
            }
        }
    }
}

fn in_unit(time: Duration, unit: LogUnit) -> u64 {
    let units = match unit {
        LogUnit::Seconds => time.as_secs().into(),
        LogUnit::Milliseconds => time.as_millis(),
        LogUnit::Microseconds => time.as_micros(),
    };
    u64::try_from(units).unwrap_or(u64::MAX)
}

/// The decoded path of a target, as sent if it cannot be decoded.
fn url_path(head: &RequestHead<'_>) -> Option<Vec<u8>> {
    let target = head.target;
    let path = match memchr::memmem::find(target, b"://") {
        Some(at) if !target.starts_with(b"/") => {
            let rest = &target[at + 3..];
            memchr::memchr(b'/', rest).map_or(&b"/"[..], |at| &rest[at..])
        }
        _ => target,
    };
    let path = memchr::memchr(b'?', path).map_or(path, |at| &path[..at]);
    let (mut normal, mut decoded) = (Vec::new(), Vec::new());
    let done = normalize(path, Slashes::Merge, AboveRoot::Refuse, &mut normal)
        .and_then(|()| unescape(&normal, EncodedSlashes::Keep, &mut decoded));
    Some(if done.is_ok() { decoded } else { path.to_vec() })
}

/// The value of a cookie in a `Cookie` field.
fn cookie<'f>(field: &'f [u8], name: &[u8]) -> Option<&'f [u8]> {
    field.split(|&byte| byte == b';').find_map(|pair| {
        let equals = memchr::memchr(b'=', pair)?;
        let (key, value) = (pair[..equals].trim_ascii(), &pair[equals + 1..]);
        key.eq_ignore_ascii_case(name).then_some(value.trim_ascii())
    })
}

/// The value of a field in a response head.
pub(super) fn response_field<'h>(head: &'h [u8], name: &[u8]) -> Option<&'h [u8]> {
    head.split(|&byte| byte == b'\n').skip(1).find_map(|line| {
        let colon = memchr::memchr(b':', line)?;
        line[..colon].eq_ignore_ascii_case(name).then_some(line[colon + 1..].trim_ascii())
    })
}

/// Appends bytes so that they stay on one line; they may have quotes.
pub(crate) fn escape_unquoted(out: &mut Vec<u8>, value: &[u8]) {
    for (number, part) in value.split(|&byte| byte == b'"').enumerate() {
        if number > 0 {
            out.push(b'"');
        }
        escape(out, part);
    }
}

/// Appends bytes so that they stay on one line and within their quotes.
pub(crate) fn escape(out: &mut Vec<u8>, value: &[u8]) {
    for &byte in value {
        match byte {
            b'"' | b'\\' => out.extend([b'\\', byte]),
            b' '..=b'~' => out.push(byte),
            b'\n' => out.extend(b"\\n"),
            b'\r' => out.extend(b"\\r"),
            b'\t' => out.extend(b"\\t"),
            0x08 => out.extend(b"\\b"),
            0x0b => out.extend(b"\\v"),
            byte => {
                let _ = write!(out, "\\x{byte:02x}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_clients_send_stays_in_its_place() {
        let mut out = Vec::new();
        escape(&mut out, b"a\"b\\c\nd\x1b[0m\xff ");
        assert_eq!(out, b"a\\\"b\\\\c\\nd\\x1b[0m\\xff ");
        out.clear();
        escape_unquoted(&mut out, b"\"a\\\"\n");
        assert_eq!(out, b"\"a\\\\\"\\n");
    }

    #[test]
    fn cookies_are_found_by_their_whole_name() {
        let field = b"aa=1; a = 2 ;b=\"3\"";
        assert_eq!(cookie(field, b"a"), Some(&b"2"[..]));
        assert_eq!(cookie(field, b"b"), Some(&b"\"3\""[..]));
        assert_eq!(cookie(field, b"c"), None);
    }

    #[test]
    fn fields_of_a_response_are_found() {
        let head = b"HTTP/1.1 301 Moved: a\r\nDate: x\r\nLocation: /a:b\r\n\r\n";
        assert_eq!(response_field(head, b"location"), Some(&b"/a:b"[..]));
        assert_eq!(response_field(head, b"HTTP/1.1 301 Moved"), None);
    }
}
