//! A server on a free port, and a client that says exactly what it is told to.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use milepost_engine::{Listen, Settings};
use milepost_http::request::RequestHead;
use milepost_server::{Peer, Reply, Respond, Running, Server};

/// Long enough for anything that should happen at once, on a machine that is busy.
const SOON: Duration = Duration::from_secs(5);

/// A running server; it stops when dropped.
pub(crate) struct TestServer {
    pub(crate) address: SocketAddr,
    pub(crate) running: Option<Running<Elsewhere>>,
}

impl TestServer {
    /// Starts one worker with `settings`, listening on a free port.
    pub(crate) fn start(settings: Settings) -> TestServer {
        TestServer::start_with(settings, 1)
    }

    pub(crate) fn start_with(mut settings: Settings, workers: usize) -> TestServer {
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        settings.listens = vec![Listen {
            addresses: vec![address],
            place: "test:1".to_owned(),
            ..Listen::default()
        }];
        let server = Server::bind(&settings, NonZeroUsize::new(workers).unwrap()).unwrap();
        let address = server.addresses()[0];
        let running = server.start(|| Elsewhere).unwrap();
        TestServer { address, running: Some(running) }
    }

    pub(crate) fn connect(&self) -> Client {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_nodelay(true).unwrap();
        Client { stream, ahead: Vec::new() }
    }

    /// Sends `bytes` on a new connection and returns all answers until the server closes.
    pub(crate) fn ask(&self, bytes: &[u8]) -> Vec<Answer> {
        let mut client = self.connect();
        client.send(bytes);
        client.answers_to_end()
    }
}

/// Redirects everything to where it is, in another place; `/status/N` is answered with N, and
/// `/large` with as many bytes as no socket buffer holds.
pub(crate) struct Elsewhere;

impl Respond for Elsewhere {
    fn respond(&mut self, request: &RequestHead<'_>, _peer: &Peer, reply: &mut Reply) {
        if let Some(status) = request.target.strip_prefix(b"/status/") {
            let status = std::str::from_utf8(status).unwrap().parse().unwrap();
            reply.error(status);
        } else if request.target == b"/large" {
            reply.content_mut().resize(LARGE_BYTES, b'x');
        } else {
            let location = [b"http://other.example", request.target].concat();
            reply.redirect(301, &location);
        }
    }
}

/// The length of the content of `/large`.
pub(crate) const LARGE_BYTES: usize = 32 * 1024 * 1024;

/// A client that frames nothing by itself.
pub(crate) struct Client {
    stream: TcpStream,
    /// Bytes beyond the last answer.
    ahead: Vec<u8>,
}

/// One response.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) content: Vec<u8>,
}

impl Answer {
    /// Returns the value of a field, spelt as we send it.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(other, _)| *other == name).map(|(_, value)| value)
    }
}

impl Client {
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        // The server may have closed already; what it has said is still to be read.
        if let Err(error) = self.stream.write_all(bytes) {
            assert!(matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset));
        }
    }

    /// The same connection, to send while answers are read.
    pub(crate) fn sender(&self) -> TcpStream {
        self.stream.try_clone().unwrap()
    }

    /// Reads the answer to a request other than `HEAD`.
    pub(crate) fn answer(&mut self) -> Answer {
        self.next(false).expect("an answer")
    }

    /// Reads the answer to `HEAD`.
    pub(crate) fn answer_to_head(&mut self) -> Answer {
        self.next(true).expect("an answer")
    }

    /// Reads answers until the server closes, which it must do soon.
    pub(crate) fn answers_to_end(&mut self) -> Vec<Answer> {
        std::iter::from_fn(|| self.next(false)).collect()
    }

    /// Waits until the server closes; returns after how long.
    pub(crate) fn closed_after(&mut self) -> Duration {
        let start = Instant::now();
        assert!(!self.read(), "{:?} instead of the end", self.ahead.escape_ascii().to_string());
        start.elapsed()
    }

    /// Whether anything has come, without waiting for it.
    pub(crate) fn has_answer(&self) -> bool {
        self.stream.set_nonblocking(true).unwrap();
        let seen = self.stream.peek(&mut [0]);
        self.stream.set_nonblocking(false).unwrap();
        seen.is_ok()
    }

    /// Says that nothing more will be sent.
    pub(crate) fn finish(&self) {
        self.stream.shutdown(std::net::Shutdown::Write).unwrap();
    }

    fn next(&mut self, head_only: bool) -> Option<Answer> {
        let end = loop {
            match self.ahead.windows(4).position(|window| window == b"\r\n\r\n") {
                Some(end) => break end + 4,
                None if self.read() => {}
                None => {
                    assert!(self.ahead.is_empty(), "cut off: {:?}", self.ahead.escape_ascii());
                    return None;
                }
            }
        };
        let head = String::from_utf8(self.ahead.drain(..end).collect()).unwrap();
        let status = head[9..12].parse().unwrap();
        let mut answer = Answer { status, head, content: Vec::new() };
        if !head_only && !matches!(status, 204 | 304) {
            let length = answer.field("Content-Length").unwrap().parse().unwrap();
            while self.ahead.len() < length {
                assert!(self.read(), "cut off in the content");
            }
            answer.content = self.ahead.drain(..length).collect();
        }
        Some(answer)
    }

    /// Reads something; false at the end. A reset is not an end.
    fn read(&mut self) -> bool {
        self.stream.set_read_timeout(Some(SOON)).unwrap();
        let mut buffer = vec![0; 256 * 1024];
        let count = self.stream.read(&mut buffer).expect("the server to answer or close in time");
        self.ahead.extend_from_slice(&buffer[..count]);
        count > 0
    }
}
