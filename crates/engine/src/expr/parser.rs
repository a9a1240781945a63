//! Reads an expression into its tree.
//!
//! Source: httpd 2.4.71 `server/util_expr_parse.y`.

use milepost_pcre::Regex;

use super::Dialect;
use super::address::Network;
use super::error::{ParseError, ParseErrorKind};
use super::lexer::{Lexer, Piece, Token, Until, error};
use super::tree::{self, Check, Function, Matching, Operand, Test, Wildcard, Word};
use crate::pattern::Pattern;
use crate::pool::Pool;

/// Longest expression. Real ones have some hundred bytes; offsets in messages fit a `u32` many times over.
pub(super) const EXPRESSION_BYTES_MAX: usize = 1 << 20;

/// Deepest nesting of parentheses and function calls: each level is a few frames of the parser's stack.
/// httpd evaluates at most 20 levels.
pub(super) const NESTING_MAX: u32 = 200;

/// Reads a boolean expression.
pub(super) fn parse_condition(
    text: &[u8],
    dialect: Dialect,
    patterns: &mut Pool,
) -> Result<Test, ParseError> {
    check_length(text)?;
    let mut lexer = Lexer::new(text);
    let (at, token) = lexer.token()?;
    let mut parser = Parser { lexer, dialect, patterns, at, token, depth: 0 };
    let test = parser.any()?;
    match parser.token {
        Token::End => Ok(test),
        _ => Err(parser.unexpected("`&&`, `||` or the end")),
    }
}

/// Reads a string expression.
pub(super) fn parse_template(text: &[u8], dialect: Dialect) -> Result<Operand, ParseError> {
    check_length(text)?;
    let lexer = Lexer::new(text);
    let patterns = &mut Pool::default();
    let mut parser = Parser { lexer, dialect, patterns, at: 0, token: Token::End, depth: 0 };
    Ok(parser.text(Until::End)?.operand())
}

fn check_length(text: &[u8]) -> Result<(), ParseError> {
    if text.len() <= EXPRESSION_BYTES_MAX {
        return Ok(());
    }
    let more = text.len() - EXPRESSION_BYTES_MAX;
    Err(error(EXPRESSION_BYTES_MAX, more, ParseErrorKind::TooLong))
}

/// Reads with one token of look-ahead, which begins at `at`.
struct Parser<'t, 'p> {
    lexer: Lexer<'t>,
    dialect: Dialect,
    patterns: &'p mut Pool,
    at: usize,
    token: Token<'t>,
    depth: u32,
}

impl<'t> Parser<'t, '_> {
    /// `a || b`
    fn any(&mut self) -> Result<Test, ParseError> {
        let mut tests = vec![self.all()?];
        while self.token == Token::Or {
            self.advance()?;
            tests.push(self.all()?);
        }
        Ok(joined(tests, Test::Any))
    }

    /// `a && b`
    fn all(&mut self) -> Result<Test, ParseError> {
        let mut tests = vec![self.negation()?];
        while self.token == Token::And {
            self.advance()?;
            tests.push(self.negation()?);
        }
        Ok(joined(tests, Test::All))
    }

    /// `! a`
    fn negation(&mut self) -> Result<Test, ParseError> {
        let mut negated = false;
        while self.token == Token::Not {
            self.advance()?;
            negated = !negated;
        }
        let test = self.simple()?;
        Ok(if negated { Test::Not(Box::new(test)) } else { test })
    }

    fn simple(&mut self) -> Result<Test, ParseError> {
        match self.token {
            Token::True | Token::False => {
                let value = self.token == Token::True;
                self.advance()?;
                Ok(Test::Constant(value))
            }
            Token::Open => {
                self.enter()?;
                self.advance()?;
                let test = self.any()?;
                self.expect(Token::Close, "`)`, `&&` or `||`")?;
                self.depth -= 1;
                Ok(test)
            }
            Token::Unary(letter) => self.unary(letter),
            Token::Digits(_)
            | Token::Quote(_)
            | Token::Variable
            | Token::Group(_)
            | Token::Name(_) => self.comparison(),
            _ => Err(self.unexpected("a condition")),
        }
    }

    /// `-n a`
    fn unary(&mut self, letter: u8) -> Result<Test, ParseError> {
        let at = self.at;
        self.advance()?;
        let value_at = self.at;
        let value = self.value()?;
        if letter == b'R' {
            return Ok(Test::ClientIn(self.network("-R", value, value_at)?));
        }
        match Check::named(letter) {
            Some(check) => Ok(Test::Check(check, value.operand())),
            None => {
                let name = char::from(letter).to_string();
                Err(error(at, 2, ParseErrorKind::NoOperator(name)))
            }
        }
    }

    /// `a == b`
    fn comparison(&mut self) -> Result<Test, ParseError> {
        let left = self.value()?;
        let (at, token) = (self.at, self.token);
        match token {
            Token::Text(_)
            | Token::Integer(_)
            | Token::Matches { .. }
            | Token::In
            | Token::Binary(_) => self.advance()?,
            _ => return Err(self.unexpected("a comparison")),
        }
        match token {
            Token::Text(comparison) => {
                Ok(Test::Text(comparison, left.operand(), self.value()?.operand()))
            }
            Token::Integer(comparison) => {
                Ok(Test::Integer(comparison, left.operand(), self.value()?.operand()))
            }
            Token::Matches { negated } => {
                let pattern = Box::new(self.pattern()?);
                Ok(Test::Matches { value: left.operand(), pattern, negated })
            }
            Token::Binary(name) => self.binary(at, name, left),
            _ => Ok(Test::In(left.operand(), self.list()?)),
        }
    }

    /// `a -strmatch b`
    fn binary(&mut self, at: usize, name: &[u8], left: Value) -> Result<Test, ParseError> {
        use milepost_pcre::Case::{Insensitive, Sensitive};
        let right_at = self.at;
        let right = self.value()?;
        let wildcard = match name.to_ascii_lowercase().as_slice() {
            b"ipmatch" => {
                let network = self.network("-ipmatch", right, right_at)?;
                return Ok(Test::InNetwork(left.operand(), network));
            }
            b"strmatch" => Wildcard::Text(Sensitive),
            b"strcmatch" => Wildcard::Text(Insensitive),
            b"fnmatch" => Wildcard::Path,
            _ => {
                let shown = String::from_utf8_lossy(name).into_owned();
                return Err(error(at, 1 + name.len(), ParseErrorKind::NoOperator(shown)));
            }
        };
        Ok(Test::Wildcard(wildcard, left.operand(), right.operand()))
    }

    /// `/…/` or `m#…#`
    fn pattern(&mut self) -> Result<Matching, ParseError> {
        let Token::Pattern(text, at, case) = self.token else {
            return Err(self.unexpected("a regular expression, `/…/` or `m#…#`"));
        };
        let bad = |bad: milepost_pcre::CompileError| {
            let offset = bad.offset.min(text.len());
            error(at + offset, usize::from(offset < text.len()), ParseErrorKind::Pattern(bad))
        };
        let options = self.dialect.regex.with(case);
        let captures = Regex::without_jit(text, options).map_err(bad)?.groups() > 0;
        let stored = self.patterns.add(text);
        let (pattern, _) = Pattern::new(self.patterns, stored, options).map_err(bad)?;
        self.advance()?;
        Ok(Matching { pattern, captures })
    }

    /// `{a, b}`, or a function that returns a list, of which there is none.
    fn list(&mut self) -> Result<Box<[Operand]>, ParseError> {
        if let Token::Name(name) = self.token {
            let shown = String::from_utf8_lossy(name).into_owned();
            return Err(error(self.at, name.len(), ParseErrorKind::NoListFunction(shown)));
        }
        self.expect(Token::OpenBrace, "a list in braces, `{'a', 'b'}`")?;
        let mut values = vec![self.value()?.operand()];
        while self.token == Token::Comma {
            self.advance()?;
            values.push(self.value()?.operand());
        }
        self.expect(Token::CloseBrace, "`,` or `}`")?;
        Ok(values.into())
    }

    /// `a . b`
    fn value(&mut self) -> Result<Value, ParseError> {
        let mut values = vec![self.single_value()?];
        while self.token == Token::Dot {
            self.advance()?;
            values.push(self.single_value()?);
        }
        // httpd's grammar joins from the right.
        let last = values.pop().expect("a first value was pushed");
        Ok(values.into_iter().rev().fold(last, |right, left| left.join(right)))
    }

    fn single_value(&mut self) -> Result<Value, ParseError> {
        let value = match self.token {
            Token::Digits(digits) => Value::leaf(Word::Text(digits.into())),
            Token::Group(number) => Value::leaf(Word::Group(number)),
            Token::Variable => self.variable()?,
            Token::Quote(quote) => self.text(Until::Quote(quote))?,
            Token::Name(name) => {
                let at = self.at;
                self.enter()?;
                self.advance()?;
                self.expect(Token::Open, "`(`")?;
                let argument = self.value()?;
                if self.token != Token::Close {
                    return Err(self.unexpected("`)` or `.`"));
                }
                self.depth -= 1;
                self.call(at, name, argument)?
            }
            _ => {
                return Err(self
                    .unexpected("a value: a text in quotes, a number, a variable or a function"));
            }
        };
        self.advance()?;
        Ok(value)
    }

    /// `%{name}` or `%{function:argument}`, from the name on.
    fn variable(&mut self) -> Result<Value, ParseError> {
        let at = self.lexer.at;
        let name = self.lexer.name()?;
        if self.lexer.eat(b'}') {
            if let Some(variable) = tree::variable(name) {
                return Ok(Value::leaf(Word::Variable(variable)));
            }
            if self.dialect.tls && name.starts_with(b"SSL_") {
                let argument = Value::leaf(Word::Text(name.into()));
                let call = self.call(at, b"SSL", argument)?;
                return Ok(Value { depth: 1, ..call });
            }
            let shown = String::from_utf8_lossy(name).into_owned();
            return Err(error(at, name.len(), ParseErrorKind::NoVariable(shown)));
        }
        if !self.lexer.eat(b':') {
            return Err(self.lexer.unexpected("`}` or `:`"));
        }
        self.enter()?;
        let argument_at = self.lexer.at;
        let argument = self.text(Until::Brace)?;
        self.depth -= 1;
        if self.lexer.since(argument_at) == b"}" {
            let expected = "an argument";
            let found = "`}`".to_owned();
            return Err(error(argument_at, 1, ParseErrorKind::Expected { expected, found }));
        }
        self.call(at, name, argument)
    }

    fn call(&self, at: usize, name: &[u8], argument: Value) -> Result<Value, ParseError> {
        let function = Function::named(name).filter(|&function| {
            self.dialect.tls || function != Function::LookUp(super::Table::Tls)
        });
        let kind = match function {
            Some(Function::File) if self.dialect.restricted => ParseErrorKind::Restricted("file"),
            Some(Function::FileSize) if self.dialect.restricted => {
                ParseErrorKind::Restricted("filesize")
            }
            Some(function) => {
                let depth = argument.depth + 1;
                let word = Word::Call(function, Box::new(argument.word()));
                return Ok(Value { depth, ..Value::leaf(word) });
            }
            None => ParseErrorKind::NoFunction(String::from_utf8_lossy(name).into_owned()),
        };
        Err(error(at, name.len(), kind))
    }

    /// A text with variables, up to its end.
    fn text(&mut self, until: Until) -> Result<Value, ParseError> {
        let mut whole: Option<Value> = None;
        let mut ends_in_text = false;
        loop {
            let piece = self.lexer.piece(until)?;
            if piece == Piece::Ended {
                break;
            }
            ends_in_text = matches!(piece, Piece::Text(_));
            let value = match piece {
                Piece::Text(text) => Value::constant(text),
                Piece::Group(number) => Value::leaf(Word::Group(number)),
                Piece::Variable | Piece::Ended => self.variable()?,
            };
            whole = Some(match whole {
                Some(before) => before.join(value),
                None => value,
            });
        }
        Ok(match whole {
            None => Value::constant(Vec::new()),
            // To httpd the end of an expression is one more text, unless it ends one.
            Some(whole) if until == Until::End && !ends_in_text => {
                whole.join(Value { parts: Vec::new(), ..Value::constant(Vec::new()) })
            }
            Some(whole) => whole,
        })
    }

    /// The network that a constant text names.
    fn network(
        &self,
        operator: &'static str,
        value: Value,
        at: usize,
    ) -> Result<Network, ParseError> {
        let len = self.at.saturating_sub(at);
        match value.parts.as_slice() {
            [Word::Text(text)] if value.constant => Network::parse(text).ok_or_else(|| {
                let shown = String::from_utf8_lossy(text).into_owned();
                error(at, len, ParseErrorKind::NoNetwork(shown))
            }),
            _ => Err(error(at, len, ParseErrorKind::NotConstant(operator))),
        }
    }

    fn advance(&mut self) -> Result<(), ParseError> {
        (self.at, self.token) = self.lexer.token()?;
        Ok(())
    }

    fn expect(&mut self, token: Token<'_>, expected: &'static str) -> Result<(), ParseError> {
        if self.token != token {
            return Err(self.unexpected(expected));
        }
        self.advance()
    }

    fn enter(&mut self) -> Result<(), ParseError> {
        self.depth += 1;
        if self.depth > NESTING_MAX {
            return Err(error(self.at, 1, ParseErrorKind::TooDeep));
        }
        Ok(())
    }

    fn unexpected(&self, expected: &'static str) -> ParseError {
        let text = self.lexer.since(self.at);
        let found = match self.token {
            Token::End => "the end".to_owned(),
            _ => format!("`{}`", String::from_utf8_lossy(text)),
        };
        error(self.at, text.len(), ParseErrorKind::Expected { expected, found })
    }
}

/// Several tests in one, if there are several.
fn joined(mut tests: Vec<Test>, join: impl Fn(Box<[Test]>) -> Test) -> Test {
    if tests.len() == 1 { tests.remove(0) } else { join(tests.into()) }
}

/// A value while it is read.
///
/// httpd keeps what is joined as pairs and evaluates along one side of them without going deeper: the
/// left side if a pair stands there, else the right side. `depth` is how deep that goes.
struct Value {
    parts: Vec<Word>,
    depth: u32,
    /// If it is a pair: the deepest part when going along the left side, and along the right side.
    sides: Option<(u32, u32)>,
    /// A text in quotes with nothing to evaluate.
    constant: bool,
}

impl Value {
    fn leaf(word: Word) -> Value {
        Value { parts: vec![word], depth: 1, sides: None, constant: false }
    }

    fn constant(text: Vec<u8>) -> Value {
        Value { constant: true, ..Value::leaf(Word::Text(text.into())) }
    }

    fn join(mut self, right: Value) -> Value {
        let along_left = right.depth.max(self.sides.map_or(self.depth, |(left, _)| left));
        let along_right = self.depth.max(right.sides.map_or(right.depth, |(_, right)| right));
        let deepest = match (self.sides, right.sides) {
            (None, Some(_)) => along_right,
            _ => along_left,
        };
        self.parts.extend(right.parts);
        let sides = Some((along_left, along_right));
        Value { parts: self.parts, depth: 1 + deepest, sides, constant: false }
    }

    fn word(self) -> Word {
        let mut parts = self.parts;
        if parts.len() == 1 { parts.remove(0) } else { Word::Joined(parts.into()) }
    }

    fn operand(self) -> Operand {
        Operand { depth: self.depth, word: self.word() }
    }
}
