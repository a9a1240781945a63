//! Starts milepost and other programs, talks to them, and sees to it that all of them have ended.
//!
//! Every program gets a session of its own. Whatever it starts stays in that session, even when its
//! parent dies, so "nothing is left running" can be asked of the kernel afterwards.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use milepost_testkit::client::{Client, Response};
use serde_json::Value;

/// The binary under test.
pub(crate) const MILEPOST: &str = env!("CARGO_BIN_EXE_milepost");

/// Far longer than anything in here takes, for a machine under load.
const PATIENCE: Duration = Duration::from_secs(120);

/// Between two looks at a process that should end.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// What a killed process may need until the kernel has taken it away.
const DYING_MAX: Duration = Duration::from_secs(1);

/// How a program ended and what it said.
#[derive(Debug)]
pub(crate) struct Finished {
    /// The exit status, unless a signal ended it.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs milepost to its end. Nothing that it started may outlive it.
#[track_caller]
pub(crate) fn milepost(arguments: &[&str]) -> Finished {
    run(MILEPOST, arguments, &[])
}

/// Runs a program to its end, with changes to its environment. Nothing that it started may outlive it.
#[track_caller]
pub(crate) fn run(program: &str, arguments: &[&str], environment: &[(&str, &str)]) -> Finished {
    let mut command = in_session(program, arguments);
    let mut child = command
        .envs(environment.iter().copied())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("setsid: {error}"));
    let session = child.id();
    let stdout = collect(child.stdout.take().expect("a pipe"));
    let stderr = collect(child.stderr.take().expect("a pipe"));
    let code = wait(&mut child, program);
    assert_empty(session, program, arguments);
    let text = |bytes: JoinHandle<Vec<u8>>| {
        String::from_utf8_lossy(&bytes.join().expect("a reader")).into_owned()
    };
    // 127 is what setsid ends with when there is no such program.
    let finished = Finished { code, stdout: text(stdout), stderr: text(stderr) };
    assert!(code != Some(127), "this test needs {program}; `make test` installs it: {finished:?}");
    finished
}

/// Runs a small experiment into `directory` and returns its `result.json`.
#[track_caller]
pub(crate) fn lab(directory: &Path, more: &[&str]) -> Value {
    let out = directory.to_str().expect("a path in UTF-8");
    let small =
        ["lab", "run", "redirect-methods", "--quick", "--json", "--seed", "7", "--out", out];
    let finished = milepost(&[&small, more].concat());
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    serde_json::from_str(&finished.stdout).expect("JSON")
}

/// A running `milepost serve`; killed when dropped without [`Server::stop`].
pub(crate) struct Server {
    child: Child,
    /// The first address that it serves on.
    pub(crate) address: SocketAddr,
}

impl Server {
    /// Starts it and waits until it says that it serves.
    #[track_caller]
    pub(crate) fn start(arguments: &[&str]) -> Server {
        let mut command = in_session(MILEPOST, &[&["serve"], arguments].concat());
        let mut child = command.stdout(Stdio::null()).spawn().expect("setsid runs");
        let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
        let mut said = String::new();
        let address = lines.by_ref().map_while(Result::ok).find_map(|line| {
            said.push_str(&line);
            said.push('\n');
            let (_, addresses) =
                line.strip_prefix("milepost: serving ").and_then(|rest| rest.split_once(" on "))?;
            // The metrics may follow, with an address of their own.
            addresses.split([',', ';']).next()?.parse().ok()
        });
        let Some(address) = address else {
            panic!(
                "milepost serve {arguments:?} ended with {:?}: {said}",
                wait(&mut child, MILEPOST)
            )
        };
        // Nobody reads what comes later, and the server must not wait for a reader.
        thread::spawn(move || lines.for_each(drop));
        Server { child, address }
    }

    /// Writes `text` into `directory` and serves it.
    #[track_caller]
    pub(crate) fn start_with(directory: &Path, text: &str) -> Server {
        let file = write(directory, "httpd.conf", text);
        Server::start(&["-f", &file])
    }

    /// Asks it to load its configuration anew, which it will do soon.
    #[track_caller]
    pub(crate) fn reload(&self) {
        self.signal("-HUP");
    }

    /// Sends it a signal.
    #[track_caller]
    pub(crate) fn signal(&self, signal: &str) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args([signal, &id]).status().expect("kill runs");
        assert!(sent.success(), "milepost serve had ended by itself");
    }

    /// Waits until it has ended by itself, which must leave nothing behind.
    #[track_caller]
    pub(crate) fn ended(mut self) {
        assert_eq!(wait(&mut self.child, MILEPOST), Some(0));
        assert_empty(self.child.id(), MILEPOST, &["serve"]);
    }

    /// Asks it to end, which it must, with nothing left behind.
    #[track_caller]
    pub(crate) fn stop(self) {
        self.signal("-TERM");
        self.ended();
    }

    /// Returns `http://ADDRESS` and `path`.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Asks for `target` on a connection that may be used again.
#[track_caller]
pub(crate) fn ask(client: &mut Client, target: &str) -> Response {
    let request = format!("GET {target} HTTP/1.1\r\nHost: www.example.org\r\n\r\n");
    let response = client.exchange(request.as_bytes(), false);
    response.unwrap_or_else(|error| panic!("{target}: {error}"))
}

/// Writes a file and returns its path.
#[track_caller]
pub(crate) fn write(directory: &Path, name: &str, text: &str) -> String {
    let file: PathBuf = directory.join(name);
    fs::write(&file, text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    file.to_str().expect("a path in UTF-8").to_owned()
}

/// `setsid` becomes the program, so that the session has the process id of the program.
fn in_session(program: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new("setsid");
    command.arg(program).args(arguments).stdin(Stdio::null()).stderr(Stdio::piped());
    command
}

fn collect(mut from: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // What came before an error is what there is.
        let _ = from.read_to_end(&mut bytes);
        bytes
    })
}

#[track_caller]
fn wait(child: &mut Child, program: &str) -> Option<i32> {
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("a child") {
            return status.code();
        }
        if began.elapsed() > PATIENCE {
            child.kill().expect("our own child");
            panic!("{program} does not end");
        }
        thread::sleep(LOOK_EVERY);
    }
}

/// Fails unless every process of the session is gone; what was just killed may take a moment.
#[track_caller]
fn assert_empty(session: u32, program: &str, arguments: &[&str]) {
    let began = Instant::now();
    while began.elapsed() < DYING_MAX && !processes(session).is_empty() {
        thread::sleep(LOOK_EVERY);
    }
    let left = processes(session);
    assert!(left.is_empty(), "{program} {arguments:?} ended and left {left:?}");
}

/// Returns the command names of all processes in a session that are not dead.
fn processes(session: u32) -> Vec<String> {
    let entries = fs::read_dir("/proc").expect("/proc").flatten();
    let stats = entries.filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok());
    // proc_pid_stat(5): pid (comm) state ppid pgrp session. The name may hold anything.
    let members = stats.filter_map(|stat| {
        let (start, rest) = stat.rsplit_once(") ")?;
        let mut fields = rest.split(' ');
        let state = fields.next()?;
        let is_member = fields.nth(2)?.parse() == Ok(session) && !matches!(state, "Z" | "X");
        is_member.then(|| start.to_owned())
    });
    members.collect()
}

#[test]
#[should_panic(expected = "ended and left")]
fn a_process_that_is_left_is_noticed() {
    run("sh", &["-c", "sleep 3 & exit 0"], &[]);
}
