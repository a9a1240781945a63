//! Expressions in directives: `<If>` and its relatives, `Redirect` and `Alias` for all of a section.
//!
//! Source: httpd 2.4.71 `server/core.c`, `ifsection`; `modules/mappers/mod_alias.c`,
//! `add_redirect_internal`, `add_alias`.

use std::borrow::Cow;
use std::sync::Arc;

use milepost_syntax::Word;

use super::report::{Finding, show};
use super::{Builder, Context, DirDraft, Directive};
use crate::expr::{Condition, Dialect, ParseError, Template};
use crate::program::{IfSection, Part, Scope, SectionAlias, SectionRedirect};

/// What httpd takes for the directory of an `<If>`; no path begins so.
const IF_DIRECTORY: &[u8] = b"*If/";

impl Builder<'_> {
    /// Parses a word as a condition; reports what is wrong with it.
    pub(super) fn condition(
        &mut self,
        directive: &Directive<'_>,
        word: &Word<'_>,
    ) -> Option<Condition> {
        match Condition::parse(&word.text, self.dialect()) {
            Ok(condition) => Some(condition),
            Err(error) => {
                self.bad_expression(directive, word, 0, &error);
                None
            }
        }
    }

    /// Parses a word as a text with variables; reports what is wrong with it.
    pub(super) fn template(
        &mut self,
        directive: &Directive<'_>,
        word: &Word<'_>,
    ) -> Option<Template> {
        match Template::parse(&word.text, self.dialect()) {
            Ok(template) => Some(template),
            Err(error) => {
                self.bad_expression(directive, word, 0, &error);
                None
            }
        }
    }

    /// What expressions may say here.
    pub(super) fn dialect(&self) -> Dialect {
        let has_tls = self.names.modules.is_named("mod_ssl.c")
            || self.servers.iter().any(|server| server.tls.is_said());
        Dialect { restricted: self.allowed.is_some(), tls: has_tls, regex: self.regex }
    }

    /// Reports an expression that cannot be parsed and begins `skip` bytes into the word.
    pub(super) fn bad_expression(
        &mut self,
        directive: &Directive<'_>,
        word: &Word<'_>,
        skip: usize,
        error: &ParseError,
    ) {
        let mut finding = Finding::error(error.to_string());
        if let Some(hint) = error.hint() {
            finding = finding.hint(hint);
        }
        match &word.text {
            Cow::Borrowed(text) => {
                let quote = usize::from(text.len() < word.len);
                self.report_at(directive, word.at + quote + skip + error.at, error.len, finding);
            }
            // Backslashes are gone from the text, so its offsets are not those of the file.
            Cow::Owned(_) => self.report_at(directive, word.at, word.len, finding),
        }
    }

    /// `<If expression>`, `<ElseIf expression>`, `<Else>`
    pub(super) fn if_section(
        &mut self,
        name: &[u8],
        directive: &Directive<'_>,
        context: &mut Context<'_>,
        inner: impl FnOnce(&mut Self, &mut Context<'_>),
    ) {
        let otherwise = name != b"if";
        let follows =
            context.dir.config.ifs.last().is_some_and(|last| last.value.condition.is_some());
        if otherwise && !follows {
            let finding = Finding::error(format!(
                "`<{}>` follows no `<If>` or `<ElseIf>`",
                String::from_utf8_lossy(directive.name)
            ));
            return self
                .report(directive, finding.hint("it belongs after one, in the same section"));
        }
        let Some(condition) = self.if_condition(name, directive) else { return };
        let mut dir = DirDraft::default();
        dir.config.refuse_encoded_slashes();
        let mut section = Context {
            scope: Scope::If,
            server: context.server,
            directory: Arc::from(IF_DIRECTORY),
            dir: &mut dir,
        };
        inner(self, &mut section);
        let config = self.finish_dir(dir);
        let section = IfSection { condition, otherwise, config, place: directive.place };
        context.dir.config.ifs.push(Part::new(section));
    }

    /// The condition in the head of a section: the inner `None` for an `<Else>`, the outer one if
    /// something is wrong.
    fn if_condition(
        &mut self,
        name: &[u8],
        directive: &Directive<'_>,
    ) -> Option<Option<Condition>> {
        let words = directive.words();
        let shown = String::from_utf8_lossy(directive.name);
        match words.as_slice() {
            [] if name == b"else" => return Some(None),
            [first, ..] if name == b"else" => {
                let finding = Finding::error("`<Else>` takes no argument")
                    .hint("write `<ElseIf …>` for another condition");
                self.report_at(directive, first.at, first.len, finding);
            }
            [word] => return self.condition(directive, word).map(Some),
            [] => {
                let finding = Finding::error(format!("`<{shown}>` needs an expression"))
                    .hint(format!("write `<{shown} \"%{{QUERY_STRING}} == 'a'\">`"));
                self.report(directive, finding);
            }
            [_, second, ..] => {
                let finding = Finding::error(format!("`<{shown}>` takes one argument"))
                    .hint("put all of the expression into quotes");
                self.report_at(directive, second.at, second.len, finding);
            }
        }
        None
    }

    /// `Redirect [status] URL` in a section: for every path of it.
    pub(super) fn section_redirect(
        &mut self,
        directive: &Directive<'_>,
        status: u16,
        url: Option<&Word<'_>>,
        context: &mut Context<'_>,
    ) {
        let target = match url {
            Some(word) => match self.template(directive, word) {
                Some(template) => Some(template),
                None => return,
            },
            None => None,
        };
        let redirect = SectionRedirect { status, target, place: directive.place };
        context.dir.config.section_redirect = Some(Part::new(redirect));
    }

    /// `Alias file-path` in a `<Location>`.
    pub(super) fn section_alias(
        &mut self,
        directive: &Directive<'_>,
        file: &Word<'_>,
        context: &mut Context<'_>,
    ) {
        if context.scope != Scope::Location {
            let message = format!("{} needs a URL-path here", show(directive.name));
            let hint = "write `Alias URL-path file-path`; without a path it is for `<Location>`";
            return self.report(directive, Finding::error(message).hint(hint));
        }
        if let Some(file) = self.template(directive, file) {
            let alias = SectionAlias { file, url_path: context.dir.url_path };
            context.dir.config.section_alias = Some(Part::new(alias));
        }
    }

    pub(super) fn alias_preserve_path(
        &mut self,
        directive: &Directive<'_>,
        context: &mut Context<'_>,
    ) {
        let on = self.flag(directive);
        context.dir.config.preserve_path = on.or(context.dir.config.preserve_path);
    }
}
