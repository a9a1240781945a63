//! HTTP/2 with programs that are not ours: curl, h2load and a browser; and a client that misbehaves.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use milepost_testkit::directory::Directory;

use crate::support::{Server, run, write};
use crate::tls::{ok, with};

const OVER_TLS: &str = "Protocols h2 http/1.1\nMaxKeepAliveRequests 0\nRedirect 301 /test/1 http://www.example.org/new/1";

/// More than one window of a client that has not asked for more.
const FILE_BYTES: usize = 300_000;

#[test]
fn curl_gets_files_redirects_and_heads() {
    with_clear(|server, directory| {
        let content: Vec<u8> = (0..FILE_BYTES).map(|number| (number % 251) as u8).collect();
        fs::write(directory.path().join("file.bin"), &content).expect("a file");
        let out = directory.path().join("out").to_str().expect("UTF-8").to_owned();
        let form = "%{http_version} %{http_code} %{redirect_url}";
        let curl = |version: &str, more: &[&str], path: &str| {
            let fixed = ["-s", version, "-w", form, "-o", &out];
            ok("curl", &[&fixed[..], more, &[&server.url(path)]].concat()).stdout
        };
        let h2 = "--http2-prior-knowledge";
        assert_eq!(curl(h2, &[], "/file.bin"), "2 200 ");
        assert!(fs::read(&out).expect("a file") == content, "the file is another one");
        assert_eq!(curl(h2, &[], "/test/1"), "2 301 http://www.example.org/new/1");
        assert_eq!(
            curl(h2, &["--data-binary", &format!("@{out}")], "/test/1"),
            "2 301 http://www.example.org/new/1"
        );
        assert_eq!(curl("--http1.1", &[], "/file.bin"), "1.1 200 ");
        let head = ok("curl", &["-sI", h2, &server.url("/file.bin")]).stdout;
        assert!(head.contains(&format!("content-length: {FILE_BYTES}\r\n")), "{head}");
        let part = ok("curl", &["-s", h2, "-r", "5-6", &server.url("/file.bin")]).stdout;
        assert_eq!(part.as_bytes(), &content[5..=6]);
    });
}

#[test]
fn requests_are_logged_as_what_they_are() {
    let directory = Directory::new().expect("a directory");
    let log = directory.path().join("access.log");
    let directives = format!(
        "{OVER_TLS}\nLogFormat \"%r %>s %H %{{Cookie}}i\" short\nCustomLog {} short",
        log.display()
    );
    with(&directives, |server| {
        let url = format!("https://{}/test/1", server.address);
        let version = ok(
            "curl",
            &["-sk", "-o", "/dev/null", "-w", "%{http_version}", "-b", "a=1; b=2", &url],
        );
        assert_eq!(version.stdout, "2");
    });
    let line = fs::read_to_string(&log).expect("a log");
    assert_eq!(line, "GET /test/1 HTTP/2.0 301 HTTP/2.0 a=1; b=2\n");
}

#[test]
fn h2load_sees_no_errors() {
    let check = |options: &[&str], url: &str| {
        let finished =
            ok("h2load", &[&["-n", "1000", "-c", "5", "-m", "10"], options, &[url]].concat());
        let said = &finished.stdout;
        assert!(
            said.contains("1000 succeeded, 0 failed, 0 errored, 0 timeout"),
            "{options:?}: {said}"
        );
        assert!(said.contains("0 2xx, 1000 3xx, 0 4xx, 0 5xx"), "{options:?}: {said}");
    };
    with(OVER_TLS, |server| {
        let url = format!("https://{}/test/1", server.address);
        check(&[], &url);
        check(&["--h1"], &url);
    });
    with_clear(|server, _| check(&[], &server.url("/test/1")));
}

#[test]
fn a_browser_reads_a_page() {
    let directory = Directory::new().expect("a directory");
    let log = directory.path().join("access.log");
    let directives = format!("{OVER_TLS}\nCustomLog {} \"%r %>s\"", log.display());
    with(&directives, |server| {
        let data = format!("--user-data-dir={}", directory.path().join("browser").display());
        let url = format!("https://{}/sub/", server.address);
        let options = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--ignore-certificate-errors",
            "--dump-dom",
        ];
        let finished = run("chromium", &[&options[..], &[&data, &url]].concat(), &[]);
        assert!(finished.stdout.contains("<title>hello</title>"), "{finished:?}");
    });
    let lines = fs::read_to_string(&log).expect("a log");
    assert!(lines.starts_with("GET /sub/ HTTP/2.0 200\n"), "{lines}");
}

#[test]
fn a_client_that_resets_what_it_asks_for_is_left() {
    with_clear(|server, _| {
        let mut stream = TcpStream::connect(server.address).expect("a connection");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
        let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        frame(&mut bytes, 4, 0, 0, &[]);
        for number in 0..1000_u32 {
            let id = 2 * number + 1;
            // GET, /, http of the static table; `:authority: a`.
            frame(&mut bytes, 1, 5, id, &[0x82, 0x84, 0x86, 0x41, 1, b'a']);
            frame(&mut bytes, 3, 0, id, &8_u32.to_be_bytes());
        }
        // It may be left before all is written.
        let _ = stream.write_all(&bytes);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let goaway = frames(&answer).find(|(kind, _)| *kind == 7).expect("GOAWAY");
        // ENHANCE_YOUR_CALM
        assert_eq!(goaway.1[4..8], 11_u32.to_be_bytes());
    });
}

#[test]
fn what_is_idle_is_told_that_it_ends() {
    let directory = Directory::new().expect("a directory");
    let text =
        "Listen 127.0.0.1:0\nProtocols h2c\nKeepAliveTimeout 1\nRedirect /a http://b.example/\n";
    let server = Server::start_with(directory.path(), text);
    let mut stream = TcpStream::connect(server.address).expect("a connection");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    frame(&mut bytes, 4, 0, 0, &[]);
    frame(&mut bytes, 1, 5, 1, &[0x82, 0x84, 0x86, 0x41, 1, b'a']);
    stream.write_all(&bytes).expect("open");
    let mut answer = Vec::new();
    // What ends a connection that is to end is an answer to the ping that comes with it, or time.
    let mut part = [0; 1024];
    while !frames(&answer).any(|(kind, _)| kind == 7) {
        let count = stream.read(&mut part).expect("GOAWAY before the end");
        assert!(count > 0, "the end without GOAWAY");
        answer.extend_from_slice(&part[..count]);
    }
    // NO_ERROR
    let goaway = frames(&answer).find(|(kind, _)| *kind == 7).expect("GOAWAY");
    assert_eq!(goaway.1[4..8], [0; 4]);
    drop(stream);
    server.stop();
}

#[test]
fn a_server_that_stops_says_which_requests_it_still_answers() {
    let directory = Directory::new().expect("a directory");
    write(directory.path(), "index.html", "hello\n");
    fs::write(directory.path().join("file"), vec![b'x'; FILE_BYTES]).expect("a file");
    let root = directory.path().display();
    let text = format!(
        "Listen 127.0.0.1:0\nProtocols h2c\nDocumentRoot {root}\n\
         <Directory />\nRequire all granted\n</Directory>\n"
    );
    let server = Server::start_with(directory.path(), &text);
    let mut client = Frames::open(&server);
    // `/file` is longer than the window of its stream, so it is under way for as long as we like.
    client.ask(1, b"/file");
    client.read_until(|(kind, _)| kind == 0);
    client.send(8, 0, 0, &(FILE_BYTES as u32).to_be_bytes());
    // A reload ends no connection.
    server.reload();
    client.ask(3, b"/");
    client.read_until(|(kind, payload)| kind == 0 && payload == b"hello\n");
    assert!(!frames(&client.answer).any(|(kind, _)| kind == 7), "GOAWAY at a reload");

    server.signal("-TERM");
    // First it says that no stream is refused yet, and asks for an answer.
    let (_, goaway) = client.read_until(|(kind, _)| kind == 7);
    assert_eq!(goaway, [0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0]);
    let (_, ping) = client.read_until(|(kind, _)| kind == 6);
    client.send(6, 1, 0, &ping);
    // With the answer it knows what we have sent before.
    let (_, goaway) = client.read_until(|(kind, payload)| kind == 7 && payload[0] == 0);
    assert_eq!(goaway, [0, 0, 0, 3, 0, 0, 0, 0]);
    client.send(8, 0, 1, &(FILE_BYTES as u32).to_be_bytes());
    client.stream.read_to_end(&mut client.answer).expect("the end");
    let content: usize =
        frames(&client.answer).filter(|(kind, _)| *kind == 0).map(|(_, data)| data.len()).sum();
    assert_eq!(content, FILE_BYTES + "hello\n".len());
    server.ended();
}

/// A client that sends frame by frame.
struct Frames {
    stream: TcpStream,
    answer: Vec<u8>,
}

impl Frames {
    fn open(server: &Server) -> Frames {
        let stream = TcpStream::connect(server.address).expect("a connection");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
        let mut client = Frames { stream, answer: Vec::new() };
        client.stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").expect("open");
        client.send(4, 0, 0, &[]);
        client
    }

    fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let mut bytes = Vec::new();
        frame(&mut bytes, kind, flags, stream, payload);
        self.stream.write_all(&bytes).expect("open");
    }

    /// Sends a GET for a path.
    fn ask(&mut self, stream: u32, path: &[u8]) {
        // GET and http of the static table, `:path`, `:authority: a`.
        let length = u8::try_from(path.len()).expect("a short path");
        let block = [&[0x82, 0x86, 0x04, length], path, &[0x41, 1, b'a']].concat();
        self.send(1, 5, stream, &block);
    }

    /// Reads until there is such a frame, and returns the first one.
    #[track_caller]
    fn read_until(&mut self, is_wanted: impl Fn((u8, &[u8])) -> bool) -> (u8, Vec<u8>) {
        let mut part = [0; 4096];
        loop {
            let found = frames(&self.answer).find(|frame| is_wanted(*frame));
            if let Some((kind, payload)) = found {
                return (kind, payload.to_vec());
            }
            let count = self.stream.read(&mut part).expect("a frame in time");
            assert!(count > 0, "the end before the frame");
            self.answer.extend_from_slice(&part[..count]);
        }
    }
}

/// Appends a frame.
fn frame(bytes: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    bytes.extend_from_slice(&(payload.len() as u32).to_be_bytes()[1..]);
    bytes.extend_from_slice(&[kind, flags]);
    bytes.extend_from_slice(&stream.to_be_bytes());
    bytes.extend_from_slice(payload);
}

/// The complete frames in `bytes`: kind and payload.
fn frames(bytes: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let (head, after) = rest.split_at_checked(9)?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let (payload, next) = after.split_at_checked(length)?;
        rest = next;
        Some((head[3], payload))
    })
}

/// Serves a directory in the clear, and sees that it ends in order.
#[track_caller]
fn with_clear(body: impl FnOnce(&Server, &Directory)) {
    let directory = Directory::new().expect("a directory");
    write(directory.path(), "index.html", "hello\n");
    let text = format!(
        "Listen 127.0.0.1:0\nProtocols h2c http/1.1\nDocumentRoot {}\n\
         <Directory />\nRequire all granted\n</Directory>\nRedirect 301 /test/1 http://www.example.org/new/1\n",
        directory.path().display()
    );
    let server = Server::start_with(directory.path(), &text);
    body(&server, &directory);
    server.stop();
}
