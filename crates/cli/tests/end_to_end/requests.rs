//! What `milepost load` sends: contents, forms, templates, weights; and what it expects of contents.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use milepost_load::Sha256;
use milepost_testkit::directory::Directory;
use serde_json::Value;

use crate::support::{Finished, Server, milepost, write};

#[test]
fn a_content_comes_from_the_command_line_or_a_file() {
    let peer = Peer::start();
    let directory = Directory::new().expect("a directory");
    let file = write(directory.path(), "content", "from a file\r\n\0");
    let check = |options: &[&str], method: &str, content: &[u8]| {
        let sent = peer.sent(&[&["-n", "1"], options].concat());
        assert!(sent[0].head.starts_with(&format!("{method} / HTTP/1.1\r\n")), "{:?}", sent[0]);
        assert_eq!(sent[0].content, content, "{options:?}");
    };
    check(&["--body", "a=1&b=2"], "POST", b"a=1&b=2");
    check(&["--body", &format!("@{file}"), "-m", "PUT"], "PUT", b"from a file\r\n\0");
    check(&["--body", ""], "POST", b"");
    let finished = load(&peer.url("/"), &["--body", "@/nowhere"]);
    assert_eq!(finished.code, Some(2));
    assert!(finished.stderr.starts_with("milepost: cannot read /nowhere: "), "{finished:?}");
}

#[test]
fn a_form_is_what_curl_sends() {
    let peer = Peer::start();
    let directory = Directory::new().expect("a directory");
    let file = write(directory.path(), "x.bin", "\u{1}\r\n--");
    let entries = ["name=a b", &format!("file=@{file}"), "typed={};type=application/json"];
    let options: Vec<_> = entries.iter().flat_map(|entry| ["-F", *entry]).collect();
    let ours = peer.sent(&[&["-n", "1"], &options[..]].concat());
    let url = peer.url("/");
    let curl = crate::support::run("curl", &[&["-s", &*url], &options[..]].concat(), &[]);
    assert_eq!(curl.code, Some(0), "{curl:?}");
    let theirs = peer.take();
    let parts = |sent: &Sent| {
        let content_type = sent.field("Content-Type").expect("a type");
        let boundary = content_type.strip_prefix("multipart/form-data; boundary=").expect("one");
        String::from_utf8(sent.content.clone()).expect("UTF-8").replace(boundary, "BOUNDARY")
    };
    assert_eq!(parts(&ours[0]), parts(&theirs[0]));
}

#[test]
fn templates_are_filled_anew_for_each_request_and_follow_the_seed() {
    let peer = Peer::start();
    let directory = Directory::new().expect("a directory");
    let csv = write(directory.path(), "users.csv", "user,key\nann,1\n\"b,c\",22\n");
    let target = "/{{user}}/{{counter}}?r={{random:1..1000}}";
    let sent = |more: &[&str]| -> BTreeSet<String> {
        let csv = ["--variables", &csv, "-n", "40", "-c", "4", "-H", "X-Id: {{uuid}}"];
        let own = ["--body", "{\"key\":{{key}}}"];
        let csv_list = "/{{key}}/{{counter}}?r={{random:1..1000}}";
        let finished = load(&peer.url(csv_list), &[&csv[..], &own[..], more].concat());
        assert_eq!(finished.code, Some(0), "{finished:?}");
        let shown = |sent: Sent| {
            let line = sent.head.lines().next().expect("a line").to_owned();
            let id = sent.field("X-Id").expect("an id").to_owned();
            format!("{line} {id} {}", String::from_utf8_lossy(&sent.content))
        };
        peer.take().into_iter().map(shown).collect()
    };
    let first = sent(&["--seed", "5"]);
    assert_eq!(first.len(), 40, "{first:?}");
    for number in 1..=40 {
        let key = if number % 2 == 1 { "1" } else { "22" };
        let start = format!("POST /{key}/{number}?r=");
        let line = first.iter().find(|line| line.starts_with(&start));
        let line = line.unwrap_or_else(|| panic!("no {start} in {first:?}"));
        assert!(line.ends_with(&format!("{{\"key\":{key}}}")), "{line}");
    }
    assert_eq!(first, sent(&["--seed", "5", "-t", "2", "--no-keep-alive"]));
    assert_eq!(first, sent(&["--seed", "5", "--rate", "1000"]));
    assert_ne!(first, sent(&["--seed", "6"]));
    // Several processes have numbers of their own.
    let two = sent(&["--seed", "5", "--processes", "2"]);
    assert_eq!((two.len(), &two), (40, &first));

    // What cannot be filled in is known before the run.
    for (options, message) in [
        (vec!["--template"], "nothing is known to stand in {{user}} at column 2"),
        (vec!["--variables", &csv], ""),
        (vec!["--variables", "/nowhere"], "cannot read /nowhere"),
    ] {
        let finished = load(&peer.url(target), &[&["-n", "2"], &options[..]].concat());
        if message.is_empty() {
            assert_eq!(finished.code, Some(0), "{finished:?}");
        } else {
            assert_eq!(finished.code, Some(2), "{finished:?}");
            assert!(finished.stderr.contains(message), "{finished:?}");
        }
    }
    let bad = write(directory.path(), "bad.csv", "user\nann\n\"a b\"\n");
    let finished = load(&peer.url(target), &["--variables", &bad]);
    let message = "line 3 of the variables: \"a b\" cannot stand in a request-target";
    assert!(finished.stderr.contains(message), "{finished:?}");
    let bad = write(directory.path(), "bad.csv", "user,user\n");
    let finished = load(&peer.url(target), &["--variables", &bad]);
    assert!(finished.stderr.contains("bad.csv:1: the name user is there twice"), "{finished:?}");
}

#[test]
fn templates_go_over_http2_and_through_redirects() {
    let directory = Directory::new().expect("a directory");
    let log = directory.path().join("access.log");
    let text = format!(
        "Listen 127.0.0.1:0\nProtocols h2c http/1.1\nRedirectMatch 301 ^/a/(.*) /b/$1\n\
         CustomLog {} \"%U%q\"\n",
        log.display()
    );
    let server = Server::start_with(directory.path(), &text);
    let url = server.url("/a/{{counter}}?{{random:0..99}}");
    let options = ["--template", "-n", "20", "--seed", "1", "--expect-status", "301"];
    let finished = load(&url, &[&options[..], &["--http2", "--streams", "3"]].concat());
    assert_eq!(finished.code, Some(0), "{finished:?}");
    server.stop();
    let logged = std::fs::read_to_string(&log).expect("a log");
    let counters: BTreeSet<u64> = logged
        .lines()
        .map(|line| line["/a/".len()..].split('?').next().unwrap().parse().expect("a number"))
        .collect();
    assert_eq!(counters, (1..=20).collect(), "{logged}");
}

#[test]
fn weights_are_shares_in_any_order() {
    let peer = Peer::start();
    let directory = Directory::new().expect("a directory");
    let list = format!("{} weight=3\n{}\n", peer.url("/often"), peer.url("/seldom"));
    let list = write(directory.path(), "urls", &list);
    let counts = |more: &[&str]| {
        let finished = milepost(
            &[&["load", "-q", "--json", "--urls", &list, "-n", "800", "-c", "2"], more].concat(),
        );
        assert_eq!(finished.code, Some(0), "{finished:?}");
        let mut counts = BTreeMap::new();
        for sent in peer.take() {
            let path = sent.head.split(' ').nth(1).expect("a target").to_owned();
            *counts.entry(path).or_insert(0) += 1;
        }
        counts["/often"]
    };
    assert_eq!(counts(&[]), 600);
    assert_eq!(counts(&["-t", "2", "--rate", "8000"]), 600);
    // Five standard deviations of a binomial count.
    let drawn = counts(&["--order", "random", "--seed", "9"]);
    assert!((539..=661).contains(&drawn), "{drawn}");
}

#[test]
fn a_content_is_held_against_its_digest() {
    let peer = Peer::start();
    let right = Sha256::of(ANSWER.as_bytes()).to_string();
    let wrong = Sha256::of(b"other").to_string();
    let finished = load(&peer.url("/"), &["-n", "20", "--expect-sha256", &right]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let finished = load(&peer.url("/"), &["-n", "20", "--expect-sha256", &wrong]);
    let report: Value = serde_json::from_str(&finished.stdout).expect("JSON");
    assert_eq!((finished.code, &report["wrong_answers"]), (Some(1), &20.into()));
    let example = &report["wrong_answer_examples"][0];
    let expected = format!("status below 400, content with SHA-256 {wrong}");
    let got = format!("status 200, 7 bytes of content with SHA-256 {right}");
    assert_eq!((&example["expected"], &example["got"]), (&expected.into(), &got.into()));

    // Each line of a list has its own, over HTTP/2 too.
    let directory = Directory::new().expect("a directory");
    write(directory.path(), "file", ANSWER);
    let root = directory.path().display();
    let server = Server::start_with(
        directory.path(),
        &format!(
            "Listen 127.0.0.1:0\nProtocols h2c http/1.1\nDocumentRoot {root}\n\
             <Directory {root}>\nRequire all granted\n</Directory>\n"
        ),
    );
    let url = server.url("/file");
    let list = format!("{url} sha256={right}\n{url} sha256={wrong}\n");
    let list = write(directory.path(), "urls", &list);
    for more in [&[][..], &["--http2"], &["--io", "epoll"], &["--http2", "--rate", "1000"]] {
        let fixed = ["load", "-q", "--json", "--urls", &list, "-n", "40"];
        let finished = milepost(&[&fixed, more].concat());
        let report: Value = serde_json::from_str(&finished.stdout).expect("JSON");
        assert_eq!(report["wrong_answers"], 20, "{more:?}: {report}");
        assert_eq!(report["wrong_answer_examples"][0]["got"], example["got"], "{more:?}");
    }
}

const ANSWER: &str = "answer\n";

/// Answers everything, and keeps what was asked.
struct Peer {
    address: SocketAddr,
    sent: Arc<Mutex<Vec<Sent>>>,
}

/// A request as it came.
#[derive(Debug)]
struct Sent {
    head: String,
    content: Vec<u8>,
}

impl Peer {
    fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let address = listener.local_addr().expect("an address");
        let sent: Arc<Mutex<Vec<Sent>>> = Arc::default();
        let state = sent.clone();
        thread::spawn(move || {
            for socket in listener.incoming().map_while(Result::ok) {
                let state = state.clone();
                thread::spawn(move || converse(&socket, &state));
            }
        });
        Self { address, sent }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    fn take(&self) -> Vec<Sent> {
        std::mem::take(&mut *self.sent.lock().expect("a lock"))
    }

    /// What a clean run sends.
    #[track_caller]
    fn sent(&self, options: &[&str]) -> Vec<Sent> {
        let finished = load(&self.url("/"), options);
        assert_eq!(finished.code, Some(0), "{finished:?}");
        self.take()
    }
}

impl Sent {
    fn field(&self, name: &str) -> Option<&str> {
        let mut fields = self.head.lines().filter_map(|line| line.split_once(": "));
        fields.find(|(found, _)| *found == name).map(|(_, value)| value)
    }
}

fn converse(mut socket: &TcpStream, sent: &Mutex<Vec<Sent>>) {
    let mut reader = BufReader::new(socket);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if !reader.read_line(&mut head).is_ok_and(|length| length > 0) {
                return;
            }
        }
        let mut request = Sent { head, content: Vec::new() };
        let length = request.field("Content-Length").map_or(0, |it| it.parse().expect("a length"));
        request.content.resize(length, 0);
        if reader.read_exact(&mut request.content).is_err() {
            return;
        }
        sent.lock().expect("a lock").push(request);
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{ANSWER}", ANSWER.len());
        if socket.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

/// Loads `url` to the end.
#[track_caller]
fn load(url: &str, options: &[&str]) -> Finished {
    milepost(&[&["load", "-q", "--json", url], options].concat())
}
