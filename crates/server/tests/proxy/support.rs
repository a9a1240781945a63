//! A backend that does what a test says, a proxy in front of it, and a client that frames nothing by itself.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use milepost_engine::{Listen, LoadOptions, Site};
use milepost_server::{FileSystem, Running, Server, SiteResponder};
use tempfile::TempDir;

/// Long enough for anything that should happen at once, on a machine that is busy.
pub(crate) const SOON: Duration = Duration::from_secs(15);

/// Nobody listens here: no system gives this port to a program that asks for any.
pub(crate) const NOBODY: &str = "127.0.0.1:1";

/// A backend. What it has seen can be looked at.
pub(crate) struct Backend {
    pub(crate) address: SocketAddr,
    seen: Arc<Seen>,
}

#[derive(Default)]
struct Seen {
    connections: AtomicUsize,
    requests: Mutex<Vec<Received>>,
}

/// A request as the backend has got it.
#[derive(Debug, Clone)]
pub(crate) struct Received {
    pub(crate) head: String,
    pub(crate) content: Vec<u8>,
    pub(crate) trailers: String,
}

/// One connection to the backend.
pub(crate) struct Link {
    pub(crate) stream: TcpStream,
    ahead: Vec<u8>,
    seen: Arc<Seen>,
    /// Its number, from 0.
    pub(crate) number: usize,
}

impl Backend {
    /// Starts a backend that runs `script` on each connection, in a thread of its own.
    pub(crate) fn start(script: impl Fn(&mut Link) + Send + Sync + 'static) -> Backend {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::<Seen>::default();
        let (shared, script) = (Arc::clone(&seen), Arc::new(script));
        thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else { return };
                let (seen, script) = (Arc::clone(&shared), Arc::clone(&script));
                let number = seen.connections.fetch_add(1, Ordering::SeqCst);
                thread::spawn(move || {
                    script(&mut Link { stream, ahead: Vec::new(), seen, number });
                });
            }
        });
        Backend { address, seen }
    }

    /// A backend that answers every request with `answer`.
    pub(crate) fn answering(answer: &'static str) -> Backend {
        Backend::start(move |link| {
            while link.request().is_some() {
                link.say(answer);
            }
        })
    }

    pub(crate) fn connections(&self) -> usize {
        self.seen.connections.load(Ordering::SeqCst)
    }

    pub(crate) fn requests(&self) -> Vec<Received> {
        self.seen.requests.lock().unwrap().clone()
    }
}

impl Link {
    /// Reads a whole request; `None` when there is no more.
    pub(crate) fn request(&mut self) -> Option<Received> {
        let head = self.head()?;
        let length = field(&head, "Content-Length").map(|length| length.parse().unwrap());
        let mut received = Received { head, content: Vec::new(), trailers: String::new() };
        if let Some(length) = length {
            received.content = self.bytes(length)?;
        } else if field(&received.head, "Transfer-Encoding").is_some() {
            loop {
                let size = usize::from_str_radix(&self.line()?, 16).unwrap();
                if size == 0 {
                    break;
                }
                received.content.extend(self.bytes(size)?);
                assert_eq!(self.line()?, "");
            }
            loop {
                match self.line()?.as_str() {
                    "" => break,
                    line => received.trailers.push_str(&format!("{line}\n")),
                }
            }
        }
        self.seen.requests.lock().unwrap().push(received.clone());
        Some(received)
    }

    /// Reads a head.
    pub(crate) fn head(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.ahead.windows(4).position(|part| part == b"\r\n\r\n") {
                let head: Vec<u8> = self.ahead.drain(..end + 4).collect();
                return Some(String::from_utf8(head).unwrap());
            }
            self.more()?;
        }
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Option<Vec<u8>> {
        while self.ahead.len() < count {
            self.more()?;
        }
        Some(self.ahead.drain(..count).collect())
    }

    fn line(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.ahead.windows(2).position(|part| part == b"\r\n") {
                let line: Vec<u8> = self.ahead.drain(..end + 2).collect();
                return Some(String::from_utf8(line[..end].to_vec()).unwrap());
            }
            self.more()?;
        }
    }

    pub(crate) fn more(&mut self) -> Option<()> {
        let mut buffer = [0; 64 * 1024];
        match self.stream.read(&mut buffer) {
            Ok(0) | Err(_) => None,
            Ok(count) => {
                self.ahead.extend_from_slice(&buffer[..count]);
                Some(())
            }
        }
    }

    pub(crate) fn say(&mut self, text: &str) {
        // The proxy may have given up, which is for the test to see.
        let _ = self.stream.write_all(text.as_bytes());
    }
}

/// The value of a field, its name in any case.
pub(crate) fn field<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    let mut lines = head.lines().filter_map(|line| line.split_once(": "));
    lines.find(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}

/// milepost with a configuration; it stops when dropped.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    _running: Running,
    pub(crate) directory: TempDir,
}

impl Proxy {
    /// Starts one worker. `@ROOT@` in the configuration is a directory of its own.
    pub(crate) fn start(configuration: &str) -> Proxy {
        let directory = TempDir::new().unwrap();
        let root = directory.path().to_str().unwrap();
        let text = format!("ServerName www.example\nDocumentRoot {root}\n{configuration}\n");
        std::fs::write(directory.path().join("httpd.conf"), text.replace("@ROOT@", root)).unwrap();
        let options = LoadOptions {
            server_root: directory.path().to_owned(),
            file: Some("httpd.conf".into()),
            ..LoadOptions::default()
        };
        let loaded = Site::load(&options, &FileSystem);
        let site = Arc::new(loaded.site.unwrap_or_else(|| panic!("{:?}", loaded.diagnostics)));
        let mut settings = site.settings().clone();
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        settings.listens = vec![Listen {
            addresses: vec![address],
            place: "test:1".to_owned(),
            ..Listen::default()
        }];
        let server = Server::bind(&settings, NonZeroUsize::MIN).unwrap();
        let address = server.addresses()[0];
        let running = server.start(move || SiteResponder::new(Arc::clone(&site))).unwrap();
        Proxy { address, _running: running, directory }
    }

    pub(crate) fn connect(&self) -> Client {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(SOON)).unwrap();
        Client { stream, ahead: Vec::new() }
    }

    /// Sends a GET on a connection of its own.
    pub(crate) fn get(&self, target: &str) -> Answer {
        self.ask(&format!("GET {target} HTTP/1.1\r\nHost: www.example\r\n\r\n"))
    }

    /// Sends a request on a connection of its own.
    pub(crate) fn ask(&self, request: &str) -> Answer {
        let mut client = self.connect();
        client.send(request.as_bytes());
        client.answer(request.starts_with("HEAD "))
    }
}

pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    ahead: Vec<u8>,
}

/// A response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) content: String,
    pub(crate) trailers: String,
    /// It was complete, as far as its framing tells.
    pub(crate) whole: bool,
}

impl Answer {
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        field(&self.head, name)
    }
}

impl Client {
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        if let Err(error) = self.stream.write_all(bytes) {
            assert!(matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset));
        }
    }

    /// Reads a head, whatever its status.
    pub(crate) fn head(&mut self) -> String {
        loop {
            if let Some(end) = self.ahead.windows(4).position(|part| part == b"\r\n\r\n") {
                let head: Vec<u8> = self.ahead.drain(..end + 4).collect();
                return String::from_utf8(head).unwrap();
            }
            assert!(self.more(), "no head: {:?}", String::from_utf8_lossy(&self.ahead));
        }
    }

    pub(crate) fn answer(&mut self, to_head: bool) -> Answer {
        let head = self.head();
        let status: u16 = head[9..12].parse().unwrap();
        let mut answer =
            Answer { status, content: String::new(), trailers: String::new(), whole: true, head };
        if to_head || matches!(status, 100..200 | 204 | 304) {
            return answer;
        }
        let length = answer.field("Content-Length").map(|length| length.parse::<usize>().unwrap());
        let mut content = Vec::new();
        if let Some(length) = length {
            while self.ahead.len() < length && self.more() {}
            answer.whole = self.ahead.len() >= length;
            content.extend(self.ahead.drain(..length.min(self.ahead.len())));
        } else if answer.field("Transfer-Encoding").is_some() {
            answer.whole = false;
            while let Some(line) = self.line() {
                let size = usize::from_str_radix(&line, 16).unwrap();
                if size == 0 {
                    while let Some(line) = self.line() {
                        if line.is_empty() {
                            answer.whole = true;
                            break;
                        }
                        answer.trailers.push_str(&format!("{line}\n"));
                    }
                    break;
                }
                while self.ahead.len() < size + 2 && self.more() {}
                content.extend(self.ahead.drain(..size.min(self.ahead.len())));
                self.ahead.drain(..2.min(self.ahead.len()));
            }
        } else {
            while self.more() {}
            content.append(&mut self.ahead);
        }
        answer.content = String::from_utf8(content).unwrap();
        answer
    }

    fn line(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.ahead.windows(2).position(|part| part == b"\r\n") {
                let line: Vec<u8> = self.ahead.drain(..end + 2).collect();
                return Some(String::from_utf8(line[..end].to_vec()).unwrap());
            }
            if !self.more() {
                return None;
            }
        }
    }

    /// Reads exactly `count` bytes.
    pub(crate) fn bytes(&mut self, count: usize) -> String {
        while self.ahead.len() < count {
            assert!(self.more(), "the end after {:?}", String::from_utf8_lossy(&self.ahead));
        }
        String::from_utf8(self.ahead.drain(..count).collect()).unwrap()
    }

    /// Reads something; false at the end, which a reset is too.
    pub(crate) fn more(&mut self) -> bool {
        let mut buffer = [0; 64 * 1024];
        match self.stream.read(&mut buffer) {
            Ok(0) => false,
            Ok(count) => {
                self.ahead.extend_from_slice(&buffer[..count]);
                true
            }
            Err(error) if error.kind() == ErrorKind::ConnectionReset => false,
            Err(error) => panic!("{error}"),
        }
    }
}

/// Waits until something is so.
#[track_caller]
pub(crate) fn eventually(what: &str, is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < SOON, "{what}");
        thread::sleep(Duration::from_millis(5));
    }
}
