//! What a server answered, and what a case expects of it.

use std::fmt;

use crate::bytes;

/// An answer, as far as cases look at it.
///
/// Paths, addresses and ports of the test run are written as placeholders (`@ROOT@`, `@ADDRESS@`,
/// `@PORT@`), so that answers of different runs can be compared.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// The field value of `Location`.
    pub location: Option<Vec<u8>>,
    /// The file of the case that came as content.
    pub served: Option<String>,
    /// All other fields that the answer has.
    pub fields: Vec<(String, Vec<u8>)>,
    /// Whether httpd answers this from memory that it has given back: the redirect that a subrequest for
    /// `FallbackResource` ended in, whose fields `fixup_dflt` of mod_dir destroys before they are sent.
    pub is_undefined: bool,
}

/// What a case expects; `fields` holds only those that the case looks at, and an empty value
/// expects no such field.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Expected {
    /// The status code; `None` when the case has not been blessed yet.
    pub status: Option<u16>,
    /// The field value of `Location`, or that there is none.
    pub location: Option<Vec<u8>>,
    /// The file of the case that comes as content, or that none does.
    pub served: Option<String>,
    /// Other fields, by name.
    pub fields: Vec<(String, Vec<u8>)>,
}

impl Answer {
    /// Returns the first value of field `name` (any case), empty when there is none.
    pub fn value(&self, name: &str) -> &[u8] {
        let found = self.fields.iter().find(|(field, _)| field.eq_ignore_ascii_case(name));
        found.map_or(b"", |(_, value)| value)
    }

    /// Whether `self` is the same answer as `other`: status, `Location` and content.
    pub fn same_as(&self, other: &Answer) -> bool {
        self.status == other.status
            && self.location == other.location
            && self.served == other.served
    }
}

impl Expected {
    /// Makes the expectation that `answer` fulfils, looking at the same fields as before.
    #[must_use]
    pub fn blessed(&self, answer: &Answer) -> Expected {
        let looked_at = self.fields.iter().map(|(name, _)| name);
        Expected {
            status: Some(answer.status),
            location: answer.location.clone(),
            served: answer.served.clone(),
            fields: looked_at.map(|name| (name.clone(), answer.value(name).to_vec())).collect(),
        }
    }

    /// Expects nothing yet, and looks at the same fields as before.
    #[must_use]
    pub fn unblessed(&self) -> Expected {
        let names = self.fields.iter().map(|(name, _)| (name.clone(), Vec::new()));
        Expected { fields: names.collect(), ..Expected::default() }
    }

    /// Whether `answer` is what was expected.
    pub fn is_met_by(&self, answer: &Answer) -> bool {
        *self == self.blessed(answer)
    }
}

/// Prints `301 http://t/new`, and the file and the fields if there are any.
impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.status {
            Some(status) => write!(f, "{status}")?,
            None => write!(f, "not blessed")?,
        }
        if let Some(location) = &self.location {
            write!(f, " {}", bytes::write(location))?;
        }
        if let Some(served) = &self.served {
            write!(f, " file {served}")?;
        }
        for (name, value) in &self.fields {
            write!(f, ", {name}: {}", bytes::write(value))?;
        }
        Ok(())
    }
}
