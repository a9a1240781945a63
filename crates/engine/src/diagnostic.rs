//! What is wrong with a configuration, as data: rendering is for the caller.

use std::fmt;
use std::path::PathBuf;

/// One finding about a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// Whether the configuration still loads.
    pub severity: Severity,
    /// The file it was found in; the name of the option (`-c`) for command-line directives.
    pub file: PathBuf,
    /// Line, from 1; 0 when the finding is about the whole file.
    pub line: u32,
    /// Column in bytes, from 1.
    pub column: u32,
    /// Length in bytes of the marked text, within the line.
    pub length: u32,
    /// The source line, without its line end, for display.
    pub text: String,
    /// What is wrong: lower case, no full stop.
    pub message: String,
    /// What to write instead, when we know.
    pub hint: Option<String>,
    /// A second place, and what it has to do with this one (`first defined here`).
    pub also: Option<(PathBuf, u32, String)>,
}

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Accepted, and has no effect here.
    Note,
    /// Loads, and probably does not do what was meant.
    Warning,
    /// Does not load.
    Error,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Error => "error",
        })
    }
}

/// Prints `file:line:column: severity: message`, the line with its mark, and the hint.
impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.file.display();
        if self.line == 0 {
            write!(f, "{file}: {}: {}", self.severity, self.message)?;
        } else {
            write!(f, "{file}:{}:{}: {}: {}", self.line, self.column, self.severity, self.message)?;
            let number = self.line.to_string();
            let margin = " ".repeat(number.len());
            let before = self.text.get(..self.column.saturating_sub(1) as usize).unwrap_or("");
            // Tabs stay tabs, so that the mark stands below the text whatever their width.
            let indent: String =
                before.chars().map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
            let mark = "^".repeat(self.length.max(1) as usize);
            write!(f, "\n {number} | {}\n {margin} | {indent}{mark}", self.text)?;
        }
        if let Some((file, line, what)) = &self.also {
            write!(f, "\n   = {}:{line}: {what}", file.display())?;
        }
        if let Some(hint) = &self.hint {
            write!(f, "\n   = help: {hint}")?;
        }
        Ok(())
    }
}
