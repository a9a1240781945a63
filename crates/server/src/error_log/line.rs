//! One line of the error log, as `ErrorLogFormat` has it.
//!
//! What a client has sent is escaped, as in access logs; quotes within a message are not.
//!
//! Source: httpd 2.4.71 `server/log.c`, `do_errorlog_format`, `log_remote_address` and what follows.

use std::cell::OnceCell;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::Path;

use chrono::Local;
use milepost_engine::{ErrorFormat, ErrorItem, ErrorWhat, Logged, Missing};
use milepost_http::request::RequestHead;

use crate::log::{escape, escape_unquoted};
use crate::respond::Peer;

/// How bad it is: 0 is `emerg`, 7 `debug`, 8 to 15 `trace1` to `trace8`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Severity(u8);

impl Severity {
    pub(crate) const ERROR: Severity = Severity(3);
    pub(crate) const WARN: Severity = Severity(4);
    pub(crate) const NOTICE: Severity = Severity(5);
    const DEBUG: Severity = Severity(7);
    /// Of what is no message; it has no name.
    const NONE: Severity = Severity(u8::MAX);

    /// `trace1` to `trace8`
    pub(crate) fn trace(number: u8) -> Severity {
        Severity(Severity::DEBUG.0 + number)
    }

    /// 0 is `emerg`, 15 `trace8`.
    pub(crate) fn number(self) -> u8 {
        self.0
    }

    /// What syslog calls it, which has no traces.
    pub(super) fn in_syslog(self) -> u8 {
        self.0.min(Severity::DEBUG.0)
    }

    fn name(self) -> &'static str {
        const NAMES: [&str; 16] = [
            "emerg", "alert", "crit", "error", "warn", "notice", "info", "debug", "trace1",
            "trace2", "trace3", "trace4", "trace5", "trace6", "trace7", "trace8",
        ];
        NAMES.get(usize::from(self.0)).copied().unwrap_or_default()
    }
}

/// What is said, and who says it.
pub(crate) struct Message<'m> {
    pub(crate) module: &'static str,
    pub(crate) severity: Severity,
    pub(crate) text: &'m [u8],
    /// File and line of the directive that it is about.
    pub(crate) place: Option<(&'m Path, u32)>,
    /// The system's number of the error that is behind it.
    pub(crate) error: Option<i32>,
}

impl<'m> Message<'m> {
    /// Of the server itself.
    pub(crate) fn of_server(text: &'m str) -> Message<'m> {
        let text = text.as_bytes();
        Message { module: "core", severity: Severity::NOTICE, text, place: None, error: None }
    }

    /// No message, for lines about a request as such.
    pub(crate) fn none() -> Message<'m> {
        Message { module: "", severity: Severity::NONE, text: b"", place: None, error: None }
    }
}

/// The request that a message is about.
#[derive(Clone, Copy)]
pub(crate) struct About<'a> {
    pub(crate) peer: &'a Peer,
    pub(crate) logged: Logged<'a>,
    pub(crate) head: &'a RequestHead<'a>,
    /// What logs call it.
    pub(crate) id: &'a OnceCell<Box<str>>,
}

impl About<'_> {
    /// The client: who has connected, or whom that has asked for.
    pub(crate) fn client(&self) -> SocketAddr {
        self.logged.client().unwrap_or(self.peer.remote)
    }
}

/// What a line is about; the items of the others have no value in it.
#[derive(Clone, Copy)]
pub(crate) enum Subject<'a> {
    Server,
    /// The connection of this request.
    Connection(About<'a>),
    Request(About<'a>),
}

/// Appends the line of a message; nothing, if an item is missing that the format wants.
pub(crate) fn write_line(
    format: &ErrorFormat,
    message: &Message<'_>,
    subject: Subject<'_>,
    out: &mut Vec<u8>,
) {
    let start = out.len();
    let mut field = start;
    let mut skips = false;
    for item in &format.items {
        if item.begins_field {
            if !skips {
                field = out.len();
            }
            skips = false;
        }
        if skips && item.what != ErrorWhat::Message {
            continue;
        }
        let before = out.len();
        let is_wanted = item.level_min <= message.severity.0;
        if is_wanted {
            write_item(item, message, subject, out);
        }
        if out.len() > before || matches!(&item.what, ErrorWhat::Text(_) | ErrorWhat::Message) {
            continue;
        }
        match item.missing {
            Missing::Dash if is_wanted => out.push(b'-'),
            Missing::Line if is_wanted => return out.truncate(start),
            _ => {
                out.truncate(field);
                skips = true;
            }
        }
    }
    out.push(b'\n');
}

fn write_item(item: &ErrorItem, message: &Message<'_>, subject: Subject<'_>, out: &mut Vec<u8>) {
    // Writing to memory does not fail.
    match &item.what {
        ErrorWhat::Text(text) => out.extend_from_slice(text),
        ErrorWhat::Message => escape_unquoted(out, message.text),
        ErrorWhat::Level => out.extend_from_slice(message.severity.name().as_bytes()),
        ErrorWhat::Module => out.extend_from_slice(message.module.as_bytes()),
        ErrorWhat::Process => {
            let _ = write!(out, "{}", std::process::id());
        }
        ErrorWhat::Thread => {
            let _ = write!(out, "{}", rustix::thread::gettid().as_raw_nonzero());
        }
        ErrorWhat::SystemError => {
            if let Some(number) = message.error {
                let text = io::Error::from_raw_os_error(number).to_string();
                let text = text.split(" (os error").next().unwrap_or_default();
                let _ = write!(out, "({number}){text}");
            }
        }
        ErrorWhat::Time { microseconds, compact } => {
            let format = match (compact, microseconds) {
                (false, false) => "%a %b %d %H:%M:%S %Y",
                (false, true) => "%a %b %d %H:%M:%S%.6f %Y",
                (true, false) => "%Y-%m-%d %H:%M:%S",
                (true, true) => "%Y-%m-%d %H:%M:%S%.6f",
            };
            let _ = write!(out, "{}", Local::now().format(format));
        }
        ErrorWhat::Place => {
            if let Some((file, line)) = message.place {
                let _ = write!(out, "{}:{line}", file.display());
            }
        }
        ErrorWhat::Nothing => {}
        other => match subject {
            Subject::Server => {}
            Subject::Connection(about) => write_of_connection(other, about, out),
            Subject::Request(about) => write_of_request(other, about, out),
        },
    }
}

fn write_of_connection(what: &ErrorWhat, about: About<'_>, out: &mut Vec<u8>) {
    let value = match what {
        ErrorWhat::RemoteAddress | ErrorWhat::PeerAddress => {
            let _ = write!(out, "{}", about.peer.remote);
            None
        }
        ErrorWhat::LocalAddress => {
            let _ = write!(out, "{}", about.peer.local);
            None
        }
        ErrorWhat::ConnectionId => about.peer.name.get().map(|name| name.as_bytes()),
        ErrorWhat::ServerName => about.logged.server_name(),
        _ => None,
    };
    escape(out, value.unwrap_or_default());
}

fn write_of_request(what: &ErrorWhat, about: About<'_>, out: &mut Vec<u8>) {
    let value = match what {
        ErrorWhat::RemoteAddress => {
            let _ = write!(out, "{}", about.client());
            None
        }
        ErrorWhat::RequestId => about.id.get().map(|id| id.as_bytes()),
        ErrorWhat::Variable(name) => about.logged.variable(name),
        ErrorWhat::RequestField(name) => about.head.fields.all(name).next(),
        ErrorWhat::RequestedName => about.logged.requested_name(),
        other => return write_of_connection(other, about, out),
    };
    escape(out, value.unwrap_or_default());
}
