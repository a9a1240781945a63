//! Evaluates an expression for a request.
//!
//! Source: httpd 2.4.71 `server/util_expr_eval.c`.

use std::io::Write;
use std::path::Path;

use super::address::parse_address;
use super::error::EvalError;
use super::function;
use super::tree::{Check, Function, Matching, Operand, Test, Wildcard, Word};
use super::{Ahead, Capture, Context};
use crate::build::bytes_to_path;
use crate::outside::FileKind;
use crate::pool::Pool;
use crate::wildcard;

/// How many evaluations may stand open inside one another, `AP_EXPR_MAX_RECURSION`. Going on to the last
/// part of `||`, `&&` and `!` opens none.
const LEVEL_MAX: u32 = 20;

/// One evaluation.
pub(super) struct Evaluation<'e> {
    pub(super) context: &'e mut dyn Context,
    pub(super) capture: &'e mut Capture,
    pub(super) patterns: &'e Pool,
}

impl Evaluation<'_> {
    pub(super) fn condition(&mut self, test: &Test) -> Result<bool, EvalError> {
        self.test(test, 1)
    }

    pub(super) fn template(&mut self, text: &Operand, out: &mut Vec<u8>) -> Result<(), EvalError> {
        if text.depth > LEVEL_MAX {
            return Err(EvalError::TooDeep);
        }
        self.write(&text.word, out)
    }

    /// `level` is how many evaluations stand open, this one included.
    fn test(&mut self, mut test: &Test, level: u32) -> Result<bool, EvalError> {
        if level > LEVEL_MAX {
            return Err(EvalError::TooDeep);
        }
        let mut negated = false;
        let holds = loop {
            test = match test {
                Test::Not(inner) => {
                    negated = !negated;
                    inner
                }
                Test::Any(tests) => match self.until(true, tests, level)? {
                    Some(last) => last,
                    None => break true,
                },
                Test::All(tests) => match self.until(false, tests, level)? {
                    Some(last) => last,
                    None => break false,
                },
                test => break self.simple(test, level)?,
            }
        };
        Ok(holds != negated)
    }

    /// The last test, unless one before it comes out as `wanted`.
    fn until<'t>(
        &mut self,
        wanted: bool,
        tests: &'t [Test],
        level: u32,
    ) -> Result<Option<&'t Test>, EvalError> {
        let Some((last, tests)) = tests.split_last() else { return Ok(None) };
        for test in tests {
            if self.test(test, level + 1)? == wanted {
                return Ok(None);
            }
        }
        Ok(Some(last))
    }

    fn simple(&mut self, test: &Test, level: u32) -> Result<bool, EvalError> {
        match test {
            Test::Constant(value) => Ok(*value),
            Test::Text(comparison, left, right) => {
                let order = self.with_two(left, right, level, |_, left, right| left.cmp(right))?;
                Ok(comparison.fits(order))
            }
            Test::Integer(comparison, left, right) => {
                let compare = |left: &[u8], right: &[u8]| number(left).cmp(&number(right));
                let order =
                    self.with_two(left, right, level, |_, left, right| compare(left, right))?;
                Ok(comparison.fits(order))
            }
            Test::Matches { value, pattern, negated } => {
                let found = self.with(value, level, |this, value| this.matches(pattern, value))?;
                Ok(found != *negated)
            }
            Test::In(value, list) => {
                let mut wanted = self.context.take_buffer();
                let found = self.copy(value, level, &mut wanted).and_then(|()| {
                    for item in list {
                        if self.with(item, level, |_, item| item == wanted)? {
                            return Ok(true);
                        }
                    }
                    Ok(false)
                });
                self.context.put_buffer(wanted);
                found
            }
            Test::Check(check, value) => {
                self.with(value, level, |this, value| this.check(*check, value))
            }
            Test::Wildcard(kind, value, pattern) => {
                self.with_two(value, pattern, level, |_, value, pattern| match kind {
                    Wildcard::Text(case) => wildcard::matches_text(pattern, value, *case),
                    Wildcard::Path => wildcard::matches(pattern, value),
                })
            }
            Test::InNetwork(value, network) => self.with(value, level, |_, value| {
                parse_address(value).is_some_and(|address| network.contains(address))
            }),
            Test::ClientIn(network) => Ok(network.contains(self.context.client())),
            Test::Not(_) | Test::Any(_) | Test::All(_) => self.test(test, level),
        }
    }

    fn matches(&mut self, matching: &Matching, value: &[u8]) -> bool {
        // A pattern that runs into a limit does not match, as in httpd.
        let found = matching.pattern.find(self.patterns, value, self.context.matcher());
        let found = found.unwrap_or(None);
        if matching.captures {
            self.capture.subject.clear();
            self.capture.failed = found.is_none();
            if let Some(groups) = found {
                self.capture.groups = groups;
                self.capture.subject.extend_from_slice(value);
            }
        }
        found.is_some()
    }

    fn check(&mut self, check: Check, value: &[u8]) -> bool {
        let path = bytes_to_path(value);
        let outside = self.context.outside();
        match check {
            Check::NotEmpty => !value.is_empty(),
            Check::Empty => value.is_empty(),
            Check::Truth => is_truth(value),
            Check::Directory => outside.kind(path) == FileKind::Directory,
            Check::Exists => outside.kind(path) != FileKind::Missing,
            Check::File => matches!(outside.kind(path), FileKind::File(_)),
            Check::FilledFile => matches!(outside.kind(path), FileKind::File(1..)),
            Check::Link => outside.kind_of_link(path) == FileKind::Link,
            Check::Executable => outside.is_executable(path),
            Check::ReachableFile => self.context.is_reachable(Ahead::File, value),
            Check::ReachableUrl => self.context.is_reachable(Ahead::Url, value),
        }
    }

    /// Evaluates a value and gives it to `then`.
    fn with<T>(
        &mut self,
        operand: &Operand,
        level: u32,
        then: impl FnOnce(&mut Self, &[u8]) -> T,
    ) -> Result<T, EvalError> {
        if level + operand.depth > LEVEL_MAX {
            return Err(EvalError::TooDeep);
        }
        // What is written out needs no copy.
        if let Word::Text(text) = &operand.word {
            return Ok(then(self, text));
        }
        let mut buffer = self.context.take_buffer();
        let result = self.write(&operand.word, &mut buffer).map(|()| then(self, &buffer));
        self.context.put_buffer(buffer);
        result
    }

    fn with_two<T>(
        &mut self,
        left: &Operand,
        right: &Operand,
        level: u32,
        then: impl FnOnce(&mut Self, &[u8], &[u8]) -> T,
    ) -> Result<T, EvalError> {
        self.with(left, level, |this, left| {
            this.with(right, level, |this, right| then(this, left, right))
        })?
    }

    fn copy(&mut self, operand: &Operand, level: u32, out: &mut Vec<u8>) -> Result<(), EvalError> {
        self.with(operand, level, |_, value| out.extend_from_slice(value))
    }

    /// Appends a value. How deep it goes has been checked.
    fn write(&mut self, word: &Word, out: &mut Vec<u8>) -> Result<(), EvalError> {
        match word {
            Word::Text(text) => out.extend_from_slice(text),
            Word::Variable(name) => self.context.variable(name, out),
            Word::Group(number) => {
                out.extend_from_slice(self.capture.text(usize::from(*number)));
            }
            Word::Joined(words) => {
                for word in words {
                    self.write(word, out)?;
                }
            }
            Word::Call(function, argument) => {
                let mut buffer = self.context.take_buffer();
                let result = self
                    .write(argument, &mut buffer)
                    .and_then(|()| self.call(*function, &buffer, out));
                self.context.put_buffer(buffer);
                result?;
            }
        }
        Ok(())
    }

    fn call(
        &mut self,
        function: Function,
        argument: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), EvalError> {
        match function {
            Function::LookUp(table) => self.context.look_up(table, argument, out),
            Function::ToLower => out.extend(argument.iter().map(u8::to_ascii_lowercase)),
            Function::ToUpper => out.extend(argument.iter().map(u8::to_ascii_uppercase)),
            Function::Escape => milepost_http::path::escape(argument, out),
            Function::Unescape => function::unescape(argument, out),
            Function::Base64 => function::encode_base64(argument, out),
            Function::Unbase64 => function::decode_base64(argument, out),
            Function::Md5 => function::write_hex(&md5::compute(argument).0, out),
            Function::Sha1 => {
                let digest = sha1_smol::Sha1::from(argument).digest();
                function::write_hex(&digest.bytes(), out);
            }
            Function::Ldap => function::escape_ldap(argument, out),
            Function::File => self.file(bytes_to_path(argument), out)?,
            Function::FileSize => {
                let size = match self.context.outside().kind(bytes_to_path(argument)) {
                    FileKind::File(size) => size,
                    _ => 0,
                };
                write!(out, "{size}").expect("writing to memory succeeds");
            }
        }
        Ok(())
    }

    /// Appends the content of a file, up to its first zero byte.
    fn file(&self, path: &Path, out: &mut Vec<u8>) -> Result<(), EvalError> {
        /// Largest file, `MAX_FILE_SIZE`.
        const FILE_BYTES_MAX: u64 = 10 * 1024 * 1024;
        let outside = self.context.outside();
        match outside.kind(path) {
            FileKind::File(size) if size > FILE_BYTES_MAX => Err(EvalError::FileTooLarge),
            FileKind::File(0) | FileKind::Other => Ok(()),
            FileKind::File(_) => {
                let content = outside.read(path).map_err(|_| EvalError::Unreadable)?;
                let end = memchr::memchr(0, &content).unwrap_or(content.len());
                out.extend_from_slice(&content[..end]);
                Ok(())
            }
            FileKind::Missing | FileKind::Directory | FileKind::Link => Err(EvalError::Unreadable),
        }
    }
}

/// `-T`
fn is_truth(value: &[u8]) -> bool {
    let falsehoods: [&[u8]; 4] = [b"off", b"no", b"false", b"0"];
    !value.is_empty() && !falsehoods.iter().any(|word| value.eq_ignore_ascii_case(word))
}

/// The number that a text begins with, as `strtoll` reads it.
fn number(text: &[u8]) -> i64 {
    let is_space = |byte: &&u8| matches!(byte, b' ' | b'\t'..=b'\r');
    let text = &text[text.iter().take_while(is_space).count()..];
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    let digits = digits.iter().take_while(|byte| byte.is_ascii_digit());
    digits.fold(0_i64, |number, digit| {
        let digit = i64::from(digit - b'0');
        let number = number.saturating_mul(10);
        if negative { number.saturating_sub(digit) } else { number.saturating_add(digit) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_strtoll_does() {
        for (text, expected) in [
            ("10", 10),
            (" \t\x0b5x", 5),
            ("-5", -5),
            ("+5", 5),
            ("", 0),
            ("x", 0),
            ("-", 0),
            ("99999999999999999999", i64::MAX),
            ("-99999999999999999999", i64::MIN),
        ] {
            assert_eq!(number(text.as_bytes()), expected, "{text:?}");
        }
    }
}
