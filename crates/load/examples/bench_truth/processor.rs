//! A processor for one thread, as far as the system lets us have it.
//!
//! A thread that shares a processor waits for it, milliseconds at times: a kernel gives way at its clock tick.
//! And a processor that sleeps takes tens of microseconds to wake, on a virtual machine most of all. So the
//! thread gets a real-time priority, and beside it another with none at all spins, which keeps the processor
//! awake and stands aside for whoever comes. What else the machine does finds time there while the thread
//! sleeps.

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::{hint, io};

use rustix::thread::{CpuSet, gettid, sched_setaffinity};

/// Before all that is not real-time; among those, none matters here.
const PRIORITY: &str = "50";

/// Keeps a processor awake until it is dropped.
#[derive(Debug)]
pub(crate) struct Awake {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Awake {
    /// Nothing is kept awake where a thread cannot be made to stand aside: it would be in the way.
    pub(crate) fn keep(cpu: usize) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let is_stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            if pin(cpu).is_ok() && schedule("--idle", "0") {
                while !is_stopped.load(Relaxed) {
                    hint::spin_loop();
                }
            }
        });
        Self { stop, thread: Some(thread) }
    }
}

impl Drop for Awake {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        // It cannot panic.
        self.thread.take().map(JoinHandle::join);
    }
}

/// Has this thread run on that processor alone.
pub(crate) fn pin(cpu: usize) -> io::Result<()> {
    let mut cpus = CpuSet::new();
    cpus.set(cpu);
    Ok(sched_setaffinity(None, &cpus)?)
}

/// Has this thread run before all others; says whether it may.
pub(crate) fn go_first() -> bool {
    schedule("--fifo", PRIORITY)
}

/// The standard library has no call for it, the system a command.
fn schedule(policy: &str, priority: &str) -> bool {
    let thread = gettid().as_raw_nonzero().to_string();
    Command::new("chrt")
        .args([policy, "--pid", priority, &thread])
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}
