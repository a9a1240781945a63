//! What the server has to say while it serves: on stderr, or in the file that `ErrorLog` names.
//!
//! The file takes the place of stderr itself, as in Apache, so that whatever writes there ends up in it.
//! Only then do lines carry the time: what starts a server in the foreground has its own clock.
//!
//! Source: httpd 2.4.71 `server/log.c`, `ap_open_logs`, `do_errorlog_default`.

use std::fs::File;
use std::io;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use chrono::Local;
use milepost_engine::LogTarget;

/// Whether stderr is a log. There is one stderr in a process, so there is one of these.
static IS_LOG: AtomicBool = AtomicBool::new(false);

/// Puts a file or the input of a program in the place of stderr. Called again, it finds a rotated file
/// anew.
///
/// # Errors
/// When it cannot be opened; then everything stays as it was.
pub fn send_errors_to(target: &LogTarget) -> io::Result<()> {
    match target {
        LogTarget::File(path) => {
            let file = File::options().append(true).create(true).open(path)?;
            rustix::stdio::dup2_stderr(&file)?;
        }
        LogTarget::Program(program) => {
            let mut command = Command::new("/bin/sh");
            command.arg("-c").arg(format!("exec {program}")).stdin(Stdio::piped());
            // It ends when nobody holds the other end of its input any more, and then init reaps it.
            if let Some(input) = command.spawn()?.stdin.take() {
                rustix::stdio::dup2_stderr(&input)?;
            }
        }
    }
    IS_LOG.store(true, Ordering::Relaxed);
    Ok(())
}

/// Tells whoever runs the server.
#[allow(clippy::print_stderr, reason = "the error log is stderr")]
pub fn report(message: &str) {
    if IS_LOG.load(Ordering::Relaxed) {
        let time = Local::now().format("%a %b %d %H:%M:%S%.6f %Y");
        eprintln!("[{time}] [pid {}] {message}", std::process::id());
    } else {
        eprintln!("milepost: {message}");
    }
}
