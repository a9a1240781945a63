//! http_load against a peer that answers well or badly.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use milepost_load::dropin::Program;

use crate::desk::{Desk, Said};
use crate::peer::{Conversation, Peer};

#[test]
fn each_fetch_has_a_connection_of_its_own() {
    let peer = site();
    let said = http_load(&peer, "-parallel 3 -fetches 1000", &["/ok", "/r"]);
    assert_eq!((said.exit, &*said.err), (0, ""), "{said:?}");
    let lines: Vec<_> = said.out.lines().collect();
    assert!(lines[0].starts_with("1000 fetches, 3 max parallel, "), "{said:?}");
    let labels: Vec<_> = lines[1..].iter().map(|line| words(line)).collect();
    assert_eq!(
        labels,
        [
            "mean bytes/connection",
            "fetches/sec, bytes/sec",
            "msecs/connect: mean, max, min",
            "msecs/first-response: mean, max, min",
            "HTTP response codes:",
            "code --",
            "code --",
        ],
        "{said:?}"
    );
    assert!(lines[6].starts_with("  code 200 -- ") && lines[7].starts_with("  code 301 -- "));
    assert_eq!(peer.connections(), 1000);
    let request = &peer.requests()[0];
    let host = format!("Host: {}\r\n", peer.address());
    assert!(request.contains(" HTTP/1.0\r\n") && request.contains(&host), "{request}");
    assert!(request.contains("Connection: close\r\n"), "{request}");
    assert!(request.contains("User-Agent: http_load 12mar2006\r\n"), "{request}");
}

#[test]
fn the_quirks_leave_the_connection_unsaid() {
    let peer = site();
    let said = http_load(&peer, "-p 1 -f 2 --quirks=http_load", &["/ok"]);
    assert_eq!(said.exit, 0, "{said:?}");
    let request = &peer.requests()[0];
    assert!(
        request.contains("Host: 127.0.0.1\r\n") && !request.contains("Connection"),
        "{request}"
    );
}

#[test]
fn an_answer_without_content_ends_at_its_head() {
    // The original waits for its idle timeout here.
    let peer = Peer::start(|it| {
        while it.request().is_some() {
            it.send("HTTP/1.0 301 Moved\r\nContent-Length: 0\r\nLocation: /ok\r\n\r\n");
        }
    });
    let began = Instant::now();
    let said = http_load(&peer, "-p 2 -f 6", &["/"]);
    assert!(began.elapsed() < Duration::from_secs(10));
    assert!(said.out.contains("6 fetches, 2 max parallel, 0 bytes, "), "{said:?}");
    assert!(said.err.contains("milepost: http_load would wait for that"), "{said:?}");
}

#[test]
fn contents_that_change_are_told_by_length_or_by_checksum() {
    let contents = ["abc", "abc", "xyz", "longer"];
    let peer = || {
        let number = Arc::new(AtomicU64::new(0));
        Peer::start(move |it| {
            if it.request().is_some() {
                let content = contents[number.fetch_add(1, SeqCst) as usize % contents.len()];
                it.send(format!(
                    "HTTP/1.0 200 OK\r\nContent-Length: {}\r\n\r\n{content}",
                    content.len()
                ));
            }
        })
    };
    let bytes = http_load(&peer(), "-p 1 -f 8", &["/x"]);
    assert!(bytes.out.contains("\n2 bad byte counts\n"), "{bytes:?}");
    assert_eq!(bytes.err.matches("/x: byte count wrong\n").count(), 2, "{bytes:?}");
    let sums = http_load(&peer(), "-p 1 -f 8 -checksum", &["/x"]);
    assert!(sums.out.contains("\n4 bad checksums\n"), "{sums:?}");
    assert_eq!(sums.err.matches("/x: checksum wrong\n").count(), 4, "{sums:?}");
}

#[test]
fn a_silent_server_is_a_timeout_and_the_report_is_printed() {
    let peer = Peer::start(Conversation::wait);
    let said = http_load(&peer, "-p 2 -f 4 -timeout 0.2", &["/silent"]);
    assert_eq!(said.exit, 0);
    assert!(said.out.contains("4 fetches, ") && said.out.contains("\n4 timeouts\n"), "{said:?}");
    assert!(!said.out.contains("first-response"), "{said:?}");
    assert_eq!(said.err.matches("/silent: timed out\n").count(), 4, "{said:?}");
}

#[test]
fn a_server_that_is_gone_ends_the_run_soon() {
    let desk = Desk::default().with("urls", "http://127.0.0.1:1/\n");
    let said = desk.run(Program::HttpLoad, "-p 5 -s 60 urls");
    assert_eq!(said.exit, 0, "{said:?}");
    assert_eq!(said.err.matches("Connection refused").count(), 100, "{said:?}");
    assert!(said.err.contains("more such lines were left out\n"), "{said:?}");
    assert!(said.err.contains("milepost: no connection could be opened any more"), "{said:?}");
    let said = desk.run(Program::HttpLoad, "-p 5 -f 10 urls");
    assert!(said.out.starts_with("10 fetches, "), "{said:?}");
}

#[test]
fn a_throttled_connection_receives_at_its_rate() {
    let content = "x".repeat(40_000);
    let peer =
        Peer::answering(format!("HTTP/1.0 200 OK\r\nContent-Length: 40000\r\n\r\n{content}"));
    // 40,000 bytes at 320,000 bits a second with ten bits for a byte; the last ones are not waited for.
    let began = Instant::now();
    let said = http_load(&peer, "-p 2 -f 2 -Throttle 320000 -timeout 1", &["/large"]);
    let took = began.elapsed();
    assert!(said.out.starts_with("2 fetches, 2 max parallel, 80000 bytes, in "), "{said:?}");
    assert!(took > Duration::from_millis(900) && took < Duration::from_secs(10), "{took:?}");
    let began = Instant::now();
    http_load(&peer, "-p 2 -f 2 -timeout 1", &["/large"]);
    assert!(began.elapsed() < took, "{:?}", began.elapsed());
}

#[test]
fn a_rate_is_kept_whatever_the_answers() {
    let peer = site();
    let said = http_load(&peer, "-rate 400 -jitter -seconds 1", &["/ok"]);
    let fetches: u64 = said.out.split(' ').next().unwrap().parse().unwrap();
    // http_load itself would send 500 a second.
    assert!((350..=401).contains(&fetches), "{said:?}");
}

#[test]
fn what_cannot_be_done_exits_with_1() {
    let desk = Desk::default().with("sslurl.txt", "https://127.0.0.1/\n");
    let said = desk.run(Program::HttpLoad, "-cipher RC4-MD5 -parallel 20 -fetch 500 sslurl.txt");
    assert_eq!((said.exit, &*said.out), (1, ""), "{said:?}");
    assert!(said.err.contains("RC4-MD5"), "{said:?}");
    assert_eq!(said.err.lines().count(), 1, "{said:?}");
    let said = desk.run(Program::HttpLoad, "-parallel 20 sslurl.txt");
    assert_eq!(said.exit, 1);
    assert!(said.err.contains("\nUsage: http_load [flags]"), "{said:?}");
    assert_eq!(desk.run(Program::HttpLoad, "--help").exit, 0);
}

/// `/r` is a redirect, anything else has two bytes.
fn site() -> Peer {
    Peer::start(|it| {
        while let Some(head) = it.request() {
            match head.starts_with("GET /r ") {
                true => it.send("HTTP/1.1 301 Moved\r\nLocation: /ok\r\nContent-Length: 0\r\n\r\n"),
                false => it.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"),
            }
            if !head.contains("keep-alive") {
                return;
            }
        }
    })
}

fn http_load(peer: &Peer, line: &str, paths: &[&str]) -> Said {
    let urls: String =
        paths.iter().map(|path| format!("http://{}{path}\n", peer.address())).collect();
    Desk::default().with("urls", &urls).run(Program::HttpLoad, &format!("{line} urls"))
}

/// A line without its numbers.
fn words(line: &str) -> String {
    let words: Vec<_> =
        line.split_whitespace().filter(|word| word.parse::<f64>().is_err()).collect();
    words.join(" ")
}
