//! `SetEnvIf`, `SetEnvIfNoCase`, `BrowserMatch`, `SetEnv`, `PassEnv`, `UnsetEnv`.
//!
//! Source: httpd 2.4.71 `modules/metadata/mod_setenvif.c`, `add_setenvif_core`, `mod_env.c`.

use milepost_pcre::Case;
use milepost_syntax::Word;

use super::report::{Finding, show};
use super::{Builder, Context, Directive};
use crate::pattern::Pattern;
use crate::program::{Attribute, EnvChange, EnvRule, EnvRules, EnvTest, Part};

/// Rules of one section while they are collected.
#[derive(Default)]
pub(super) struct EnvDraft {
    rules: Vec<EnvRule>,
    /// What the last rule looks at, as it was written.
    last: Vec<u8>,
}

impl Builder<'_> {
    /// `SetEnvIf attribute pattern [!]name[=value] …`
    pub(super) fn set_env_if(
        &mut self,
        directive: &Directive<'_>,
        case: Case,
        context: &mut Context<'_>,
    ) {
        let words = directive.words();
        match words.split_first() {
            Some((attribute, rest)) => {
                self.env_rule(directive, Some(attribute), rest, case, context);
            }
            None => self.report(directive, missing("the attribute to look at", directive)),
        }
    }

    /// `BrowserMatch pattern [!]name[=value] …`: `SetEnvIf User-Agent`.
    pub(super) fn browser_match(
        &mut self,
        directive: &Directive<'_>,
        case: Case,
        context: &mut Context<'_>,
    ) {
        let words = directive.words();
        self.env_rule(directive, None, &words, case, context);
    }

    fn env_rule(
        &mut self,
        directive: &Directive<'_>,
        attribute: Option<&Word<'_>>,
        words: &[Word<'_>],
        case: Case,
        context: &mut Context<'_>,
    ) {
        let Some((pattern_word, changes)) =
            words.split_first().filter(|(word, _)| !word.text.is_empty())
        else {
            return self.report(directive, missing("the pattern", directive));
        };
        if changes.is_empty() {
            return self.report(directive, missing("the variables to set", directive));
        }
        let name = attribute.map_or(&b"User-Agent"[..], |word| &*word.text);
        let Some(looks_at) = self.attribute(directive, attribute, name, case) else { return };
        let text = self.word(directive, pattern_word);
        let has_groups = !is_literal(&pattern_word.text);
        // What has no special character is no regular expression to httpd.
        let pattern = match has_groups {
            true => self.new_pattern(text, case),
            false => Pattern::new(&mut self.pool, text, case),
        };
        let pattern = match pattern {
            Ok((pattern, _)) => pattern,
            Err(error) => return self.bad_pattern(directive, pattern_word, &error),
        };
        let changes = changes.iter().map(|word| self.env_change(&word.text)).collect();
        let draft = &mut context.dir.env_if;
        let again = !draft.last.is_empty() && draft.last.eq_ignore_ascii_case(name);
        draft.last = name.to_vec();
        let test = EnvTest::Pattern { looks_at, again, pattern, has_groups };
        draft.rules.push(EnvRule { test, changes });
    }

    /// `SetEnvIfExpr expression [!]name[=value] …`
    pub(super) fn set_env_if_expr(&mut self, directive: &Directive<'_>, context: &mut Context<'_>) {
        let words = directive.words();
        let Some((expression, changes)) = words.split_first().filter(|(_, rest)| !rest.is_empty())
        else {
            let finding = Finding::error("an expression and the variables to set are needed")
                .hint("write `SetEnvIfExpr \"expression\" variable[=value] …`");
            return self.report(directive, finding);
        };
        let Some(condition) = self.condition(directive, expression) else { return };
        let changes = changes.iter().map(|word| self.env_change(&word.text)).collect();
        let rule = EnvRule { test: EnvTest::Expression(condition), changes };
        context.dir.env_if.rules.push(rule);
    }

    fn attribute(
        &mut self,
        directive: &Directive<'_>,
        word: Option<&Word<'_>>,
        name: &[u8],
        case: Case,
    ) -> Option<Attribute> {
        Some(match name.to_ascii_lowercase().as_slice() {
            // Without `HostnameLookups` the host is its address.
            b"remote_addr" | b"remote_host" => Attribute::RemoteAddress,
            b"remote_user" => Attribute::RemoteUser,
            b"server_addr" => Attribute::ServerAddress,
            b"request_uri" => Attribute::RequestUri,
            b"request_method" => Attribute::RequestMethod,
            b"request_protocol" => Attribute::RequestProtocol,
            lower => match word {
                Some(word) if lower.iter().any(|&byte| !is_in_name(byte)) => {
                    let text = self.word(directive, word);
                    match self.new_pattern(text, case) {
                        Ok((pattern, _)) => Attribute::Names(Box::new(pattern)),
                        Err(error) => {
                            self.bad_pattern(directive, word, &error);
                            return None;
                        }
                    }
                }
                Some(word) => Attribute::Name(self.word(directive, word)),
                None => Attribute::Name(self.pool.add(name)),
            },
        })
    }

    /// `NAME`, `NAME=value` or `!NAME`. An empty value is none, and a value that begins with `!` unsets.
    fn env_change(&mut self, text: &[u8]) -> EnvChange {
        let (name, value) = match memchr::memchr(b'=', text) {
            None => (text, &b""[..]),
            Some(equals) => {
                let rest = &text[equals..];
                let value = rest.iter().position(|&byte| byte != b'=').unwrap_or(rest.len());
                (&text[..equals], &rest[value..])
            }
        };
        match (name, value) {
            ([b'!', name @ ..], b"") => EnvChange::Unset(self.pool.add(name)),
            (name, b"") => EnvChange::Set(self.pool.add(name), self.pool.add(b"1")),
            (name, [b'!', ..]) => EnvChange::Unset(self.pool.add(name)),
            (name, value) => EnvChange::Set(self.pool.add(name), self.pool.add(value)),
        }
    }

    /// `SetEnv NAME [value]`
    pub(super) fn set_env(&mut self, directive: &Directive<'_>, context: &mut Context<'_>) {
        if let Some(words) = self.words(directive, 1, 2, "SetEnv NAME [value]") {
            let value = words.get(1).map(|word| word.text.to_vec()).unwrap_or_default();
            context.dir.config.env.get_or_insert_default().set(&words[0].text, &value);
        }
    }

    /// `PassEnv NAME …`: from the process environment, as it is now.
    pub(super) fn pass_env(&mut self, directive: &Directive<'_>, context: &mut Context<'_>) {
        let Some(words) = self.words(directive, 1, usize::MAX, "PassEnv NAME …") else { return };
        for word in words {
            let value = std::str::from_utf8(&word.text)
                .ok()
                .and_then(|name| self.outside.environment(name));
            match value {
                Some(value) => {
                    context
                        .dir
                        .config
                        .env
                        .get_or_insert_default()
                        .set(&word.text, value.as_bytes());
                }
                None => {
                    let message = format!("the environment has no {}", show(&word.text));
                    self.report_at(directive, word.at, word.len, Finding::warning(message));
                }
            }
        }
    }

    /// `UnsetEnv NAME …`
    pub(super) fn unset_env(&mut self, directive: &Directive<'_>, context: &mut Context<'_>) {
        let Some(words) = self.words(directive, 1, usize::MAX, "UnsetEnv NAME …") else { return };
        for word in words {
            context.dir.config.env.get_or_insert_default().unset(&word.text);
        }
    }
}

impl EnvDraft {
    /// The rules, if there are any.
    pub(super) fn finish(self) -> Option<Part<EnvRules>> {
        (!self.rules.is_empty()).then(|| Part::new(EnvRules { rules: self.rules }))
    }
}

fn missing(what: &str, directive: &Directive<'_>) -> Finding {
    let name = String::from_utf8_lossy(directive.name).into_owned();
    let attribute = if name.to_ascii_lowercase().starts_with("set") { "attribute " } else { "" };
    Finding::error(format!("{what} is missing"))
        .hint(format!("write `{name} {attribute}pattern variable[=value] …`"))
}

/// A name with any other byte is a regular expression.
fn is_in_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'
}

/// Whether a pattern has no special character but escaped ones. httpd then searches without groups.
fn is_literal(pattern: &[u8]) -> bool {
    let mut rest = pattern;
    while let Some((&byte, after)) = rest.split_first() {
        let special = |byte: u8| b"^.$|()[]*+?{}".contains(&byte);
        rest = match (byte, after) {
            (b'\\', [next, after @ ..]) if special(*next) || *next == b'\\' => after,
            (b'\\', [_, ..]) => return false,
            (byte, _) if special(byte) => return false,
            _ => after,
        };
    }
    true
}

#[cfg(test)]
mod tests {
    use super::is_literal;

    #[test]
    fn literals_have_no_special_characters_but_escaped_ones() {
        for (pattern, literal) in [
            ("/a", true),
            (r"a\.b", true),
            (r"a\\b", true),
            ("a.b", false),
            (r"\d", false),
            ("", true),
        ] {
            assert_eq!(is_literal(pattern.as_bytes()), literal, "{pattern}");
        }
    }
}
