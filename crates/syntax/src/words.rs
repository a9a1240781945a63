//! Splits the arguments of a directive into words, in httpd's two ways.
//!
//! Most directives split like [`Words`]; `RewriteRule` and `RewriteCond` like [`RawWords`], which keeps
//! every backslash because the word is a pattern.

use std::borrow::Cow;

use crate::lexer::is_blank;

/// One word, and where it stood in the arguments (quotes included).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word<'a> {
    /// The word, unquoted.
    pub text: Cow<'a, [u8]>,
    /// Offset of its first byte, quote included.
    pub at: usize,
    /// Length with quotes.
    pub len: usize,
}

/// Splits on blanks; a word may be quoted; `\"` and `\\` unescape in quotes, `\\` also outside.
///
/// Source: httpd 2.4.71 `server/util.c`, `ap_getword_conf`.
#[derive(Clone, Debug)]
pub struct Words<'a> {
    args: &'a [u8],
    at: usize,
}

impl<'a> Words<'a> {
    /// Splits `args`.
    pub fn new(args: &'a [u8]) -> Words<'a> {
        Words { args, at: 0 }
    }

    /// What has not been split off yet, leading blanks skipped, and its offset.
    pub fn rest(&self) -> (&'a [u8], usize) {
        let at = skip_blanks(self.args, self.at);
        (&self.args[at..], at)
    }
}

impl<'a> Iterator for Words<'a> {
    type Item = Word<'a>;

    fn next(&mut self) -> Option<Word<'a>> {
        let start = skip_blanks(self.args, self.at);
        let rest = &self.args[start..];
        let quote = match rest.first()? {
            quote @ (b'"' | b'\'') => Some(*quote),
            _ => None,
        };
        let (inner, len) = match quote {
            None => {
                let end = blank_or(b' ', rest).unwrap_or(rest.len());
                (&rest[..end], end)
            }
            Some(quote) => {
                let end = closing_quote(&rest[1..], quote);
                (&rest[1..1 + end], (end + 2).min(rest.len()))
            }
        };
        self.at = start + len;
        Some(Word { text: unescape(inner, quote), at: start, len })
    }
}

/// Splits on blanks for `RewriteRule` and `RewriteCond`: a word may be quoted, a backslash keeps the
/// blank after it in the word, and nothing is unescaped. Behind a first word in quotes there is always a
/// second, which is empty at the end of the line.
///
/// Source: httpd 2.4.71 `modules/mappers/mod_rewrite.c`, `parseargline`.
#[derive(Clone, Debug)]
pub struct RawWords<'a> {
    args: &'a [u8],
    at: usize,
    /// Whether the first word has been read, and a quote has ended it.
    first_closed: bool,
}

impl<'a> RawWords<'a> {
    /// Splits `args`.
    pub fn new(args: &'a [u8]) -> RawWords<'a> {
        RawWords { args, at: 0, first_closed: false }
    }
}

impl<'a> Iterator for RawWords<'a> {
    type Item = Word<'a>;

    fn next(&mut self) -> Option<Word<'a>> {
        let is_first = self.at == 0;
        let start = skip_blanks(self.args, self.at);
        let quote = match self.args.get(start) {
            Some(quote @ (b'"' | b'\'')) => Some(*quote),
            Some(_) => None,
            None if self.first_closed => {
                self.first_closed = false;
                return Some(Word { text: Cow::Borrowed(b""), at: start, len: 0 });
            }
            None => return None,
        };
        let first = start + usize::from(quote.is_some());
        let mut end = first;
        loop {
            let rest = &self.args[end..];
            let stop = match quote {
                None => blank_or(b'\\', rest),
                Some(quote) => memchr::memchr2(quote, b'\\', rest),
            };
            end += stop.unwrap_or(rest.len());
            if self.args.get(end) != Some(&b'\\') {
                break;
            }
            let escaped = self.args.get(end + 1).is_some_and(|&next| is_blank(next));
            end += 1 + usize::from(escaped);
        }
        self.first_closed = is_first && quote.is_some() && end < self.args.len();
        self.at = (end + 1).min(self.args.len());
        let len = if quote.is_some() { self.at - start } else { end - start };
        Some(Word { text: Cow::Borrowed(&self.args[first..end]), at: start, len })
    }
}

fn skip_blanks(args: &[u8], at: usize) -> usize {
    at + args[at..].iter().take_while(|&&byte| is_blank(byte)).count()
}

/// Where the first blank stands, or the first `byte`. Words that are long are most of a list of rules.
fn blank_or(byte: u8, text: &[u8]) -> Option<usize> {
    let end = memchr::memchr3(b' ', b'\t', byte, text);
    // The other blanks are rare; without a way out the loop needs no branch for each byte.
    let before = &text[..end.unwrap_or(text.len())];
    if before.iter().fold(false, |found, &byte| found | is_blank(byte)) {
        return before.iter().position(|&byte| is_blank(byte));
    }
    end
}

/// Where the quote closes; the end of the text if it never does.
fn closing_quote(text: &[u8], quote: u8) -> usize {
    let mut at = 0;
    while at < text.len() && text[at] != quote {
        let escaped = text[at] == b'\\'
            && matches!(text.get(at + 1), Some(&next) if next == quote || next == b'\\');
        at += 1 + usize::from(escaped);
    }
    at.min(text.len())
}

fn unescape(text: &[u8], quote: Option<u8>) -> Cow<'_, [u8]> {
    if memchr::memchr(b'\\', text).is_none() {
        return Cow::Borrowed(text);
    }
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        if text[at] == b'\\'
            && matches!(text.get(at + 1), Some(&next) if next == b'\\' || Some(next) == quote)
        {
            at += 1;
        }
        out.push(text[at]);
        at += 1;
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_words() {
        words("a  b\tc", &["a", "b", "c"]);
        words(r#""a b" 'c"d'"#, &["a b", "c\"d"]);
        words(r#""a\"b\\c\d""#, &[r#"a"b\c\d"#]);
        words(r"a\\b\ c", &[r"a\b\", "c"]);
        words("a\x0bb\rc d", &["a", "b", "c", "d"]);
        words("\"open end", &["open end"]);
        words(r#""a"b"#, &["a", "b"]);
    }

    #[test]
    fn raw_words_keep_backslashes() {
        raw(r#""a""#, &["a", ""]);
        raw(r#"'' "#, &["", ""]);
        raw(r#""a" b"#, &["a", "b"]);
        raw(r#""a"#, &["a"]);
        raw(r"^a\ b$ x [L]", &[r"^a\ b$", "x", "[L]"]);
        raw(r#""a b" 'c d'"#, &["a b", "c d"]);
        raw("a\\ b\x0bc\\d \\\r e", &["a\\ b", "c\\d", "\\\r", "e"]);
        raw(r#""a\"b""#, &[r"a\", "b\""]);
    }

    #[track_caller]
    fn words(args: &str, expected: &[&str]) {
        texts(Words::new(args.as_bytes()), expected);
    }

    #[track_caller]
    fn raw(args: &str, expected: &[&str]) {
        texts(RawWords::new(args.as_bytes()), expected);
    }

    #[track_caller]
    fn texts<'a>(words: impl Iterator<Item = Word<'a>>, expected: &[&str]) {
        let texts: Vec<_> =
            words.map(|word| String::from_utf8(word.text.into_owned()).unwrap()).collect();
        assert_eq!(texts, expected);
    }
}
