//! Apache's expression language: conditions (`<If>`, `RewriteCond expr`, `Require expr`) and texts with
//! variables in them (`Redirect` and `Alias` with one argument, `ErrorDocument`, `Header … expr=`).
//!
//! [`Condition::parse`] and [`Template::parse`] read the two forms once, while a configuration is loaded;
//! [`Condition::holds`] and [`Template::write`] evaluate them for a request, of which they know only what
//! their [`Context`] tells. An expression owns its text, so it can be kept anywhere.
//!
//! Source: httpd 2.4.71 `server/util_expr_scan.l`, `util_expr_parse.y`, `util_expr_eval.c`; where the manual
//! and the running server disagree, the server is right.

mod address;
mod error;
mod eval;
mod function;
mod lexer;
mod parser;
mod tree;

use std::net::IpAddr;

use milepost_pcre::{Captures, Matcher};

pub(crate) use error::{EvalError, ParseError};

use crate::outside::Outside;
use crate::pool::Pool;

/// An expression that is true or false.
#[derive(Debug)]
pub(crate) struct Condition {
    test: tree::Test,
    /// The texts of its regular expressions.
    patterns: Pool,
}

/// A text with variables in it.
#[derive(Debug)]
pub(crate) struct Template {
    text: tree::Operand,
}

/// What an expression may say where it stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Dialect {
    /// It stands in a `.htaccess` file, which may not read other files.
    pub(crate) restricted: bool,
    /// mod_ssl is loaded: there are `SSL_…` variables and the function `SSL`.
    pub(crate) tls: bool,
    /// What its regular expressions mean.
    pub(crate) regex: milepost_pcre::Options,
}

/// The string that a regular expression matched last, and where its groups are.
///
/// `$0` to `$9` of an expression are read from it and a match of a pattern with groups sets it, so that
/// one expression can go on with the groups of another. A match without groups leaves it alone.
#[derive(Debug, Default, Clone)]
pub(crate) struct Capture {
    /// Empty after a pattern with groups that did not match.
    pub(crate) subject: Vec<u8>,
    /// The groups of the last match, which may be one of another string.
    pub(crate) groups: Captures,
    /// Whether the last pattern with groups did not match.
    pub(crate) failed: bool,
}

impl Capture {
    /// What group `number` holds, as far as the string goes.
    pub(crate) fn text(&self, number: usize) -> &[u8] {
        self.groups.get(number).and_then(|span| self.subject.get(span)).unwrap_or_default()
    }
}

/// The request as expressions see it, and the buffers that they work with.
pub(crate) trait Context {
    /// Appends the value of a variable, which is one of [`tree::VARIABLES`]; nothing if it has none.
    fn variable(&mut self, name: &'static str, out: &mut Vec<u8>);

    /// Appends what `table` has for `name`; nothing if there is nothing.
    fn look_up(&mut self, table: Table, name: &[u8], out: &mut Vec<u8>);

    /// Whether a subrequest for `target` would be answered well: `-U`, `-F`.
    fn is_reachable(&mut self, ahead: Ahead, target: &[u8]) -> bool;

    /// The client's address: `-R`.
    fn client(&self) -> IpAddr;

    /// The file system: `-f` and its like, `file()`.
    fn outside(&self) -> &dyn Outside;

    fn matcher(&mut self) -> &mut Matcher;

    /// An empty buffer, to be given back.
    fn take_buffer(&mut self) -> Vec<u8>;

    fn put_buffer(&mut self, buffer: Vec<u8>);
}

/// Where a function looks a name up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Table {
    /// Fields of the request: `req`, `http`.
    Request,
    /// Fields of the request, of which `Vary` says nothing: `req_novary`.
    RequestUnseen,
    /// Fields of the response: `resp`.
    Response,
    /// What modules tell each other: `note`.
    Notes,
    /// Variables of the request alone: `reqenv`.
    Environment,
    /// Notes, variables of the request, then those of the process: `env`.
    AnyEnvironment,
    /// Variables of the process alone: `osenv`.
    Process,
    /// mod_ssl: `SSL`, `%{SSL_…}`.
    Tls,
}

/// What a subrequest is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ahead {
    /// `-U`, `-A`
    Url,
    /// `-F`
    File,
}

impl Condition {
    /// Parses a condition.
    ///
    /// # Errors
    /// [`ParseError`], with the byte where the text goes wrong.
    pub(crate) fn parse(text: &[u8], dialect: Dialect) -> Result<Condition, ParseError> {
        let mut patterns = Pool::default();
        let test = parser::parse_condition(text, dialect, &mut patterns)?;
        Ok(Condition { test, patterns })
    }

    /// Whether it holds. `capture` is what `$0` to `$9` say at the start, and afterwards the groups of
    /// the last regular expression that has any.
    ///
    /// # Errors
    /// [`EvalError`], as httpd gives up: such a condition counts as one that does not hold.
    pub(crate) fn holds(
        &self,
        context: &mut dyn Context,
        capture: &mut Capture,
    ) -> Result<bool, EvalError> {
        eval::Evaluation { context, capture, patterns: &self.patterns }.condition(&self.test)
    }
}

impl Template {
    /// Parses a text with variables.
    ///
    /// # Errors
    /// [`ParseError`], with the byte where the text goes wrong.
    pub(crate) fn parse(text: &[u8], dialect: Dialect) -> Result<Template, ParseError> {
        Ok(Template { text: parser::parse_template(text, dialect)? })
    }

    /// Appends the text, variables replaced.
    ///
    /// # Errors
    /// [`EvalError`]; `out` then holds part of the text.
    pub(crate) fn write(
        &self,
        context: &mut dyn Context,
        out: &mut Vec<u8>,
    ) -> Result<(), EvalError> {
        // A text has no regular expression, so its `$0` to `$9` are empty.
        self.write_with(context, &mut Capture::default(), out)
    }

    /// As [`Template::write`], where `$0` to `$9` are the groups of a match.
    ///
    /// # Errors
    /// [`EvalError`]; `out` then holds part of the text.
    pub(crate) fn write_with(
        &self,
        context: &mut dyn Context,
        capture: &mut Capture,
        out: &mut Vec<u8>,
    ) -> Result<(), EvalError> {
        eval::Evaluation { context, capture, patterns: &Pool::default() }.template(&self.text, out)
    }
}

#[cfg(test)]
mod tests;
