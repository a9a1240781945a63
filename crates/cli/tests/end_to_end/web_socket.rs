//! WebSocket through the proxy, in the clear and over TLS, with a browser at the one end and an echo at the other.
//!
//! The browser prints a page when it has loaded. An image of the page is held back until the conversation
//! is over, so what is printed holds its result.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use milepost_testkit::directory::Directory;

use crate::certificates::self_signed;
use crate::page::Browser;
use crate::support::{Server, run, write};

/// One message for each way to write a length, and one in several pieces on the way.
const PAGE: &str = r#"<!DOCTYPE html><title>echo</title><pre id="said"></pre><img src="/hold"><script>
const lengths = [0, 5, 200, 70000, 1000000];
const sent = lengths.map((length, number) => String(number).repeat(length));
const got = [];
const socket = new WebSocket(location.protocol.replace("http", "ws") + "//" + location.host + "/socket");
const say = text => document.getElementById("said").textContent += text + "\n";
socket.onopen = () => sent.forEach(text => socket.send(text));
socket.onmessage = event => {
    got.push(event.data);
    if (got.length == sent.length) {
        say("echoed " + got.every((text, number) => text === sent[number]));
        socket.close(1000);
    }
};
socket.onclose = event => say("closed " + event.code + " " + event.wasClean);
</script>"#;

/// What RFC 6455 section 1.3 appends to a key.
const APPENDED: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

#[test]
fn a_browser_and_an_echo_talk_through_the_proxy() {
    let directory = Directory::new().expect("a directory");
    let backend = echo();
    let passes =
        format!("ProxyPass /socket ws://{backend}/socket\nProxyPass /hold http://{backend}/hold\n");
    check(directory.path(), &[], "http", &passes);
}

#[test]
fn they_talk_over_tls_on_both_sides_of_the_proxy() {
    let directory = Directory::new().expect("a directory");
    let path = directory.path();
    let backend = echo();
    let (one, two) = (self_signed(path, "front", "ec"), self_signed(path, "behind", "ec"));
    let behind = path.join("behind");
    std::fs::create_dir(&behind).expect("a directory");
    let behind = Server::start_with(
        &behind,
        &format!(
            "Listen 127.0.0.1:0\nSSLEngine on\n{two}ProxyPass / http://{backend}/ upgrade=websocket\n"
        ),
    );
    let port = behind.address.port();
    let passes = format!(
        "SSLEngine on\n{one}SSLProxyEngine on\nSSLProxyVerify require\n\
         SSLProxyCACertificateFile {}/behind.pem\n\
         ProxyPass /socket wss://localhost:{port}/socket\n\
         ProxyPass /hold https://localhost:{port}/hold\n",
        path.display()
    );
    check(path, &["--ignore-certificate-errors"], "https", &passes);
    behind.stop();
}

/// Serves the page, passes the rest on, and has a browser talk.
#[track_caller]
fn check(directory: &Path, options: &[&str], scheme: &str, passes: &str) {
    write(directory, "index.html", PAGE);
    let front = Server::start_with(
        directory,
        &format!(
            "Listen 127.0.0.1:0\nDocumentRoot {0}\n<Directory {0}>\nRequire all granted\n</Directory>\n{passes}",
            directory.display(),
        ),
    );
    let browser = Browser::new(directory);
    let url = front.url("/index.html").replacen("http", scheme, 1);
    let finished = browser.open(&[&["--dump-dom"], options].concat(), &url);
    assert!(finished.stdout.contains("echoed true\nclosed 1000 true\n"), "{}", finished.stdout);
    front.stop();
}

/// Starts the echo, which is also what holds the image.
fn echo() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let (over, ended) = channel();
    let ended = Arc::new(Mutex::new(ended));
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (over, ended) = (over.clone(), Arc::clone(&ended));
            thread::spawn(move || serve(stream, &over, &ended));
        }
    });
    address
}

/// Serves one connection; what breaks it is for the browser to tell.
fn serve(mut stream: TcpStream, over: &Sender<()>, ended: &Mutex<Receiver<()>>) -> Option<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(read::<1>(&mut stream)?[0]);
    }
    let head = String::from_utf8(head).ok()?;
    if head.starts_with("GET /hold ") {
        let _ = ended.lock().ok()?.recv_timeout(Duration::from_secs(60));
        // The close has still to reach the browser.
        thread::sleep(Duration::from_millis(500));
        stream.write_all(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n").ok()?;
        return Some(());
    }
    let mut fields = head.lines().filter_map(|line| line.split_once(": "));
    let (_, key) = fields.find(|(name, _)| name.eq_ignore_ascii_case("sec-websocket-key"))?;
    let digest =
        format!("printf %s '{key}{APPENDED}' | openssl dgst -sha1 -binary | openssl base64");
    let accepted = run("sh", &["-c", &digest], &[]).stdout;
    let answer = format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Accept: {}\r\n\r\n",
        accepted.trim()
    );
    stream.write_all(answer.as_bytes()).ok()?;
    while let Some((first, content)) = frame(&mut stream) {
        let mut echoed = vec![first];
        match content.len() {
            length @ 0..126 => echoed.push(length as u8),
            length @ 126..65_536 => {
                echoed.push(126);
                echoed.extend_from_slice(&(length as u16).to_be_bytes());
            }
            length => {
                echoed.push(127);
                echoed.extend_from_slice(&(length as u64).to_be_bytes());
            }
        }
        echoed.extend_from_slice(&content);
        stream.write_all(&echoed).ok()?;
        const CLOSE: u8 = 8;
        if first & 15 == CLOSE {
            break;
        }
    }
    over.send(()).ok()
}

/// Reads a frame: its first byte, and the content without its mask.
fn frame(stream: &mut TcpStream) -> Option<(u8, Vec<u8>)> {
    let [first, second] = read(stream)?;
    let length = match second & 127 {
        126 => u16::from_be_bytes(read(stream)?).into(),
        127 => u64::from_be_bytes(read(stream)?),
        short => short.into(),
    };
    let mask: [u8; 4] = read(stream)?;
    let mut content = vec![0; length as usize];
    stream.read_exact(&mut content).ok()?;
    for (byte, mask) in content.iter_mut().zip(mask.iter().cycle()) {
        *byte ^= mask;
    }
    Some((first, content))
}

fn read<const N: usize>(stream: &mut TcpStream) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes).ok().map(|()| bytes)
}
