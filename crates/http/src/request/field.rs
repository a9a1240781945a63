//! Field lines: where name and value stand in a head, and how they are found by name.
//!
//! A line is kept as four offsets, so that the storage can be reused for heads at other addresses.
//!
//! Source: RFC 9110 section 5; RFC 9112 section 5.

use super::HeadError;
use super::class::{TOKEN, VALUE, count};
use super::line::{self, LineLimit};

/// One field line as offsets into the fields of its head.
#[derive(Debug, Clone, Copy)]
pub(super) struct FieldLine {
    name_start: u32,
    name_end: u32,
    value_start: u32,
    value_end: u32,
}

/// A field line that has just been read.
pub(super) struct ParsedLine<'a> {
    pub(super) line: FieldLine,
    pub(super) name: &'a [u8],
    pub(super) value: &'a [u8],
    /// What comes after it.
    pub(super) next: &'a [u8],
}

impl FieldLine {
    /// Reads the line that `rest` begins with and `bytes` end with; `None` if it has no end yet.
    ///
    /// There are less than 4 GiB of `bytes`.
    #[inline]
    pub(super) fn parse<'a>(
        bytes: &'a [u8],
        rest: &'a [u8],
        limit: LineLimit,
    ) -> Result<Option<ParsedLine<'a>>, HeadError> {
        let (name, after_name) = rest.split_at(count::<TOKEN>(rest));
        let ([_, ..], [b':', after_colon @ ..]) = (name, after_name) else {
            let is_folded = begins_blank(rest);
            let error = if is_folded { HeadError::FoldedLine } else { HeadError::FieldName };
            return line::refuse(rest, limit, error).map(|()| None);
        };
        let value = match after_colon {
            [b' ', value @ ..] if !begins_blank(value) => value,
            _ => trim_blanks(after_colon),
        };
        let value_start = bytes.len() - value.len();
        let length = count::<VALUE>(value);
        let end = rest.len() - value.len() + length;
        let next = line::take_end(rest, end, limit, HeadError::FieldValue)?;
        let Some(next) = next else { return Ok(None) };
        let mut value = &value[..length];
        while let [before @ .., b' ' | b'\t'] = value {
            value = before;
        }
        let start = bytes.len() - rest.len();
        let line = FieldLine {
            name_start: start as u32,
            name_end: (start + name.len()) as u32,
            value_start: value_start as u32,
            value_end: (value_start + value.len()) as u32,
        };
        Ok(Some(ParsedLine { line, name, value, next }))
    }

    fn name<'a>(&self, fields: &'a [u8]) -> &'a [u8] {
        &fields[self.name_start as usize..self.name_end as usize]
    }

    pub(super) fn value<'a>(&self, fields: &'a [u8]) -> &'a [u8] {
        &fields[self.value_start as usize..self.value_end as usize]
    }
}

fn begins_blank(bytes: &[u8]) -> bool {
    matches!(bytes, [b' ' | b'\t', ..])
}

/// Cuts off what stands before a value, where it is not the one space that everybody sends.
#[cold]
fn trim_blanks(mut bytes: &[u8]) -> &[u8] {
    while begins_blank(bytes) {
        bytes = &bytes[1..];
    }
    bytes
}

/// The field lines of one head.
#[derive(Debug, Clone, Copy)]
pub struct FieldLines<'a> {
    fields: &'a [u8],
    lines: &'a [FieldLine],
}

impl<'a> FieldLines<'a> {
    pub(super) fn new(fields: &'a [u8], lines: &'a [FieldLine]) -> Self {
        FieldLines { fields, lines }
    }

    /// Returns names and values in order. Values have no white space around them.
    pub fn iter(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        let fields = self.fields;
        self.lines.iter().map(move |line| (line.name(fields), line.value(fields)))
    }

    /// Returns the values of all lines called `name`, in any case.
    pub fn all<'n>(&self, name: &'n str) -> impl Iterator<Item = &'a [u8]> + use<'a, 'n> {
        let fields = self.fields;
        let is_same = move |line: &&FieldLine| {
            (line.name_end - line.name_start) as usize == name.len()
                && line.name(fields).eq_ignore_ascii_case(name.as_bytes())
        };
        self.lines.iter().filter(is_same).map(move |line| line.value(fields))
    }

    /// Returns the value of the first line called `name`, in any case.
    #[must_use]
    pub fn first(&self, name: &str) -> Option<&'a [u8]> {
        self.all(name).next()
    }

    /// Returns how many lines are called `name`, in any case.
    #[must_use]
    pub fn count(&self, name: &str) -> usize {
        self.all(name).count()
    }
}
