//! `Header` and `RequestHeader`.
//!
//! Source: httpd 2.4.71 `modules/metadata/mod_headers.c`, `header_cmd`, `header_inout_cmd`,
//! `parse_format_tag`, `parse_misc_string`.

use milepost_pcre::Case;
use milepost_syntax::Word;

use super::report::{Finding, show};
use super::{Builder, Context, Directive};
use crate::expr::{Condition, Template};
use crate::pattern::Pattern;
use crate::program::{
    Action, Edit, EditCondition, EditList, Edits, Part, Piece, Replacement, Value,
};

/// Changes of one section while they are collected.
#[derive(Default)]
pub(super) struct EditDraft {
    request: EditList,
    success: EditList,
    always: EditList,
}

/// Which fields a directive changes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fields {
    Request,
    Success,
    Always,
}

/// What a directive says, before its value is understood.
struct Written<'w, 'd> {
    name: &'w Word<'d>,
    value: Option<&'w Word<'d>>,
    /// What `edit` puts in place of a match.
    by: Option<&'w Word<'d>>,
    /// `early`, `env=`, `expr=`.
    condition: Option<&'w Word<'d>>,
}

/// What makes a word an expression.
const EXPRESSION: &[u8] = b"expr=";

const ACTIONS: &str =
    "set, setifempty, append, merge, add, unset, edit, edit*, note and echo are the actions";

impl Builder<'_> {
    /// `Header [always|onsuccess] action name …`
    pub(super) fn header(&mut self, directive: &Directive<'_>, context: &mut Context<'_>) {
        let words = directive.words();
        let is = |word: Option<&Word<'_>>, name: &[u8]| {
            word.is_some_and(|word| word.text.eq_ignore_ascii_case(name))
        };
        if is(words.first(), b"always") {
            self.edit(directive, Fields::Always, &words[1..], context);
        } else if is(words.first(), b"onsuccess") {
            self.edit(directive, Fields::Success, &words[1..], context);
        } else {
            self.edit(directive, Fields::Success, &words, context);
        }
    }

    /// `RequestHeader action name …`
    pub(super) fn request_header(&mut self, directive: &Directive<'_>, context: &mut Context<'_>) {
        let words = directive.words();
        self.edit(directive, Fields::Request, &words, context);
    }

    fn edit(
        &mut self,
        directive: &Directive<'_>,
        fields: Fields,
        words: &[Word<'_>],
        context: &mut Context<'_>,
    ) {
        let Some((action, rest)) = words.split_first() else {
            return self.report(directive, Finding::error("the action is missing").hint(ACTIONS));
        };
        let [name, rest @ ..] = rest else {
            return self.report(directive, Finding::error("the name of the field is missing"));
        };
        let written =
            Written { name, value: rest.first(), by: rest.get(1), condition: rest.get(2) };
        if let Some(extra) = rest.get(3) {
            let finding =
                Finding::error(format!("{} has too many arguments", show(directive.name)));
            return self.report_at(directive, extra.at, extra.len, finding);
        }
        let Some((action, condition)) = self.action(directive, fields, action, &written) else {
            return;
        };
        let condition = match condition {
            None => EditCondition::Always,
            Some(word) => match self.edit_condition(directive, word) {
                Some(condition) => condition,
                None => return,
            },
        };
        let end = memchr::memchr(b':', &name.text).unwrap_or(name.text.len());
        let name = self.pool.add(&name.text[..end]);
        let draft = &mut context.dir.edits;
        let list = match fields {
            Fields::Request => &mut draft.request,
            Fields::Success => &mut draft.success,
            Fields::Always => &mut draft.always,
        };
        list.edits.push(Edit { name, action, condition });
    }

    /// The action, and the word that is its condition.
    fn action<'w, 'd>(
        &mut self,
        directive: &Directive<'_>,
        fields: Fields,
        action: &Word<'_>,
        written: &Written<'w, 'd>,
    ) -> Option<(Action, Option<&'w Word<'d>>)> {
        let lower = action.text.to_ascii_lowercase();
        let too_many = match (lower.as_slice(), written.condition) {
            (b"edit" | b"edit*", _) => None,
            (b"unset" | b"echo", extra) => extra.or(written.by),
            (_, extra) => extra,
        };
        if let Some(extra) = too_many {
            let message = format!("{} takes fewer arguments", show(&action.text));
            self.report_at(directive, extra.at, extra.len, Finding::error(message));
            return None;
        }
        let of_value = |make: fn(Value) -> Action| make;
        let make = match lower.as_slice() {
            b"unset" => return Some((Action::Unset, written.value)),
            b"echo" if fields == Fields::Request => {
                let finding = Finding::error("`RequestHeader` has nothing to echo")
                    .hint("write `Header echo pattern`");
                self.report_at(directive, action.at, action.len, finding);
                return None;
            }
            b"echo" => {
                let pattern = self.pattern(directive, written.name)?;
                return Some((Action::Echo(pattern), written.value));
            }
            b"edit" | b"edit*" => {
                let (Some(value), Some(by)) = (written.value, written.by) else {
                    let message = format!("{} needs a pattern and a replacement", show(&lower));
                    self.report(directive, Finding::error(message));
                    return None;
                };
                let pattern = self.pattern(directive, value)?;
                let by = match expression_in(by) {
                    Some(expression) => {
                        Replacement::Expression(self.text_of(directive, &expression)?)
                    }
                    None => Replacement::Text(self.word(directive, by)),
                };
                let all = lower.ends_with(b"*");
                return Some((Action::Replace { pattern, by, all }, written.condition));
            }
            b"note" if fields == Fields::Request => {
                let finding = Finding::error("`RequestHeader` makes no notes");
                self.report_at(directive, action.at, action.len, finding);
                return None;
            }
            b"set" => of_value(Action::Set),
            b"setifempty" => Action::SetIfEmpty,
            b"add" => Action::Add,
            b"append" => Action::Append,
            b"merge" => Action::Merge,
            b"note" => Action::Note,
            _ => {
                let finding =
                    Finding::error(format!("unknown action {}", show(&action.text))).hint(ACTIONS);
                self.report_at(directive, action.at, action.len, finding);
                return None;
            }
        };
        let Some(value) = written.value else {
            let message = format!("{} needs a value after the name", show(&action.text));
            self.report(directive, Finding::error(message));
            return None;
        };
        Some((make(self.value(directive, value)?), written.by))
    }

    fn pattern(&mut self, directive: &Directive<'_>, word: &Word<'_>) -> Option<Box<Pattern>> {
        let text = self.word(directive, word);
        match self.new_pattern(text, Case::Sensitive) {
            Ok((pattern, _)) => Some(Box::new(pattern)),
            Err(error) => {
                self.bad_pattern(directive, word, &error);
                None
            }
        }
    }

    fn edit_condition(
        &mut self,
        directive: &Directive<'_>,
        word: &Word<'_>,
    ) -> Option<EditCondition> {
        let text = &word.text;
        let starts = |with: &[u8]| {
            text.get(..with.len()).is_some_and(|start| start.eq_ignore_ascii_case(with))
        };
        if text.eq_ignore_ascii_case(b"early") {
            return Some(EditCondition::Early);
        }
        if starts(b"env=") {
            let (set, name) = match &text[4..] {
                [b'!', name @ ..] => (false, name),
                name => (true, name),
            };
            if name.is_empty() {
                let finding = Finding::error("the variable is missing after `env=`");
                self.report_at(directive, word.at, word.len, finding);
                return None;
            }
            return Some(EditCondition::Env { name: self.pool.add(name), set });
        }
        if let Some(expression) = expression_in(word) {
            return match Condition::parse(expression.text, self.dialect()) {
                Ok(condition) => Some(EditCondition::Expression(condition)),
                Err(error) => {
                    self.bad_expression(directive, word, EXPRESSION.len(), &error);
                    None
                }
            };
        }
        let finding = Finding::error(format!("unknown condition {}", show(text)))
            .hint("`early`, `env=NAME`, `env=!NAME` or `expr=…`; quote a value that has blanks");
        self.report_at(directive, word.at, word.len, finding);
        None
    }

    /// The text with variables that follows `expr=`.
    fn text_of(
        &mut self,
        directive: &Directive<'_>,
        expression: &Expression<'_, '_>,
    ) -> Option<Template> {
        match Template::parse(expression.text, self.dialect()) {
            Ok(template) => Some(template),
            Err(error) => {
                self.bad_expression(directive, expression.word, EXPRESSION.len(), &error);
                None
            }
        }
    }

    /// The pieces of a value.
    fn value(&mut self, directive: &Directive<'_>, word: &Word<'_>) -> Option<Value> {
        if let Some(expression) = expression_in(word) {
            return self.text_of(directive, &expression).map(Value::Expression);
        }
        let mut pieces = Vec::new();
        let mut rest = &word.text[..];
        while !rest.is_empty() {
            let piece = match rest {
                [b'%', b'%', after @ ..] => {
                    rest = after;
                    Piece::Text(self.pool.add(b"%"))
                }
                [b'%'] => {
                    rest = b"";
                    Piece::Text(self.pool.add(b"%"))
                }
                [b'%', after @ ..] => {
                    let (argument, after) = braced(after);
                    let (kind, after) =
                        after.split_first().map_or((None, after), |(k, a)| (Some(k), a));
                    rest = after;
                    match kind {
                        Some(b'e') => Piece::Env(self.pool.add(argument)),
                        Some(b's') => Piece::Tls(self.pool.add(argument)),
                        Some(b't') => Piece::Time,
                        Some(b'D' | b'l' | b'i' | b'b') => {
                            let finding = Finding::warning(
                                "durations and loads are not done in `Header`, and left out",
                            )
                            .hint(
                                "a decision takes no time, and is made before there is a response",
                            );
                            self.report_at(directive, word.at, word.len, finding);
                            Piece::Text(self.pool.add(b""))
                        }
                        kind => {
                            let kind = kind.map(std::slice::from_ref).unwrap_or_default();
                            let finding = Finding::error(format!(
                                "unknown format `%{}`",
                                String::from_utf8_lossy(kind)
                            ))
                            .hint("`%{NAME}e`, `%t`, `%{NAME}s`; a plain percent sign is `%%`");
                            self.report_at(directive, word.at, word.len, finding);
                            return None;
                        }
                    }
                }
                text => {
                    let end = memchr::memchr(b'%', text).unwrap_or(text.len());
                    rest = &text[end..];
                    Piece::Text(self.pool.add(&unescape(&text[..end])))
                }
            };
            pieces.push(piece);
        }
        Some(Value::Pieces(pieces))
    }
}

impl EditDraft {
    pub(super) fn finish(self) -> Edits {
        let part = |list: EditList| (!list.edits.is_empty()).then(|| Part::new(list)).into_iter();
        Edits {
            request: part(self.request).collect(),
            success: part(self.success).collect(),
            always: part(self.always).collect(),
        }
    }
}

/// An expression within a word.
struct Expression<'w, 'd> {
    word: &'w Word<'d>,
    text: &'w [u8],
}

/// The expression, if the word is one.
fn expression_in<'w, 'd>(word: &'w Word<'d>) -> Option<Expression<'w, 'd>> {
    let (start, text) = word.text.split_at_checked(EXPRESSION.len())?;
    start.eq_ignore_ascii_case(EXPRESSION).then_some(Expression { word, text })
}

/// Splits `{argument}` off; a brace that is not closed takes everything.
fn braced(text: &[u8]) -> (&[u8], &[u8]) {
    let Some(inner) = text.strip_prefix(b"{") else { return (b"", text) };
    match memchr::memchr(b'}', inner) {
        Some(end) => (&inner[..end], &inner[end + 1..]),
        None => (inner, b""),
    }
}

/// `\\`, `\r`, `\n` and `\t`; any other backslash stays.
fn unescape(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        let escaped = match (byte, after.first()) {
            (b'\\', Some(b'\\')) => Some(b'\\'),
            (b'\\', Some(b'r')) => Some(b'\r'),
            (b'\\', Some(b'n')) => Some(b'\n'),
            (b'\\', Some(b't')) => Some(b'\t'),
            _ => None,
        };
        out.push(escaped.unwrap_or(byte));
        rest = if escaped.is_some() { &after[1..] } else { after };
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backslashes_in_values() {
        assert_eq!(unescape(br"a\tb\\c\qd\"), b"a\tb\\c\\qd\\");
        assert_eq!(braced(b"{A}e x"), (&b"A"[..], &b"e x"[..]));
        assert_eq!(braced(b"{A"), (&b"A"[..], &b""[..]));
    }
}
