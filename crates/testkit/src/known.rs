//! `spec/known-differences.toml`: where milepost answers otherwise than httpd, and why.
//!
//! A difference that is listed and no longer there is a failure as well, so that the list says
//! neither more nor less than the truth.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::case::SpecError;

/// The name of the file in the spec directory.
pub const FILE_NAME: &str = "known-differences.toml";

/// One entry.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Difference {
    /// `area/name of the case`, or `area/*` for every case of the area.
    pub case: String,
    /// The request-target as written in the case; every request of the case when left out.
    pub target: Option<String>,
    /// Why it is so, and why that is right or when it will end.
    pub reason: String,
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
        if let Some(entry) = written.difference.iter().find(|entry| entry.reason.trim().is_empty())
        {
            let what = "gives no reason".to_owned();
            return Err(SpecError::Case { file, case: entry.case.clone(), what });
        }
        Ok(KnownDifferences { entries: written.difference })
    }

    /// Returns the number of the first entry that covers a request.
    pub fn find(&self, area: &str, name: &str, target: Option<&str>) -> Option<usize> {
        self.entries.iter().position(|entry| entry.covers(area, name, target))
    }
}

impl Difference {
    fn covers(&self, area: &str, name: &str, target: Option<&str>) -> bool {
        let Some((own_area, own_name)) = self.case.split_once('/') else { return false };
        let same_target = self.target.is_none() || self.target.as_deref() == target;
        own_area == area && (own_name == "*" || own_name == name) && same_target
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_cover_requests_cases_and_areas() {
        let list = "[[difference]]\ncase = 'a/one'\ntarget = '/x'\nreason = 'r'\n\
                    [[difference]]\ncase = 'b/*'\nreason = 'r'\n";
        let known = KnownDifferences::parse(Path::new("k.toml"), list).unwrap();
        assert_eq!(known.find("a", "one", Some("/x")), Some(0));
        assert_eq!(known.find("a", "one", Some("/y")), None);
        assert_eq!(known.find("b", "any", None), Some(1));
        assert_eq!(known.find("c", "any", None), None);
    }

    #[test]
    fn an_entry_needs_a_reason() {
        let list = "[[difference]]\ncase = 'a/one'\nreason = ' '\n";
        let error = KnownDifferences::parse(Path::new("k.toml"), list).unwrap_err();
        assert_eq!(error.to_string(), "k.toml: case \"a/one\": gives no reason");
    }
}
