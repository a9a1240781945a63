//! Splits a head into lines, within limits, and without looking at a byte twice.
//!
//! Lines end in CRLF. RFC 9112 section 2.2 allows a recipient to accept a bare LF; Apache's strict
//! mode does not, and neither do we.
//!
//! Source: RFC 9112 section 2.2; httpd 2.4.71 `server/protocol.c`, `read_request_line` and
//! `ap_get_mime_headers_core`.

use super::HeadError;

/// How many empty lines may stand before a request line. RFC 9112 section 2.2 asks for at least one,
/// because old clients sent CRLF after the content of a POST; Apache stops near this number.
pub const EMPTY_LINES_MAX: usize = 10;

/// The limits of a head, as Apache's directives give them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeadLimits {
    /// `LimitRequestLine`. Apache lets one byte more pass, so this does too.
    pub request_line_bytes_max: usize,
    /// `LimitRequestFieldSize`: a whole field line, name and colon included; one byte more passes.
    pub field_bytes_max: usize,
    /// `LimitRequestFields`; 0 for no limit.
    pub fields_max: usize,
}

/// Apache's defaults.
impl Default for HeadLimits {
    fn default() -> Self {
        HeadLimits { request_line_bytes_max: 8190, field_bytes_max: 8190, fields_max: 100 }
    }
}

impl HeadLimits {
    pub(super) fn request_line(&self) -> LineLimit {
        LineLimit {
            bytes_max: self.request_line_bytes_max.saturating_add(1),
            error: HeadError::RequestLineTooLong,
        }
    }

    pub(super) fn field(&self) -> LineLimit {
        LineLimit {
            bytes_max: self.field_bytes_max.saturating_add(1),
            error: HeadError::FieldTooLong,
        }
    }
}

/// The most bytes of a line without its CRLF, and what to say when there are more.
#[derive(Clone, Copy)]
pub(super) struct LineLimit {
    bytes_max: usize,
    error: HeadError,
}

/// Where a line ends (before its CRLF), and where the next one starts.
struct Line {
    end: usize,
    next: usize,
}

/// Takes the CRLF of the first line of `bytes`, which is well formed up to `end`, and returns what comes after;
/// `None` if it has no end yet.
///
/// What stands at `end` instead is `error`.
#[inline]
pub(super) fn take_end(
    bytes: &[u8],
    end: usize,
    limit: LineLimit,
    error: HeadError,
) -> Result<Option<&[u8]>, HeadError> {
    match bytes[end..] {
        [b'\r', b'\n', ref next @ ..] if end <= limit.bytes_max => Ok(Some(next)),
        _ => refuse(bytes, limit, error).map(|()| None),
    }
}

/// Says what is wrong with the first line of `bytes`, which is not well formed; nothing if it has no end yet.
#[cold]
pub(super) fn refuse(bytes: &[u8], limit: LineLimit, error: HeadError) -> Result<(), HeadError> {
    match next(bytes, 0, 0, limit)? {
        Some(_) => Err(error),
        None => Ok(()),
    }
}

/// Finds the end of the line that begins at `start`; no line feed stands before `searched`.
fn next(
    bytes: &[u8],
    start: usize,
    searched: usize,
    limit: LineLimit,
) -> Result<Option<Line>, HeadError> {
    let Some(offset) = memchr::memchr(b'\n', &bytes[searched..]) else {
        // One more byte than the limit may be there: the CR.
        let too_long = (bytes.len() - start).saturating_sub(1) > limit.bytes_max;
        return if too_long { Err(limit.error) } else { Ok(None) };
    };
    let feed = searched + offset;
    if feed == start || bytes[feed - 1] != b'\r' {
        return Err(HeadError::BareLineFeed);
    }
    let end = feed - 1;
    if end - start > limit.bytes_max {
        return Err(limit.error);
    }
    Ok(Some(Line { end, next: feed + 1 }))
}

/// Counts the empty lines at the start of `bytes`, each of two bytes.
#[must_use]
pub fn empty_lines(bytes: &[u8]) -> usize {
    bytes.chunks_exact(2).take_while(|pair| pair == b"\r\n").count()
}

/// Finds out whether a head that arrives in pieces is complete.
///
/// Each byte is looked at once, however many pieces there are, and a line that is over its limit is
/// refused before it ends. Whether a line is well formed is left to [`super::parse`].
#[derive(Debug, Default, Clone)]
pub struct HeadScan {
    line_start: usize,
    searched: usize,
    lines: usize,
}

impl HeadScan {
    /// Looks at what is new in `bytes`, which begin with all that was given before.
    ///
    /// # Errors
    /// When a limit is passed or a line ends in a bare line feed.
    pub fn advance(&mut self, bytes: &[u8], limits: &HeadLimits) -> Result<bool, HeadError> {
        loop {
            let limit = if self.lines == 0 { limits.request_line() } else { limits.field() };
            let Some(line) = next(bytes, self.line_start, self.searched, limit)? else {
                self.searched = bytes.len();
                return Ok(false);
            };
            // An empty request line is a malformed head, for the parser to refuse.
            if line.end == self.line_start {
                return Ok(true);
            }
            if limits.fields_max != 0 && self.lines > limits.fields_max {
                return Err(HeadError::TooManyFields);
            }
            self.lines += 1;
            self.line_start = line.next;
            self.searched = line.next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_empty_lines() {
        for (bytes, expected) in
            [("", 0), ("\r", 0), ("\r\n", 1), ("\r\n\r\nGET", 2), ("\n\r\n", 0), ("\r\r\n", 0)]
        {
            assert_eq!(empty_lines(bytes.as_bytes()), expected, "{bytes:?}");
        }
    }

    #[test]
    fn a_line_without_end_is_refused_at_its_limit() {
        let limits = HeadLimits { request_line_bytes_max: 10, field_bytes_max: 10, fields_max: 1 };
        let mut scan = HeadScan::default();
        // 11 bytes and the CR may still be within the limit; a further byte cannot.
        assert_eq!(scan.advance(b"GET /aaaaaa\r", &limits), Ok(false));
        let long = HeadScan::default().advance(b"GET /aaaaaaaa", &limits);
        assert_eq!(long, Err(HeadError::RequestLineTooLong));
        let long = HeadScan::default().advance(b"GET /\r\nA: aaaaaaaaaa", &limits);
        assert_eq!(long, Err(HeadError::FieldTooLong));
    }
}
