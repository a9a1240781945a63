//! What the server has to say while it serves: on stderr, or in the file that `ErrorLog` names.
//!
//! The file takes the place of stderr itself, as in Apache, so that whatever writes there ends up in it.
//! Only then do lines carry the time: what starts a server in the foreground has its own clock.
//!
//! Source: httpd 2.4.71 `server/log.c`, `ap_open_logs`, `do_errorlog_default`.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use chrono::Local;
use milepost_engine::LogTarget;

/// Whether stderr is a log. There is one stderr in a process, so there is one of these.
static IS_LOG: AtomicBool = AtomicBool::new(false);

/// An error log that is open, and not yet in the place of stderr.
#[derive(Debug)]
pub struct ErrorLog(OwnedFd);

impl ErrorLog {
    /// Opens a file, or starts a program and takes its input.
    ///
    /// # Errors
    /// When it cannot be opened or started.
    pub fn open(target: &LogTarget) -> io::Result<ErrorLog> {
        let opened = match target {
            LogTarget::File(path) => {
                OwnedFd::from(File::options().append(true).create(true).open(path)?)
            }
            LogTarget::Errors => rustix::io::dup(rustix::stdio::stderr())?,
            LogTarget::Program(program) => {
                let mut command = Command::new("/bin/sh");
                command.arg("-c").arg(format!("exec {program}")).stdin(Stdio::piped());
                // It ends when nobody holds the other end of its input any more, and init reaps it.
                let input = command.spawn()?.stdin.take();
                OwnedFd::from(input.ok_or(io::ErrorKind::BrokenPipe)?)
            }
        };
        Ok(ErrorLog(opened))
    }

    /// Puts the log in the place of stderr.
    ///
    /// # Errors
    /// When the descriptor cannot be copied; then everything stays as it was.
    pub fn install(self) -> io::Result<()> {
        rustix::stdio::dup2_stderr(&self.0)?;
        IS_LOG.store(true, Ordering::Relaxed);
        Ok(())
    }
}

/// What every line of the log begins with: the time, and what is given.
pub(crate) fn begin_line(module_and_level: &str) -> String {
    let time = Local::now().format("%a %b %d %H:%M:%S%.6f %Y");
    format!("[{time}] {module_and_level}[pid {}] ", std::process::id())
}

/// Tells whoever runs the server.
#[allow(clippy::print_stderr, reason = "the error log is stderr")]
pub fn report(message: &str) {
    if IS_LOG.load(Ordering::Relaxed) {
        eprintln!("{}{message}", begin_line(""));
    } else {
        eprintln!("milepost: {message}");
    }
}
