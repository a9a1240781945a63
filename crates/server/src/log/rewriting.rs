//! Writes what mod_rewrite does into the error log, when `LogLevel` asks for it.

use milepost_engine::{Step, rewrite_notes};

use super::errors::Errors;
use crate::error_log::{About, Message, Severity};

impl Errors {
    /// Writes the steps of one request; `redirect` is its answer, if it is one.
    pub(crate) fn write_rewriting(
        &self,
        steps: &[Step],
        redirect: Option<(u16, &[u8])>,
        about: About<'_>,
    ) {
        let of_server = self.settings.rewrite_level(about.logged.server());
        let mut notes = rewrite_notes(steps, redirect);
        notes.retain(|note| note.level <= note.level_max.unwrap_or(of_server));
        if notes.is_empty() {
            return;
        }
        let messages: Vec<Message<'_>> = notes
            .iter()
            .map(|note| Message {
                module: "rewrite",
                severity: Severity::trace(note.level),
                text: &note.text,
                place: note.place.as_ref().map(|(file, line)| (&**file, *line)),
                error: None,
            })
            .collect();
        self.write(about, messages.iter());
    }
}
