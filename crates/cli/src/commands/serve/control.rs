//! `-k`: acts on a server by its `PidFile`, as `httpd -k` does.
//!
//! The number in the file may be that of another process by now, so it is looked at before it gets a
//! signal: it must be alive, and have the name of this program.
//!
//! Source: httpd 2.4.71 `os/unix/unixd.c`, `ap_signal_server`.

use std::fs;
use std::io::ErrorKind;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;
use milepost_engine::Settings;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use super::say;

/// How long `-k stop` waits for the end of the server: longer than the server waits for its answers.
const STOP_WAIT: Duration = Duration::from_secs(20);

/// How often to look whether something has happened.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// What to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Action {
    /// Start in the background, and return when the server answers
    Start,
    /// Stop, and return when the server has ended; answers under way have 10 s
    Stop,
    /// Load the configuration anew; start if nothing runs
    Restart,
    /// The same as restart: no request fails in either
    Graceful,
    /// Stop when all answers under way are finished
    GracefulStop,
}

/// What is left to do for the caller.
pub(super) enum Next {
    /// Nothing.
    Done(ExitCode),
    /// To start a server, in the background.
    Start,
}

/// Does what can be done with signals. The configuration has loaded.
pub(super) fn act(action: Action, settings: &Settings) -> anyhow::Result<Next> {
    let path = settings
        .pid_file
        .as_deref()
        .context("-k needs a PidFile directive: without one nobody knows which process is meant")?;
    let running = running(path)?;
    let signal = match (action, running) {
        (Action::Start, None) => return Ok(Next::Start),
        (Action::Restart | Action::Graceful, None) => {
            say("milepost: not running, starting");
            return Ok(Next::Start);
        }
        (Action::Start, Some(pid)) => {
            say(&format!("milepost: already running as process {}", pid.as_raw_pid()));
            return Ok(Next::Done(ExitCode::SUCCESS));
        }
        (Action::Stop | Action::GracefulStop, None) => {
            say("milepost: not running");
            return Ok(Next::Done(ExitCode::SUCCESS));
        }
        (Action::Stop, Some(_)) => Signal::TERM,
        (Action::Restart, Some(_)) => Signal::HUP,
        (Action::Graceful, Some(_)) => Signal::USR1,
        (Action::GracefulStop, Some(_)) => Signal::WINCH,
    };
    let pid = running.context("nothing runs")?;
    kill_process(pid, signal)
        .with_context(|| format!("cannot signal process {}", pid.as_raw_pid()))?;
    if action == Action::Stop {
        wait_for_end(pid)?;
    }
    Ok(Next::Done(ExitCode::SUCCESS))
}

/// Makes sure that the file is not that of another server: two would signal and remove each other's.
pub(super) fn ensure_alone(path: &Path) -> anyhow::Result<()> {
    let own = Pid::from_raw(i32::try_from(std::process::id())?);
    // After a crash of the machine or in a container the number may have become our own.
    match running(path)?.filter(|pid| Some(*pid) != own) {
        None => Ok(()),
        Some(pid) => anyhow::bail!(
            "already running as process {}, says {}: a second server needs a PidFile of its own",
            pid.as_raw_pid(),
            path.display()
        ),
    }
}

/// The process of the file, if it runs and is one of ours.
fn running(path: &Path) -> anyhow::Result<Option<Pid>> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            return Err(error).with_context(|| format!("cannot read {}", path.display()));
        }
    };
    let number = text.trim().parse().ok().filter(|&number: &i32| number > 0);
    let pid = number
        .and_then(Pid::from_raw)
        .with_context(|| format!("{} does not hold the number of a process", path.display()))?;
    Ok((is_alive(pid) && name(pid.as_raw_pid()) == name(std::process::id())).then_some(pid))
}

fn is_alive(pid: Pid) -> bool {
    // One that may not be signalled is there too.
    test_kill_process(pid) != Err(rustix::io::Errno::SRCH) && !is_zombie(pid)
}

/// Whether it has ended and nobody has asked how yet.
fn is_zombie(pid: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_pid()));
    // The name stands in parentheses, and may hold any of them.
    stat.is_ok_and(|stat| stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('Z')))
}

/// What a process calls itself.
fn name(pid: impl std::fmt::Display) -> Option<String> {
    fs::read_to_string(format!("/proc/{pid}/comm")).ok()
}

fn wait_for_end(pid: Pid) -> anyhow::Result<()> {
    let end = Instant::now() + STOP_WAIT;
    while is_alive(pid) {
        anyhow::ensure!(
            Instant::now() < end,
            "process {} has not ended within {} s",
            pid.as_raw_pid(),
            STOP_WAIT.as_secs()
        );
        std::thread::sleep(LOOK_INTERVAL);
    }
    Ok(())
}

/// Starts this program anew in the background with the same arguments, and waits until it serves.
pub(super) fn start() -> anyhow::Result<ExitCode> {
    let name = format!("milepost-start-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name)?;
    let socket = UnixDatagram::bind_addr(&address).context("cannot hear of the start")?;
    socket.set_read_timeout(Some(LOOK_INTERVAL))?;
    let program: PathBuf = std::env::current_exe().context("cannot find this program")?;
    let mut arguments = std::env::args_os().skip(1);
    let mut child = Command::new(program)
        .args(arguments.next())
        .arg("--foreground")
        .args(arguments)
        .env("NOTIFY_SOCKET", format!("@{name}"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        // What a terminal tells its foreground is not meant for a server.
        .process_group(0)
        .spawn()
        .context("cannot start")?;
    let mut message = [0; 1024];
    loop {
        if let Ok(count) = socket.recv(&mut message)
            && message[..count].split(|&byte| byte == b'\n').any(|line| line == b"READY=1")
        {
            return Ok(ExitCode::SUCCESS);
        }
        // It has said why.
        if child.try_wait()?.is_some() {
            return Ok(ExitCode::from(crate::EXIT_FAILURE));
        }
    }
}
