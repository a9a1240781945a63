//! Field lines: where name and value stand in a head, and how they are found by name.
//!
//! A line is kept as four offsets, so that the storage can be reused for heads at other addresses.
//!
//! Source: RFC 9110 section 5; RFC 9112 section 5.

use super::HeadError;
use crate::bytes::is_value;

/// One field line as offsets into its head.
#[derive(Debug, Clone, Copy)]
pub struct FieldLine {
    name_start: u32,
    name_end: u32,
    value_start: u32,
    value_end: u32,
}

impl FieldLine {
    /// Reads the line `bytes[start..end]`, its CRLF cut off.
    #[inline]
    pub(super) fn parse(bytes: &[u8], start: usize, end: usize) -> Result<FieldLine, HeadError> {
        let line = &bytes[start..end];
        if matches!(line.first(), Some(b' ' | b'\t')) {
            return Err(HeadError::FoldedLine);
        }
        let end_of_name = line.iter().position(|&byte| !is_token_byte(byte));
        let Some(name @ 1..) = end_of_name.filter(|&at| line[at] == b':') else {
            return Err(HeadError::FieldName);
        };
        let after = &line[name + 1..];
        let blanks = after.iter().take_while(|&&byte| is_blank(byte)).count();
        let mut value = &after[blanks..];
        while let [rest @ .., b' ' | b'\t'] = value {
            value = rest;
        }
        if !is_value(value) {
            return Err(HeadError::FieldValue);
        }
        // A head of 4 GiB cannot pass the limits; it would be refused and not cut.
        let last = u32::try_from(end).map_err(|_| HeadError::FieldTooLong)?;
        // What stands before the end fits as well.
        let before_end = |bytes: usize| last - bytes as u32;
        let value_start = before_end(line.len() - name - 1 - blanks);
        Ok(FieldLine {
            name_start: before_end(line.len()),
            name_end: before_end(line.len() - name),
            value_start,
            value_end: value_start + value.len() as u32,
        })
    }

    pub(super) fn name<'a>(&self, head: &'a [u8]) -> &'a [u8] {
        &head[self.name_start as usize..self.name_end as usize]
    }

    pub(super) fn value<'a>(&self, head: &'a [u8]) -> &'a [u8] {
        &head[self.value_start as usize..self.value_end as usize]
    }
}

/// The field lines of one head.
#[derive(Debug, Clone, Copy)]
pub struct FieldLines<'a> {
    head: &'a [u8],
    lines: &'a [FieldLine],
}

impl<'a> FieldLines<'a> {
    pub(super) fn new(head: &'a [u8], lines: &'a [FieldLine]) -> Self {
        FieldLines { head, lines }
    }

    pub(super) fn head(&self) -> &'a [u8] {
        self.head
    }

    /// Returns names and values in order. Values have no white space around them.
    pub fn iter(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        let head = self.head;
        self.lines.iter().map(move |line| (line.name(head), line.value(head)))
    }

    /// Returns the values of all lines called `name`, in any case.
    pub fn all<'n>(&self, name: &'n str) -> impl Iterator<Item = &'a [u8]> + use<'a, 'n> {
        let same = move |&(other, _): &(&[u8], &[u8])| other.eq_ignore_ascii_case(name.as_bytes());
        self.iter().filter(same).map(|(_, value)| value)
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

/// Whether all bytes are token bytes, and there is one.
pub(super) fn is_token(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().all(|&byte| is_token_byte(byte))
}

fn is_token_byte(byte: u8) -> bool {
    TOKEN[byte as usize]
}

/// The token bytes of RFC 9110 section 5.6.2, by value.
const TOKEN: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = matches!(byte as u8,
            b'!' | b'#'..=b'\'' | b'*' | b'+' | b'-' | b'.' | b'0'..=b'9' | b'A'..=b'Z'
            | b'^'..=b'z' | b'|' | b'~');
        byte += 1;
    }
    table
};

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_bytes_are_those_of_the_grammar() {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        for byte in 0..=255 {
            assert_eq!(is_token_byte(byte), allowed(byte), "{byte}");
        }
    }
}
