//! `CustomLog`, `GlobalLog`, `TransferLog`, `LogFormat`, `ErrorLog` and `LogLevel`.
//!
//! Source: httpd 2.4.71 `modules/loggers/mod_log_config.c`, `log_format`, `add_custom_log`,
//! `set_transfer_log`; `server/core.c`, `set_errorlog`.

use std::sync::Arc;

use milepost_syntax::{Word, Words};

use super::report::{Finding, show};
use super::{Builder, Context, Directive};
use crate::expr::Condition;
use crate::log::{
    FormatChoice, LogCondition, LogDraft, LogExpression, LogFormat, LogTarget, NamedFormat,
};

impl Builder<'_> {
    pub(super) fn log_format(&mut self, directive: &Directive<'_>, context: &Context<'_>) {
        if !self.server_only(directive, context) {
            return;
        }
        let Some(words) = self.words(directive, 1, 2, "LogFormat \"format\" [name]") else {
            return;
        };
        let name = words.get(1).map(|word| (&*word.text).into());
        if let Some(format) = self.parse_format(directive, &words[0]) {
            let server = context.server;
            self.settings.logs.formats.push(NamedFormat { server, name, format });
        }
    }

    pub(super) fn custom_log(
        &mut self,
        directive: &Directive<'_>,
        context: &Context<'_>,
        global: bool,
    ) {
        if !self.server_only(directive, context) {
            return;
        }
        let usage = "CustomLog file|\"|program\" format|name [env=[!]variable|\"expr=expression\"]";
        let Some(words) = self.words(directive, 2, 3, usage) else { return };
        // A name is a format that holds no item, so a mistake in it cannot be overlooked.
        let Some(format) = self.parse_format(directive, &words[1]) else { return };
        let condition = match words.get(2) {
            None => None,
            Some(word) => match self.log_condition(directive, word) {
                None => return,
                condition => condition,
            },
        };
        let format = FormatChoice::Text((&*words[1].text).into(), format);
        self.add_log(directive, &words[0], format, condition, context.server, global);
    }

    /// `env=`, `env=!` or `expr=`; `None` is an error.
    fn log_condition(
        &mut self,
        directive: &Directive<'_>,
        word: &Word<'_>,
    ) -> Option<LogCondition> {
        if let Some(text) = word.text.strip_prefix(b"expr=") {
            let skip = "expr=".len();
            return match Condition::parse(text, self.dialect()) {
                Ok(condition) => Some(LogCondition::Expression(LogExpression(Arc::new(condition)))),
                Err(error) => {
                    self.bad_expression(directive, word, skip, &error);
                    None
                }
            };
        }
        let Some(name) = word.text.strip_prefix(b"env=") else {
            let message = format!("{} is not a condition for a log", show(&word.text));
            let hint = "write `env=variable`, `env=!variable` or `\"expr=expression\"`";
            self.report_at(directive, word.at, word.len, Finding::error(message).hint(hint));
            return None;
        };
        let bare = name.strip_prefix(b"!");
        Some(LogCondition::Variable { name: bare.unwrap_or(name).into(), set: bare.is_none() })
    }

    pub(super) fn transfer_log(&mut self, directive: &Directive<'_>, context: &Context<'_>) {
        if !self.server_only(directive, context) {
            return;
        }
        if let Some(words) = self.words(directive, 1, 1, "TransferLog file|\"|program\"") {
            let format = FormatChoice::Default;
            self.add_log(directive, &words[0], format, None, context.server, false);
        }
    }

    /// Only the main server's is written: there is one stream of errors.
    pub(super) fn error_log(&mut self, directive: &Directive<'_>, context: &Context<'_>) {
        if !self.server_only(directive, context) {
            return;
        }
        let Some(words) = self.words(directive, 1, 2, "ErrorLog file|\"|program\"") else { return };
        if words[0].text.starts_with(b"syslog") {
            let finding = Finding::warning("errors are not sent to syslog but to stderr");
            return self.report_at(directive, words[0].at, words[0].len, finding);
        }
        if context.server == 0 {
            self.settings.logs.error = self.log_target(directive, &words[0]);
        }
    }

    /// Notes levels; false in a section, where they have no effect here.
    pub(super) fn log_level(
        &mut self,
        directive: &Directive<'_>,
        lower: &[u8],
        context: &Context<'_>,
    ) -> bool {
        if lower != b"loglevel" || !context.scope.is_server() {
            return false;
        }
        for word in Words::new(directive.args) {
            self.settings.logs.levels.set(context.server, &word.text);
        }
        true
    }

    fn add_log(
        &mut self,
        directive: &Directive<'_>,
        target: &Word<'_>,
        format: FormatChoice,
        condition: Option<LogCondition>,
        server: usize,
        global: bool,
    ) {
        if let Some(target) = self.log_target(directive, target) {
            self.settings.logs.logs.push(LogDraft { server, target, format, condition, global });
        }
    }

    fn log_target(&mut self, directive: &Directive<'_>, word: &Word<'_>) -> Option<LogTarget> {
        let Some(program) = word.text.strip_prefix(b"|") else {
            return Some(LogTarget::File(self.resolve(&word.text)));
        };
        let program = program.strip_prefix(b"|").or(program.strip_prefix(b"$")).unwrap_or(program);
        let program = std::str::from_utf8(program).ok().filter(|text| !text.trim().is_empty());
        if program.is_none() {
            let finding = Finding::error(format!("{} names no program", show(&word.text)));
            self.report_at(directive, word.at, word.len, finding);
        }
        program.map(|program| LogTarget::Program(program.to_owned()))
    }

    fn parse_format(
        &mut self,
        directive: &Directive<'_>,
        word: &Word<'_>,
    ) -> Option<Arc<LogFormat>> {
        match LogFormat::parse(&word.text) {
            Ok(format) => Some(Arc::new(format)),
            Err(error) => {
                let finding = Finding::error(error.to_string());
                self.report_at(directive, word.at, word.len, finding);
                None
            }
        }
    }
}
