//! `milepost load --otlp` with a collector that keeps what it is sent.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};
use std::thread;

use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::Value;

#[test]
fn each_second_and_the_whole_run_are_sent() {
    let (server, _) = listen("200 OK");
    let (collector, sent) = listen("200 OK");
    let output = load(server, &["--rate", "200", "-d", "2200ms"], collector);
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let sent = sent.lock().expect("a lock").clone();
    assert!((2..=3).contains(&sent.len()), "{sent:?}");
    let (head, last) = sent.last().expect("the last");
    assert!(head.starts_with("POST /v1/metrics HTTP/1.1\r\n"), "{head}");
    assert!(head.contains("\r\nContent-Type: application/json\r\n"), "{head}");
    let metrics = &last["resourceMetrics"][0]["scopeMetrics"][0]["metrics"];
    let metric = |name: &str| {
        let all = metrics.as_array().expect("an array").iter();
        all.clone().find(|it| it["name"] == name).unwrap_or_else(|| panic!("no {name}: {last}"))
    };
    let right = &metric("milepost.load.requests")["sum"]["dataPoints"][0];
    assert_eq!(right["attributes"][0]["value"]["stringValue"], "right");
    assert_eq!(right["asInt"], report["requests"].to_string());
    let times = &metric("milepost.load.response")["histogram"]["dataPoints"][0];
    assert_eq!(times["count"], report["response_ns"]["samples"].to_string());
    let buckets = times["bucketCounts"].as_array().expect("an array");
    let bounds = times["explicitBounds"].as_array().expect("an array");
    assert_eq!(buckets.len(), bounds.len() + 1);
    let number = |it: &Value| it.as_str().expect("a string").parse::<u64>().expect("a number");
    assert_eq!(buckets.iter().map(number).sum::<u64>(), number(&times["count"]));
    assert!(number(&times["startTimeUnixNano"]) < number(&times["timeUnixNano"]));
}

#[test]
fn a_collector_that_will_not_is_told_at_the_end() {
    let (server, _) = listen("200 OK");
    let (collector, _) = listen("503 Busy");
    let output = load(server, &["-n", "10"], collector);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("OTLP collector: it answered with status 503"), "{said}");
    assert!(!output.stdout.is_empty(), "the report is printed all the same");
}

#[test]
fn a_collector_may_speak_tls_and_must_be_trusted() {
    let key = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("collector.pem");
    std::fs::write(&file, key.cert.pem()).expect("a file");
    let tls = rustls::ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(
            vec![key.cert.der().clone()],
            rustls::pki_types::PrivatePkcs8KeyDer::from(key.signing_key.serialize_der()).into(),
        )
        .expect("a certificate and its key");
    let (server, _) = listen("200 OK");
    let (collector, sent) = listen_with("200 OK", Some(Arc::new(tls)));
    let url = format!("https://localhost:{}/v1/metrics", collector.port());
    let cacert = file.to_str().expect("UTF-8");
    for (options, code) in [(&["--cacert", cacert][..], 0), (&["--insecure"], 0), (&[], 2)] {
        let output = load_to(server, &[&["-n", "10"], options].concat(), &url);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{options:?}: {said}");
    }
    let sent = sent.lock().expect("a lock");
    assert_eq!(sent.len(), 2);
    assert!(sent.iter().all(|(head, _)| head.starts_with("POST /v1/metrics HTTP/1.1\r\n")));
}

fn load(server: SocketAddr, options: &[&str], collector: SocketAddr) -> Output {
    load_to(server, options, &format!("http://{collector}/v1/metrics"))
}

fn load_to(server: SocketAddr, options: &[&str], collector: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_milepost"))
        .args(["load", "-q", "--json", &format!("http://{server}/")])
        .args(options)
        .args(["--otlp", collector])
        .output()
        .expect("milepost runs")
}

/// Heads and contents, which are JSON if there are any.
type Sent = Arc<Mutex<Vec<(String, Value)>>>;

/// Answers everything with `status`, and keeps it.
fn listen(status: &'static str) -> (SocketAddr, Sent) {
    listen_with(status, None)
}

/// The same, over TLS if it is to be.
fn listen_with(status: &'static str, tls: Option<Arc<ServerConfig>>) -> (SocketAddr, Sent) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let address = listener.local_addr().expect("an address");
    let sent = Sent::default();
    let kept = sent.clone();
    thread::spawn(move || {
        for socket in listener.incoming().map_while(Result::ok) {
            let (kept, tls) = (kept.clone(), tls.clone());
            thread::spawn(move || match tls {
                None => converse(socket, status, &kept),
                Some(tls) => {
                    let connection = ServerConnection::new(tls).expect("a connection");
                    converse(StreamOwned::new(connection, socket), status, &kept);
                }
            });
        }
    });
    (address, sent)
}

fn converse(socket: impl Read + Write, status: &str, kept: &Sent) {
    let mut reader = BufReader::new(socket);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if !reader.read_line(&mut head).is_ok_and(|length| length > 0) {
                return;
            }
        }
        let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
        let mut content = vec![0; length.map_or(0, |it| it.parse().expect("a length"))];
        if reader.read_exact(&mut content).is_err() {
            return;
        }
        let content = serde_json::from_slice(&content).unwrap_or_default();
        kept.lock().expect("a lock").push((head, content));
        let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
        if reader.get_mut().write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}
