//! Writes what mod_rewrite does into the error log, when `LogLevel` asks for it.
//!
//! The lines go the way of all logs: no request waits for them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use milepost_engine::{LogSettings, Logged, Step, rewrite_notes};
use milepost_http::request::RequestHead;

use super::sink::Sink;
use crate::error_log::{About, Message, Severity, write_line};
use crate::respond::Peer;

/// Counts the requests that the error log has named.
static NAMED: AtomicU64 = AtomicU64::new(0);

/// The error log, as far as it is about mod_rewrite.
#[derive(Debug)]
pub(crate) struct Rewriting {
    settings: LogSettings,
    sink: Arc<Sink>,
}

impl Rewriting {
    pub(super) fn new(settings: LogSettings, sink: Arc<Sink>) -> Rewriting {
        Rewriting { settings, sink }
    }

    /// Writes the steps of one request; `redirect` is its answer, if it is one. Returns what the lines call
    /// the request, if there are any.
    pub(crate) fn write(
        &self,
        steps: &[Step],
        redirect: Option<(u16, &[u8])>,
        logged: Logged<'_>,
        peer: &Peer,
        head: &RequestHead<'_>,
    ) -> Option<String> {
        let of_server = self.settings.rewrite_level(logged.server());
        let mut notes = rewrite_notes(steps, redirect);
        notes.retain(|note| note.level <= note.level_max.unwrap_or(of_server));
        if notes.is_empty() {
            return None;
        }
        let number = NAMED.fetch_add(1, Ordering::Relaxed);
        let id = format!("{:x}-{number:x}", std::process::id());
        let about = Some(About { peer, logged, head, id: &id });
        let messages = notes.iter().map(|note| Message {
            module: "rewrite",
            severity: Severity::trace(note.level),
            text: &note.text,
            place: note.place.as_ref().map(|(file, line)| (&**file, *line)),
        });
        let mut line = Vec::new();
        for format in &self.settings.error_request_formats {
            write_line(format, &Message::none(), about, &mut line);
        }
        for message in messages {
            write_line(&self.settings.error_format, &message, about, &mut line);
            self.sink.push(&line);
            line.clear();
        }
        Some(id)
    }
}
