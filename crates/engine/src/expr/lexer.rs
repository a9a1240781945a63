//! Splits an expression into tokens, and reads the texts in it.
//!
//! The longest token wins, as everywhere in lex: `-eq` is an operator and `-eqx` another one, `m_` begins
//! a regular expression and `m_x` is a name.
//!
//! Source: httpd 2.4.71 `server/util_expr_scan.l`.

use milepost_pcre::Case;

use super::error::{ParseError, ParseErrorKind};
use crate::program::Comparison;

/// Longest piece of text between two variables and longest regular expression: httpd's buffer is
/// `MAX_STRING_LEN`, one byte of which stays free.
pub(super) const TEXT_BYTES_MAX: usize = 8191;

/// What may stand after `m` to begin a regular expression.
const PATTERN_MARKS: &[u8] = b"/#$%^,;:_?|-!.'\"";

/// A token. Texts and variables are announced only: [`Lexer::piece`] and [`Lexer::name`] read on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token<'t> {
    True,
    False,
    And,
    Or,
    Not,
    Text(Comparison),
    Integer(Comparison),
    Matches {
        negated: bool,
    },
    In,
    Dot,
    Unary(u8),
    Binary(&'t [u8]),
    Digits(&'t [u8]),
    Name(&'t [u8]),
    Group(u8),
    /// The quote that begins a text.
    Quote(u8),
    /// `%{`
    Variable,
    /// A regular expression, the offset of its first byte, and its flag.
    Pattern(&'t [u8], usize, Case),
    Open,
    Close,
    OpenBrace,
    CloseBrace,
    Comma,
    End,
}

/// Where a text ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Until {
    /// At the end of the expression.
    End,
    /// At this quote.
    Quote(u8),
    /// At the brace that closes a variable.
    Brace,
}

/// A piece of a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Text(Vec<u8>),
    Group(u8),
    /// `%{`
    Variable,
    /// The text has ended, its quote or brace eaten.
    Ended,
}

/// Reads an expression from the front.
#[derive(Debug)]
pub(super) struct Lexer<'t> {
    text: &'t [u8],
    pub(super) at: usize,
}

impl<'t> Lexer<'t> {
    pub(super) fn new(text: &'t [u8]) -> Lexer<'t> {
        Lexer { text, at: 0 }
    }

    /// What stands from `at` to where it reads on.
    pub(super) fn since(&self, at: usize) -> &'t [u8] {
        &self.text[at..self.at]
    }

    /// Reads a token, and returns where it begins.
    pub(super) fn token(&mut self) -> Result<(usize, Token<'t>), ParseError> {
        while matches!(self.text.get(self.at), Some(b' ' | b'\t' | b'\n')) {
            self.at += 1;
        }
        let start = self.at;
        let rest = &self.text[start..];
        let (len, token) = match rest {
            [] => (0, Token::End),
            [b'=', b'~', ..] => (2, Token::Matches { negated: false }),
            [b'=', b'=', ..] => (2, Token::Text(Comparison::Equal)),
            [b'=', ..] => (1, Token::Text(Comparison::Equal)),
            [b'!', b'=', ..] => (2, Token::Text(Comparison::NotEqual)),
            [b'!', b'~', ..] => (2, Token::Matches { negated: true }),
            [b'!', ..] => (1, Token::Not),
            [b'<', b'=', ..] => (2, Token::Text(Comparison::LessOrEqual)),
            [b'<', ..] => (1, Token::Text(Comparison::Less)),
            [b'>', b'=', ..] => (2, Token::Text(Comparison::GreaterOrEqual)),
            [b'>', ..] => (1, Token::Text(Comparison::Greater)),
            [b'&', b'&', ..] => (2, Token::And),
            [b'|', b'|', ..] => (2, Token::Or),
            [b'.', ..] => (1, Token::Dot),
            [b'(', ..] => (1, Token::Open),
            [b')', ..] => (1, Token::Close),
            [b'{', ..] => (1, Token::OpenBrace),
            [b'}', ..] => (1, Token::CloseBrace),
            [b',', ..] => (1, Token::Comma),
            [quote @ (b'"' | b'\''), ..] => (1, Token::Quote(*quote)),
            [b'%', b'{', ..] => (2, Token::Variable),
            [b'$', digit @ b'0'..=b'9', ..] => (2, Token::Group(digit - b'0')),
            [b'/', ..] => return self.pattern(start, 1),
            [b'-', b'0'..=b'9', ..] => {
                let len = 1 + run(&rest[1..], |byte| byte.is_ascii_digit());
                (len, Token::Digits(&rest[..len]))
            }
            [b'-', first, ..] if first.is_ascii_alphabetic() || *first == b'_' => {
                let len = 1 + run(&rest[1..], is_name_byte);
                (len, operator(&rest[1..len]))
            }
            [b'0'..=b'9', ..] => {
                let len = run(rest, |byte| byte.is_ascii_digit());
                (len, Token::Digits(&rest[..len]))
            }
            [first, ..] if first.is_ascii_alphabetic() => {
                let len = run(rest, is_name_byte);
                match rest {
                    [b'm', mark, ..] if len <= 2 && PATTERN_MARKS.contains(mark) => {
                        return self.pattern(start, 2);
                    }
                    _ => (len, word(&rest[..len])),
                }
            }
            _ => {
                let expected = "an operator, a text in quotes, a variable or a function";
                let found = format!("`{}`", rest[0].escape_ascii());
                return Err(error(start, 1, ParseErrorKind::Expected { expected, found }));
            }
        };
        self.at = start + len;
        Ok((start, token))
    }

    /// Reads the name in `%{name…}`.
    pub(super) fn name(&mut self) -> Result<&'t [u8], ParseError> {
        let rest = &self.text[self.at..];
        let len = run(rest, is_name_byte);
        if !rest.first().is_some_and(u8::is_ascii_alphabetic) {
            return Err(self.unexpected("the name of a variable or function"));
        }
        self.at += len;
        Ok(&rest[..len])
    }

    /// Reads on if `byte` is next.
    pub(super) fn eat(&mut self, byte: u8) -> bool {
        let is_next = self.text.get(self.at) == Some(&byte);
        self.at += usize::from(is_next);
        is_next
    }

    /// The error that something else is expected where it reads on.
    pub(super) fn unexpected(&self, expected: &'static str) -> ParseError {
        let kind = match self.text.get(self.at) {
            None => ParseErrorKind::Expected { expected, found: "the end".to_owned() },
            Some(byte) => {
                let found = format!("`{}`", byte.escape_ascii());
                ParseErrorKind::Expected { expected, found }
            }
        };
        error(self.at, usize::from(self.at < self.text.len()), kind)
    }

    /// Reads a piece of a text.
    pub(super) fn piece(&mut self, until: Until) -> Result<Piece, ParseError> {
        let mut piece = Vec::new();
        let start = self.at;
        loop {
            let rest = &self.text[self.at..];
            let ends = match (rest, until) {
                ([], Until::End) => true,
                ([], Until::Quote(_)) => {
                    return Err(error(self.at, 0, ParseErrorKind::Unended("the text")));
                }
                ([], Until::Brace) => {
                    return Err(error(self.at, 0, ParseErrorKind::Unended("the variable")));
                }
                ([byte, ..], Until::Quote(quote)) => *byte == quote,
                ([byte, ..], Until::Brace) => *byte == b'}',
                (_, Until::End) => false,
            };
            let special = match rest {
                [b'$', digit @ b'0'..=b'9', ..] => Some((2, Piece::Group(digit - b'0'))),
                [b'%', b'{', ..] => Some((2, Piece::Variable)),
                _ if ends => Some((rest.len().min(1), Piece::Ended)),
                _ => None,
            };
            if let Some((len, special)) = special {
                if self.at == start {
                    self.at += len;
                    return Ok(special);
                }
                // httpd's texts end at a zero byte.
                let end = memchr::memchr(0, &piece).unwrap_or(piece.len());
                piece.truncate(end);
                return Ok(Piece::Text(piece));
            }
            match rest[0] {
                b'\\' => self.escape(&mut piece)?,
                b'\n' => return Err(error(self.at, 1, ParseErrorKind::LineEnd)),
                b'"' | b'\'' if until == Until::Brace => {
                    return Err(error(self.at, 1, ParseErrorKind::QuoteInArgument));
                }
                byte => {
                    piece.push(byte);
                    self.at += 1;
                }
            }
            if piece.len() > TEXT_BYTES_MAX {
                return Err(error(start, self.at - start, ParseErrorKind::TextTooLong));
            }
        }
    }

    /// Reads a backslash and what it stands for.
    fn escape(&mut self, piece: &mut Vec<u8>) -> Result<(), ParseError> {
        let rest = &self.text[self.at + 1..];
        let digits = run(rest, |byte| byte.is_ascii_digit());
        let (len, byte) = match rest {
            [] => return Err(error(self.at, 1, ParseErrorKind::LoneBackslash)),
            [b'0'..=b'9', ..] => {
                let octal = std::str::from_utf8(&rest[..digits])
                    .ok()
                    .filter(|digits| digits.len() <= 3)
                    .and_then(|digits| u8::from_str_radix(digits, 8).ok());
                match octal {
                    Some(byte) => (digits, byte),
                    None => {
                        let escape = String::from_utf8_lossy(&self.text[self.at..][..=digits]);
                        let kind = ParseErrorKind::BadEscape(escape.into_owned());
                        return Err(error(self.at, 1 + digits, kind));
                    }
                }
            }
            [b'n', ..] => (1, b'\n'),
            [b'r', ..] => (1, b'\r'),
            [b't', ..] => (1, b'\t'),
            [b'b', ..] => (1, 0x08),
            [b'f', ..] => (1, 0x0c),
            [byte, ..] => (1, *byte),
        };
        piece.push(byte);
        self.at += 1 + len;
        Ok(())
    }

    /// Reads a regular expression whose mark is the last of the `before` bytes at `start`.
    fn pattern(&mut self, start: usize, before: usize) -> Result<(usize, Token<'t>), ParseError> {
        let first = start + before;
        let rest = &self.text[first..];
        let Some(len) = memchr::memchr(self.text[first - 1], rest) else {
            return Err(error(start, before, ParseErrorKind::Unended("the regular expression")));
        };
        if len > TEXT_BYTES_MAX {
            return Err(error(first, len, ParseErrorKind::TextTooLong));
        }
        self.at = first + len + 1;
        let case = if self.eat(b'i') { Case::Insensitive } else { Case::Sensitive };
        Ok((start, Token::Pattern(&rest[..len], first, case)))
    }
}

/// Makes an error about `len` bytes at `at`.
pub(super) fn error(at: usize, len: usize, kind: ParseErrorKind) -> ParseError {
    ParseError { at, len, kind }
}

/// How many bytes from the front are so.
fn run(text: &[u8], is: impl Fn(u8) -> bool) -> usize {
    text.iter().take_while(|&&byte| is(byte)).count()
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// What `-name` is.
fn operator(name: &[u8]) -> Token<'_> {
    match (name, comparison(name)) {
        (_, Some(comparison)) => Token::Integer(comparison),
        (b"in", None) => Token::In,
        ([letter], None) => Token::Unary(*letter),
        (name, None) => Token::Binary(name),
    }
}

/// What a bare word is.
fn word(word: &[u8]) -> Token<'_> {
    match (word, comparison(word)) {
        (_, Some(comparison)) => Token::Integer(comparison),
        (b"true", _) => Token::True,
        (b"false", _) => Token::False,
        (b"and", _) => Token::And,
        (b"or", _) => Token::Or,
        (b"not", _) => Token::Not,
        (b"in", _) => Token::In,
        (name, None) => Token::Name(name),
    }
}

fn comparison(name: &[u8]) -> Option<Comparison> {
    Some(match name {
        b"eq" => Comparison::Equal,
        b"ne" => Comparison::NotEqual,
        b"lt" => Comparison::Less,
        b"le" => Comparison::LessOrEqual,
        b"gt" => Comparison::Greater,
        b"ge" => Comparison::GreaterOrEqual,
        _ => return None,
    })
}
