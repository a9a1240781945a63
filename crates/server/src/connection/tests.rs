//! Deadlines, on a clock that stands still until everybody waits; and any cut of a stream into reads.

use std::time::Duration;

use milepost_engine::{ReadTimeout, Settings};
use milepost_http::request::RequestHead;
use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::runtime::{Builder, LocalOptions};
use tokio::task::{spawn_local, yield_now};
use tokio::time::Instant;

use super::*;
use crate::limits::AllLimits;
use crate::reply::Reply;
use crate::worker::Shared;

const REQUEST: &[u8] = b"GET /a HTTP/1.1\r\nHost: a\r\n\r\n";

#[test]
fn silence_before_the_first_request_ends_after_timeout() {
    paused(|mut client| async move {
        assert_eq!(client.end().await, ("".to_owned(), 60));
    });
}

#[test]
fn silence_between_requests_ends_after_keep_alive_timeout() {
    paused(|mut client| async move {
        client.send(REQUEST).await;
        assert_eq!(client.answer().await, 301);
        client.wait(4).await;
        client.send(REQUEST).await;
        assert_eq!(client.answer().await, 301);
        assert_eq!(client.end().await, ("".to_owned(), 5));
    });
}

#[test]
fn a_head_that_drips_is_ended_with_408_after_timeout() {
    paused(|mut client| async move {
        let head = b"GET /aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
        for byte in head.chunks(1).take(59) {
            client.send(byte).await;
            client.wait(1).await;
        }
        assert_eq!(client.answer().await, 408);
        // The client keeps silent; the pause ends the lingering.
        let (rest, seconds) = client.end().await;
        assert_eq!(rest, "");
        assert!((0..=3).contains(&seconds), "{seconds}");
    });
}

#[test]
fn a_partial_head_after_an_answer_has_timeout_and_not_keep_alive_timeout() {
    paused(|mut client| async move {
        client.send(REQUEST).await;
        assert_eq!(client.answer().await, 301);
        client.send(b"GET ").await;
        client.wait(50).await;
        client.send(&REQUEST[4..]).await;
        assert_eq!(client.answer().await, 301);
    });
}

#[test]
fn bytes_buy_time_for_a_head_up_to_a_limit() {
    let second = |count| Duration::from_secs(count);
    let limit =
        ReadTimeout { first: second(5), last: Some(second(12)), bytes_per_second_min: Some(1) };
    let settings = Settings { head_timeout: Some(limit), ..Settings::default() };
    paused_with(settings.clone(), |mut client| async move {
        // Nothing at all: the time that it has in any case.
        assert_eq!(client.end().await, ("".to_owned(), 5));
    });
    paused_with(settings, |mut client| async move {
        for byte in b"GET /aaaaaaa".chunks(1) {
            client.send(byte).await;
            client.wait(1).await;
        }
        // Twelve bytes have bought more than the limit, and twelve seconds are over.
        assert_eq!(client.answer().await, 408);
    });
}

#[test]
fn content_has_a_time_of_its_own() {
    let limit =
        ReadTimeout { first: Duration::from_secs(3), last: None, bytes_per_second_min: None };
    let settings = Settings { content_timeout: Some(limit), ..Settings::default() };
    paused_with(settings, |mut client| async move {
        client.send(b"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc").await;
        assert_eq!(client.answer().await, 301);
        assert_eq!(client.end().await, ("".to_owned(), 3));
    });
}

#[test]
fn content_that_does_not_come_ends_after_timeout() {
    paused(|mut client| async move {
        client.send(b"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc").await;
        assert_eq!(client.answer().await, 301);
        assert_eq!(client.end().await, ("".to_owned(), 60));
    });
}

#[test]
fn a_client_that_does_not_read_is_given_up_after_timeout() {
    paused(|mut client| async move {
        // More answers than the pipe holds.
        client.send(&REQUEST.repeat(60)).await;
        client.wait(62).await;
        let (text, _) = client.end().await;
        assert!(text.len() <= PIPE_BYTES, "{}", text.len());
        assert!(!text.is_empty());
    });
}

#[test]
fn lingering_ends_though_the_client_goes_on() {
    paused(|mut client| async move {
        client.send(b"GARBAGE\r\n\r\n").await;
        assert_eq!(client.answer().await, 400);
        let mut seconds = 0;
        while client.stream.write_all(b"more").await.is_ok() {
            client.wait(1).await;
            seconds += 1;
            assert!(seconds < 20);
        }
        assert!((9..=12).contains(&seconds), "{seconds}");
    });
}

#[test]
fn stopping_ends_an_idle_connection_at_once() {
    paused(|mut client| async move {
        client.send(REQUEST).await;
        assert_eq!(client.answer().await, 301);
        client.worker.stop();
        assert_eq!(client.end().await, ("".to_owned(), 0));
    });
}

#[test]
fn stopping_finishes_a_request_that_has_begun() {
    paused(|mut client| async move {
        client.send(&REQUEST[..10]).await;
        client.wait(1).await;
        client.worker.stop();
        client.wait(1).await;
        client.send(&REQUEST[10..]).await;
        let (text, _) = client.end().await;
        assert!(text.starts_with("HTTP/1.1 301 "), "{text}");
        assert!(text.contains("\r\nConnection: close\r\n"), "{text}");
    });
}

/// Requests of every kind that a persistent connection can see.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let request = prop::sample::select(vec![
        "GET /a HTTP/1.1\r\nHost: a\r\n\r\n",
        "HEAD /b HTTP/1.1\r\nHost: a\r\nX-Long: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n\r\n",
        "GET /c HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
        "POST /d HTTP/1.1\r\nHost: a\r\nContent-Length: 7\r\n\r\nGET / H",
        "POST /e HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3;x\r\nabc\r\n0\r\nT: x\r\n\r\n",
        "\r\nGET /f HTTP/1.1\r\nHost: a\r\n\r\n",
    ]);
    let last = prop::sample::select(vec![
        "GET /z HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
        "GET /z HTTP/1.0\r\n\r\n",
        "BAD\r\n\r\n",
    ]);
    (prop::collection::vec(request, 0..8), last)
        .prop_map(|(requests, last)| (requests.concat() + last).into_bytes())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn the_cut_into_reads_does_not_matter(
        stream in stream(),
        pieces in prop::collection::vec(1usize..40, 1..30),
    ) {
        let whole = answers(&[&stream]);
        let mut rest = &stream[..];
        let mut cut = Vec::new();
        for piece in pieces.iter().cycle() {
            let (first, others) = rest.split_at((*piece).min(rest.len()));
            cut.push(first);
            rest = others;
            if rest.is_empty() {
                break;
            }
        }
        prop_assert_eq!(&answers(&cut), &whole);
        let bytes: Vec<_> = stream.chunks(1).collect();
        prop_assert_eq!(&answers(&bytes), &whole);
    }
}

/// Everything that is answered when `pieces` arrive one after the other, without the dates.
fn answers(pieces: &[&[u8]]) -> String {
    let mut text = String::new();
    paused(async |mut client| {
        for piece in pieces {
            // The connection may be closed before all is sent.
            let _ = client.stream.write_all(piece).await;
            for _ in 0..4 {
                yield_now().await;
            }
        }
        text = client.end().await.0;
    });
    text.lines().filter(|line| !line.starts_with("Date: ")).collect::<Vec<_>>().join("\n")
}

const PIPE_BYTES: usize = 4096;

/// The client's end of a connection.
struct Client {
    stream: DuplexStream,
    worker: Rc<Worker<Redirect>>,
    /// Bytes read beyond the last answer.
    ahead: Vec<u8>,
}

struct Redirect;

impl Respond for Redirect {
    fn respond(&mut self, request: &RequestHead<'_>, _peer: &Peer, reply: &mut Reply) {
        reply.redirect(301, request.target);
    }
}

/// Runs `body` against one connection, on a clock that moves only when nothing else can happen.
fn paused<F: Future<Output = ()>>(body: impl FnOnce(Client) -> F) {
    paused_with(Settings::default(), body);
}

fn paused_with<F: Future<Output = ()>>(settings: Settings, body: impl FnOnce(Client) -> F) {
    let runtime = Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build_local(LocalOptions::default())
        .unwrap();
    runtime.block_on(async {
        let worker = Worker::new(AllLimits::from(&settings), Redirect, Shared::alone());
        spawn_local(Rc::clone(&worker).sweep(|| ()));
        let (stream, server) = duplex(PIPE_BYTES);
        let address = ([127, 0, 0, 1], 80).into();
        let peer = Peer::new(address, address);
        let (presence, serving) = (worker.enter(), Rc::clone(&worker));
        spawn_local(async move {
            serve(server, peer, serving).await;
            drop(presence);
        });
        body(Client { stream, worker, ahead: Vec::new() }).await;
    });
}

impl Client {
    async fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
    }

    async fn wait(&self, seconds: u64) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }

    /// Reads one answer and returns its status.
    async fn answer(&mut self) -> u16 {
        let mut bytes = std::mem::take(&mut self.ahead);
        while !bytes.ends_with(b"</html>\n") {
            assert_ne!(self.stream.read_buf(&mut bytes).await.unwrap(), 0);
        }
        let status = std::str::from_utf8(&bytes[9..12]).unwrap();
        status.parse().unwrap()
    }

    /// Reads to the end; returns what came, and how many seconds it took.
    async fn end(&mut self) -> (String, u64) {
        let start = Instant::now();
        let mut bytes = std::mem::take(&mut self.ahead);
        // A reset is an end as well.
        let _ = self.stream.read_to_end(&mut bytes).await;
        (String::from_utf8(bytes).unwrap(), start.elapsed().as_secs())
    }
}
