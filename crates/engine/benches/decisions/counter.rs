//! Counts the instructions of a call, exactly: a second process steps this one through it, one by one.
//!
//! Counters of the processor are often not there (virtual machines, containers), and an emulator would take
//! minutes to load a million rules. Between its marks the traced process runs at full speed, so what is
//! timed in it is not disturbed.
//!
//! Source: ptrace(2), `PTRACE_SINGLESTEP`.

use std::io::{BufRead, Write, stdin};
use std::process::{Command, Stdio};

use nix::sys::ptrace;
use nix::sys::signal::{Signal, raise};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;

/// Set in the environment of the process that is counted.
const COUNTED: &str = "MILEPOST_BENCH_COUNTED";

/// The marks between which instructions are counted.
const BEGIN: Signal = Signal::SIGUSR1;
const END: Signal = Signal::SIGUSR2;

/// Steps for one call at most: more, and something is not what it should be.
const STEPS_MAX: u64 = 1_000_000;

/// Counts the instructions of calls in this process.
pub(crate) struct Counter {
    /// What an empty call costs; `None` where there is nobody who counts.
    overhead: Option<u64>,
}

/// Runs `work` in a process that is counted, with the arguments of this one, and ends with its status.
pub(crate) fn run(work: impl FnOnce(&Counter)) {
    if std::env::var_os(COUNTED).is_none() {
        std::process::exit(count_child());
    }
    let mut counter = Counter { overhead: None };
    if ptrace::traceme().is_ok() {
        counter.overhead = Some(0);
        counter.overhead = counter.count(|| {});
    }
    work(&counter);
}

impl Counter {
    /// The instructions of one call; `None`: nobody can count them here.
    pub(crate) fn count(&self, call: impl FnOnce()) -> Option<u64> {
        let overhead = self.overhead?;
        raise(BEGIN).expect("a signal to itself");
        call();
        raise(END).expect("a signal to itself");
        let mut line = String::new();
        stdin().lock().read_line(&mut line).expect("the count");
        line.trim().parse::<u64>().ok().map(|steps| steps.saturating_sub(overhead))
    }
}

/// Starts the process that does the work, and counts where it asks for it. Returns its exit status.
#[allow(clippy::zombie_processes, reason = "it is waited for by its number")]
fn count_child() -> i32 {
    let program = std::env::current_exe().expect("the bench itself");
    let mut child = Command::new(program)
        .args(std::env::args_os().skip(1))
        .env(COUNTED, "1")
        .stdin(Stdio::piped())
        .spawn()
        .expect("the bench starts itself");
    let mut counts = child.stdin.take().expect("a pipe to it");
    let pid = Pid::from_raw(child.id() as i32);
    loop {
        match waitpid(pid, None).expect("the bench that was started") {
            WaitStatus::Exited(_, status) => return status,
            WaitStatus::Stopped(_, BEGIN) => {
                let count = step_to_end(pid);
                // Whoever does not read it has ended, and that is seen above.
                let _ = writeln!(counts, "{}", count.map_or("-".to_owned(), |n| n.to_string()));
                let _ = ptrace::cont(pid, None);
            }
            WaitStatus::Stopped(_, signal) => {
                let _ = ptrace::cont(pid, Some(signal));
            }
            WaitStatus::Signaled(..) => return 1,
            _ => {}
        }
    }
}

/// Steps on to the second mark, and says how many instructions that took.
fn step_to_end(pid: Pid) -> Option<u64> {
    for steps in 0..STEPS_MAX {
        ptrace::step(pid, None).ok()?;
        match waitpid(pid, None).ok()? {
            WaitStatus::Stopped(_, Signal::SIGTRAP) => {}
            WaitStatus::Stopped(_, END) => return Some(steps),
            _ => return None,
        }
    }
    None
}
