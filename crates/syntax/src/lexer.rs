//! Cuts text into logical lines: continuations joined, blanks trimmed, comments and empty lines gone.
//!
//! A backslash right before the line end joins the next line without a blank between; comments are
//! joined too, so a comment that ends in a backslash swallows the next line, as in httpd.
//!
//! Source: httpd 2.4.71 `server/util.c`, `ap_cfg_getline_core`.

use crate::tree::Text;

/// Produces the logical lines of a text, and keeps the text of those that were joined.
pub(crate) struct Lexer<'a> {
    source: &'a [u8],
    at: usize,
    /// Text of joined lines; [`Text`] positions from `source.len()` on point in here.
    pub(crate) joined: Vec<u8>,
    /// For each joined piece: its position in `joined`, and in the source.
    pub(crate) pieces: Vec<(u32, u32)>,
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(source: &'a [u8]) -> Lexer<'a> {
        Lexer { source, at: 0, joined: Vec::new(), pieces: Vec::new() }
    }

    /// The bytes of a text that this lexer made.
    pub(crate) fn bytes(&self, text: Text) -> &[u8] {
        let (at, len) = (text.at as usize, text.len as usize);
        match at.checked_sub(self.source.len()) {
            None => &self.source[at..at + len],
            Some(at) => &self.joined[at..at + len],
        }
    }

    /// Takes one physical line: where it begins and ends, without its line end, and whether a
    /// backslash asks for the next one.
    fn physical(&mut self) -> (usize, usize, bool) {
        let start = self.at;
        let (mut end, terminated) = match memchr::memchr(b'\n', &self.source[start..]) {
            Some(newline) => (start + newline, true),
            None => (self.source.len(), false),
        };
        self.at = end + usize::from(terminated);
        if terminated && end > start && self.source[end - 1] == b'\r' {
            end -= 1;
        }
        let goes_on = terminated && end > start && self.source[end - 1] == b'\\';
        (start, end - usize::from(goes_on), goes_on)
    }

    /// Takes the physical lines of one logical line.
    fn logical(&mut self) -> Text {
        let (start, end, mut goes_on) = self.physical();
        if !goes_on {
            return trim(self.source, start, end, 0);
        }
        let joined_start = self.joined.len();
        let (mut start, mut end) = (start, end);
        loop {
            let position = (self.source.len() + self.joined.len()) as u32;
            self.pieces.push((position, start as u32));
            self.joined.extend_from_slice(&self.source[start..end]);
            if !goes_on || self.at >= self.source.len() {
                break;
            }
            (start, end, goes_on) = self.physical();
        }
        let line = trim(&self.joined, joined_start, self.joined.len(), self.source.len());
        self.joined.push(b'\n');
        line
    }
}

impl Iterator for Lexer<'_> {
    type Item = Text;

    fn next(&mut self) -> Option<Text> {
        while self.at < self.source.len() {
            let line = self.logical();
            let text = self.bytes(line);
            if !text.is_empty() && text[0] != b'#' {
                return Some(line);
            }
        }
        None
    }
}

/// Whether `isspace(3)` in the C locale says so.
pub(crate) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | 0x0b | 0x0c)
}

fn leading_blanks(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|&&byte| is_blank(byte)).count()
}

fn trim(bytes: &[u8], start: usize, end: usize, base: usize) -> Text {
    let start = start + leading_blanks(&bytes[start..end]);
    let trailing = bytes[start..end].iter().rev().take_while(|&&byte| is_blank(byte)).count();
    Text { at: (base + start) as u32, len: (end - trailing - start) as u32 }
}
