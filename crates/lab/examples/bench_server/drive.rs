//! The loads, and the measurement of one server under one of them.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use milepost_lab::Reading;
use milepost_load::{Control, Expectation, Persistence, Plan, Report, Stop, Target};

use crate::servers::{FILE_BYTES, RULES, Running};

/// Connections of every load.
const CONNECTIONS: usize = 10;

/// Requests of one trial: some tens of milliseconds.
const REQUESTS: u64 = 10_000;

/// Requests of one trial that each need a connection of their own.
const REQUESTS_CLOSING: u64 = 2_000;

/// Requests in one write.
const DEPTH: usize = 16;

/// What is asked, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Load {
    Redirect,
    Pipelined,
    File,
    Closing,
}

/// One trial.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    /// CPU time of the server for a request, in microseconds.
    pub(crate) cpu_us: f64,
    pub(crate) per_second: f64,
}

impl Load {
    pub(crate) const ALL: [Load; 4] = [Load::Redirect, Load::Pipelined, Load::File, Load::Closing];

    pub(crate) fn title(self) -> String {
        match self {
            Load::Redirect => format!("redirects, {CONNECTIONS} connections"),
            Load::Pipelined => format!("redirects, {DEPTH} in one write, 1 connection"),
            Load::File => format!("a file of {FILE_BYTES} bytes, {CONNECTIONS} connections"),
            Load::Closing => {
                format!("redirects, a new connection for each, {CONNECTIONS} at a time")
            }
        }
    }

    /// What is asked for, and what `Location` must be.
    fn target(self) -> (String, Option<String>) {
        match self {
            Load::File => ("/file.txt".to_owned(), None),
            _ => (format!("/test/{RULES}"), Some(format!("http://www.example.org/new/{RULES}"))),
        }
    }
}

/// Warms the server up, and measures it.
pub(crate) fn measure(server: &Running, load: Load) -> Result<Sample, Box<dyn std::error::Error>> {
    let requests = if load == Load::Closing { REQUESTS_CLOSING } else { REQUESTS };
    let send = |requests| {
        if load == Load::Pipelined {
            return pipelined(server.address, load, requests);
        }
        Ok(put(server, load, Stop::Requests(requests))?.seconds)
    };
    send(requests / 10)?;
    let before = Reading::at_rest(server.id())?;
    let seconds = send(requests)?;
    let used = Reading::at_rest(server.id())?.since(&before);
    Ok(Sample {
        cpu_us: used.nanoseconds as f64 / 1e3 / requests as f64,
        per_second: requests as f64 / seconds,
    })
}

/// Sends requests, and checks every answer.
pub(crate) fn put(
    server: &Running,
    load: Load,
    stop: Stop,
) -> Result<Report, Box<dyn std::error::Error>> {
    let (path, location) = load.target();
    let mut target = Target::new(server.address, server.address.to_string(), path);
    let mut expectation = Expectation::default();
    match location {
        Some(location) => {
            expectation.status = Some(301);
            expectation.location = Some(location.into_bytes());
        }
        None => {
            expectation.status = Some(200);
            expectation.content_bytes = Some(FILE_BYTES as u64);
        }
    }
    target.expectation = expectation;
    let mut plan = Plan::new(vec![target]);
    plan.connections = CONNECTIONS;
    plan.threads = 1;
    plan.stop = stop;
    if load == Load::Closing {
        plan.persistence = Persistence::Close;
    }
    let report = milepost_load::run(&plan, &Control::default())?;
    if report.wrong_answers > 0 || report.errors > 0 || report.requests == 0 {
        return Err(format!(
            "{}: {} right answers, {} wrong ones, {} errors",
            server.kind.name(),
            report.requests,
            report.wrong_answers,
            report.errors
        )
        .into());
    }
    Ok(report)
}

/// Sends many requests in one write, and returns the seconds that it took. All answers have the length of the first, and its `Location`.
fn pipelined(
    address: SocketAddr,
    load: Load,
    requests: u64,
) -> Result<f64, Box<dyn std::error::Error>> {
    let (path, location) = load.target();
    let line = format!("\r\nLocation: {}\r\n", location.unwrap_or_default()).to_ascii_lowercase();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n");
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    stream.write_all(request.as_bytes())?;
    let length = answer_length(&mut stream)?;
    let batch = request.repeat(DEPTH);
    let mut answers = vec![0; length * DEPTH];
    let begun = Instant::now();
    for _ in 0..requests / DEPTH as u64 {
        stream.write_all(batch.as_bytes())?;
        stream.read_exact(&mut answers)?;
        for answer in answers.chunks(length) {
            let head = String::from_utf8_lossy(answer).to_ascii_lowercase();
            if !head.starts_with("http/1.1 301 ") || !head.contains(&line) {
                return Err(format!("a wrong answer from {address}: {head}").into());
            }
        }
    }
    // What was not a whole batch was not sent.
    Ok(begun.elapsed().as_secs_f64() * requests as f64
        / (requests / DEPTH as u64 * DEPTH as u64) as f64)
}

/// Reads one answer, and tells how long it is.
fn answer_length(stream: &mut TcpStream) -> Result<usize, Box<dyn std::error::Error>> {
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let count = stream.read(&mut piece)?;
        if count == 0 {
            return Err("closed before it had answered".into());
        }
        bytes.extend_from_slice(&piece[..count]);
        let text = String::from_utf8_lossy(&bytes).to_ascii_lowercase();
        let Some((head, _)) = text.split_once("\r\n\r\n") else { continue };
        let content: usize = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "))
            .map_or(Ok(0), |number| number.trim().parse())?;
        if bytes.len() >= head.len() + 4 + content {
            return Ok(head.len() + 4 + content);
        }
    }
}
