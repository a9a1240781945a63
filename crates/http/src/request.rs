//! Parses the head of an HTTP/1 request: strictly, in one pass, without allocation.
//!
//! Everything that two parsers could read differently is refused, because a request that a proxy in
//! front of us frames in another way than we do is how requests are smuggled: bare CR and bare LF,
//! folded lines, space before the colon, more than one `Host` or `Content-Length`, `Content-Length`
//! beside `Transfer-Encoding`. Bytes from 0x80 are legal in the target and in field values, as they
//! are for Apache, and need not be UTF-8.
//!
//! The parser is ours and not `httparse` because that one wants UTF-8 targets, an array of fields
//! with a fixed size, and starts again at the first byte when a head arrives in pieces; a test holds
//! the two against each other. A caller that gets `None` goes on with [`HeadScan`], which looks at
//! each byte once and applies the same limits, so that a slow sender costs linear time.
//!
//! Source: RFC 9112 sections 2 to 6 and 9.3; httpd 2.4.71 `server/protocol.c` for the limits, and for
//! the choices that the RFC leaves open.

mod class;
mod digest;
mod error;
mod field;
mod framing;
mod host;
mod line;
mod room;

pub use error::HeadError;
pub use field::FieldLines;
pub use framing::Content;
pub use line::{EMPTY_LINES_MAX, HeadLimits, HeadScan, empty_lines};
pub use room::HeadRoom;

pub use class::is_token;
use class::{TARGET, TOKEN, count};
use line::LineLimit;

/// A complete, valid request head, borrowed from the bytes that it was parsed from.
#[derive(Debug, Clone, Copy)]
pub struct RequestHead<'a> {
    /// The method, as sent; methods are case-sensitive.
    pub method: &'a [u8],
    /// The request-target, as sent: not empty, without control bytes and spaces.
    pub target: &'a [u8],
    /// The version, as far as it changes what we do.
    pub version: Version,
    /// All field lines, in order.
    pub fields: FieldLines<'a>,
    /// The value of `Host`, which is there at most once, and always in HTTP/1.1.
    pub host: Option<&'a [u8]>,
    /// How the content is framed.
    pub content: Content,
    /// What the client said about the connection after this request.
    pub persistence: Persistence,
    /// The client waits for `100 Continue` before it sends its content.
    pub expects_continue: bool,
    /// The bytes that the head was parsed from, the empty line included.
    pub bytes: &'a [u8],
}

/// The version of a request; a later minor version counts as 1.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// HTTP/1.0.
    Http10,
    /// HTTP/1.1.
    Http11,
    /// HTTP/2. No head that is parsed here says so; who has made one of frames does.
    Http2,
}

/// What a request says about its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Persistence {
    /// To be closed: `close` was said, or it is HTTP/1.0 and nothing was said.
    Close,
    /// Goes on, as HTTP/1.1 does when nothing is said.
    Implied,
    /// Goes on because `keep-alive` was said, and the client may look for the same word from us.
    Asked,
}

/// Parses the head at the start of `bytes`; `None` when it is not complete.
///
/// `room` is used from head to head; what it holds does not matter to the result.
///
/// # Errors
/// For a head that is malformed or over a limit. Nothing after it can be trusted: the connection is
/// to be answered with [`HeadError::status`] and closed.
pub fn parse<'a>(
    bytes: &'a [u8],
    limits: &HeadLimits,
    room: &'a mut HeadRoom,
) -> Result<Option<RequestHead<'a>>, HeadError> {
    let Some(line) = RequestLine::parse(bytes, limits.request_line())? else { return Ok(None) };
    let RequestLine { method, target, version, next } = line;
    let Some(length) = room.read(next, limits)? else { return Ok(None) };
    let (fields, rest) = next.split_at(length);
    let digest = room.digest();
    Ok(Some(RequestHead {
        method,
        target,
        version,
        content: digest.content(version)?,
        persistence: digest.persistence(version)?,
        expects_continue: digest.expects_continue(version),
        host: digest.host(fields),
        fields: room.lines_of(fields),
        bytes: &bytes[..bytes.len() - rest.len()],
    }))
}

/// Reads a head that [`parse`] has refused for what its fields say, for whoever answers it; `None` if there is more
/// wrong with it. Nothing comes after it that could be trusted, as it says.
pub fn parse_refused<'a>(
    bytes: &'a [u8],
    limits: &HeadLimits,
    room: &'a mut HeadRoom,
) -> Option<RequestHead<'a>> {
    let RequestLine { method, target, version, next } =
        RequestLine::parse(bytes, limits.request_line()).ok()??;
    let length = room.read_refused(next, limits).ok()??;
    let (fields, rest) = next.split_at(length);
    Some(RequestHead {
        method,
        target,
        version,
        content: Content::None,
        persistence: Persistence::Close,
        expects_continue: false,
        host: room.digest().host(fields),
        fields: room.lines_of(fields),
        bytes: &bytes[..bytes.len() - rest.len()],
    })
}

/// A request line, and what comes after it.
struct RequestLine<'a> {
    method: &'a [u8],
    target: &'a [u8],
    version: Version,
    next: &'a [u8],
}

impl<'a> RequestLine<'a> {
    /// Reads method, one space, target, one space, version; `None` if the line has no end yet.
    ///
    /// Which of the four forms the target has is not looked at here.
    #[inline]
    fn parse(bytes: &'a [u8], limit: LineLimit) -> Result<Option<Self>, HeadError> {
        const ERROR: HeadError = HeadError::RequestLine;
        let (method, rest) = bytes.split_at(count::<TOKEN>(bytes));
        let ([_, ..], [b' ', rest @ ..]) = (method, rest) else {
            return line::refuse(bytes, limit, ERROR).map(|()| None);
        };
        let (target, rest) = rest.split_at(count::<TARGET>(rest));
        let ([_, ..], Some((b' ', rest))) = (target, rest.split_first()) else {
            return line::refuse(bytes, limit, ERROR).map(|()| None);
        };
        let Some((version, rest)) = rest.split_first_chunk() else {
            return line::refuse(bytes, limit, ERROR).map(|()| None);
        };
        let end = bytes.len() - rest.len();
        let Some(next) = line::take_end(bytes, end, limit, ERROR)? else { return Ok(None) };
        match Version::parse(version) {
            Ok(version) => Ok(Some(RequestLine { method, target, version, next })),
            Err(error) => line::refuse(bytes, limit, error).map(|()| None),
        }
    }
}

impl Version {
    fn parse(version: &[u8; 8]) -> Result<Version, HeadError> {
        match version {
            b"HTTP/1.1" => Ok(Version::Http11),
            b"HTTP/1.0" => Ok(Version::Http10),
            [b'H', b'T', b'T', b'P', b'/', b'1', b'.', b'2'..=b'9'] => Ok(Version::Http11),
            [b'H', b'T', b'T', b'P', b'/', b'2'..=b'9', b'.', b'0'..=b'9'] => {
                Err(HeadError::VersionNotSupported)
            }
            _ => Err(HeadError::RequestLine),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_parts() {
        let mut room = HeadRoom::default();
        let bytes = b"GET /a?b HTTP/1.1\r\nHost: h\r\nX-A:  1\t\r\nx-a:2\r\n\r\nGET ";
        let head = parse(bytes, &HeadLimits::default(), &mut room).unwrap().unwrap();
        assert_eq!(head.method, b"GET");
        assert_eq!(head.target, b"/a?b");
        assert_eq!(head.version, Version::Http11);
        assert_eq!(head.bytes, &bytes[..bytes.len() - 4]);
        assert_eq!(head.host, Some(&b"h"[..]));
        assert_eq!(head.content, Content::None);
        let fields: Vec<_> = head.fields.iter().collect();
        let expected: [(&[u8], &[u8]); 3] = [(b"Host", b"h"), (b"X-A", b"1"), (b"x-a", b"2")];
        assert_eq!(fields, expected);
        assert_eq!(head.fields.first("X-a"), Some(&b"1"[..]));
        assert_eq!(head.fields.count("x-A"), 2);
        assert_eq!(head.fields.first("absent"), None);
    }

    #[test]
    fn accepts_what_apache_accepts() {
        for head in [
            "get /r HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET /r HTTP/1.2\r\nHost: a\r\n\r\n",
            "GET /\"<>\\^`{|} HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET /r HTTP/1.1\r\nHost: a\r\nX: a\tb\r\n\r\n",
            "GET /r HTTP/1.1\r\nHost: a\r\nX:\r\n\r\n",
            "GET /r HTTP/1.1\r\nHost: a\r\nExpect:\r\n\r\n",
            "GET /r HTTP/1.0\r\n\r\n",
            "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
            "CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n",
        ] {
            check(head.as_bytes(), Ok(Content::None));
        }
        check(b"GET /r/\xe4 HTTP/1.1\r\nHost: a\r\nX: \xe4\r\n\r\n", Ok(Content::None));
    }

    #[test]
    fn refuses_a_bad_request_line() {
        for line in [
            "GET  /r HTTP/1.1",
            "GET /r  HTTP/1.1",
            "GET\t/r HTTP/1.1",
            " GET /r HTTP/1.1",
            "GET /r HTTP/1.1 ",
            "GET /r s HTTP/1.1",
            "GET /r",
            "GET /r ",
            "GET",
            "GET  HTTP/1.1",
            " /r HTTP/1.1",
            "G(T /r HTTP/1.1",
            "GET /r HTTP/0.9",
            "GET /r HTTP/1.10",
            "GET /r HTTP/11",
            "GET /r http/1.1",
            "GET /r FOO",
            "GET /r\x01 HTTP/1.1",
            "GET /r\x7f HTTP/1.1",
            "GET /r\0 HTTP/1.1",
            "GET /r\r HTTP/1.1",
            "GET /r HTTP/1.1\r",
            "",
        ] {
            check(format!("{line}\r\nHost: a\r\n\r\n").as_bytes(), Err(HeadError::RequestLine));
        }
        for version in ["HTTP/2.0", "HTTP/3.0", "HTTP/9.9"] {
            let head = format!("GET /r {version}\r\nHost: a\r\n\r\n");
            check(head.as_bytes(), Err(HeadError::VersionNotSupported));
        }
        check(b"GET /r HTTP/1.1\nHost: a\r\n\r\n", Err(HeadError::BareLineFeed));
    }

    #[test]
    fn refuses_bad_fields() {
        for (field, error) in [
            ("X : b", HeadError::FieldName),
            (": b", HeadError::FieldName),
            ("X(: b", HeadError::FieldName),
            ("X", HeadError::FieldName),
            ("X\r", HeadError::FieldName),
            (" X: b", HeadError::FoldedLine),
            ("X: b\r\n c", HeadError::FoldedLine),
            ("X: b\r\n\tc", HeadError::FoldedLine),
            ("X: a\rb", HeadError::FieldValue),
            ("X: b\r", HeadError::FieldValue),
            ("X: a\0b", HeadError::FieldValue),
            ("X: a\x01b", HeadError::FieldValue),
            ("X: a\x7fb", HeadError::FieldValue),
            ("X: a\n", HeadError::BareLineFeed),
            ("\r", HeadError::FieldName),
            ("Expect: x", HeadError::ExpectationUnknown),
            ("Expect: 100-continue, x", HeadError::ExpectationUnknown),
            ("Host: b", HeadError::HostRepeated),
        ] {
            let head = format!("GET /r HTTP/1.1\r\nHost: a\r\n{field}\r\n\r\n");
            check(head.as_bytes(), Err(error));
        }
        check(b"GET /r HTTP/1.1\r\nX\xe4: b\r\n\r\n", Err(HeadError::FieldName));
        check(b"GET /r HTTP/1.1\r\n\r\n", Err(HeadError::HostMissing));
        check(b"GET /r HTTP/1.1\r\nHost:\r\n\r\n", Err(HeadError::HostInvalid));
        check(b"GET /r HTTP/1.0\r\nHost: a b\r\n\r\n", Err(HeadError::HostInvalid));
    }

    #[test]
    fn content_is_framed_one_way_or_refused() {
        for (fields, expected) in [
            ("Content-Length: 0", Ok(Content::None)),
            ("Content-Length: 5", Ok(Content::Length(5))),
            ("content-LENGTH: 005", Ok(Content::Length(5))),
            ("Content-Length: 18446744073709551615", Ok(Content::Length(u64::MAX))),
            ("Content-Length: 18446744073709551616", Err(HeadError::ContentLength)),
            ("Content-Length:", Err(HeadError::ContentLength)),
            ("Content-Length: +1", Err(HeadError::ContentLength)),
            ("Content-Length: -1", Err(HeadError::ContentLength)),
            ("Content-Length: 0x1", Err(HeadError::ContentLength)),
            ("Content-Length: 1 1", Err(HeadError::ContentLength)),
            ("Content-Length: 1, 1", Err(HeadError::ContentLength)),
            ("Content-Length: 1\r\nContent-Length: 1", Err(HeadError::ContentLengthRepeated)),
            ("Transfer-Encoding: chunked", Ok(Content::Chunked)),
            ("Transfer-Encoding: ,Chunked ,", Ok(Content::Chunked)),
            ("Transfer-Encoding: gzip, chunked", Err(HeadError::TransferCodingUnknown)),
            (
                "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked",
                Err(HeadError::TransferCodingUnknown),
            ),
            ("Transfer-Encoding: chunked, gzip", Err(HeadError::TransferCodingNotChunked)),
            ("Transfer-Encoding: gzip", Err(HeadError::TransferCodingNotChunked)),
            ("Transfer-Encoding: xchunked", Err(HeadError::TransferCodingNotChunked)),
            ("Transfer-Encoding: chunked;q=1", Err(HeadError::TransferCodingNotChunked)),
            ("Transfer-Encoding: identity", Err(HeadError::TransferCodingNotChunked)),
            ("Transfer-Encoding:", Err(HeadError::TransferCodingNotChunked)),
            ("Transfer-Encoding: chunked, chunked", Err(HeadError::ChunkedTwice)),
            (
                "Content-Length: 1\r\nTransfer-Encoding: chunked",
                Err(HeadError::LengthBesideTransferCoding),
            ),
            (
                "Transfer-Encoding: chunked\r\nContent-Length: 1",
                Err(HeadError::LengthBesideTransferCoding),
            ),
        ] {
            let head = format!("POST /r HTTP/1.1\r\nHost: a\r\n{fields}\r\n\r\n");
            check(head.as_bytes(), expected);
        }
        check(
            b"POST /r HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
            Err(HeadError::TransferCodingInHttp10),
        );
    }

    #[test]
    fn persistence_is_what_the_client_said() {
        use Persistence::{Asked, Close, Implied};
        for (version, connection, expected) in [
            ("1.0", "", Close),
            ("1.0", "Connection: close\r\n", Close),
            ("1.0", "Connection: keep-alive\r\n", Asked),
            ("1.0", "Connection: foo, Keep-Alive\r\n", Asked),
            ("1.0", "Connection: foo\r\nConnection: keep-alive\r\n", Asked),
            ("1.0", "Connection: foo\r\n", Close),
            ("1.1", "", Implied),
            ("1.1", "Connection: CLOSE\r\n", Close),
            ("1.1", "Connection: foo ,close\r\n", Close),
            ("1.1", "Connection: keep-alive, close\r\n", Close),
            ("1.1", "Connection: keep-alive\r\n", Asked),
            ("1.1", "Connection: closed\r\n", Implied),
            ("1.1", "Connection:\r\n", Implied),
        ] {
            let bytes = format!("GET / HTTP/{version}\r\nHost: a\r\n{connection}\r\n");
            let mut room = HeadRoom::default();
            let limits = HeadLimits::default();
            let head = parse(bytes.as_bytes(), &limits, &mut room).unwrap().unwrap();
            assert_eq!(head.persistence, expected, "{bytes:?}");
        }
    }

    #[test]
    fn limits_hold_at_the_bound() {
        let limits = HeadLimits { request_line_bytes_max: 30, field_bytes_max: 20, fields_max: 3 };
        // Apache reads one byte more than the directive says, and so do we.
        let line = |bytes: usize| format!("GET /{:a<1$} HTTP/1.1", "", bytes - 14);
        let field = |bytes: usize| format!("X: {:a<1$}", "", bytes - 3);
        let head = |line: &str, field: &str| format!("{line}\r\nHost: a\r\n{field}\r\n\r\n");
        check_limited(&head(&line(31), "X: a"), &limits, Ok(Content::None));
        check_limited(&head(&line(32), "X: a"), &limits, Err(HeadError::RequestLineTooLong));
        check_limited(&head(&line(30), &field(21)), &limits, Ok(Content::None));
        check_limited(&head(&line(30), &field(22)), &limits, Err(HeadError::FieldTooLong));
        check_limited(&head(&line(30), "A: a\r\nB: b"), &limits, Ok(Content::None));
        let four = head(&line(30), "A: a\r\nB: b\r\nC: c");
        check_limited(&four, &limits, Err(HeadError::TooManyFields));
        let unlimited = HeadLimits { fields_max: 0, ..limits };
        check_limited(&four, &unlimited, Ok(Content::None));
    }

    #[track_caller]
    fn check(bytes: &[u8], expected: Result<Content, HeadError>) {
        check_with(bytes, &HeadLimits::default(), expected);
    }

    #[track_caller]
    fn check_limited(head: &str, limits: &HeadLimits, expected: Result<Content, HeadError>) {
        check_with(head.as_bytes(), limits, expected);
    }

    /// Whole, and byte by byte through the scan: the same answer, and never before it is known.
    #[track_caller]
    fn check_with(bytes: &[u8], limits: &HeadLimits, expected: Result<Content, HeadError>) {
        let mut room = HeadRoom::default();
        let whole =
            parse(bytes, limits, &mut room).map(|head| head.expect("the head is complete").content);
        assert_eq!(whole, expected, "{:?}", bytes.escape_ascii().to_string());

        let mut scan = HeadScan::default();
        let pieces = (1..=bytes.len()).find_map(|end| match scan.advance(&bytes[..end], limits) {
            Ok(false) => None,
            Ok(true) => Some(
                parse(&bytes[..end], limits, &mut room)
                    .map(|head| head.expect("the scan saw the end of the head").content),
            ),
            Err(error) => Some(Err(error)),
        });
        // A line can be malformed and too long at once; whole heads tell the first of the two.
        assert_eq!(pieces, Some(expected), "{:?}", bytes.escape_ascii().to_string());
    }
}
