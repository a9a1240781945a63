//! What can be wrong with an expression: while it is read, with the byte and what was expected there, and
//! while it is evaluated.

use milepost_pcre::CompileError;

use super::lexer::TEXT_BYTES_MAX;
use super::parser::{EXPRESSION_BYTES_MAX, NESTING_MAX};

/// An expression that cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind}")]
pub(crate) struct ParseError {
    /// Where it goes wrong, in bytes from the start of the expression.
    pub(crate) at: usize,
    /// How many bytes are wrong there; 0 at the end.
    pub(crate) len: usize,
    pub(crate) kind: ParseErrorKind,
}

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum ParseErrorKind {
    #[error("expected {expected}, found {found}")]
    Expected { expected: &'static str, found: String },
    #[error("{0} is not ended")]
    Unended(&'static str),
    #[error("a text ends on the line on which it begins")]
    LineEnd,
    #[error("a quote in the argument of a function needs a backslash")]
    QuoteInArgument,
    #[error("nothing follows the backslash")]
    LoneBackslash,
    #[error("`{0}` is no byte: escapes go from `\\0` to `\\377`")]
    BadEscape(String),
    #[error("a text or a pattern in an expression has at most {TEXT_BYTES_MAX} bytes")]
    TextTooLong,
    #[error("an expression has at most {EXPRESSION_BYTES_MAX} bytes")]
    TooLong,
    #[error("nested more than {NESTING_MAX} deep")]
    TooDeep,
    #[error("there is no variable `{0}`")]
    NoVariable(String),
    #[error("there is no function `{0}`")]
    NoFunction(String),
    #[error("there is no function `{0}` that returns a list")]
    NoListFunction(String),
    #[error("there is no operator `-{0}`")]
    NoOperator(String),
    #[error("`{0}` may not be used in a `.htaccess` file")]
    Restricted(&'static str),
    #[error("`{0}` needs an address that is written out in quotes")]
    NotConstant(&'static str),
    #[error("`{0}` is no address and no network")]
    NoNetwork(String),
    #[error("not a regular expression: {0}")]
    Pattern(CompileError),
}

/// An expression that could not be evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum EvalError {
    /// More evaluations inside one another than httpd allows.
    #[error("nested too deep")]
    TooDeep,
    /// `file()` of something that cannot be read.
    #[error("the file cannot be read")]
    Unreadable,
    /// `file()` of a large file.
    #[error("the file is too large")]
    FileTooLarge,
}

impl ParseError {
    /// What to write instead, where that is known.
    pub(crate) fn hint(&self) -> Option<String> {
        Some(match &self.kind {
            ParseErrorKind::Expected { found, .. } if is_upper_operator(found) => {
                format!("operators are in lower case: {}", found.to_ascii_lowercase())
            }
            ParseErrorKind::Expected { expected: "`(`", found } => {
                format!("quote a text; {found} follows the name of a function")
            }
            ParseErrorKind::NoVariable(name) => {
                match name.to_ascii_uppercase().strip_prefix("HTTP_") {
                    Some(field) => {
                        format!(
                            "write `%{{HTTP:{}}}` for a field of the request",
                            field.replace('_', "-")
                        )
                    }
                    None => format!("write `%{{env:{name}}}` for an environment variable"),
                }
            }
            ParseErrorKind::LoneBackslash => "write `\\\\` for a backslash".to_owned(),
            ParseErrorKind::NoNetwork(_) => {
                "write an address, `address/bits`, `address/mask` or the first numbers of one"
                    .to_owned()
            }
            _ => return None,
        })
    }
}

/// Whether what was found is `AND` and the like: a slip, for names of variables may be in any case.
fn is_upper_operator(found: &str) -> bool {
    let word = found.trim_matches('`');
    let operators = ["and", "or", "not", "in", "eq", "ne", "lt", "le", "gt", "ge", "true", "false"];
    operators.iter().any(|operator| operator.eq_ignore_ascii_case(word) && *operator != word)
}
