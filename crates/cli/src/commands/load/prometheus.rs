//! Serves what a run has counted so far, in Prometheus's text format, to whoever connects.
//!
//! One thread, one connection at a time, one answer to a connection: a scraper asks every few seconds.
//! Anything that is asked for is answered with the metrics.
//!
//! Source: Prometheus, "Exposition formats", text format 0.0.4.

use std::fmt::Write as _;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::Context;
use milepost_load::{Counts, Interval};
use milepost_stats::histogram::Histogram;

/// Upper bounds of the buckets in microseconds: 1, 2, 5 from what a loopback takes to a minute.
pub(super) const BUCKETS_US: [u64; 21] = [
    10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000,
    500_000, 1_000_000, 2_000_000, 5_000_000, 10_000_000, 20_000_000, 60_000_000,
];

/// How often the thread looks whether it is to end.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A scraper that takes longer to ask or to read has gone.
const PATIENCE: Duration = Duration::from_secs(2);

/// Longest request head that is read; no scraper sends as much.
const HEAD_BYTES_MAX: usize = 16 * 1024;

/// The metrics and the thread that serves them. Ends when dropped.
#[derive(Debug)]
pub(super) struct Exporter {
    address: SocketAddr,
    counts: Counts,
    response: Histogram,
    service: Histogram,
    text: Arc<Mutex<String>>,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Exporter {
    /// Listens at `address`.
    ///
    /// # Errors
    ///
    /// When that is not possible.
    pub(super) fn bind(address: SocketAddr) -> anyhow::Result<Self> {
        let fault = || format!("cannot serve metrics at {address}");
        let listener = TcpListener::bind(address).with_context(fault)?;
        listener.set_nonblocking(true).with_context(fault)?;
        let address = listener.local_addr().with_context(fault)?;
        let text = Arc::new(Mutex::new(String::new()));
        let ends = Arc::new(AtomicBool::new(false));
        let thread = thread::Builder::new()
            .name("metrics".to_owned())
            .spawn({
                let (text, ends) = (Arc::clone(&text), Arc::clone(&ends));
                move || serve(&listener, &text, &ends)
            })
            .with_context(fault)?;
        let mut exporter = Self {
            address,
            counts: Counts::default(),
            response: Histogram::new(),
            service: Histogram::new(),
            text,
            ends,
            thread: Some(thread),
        };
        exporter.renew();
        Ok(exporter)
    }

    /// Where it listens.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Takes an interval.
    pub(super) fn interval(&mut self, interval: &Interval) {
        self.counts.add(interval.counts);
        self.response.merge(&interval.response);
        self.service.merge(&interval.service);
        self.renew();
    }

    fn renew(&mut self) {
        let text = metrics(self.counts, &self.response, &self.service);
        *self.text.lock().unwrap_or_else(PoisonError::into_inner) = text;
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        self.ends.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            // It has nothing to say about why it ended.
            let _ = thread.join();
        }
    }
}

fn serve(listener: &TcpListener, text: &Mutex<String>, ends: &AtomicBool) {
    while !ends.load(Relaxed) {
        match listener.accept() {
            Ok((socket, _)) => {
                let body = text.lock().unwrap_or_else(PoisonError::into_inner).clone();
                // Whoever asked may have gone.
                let _ = answer(socket, &body);
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => thread::sleep(LOOK_EVERY),
        }
    }
}

fn answer(mut socket: TcpStream, body: &str) -> std::io::Result<()> {
    socket.set_nonblocking(false)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.set_write_timeout(Some(PATIENCE))?;
    let (mut head, mut piece) = (Vec::new(), [0; 1024]);
    while !head.windows(4).any(|bytes| bytes == b"\r\n\r\n") && head.len() < HEAD_BYTES_MAX {
        match socket.read(&mut piece)? {
            0 => return Ok(()),
            length => head.extend_from_slice(&piece[..length]),
        }
    }
    let length = body.len();
    let answer = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n\
         Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
    socket.write_all(answer.as_bytes())
}

fn metrics(counts: Counts, response: &Histogram, service: &Histogram) -> String {
    let mut out = String::new();
    let Counts { sent, requests, wrong_answers, errors, bytes_received, .. } = counts;
    family(&mut out, "sent_total", "counter", "Requests sent.");
    sample(&mut out, "sent_total", "", sent);
    family(&mut out, "requests_total", "counter", "Requests that ended, by what became of them.");
    for (result, count) in
        [("right", requests - wrong_answers), ("wrong", wrong_answers), ("error", errors)]
    {
        sample(&mut out, "requests_total", &format!("{{result=\"{result}\"}}"), count);
    }
    family(&mut out, "received_bytes_total", "counter", "Bytes received.");
    sample(&mut out, "received_bytes_total", "", bytes_received);
    for (name, help, times) in [
        (
            "response_seconds",
            "From when a request was due to the end of its right answer.",
            response,
        ),
        ("service_seconds", "From sending a request to the end of its right answer.", service),
    ] {
        family(&mut out, name, "histogram", help);
        let within = times.counts_within(&BUCKETS_US.map(|micros| micros * 1_000));
        for (micros, count) in BUCKETS_US.iter().zip(within) {
            let bound = *micros as f64 / 1e6;
            sample(&mut out, &format!("{name}_bucket"), &format!("{{le=\"{bound}\"}}"), count);
        }
        sample(&mut out, &format!("{name}_bucket"), "{le=\"+Inf\"}", times.len());
        let seconds = times.sum() as f64 / 1e9;
        sample(&mut out, &format!("{name}_sum"), "", seconds);
        sample(&mut out, &format!("{name}_count"), "", times.len());
    }
    out
}

fn family(out: &mut String, name: &str, kind: &str, help: &str) {
    // Writing to a string does not fail.
    let _ = writeln!(out, "# HELP milepost_load_{name} {help}\n# TYPE milepost_load_{name} {kind}");
}

fn sample(out: &mut String, name: &str, labels: &str, value: impl std::fmt::Display) {
    let _ = writeln!(out, "milepost_load_{name}{labels} {value}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_in_the_text_format() {
        let mut times = Histogram::new();
        for ns in [5_000, 15_000, 1_500_000_000] {
            times.record(ns);
        }
        let mut counts = Counts::default();
        (counts.sent, counts.requests, counts.wrong_answers) = (7, 5, 2);
        let text = metrics(counts, &times, &Histogram::new());
        for line in [
            "# TYPE milepost_load_requests_total counter",
            "milepost_load_sent_total 7",
            "milepost_load_requests_total{result=\"right\"} 3",
            "milepost_load_requests_total{result=\"wrong\"} 2",
            "milepost_load_response_seconds_bucket{le=\"0.00001\"} 1",
            "milepost_load_response_seconds_bucket{le=\"0.00002\"} 2",
            "milepost_load_response_seconds_bucket{le=\"1\"} 2",
            "milepost_load_response_seconds_bucket{le=\"2\"} 3",
            "milepost_load_response_seconds_bucket{le=\"+Inf\"} 3",
            "milepost_load_response_seconds_sum 1.50002",
            "milepost_load_service_seconds_count 0",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}:\n{text}");
        }
    }

    #[test]
    fn whoever_connects_is_answered_until_it_ends() {
        let exporter = Exporter::bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        for _ in 0..2 {
            let mut socket = TcpStream::connect(exporter.address()).unwrap();
            socket.write_all(b"GET /metrics HTTP/1.1\r\nHost: h\r\n\r\n").unwrap();
            let mut text = String::new();
            socket.read_to_string(&mut text).unwrap();
            assert!(text.starts_with("HTTP/1.1 200 OK\r\n"), "{text}");
            assert!(text.contains("\nmilepost_load_sent_total 0\n"), "{text}");
        }
        let address = exporter.address();
        drop(exporter);
        assert!(TcpStream::connect(address).is_err());
    }
}
