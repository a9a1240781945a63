//! Reads the head of an HTTP/1 response: what it says, and where the response ends.
//!
//! A response ends where its framing says and nowhere else: waiting for the server to close costs
//! its idle timeout, and reading less leaves bytes that look like the next answer. Bytes in, values
//! out; nothing is copied.
//!
//! Source: RFC 9112 sections 4 (status line), 6.3 (message body length) and 9.3 (persistence).

use std::mem::MaybeUninit;
use std::ops::Range;

/// Longest message head that is accepted. Servers limit theirs to 8 KiB or so; eight times that is
/// a mistake or an attack.
pub const HEAD_BYTES_MAX: usize = 64 * 1024;

/// Most field lines that are accepted: as many as the longest head has room for, the shortest being `a:`.
/// httpd has no limit of its own for them either.
pub const FIELDS_MAX: usize = HEAD_BYTES_MAX / 4;

/// Field lines that need no memory beside the stack.
const FIELDS_USUAL: usize = 100;

/// What the head of a response says, borrowed from its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResponseHead<'a> {
    /// Minor version: 0 or 1.
    pub version_minor: u8,
    /// Status code, 100 to 999.
    pub status: u16,
    /// How the end of the content is found.
    pub framing: Framing,
    /// Whether the connection may carry another request afterwards.
    pub persistent: bool,
    /// Value of the Location field.
    pub location: Option<&'a [u8]>,
    /// Where in the head the value of Date is.
    pub date: Option<Range<usize>>,
    /// Where in the head the value of Keep-Alive is.
    pub keep_alive: Option<Range<usize>>,
}

/// How the end of the content is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// After this many bytes; 0 also where no content is allowed.
    Length(u64),
    /// After the last chunk and the trailer section, see [`crate::chunked`].
    Chunked,
    /// Where the server closes the connection.
    UntilClose,
}

/// The method of the request decides whether a response has content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestMethod {
    /// HEAD: a response never has content, whatever its fields say.
    Head,
    /// Any other method but CONNECT.
    Other,
}

/// Why a message head was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HeadError {
    /// The grammar is broken.
    #[error("malformed message head: {0}")]
    Malformed(#[from] httparse::Error),
    /// The empty line at the end is missing.
    #[error("message head without end")]
    Incomplete,
    /// More field lines than [`FIELDS_MAX`].
    #[error("more than {FIELDS_MAX} field lines")]
    TooManyFields,
    /// Content-Length is no number, or several that differ.
    #[error("invalid Content-Length: {0:?}")]
    ContentLength(String),
    /// A field that may be there once is there twice with different values.
    #[error("two different {0} fields")]
    Repeated(&'static str),
}

impl<'a> ResponseHead<'a> {
    /// Reads `head`, which ends with the empty line, in answer to `method`. Does not allocate, if there are no
    /// more than 100 field lines.
    ///
    /// # Errors
    ///
    /// When the head breaks the grammar or contradicts itself.
    pub fn parse(head: &'a [u8], method: RequestMethod) -> Result<Self, HeadError> {
        let config = httparse::ParserConfig::default();
        let mut usual = [const { MaybeUninit::uninit() }; FIELDS_USUAL];
        let mut many = Vec::new();
        let mut response = httparse::Response::new(&mut []);
        let mut parsed = config.parse_response_with_uninit_headers(&mut response, head, &mut usual);
        if parsed == Err(httparse::Error::TooManyHeaders) {
            let lines = memchr::memchr_iter(b'\n', head).count();
            many.resize_with(lines.min(FIELDS_MAX), MaybeUninit::uninit);
            parsed = config.parse_response_with_uninit_headers(&mut response, head, &mut many);
        }
        match parsed {
            Ok(httparse::Status::Complete(_)) => {}
            Ok(httparse::Status::Partial) => return Err(HeadError::Incomplete),
            Err(httparse::Error::TooManyHeaders) => return Err(HeadError::TooManyFields),
            Err(error) => return Err(error.into()),
        }
        let version_minor = response.version.unwrap_or_default();
        let status = response.code.unwrap_or_default();

        let (mut length, mut coding, mut location) = (None, None, None);
        let (mut close, mut keep) = (false, false);
        let (mut date, mut keep_alive) = (None, None);
        for field in response.headers.iter() {
            // The length of the name alone rules out nearly every field.
            match field.name.len() {
                4 if is(field.name, "date") => date = Some(range_in(head, field.value)),
                8 if is(field.name, "location") => once(&mut location, field.value, "Location")?,
                10 if is(field.name, "connection") => {
                    for option in list(field.value) {
                        close |= option.eq_ignore_ascii_case(b"close");
                        keep |= option.eq_ignore_ascii_case(b"keep-alive");
                    }
                }
                10 if is(field.name, "keep-alive") => {
                    keep_alive = Some(range_in(head, field.value));
                }
                14 if is(field.name, "content-length") => add_length(&mut length, field.value)?,
                17 if is(field.name, "transfer-encoding") => {
                    coding = list(field.value).last().or(coding);
                }
                _ => {}
            }
        }

        let framing = match (coding, length) {
            _ if !has_content(status, method) => Framing::Length(0),
            (Some(last), _) if last.eq_ignore_ascii_case(b"chunked") => Framing::Chunked,
            (Some(_), _) | (None, None) => Framing::UntilClose,
            (None, Some(length)) => Framing::Length(length),
        };
        // Both framings at once, or a coding that HTTP/1.0 does not have: whoever wrote that cannot
        // be trusted to be in step afterwards (RFC 9112 sections 6.1 and 6.3).
        let doubtful = coding.is_some() && (length.is_some() || version_minor == 0);
        let persistent =
            !close && (version_minor > 0 || keep) && framing != Framing::UntilClose && !doubtful;
        Ok(Self { version_minor, status, framing, persistent, location, date, keep_alive })
    }
}

/// The reason phrase and then the fields of a head that [`ResponseHead::parse`] has accepted: names and
/// values in order.
pub fn lines(head: &[u8]) -> (&[u8], impl Iterator<Item = (&[u8], &[u8])>) {
    let mut lines = head.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii_end);
    let line = lines.next().unwrap_or_default();
    // Version and status have the same length in every head.
    let reason = line.get(b"HTTP/1.1 200".len()..).unwrap_or_default().trim_ascii();
    let fields = lines.filter_map(|line| {
        let colon = memchr::memchr(b':', line)?;
        Some((line[..colon].trim_ascii(), line[colon + 1..].trim_ascii()))
    });
    (reason, fields)
}

/// Where the message head ends: just after its empty line. Line ends may lack their CR.
///
/// Bytes before `seen` were looked at by an earlier call; call again with the length it was given
/// when more has come.
#[must_use]
pub fn head_end(bytes: &[u8], seen: usize) -> Option<usize> {
    // An empty line may have begun in the last two bytes seen.
    let from = seen.saturating_sub(2).min(bytes.len());
    memchr::memchr_iter(b'\n', &bytes[from..]).find_map(|at| match &bytes[from + at + 1..] {
        [b'\n', ..] => Some(from + at + 2),
        [b'\r', b'\n', ..] => Some(from + at + 3),
        _ => None,
    })
}

/// Whether a final response with `status` to `method` has content at all.
fn has_content(status: u16, method: RequestMethod) -> bool {
    method != RequestMethod::Head && !matches!(status, 100..=199 | 204 | 304)
}

fn is(name: &str, lower: &str) -> bool {
    name.eq_ignore_ascii_case(lower)
}

/// Members of a comma-separated list, empty ones left out.
fn list(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii).filter(|member| !member.is_empty())
}

fn once<'a>(
    slot: &mut Option<&'a [u8]>,
    value: &'a [u8],
    name: &'static str,
) -> Result<(), HeadError> {
    match slot.replace(value) {
        Some(earlier) if earlier != value => Err(HeadError::Repeated(name)),
        _ => Ok(()),
    }
}

/// Repeated equal lengths, on one line or several, count as one (RFC 9112 section 6.3).
fn add_length(length: &mut Option<u64>, value: &[u8]) -> Result<(), HeadError> {
    let invalid = || HeadError::ContentLength(String::from_utf8_lossy(value).into_owned());
    for member in value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii) {
        // `parse` alone would take a sign.
        let number = std::str::from_utf8(member)
            .ok()
            .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
            .and_then(|digits| digits.parse().ok())
            .ok_or_else(invalid)?;
        if length.replace(number).is_some_and(|earlier| earlier != number) {
            return Err(invalid());
        }
    }
    Ok(())
}

/// Position of `part`, a subslice of `whole`.
fn range_in(whole: &[u8], part: &[u8]) -> Range<usize> {
    let start = part.as_ptr() as usize - whole.as_ptr() as usize;
    start..start + part.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_head() {
        let head = b"HTTP/1.1 404 Not  Found\r\nA: 1\nb:  x:y \r\nC:\r\n\r\n";
        let (reason, fields) = lines(head);
        assert_eq!(reason, b"Not  Found");
        let fields: Vec<_> = fields.collect();
        let expected: [(&[u8], &[u8]); 3] = [(b"A", b"1"), (b"b", b"x:y"), (b"C", b"")];
        assert_eq!(fields, expected);
        assert_eq!(lines(b"HTTP/1.1 200\r\n\r\n").0, b"");
    }

    #[test]
    fn framing_follows_the_order_of_rfc_9112() {
        check("HTTP/1.1 200 OK|Content-Length: 8", Framing::Length(8), true);
        check("HTTP/1.1 301 Moved|content-LENGTH: 0|Location: /a", Framing::Length(0), true);
        check("HTTP/1.1 200 OK|Transfer-Encoding: chunked", Framing::Chunked, true);
        check("HTTP/1.1 200 OK|Transfer-Encoding: gzip, Chunked", Framing::Chunked, true);
        check("HTTP/1.1 200 OK|Transfer-Encoding: chunked, gzip", Framing::UntilClose, false);
        check("HTTP/1.1 200 OK", Framing::UntilClose, false);
        // Chunked wins over a length, but the connection is not used again.
        check(
            "HTTP/1.1 200 OK|Content-Length: 8|Transfer-Encoding: chunked",
            Framing::Chunked,
            false,
        );
    }

    #[test]
    fn some_responses_never_have_content() {
        check("HTTP/1.1 204 No Content", Framing::Length(0), true);
        check("HTTP/1.1 304 Not Modified|Content-Length: 8", Framing::Length(0), true);
        check("HTTP/1.1 103 Early Hints|Link: </a>", Framing::Length(0), true);
        let head = b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n";
        let head = ResponseHead::parse(head, RequestMethod::Head).unwrap();
        assert_eq!(head.framing, Framing::Length(0));
    }

    #[test]
    fn persistence_follows_version_and_options() {
        let length = "Content-Length: 0";
        for (version, connection, persistent) in [
            ("1.1", "", true),
            ("1.1", "|Connection: close", false),
            ("1.1", "|Connection: Keep-Alive", true),
            ("1.1", "|Connection: Upgrade, CLOSE", false),
            ("1.1", "|Connection: keep-alive|Connection: close", false),
            ("1.0", "", false),
            ("1.0", "|Connection: Keep-Alive", true),
            ("1.0", "|Connection: close", false),
            ("1.0", "|Connection: keep-alive|Transfer-Encoding: chunked", false),
        ] {
            let head = wire(&format!("HTTP/{version} 200 OK|{length}{connection}"));
            let head = ResponseHead::parse(&head, RequestMethod::Other).unwrap();
            assert_eq!(head.persistent, persistent, "HTTP/{version} {connection}");
        }
    }

    #[test]
    fn equal_lengths_count_once_and_different_ones_are_refused() {
        check("HTTP/1.1 200 OK|Content-Length: 8, 8", Framing::Length(8), true);
        check("HTTP/1.1 200 OK|Content-Length: 8|Content-Length: 8", Framing::Length(8), true);
        for value in ["8, 9", "-1", "+8", "", "8,", "0x8", "18446744073709551616", "8 8"] {
            let head = wire(&format!("HTTP/1.1 200 OK|Content-Length: {value}"));
            let error = ResponseHead::parse(&head, RequestMethod::Other).unwrap_err();
            assert!(matches!(error, HeadError::ContentLength(_)), "{value}: {error}");
        }
    }

    #[test]
    fn location_date_and_keep_alive_are_found() {
        let head = wire(
            "HTTP/1.1 301 |Date: today|Location:  /a b |Keep-Alive: timeout=5|Content-Length: 0",
        );
        let parsed = ResponseHead::parse(&head, RequestMethod::Other).unwrap();
        assert_eq!(parsed.location, Some(&b"/a b"[..]));
        assert_eq!(&head[parsed.date.unwrap()], b"today");
        assert_eq!(&head[parsed.keep_alive.unwrap()], b"timeout=5");
    }

    #[test]
    fn two_locations_are_refused_unless_equal() {
        let head = wire("HTTP/1.1 301 |Location: /a|Location: /b");
        let error = ResponseHead::parse(&head, RequestMethod::Other).unwrap_err();
        assert_eq!(error, HeadError::Repeated("Location"));
        let head = wire("HTTP/1.1 301 |Location: /a|Location: /a");
        assert!(ResponseHead::parse(&head, RequestMethod::Other).is_ok());
    }

    #[test]
    fn broken_heads_are_refused() {
        for head in [
            "HTTP/2.0 200 OK|A: b",
            "HTTP/1.1 20 OK|A: b",
            "SSH-2.0-x|A: b",
            "HTTP/1.1 200 OK|a b: c",
        ] {
            let head = wire(head);
            assert!(ResponseHead::parse(&head, RequestMethod::Other).is_err());
        }
        let endless = b"HTTP/1.1 200 OK\r\nA: b\r\n";
        let error = ResponseHead::parse(endless, RequestMethod::Other).unwrap_err();
        assert_eq!(error, HeadError::Incomplete);
    }

    #[test]
    fn the_number_of_fields_is_limited() {
        let fields = |count: usize| wire(&format!("HTTP/1.1 200 OK{}", "|A: b".repeat(count)));
        assert!(ResponseHead::parse(&fields(FIELDS_MAX), RequestMethod::Other).is_ok());
        let error = ResponseHead::parse(&fields(FIELDS_MAX + 1), RequestMethod::Other)
            .map(|_| ())
            .unwrap_err();
        assert_eq!(error, HeadError::TooManyFields);
    }

    #[test]
    fn the_end_of_the_head_is_found_whatever_the_pieces() {
        for (text, end) in [
            ("HTTP/1.1 200 OK\r\n\r\nrest", Some(19)),
            ("HTTP/1.1 200 OK\nA: b\n\nrest", Some(22)),
            ("HTTP/1.1 200 OK\nA: b\n\r\nrest", Some(23)),
            ("HTTP/1.1 200 OK\r\nA: b\r\n", None),
            ("", None),
        ] {
            assert_eq!(head_end(text.as_bytes(), 0), end, "{text:?}");
            let mut seen = 0;
            let found = (0..=text.len()).find_map(|length| {
                let found = head_end(&text.as_bytes()[..length], seen);
                seen = length;
                found
            });
            assert_eq!(found, end, "{text:?} byte by byte");
        }
    }

    #[track_caller]
    fn check(lines: &str, framing: Framing, persistent: bool) {
        let head = wire(lines);
        let head = ResponseHead::parse(&head, RequestMethod::Other).unwrap();
        assert_eq!((head.framing, head.persistent), (framing, persistent));
    }

    /// Lines separated by `|`, as they go over the wire.
    fn wire(lines: &str) -> Vec<u8> {
        format!("{}\r\n\r\n", lines.replace('|', "\r\n")).into_bytes()
    }
}
