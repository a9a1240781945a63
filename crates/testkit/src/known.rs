//! `spec/known-differences.toml`: where milepost answers otherwise than httpd, and why.
//!
//! A difference that is listed and no longer there is a failure as well, so that the list says
//! neither more nor less than the truth.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::case::SpecError;

/// The name of the file in the spec directory.
pub const FILE_NAME: &str = "known-differences.toml";

/// One entry. What it names must all hold for a check that it covers.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Difference {
    /// `area/name of the case`, or `area/*` for every case of the area.
    pub case: Option<String>,
    /// The request-target as written in the case.
    pub target: Option<String>,
    /// A part of what milepost says when it refuses the configuration.
    pub refused: Option<String>,
    /// Why it is so, and why that is right or when it will end.
    pub reason: String,
}

/// A check that came out otherwise than expected.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'a> {
    /// The area of the case.
    pub area: &'a str,
    /// The name of the case.
    pub name: &'a str,
    /// The request-target as written, unless the check is about the configuration.
    pub target: Option<&'a str>,
    /// What was said, if the configuration was refused.
    pub refused: Option<&'a str>,
}

/// The whole list.
#[derive(Debug, Clone, Default)]
pub struct KnownDifferences {
    /// The entries, in order.
    pub entries: Vec<Difference>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    difference: Vec<Difference>,
}

impl KnownDifferences {
    /// Reads the list of a spec directory; no file is an empty list.
    ///
    /// # Errors
    /// [`SpecError`] when the file is not of this shape, or an entry gives no reason.
    pub fn read(spec: &Path) -> Result<KnownDifferences, SpecError> {
        let file = spec.join(FILE_NAME);
        match std::fs::read_to_string(&file) {
            Ok(text) => KnownDifferences::parse(&file, &text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                Ok(KnownDifferences::default())
            }
            Err(error) => Err(SpecError::Read { file, error }),
        }
    }

    fn parse(file: &Path, text: &str) -> Result<KnownDifferences, SpecError> {
        let file = PathBuf::from(file);
        let written: File = match toml::from_str(text) {
            Ok(written) => written,
            Err(error) => return Err(SpecError::Toml { file, error }),
        };
        for entry in &written.difference {
            let what = match entry {
                Difference { case: None, refused: None, .. } => "names neither case nor refusal",
                Difference { reason, .. } if reason.trim().is_empty() => "gives no reason",
                _ => continue,
            };
            return Err(SpecError::Case { file, case: entry.to_string(), what: what.to_owned() });
        }
        Ok(KnownDifferences { entries: written.difference })
    }

    /// Returns the number of the first entry that covers what was seen.
    pub fn find(&self, seen: Seen<'_>) -> Option<usize> {
        self.entries.iter().position(|entry| entry.covers(seen))
    }
}

impl Difference {
    fn covers(&self, seen: Seen<'_>) -> bool {
        let case = self.case.as_deref().is_none_or(|case| match case.split_once('/') {
            Some((area, name)) => area == seen.area && (name == "*" || name == seen.name),
            None => false,
        });
        let target = self.target.is_none() || self.target.as_deref() == seen.target;
        let refused = self
            .refused
            .as_deref()
            .is_none_or(|part| seen.refused.is_some_and(|message| message.contains(part)));
        case && target && refused
    }
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let parts = [("case", &self.case), ("target", &self.target), ("refused", &self.refused)];
        let parts = parts.iter().filter_map(|(name, part)| Some((name, part.as_deref()?)));
        let parts: Vec<_> = parts.map(|(name, part)| format!("{name} {part:?}")).collect();
        f.write_str(&parts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_cover_requests_cases_and_areas() {
        let list = "[[difference]]\ncase = 'a/one'\ntarget = '/x'\nreason = 'r'\n\
                    [[difference]]\ncase = 'b/*'\nreason = 'r'\n\
                    [[difference]]\nrefused = 'not yet'\nreason = 'r'\n";
        let known = KnownDifferences::parse(Path::new("k.toml"), list).unwrap();
        let seen = Seen { area: "a", name: "one", target: Some("/x"), refused: None };
        assert_eq!(known.find(seen), Some(0));
        assert_eq!(known.find(Seen { target: Some("/y"), ..seen }), None);
        assert_eq!(known.find(Seen { area: "b", ..seen }), Some(1));
        assert_eq!(known.find(Seen { area: "c", ..seen }), None);
        assert_eq!(known.find(Seen { area: "c", refused: Some("x: not yet"), ..seen }), Some(2));
    }

    #[test]
    fn an_entry_needs_a_reason() {
        let list = "[[difference]]\ncase = 'a/one'\nreason = ' '\n";
        let error = KnownDifferences::parse(Path::new("k.toml"), list).unwrap_err();
        let expected = "k.toml: case \"case \\\"a/one\\\"\": gives no reason";
        assert_eq!(error.to_string(), expected);
    }
}
