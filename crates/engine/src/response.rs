//! The response fields that directives add, for the server to send.

use std::fmt;

use crate::eval::Table;

/// Response fields that directives ask for: `Header`, `RewriteRule`'s cookies and `Vary`, the `Location`
/// of a redirect with a document. Borrowed from the scratch; there are none for most requests.
#[derive(Clone, Copy, Default)]
pub struct AddedFields<'s> {
    tables: Option<(&'s Table, &'s Table)>,
}

impl<'s> AddedFields<'s> {
    pub(crate) fn new(always: &'s Table, rest: &'s Table) -> AddedFields<'s> {
        AddedFields { tables: Some((always, rest)) }
    }

    /// Names and values, in the order to send them.
    pub fn iter(&self) -> impl Iterator<Item = (&'s [u8], &'s [u8])> + use<'s> {
        self.tables.into_iter().flat_map(|(always, rest)| always.iter().chain(rest.iter()))
    }

    /// As [`AddedFields::iter`], for a response that turns out to be an error after all: a precondition
    /// that failed, a range that cannot be had.
    pub fn for_error(&self) -> impl Iterator<Item = (&'s [u8], &'s [u8])> + use<'s> {
        self.tables.into_iter().flat_map(|(always, _)| always.iter())
    }

    /// The last value of field `name`.
    pub fn last(&self, name: &str) -> Option<&'s [u8]> {
        let values = self.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name.as_bytes()));
        values.map(|(_, value)| value).last()
    }

    /// Whether a directive sets field `name` or takes it out, so that the server must not send its own.
    pub fn decides(&self, name: &[u8]) -> bool {
        self.tables.is_some_and(|(always, rest)| always.decides(name) || rest.decides(name))
    }

    /// Whether no directive says anything about fields.
    pub fn is_empty(&self) -> bool {
        self.tables.is_none_or(|(always, rest)| always.is_empty() && rest.is_empty())
    }
}

impl PartialEq for AddedFields<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for AddedFields<'_> {}

impl fmt::Debug for AddedFields<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = self.iter().map(|(name, value)| {
            format!("{}: {}", String::from_utf8_lossy(name), String::from_utf8_lossy(value))
        });
        f.debug_list().entries(lines).finish()
    }
}
