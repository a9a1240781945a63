//! A running server: started, waited for, and stopped again whatever happens.
//!
//! Each server leads a process group of its own. So Ctrl-C on the terminal reaches milepost alone,
//! which stops the servers in order; and a server that does not end on request is killed with all
//! its children. Stopping stands in [`Drop`]: an error, an interruption or a panic takes the same
//! way as the regular end.

use std::fs::{self, File};
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

/// How long a server may take until it answers: a million regular expressions take half of it.
const READY_MAX: Duration = Duration::from_secs(60);

/// How long a server may take to end when it is asked to.
const STOP_MAX: Duration = Duration::from_secs(3);

/// How often a waiting lab looks: the start of a server takes tens of milliseconds.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// How many of the last bytes of a server's messages are read.
const MESSAGE_BYTES_MAX: usize = 2_000;

/// How many of the last lines of a server's messages are shown: a milepost that does not load needs
/// five for its first diagnostic, which begins with the place.
const MESSAGE_LINES_MAX: usize = 8;

/// The file in a server's directory that takes what the server prints.
pub(crate) const OUTPUT_FILE: &str = "output.txt";

/// The file in a server's directory that Apache and nginx report errors to.
const ERROR_LOG: &str = "error.log";

/// A server that this process started.
#[derive(Debug)]
pub(crate) struct Process {
    name: String,
    child: Child,
    group: Pid,
    address: SocketAddr,
    directory: PathBuf,
    ended: Option<ExitStatus>,
}

/// A server that does not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// Somebody else listens there.
    #[error("{name} cannot be started: {address} is in use")]
    AddressInUse {
        /// The server.
        name: String,
        /// Where it should listen.
        address: SocketAddr,
    },
    /// The program could not be started.
    #[error("{name} cannot be started: {program}: {source}")]
    Spawn {
        /// The server.
        name: String,
        /// The program.
        program: String,
        /// Why not.
        source: io::Error,
    },
    /// The program ended.
    #[error("{name} ended ({status}){}", indented(.message))]
    Ended {
        /// The server.
        name: String,
        /// How it ended.
        status: ExitStatus,
        /// The end of what it printed.
        message: String,
    },
    /// The program runs and takes no connection.
    #[error("{name} takes no connection at {address} after {} s{}", READY_MAX.as_secs(), indented(.message))]
    NotReady {
        /// The server.
        name: String,
        /// Where it should listen.
        address: SocketAddr,
        /// The end of what it printed.
        message: String,
    },
    /// The lab was told to stop while it waited.
    #[error("interrupted")]
    Interrupted,
}

impl Process {
    /// Starts `command`, which is to listen at `address`, with its output in `directory`.
    ///
    /// # Errors
    ///
    /// When the address is taken or the program cannot be started.
    pub(crate) fn start(
        name: &str,
        mut command: Command,
        address: SocketAddr,
        directory: &Path,
    ) -> Result<Self, StartError> {
        let name = name.to_owned();
        if std::net::TcpListener::bind(address).is_err() {
            return Err(StartError::AddressInUse { name, address });
        }
        let program = command.get_program().display().to_string();
        let spawned = File::create(directory.join(OUTPUT_FILE)).and_then(|output| {
            let errors = output.try_clone()?;
            let command = command.stdin(Stdio::null()).stdout(output).stderr(errors);
            command.process_group(0).spawn()
        });
        let child = match spawned {
            Ok(child) => child,
            Err(source) => return Err(StartError::Spawn { name, program, source }),
        };
        let group = Pid::from_child(&child);
        Ok(Self { name, child, group, address, directory: directory.to_owned(), ended: None })
    }

    /// Waits until the server takes connections; `stopped` is asked now and then.
    ///
    /// # Errors
    ///
    /// When it ends, or takes too long, or `stopped` says so.
    pub(crate) fn wait_ready(&mut self, stopped: &dyn Fn() -> bool) -> Result<(), StartError> {
        let deadline = Instant::now() + READY_MAX;
        loop {
            self.check_alive()?;
            if stopped() {
                return Err(StartError::Interrupted);
            }
            if TcpStream::connect_timeout(&self.address, LOOK_EVERY).is_ok() {
                // Who took the connection could have been somebody else.
                return self.check_alive();
            }
            if Instant::now() > deadline {
                let message = self.message();
                let name = self.name.clone();
                return Err(StartError::NotReady { name, address: self.address, message });
            }
            thread::sleep(LOOK_EVERY);
        }
    }

    /// Checks that the server has not ended by itself.
    ///
    /// # Errors
    ///
    /// [`StartError::Ended`], with the last lines of what it printed.
    pub(crate) fn check_alive(&mut self) -> Result<(), StartError> {
        match self.poll() {
            None => Ok(()),
            Some(status) => {
                let message = self.message();
                Err(StartError::Ended { name: self.name.clone(), status, message })
            }
        }
    }

    /// Returns the process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Asks the server to end, without waiting for it.
    pub(crate) fn terminate(&mut self) {
        if self.poll().is_none() {
            // It may end just now; then there is nothing to ask.
            let _ = rustix::process::kill_process(self.group, Signal::TERM);
        }
    }

    /// Asks the server to end, waits, and kills it and its children if they do not.
    pub(crate) fn stop(&mut self) {
        self.terminate();
        let deadline = Instant::now() + STOP_MAX;
        while (self.poll().is_none() || self.group_exists()) && Instant::now() < deadline {
            thread::sleep(LOOK_EVERY);
        }
        if self.group_exists() {
            let _ = rustix::process::kill_process_group(self.group, Signal::KILL);
        }
        if self.ended.is_none() {
            // Killed, so this does not wait long.
            self.ended = self.child.wait().ok();
        }
    }

    fn poll(&mut self) -> Option<ExitStatus> {
        if self.ended.is_none() {
            self.ended = self.child.try_wait().ok().flatten();
        }
        self.ended
    }

    /// A group outlives its leader while it has members, and its number is not given away.
    fn group_exists(&self) -> bool {
        rustix::process::test_kill_process_group(self.group).is_ok()
    }

    /// Returns the last lines of what the server printed, or of its error log if it printed none.
    fn message(&self) -> String {
        let texts = [OUTPUT_FILE, ERROR_LOG].map(|file| last_lines(&self.directory.join(file)));
        texts.into_iter().find(|text| !text.is_empty()).unwrap_or_default()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Servers that are stopped together: all are asked to end before the first is waited for.
#[derive(Debug, Default)]
pub(crate) struct Fleet {
    /// The servers.
    pub processes: Vec<Process>,
}

impl Drop for Fleet {
    fn drop(&mut self) {
        self.processes.iter_mut().for_each(Process::terminate);
    }
}

fn last_lines(path: &Path) -> String {
    let bytes = fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(MESSAGE_BYTES_MAX)..]);
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(MESSAGE_LINES_MAX)..].join("\n")
}

/// Puts a server's message below ours.
fn indented(message: &str) -> String {
    if message.is_empty() {
        return " and said nothing".to_owned();
    }
    let lines: Vec<String> = message.lines().map(|line| format!("\n    {line}")).collect();
    format!(" and said:{}", lines.concat())
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;
    use crate::port;

    #[test]
    fn a_program_that_ends_is_told_with_its_message() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut process = start(&directory, "echo first; echo the reason >&2; exit 3");
        let error = process.wait_ready(&|| false).expect_err("an ended program").to_string();
        assert_eq!(error, "sh ended (exit status: 3) and said:\n    first\n    the reason");
    }

    #[test]
    fn a_silent_program_is_told_with_its_error_log() {
        let directory = tempfile::tempdir().expect("a directory");
        fs::write(directory.path().join(ERROR_LOG), "from the log\n").expect("a file");
        let mut process = start(&directory, "exit 1");
        let error = process.wait_ready(&|| false).expect_err("an ended program").to_string();
        assert_eq!(error, "sh ended (exit status: 1) and said:\n    from the log");
    }

    #[test]
    fn an_address_in_use_is_told_before_the_start() {
        let directory = tempfile::tempdir().expect("a directory");
        let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = taken.local_addr().expect("an address");
        let error = Process::start("sh", Command::new("sh"), address, directory.path())
            .expect_err("a taken address");
        assert_eq!(error.to_string(), format!("sh cannot be started: {address} is in use"));
    }

    #[test]
    fn a_missing_program_is_named() {
        let directory = tempfile::tempdir().expect("a directory");
        let address = port::free(1).expect("a port")[0];
        let command = Command::new("/nonexistent/program");
        let error = Process::start("it", command, address, directory.path()).expect_err("no file");
        assert!(
            error.to_string().starts_with("it cannot be started: /nonexistent/program: No such")
        );
    }

    #[test]
    fn waiting_can_be_interrupted() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut process = start(&directory, "exec sleep 60");
        assert!(matches!(process.wait_ready(&|| true), Err(StartError::Interrupted)));
    }

    /// A program that ignores the request to end, with a child that does too.
    #[test]
    fn a_stubborn_program_is_killed_with_its_children() {
        let directory = tempfile::tempdir().expect("a directory");
        let script = "trap '' TERM; (trap '' TERM; while :; do sleep 1; done) & echo up; wait";
        let process = start(&directory, script);
        let deadline = Instant::now() + READY_MAX;
        while last_lines(&directory.path().join(OUTPUT_FILE)) != "up" {
            assert!(Instant::now() < deadline, "the script does not start");
            thread::sleep(LOOK_EVERY);
        }
        let group = process.group;
        drop(process);
        // What is killed stays visible until the kernel has taken it away.
        let gone = || rustix::process::test_kill_process_group(group).is_err();
        while !gone() {
            assert!(Instant::now() < deadline, "something of group {group:?} is left");
            thread::sleep(LOOK_EVERY);
        }
    }

    fn start(directory: &tempfile::TempDir, script: &str) -> Process {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        let address = port::free(1).expect("a port")[0];
        Process::start("sh", command, address, directory.path()).expect("sh starts")
    }
}
