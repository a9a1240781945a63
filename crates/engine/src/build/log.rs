//! `CustomLog`, `GlobalLog`, `TransferLog`, `LogFormat`, `ErrorLog`, `ErrorLogFormat` and `LogLevel`.
//!
//! Source: httpd 2.4.71 `modules/loggers/mod_log_config.c`, `log_format`, `add_custom_log`,
//! `set_transfer_log`; `server/core.c`, `set_errorlog`, `set_errorlog_format`; `server/log.c`, `ap_open_logs`.

use std::sync::Arc;

use milepost_syntax::{Word, Words};

use super::report::{Finding, show};
use super::{Builder, Context, Directive};
use crate::expr::Condition;
use crate::log::{
    ErrorFormat, ErrorWhat, FormatChoice, LogCondition, LogDraft, LogExpression, LogFormat,
    LogTarget, Missing, NamedFormat, Syslog,
};

/// The facilities of syslog and their numbers.
///
/// Source: RFC 5424 section 6.2.1; glibc `syslog.h`, `facilitynames`.
const FACILITIES: &[(&str, u8)] = &[
    ("auth", 4),
    ("authpriv", 10),
    ("cron", 9),
    ("daemon", 3),
    ("ftp", 11),
    ("kern", 0),
    ("lpr", 6),
    ("mail", 2),
    ("news", 7),
    ("security", 4),
    ("syslog", 5),
    ("user", 1),
    ("uucp", 8),
    ("local0", 16),
    ("local1", 17),
    ("local2", 18),
    ("local3", 19),
    ("local4", 20),
    ("local5", 21),
    ("local6", 22),
    ("local7", LOCAL7),
];

/// The facility where none is said.
const LOCAL7: u8 = 23;

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

    pub(super) fn error_log(&mut self, directive: &Directive<'_>, context: &Context<'_>) {
        if !self.server_only(directive, context) {
            return;
        }
        let usage = "ErrorLog file|\"|program\"|syslog[:facility[:tag]]";
        let Some(words) = self.words(directive, 1, 1, usage) else { return };
        let target = match words[0].text.strip_prefix(b"syslog") {
            Some(rest) if rest.is_empty() || rest[0] == b':' => {
                Some(LogTarget::Syslog(self.syslog(directive, &words[0], rest)))
            }
            _ => self.log_target(directive, &words[0]),
        };
        if let Some(target) = target {
            self.settings.logs.errors.of_server(context.server).target = Some(target);
        }
    }

    /// `:facility:tag`, both of which may be missing.
    fn syslog(&mut self, directive: &Directive<'_>, word: &Word<'_>, rest: &[u8]) -> Syslog {
        let mut parts = rest.splitn(3, |&byte| byte == b':').skip(1);
        let name = parts.next().unwrap_or_default().to_ascii_lowercase();
        let tag = parts.next().unwrap_or_default();
        let known = FACILITIES.iter().find(|(known, _)| known.as_bytes() == name);
        if known.is_none() && !name.is_empty() {
            let message = format!("{} is no facility of syslog, so this is `local7`", show(&name));
            self.report_at(directive, word.at, word.len, Finding::warning(message));
        }
        let tag = if tag.is_empty() { "milepost".into() } else { String::from_utf8_lossy(tag) };
        Syslog { facility: known.map_or(LOCAL7, |(_, number)| *number), tag: tag.into_owned() }
    }

    pub(super) fn error_log_format(&mut self, directive: &Directive<'_>, context: &Context<'_>) {
        if !self.server_only(directive, context) {
            return;
        }
        let usage = "ErrorLogFormat [request|connection] \"format\"";
        let Some(words) = self.words(directive, 1, 2, usage) else { return };
        if !self.has_right_values(directive, b"errorlogformat") {
            return;
        }
        let (kind, word) = match &words[..] {
            [kind, word] => (Some(kind), word),
            [word, ..] => (None, word),
            [] => return,
        };
        let format = match ErrorFormat::parse(&word.text) {
            Ok(format) => Arc::new(format),
            Err(error) => {
                let finding = Finding::error(error.to_string());
                return self.report_at(directive, word.at, word.len, finding);
            }
        };
        let has_message = format.items.iter().any(|item| item.what == ErrorWhat::Message);
        let wants_all = format.items.iter().any(|item| item.missing == Missing::Line);
        let wrong = match (kind, has_message) {
            (None, false) => Some("the error log format has no message, which is `%M`"),
            (None, true) if wants_all => Some("`%+` is for formats of requests and connections"),
            (Some(_), true) => Some("a request or connection has no message `%M`"),
            _ => None,
        };
        if let Some(wrong) = wrong {
            return self.report_at(directive, word.at, word.len, Finding::error(wrong));
        }
        let said = self.settings.logs.errors.of_server(context.server);
        match kind.map(|kind| kind.text.to_ascii_lowercase()).as_deref() {
            None => said.format = Some(format),
            Some(b"request") => said.request_formats.push(format),
            Some(_) => said.connection_formats.push(format),
        }
    }

    /// Notes levels.
    pub(super) fn log_level(
        &mut self,
        directive: &Directive<'_>,
        lower: &[u8],
        context: &mut Context<'_>,
    ) -> bool {
        if lower != b"loglevel" {
            return false;
        }
        if !context.scope.is_server() {
            let levels = &mut context.dir.config.levels;
            Words::new(directive.args).for_each(|word| levels.set(&word.text));
            self.settings.logs.levels.set_in_section(*levels);
            return true;
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
            Ok(format) if format.has_tls() && !self.names.modules.has("mod_ssl.c") => {
                let finding =
                    Finding::error("`%x` and `%c` are items of mod_ssl, which is not loaded");
                self.report_at(directive, word.at, word.len, finding);
                None
            }
            Ok(format) => Some(Arc::new(format)),
            Err(error) => {
                let finding = Finding::error(error.to_string());
                self.report_at(directive, word.at, word.len, finding);
                None
            }
        }
    }
}
