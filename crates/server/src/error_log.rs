//! What the server has to say while it serves: on stderr, in the file that `ErrorLog` names, or in syslog.
//! What it has to say about requests goes to the error logs of their virtual hosts ([`crate::log`]).
//!
//! A file takes the place of stderr itself, as in Apache, so that whatever writes there ends up in it.
//! Only then do lines carry the time: what starts a server in the foreground has its own clock.
//!
//! A program is started with the rights that the server has then. Once `User` has taken them away, a reload
//! keeps the program that runs, as it could not be started again with them.
//!
//! Source: httpd 2.4.71 `server/log.c`, `ap_open_logs`, `log_error_core`.

mod line;
mod seldom;
mod syslog;

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::sync::{Arc, PoisonError, RwLock};

use milepost_engine::{Diagnostic, ErrorFormat, ErrorLogSettings, LogSettings, LogTarget};
use rustix::process::{Uid, geteuid};

pub(crate) use line::{About, Message, Severity, Subject, write_line};
pub(crate) use seldom::Seldom;
pub(crate) use syslog::Syslog;

use crate::log::start_reader;

/// The error log, if there is one; before, messages go to stderr as they are. There is one stderr in a
/// process, so there is one of these.
static INSTALLED: RwLock<Option<Installed>> = RwLock::new(None);

struct Installed {
    format: Arc<ErrorFormat>,
    /// `None`: stderr is the log.
    syslog: Option<Syslog>,
    program: Option<Program>,
}

/// The program that reads the log.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Program {
    command: String,
    /// Whose rights it has.
    owner: Uid,
}

/// An error log that is open, and not yet in the place of stderr.
#[derive(Debug)]
pub struct ErrorLog {
    output: Output,
    program: Option<Program>,
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
        let mut program = None;
        let output = match target {
            LogTarget::File(path) => {
                Output::Descriptor(File::options().append(true).create(true).open(path)?.into())
            }
            LogTarget::Errors => Output::Descriptor(rustix::io::dup(rustix::stdio::stderr())?),
            LogTarget::Program(command) => {
                let kept = running(&command).filter(|running| running.owner != geteuid());
                let input = match &kept {
                    Some(_) => rustix::io::dup(rustix::stdio::stderr())?,
                    None => start(&command)?,
                };
                program = kept.or_else(|| Some(Program { command, owner: geteuid() }));
                Output::Descriptor(input)
            }
            LogTarget::Syslog(syslog) => Output::Syslog(Syslog::new(&syslog)?),
        };
        Ok(Some(ErrorLog { output, program, format }))
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
        *installed = Some(Installed { format: self.format, syslog, program: self.program });
        Ok(())
    }
}

/// The program that reads the log, if it has been started by this command.
fn running(command: &str) -> Option<Program> {
    let installed = INSTALLED.read().unwrap_or_else(PoisonError::into_inner);
    installed.as_ref()?.program.clone().filter(|running| running.command == command)
}

/// Starts a program and returns its input. It ends when nobody holds that any more, and init reaps it.
fn start(command: &str) -> io::Result<OwnedFd> {
    let input = start_reader(command)?.stdin.take();
    Ok(input.ok_or(io::ErrorKind::BrokenPipe)?.into())
}

/// Writes whole lines to the error log.
fn write_lines(lines: &[u8], severity: Severity) {
    let installed = INSTALLED.read().unwrap_or_else(PoisonError::into_inner);
    if let Some(syslog) = installed.as_ref().and_then(|installed| installed.syslog.as_ref()) {
        return syslog.send_or_say(lines, severity);
    }
    drop(installed);
    // Nobody is left to hear that it fails.
    let _ = write_to_stderr(lines);
}

/// Writes whole lines to stderr, whatever stands in its place. A program that has ended is started again.
///
/// # Errors
/// When nobody takes them.
pub(crate) fn write_to_stderr(lines: &[u8]) -> io::Result<()> {
    let result = io::stderr().write_all(lines);
    if !result.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::BrokenPipe) {
        return result;
    }
    // Nobody else starts it meanwhile; somebody may have started it already.
    let mut installed = INSTALLED.write().unwrap_or_else(PoisonError::into_inner);
    let program = installed.as_mut().and_then(|installed| installed.program.as_mut());
    let Some(program) = program else { return result };
    io::stderr().write_all(lines).or_else(|_| {
        rustix::stdio::dup2_stderr(start(&program.command)?)?;
        program.owner = geteuid();
        io::stderr().write_all(lines)
    })
}

/// Tells whoever runs the server.
pub fn report(message: &str) {
    report_at(Severity::NOTICE, message);
}

/// Tells whoever runs the server that something has failed.
pub fn report_error(message: &str) {
    report_at(Severity::ERROR, message);
}

/// Tells the error log what is of no interest to whoever has started the server in the foreground.
pub fn note(message: &str) {
    if INSTALLED.read().unwrap_or_else(PoisonError::into_inner).is_some() {
        report(message);
    }
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
