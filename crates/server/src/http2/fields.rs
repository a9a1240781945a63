//! Heads of HTTP/2 as heads of HTTP/1, which is what responders know, and back.
//!
//! A request is written out and parsed again: so all that is refused in HTTP/1 is refused here, by the same
//! code, and nothing of it can be smuggled into what is made of the head later (a request to a proxy, a
//! line of a log).
//!
//! Source: RFC 9113 sections 8.2 and 8.3.

use http::header::{CONTENT_LENGTH, COOKIE, HOST};
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode};
use milepost_http::request::HeadError;

use crate::clock::Clock;
use crate::reply::Reply;
use crate::status;

/// Writes the head of a request as HTTP/1 has it.
pub(super) fn write_head(parts: &Parts, out: &mut Vec<u8>) -> Result<(), HeadError> {
    out.extend_from_slice(parts.method.as_str().as_bytes());
    out.push(b' ');
    out.extend_from_slice(target(parts));
    out.extend_from_slice(b" HTTP/1.1\r\n");
    let authority = parts.uri.authority().map(|authority| authority.as_str().as_bytes());
    if let Some(authority) = authority {
        write_field(out, b"Host", authority)?;
    }
    let mut cookies = parts.headers.get_all(COOKIE).iter();
    for (name, value) in &parts.headers {
        // `:authority` is what counts; a cookie may have been cut into crumbs.
        if (name == HOST && authority.is_some()) || name == COOKIE {
            continue;
        }
        write_field(out, name.as_str().as_bytes(), value.as_bytes())?;
    }
    if let Some(first) = cookies.next() {
        let mut cookie = first.as_bytes().to_vec();
        for crumb in cookies {
            cookie.extend_from_slice(b"; ");
            cookie.extend_from_slice(crumb.as_bytes());
        }
        write_field(out, b"Cookie", &cookie)?;
    }
    out.extend_from_slice(b"\r\n");
    Ok(())
}

/// The request line as httpd would log it.
pub(super) fn request_line(parts: &Parts) -> Vec<u8> {
    [parts.method.as_str().as_bytes(), b" ", target(parts), b" HTTP/2.0"].concat()
}

/// The request-target: for `CONNECT` the authority, else the path.
fn target(parts: &Parts) -> &[u8] {
    if parts.method == Method::CONNECT {
        return parts.uri.authority().map_or(&b""[..], |authority| authority.as_str().as_bytes());
    }
    parts.uri.path_and_query().map_or("/", PathAndQuery::as_str).as_bytes()
}

fn write_field(out: &mut Vec<u8>, name: &[u8], value: &[u8]) -> Result<(), HeadError> {
    if memchr::memchr3(b'\r', b'\n', 0, value).is_some() {
        return Err(HeadError::FieldValue);
    }
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
    Ok(())
}

/// The head of a response: the reply's own fields, and those of every response.
pub(super) fn response(reply: &Reply, clock: &Clock) -> Response<()> {
    let mut response = with_status(reply.status());
    let fields = response.headers_mut();
    let (date, server) = clock.values();
    fields.insert(http::header::DATE, date);
    fields.insert(http::header::SERVER, server);
    add_lines(reply.fields(), fields);
    if status::has_content(reply.status()) {
        fields.insert(CONTENT_LENGTH, HeaderValue::from(reply.length()));
    }
    response
}

/// The head of a response whose fields are lines.
pub(super) fn response_of_lines(status: u16, lines: &[u8], length: Option<u64>) -> Response<()> {
    let mut response = with_status(status);
    add_lines(lines, response.headers_mut());
    if let Some(length) = length {
        response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    response
}

fn with_status(status: u16) -> Response<()> {
    let mut response = Response::new(());
    *response.status_mut() =
        StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response
}

/// Adds field lines, each with its CRLF. A field that HTTP/2 cannot carry is left out.
///
/// Source: RFC 9113 section 8.2.2.
pub(super) fn add_lines(lines: &[u8], fields: &mut HeaderMap) {
    const OF_CONNECTION: &[&str] =
        &["connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"];
    for line in lines.split(|&byte| byte == b'\n') {
        let Some(colon) = memchr::memchr(b':', line) else { continue };
        if let (Ok(name), Ok(value)) = (
            HeaderName::from_bytes(&line[..colon]),
            HeaderValue::from_bytes(line[colon + 1..].trim_ascii()),
        ) && !OF_CONNECTION.contains(&name.as_str())
        {
            fields.append(name, value);
        }
    }
}

/// Writes fields as lines, each with its CRLF.
pub(super) fn write_lines(fields: &HeaderMap, out: &mut Vec<u8>) -> Result<(), HeadError> {
    fields.iter().try_for_each(|(name, value)| write_field(out, name.as_ref(), value.as_bytes()))
}
