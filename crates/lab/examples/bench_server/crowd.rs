//! What others notice of a crowd: connections that idle after an answer, and ones whose heads never end.
//!
//! In each round the same load is measured alone and then beside the crowd, closed loop, every answer checked.

use std::error::Error;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use milepost_load::{Report, Stop};
use milepost_stats::compare::paired_ratio;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::drive::{self, Load};
use crate::servers::Running;
use crate::{SEED, median};

/// Connections that have been answered once, and say no more.
const IDLE: usize = 10_000;

/// Connections that send a byte of their head in each second.
const SLOW: usize = 1_000;

/// How often the load is measured alone and beside the crowd.
const ROUNDS: usize = 5;

/// How long each time.
const MEASURED: Duration = Duration::from_secs(1);

/// Files that a process may have open: the crowd, the load, and what it has anyway.
const DESCRIPTORS: u64 = (IDLE + SLOW + 200) as u64;

/// What the slow ones send. It does not end as long as they do.
const HEAD: &[u8] =
    b"GET /test/1 HTTP/1.1\r\nHost: localhost\r\nX-Slow: and so on and on and on and on and on";

/// Measures a server, and prints a line.
pub(crate) fn print(server: &Running) -> Result<(), Box<dyn Error>> {
    let mut pairs = Vec::new();
    let (mut alone, mut beside, mut bytes) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let first = measure(server)?;
        let before = resident(server.id())?;
        let idle = idle(server.address)?;
        bytes.push(resident(server.id())?.saturating_sub(before) as f64 / IDLE as f64);
        let mut slow =
            (0..SLOW).map(|_| TcpStream::connect(server.address)).collect::<Result<Vec<_>, _>>()?;
        let is_over = AtomicBool::new(false);
        let second = thread::scope(|scope| {
            scope.spawn(|| drip(&mut slow, &is_over));
            let report = measure(server);
            is_over.store(true, Ordering::Relaxed);
            report.map_err(|error| error.to_string())
        })?;
        drop((idle, slow));
        pairs.push((second.requests_per_second, first.requests_per_second));
        alone.push(first);
        beside.push(second);
    }
    let time = |reports: &[Report], of: fn(&Report) -> Option<u64>| {
        median(reports.iter().filter_map(of).map(|nanoseconds| nanoseconds as f64 / 1e3))
    };
    let of_both = |of: fn(&Report) -> Option<u64>| {
        format!("{:>6.0} {:>6.0}", time(&alone, of), time(&beside, of))
    };
    let ratio = paired_ratio(&pairs, SEED).map_or_else(String::new, |ratio| {
        let interval = ratio.interval.map(|it| format!(" [{:.2}, {:.2}]", it.low, it.high));
        format!("{:.2}{}", ratio.estimate, interval.unwrap_or_default())
    });
    println!(
        "{:<16} {:>16} {:>16} {:>26} {:>12.0}",
        server.kind.name(),
        of_both(|report| report.service_ns.p50),
        of_both(|report| report.service_ns.p99),
        ratio,
        // Later ones take the room that the first have left.
        bytes[0]
    );
    Ok(())
}

/// Prints what [`print`]'s columns are, and lets this process open as many files as it needs.
pub(crate) fn begin() -> Result<(), Box<dyn Error>> {
    let limit = getrlimit(Resource::Nofile);
    let wanted = limit.current.map(|current| current.max(DESCRIPTORS));
    setrlimit(Resource::Nofile, Rlimit { current: wanted, maximum: limit.maximum })
        .map_err(|error| format!("{DESCRIPTORS} files cannot be open at once: {error}"))?;
    println!(
        "\nredirects, 10 connections, alone and beside {IDLE} idle connections and {SLOW} that send a byte a second"
    );
    println!(
        "{:<16} {:>16} {:>16} {:>26} {:>12}",
        "", "p50 us", "p99 us", "req/s, x alone", "bytes/idle"
    );
    Ok(())
}

fn measure(server: &Running) -> Result<Report, Box<dyn Error>> {
    drive::put(server, Load::Redirect, Stop::Duration(MEASURED))
}

/// Opens connections on which one request is answered.
fn idle(address: SocketAddr) -> Result<Vec<TcpStream>, Box<dyn Error>> {
    let mut answer = [0; 4096];
    (0..IDLE)
        .map(|_| {
            let mut stream = TcpStream::connect(address)?;
            stream.write_all(b"GET /test/1 HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
            let length = stream.read(&mut answer)?;
            let is_redirect = answer[..length].starts_with(b"HTTP/1.1 301 ");
            is_redirect.then_some(stream).ok_or_else(|| "an idle connection is not served".into())
        })
        .collect()
}

/// Sends a byte on each connection, then again after a second, until it is over.
fn drip(connections: &mut [TcpStream], is_over: &AtomicBool) {
    for byte in HEAD.iter().cycle() {
        for connection in &mut *connections {
            // A server that has enough of it may close; then the crowd is smaller.
            let _ = connection.write_all(&[*byte]);
        }
        for _ in 0..20 {
            if is_over.load(Ordering::Relaxed) {
                return;
            }
            thread::sleep(Duration::from_millis(50));
        }
    }
}

/// The memory of a process and its children that is in use, in bytes.
fn resident(process: u32) -> Result<u64, Box<dyn Error>> {
    let mut bytes = 0;
    let children = fs::read_to_string(format!("/proc/{process}/task/{process}/children"))?;
    let children = children.split_whitespace().map(str::parse).collect::<Result<Vec<u32>, _>>()?;
    for process in children.into_iter().chain([process]) {
        let status = fs::read_to_string(format!("/proc/{process}/status"))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("0");
        let kilobytes: u64 = line.trim().trim_end_matches("kB").trim().parse()?;
        bytes += kilobytes * 1024;
    }
    Ok(bytes)
}
