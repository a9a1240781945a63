//! Writes one answer as an object of JSON, for logs whose format is `json`.
//!
//! What is not known has no member. Bytes that are no UTF-8 become replacement characters.
//!
//! Source: RFC 8259 section 7.

use std::io::Write;
use std::time::SystemTime;

use chrono::{DateTime, Local, SecondsFormat};
use milepost_http::request::Version;

use super::line::{Exchange, response_field};

/// Appends the object, without the end of the line.
pub(super) fn write(exchange: &Exchange<'_>, out: &mut Vec<u8>) {
    let Exchange { answered, peer, logged, rule, .. } = exchange;
    let mut object = Object { out, is_empty: true };
    let now = DateTime::<Local>::from(SystemTime::now());
    object.string("time", Some(now.to_rfc3339_opts(SecondsFormat::Millis, false).as_bytes()));
    object.string("client", Some(exchange.client().ip().to_canonical().to_string().as_bytes()));
    object.number("client_port", exchange.client().port().into());
    object.string("server", logged.and_then(|logged| logged.server_name()));
    let head = answered.head;
    match head {
        Some(head) => {
            object.string("method", Some(head.method));
            object.string("host", head.fields.first("Host"));
            object.string("target", Some(head.target));
            object.string(
                "protocol",
                Some(match head.version {
                    Version::Http10 => b"HTTP/1.0",
                    Version::Http11 => b"HTTP/1.1",
                    Version::Http2 => b"HTTP/2.0",
                }),
            );
        }
        None => object.string("line", Some(answered.line)),
    }
    object.number("status", answered.status.into());
    object.number("bytes", answered.content_bytes);
    let time = answered.begun.map(|begun| begun.elapsed().as_micros());
    object.number("duration_us", u64::try_from(time.unwrap_or(0)).unwrap_or(u64::MAX));
    object.string("location", response_field(answered.sent_head, b"Location"));
    object.string("rule", Some(rule.as_bytes()).filter(|rule| !rule.is_empty()));
    object.string("referer", head.and_then(|head| head.fields.first("Referer")));
    object.string("user_agent", head.and_then(|head| head.fields.first("User-Agent")));
    object.string("tls", peer.tls.as_ref().map(|_| &b"on"[..]));
    object.out.push(b'}');
}

/// An object on its way.
struct Object<'o> {
    out: &'o mut Vec<u8>,
    is_empty: bool,
}

impl Object<'_> {
    fn name(&mut self, name: &str) {
        self.out.push(if std::mem::take(&mut self.is_empty) { b'{' } else { b',' });
        // Writing to memory does not fail.
        let _ = write!(self.out, "\"{name}\":");
    }

    fn number(&mut self, name: &str, number: u64) {
        self.name(name);
        let _ = write!(self.out, "{number}");
    }

    fn string(&mut self, name: &str, value: Option<&[u8]>) {
        let Some(value) = value else { return };
        self.name(name);
        self.out.push(b'"');
        for letter in String::from_utf8_lossy(value).chars() {
            let _ = match letter {
                '"' => write!(self.out, "\\\""),
                '\\' => write!(self.out, "\\\\"),
                '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}' => {
                    write!(self.out, "\\u{:04x}", u32::from(letter))
                }
                letter => write!(self.out, "{letter}"),
            };
        }
        self.out.push(b'"');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_stay_in_their_quotes_and_on_their_line() {
        let mut out = Vec::new();
        let mut object = Object { out: &mut out, is_empty: true };
        object.string("a", Some(b"x\"\\\n\x1b\xff\xc3\xa9"));
        object.string("b", None);
        object.number("c", 7);
        let expected = "{\"a\":\"x\\\"\\\\\\u000a\\u001b\u{fffd}é\",\"c\":7";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
