//! What the error logs are told about requests: each virtual host may have one of its own.
//!
//! The lines go the way of all logs, so no request waits for them; those for the system's log are sent at
//! once, as that does not wait either. The main server's log is stderr, whatever stands in its place.
//!
//! Source: httpd 2.4.71 `server/log.c`, `log_error_core`, `ap_open_logs`.

use std::cell::OnceCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use milepost_engine::{ErrorFormat, ErrorLogSettings, LogSettings, LogTarget};

use super::sink::Sink;
use super::{LogError, Opening};
use crate::error_log::{About, Message, Severity, Subject, Syslog, report, write_line};

/// Counts the requests and connections that error logs have named.
static NAMED: AtomicU64 = AtomicU64::new(0);

/// The error logs of all servers, as far as they are about requests.
#[derive(Debug, Default)]
pub(crate) struct Errors {
    pub(super) settings: LogSettings,
    /// Of each server; that of the first also for servers beyond the last.
    servers: Vec<OfServer>,
}

#[derive(Debug)]
struct OfServer {
    log: ErrorLogSettings,
    way: Way,
}

/// How lines get to a log.
#[derive(Debug, Clone)]
enum Way {
    Lines(Arc<Sink>),
    Syslog(Arc<Syslog>),
}

impl Errors {
    pub(super) fn open(
        settings: &LogSettings,
        opening: &mut Opening<'_>,
    ) -> Result<Errors, LogError> {
        let mut servers: Vec<OfServer> = Vec::new();
        let count = settings.error_log_servers();
        let is_stderr = count == 1 && settings.error_log(0).target.is_none();
        // Then nothing but traces would go through a sink, and what needs none has no thread.
        let count = if is_stderr && !settings.traces_rewriting() { 0 } else { count };
        for number in 0..count {
            let log = settings.error_log(number);
            let main = servers.first().filter(|main| main.log.target == log.target);
            let way = match (main, &log.target) {
                (Some(main), _) => main.way.clone(),
                (None, Some(LogTarget::Syslog(syslog))) => {
                    let socket = Syslog::new(syslog);
                    let socket =
                        socket.map_err(|error| LogError { name: "syslog".to_owned(), error })?;
                    Way::Syslog(Arc::new(socket))
                }
                (None, Some(target)) if number > 0 => Way::Lines(opening.sink(target)?),
                (None, _) => Way::Lines(opening.sink(&LogTarget::Errors)?),
            };
            servers.push(OfServer { log, way });
        }
        Ok(Errors { settings: settings.clone(), servers })
    }

    /// Writes a message about a request, if its server wants messages as grave as this one.
    pub(crate) fn say(&self, about: About<'_>, message: &Message<'_>) {
        let server = about.logged.server();
        if !self.settings.proxy_says(&about.logged, message.severity.number()) {
            return;
        }
        match self.of_server(server) {
            Some(OfServer { log, .. }) if log.target.is_some() => {
                self.write(about, std::iter::once(message));
            }
            // What starts a server in the foreground has a clock of its own.
            _ => {
                let text = String::from_utf8_lossy(message.text);
                report(&format!("{}: {text}, of {}", message.module, about.client()));
            }
        }
    }

    /// Writes messages about a request, which has a name from then on, as its connection has.
    pub(super) fn write<'m>(
        &self,
        about: About<'_>,
        messages: impl Iterator<Item = &'m Message<'m>>,
    ) {
        let Some(OfServer { log, way }) = self.of_server(about.logged.server()) else { return };
        let mut lines = Vec::new();
        let mut introduce = |subject, named: &OnceCell<Box<str>>, formats: &[Arc<ErrorFormat>]| {
            if named.get().is_none() {
                named.get_or_init(new_name);
                for format in formats {
                    write_line(format, &Message::none(), subject, &mut lines);
                }
            }
        };
        let (connection, request) = (Subject::Connection(about), Subject::Request(about));
        introduce(connection, &about.peer.name, &log.connection_formats);
        introduce(request, about.id, &log.request_formats);
        for message in messages {
            write_line(&log.format, message, request, &mut lines);
            way.send(&lines, message.severity);
            lines.clear();
        }
    }

    fn of_server(&self, server: usize) -> Option<&OfServer> {
        self.servers.get(server).or(self.servers.first())
    }
}

impl Way {
    fn send(&self, lines: &[u8], severity: Severity) {
        match self {
            Way::Lines(sink) => sink.push(lines),
            Way::Syslog(syslog) => syslog.send_or_say(lines, severity),
        }
    }
}

/// A name for a request or a connection that nothing else has had in this process.
fn new_name() -> Box<str> {
    let number = NAMED.fetch_add(1, Ordering::Relaxed);
    format!("{:x}-{number:x}", std::process::id()).into()
}
