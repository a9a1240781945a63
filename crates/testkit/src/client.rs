//! A plain HTTP/1.1 client that sends the bytes it is given and keeps its connection.
//!
//! Request-targets under test may be invalid on purpose, so nothing here parses, escapes or checks
//! a request. Responses are read by their framing, so that thousands of requests share one
//! connection.
//!
//! Source: RFC 9112 section 6.3 (message body length).

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// A server that is silent for this long is taken for dead; real answers take milliseconds.
const SILENCE_MAX: Duration = Duration::from_secs(20);
/// Far above the head of any answer under test, and a bound on a server gone mad.
const HEAD_BYTES_MAX: u64 = 1 << 20;
/// Far above any file of a case.
const CONTENT_BYTES_MAX: u64 = 16 << 20;

/// A client of one address.
#[derive(Debug)]
pub struct Client {
    address: SocketAddr,
    stream: Option<BufReader<TcpStream>>,
}

/// One response: status, field lines in order, content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// The field lines: names as sent, values without surrounding blanks.
    pub fields: Vec<(String, Vec<u8>)>,
    /// The content, with any chunked coding removed.
    pub content: Vec<u8>,
}

/// Why there is no response.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The connection could not be made, or broke.
    #[error("connection to {address}: {error}")]
    Io {
        /// Whom we talked to.
        address: SocketAddr,
        /// What happened.
        error: io::Error,
    },
    /// The connection was closed before a whole response had arrived.
    #[error("{0} closed the connection before a whole response had arrived")]
    Closed(SocketAddr),
    /// What came is no HTTP/1 response.
    #[error("{0} sent no HTTP/1 response: {1:?}")]
    Malformed(SocketAddr, String),
}

impl Response {
    /// Returns the first value of field `name` (any case).
    pub fn value(&self, name: &str) -> Option<&[u8]> {
        let found = self.fields.iter().find(|(field, _)| field.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_slice())
    }
}

impl Client {
    /// Makes a client; it connects when it first sends.
    pub fn new(address: SocketAddr) -> Client {
        Client { address, stream: None }
    }

    /// Sends `request` and reads its response; `head` says that the method is HEAD.
    ///
    /// When a kept connection turns out to be closed, the request is sent once more on a new one.
    ///
    /// # Errors
    /// [`ClientError`] when no whole response arrives.
    pub fn exchange(&mut self, request: &[u8], head: bool) -> Result<Response, ClientError> {
        let reused = self.stream.is_some();
        match self.exchange_once(request, head) {
            Err(ClientError::Closed(_) | ClientError::Io { .. }) if reused => {
                self.stream = None;
                self.exchange_once(request, head)
            }
            done => done,
        }
    }

    fn exchange_once(&mut self, request: &[u8], head: bool) -> Result<Response, ClientError> {
        let address = self.address;
        let io = |error| match error {
            ReadError::Io(error) => ClientError::Io { address, error },
            ReadError::Closed => ClientError::Closed(address),
            ReadError::Malformed(what) => ClientError::Malformed(address, what),
        };
        // Taken out, and put back only when the connection may be used again.
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => connect(address).map_err(|error| io(ReadError::Io(error)))?,
        };
        stream.get_mut().write_all(request).map_err(|error| io(ReadError::Io(error)))?;
        let (response, persists) = read_response(&mut stream, head).map_err(io)?;
        if persists {
            self.stream = Some(stream);
        }
        Ok(response)
    }
}

enum ReadError {
    Io(io::Error),
    Closed,
    Malformed(String),
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => ReadError::Closed,
            _ => ReadError::Io(error),
        }
    }
}

fn connect(address: SocketAddr) -> io::Result<BufReader<TcpStream>> {
    let stream = TcpStream::connect_timeout(&address, SILENCE_MAX)?;
    stream.set_read_timeout(Some(SILENCE_MAX))?;
    stream.set_write_timeout(Some(SILENCE_MAX))?;
    stream.set_nodelay(true)?;
    Ok(BufReader::new(stream))
}

/// Reads one response, and says whether the connection persists after it.
fn read_response(stream: &mut impl BufRead, head: bool) -> Result<(Response, bool), ReadError> {
    let mut lines = stream.by_ref().take(HEAD_BYTES_MAX);
    let status_line = read_line(&mut lines)?;
    let malformed = || ReadError::Malformed(String::from_utf8_lossy(&status_line).into_owned());
    let status = status_line
        .strip_prefix(b"HTTP/1.")
        .and_then(|rest| std::str::from_utf8(rest.get(2..5)?).ok()?.parse().ok())
        .ok_or_else(malformed)?;
    let mut fields = Vec::new();
    loop {
        let line = read_line(&mut lines)?;
        if line.is_empty() {
            break;
        }
        let colon = line.iter().position(|&byte| byte == b':').ok_or_else(malformed)?;
        let name = String::from_utf8_lossy(&line[..colon]).into_owned();
        fields.push((name, line[colon + 1..].trim_ascii().to_vec()));
    }
    let mut response = Response { status, fields, content: Vec::new() };
    let closing = response.value("Connection").is_some_and(|v| v.eq_ignore_ascii_case(b"close"));
    let chunked = response.value("Transfer-Encoding").is_some();
    let length = response.value("Content-Length").map(<[u8]>::to_vec);
    if head || matches!(status, 100..=199 | 204 | 304) {
        return Ok((response, !closing));
    }
    if chunked {
        read_chunks(stream, &mut response.content)?;
    } else if let Some(length) = length {
        let length: u64 = std::str::from_utf8(&length)
            .ok()
            .and_then(|digits| digits.parse().ok())
            .filter(|&length| length <= CONTENT_BYTES_MAX)
            .ok_or_else(malformed)?;
        read_exactly(stream, length, &mut response.content)?;
    } else {
        stream.take(CONTENT_BYTES_MAX).read_to_end(&mut response.content)?;
        return Ok((response, false));
    }
    Ok((response, !closing))
}

fn read_chunks(stream: &mut impl BufRead, content: &mut Vec<u8>) -> Result<(), ReadError> {
    loop {
        let line = read_line(&mut stream.by_ref().take(HEAD_BYTES_MAX))?;
        let size = line.split(|&byte| byte == b';').next().unwrap_or_default().trim_ascii();
        let size = std::str::from_utf8(size)
            .ok()
            .and_then(|digits| u64::from_str_radix(digits, 16).ok())
            .filter(|&size| size <= CONTENT_BYTES_MAX)
            .ok_or_else(|| ReadError::Malformed(String::from_utf8_lossy(&line).into_owned()))?;
        if size == 0 {
            // The trailer section ends with an empty line.
            while !read_line(&mut stream.by_ref().take(HEAD_BYTES_MAX))?.is_empty() {}
            return Ok(());
        }
        read_exactly(stream, size, content)?;
        read_line(&mut stream.by_ref().take(HEAD_BYTES_MAX))?;
    }
}

fn read_exactly(from: &mut impl Read, size: u64, into: &mut Vec<u8>) -> Result<(), ReadError> {
    let read = from.take(size).read_to_end(into)?;
    if read as u64 == size { Ok(()) } else { Err(ReadError::Closed) }
}

/// Reads one line and drops its CRLF; a line without an end means that the peer has closed.
fn read_line(from: &mut impl BufRead) -> Result<Vec<u8>, ReadError> {
    let mut line = Vec::new();
    from.read_until(b'\n', &mut line)?;
    if line.pop() != Some(b'\n') {
        return Err(ReadError::Closed);
    }
    line.pop_if(|byte| *byte == b'\r');
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_are_read_by_their_framing() {
        check(
            "HTTP/1.1 301 Moved\r\nLocation: http://t/\r\nContent-Length: 2\r\n\r\nhi",
            true,
            "hi",
        );
        check(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
            true,
            "abc",
        );
        check("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: close\r\n\r\nx", false, "x");
        check("HTTP/1.0 200 OK\r\n\r\nto the end", false, "to the end");
        check("HTTP/1.1 304 Not Modified\r\n\r\n", true, "");
    }

    #[test]
    fn a_cut_response_is_no_response() {
        for cut in ["", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab"] {
            let read = read_response(&mut BufReader::new(cut.as_bytes()), false);
            assert!(matches!(read, Err(ReadError::Closed)), "{cut:?}");
        }
    }

    #[track_caller]
    fn check(bytes: &str, persists: bool, content: &str) {
        let read = read_response(&mut BufReader::new(bytes.as_bytes()), false);
        let Ok((response, persistent)) = read else { panic!("not read: {bytes:?}") };
        assert_eq!(response.content, content.as_bytes());
        assert_eq!(persistent, persists);
    }
}
