//! Room for what is read of a head, used again for the next one.
//!
//! What a client says of itself it mostly says again, byte for byte, with the next request: browsers and crawlers on
//! a connection that they keep, proxies and probes on all of theirs. So the fields of the last head are remembered,
//! and those of the next are compared with them before they are read, which takes a thirtieth of the instructions.

use super::HeadError;
use super::digest::Digest;
use super::field::{FieldLine, FieldLines, ParsedLine};
use super::line::{self, HeadLimits};

/// The most bytes of fields that are remembered: fields with long cookies are read each time.
const REMEMBERED_BYTES_MAX: usize = 1024;

/// The fields of the head that was read last.
#[derive(Debug, Default)]
pub struct HeadRoom {
    lines: Vec<FieldLine>,
    digest: Digest,
    /// What lines and digest were read from, up to and with the empty line; empty if they are of no further use.
    known: Vec<u8>,
    /// The limits that were held then.
    limits: HeadLimits,
}

impl HeadRoom {
    /// Reads the fields that `bytes` begin with, and returns how many bytes they are, with the empty line; `None` if
    /// they have no end yet.
    pub(super) fn read(
        &mut self,
        bytes: &[u8],
        limits: &HeadLimits,
    ) -> Result<Option<usize>, HeadError> {
        let is_known =
            !self.known.is_empty() && bytes.starts_with(&self.known) && self.limits == *limits;
        if is_known {
            return Ok(Some(self.known.len()));
        }
        let length = self.read_anew(bytes, limits, Digest::add)?;
        if let Some(length @ ..=REMEMBERED_BYTES_MAX) = length {
            self.known.extend_from_slice(&bytes[..length]);
            self.limits = *limits;
        }
        Ok(length)
    }

    /// As [`HeadRoom::read`], whatever the fields say.
    pub(super) fn read_refused(
        &mut self,
        bytes: &[u8],
        limits: &HeadLimits,
    ) -> Result<Option<usize>, HeadError> {
        self.read_anew(bytes, limits, |digest, field| {
            // It has been refused for this, or for another.
            let _ = digest.add(field);
            Ok(())
        })
    }

    fn read_anew(
        &mut self,
        bytes: &[u8],
        limits: &HeadLimits,
        add: impl Fn(&mut Digest, &ParsedLine<'_>) -> Result<(), HeadError>,
    ) -> Result<Option<usize>, HeadError> {
        self.known.clear();
        self.lines.clear();
        self.digest = Digest::default();
        // Lines are kept as offsets of 32 bits. No head comes near that.
        let bytes = &bytes[..bytes.len().min(u32::MAX as usize)];
        let mut rest = bytes;
        while !matches!(rest, [b'\r', b'\n', ..]) {
            let limit = limits.field();
            if limits.fields_max != 0 && self.lines.len() == limits.fields_max {
                return line::refuse(rest, limit, HeadError::TooManyFields).map(|()| None);
            }
            let Some(field) = FieldLine::parse(bytes, rest, limit)? else { return Ok(None) };
            add(&mut self.digest, &field)?;
            self.lines.push(field.line);
            rest = field.next;
        }
        Ok(Some(bytes.len() - rest.len() + b"\r\n".len()))
    }

    pub(super) fn digest(&self) -> &Digest {
        &self.digest
    }

    /// Returns the lines of `fields`, which have just been read.
    pub(super) fn lines_of<'a>(&'a self, fields: &'a [u8]) -> FieldLines<'a> {
        FieldLines::new(fields, &self.lines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::parse;

    /// What is read of `head` after `before`, and by itself.
    #[track_caller]
    fn check(before: &str, head: &str, limits: [HeadLimits; 2]) {
        let read = |room: &mut HeadRoom| {
            let head = parse(head.as_bytes(), &limits[1], room);
            head.map(|head| head.map(|head| format!("{head:?}")))
        };
        let mut room = HeadRoom::default();
        // Whether it can be read does not matter.
        let _ = parse(before.as_bytes(), &limits[0], &mut room);
        assert_eq!(read(&mut room), read(&mut HeadRoom::default()), "{head:?} after {before:?}");
    }

    #[test]
    fn what_was_read_before_changes_nothing() {
        let long =
            format!("GET / HTTP/1.1\r\nHost: a\r\nX: {:a<1$}\r\n\r\n", "", REMEMBERED_BYTES_MAX);
        let heads = [
            "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET /b HTTP/1.1\r\nHost: a\r\n\r\nGET",
            "GET / HTTP/1.1\r\nHost: a\r\nX: b\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: b\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nExpect: 100-continue\r\n\r\n",
            "POST / HTTP/1.0\r\nHost: a\r\nContent-Length: 1\r\nExpect: 100-continue\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
            "POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
            "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
            "GET / HTTP/1.1\r\nConnection: keep-alive\r\n\r\n",
            "GET / HTTP/1.0\r\n\r\n",
            "GET / HTTP/1.1\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\n\r",
            "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nX : b\r\n\r\n",
            &long,
        ];
        let wide = HeadLimits::default();
        let few = HeadLimits { fields_max: 1, ..wide };
        let short = HeadLimits { field_bytes_max: 10, ..wide };
        for before in heads {
            for head in heads {
                for limits in [wide, few, short] {
                    check(before, head, [wide, limits]);
                }
            }
        }
    }

    #[test]
    fn what_comes_again_is_known() {
        let mut room = HeadRoom::default();
        let fields = b"Host: a\r\nX: b\r\n\r\n";
        let limits = HeadLimits::default();
        assert_eq!(room.read(fields, &limits), Ok(Some(fields.len())));
        assert_eq!(room.known, fields);
        // Lines that are known are not read: these would be others.
        room.lines.clear();
        assert_eq!(room.read(&[fields, &b"GET"[..]].concat(), &limits), Ok(Some(fields.len())));
        assert!(room.lines.is_empty());
    }
}
