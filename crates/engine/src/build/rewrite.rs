//! The directives of mod_rewrite.
//!
//! Source: httpd 2.4.71 `modules/mappers/mod_rewrite.c`, `cmd_rewriterule`, `cmd_rewritecond`,
//! `cmd_rewriterule_setflag`, `cmd_rewriteoptions`.

use std::sync::Arc;

use milepost_pcre::Case;
use milepost_syntax::{RawWords, Word, Words};

use super::leading_slash::{sees_the_path, wants_slash};
use super::report::{Finding, show};
use super::{Builder, Context, DirDraft, Directive};
use crate::expr;
use crate::index::{Filing, Handle, Keys, Subject};
use crate::pattern::Reach;
use crate::pool::{Pool, Str};
use crate::program::{
    Comparison, Condition, Effect, Extra, FileTest, Flags, Part, RewriteDir, RewriteList,
    RewriteRule, Scope, Substitution, Test,
};
use crate::status;

/// Rules of one context while they are collected.
#[derive(Default)]
pub(super) struct RewriteDraft {
    rules: Vec<RewriteRule>,
    conditions: Vec<Condition>,
    filings: Vec<Filing>,
    /// How many of `conditions` wait for their rule.
    waiting: usize,
    /// What each waiting condition could be filed under.
    handles: Vec<Option<Handle>>,
}

impl RewriteDraft {
    /// The list, if there is a rule in it.
    pub(super) fn finish(self, builder: &Builder<'_>) -> Option<Part<RewriteList>> {
        let RewriteDraft { rules, conditions, filings, .. } = self;
        let list = || RewriteList::new(&builder.pool, rules, conditions, &filings, builder.lookup);
        (!filings.is_empty()).then(|| Part::new(list()))
    }

    /// The place of a condition that no rule followed.
    pub(super) fn orphan(&self) -> Option<&Condition> {
        self.conditions.last().filter(|_| self.waiting > 0)
    }
}

impl Builder<'_> {
    /// `RewriteRule pattern substitution [flags]`
    pub(super) fn rewrite_rule(&mut self, directive: &Directive<'_>, context: &mut Context<'_>) {
        self.servers[context.server].has_rewriting = true;
        let mut words = RawWords::new(directive.args);
        let (Some(pattern), Some(substitution)) = (&words.next(), &words.next()) else {
            let finding = Finding::error("`RewriteRule` has too few arguments")
                .hint("write `RewriteRule pattern substitution [flags]`");
            return self.report(directive, finding);
        };
        self.warn_of_variable(directive, pattern);
        let flags = words.next();
        if flags.is_none() {
            self.warn_of_glued_flags(directive, substitution);
        }
        let Some(mut options) = self.rule_options(directive, flags.as_ref()) else { return };
        let mut text = self.word(directive, pattern);
        if self.pool.get(text).first() == Some(&b'!') {
            options.flags.set(Flags::NEGATED);
            text = text.slice(1, text.len() - 1);
        }
        let in_directory = matches!(context.scope, Scope::Directory | Scope::Htaccess);
        if in_directory
            && wants_slash(self.pool.get(text))
            && !options.flags.has(Flags::NEGATED)
            && sees_the_path(&self.rewrite_draft(context).rules)
        {
            let finding = Finding::warning("the pattern never matches: in a directory it sees the path without the leading slash")
                .hint("write `^` instead of `^/`");
            self.report_at(directive, pattern.at, pattern.len, finding);
        }
        let case = case_of(options.flags.has(Flags::NO_CASE));
        let (matcher, handle) = match self.new_pattern(text, case) {
            Ok(made) => made,
            Err(error) => {
                self.bad_pattern(directive, pattern, &error);
                return;
            }
        };
        let substitution = self.substitution(directive, substitution, &mut options);
        let draft = self.rewrite_draft(context);
        let waiting = std::mem::take(&mut draft.waiting);
        let first = draft.conditions.len() - waiting;
        let filing = if follows_every_time(&draft.rules) {
            Filing::Follower
        } else {
            let pattern = handle.filter(|_| !options.flags.has(Flags::NEGATED));
            let conditions = condition_handles(&draft.conditions[first..], &draft.handles);
            if conditions.is_empty() {
                Filing::of(pattern)
            } else {
                Filing::Handles(pattern.into_iter().chain(conditions).collect())
            }
        };
        draft.handles.clear();
        let RuleOptions { mut flags, status, extra } = options;
        if draft.rules.last().is_some_and(|before| before.flags.has(Flags::CHAIN)) {
            flags.set(Flags::FOLLOWS);
        }
        draft.rules.push(RewriteRule {
            pattern: matcher,
            substitution,
            flags,
            status,
            conditions: (first as u32, waiting as u32),
            extra: extra.map(Box::new),
            place: directive.place,
        });
        draft.filings.push(filing);
    }

    /// `RewriteCond test-string pattern [flags]`
    pub(super) fn rewrite_condition(
        &mut self,
        directive: &Directive<'_>,
        context: &mut Context<'_>,
    ) {
        let words: Vec<_> = RawWords::new(directive.args).take(3).collect();
        let [input, pattern, flag_words @ ..] = words.as_slice() else {
            let finding = Finding::error("`RewriteCond` has too few arguments")
                .hint("write `RewriteCond test-string pattern [flags]`");
            return self.report(directive, finding);
        };
        let (mut or, mut no_case, mut no_vary) = (false, false, false);
        for (name, value, at, len) in self.flag_list(directive, flag_words.first()) {
            match name.to_ascii_lowercase().as_slice() {
                b"or" | b"ornext" => or = true,
                b"nc" | b"nocase" => no_case = true,
                b"nv" | b"novary" => no_vary = true,
                _ => {
                    let shown =
                        if value.is_empty() { name } else { [name, b"=".to_vec(), value].concat() };
                    let finding = Finding::error(format!("unknown flag {}", show(&shown)))
                        .hint("a condition has the flags NC, OR and NV");
                    self.report_at(directive, at, len, finding);
                }
            }
        }
        let input_text = self.word(directive, input);
        let mut text = self.word(directive, pattern);
        let negated = self.pool.get(text).first() == Some(&b'!');
        if negated {
            text = text.slice(1, text.len() - 1);
        }
        let mut handle = None;
        let is_expression = input.text.eq_ignore_ascii_case(b"expr");
        let test = match self.plain_test(text) {
            _ if is_expression => match self.expression_test(directive, pattern, negated) {
                Some(test) => test,
                None => return,
            },
            Some(test) => test,
            None => match self.new_pattern(text, case_of(no_case)) {
                Ok((matcher, found)) => {
                    handle = found;
                    Test::Pattern(Box::new(matcher))
                }
                Err(error) => return self.bad_pattern(directive, pattern, &error),
            },
        };
        let subject = subject_of(self.pool.get(input_text));
        let handle = match (&test, subject) {
            (_, None) => None,
            (Test::Text(Comparison::Equal, text), Some(subject)) => {
                let key = if no_case { lower(&mut self.pool, *text) } else { *text };
                Some(Handle { subject, keys: Keys::One((key, Reach::Exact)), folded: no_case })
            }
            (_, Some(subject)) => handle.map(|handle| Handle { subject, ..handle }),
        };
        let draft = self.rewrite_draft(context);
        draft.handles.push(handle.filter(|_| !negated));
        draft.conditions.push(Condition {
            input: input_text,
            subject,
            test,
            negated,
            or,
            no_case,
            no_vary,
            place: directive.place,
        });
        draft.waiting += 1;
    }

    pub(super) fn rewrite_engine(&mut self, directive: &Directive<'_>, context: &mut Context<'_>) {
        self.servers[context.server].has_rewriting = true;
        let Some(on) = self.flag(directive) else { return };
        rewrite_dir(context.dir, &context.directory).engine = Some(on);
    }

    pub(super) fn rewrite_base(&mut self, directive: &Directive<'_>, context: &mut Context<'_>) {
        self.servers[context.server].has_rewriting = true;
        if context.scope.is_server() {
            let finding = Finding::error("`RewriteBase` is only for directories")
                .hint("move it into a `<Directory>`");
            return self.report(directive, finding);
        }
        if let Some(words) = self.words(directive, 1, 1, "RewriteBase URL-path") {
            if !words[0].text.starts_with(b"/") {
                let finding = Finding::error(format!(
                    "{} is no URL-path: it must begin with `/`",
                    show(&words[0].text)
                ));
                return self.report_at(directive, words[0].at, words[0].len, finding);
            }
            let base = Arc::from(&*words[0].text);
            rewrite_dir(context.dir, &context.directory).base = Some(base);
        }
    }

    pub(super) fn rewrite_options(&mut self, directive: &Directive<'_>, context: &mut Context<'_>) {
        self.servers[context.server].has_rewriting = true;
        let mut options = if context.scope.is_server() {
            self.servers[context.server].rewrite_options.unwrap_or_default()
        } else {
            rewrite_dir(context.dir, &context.directory).options.unwrap_or_default()
        };
        let mut words = Words::new(directive.args).peekable();
        if words.peek().is_none() {
            let finding = Finding::error("`RewriteOptions` needs an option, as in `Inherit`");
            return self.report(directive, finding);
        }
        for word in words {
            match word.text.to_ascii_lowercase().as_slice() {
                b"inherit" => options.inherit = true,
                b"inheritbefore" => options.inherit_before = true,
                b"inheritdown" => options.inherit_down = true,
                b"inheritdownbefore" => options.inherit_down_before = true,
                b"ignoreinherit" => options.ignore_inherit = true,
                b"allownoslash" => options.allow_no_slash = true,
                b"allowanyuri" => options.allow_any_uri = true,
                b"mergebase" => options.merge_base = true,
                b"ignorecontextinfo" => options.ignore_context_info = true,
                b"legacyprefixdocroot" => options.legacy_prefix_doc_root = true,
                b"unsafeprefixstat" => options.unsafe_prefix_stat = true,
                text if text.starts_with(b"maxredirects=") => {
                    let finding = Finding::warning("`MaxRedirects` has no effect since httpd 2.1")
                        .hint("use `LimitInternalRecursion`");
                    self.report_at(directive, word.at, word.len, finding);
                }
                _ => {
                    let finding = Finding::error(format!("unknown option {}", show(&word.text)));
                    self.report_at(directive, word.at, word.len, finding);
                }
            }
        }
        if context.scope.is_server() {
            self.servers[context.server].rewrite_options = Some(options);
        }
        rewrite_dir(context.dir, &context.directory).options = Some(options);
    }

    /// The draft that rules of this context go to.
    fn rewrite_draft<'c>(&'c mut self, context: &'c mut Context<'_>) -> &'c mut RewriteDraft {
        if context.scope.is_server() {
            &mut self.servers[context.server].rewrite
        } else {
            rewrite_dir(context.dir, &context.directory);
            &mut context.dir.rewrite
        }
    }

    /// What the rule puts in place of the string, and the flags that its form implies.
    fn substitution(
        &mut self,
        directive: &Directive<'_>,
        word: &Word<'_>,
        options: &mut RuleOptions,
    ) -> Substitution {
        let text = self.word(directive, word);
        let bytes = self.pool.get(text);
        let flags = &mut options.flags;
        if bytes == b"-" || flags.has(Flags::STATUS) {
            return Substitution::None;
        }
        let mut text = text;
        if bytes.ends_with(b"?") && flags.has(Flags::QUERY_APPEND) {
            flags.set(Flags::QUERY_LAST);
        } else if bytes.ends_with(b"?") {
            flags.set(Flags::QUERY_NONE);
            text = text.slice(0, text.len() - 1);
        } else if flags.has(Flags::QUERY_DISCARD) && !bytes.contains(&b'?') {
            flags.set(Flags::QUERY_NONE);
        }
        match memchr::memchr3(b'\\', b'$', b'%', self.pool.get(text)) {
            Some(plain) => Substitution::Expanded(text, plain.try_into().unwrap_or(u16::MAX)),
            None => Substitution::Plain(text),
        }
    }

    /// Whether a word is a flag with its value.
    pub(super) fn is_flag(&mut self, text: &[u8]) -> bool {
        let equals = memchr::memchr(b'=', text);
        let (name, value) = equals.map_or((text, &b""[..]), |at| (&text[..at], &text[at + 1..]));
        RuleOptions::default().set(&mut self.pool, name, value).is_ok()
    }

    /// Splits `[a,b=c]`: name, value, position and length of each flag.
    fn flag_list(
        &mut self,
        directive: &Directive<'_>,
        word: Option<&Word<'_>>,
    ) -> Vec<(Vec<u8>, Vec<u8>, usize, usize)> {
        let Some(word) = word else { return Vec::new() };
        let inner = word.text.strip_prefix(b"[").and_then(|text| text.strip_suffix(b"]"));
        let Some(inner) = inner else {
            let hint = if word.text.starts_with(b"#") {
                "a comment needs a line of its own"
            } else {
                "flags stand in brackets, without blanks: `[R=301,L]`"
            };
            let finding =
                Finding::error(format!("bad flag delimiters in {}", show(&word.text))).hint(hint);
            self.report_at(directive, word.at, word.len, finding);
            return Vec::new();
        };
        let mut at = word.at + 1 + usize::from(word.len > word.text.len());
        let mut flags = Vec::new();
        for part in inner.split(|&byte| byte == b',') {
            // Blanks around a flag go, those around its `=` belong to name and value.
            let flag = part.trim_ascii();
            let (name, value) = match memchr::memchr(b'=', flag) {
                Some(equals) => (&flag[..equals], &flag[equals + 1..]),
                None => (flag, &b""[..]),
            };
            flags.push((name.to_vec(), value.to_vec(), at, part.len()));
            at += part.len() + 1;
        }
        flags
    }

    /// Reads the flags of a rule; `None` when one of them is an error.
    fn rule_options(
        &mut self,
        directive: &Directive<'_>,
        word: Option<&Word<'_>>,
    ) -> Option<RuleOptions> {
        let mut options = RuleOptions { status: 302, ..RuleOptions::default() };
        let Some(word) = word else { return Some(options) };
        // Thousands of rules in a row have the same flags.
        if let Some((text, flags, status)) = &self.last_flags
            && *text == *word.text
        {
            (options.flags, options.status) = (*flags, *status);
            return Some(options);
        }
        let before = self.diagnostics.len();
        for (name, value, at, len) in self.flag_list(directive, Some(word)) {
            if let Err(finding) = options.set(&mut self.pool, &name, &value) {
                self.report_at(directive, at, len, finding);
            }
        }
        if self.diagnostics.len() > before {
            return None;
        }
        if options.extra.is_none() {
            self.last_flags = Some((word.text.to_vec(), options.flags, options.status));
        }
        Some(options)
    }

    /// The condition pattern of `RewriteCond expr`. A `!` at its start is the directive's, not the
    /// expression's, and negates all of it.
    fn expression_test(
        &mut self,
        directive: &Directive<'_>,
        word: &Word<'_>,
        negated: bool,
    ) -> Option<Test> {
        let skip = usize::from(negated);
        match expr::Condition::parse(&word.text[skip..], self.dialect()) {
            Ok(condition) => Some(Test::Expression(Box::new(condition))),
            Err(error) => {
                self.bad_expression(directive, word, skip, &error);
                None
            }
        }
    }

    /// A condition pattern that is no regular expression.
    fn plain_test(&mut self, text: Str) -> Option<Test> {
        let bytes = self.pool.get(text);
        if bytes.len() < 2 {
            return None;
        }
        let rest = |start: usize| text.slice(start, text.len() - start);
        let file = |test| Some(Test::File(test));
        Some(match bytes {
            b"-f" => return file(FileTest::Regular),
            b"-s" => return file(FileTest::NotEmpty),
            b"-d" => return file(FileTest::Directory),
            b"-x" => return file(FileTest::Executable),
            b"-U" => return file(FileTest::Url),
            b"-F" => return file(FileTest::File),
            b"-h" | b"-l" | b"-L" => return file(FileTest::Link),
            [b'-', b'l', b't', ..] => Test::Integer(Comparison::Less, rest(3)),
            [b'-', b'l', b'e', ..] => Test::Integer(Comparison::LessOrEqual, rest(3)),
            [b'-', b'e', b'q', ..] => Test::Integer(Comparison::Equal, rest(3)),
            [b'-', b'g', b'e', ..] => Test::Integer(Comparison::GreaterOrEqual, rest(3)),
            [b'-', b'g', b't', ..] => Test::Integer(Comparison::Greater, rest(3)),
            [b'-', b'n', b'e', ..] => Test::Integer(Comparison::NotEqual, rest(3)),
            [b'>', b'=', ..] => Test::Text(Comparison::GreaterOrEqual, rest(2)),
            [b'<', b'=', ..] => Test::Text(Comparison::LessOrEqual, rest(2)),
            [b'>', ..] => Test::Text(Comparison::Greater, rest(1)),
            [b'<', ..] => Test::Text(Comparison::Less, rest(1)),
            [b'=', b'"', b'"'] => Test::Text(Comparison::Equal, rest(3)),
            [b'=', ..] => Test::Text(Comparison::Equal, rest(1)),
            _ => return None,
        })
    }
}

/// Flags of a rule and their arguments.
#[derive(Default)]
struct RuleOptions {
    flags: Flags,
    status: u16,
    extra: Option<Extra>,
}

impl RuleOptions {
    fn extra(&mut self) -> &mut Extra {
        self.extra.get_or_insert_default()
    }

    fn set(&mut self, pool: &mut Pool, name: &[u8], value: &[u8]) -> Result<(), Finding> {
        let number = || leading_digits(value);
        let lower = name.to_ascii_lowercase();
        let flag = match lower.as_slice() {
            b"l" | b"last" => Flags::LAST,
            b"end" => Flags::END,
            b"c" | b"chain" => Flags::CHAIN,
            b"ne" | b"noescape" => Flags::NO_ESCAPE,
            b"nc" | b"nocase" => Flags::NO_CASE,
            b"ns" | b"nosubreq" => Flags::NO_SUBREQUEST,
            b"p" | b"proxy" => Flags::PROXY,
            b"pt" | b"passthrough" => Flags::PASS_THROUGH,
            b"qsa" | b"qsappend" => Flags::QUERY_APPEND,
            b"qsd" | b"qsdiscard" => Flags::QUERY_DISCARD,
            b"qsl" | b"qslast" => Flags::QUERY_LAST,
            b"unsafeallow3f" => Flags::UNSAFE_ALLOW_3F,
            b"unsafeprefixstat" => Flags::UNSAFE_PREFIX_STAT,
            b"unc" => Flags::UNC,
            b"f" | b"forbidden" => {
                self.status = 403;
                Flags::STATUS
            }
            b"g" | b"gone" => {
                self.status = 410;
                Flags::STATUS
            }
            b"r" | b"redirect" => return self.redirect(value),
            b"n" | b"next" => {
                if !value.is_empty() {
                    self.extra().rounds_max = Some(number());
                }
                Flags::NEXT
            }
            b"s" | b"skip" => {
                // As atoi(3) reads it: what is no number skips nothing.
                self.extra().skip = number();
                Flags::SKIP
            }
            b"e" | b"env" => {
                let text = pool.add(value);
                self.extra().effects.push(Effect::Env(text));
                return Ok(());
            }
            b"co" | b"cookie" => {
                let text = pool.add(value);
                self.extra().effects.push(Effect::Cookie(text));
                return Ok(());
            }
            b"b" | b"backrefescaping" => {
                if !value.is_empty() {
                    self.extra().escape.only = Some(pool.add(value));
                }
                Flags::ESCAPE_BACKREFS
            }
            b"bnp" | b"backrefernoplus" => {
                self.extra().escape.no_plus = true;
                return Ok(());
            }
            b"bctls" => {
                self.extra().escape.controls = true;
                Flags::ESCAPE_BACKREFS
            }
            b"bne" => {
                if value.is_empty() {
                    return Err(Finding::error(
                        "flag BNE needs the bytes that are not escaped: `BNE=/`",
                    ));
                }
                self.extra().escape.except = Some(pool.add(value));
                return Ok(());
            }
            // There is one handler, for files.
            b"h" | b"handler" => return Ok(()),
            b"t" | b"type" => {
                let text = pool.add(value);
                self.extra().effects.push(Effect::Type(text));
                return Ok(());
            }
            [b'd', ..] => Flags::DISCARD_PATH_INFO,
            _ => {
                return Err(Finding::error(format!("unknown flag {}", show(name)))
                    .hint("see the manual of mod_rewrite for the flags of a rule"));
            }
        };
        self.flags.set(flag);
        Ok(())
    }

    /// `R`, `R=permanent`, `R=301`; with a status that is no redirect it acts like `F`.
    fn redirect(&mut self, value: &[u8]) -> Result<(), Finding> {
        self.flags.set(Flags::FORCED);
        match value.to_ascii_lowercase().as_slice() {
            b"permanent" => self.status = 301,
            b"seeother" => self.status = 303,
            [b'0'..=b'9', ..] => {
                let code = u16::try_from(leading_digits(value)).ok();
                self.status = code.filter(|code| status::is_known(*code)).ok_or_else(|| {
                    Finding::error(format!("{} is no status of HTTP", show(value)))
                        .hint("write 301, 302, 303, 307 or 308")
                })?;
            }
            // Without a word, what an earlier flag said stays.
            b"" => {}
            _ => self.status = 302,
        }
        self.flags.set(if (300..400).contains(&self.status) {
            Flags::REDIRECT
        } else {
            Flags::STATUS
        });
        Ok(())
    }
}

/// The number of the digits that a text begins with; 0 without one. A sign is no digit.
fn leading_digits(text: &[u8]) -> u32 {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit());
    digits.fold(0_u32, |number, digit| {
        number.saturating_mul(10).saturating_add(u32::from(digit - b'0'))
    })
}

/// The rewrite part of a section, made if it is new.
pub(super) fn rewrite_dir<'d>(dir: &'d mut DirDraft, directory: &Arc<[u8]>) -> &'d mut RewriteDir {
    let new = || RewriteDir { directory: Arc::clone(directory), ..RewriteDir::default() };
    dir.rewrite_dir.get_or_insert_with(new)
}

/// Whether the rule after these is tried only when the one before it has matched. A subrequest can
/// pass over a chained redirect and go on to what follows.
fn follows_every_time(rules: &[RewriteRule]) -> bool {
    let chain = || rules.iter().rev().take_while(|rule| rule.flags.has(Flags::CHAIN));
    chain().next().is_some() && !chain().any(|rule| rule.flags.skips_subrequests())
}

/// What groups of conditions could be filed under: all of an OR group, if they test one variable.
fn condition_handles(conditions: &[Condition], handles: &[Option<Handle>]) -> Vec<Handle> {
    let mut found = Vec::new();
    let mut group: Option<Handle> = None;
    let mut sound = true;
    let mut first = true;
    for (condition, handle) in conditions.iter().zip(handles) {
        group = match (group.take(), handle) {
            (None, Some(handle)) if first => Some(handle.clone()),
            (Some(mut all), Some(handle))
                if all.subject == handle.subject && all.folded == handle.folded =>
            {
                all.keys.extend(&handle.keys);
                Some(all)
            }
            _ => {
                sound = false;
                None
            }
        };
        first = false;
        // A group that ends the list with OR holds whatever it says, so it is never complete.
        if !condition.or {
            found.extend(group.take().filter(|_| sound));
            (sound, first) = (true, true);
        }
    }
    found
}

/// The subject that a test string is, and nothing besides.
fn subject_of(input: &[u8]) -> Option<Subject> {
    let name = input.strip_prefix(b"%{")?.strip_suffix(b"}")?;
    match name.to_ascii_uppercase().as_slice() {
        b"HTTP_HOST" | b"HTTP:HOST" => Some(Subject::Host),
        b"REQUEST_URI" => Some(Subject::Uri),
        b"QUERY_STRING" => Some(Subject::Query),
        _ => None,
    }
}

fn case_of(no_case: bool) -> Case {
    if no_case { Case::Insensitive } else { Case::Sensitive }
}

fn lower(pool: &mut Pool, text: Str) -> Str {
    let lower = pool.get(text).to_ascii_lowercase();
    pool.add(&lower)
}
