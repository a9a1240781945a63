//! What the server has to say while it serves: on stderr, in the file that `ErrorLog` names, or in syslog.
//! What it has to say about requests goes to the error logs of their virtual hosts ([`crate::log`]).
//!
//! A file takes the place of stderr itself, as in Apache, so that whatever writes there ends up in it.
//! Only then do lines carry the time: what starts a server in the foreground has its own clock.
//!
//! Source: httpd 2.4.71 `server/log.c`, `ap_open_logs`, `log_error_core`.

mod line;
mod syslog;

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::sync::{Arc, PoisonError, RwLock};

use milepost_engine::{Diagnostic, ErrorFormat, ErrorLogSettings, LogSettings, LogTarget};

pub(crate) use line::{About, Message, Severity, Subject, write_line};
pub(crate) use syslog::Syslog;

/// The error log, if there is one; before, messages go to stderr as they are. There is one stderr in a
/// process, so there is one of these.
static INSTALLED: RwLock<Option<Installed>> = RwLock::new(None);

struct Installed {
    format: Arc<ErrorFormat>,
    /// `None`: stderr is the log.
    syslog: Option<Syslog>,
}

/// An error log that is open, and not yet in the place of stderr.
#[derive(Debug)]
pub struct ErrorLog {
    output: Output,
    format: Arc<ErrorFormat>,
}

#[derive(Debug)]
enum Output {
    Descriptor(OwnedFd),
    Syslog(Syslog),
}

impl ErrorLog {
    /// Opens the file or syslog that the settings name, or starts the program and takes its input; `None`
    /// if they name nothing.
    ///
    /// # Errors
    /// When it cannot be opened or started.
    pub fn open(settings: &LogSettings) -> io::Result<Option<ErrorLog>> {
        let ErrorLogSettings { target, format, .. } = settings.error_log(0);
        let Some(target) = target else { return Ok(None) };
        let output = match target {
            LogTarget::File(path) => {
                Output::Descriptor(File::options().append(true).create(true).open(path)?.into())
            }
            LogTarget::Errors => Output::Descriptor(rustix::io::dup(rustix::stdio::stderr())?),
            LogTarget::Program(program) => {
                let mut command = Command::new("/bin/sh");
                command.arg("-c").arg(format!("exec {program}")).stdin(Stdio::piped());
                // It ends when nobody holds the other end of its input any more, and init reaps it.
                let input = command.spawn()?.stdin.take();
                Output::Descriptor(input.ok_or(io::ErrorKind::BrokenPipe)?.into())
            }
            LogTarget::Syslog(syslog) => Output::Syslog(Syslog::new(&syslog)?),
        };
        Ok(Some(ErrorLog { output, format }))
    }

    /// Puts the log in the place of stderr. Syslog leaves stderr where it is.
    ///
    /// # Errors
    /// When the descriptor cannot be copied; then everything stays as it was.
    pub fn install(self) -> io::Result<()> {
        let syslog = match self.output {
            Output::Descriptor(descriptor) => {
                rustix::stdio::dup2_stderr(&descriptor)?;
                None
            }
            Output::Syslog(syslog) => Some(syslog),
        };
        let mut installed = INSTALLED.write().unwrap_or_else(PoisonError::into_inner);
        *installed = Some(Installed { format: self.format, syslog });
        Ok(())
    }
}

/// Writes whole lines to the error log.
fn write_lines(lines: &[u8], severity: Severity) {
    let installed = INSTALLED.read().unwrap_or_else(PoisonError::into_inner);
    match installed.as_ref().and_then(|installed| installed.syslog.as_ref()) {
        Some(syslog) => syslog.send_or_say(lines, severity),
        // Nobody is left to hear that it fails.
        None => drop(io::stderr().write_all(lines)),
    }
}

/// Tells whoever runs the server.
pub fn report(message: &str) {
    report_at(Severity::NOTICE, message);
}

/// Tells whoever runs the server that something has failed.
pub fn report_error(message: &str) {
    report_at(Severity::ERROR, message);
}

fn report_at(severity: Severity, message: &str) {
    let mut line = Vec::new();
    let installed = INSTALLED.read().unwrap_or_else(PoisonError::into_inner);
    match &*installed {
        None => {
            line.extend(b"milepost: ");
            line.extend(message.as_bytes());
            line.push(b'\n');
        }
        Some(Installed { format, .. }) => {
            let message = Message { severity, ..Message::of_server(message) };
            write_line(format, &message, Subject::Server, &mut line);
        }
    }
    drop(installed);
    write_lines(&line, severity);
}

/// Tells what is wrong with a configuration: for people with its lines, in the error log in one line with
/// the time.
pub fn report_diagnostic(diagnostic: &Diagnostic) {
    let mut text = diagnostic.to_string();
    let severity = match diagnostic.severity {
        milepost_engine::Severity::Note => Severity::NOTICE,
        milepost_engine::Severity::Warning => Severity::WARN,
        milepost_engine::Severity::Error => Severity::ERROR,
    };
    let mut line = Vec::new();
    let installed = INSTALLED.read().unwrap_or_else(PoisonError::into_inner);
    match &*installed {
        None => {
            text.push('\n');
            line.extend(text.as_bytes());
        }
        Some(Installed { format, .. }) => {
            let mut said = text.lines().next().unwrap_or_default().to_owned();
            if let Some(hint) = &diagnostic.hint {
                said += &format!("; {hint}");
            }
            let place = Some((&*diagnostic.file, diagnostic.line));
            let text = said.as_bytes();
            let message = Message { module: "core", severity, text, place, error: None };
            write_line(format, &message, Subject::Server, &mut line);
        }
    }
    drop(installed);
    write_lines(&line, severity);
}
