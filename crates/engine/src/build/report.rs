//! Makes diagnostics that point at the text they are about.

use super::{Builder, Directive, Purpose};
use crate::decision::Place;
use crate::diagnostic::{Diagnostic, Severity};

/// A finding before its place is looked up.
pub(super) struct Finding {
    severity: Severity,
    message: String,
    hint: Option<String>,
    also: Option<(Place, String)>,
    stops_serving: bool,
}

impl Finding {
    pub(super) fn error(message: impl Into<String>) -> Finding {
        Finding {
            severity: Severity::Error,
            message: message.into(),
            hint: None,
            also: None,
            stops_serving: false,
        }
    }

    pub(super) fn warning(message: impl Into<String>) -> Finding {
        Finding { severity: Severity::Warning, ..Finding::error(message) }
    }

    pub(super) fn note(message: impl Into<String>) -> Finding {
        Finding { severity: Severity::Note, ..Finding::error(message) }
    }

    /// About what must not be left out by whoever serves: see [`Purpose`].
    pub(super) fn not_served(message: impl Into<String>) -> Finding {
        Finding { stops_serving: true, ..Finding::warning(message) }
    }

    /// What to write instead.
    pub(super) fn hint(mut self, hint: impl Into<String>) -> Finding {
        self.hint = Some(hint.into());
        self
    }

    /// Another place that matters.
    pub(super) fn also(mut self, place: Place, what: impl Into<String>) -> Finding {
        self.also = Some((place, what.into()));
        self
    }
}

impl Builder<'_> {
    /// Reports about `len` bytes of the arguments from `at` on.
    pub(super) fn report_at(
        &mut self,
        directive: &Directive<'_>,
        at: usize,
        len: usize,
        finding: Finding,
    ) {
        let (place, len) = match directive.args_text.place() {
            Some(place) => (Place { offset: place.offset + at as u32, ..place }, len),
            // The arguments were expanded, so their bytes are not those of the file.
            None => (directive.place, directive.name_text.len()),
        };
        self.report_place(place, len, finding);
    }

    /// Reports about the directive's name.
    pub(super) fn report(&mut self, directive: &Directive<'_>, finding: Finding) {
        self.report_place(directive.place, directive.name_text.len(), finding);
    }

    /// Reports about `len` bytes at a place.
    pub(super) fn report_place(&mut self, place: Place, len: usize, finding: Finding) {
        let (line, column, text) = self.pool.tree(place.file).position(place.offset as usize);
        let text = String::from_utf8_lossy(text).into_owned();
        let left = text.len().saturating_sub(column as usize - 1);
        let also = finding.also.map(|(place, what)| {
            let (file, line) = self.pool.describe(place);
            (file, line, what)
        });
        let file = self.pool.path(place.file).to_owned();
        let (severity, message) = match (finding.stops_serving, self.purpose) {
            (true, Purpose::Serve) => (Severity::Error, finding.message),
            (true, Purpose::Look | Purpose::Ask) => {
                (finding.severity, format!("{}; `milepost serve` refuses it", finding.message))
            }
            (false, _) => (finding.severity, finding.message),
        };
        self.diagnostics.push(Diagnostic {
            severity,
            file,
            line,
            column,
            length: len.min(left).max(1) as u32,
            text,
            message,
            hint: finding.hint,
            also,
        });
    }

    /// Reports about a file as a whole.
    pub(super) fn report_file(&mut self, file: &std::path::Path, finding: Finding) {
        self.report_line(file, 0, finding);
    }

    /// Reports about a line of a file as a whole; 0 is the file itself.
    pub(super) fn report_line(&mut self, file: &std::path::Path, line: u32, finding: Finding) {
        self.diagnostics.push(Diagnostic {
            severity: finding.severity,
            file: file.to_owned(),
            line,
            column: 0,
            length: 0,
            text: String::new(),
            message: finding.message,
            hint: finding.hint,
            also: None,
        });
    }
}

/// Shows bytes of a configuration in a message.
pub(super) fn show(bytes: &[u8]) -> String {
    format!("`{}`", String::from_utf8_lossy(bytes))
}
