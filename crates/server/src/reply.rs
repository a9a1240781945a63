//! A reply as the responder makes it: status, fields and content, without anything of the connection.
//!
//! `Date`, `Server`, `Content-Length` and `Connection` are the connection's to add, and so is the
//! decision not to send content (`HEAD`). The storage is reused from reply to reply.
//!
//! Source: RFC 9110 sections 6.4 and 15.

use std::collections::VecDeque;
use std::fs::File;
use std::ops::Range;
use std::rc::Rc;

use milepost_http::bytes;

use crate::deferred::Deferred;
use crate::{page, status};

/// The answer to one request.
#[derive(Debug)]
pub struct Reply {
    status: u16,
    /// Field lines, each with its CRLF.
    fields: Vec<u8>,
    /// The bytes of [`Content::Written`].
    written: Vec<u8>,
    content: Content,
}

/// Where the content of a reply is.
#[derive(Debug)]
pub(crate) enum Content {
    /// In the reply's own buffer.
    Written,
    /// In memory that is shared with a cache: the part from `start` to `end`.
    Shared { bytes: Rc<[u8]>, start: usize, end: usize },
    /// In a file.
    File(FileContent),
    /// Something else comes first, and says what the reply is.
    Deferred(Box<Deferred>),
}

/// Content that is read from a file while it is sent.
#[derive(Debug)]
pub(crate) struct FileContent {
    pub(crate) file: File,
    /// What is left of it.
    pub(crate) pieces: VecDeque<Piece>,
}

/// A piece of it.
#[derive(Debug)]
pub(crate) enum Piece {
    Text(Vec<u8>),
    /// Bytes of the file.
    Part(Range<u64>),
}

impl Piece {
    pub(crate) fn length(&self) -> u64 {
        match self {
            Piece::Text(text) => text.len() as u64,
            Piece::Part(part) => part.end - part.start,
        }
    }
}

/// The type of several parts of a file, as [`Reply::add_field`] writes it.
const MULTIPART: &[u8] = b"Content-Type: multipart/byteranges;";

impl Default for Reply {
    fn default() -> Self {
        Reply { status: 200, fields: Vec::new(), written: Vec::new(), content: Content::Written }
    }
}

impl Reply {
    /// Makes the reply what it was when new.
    pub(crate) fn clear(&mut self) {
        self.status = 200;
        self.fields.clear();
        self.written.clear();
        if !matches!(self.content, Content::Written) {
            self.content = Content::Written;
        }
    }

    /// Sets the status. What is not between 200 and 999 becomes 500.
    pub fn set_status(&mut self, status: u16) {
        self.status = if (200..=999).contains(&status) { status } else { 500 };
    }

    /// Returns the status.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.status
    }

    /// Adds a field. Bytes that would end the line become spaces: nobody adds fields through a value.
    pub fn add_field(&mut self, name: impl AsRef<[u8]>, value: &[u8]) {
        self.fields.extend_from_slice(name.as_ref());
        self.fields.extend_from_slice(b": ");
        let start = self.fields.len();
        self.fields.extend_from_slice(value);
        // Hardly any value has a byte below the space.
        if bytes::find(value, |word| bytes::below(word, b' ')).is_some() {
            for byte in &mut self.fields[start..] {
                if matches!(byte, b'\r' | b'\n' | 0) {
                    *byte = b' ';
                }
            }
        }
        self.fields.extend_from_slice(b"\r\n");
    }

    /// Adds fields that are lines already, each with its CRLF.
    pub(crate) fn add_lines(&mut self, lines: &[u8]) {
        self.fields.extend_from_slice(lines);
    }

    /// Removes the fields whose names `is_unwanted` picks.
    pub(crate) fn remove_fields(&mut self, is_unwanted: impl Fn(&[u8]) -> bool) {
        let mut kept = 0;
        let mut at = 0;
        while let Some(end) = memchr::memchr(b'\n', &self.fields[at..]) {
            let line = at..at + end + 1;
            let name = self.fields[line.clone()].split(|&byte| byte == b':').next();
            if !is_unwanted(name.unwrap_or_default()) {
                self.fields.copy_within(line.clone(), kept);
                kept += line.len();
            }
            at = line.end;
        }
        self.fields.truncate(kept);
    }

    /// Gives the buffer to write the content into.
    pub fn content_mut(&mut self) -> &mut Vec<u8> {
        &mut self.written
    }

    /// Makes the reply a redirect, with the short HTML text that a browser never shows.
    pub fn redirect(&mut self, status: u16, location: &[u8]) {
        self.set_status(status);
        self.add_field("Location", location);
        self.add_page(Some(location));
    }

    /// Makes the reply a text in HTML.
    pub fn text(&mut self, status: u16, text: &[u8]) {
        self.set_status(status);
        if status::has_content(self.status) {
            self.add_lines(page::CONTENT_TYPE_LINE);
            self.written.extend_from_slice(text);
        }
    }

    /// Makes the reply an error page.
    pub fn error(&mut self, status: u16) {
        self.set_status(status);
        self.add_page(None);
    }

    /// Makes the reply an error page that says why.
    pub(crate) fn error_because(&mut self, status: u16, sentence: &str) {
        self.set_status(status);
        self.add_lines(page::CONTENT_TYPE_LINE);
        page::write_because(&mut self.written, self.status, sentence);
    }

    /// Has the error page say why.
    pub(crate) fn explain(&mut self, sentence: &str) {
        self.written.clear();
        page::write_because(&mut self.written, self.status, sentence);
    }

    fn add_page(&mut self, location: Option<&[u8]>) {
        if status::has_content(self.status) {
            self.add_lines(page::CONTENT_TYPE_LINE);
            page::write(&mut self.written, self.status, location);
        }
    }

    /// Takes the content from memory.
    pub(crate) fn set_shared(&mut self, bytes: Rc<[u8]>, start: usize, end: usize) {
        self.content = Content::Shared { bytes, start, end };
    }

    /// Takes the content from a file.
    pub(crate) fn set_file(&mut self, content: FileContent) {
        self.content = Content::File(content);
    }

    /// Whether all of the content is in memory.
    pub(crate) fn is_in_memory(&self) -> bool {
        matches!(self.content, Content::Written | Content::Shared { .. })
    }

    /// Whether the content is several parts of a file, with a type of its own.
    pub(crate) fn is_multipart(&self) -> bool {
        self.status == 206 && self.fields.windows(MULTIPART.len()).any(|text| text == MULTIPART)
    }

    /// Leaves the reply for later.
    pub(crate) fn defer(&mut self, deferred: Box<Deferred>) {
        self.content = Content::Deferred(deferred);
    }

    /// Takes the request out that cannot be answered yet, if it cannot. Whoever sends replies asks this
    /// first.
    pub(crate) fn take_deferred(&mut self) -> Option<Box<Deferred>> {
        if !matches!(self.content, Content::Deferred(_)) {
            return None;
        }
        match std::mem::replace(&mut self.content, Content::Written) {
            Content::Deferred(deferred) => Some(deferred),
            _ => None,
        }
    }

    pub(crate) fn fields(&self) -> &[u8] {
        &self.fields
    }

    /// The number of bytes of the content.
    pub(crate) fn length(&self) -> u64 {
        match &self.content {
            Content::Written => self.written.len() as u64,
            Content::Shared { start, end, .. } => (end - start) as u64,
            Content::File(content) => content.pieces.iter().map(Piece::length).sum(),
            Content::Deferred(_) => 0,
        }
    }

    /// Appends the content that is in memory; a file is handed out, to be sent piece by piece.
    pub(crate) fn take_content(&mut self, output: &mut Vec<u8>) -> Option<FileContent> {
        if let Content::Written = self.content {
            output.extend_from_slice(&self.written);
            return None;
        }
        match std::mem::replace(&mut self.content, Content::Written) {
            Content::Shared { bytes, start, end } => output.extend_from_slice(&bytes[start..end]),
            Content::File(content) => return Some(content),
            Content::Written | Content::Deferred(_) => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_cannot_add_a_field() {
        let mut reply = Reply::default();
        reply.add_field("Location", b"/a\r\nSet-Cookie: x\0");
        assert_eq!(reply.fields(), b"Location: /a  Set-Cookie: x \r\n");
    }

    #[test]
    fn fields_are_removed_by_name() {
        let mut reply = Reply::default();
        for name in ["A", "B", "a", "C"] {
            reply.add_field(name, b"x: y");
        }
        reply.remove_fields(|name| name.eq_ignore_ascii_case(b"A"));
        assert_eq!(reply.fields(), b"B: x: y\r\nC: x: y\r\n");
    }

    #[test]
    fn a_status_that_is_not_final_becomes_500() {
        let mut reply = Reply::default();
        for (status, expected) in [(199, 500), (200, 200), (999, 999), (1000, 500), (0, 500)] {
            reply.set_status(status);
            assert_eq!(reply.status(), expected);
        }
    }
}
