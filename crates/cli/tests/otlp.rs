//! `milepost load --otlp` with a collector that keeps what it is sent.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};
use std::thread;

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
    assert!(said.contains("OTLP collector: it answered \"HTTP/1.1 503 Busy\""), "{said}");
    assert!(!output.stdout.is_empty(), "the report is printed all the same");
}

fn load(server: SocketAddr, options: &[&str], collector: SocketAddr) -> Output {
    Command::new(env!("CARGO_BIN_EXE_milepost"))
        .args(["load", "-q", "--json", &format!("http://{server}/")])
        .args(options)
        .args(["--otlp", &format!("http://{collector}/v1/metrics")])
        .output()
        .expect("milepost runs")
}

/// Heads and contents, which are JSON if there are any.
type Sent = Arc<Mutex<Vec<(String, Value)>>>;

/// Answers everything with `status`, and keeps it.
fn listen(status: &'static str) -> (SocketAddr, Sent) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let address = listener.local_addr().expect("an address");
    let sent = Sent::default();
    let kept = sent.clone();
    thread::spawn(move || {
        for socket in listener.incoming().map_while(Result::ok) {
            let kept = kept.clone();
            thread::spawn(move || converse(&socket, status, &kept));
        }
    });
    (address, sent)
}

fn converse(mut socket: &TcpStream, status: &str, kept: &Sent) {
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
        if socket.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}
