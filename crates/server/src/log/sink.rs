//! Where lines wait to be written, and where they are written to.
//!
//! The lock of a buffer is held for the copy of a line, or for an exchange of two pointers; never while
//! something is written.

use std::fs::File;
use std::io::{self, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use milepost_engine::LogTarget;

use crate::error_log::write_to_stderr;
use crate::limits::LOG_WAITING_BYTES_MAX;

/// Tells the writer that there is something to write. Rung once for all lines of one pause.
#[derive(Debug, Default)]
pub(super) struct Bell {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    rung: bool,
    closed: bool,
}

impl Bell {
    fn ring(&self) {
        lock(&self.state).rung = true;
        self.changed.notify_one();
    }

    pub(super) fn close(&self) {
        lock(&self.state).closed = true;
        self.changed.notify_one();
    }

    /// Waits until there is something to write, and then for `pause`, so that more comes together.
    /// Returns whether the logs are closed.
    pub(super) fn wait(&self, pause: Duration) -> bool {
        let state = lock(&self.state);
        let waiting = self.changed.wait_while(state, |state| !state.rung && !state.closed);
        let state = waiting.unwrap_or_else(PoisonError::into_inner);
        let paused = self.changed.wait_timeout_while(state, pause, |state| !state.closed);
        let (mut state, _) = paused.unwrap_or_else(PoisonError::into_inner);
        state.rung = false;
        state.closed
    }
}

/// The lines of one log that wait to be written.
#[derive(Debug)]
pub(super) struct Sink {
    target: LogTarget,
    waiting: Mutex<Waiting>,
    bell: Arc<Bell>,
}

#[derive(Debug, Default)]
struct Waiting {
    lines: Vec<u8>,
    dropped: u64,
}

impl Sink {
    pub(super) fn new(target: LogTarget, bell: Arc<Bell>) -> Sink {
        Sink { target, waiting: Mutex::default(), bell }
    }

    pub(super) fn target(&self) -> &LogTarget {
        &self.target
    }

    /// Takes a line, or drops it when too much waits already.
    pub(super) fn push(&self, line: &[u8]) {
        let mut waiting = lock(&self.waiting);
        let first = waiting.lines.is_empty() && waiting.dropped == 0;
        if waiting.lines.len() + line.len() <= LOG_WAITING_BYTES_MAX {
            waiting.lines.extend_from_slice(line);
        } else {
            waiting.dropped += 1;
        }
        drop(waiting);
        if first {
            self.bell.ring();
        }
    }

    /// Gives out what waits, and the number of lines dropped; `spare` is the next buffer.
    pub(super) fn take(&self, spare: Vec<u8>) -> (Vec<u8>, u64) {
        let mut waiting = lock(&self.waiting);
        let Waiting { lines, dropped } = &mut *waiting;
        (std::mem::replace(lines, spare), std::mem::take(dropped))
    }
}

/// An open log.
#[derive(Debug)]
pub(super) enum Destination {
    File(File),
    /// stderr, whatever stands in its place.
    Errors,
    /// Shared with the logs of the next configuration, if they keep it.
    Program(Arc<Mutex<Program>>),
}

/// A program that reads a log.
#[derive(Debug)]
pub(super) struct Program {
    /// `None` only while it is being closed.
    input: Option<ChildStdin>,
    child: Child,
}

/// Starts a program whose input is ours.
pub(crate) fn start_reader(command: &str) -> io::Result<Child> {
    let mut shell = Command::new("/bin/sh");
    shell.arg("-c").arg(format!("exec {command}")).stdin(Stdio::piped()).spawn()
}

impl Program {
    fn start(command: &str) -> io::Result<Program> {
        let mut child = start_reader(command)?;
        Ok(Program { input: child.stdin.take(), child })
    }

    fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        self.input.as_mut().map_or(Err(io::ErrorKind::BrokenPipe.into()), |it| it.write_all(lines))
    }
}

impl Destination {
    /// Opens a file to append to, or starts a program.
    pub(super) fn open(target: &LogTarget) -> io::Result<Destination> {
        match target {
            LogTarget::File(path) => {
                File::options().append(true).create(true).open(path).map(Destination::File)
            }
            // Lines for the system's log are sent and not collected.
            LogTarget::Errors | LogTarget::Syslog(_) => Ok(Destination::Errors),
            LogTarget::Program(command) => {
                Program::start(command).map(Mutex::new).map(Arc::new).map(Destination::Program)
            }
        }
    }

    /// Another handle of the same file or program.
    pub(super) fn share(&self) -> io::Result<Destination> {
        match self {
            Destination::File(file) => file.try_clone().map(Destination::File),
            Destination::Errors => Ok(Destination::Errors),
            Destination::Program(program) => Ok(Destination::Program(Arc::clone(program))),
        }
    }

    /// Writes lines. A program that has ended is started again, once.
    pub(super) fn write(&mut self, target: &LogTarget, lines: &[u8]) -> io::Result<()> {
        if lines.is_empty() {
            return Ok(());
        }
        match self {
            Destination::File(file) => file.write_all(lines),
            Destination::Errors => write_to_stderr(lines),
            Destination::Program(program) => {
                let program = &mut *lock(program);
                match (program.write(lines), target) {
                    (Err(error), LogTarget::Program(command))
                        if error.kind() == io::ErrorKind::BrokenPipe =>
                    {
                        *program = Program::start(command)?;
                        program.write(lines)
                    }
                    (result, _) => result,
                }
            }
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        drop(self.input.take());
        // It may have much left to do with what it has read; only one that has ended is noticed.
        let _ = self.child.try_wait();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is in there is whole between two statements.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
