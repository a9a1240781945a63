//! The server behind those of the cases: it says what it was asked for.
//!
//! An answer has the field `X-Asked`, with method and request-target. With `?location=…` it is a redirect
//! to what stands there, with `?status=…` it has that status. The engine alone, without a socket, is given the same answers by [`answer`].

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// The longest request head that is read, in bytes.
const HEAD_BYTES_MAX: u64 = 64 * 1024;

/// A backend that listens until it is dropped.
#[derive(Debug)]
pub struct Backend {
    address: SocketAddr,
    is_over: Arc<AtomicBool>,
}

/// What a backend answers: status, names and values of its fields.
pub type BackendAnswer = (u16, Vec<(&'static str, Vec<u8>)>);

impl Backend {
    /// Starts one on a free port.
    ///
    /// # Errors
    /// As the system reports them.
    pub fn start() -> io::Result<Backend> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let is_over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&is_over);
        thread::spawn(move || {
            let streams = listener.incoming().take_while(|_| !ends.load(Ordering::Relaxed));
            for stream in streams.flatten() {
                // Whoever goes away in the middle wants no answer.
                thread::spawn(move || serve(&stream).unwrap_or_default());
            }
        });
        Ok(Backend { address, is_over })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Backend {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        // A last connection, to be noticed.
        let _ = TcpStream::connect(self.address);
    }
}

/// The answer to a request.
pub fn answer(method: &str, target: &[u8]) -> BackendAnswer {
    let asked = [method.as_bytes(), b" ", target].concat();
    let mut fields = vec![("X-Asked", asked)];
    let query = target.splitn(2, |&byte| byte == b'?').nth(1).unwrap_or_default();
    if let Some(location) = query.strip_prefix(b"location=") {
        fields.push(("Location", location.to_vec()));
        return (302, fields);
    }
    let status = query.strip_prefix(b"status=").and_then(|text| std::str::from_utf8(text).ok());
    (status.and_then(|text| text.parse().ok()).unwrap_or(200), fields)
}

/// Answers the requests of one connection, which have no content.
fn serve(stream: &TcpStream) -> io::Result<()> {
    let mut reader = BufReader::new(stream);
    loop {
        let mut head = reader.by_ref().take(HEAD_BYTES_MAX);
        let mut line = Vec::new();
        head.read_until(b'\n', &mut line)?;
        let mut words = line.trim_ascii_end().split(|&byte| byte == b' ');
        let (Some(method), Some(target)) = (words.next(), words.next()) else { return Ok(()) };
        let mut field = Vec::new();
        while head.read_until(b'\n', &mut field)? > 2 {
            field.clear();
        }
        let (status, fields) = answer(&String::from_utf8_lossy(method), target);
        let mut head = format!("HTTP/1.1 {status} Status\r\nContent-Length: 0\r\n").into_bytes();
        for (name, value) in fields {
            head.extend_from_slice(name.as_bytes());
            head.extend_from_slice(b": ");
            head.extend_from_slice(&value);
            head.extend_from_slice(b"\r\n");
        }
        head.extend_from_slice(b"\r\n");
        (&mut &*stream).write_all(&head)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_says_what_was_asked() {
        let asked = |target: &[u8]| ("X-Asked", [b"GET ", target].concat());
        assert_eq!(answer("GET", b"/a?b"), (200, vec![asked(b"/a?b")]));
        let redirect = (302, vec![asked(b"/a?location=/b"), ("Location", b"/b".to_vec())]);
        assert_eq!(answer("GET", b"/a?location=/b"), redirect);
        assert_eq!(answer("GET", b"/a?status=404"), (404, vec![asked(b"/a?status=404")]));
    }
}
