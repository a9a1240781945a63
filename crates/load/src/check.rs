//! Holds an answer against what was expected, and says in words what was and what came.
//!
//! The first law of the project lives here: an answer that nobody looked at measures nothing.

use std::fmt::Write as _;

use milepost_http::response::ResponseHead;

use crate::sha256::Sha256;
use crate::target::{Expectation, STATUS_WRONG_MIN};

/// Longest Location that is shown in an example, in bytes.
const SHOWN_BYTES_MAX: usize = 200;

impl Expectation {
    /// Whether the head is right. What only the end of the content can tell is not asked here.
    pub(crate) fn accepts_head(&self, head: &ResponseHead<'_>) -> bool {
        self.accepts(head.status, head.location)
    }

    /// Whether status and Location are right.
    pub(crate) fn accepts(&self, status: u16, location: Option<&[u8]>) -> bool {
        let is_right = match self.status {
            Some(expected) => status == expected,
            None => status < STATUS_WRONG_MIN,
        };
        is_right && self.location.as_deref().is_none_or(|expected| location == Some(expected))
    }

    /// Whether the content is right: its length and, where that is expected, its digest.
    #[inline]
    pub(crate) fn accepts_content(&self, bytes: u64, sha256: Option<Sha256>) -> bool {
        self.content_bytes.is_none_or(|expected| bytes == expected)
            && self.content_sha256.is_none_or(|expected| sha256 == Some(expected))
    }

    /// The expectation in words.
    pub(crate) fn describe(&self) -> String {
        let mut text = match self.status {
            Some(status) => format!("status {status}"),
            None => format!("status below {STATUS_WRONG_MIN}"),
        };
        if let Some(location) = &self.location {
            push_location(&mut text, Some(location));
        }
        if let Some(bytes) = self.content_bytes {
            push_content(&mut text, bytes);
        }
        if let Some(sha256) = &self.content_sha256 {
            push(&mut text, format_args!(", content with SHA-256 {sha256}"));
        }
        text
    }
}

/// The head of an answer in words.
pub(crate) fn describe_head(head: &ResponseHead<'_>) -> String {
    describe(head.status, head.location)
}

/// Status and Location of an answer in words.
pub(crate) fn describe(status: u16, location: Option<&[u8]>) -> String {
    let mut text = format!("status {status}");
    if location.is_some() || (300..400).contains(&status) {
        push_location(&mut text, location);
    }
    text
}

/// Adds the length of the content to a description.
pub(crate) fn push_content(text: &mut String, bytes: u64) {
    push(text, format_args!(", {bytes} bytes of content"));
}

/// Adds what the content is to a description of an answer that was to have a digest.
pub(crate) fn push_sha256(text: &mut String, sha256: &Sha256) {
    push(text, format_args!(" with SHA-256 {sha256}"));
}

fn push_location(text: &mut String, location: Option<&[u8]>) {
    match location {
        None => text.push_str(", no Location"),
        Some(location) => {
            let shown = &location[..location.len().min(SHOWN_BYTES_MAX)];
            let more = if shown.len() < location.len() { "..." } else { "" };
            push(text, format_args!(", Location {}{more}", shown.escape_ascii()));
        }
    }
}

fn push(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    text.write_fmt(arguments).expect("writing to a string does not fail");
}

#[cfg(test)]
mod tests {
    use milepost_http::response::RequestMethod;

    use super::*;

    #[test]
    fn without_expectation_errors_are_wrong() {
        check(&Expectation::default(), "HTTP/1.1 200 OK", true);
        check(&Expectation::default(), "HTTP/1.1 399 ?", true);
        check(&Expectation::default(), "HTTP/1.1 400 Bad Request", false);
        check(&Expectation::default(), "HTTP/1.1 503 Unavailable", false);
    }

    #[test]
    fn an_expected_error_is_right() {
        check(&Expectation::status(404), "HTTP/1.1 404 Not Found", true);
        check(&Expectation::status(404), "HTTP/1.1 200 OK", false);
    }

    #[test]
    fn location_must_be_equal_byte_for_byte() {
        let expectation = Expectation::redirect(301, "http://h/new/10000");
        let answer = |location| format!("HTTP/1.1 301 Moved\r\nLocation: {location}");
        check(&expectation, &answer("http://h/new/10000"), true);
        check(&expectation, &answer("http://h/new/1"), false);
        check(&expectation, &answer("http://H/new/10000"), false);
        check(&expectation, "HTTP/1.1 301 Moved", false);
    }

    #[test]
    fn descriptions_name_what_counts() {
        let expectation = Expectation::redirect(301, "/new\n").content_bytes(8);
        assert_eq!(expectation.describe(), "status 301, Location /new\\n, 8 bytes of content");
        assert_eq!(Expectation::default().describe(), "status below 400");
        let head = b"HTTP/1.1 302 Found\r\n\r\n";
        let head = ResponseHead::parse(head, RequestMethod::Other).unwrap();
        assert_eq!(describe_head(&head), "status 302, no Location");
    }

    #[track_caller]
    fn check(expectation: &Expectation, head: &str, right: bool) {
        let bytes = format!("{head}\r\n\r\n");
        let head = ResponseHead::parse(bytes.as_bytes(), RequestMethod::Other).unwrap();
        assert_eq!(expectation.accepts_head(&head), right);
    }
}
