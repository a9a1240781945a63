//! A server that runs, and what asks it.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use tempfile::TempDir;

pub(crate) const MILEPOST: &str = env!("CARGO_BIN_EXE_milepost");

/// Long enough for anything that should happen at once, on a machine that is busy.
pub(crate) const SOON: Duration = Duration::from_secs(10);

/// A process that is killed when a test ends.
pub(crate) struct Killed(pub(crate) Child);

impl Drop for Killed {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A server in the background, that is killed when a test fails.
pub(crate) struct Background(pub(crate) PathBuf);

impl Drop for Background {
    fn drop(&mut self) {
        if let Ok(pid) = fs::read_to_string(&self.0) {
            let _ = Command::new("kill").args(["-s", "KILL", pid.trim()]).status();
        }
    }
}

/// Waits until something is true.
#[track_caller]
pub(crate) fn until(is_true: impl Fn() -> bool) {
    let end = Instant::now() + SOON;
    while !is_true() {
        assert!(Instant::now() < end, "it does not happen");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A running `milepost serve`; killed when dropped.
pub(crate) struct Server {
    pub(crate) child: Child,
    pub(crate) announcement: String,
    /// What it says after the announcement.
    pub(crate) lines: mpsc::Receiver<String>,
}

impl Server {
    /// Starts it and waits until it says that it serves.
    pub(crate) fn start(arguments: &[&str]) -> Server {
        let mut child = serve(arguments);
        let mut lines = BufReader::new(child.stderr.take().expect("stderr")).lines();
        let announcement = lines
            .by_ref()
            .map(|line| line.expect("text"))
            .find(|line| line.starts_with("milepost: "))
            .unwrap_or_default();
        let (sender, receiver) = mpsc::channel();
        // It must not wait for a test to read what it says.
        std::thread::spawn(move || {
            lines.map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        let server = Server { child, announcement, lines: receiver };
        assert!(server.announcement.starts_with("milepost: serving "), "{}", server.announcement);
        server
    }

    /// The next line that it says.
    pub(crate) fn next_line(&self) -> String {
        self.lines.recv_timeout(SOON).expect("a line")
    }

    /// What it says, up to a line that begins so.
    pub(crate) fn lines_until(&self, beginning: &str) -> String {
        let mut text = self.next_line();
        while !text.lines().last().is_some_and(|line| line.starts_with(beginning)) {
            text = text + "\n" + &self.next_line();
        }
        text
    }

    pub(crate) fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let status = Command::new("kill").args(["-s", name, &id]).status().expect("kill");
        assert!(status.success());
    }

    pub(crate) fn end(&mut self) -> ExitStatus {
        wait(&mut self.child)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs it when it must end by itself; returns how, and what it said.
pub(crate) fn fails(arguments: &[&str]) -> (ExitStatus, String) {
    let mut child = serve(arguments);
    let status = wait(&mut child);
    let mut text = String::new();
    child.stderr.take().expect("stderr").read_to_string(&mut text).expect("text");
    (status, text)
}

pub(crate) fn serve(arguments: &[&str]) -> Child {
    Command::new(MILEPOST)
        .arg("serve")
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("milepost starts")
}

#[track_caller]
pub(crate) fn wait(child: &mut Child) -> ExitStatus {
    let end = Instant::now() + SOON;
    loop {
        if let Some(status) = child.try_wait().expect("a child") {
            return status;
        }
        if Instant::now() > end {
            child.kill().expect("killed");
            panic!("it does not end");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Whether the owner of this process is root.
pub(crate) fn is_root() -> bool {
    fs::metadata("/proc/self").expect("a process").uid() == 0
}

pub(crate) fn ask(address: SocketAddr, target: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(SOON)).expect("a timeout");
    stream.write_all(format!("GET {target} HTTP/1.0\r\n\r\n").as_bytes()).expect("sent");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("an answer");
    text
}

/// A loopback address whose port nobody uses at the moment.
pub(crate) fn free_address() -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    listener.local_addr().expect("an address")
}

pub(crate) fn directory() -> TempDir {
    tempfile::tempdir().expect("a directory")
}

pub(crate) fn path(directory: &TempDir) -> &str {
    directory.path().to_str().expect("UTF-8")
}

pub(crate) fn write(directory: &TempDir, name: &str, text: &str) {
    fs::write(Path::join(directory.path(), name), text).expect("written");
}
