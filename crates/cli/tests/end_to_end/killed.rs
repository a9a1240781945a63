//! `milepost load` when the server is killed under it, and when it is interrupted itself: it ends on time,
//! counts what failed by its kind, and prints the report.

use std::net::{SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use milepost_testkit::directory::Directory;
use serde_json::Value;

use crate::support::{MILEPOST, Server};

/// How long a run is told to last. The server dies in its middle.
const LENGTH: Duration = Duration::from_secs(3);

/// What a busy machine may add to that.
const SLACK: Duration = Duration::from_secs(10);

/// When the first answers must have come.
const BEGUN_BY: Duration = Duration::from_millis(1_200);

const CONFIGURATION: &str = "Listen 127.0.0.1:0\nProtocols h2c http/1.1\nMaxKeepAliveRequests 0\n\
                             Redirect 301 /a http://b.example/\n";

#[test]
fn a_server_that_is_killed_is_counted_and_the_run_ends_on_time() {
    for options in [
        "--io uring -c 8",
        "--io epoll -c 8",
        "--io uring -c 8 --rate 500",
        "--io epoll -c 8 --rate 500",
        "--io epoll -c 4 --no-keep-alive",
        "-c 4 -t 2 --rate 500 --arrival poisson",
        "-c 4 --processes 2",
        "--io uring -c 4 --busy-poll --cpus 0 --rate 500",
        "--io epoll -c 4 --busy-poll",
        "--io uring -c 2 --pipeline 4",
        "--io epoll -c 2 --pipeline 4",
        "-c 2 --pipeline 4 --rate 500",
        "-c 2 --http2 --streams 4",
        "-c 2 --http2 --streams 4 --rate 500",
    ] {
        let directory = Directory::new().expect("a directory");
        let server = Server::start_with(directory.path(), CONFIGURATION);
        let began = Instant::now();
        let running = Running::start(&server.url("/a"), &format!("{options} -d 3s"));
        thread::sleep(BEGUN_BY);
        // Kills it with SIGKILL.
        drop(server);
        let (code, report) = running.finish();
        let took = began.elapsed();
        let what = format!("{options}: {report}");
        assert!(took < LENGTH + SLACK, "{took:?}: {what}");
        assert_eq!(code, Some(1), "{what}");
        let seconds = report["seconds"].as_f64().expect("a length");
        assert!(seconds < LENGTH.as_secs_f64() + 1.0, "{what}");
        assert!(["duration", "gave_up"].contains(&report["ended"].as_str().unwrap()), "{what}");
        assert!(report["requests"].as_u64() > Some(0), "{what}");
        let kinds: Vec<_> = report["errors_by_kind"].as_array().expect("an array").iter().collect();
        let count = |name: &str| {
            let of = kinds.iter().filter(|it| it["kind"] == name);
            of.map(|it| it["count"].as_u64().expect("a count")).sum::<u64>()
        };
        assert!(count("connect_refused") > 0, "{what}");
        let all: u64 = kinds.iter().map(|it| it["count"].as_u64().expect("a count")).sum();
        assert_eq!(Some(all), report["errors"].as_u64(), "{what}");
        assert!(kinds.iter().all(|it| !it["example"].as_str().unwrap().is_empty()), "{what}");
    }
}

#[test]
fn an_interrupted_run_prints_its_report_whatever_it_was_doing() {
    let directory = Directory::new().expect("a directory");
    let server = Server::start_with(directory.path(), CONFIGURATION);
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let silent = format!("http://{}/", silent.local_addr().expect("an address"));
    let full = Full::new();
    let url = server.url("/a");
    for (what, url, options) in [
        ("under load", &*url, "-c 4"),
        ("in the warm-up", &*url, "-c 4 --warm-up 10m"),
        ("between two requests", &*url, "--rate 0.01"),
        ("in a rest of the rate", &*url, "--stages 10m:0,1s:1"),
        ("with no answer", &*silent, "-c 3 --timeout 10m"),
        ("with no answer, on epoll", &*silent, "-c 3 --timeout 10m --io epoll"),
        ("with a queue", &*silent, "-c 1 --timeout 10m --rate 1000"),
        ("while connecting", &*full.url(), "-c 3 --timeout 10m"),
        ("while connecting, on epoll", &*full.url(), "-c 3 --timeout 10m --io epoll"),
        ("in processes", &*url, "-c 4 --processes 2"),
        ("over pipelines", &*url, "-c 2 --pipeline 4"),
        ("over pipelines with no answer", &*silent, "-c 2 --pipeline 4 --timeout 10m"),
        ("over pipelines, while connecting", &*full.url(), "-c 2 --pipeline 4 --timeout 10m"),
        ("while it polls", &*url, "-c 2 --busy-poll --cpus 0-0 --rate 10"),
        ("while it polls in vain", &*silent, "-c 2 --busy-poll --timeout 10m --io epoll"),
        ("on HTTP/2", &*url, "--http2 --streams 3"),
        ("on HTTP/2 with no answer", &*silent, "--http2 --timeout 10m"),
    ] {
        let length = if options.contains("--stages") { "" } else { " -d 10m" };
        let running = Running::start(url, &format!("{options}{length}"));
        thread::sleep(Duration::from_millis(400));
        running.interrupt();
        let interrupted = Instant::now();
        let (code, report) = running.finish();
        assert!(interrupted.elapsed() < SLACK, "{what}: {:?}", interrupted.elapsed());
        assert_eq!(report["ended"], "interrupted", "{what}: {report}");
        assert_eq!((code, &report["errors"]), (Some(0), &0.into()), "{what}: {report}");
        if url == silent {
            assert!(report["unanswered"].as_u64() > Some(0), "{what}: {report}");
        }
    }
}

/// `milepost load` that has not ended.
struct Running(Child);

impl Running {
    fn start(url: &str, options: &str) -> Self {
        let mut command = Command::new(MILEPOST);
        command.args(["load", "-q", "--json", url]).args(options.split(' '));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Self(command.spawn().expect("milepost runs"))
    }

    fn interrupt(&self) {
        let id = self.0.id().to_string();
        let status = Command::new("kill").args(["-INT", &id]).status().expect("kill runs");
        assert!(status.success());
    }

    /// Its exit code and its report.
    #[track_caller]
    fn finish(mut self) -> (Option<i32>, Value) {
        let began = Instant::now();
        // A report fits into the pipe, so nobody has to read meanwhile.
        while self.0.try_wait().expect("a child").is_none() {
            if began.elapsed() > LENGTH + 2 * SLACK {
                self.0.kill().expect("our own child");
                panic!("milepost load does not end");
            }
            thread::sleep(Duration::from_millis(5));
        }
        let output = self.0.wait_with_output().expect("a child");
        let report = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
            panic!("{error}: {}", String::from_utf8_lossy(&output.stderr));
        });
        (output.status.code(), report)
    }
}

/// A listener whose queue is full: whoever connects waits.
struct Full {
    address: SocketAddr,
    _listener: socket2::Socket,
    _waiting: Vec<socket2::Socket>,
}

impl Full {
    fn new() -> Self {
        let new = || {
            socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None)
                .expect("a socket")
        };
        let listener = new();
        listener.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).expect("a port");
        listener.listen(0).expect("listening");
        let address = listener.local_addr().expect("an address").as_socket().expect("of IPv4");
        let waiting = (0..4).map(|_| {
            let socket = new();
            socket.set_nonblocking(true).expect("our own socket");
            // It is under way, or it is in the queue.
            let _ = socket.connect(&address.into());
            socket
        });
        let waiting = waiting.collect();
        Self { address, _listener: listener, _waiting: waiting }
    }

    fn url(&self) -> String {
        format!("http://{}/", self.address)
    }
}
