//! `--processes`: the run dealt out to several processes of milepost, and one report made of it.
//!
//! The children are this program with the same words and `--share i/N`. Each says when it is ready and
//! waits for a line on stdin, so that all begin together; then it writes one message a line to stdout.
//! When its stdin ends it stops, so no child outlives whoever started it.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, anyhow, bail};
use milepost_load::{Control, Interval, Plan, Report, Share, ShareResult};
use serde::{Deserialize, Serialize};

use super::outputs;

/// Most processes. Each has its threads and some megabytes; more than this is no use on any machine.
const PROCESSES_MAX: usize = 1_000;

/// How often the parent looks whether it is to stop, and a child for what it is to tell.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// What a child says, one a line.
#[derive(Serialize, Deserialize)]
enum Message {
    /// It waits for the word to begin.
    Ready,
    /// An interval is over; the measured part began at that many seconds since 1970.
    Interval { interval: Box<Interval>, began: f64 },
    /// It is done.
    Done(Box<ShareResult>),
}

/// Reads the number of processes.
pub(super) fn count(text: &str) -> Result<usize, String> {
    let count = text.parse().ok().filter(|count| (1..=PROCESSES_MAX).contains(count));
    count.ok_or_else(|| format!("the number of processes is from 1 to {PROCESSES_MAX}"))
}

/// Reads the share of a child.
pub(super) fn share(text: &str) -> Result<Share, String> {
    let parts = text.split_once('/').map(|(index, of)| (index.parse(), of.parse()));
    match parts {
        Some((Ok(index), Ok(of))) if index < of => Ok(Share { index, of }),
        _ => Err("a share is I/N".to_owned()),
    }
}

/// Runs the plan in `plan.share.of` processes, with `more` words for each.
///
/// # Errors
///
/// When one of them cannot be started, or ends without a result; then all others end too.
pub(super) fn run(plan: &Plan, control: &Control, more: &[String]) -> anyhow::Result<Report> {
    let of = plan.share.of;
    if of > plan.connections {
        bail!("{of} processes need as many connections, and there are {} (-c)", plan.connections);
    }
    control.expect_shares(of);
    let (said, says) = channel();
    let mut children = Vec::with_capacity(of);
    for index in 0..of {
        children.push(Running::start(Share { index, of }, more, said.clone())?);
    }
    drop(said);
    let mut results = Results { ready: 0, ended: vec![false; of], done: Vec::with_capacity(of) };
    let outcome = results.collect(&mut children, &says, control);
    // Whatever happened, nobody is left behind.
    for child in &mut children {
        child.input = None;
    }
    let faults: Vec<_> = children.into_iter().filter_map(Running::finish).collect();
    if let Some(fault) = faults.into_iter().next() {
        bail!("{fault}");
    }
    outcome?;
    ShareResult::report(plan, results.done).ok_or_else(|| anyhow!("no process had a result"))
}

/// Does one share and says what came of it.
///
/// # Errors
///
/// As a run of its own.
pub(super) fn run_share(plan: &Plan, control: Control) -> anyhow::Result<()> {
    let control = Arc::new(control.watching(outputs::EVERY));
    say(&Message::Ready)?;
    let mut line = String::new();
    io::stdin().read_line(&mut line).context("cannot read the word to begin")?;
    if line.is_empty() {
        // Stopped before it began, which has a result too.
        control.stop();
    }
    thread::spawn({
        let control = Arc::clone(&control);
        move || {
            // Nothing more is said; the end is what matters.
            let _ = io::stdin().read_to_end(&mut Vec::new());
            control.stop();
        }
    });
    let (done, is_done) = channel::<()>();
    let result = thread::scope(|scope| {
        let watched = &control;
        scope.spawn(move || {
            while is_done.recv_timeout(LOOK_EVERY) == Err(RecvTimeoutError::Timeout) {
                tell(watched);
            }
        });
        let result = milepost_load::run_share(plan, &control);
        drop(done);
        result
    })?;
    tell(&control);
    say(&Message::Done(Box::new(result)))
}

/// Says which intervals are over. Who does not listen any more closes stdin too.
fn tell(control: &Control) {
    let began = control.measuring_since().unwrap_or_else(SystemTime::now);
    let began = began.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    for interval in control.take_intervals() {
        let _ = say(&Message::Interval { interval: Box::new(interval), began });
    }
}

fn say(message: &Message) -> anyhow::Result<()> {
    let mut line = serde_json::to_string(message).context("a message is no JSON")?;
    line.push('\n');
    let mut out = io::stdout().lock();
    out.write_all(line.as_bytes()).and_then(|()| out.flush()).context("nobody listens")
}

/// What is said, and by which child; `None` when it says nothing more.
type Said = (usize, Option<Message>);

/// A child that has not ended.
struct Running {
    share: Share,
    child: Child,
    /// Closed, it ends the child.
    input: Option<ChildStdin>,
    complaints: Arc<Mutex<String>>,
    readers: Vec<thread::JoinHandle<()>>,
}

impl Running {
    fn start(share: Share, more: &[String], said: Sender<Said>) -> anyhow::Result<Self> {
        let program = std::env::current_exe().context("cannot find this program")?;
        let mut child = Command::new(program)
            .args(std::env::args_os().skip(1))
            .args(["--share", &format!("{}/{}", share.index, share.of)])
            .args(more)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Ctrl-C is for the one that they listen to: it may come before they can take it.
            .process_group(0)
            .spawn()
            .context("cannot start a process")?;
        let complaints = Arc::new(Mutex::new(String::new()));
        let mut readers = Vec::new();
        if let Some(out) = child.stdout.take() {
            readers.push(thread::spawn(move || {
                for line in BufReader::new(out).lines().map_while(Result::ok) {
                    // What is no message is not worth more than nothing.
                    let Ok(message) = serde_json::from_str(&line) else { break };
                    if said.send((share.index, Some(message))).is_err() {
                        return;
                    }
                }
                let _ = said.send((share.index, None));
            }));
        }
        if let Some(mut err) = child.stderr.take() {
            let complaints = Arc::clone(&complaints);
            readers.push(thread::spawn(move || {
                let mut text = Vec::new();
                let _ = err.read_to_end(&mut text);
                *complaints.lock().unwrap_or_else(PoisonError::into_inner) =
                    String::from_utf8_lossy(&text).trim().to_owned();
            }));
        }
        let input = child.stdin.take();
        Ok(Self { share, child, input, complaints, readers })
    }

    /// Waits for its end. Returns what it complained about if it failed.
    fn finish(mut self) -> Option<String> {
        let status = self.child.wait();
        for reader in self.readers {
            // A reader has nothing to say about why it ended.
            let _ = reader.join();
        }
        if status.is_ok_and(|status| status.success()) {
            return None;
        }
        let complaints = self.complaints.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let number = self.share.index + 1;
        Some(match complaints.strip_prefix("milepost: ") {
            Some(complaint) => complaint.to_owned(),
            None => format!("process {number} of {} failed: {complaints}", self.share.of),
        })
    }
}

/// What the children have said.
struct Results {
    ready: usize,
    /// By share.
    ended: Vec<bool>,
    done: Vec<ShareResult>,
}

impl Results {
    /// Listens until all are done, or one has failed.
    fn collect(
        &mut self,
        children: &mut [Running],
        says: &Receiver<Said>,
        control: &Control,
    ) -> anyhow::Result<()> {
        while self.done.len() < children.len() {
            if control.is_stopped() {
                for child in &mut *children {
                    child.input = None;
                }
            }
            match says.recv_timeout(LOOK_EVERY) {
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => bail!("a process ended without a result"),
                Ok((_, Some(Message::Ready))) => {
                    self.ready += 1;
                    if self.ready == children.len() {
                        begin(children);
                    }
                }
                Ok((share, Some(Message::Interval { interval, began }))) => {
                    let began = UNIX_EPOCH + Duration::try_from_secs_f64(began).unwrap_or_default();
                    control.add_interval(share, &interval, began);
                }
                Ok((share, Some(Message::Done(result)))) => {
                    control.end_share(share);
                    self.ended[share] = true;
                    self.done.push(*result);
                }
                Ok((share, None)) => {
                    // After its result that is as it should be.
                    if !self.ended[share] {
                        bail!("process {} of {} ended without a result", share + 1, children.len());
                    }
                }
            }
        }
        Ok(())
    }
}

/// Lets all begin.
fn begin(children: &mut [Running]) {
    for child in children {
        if let Some(input) = &mut child.input {
            // One that has gone is found by its missing result.
            let _ = input.write_all(b"begin\n").and_then(|()| input.flush());
        }
    }
}
