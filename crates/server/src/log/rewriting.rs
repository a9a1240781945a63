//! Writes what mod_rewrite does into the error log, when `LogLevel` asks for it.
//!
//! The lines go the way of all logs: no request waits for them.

use std::io::Write;
use std::sync::Arc;

use milepost_engine::{LogSettings, Logged, Step, rewrite_notes};

use super::line::escape;
use super::sink::Sink;
use crate::error_log::begin_line;
use crate::respond::Peer;

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

    /// Writes the steps of one request; `redirect` is its answer, if it is one.
    pub(crate) fn write(
        &self,
        steps: &[Step],
        redirect: Option<(u16, &[u8])>,
        logged: Logged<'_>,
        peer: &Peer,
    ) {
        let most = self.settings.rewrite_level(logged.server());
        let notes = rewrite_notes(steps, redirect);
        for note in notes.iter().filter(|note| note.level <= most) {
            let level = format!("[rewrite:trace{}] ", note.level);
            let mut line = begin_line(&level).into_bytes();
            // Writing to memory does not fail.
            let _ = write!(line, "[client {}] ", peer.remote);
            if let Some(name) = logged.requested_name() {
                line.push(b'[');
                escape(&mut line, name);
                line.extend_from_slice(b"] ");
            }
            escape(&mut line, &note.text);
            if let Some((file, number)) = &note.place {
                let _ = write!(line, " ({}:{number})", file.display());
            }
            line.push(b'\n');
            self.sink.push(&line);
        }
    }
}
