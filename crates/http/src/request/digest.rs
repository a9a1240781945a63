//! What the fields of a head say to the connection.
//!
//! Source: RFC 9112 sections 3.2, 6 and 9.3; RFC 9110 section 10.1.1.

use super::field::{FieldLine, ParsedLine};
use super::framing::{Content, Framing};
use super::{HeadError, Persistence, Version, host};
use crate::bytes::is_in_any_case;

/// What the fields of a head add up to, for the connection.
#[derive(Debug, Default)]
pub(super) struct Digest {
    host: Option<FieldLine>,
    close: bool,
    keep_alive: bool,
    expects_continue: bool,
    framing: Framing,
}

impl Digest {
    /// Takes note of one field.
    #[inline]
    pub(super) fn add(&mut self, field: &ParsedLine<'_>) -> Result<(), HeadError> {
        let ParsedLine { line, name, value, .. } = *field;
        match name.len() {
            4 if is_in_any_case(name, b"host") => self.add_host(line, value),
            6 if is_in_any_case(name, b"expect") => self.add_expectation(value),
            10 if is_in_any_case(name, b"connection") => {
                self.add_connection(value);
                Ok(())
            }
            14 if is_in_any_case(name, b"content-length") => self.framing.add_length(value),
            17 if is_in_any_case(name, b"transfer-encoding") => {
                self.framing.add_codings(value);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn add_host(&mut self, line: FieldLine, value: &[u8]) -> Result<(), HeadError> {
        if self.host.replace(line).is_some() {
            return Err(HeadError::HostRepeated);
        }
        if host::is_valid(value) { Ok(()) } else { Err(HeadError::HostInvalid) }
    }

    fn add_expectation(&mut self, value: &[u8]) -> Result<(), HeadError> {
        if value.eq_ignore_ascii_case(b"100-continue") {
            self.expects_continue = true;
        } else if !value.is_empty() {
            return Err(HeadError::ExpectationUnknown);
        }
        Ok(())
    }

    fn add_connection(&mut self, value: &[u8]) {
        // By itself, as it mostly stands.
        if is_in_any_case(value, b"keep-alive") {
            self.keep_alive = true;
            return;
        }
        for option in value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii) {
            self.close |= is_in_any_case(option, b"close");
            self.keep_alive |= is_in_any_case(option, b"keep-alive");
        }
    }

    /// Decides as RFC 9112 section 9.3 says; HTTP/1.1 without `Host` is refused.
    pub(super) fn persistence(&self, version: Version) -> Result<Persistence, HeadError> {
        if version == Version::Http11 && self.host.is_none() {
            return Err(HeadError::HostMissing);
        }
        Ok(match version {
            _ if self.close => Persistence::Close,
            _ if self.keep_alive => Persistence::Asked,
            Version::Http10 => Persistence::Close,
            Version::Http11 | Version::Http2 => Persistence::Implied,
        })
    }

    pub(super) fn content(&self, version: Version) -> Result<Content, HeadError> {
        self.framing.content(version)
    }

    pub(super) fn expects_continue(&self, version: Version) -> bool {
        self.expects_continue && version == Version::Http11
    }

    /// Returns the value of `Host`. `fields` are the bytes that have been read.
    pub(super) fn host<'a>(&self, fields: &'a [u8]) -> Option<&'a [u8]> {
        self.host.map(|line| line.value(fields))
    }
}
