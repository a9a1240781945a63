//! `Redirect` and its relatives, `Alias`, `AliasMatch`.
//!
//! Source: httpd 2.4.71 `modules/mappers/mod_alias.c`, `add_redirect_internal`, `add_alias_internal`.

use milepost_pcre::Case;
use milepost_syntax::Word;

use super::report::{Finding, show};
use super::{Builder, Context, Directive};
use crate::decision::Place;
use crate::eval::is_constant;
use crate::index::Filing;
use crate::pool::Str;
use crate::program::{AliasList, AliasMatcher, AliasRule, Part};

/// Rules of one list while they are collected.
#[derive(Default)]
pub(super) struct AliasDraft {
    rules: Vec<AliasRule>,
    filings: Vec<Filing>,
}

/// What a redirect compares with the path of a request.
#[derive(Clone, Copy)]
enum Subject {
    Path,
    Pattern,
}

impl Builder<'_> {
    /// `Redirect [status] URL-path [URL]`
    pub(super) fn redirect(&mut self, directive: &Directive<'_>, context: &mut Context<'_>) {
        let usage = "Redirect [status] URL-path URL";
        if let Some(words) = self.words(directive, 1, 3, usage) {
            self.any_redirect(directive, (302, Subject::Path), &words, context);
        }
    }

    /// `RedirectPermanent` and `RedirectTemp`.
    pub(super) fn redirect_fixed(
        &mut self,
        directive: &Directive<'_>,
        status: u16,
        context: &mut Context<'_>,
    ) {
        let usage = format!("{} URL-path URL", String::from_utf8_lossy(directive.name));
        if let Some(words) = self.words(directive, 2, 2, &usage) {
            self.any_redirect(directive, (status, Subject::Path), &words, context);
        }
    }

    /// `RedirectMatch [status] pattern [URL]`
    pub(super) fn redirect_match(&mut self, directive: &Directive<'_>, context: &mut Context<'_>) {
        let usage = "RedirectMatch [status] pattern URL";
        if let Some(words) = self.words(directive, 2, 3, usage) {
            self.any_redirect(directive, (302, Subject::Pattern), &words, context);
        }
    }

    /// A redirect of any name: the first word may be a status, whatever the name says of it, and in a
    /// section a status or a URL may stand alone.
    fn any_redirect(
        &mut self,
        directive: &Directive<'_>,
        (usual, subject): (u16, Subject),
        words: &[Word<'_>],
        context: &mut Context<'_>,
    ) {
        let said = status(&words[0].text);
        let status = said.unwrap_or(usual);
        let in_section = !context.scope.is_server();
        let rest = if said.is_some() { &words[1..] } else { words };
        match rest {
            [_, _, _] => self.bad_status(directive, words),
            [url] if in_section && is_redirect(status) => {
                self.section_redirect(directive, status, Some(url), context);
            }
            [] if in_section && !is_redirect(status) => {
                self.section_redirect(directive, status, None, context);
            }
            [] if is_redirect(status) => {
                self.report(directive, Finding::error("the URL to redirect to is missing"));
            }
            [] => {
                // httpd loads it, and crashes when a request comes to it.
                let finding = Finding::warning("without a URL-path this answers no request")
                    .hint("write `Redirect status URL-path`; a status alone is for sections");
                self.report(directive, finding);
            }
            [path, target @ ..] => {
                self.add_redirect(directive, (status, subject), path, target.first(), context);
            }
        }
    }

    /// Three words, and the first is no status.
    fn bad_status(&mut self, directive: &Directive<'_>, words: &[Word<'_>]) {
        let finding = Finding::error(format!("{} is not a status", show(&words[0].text)));
        let finding = match words {
            // The slip of many a how-to: the status at the end.
            [path, url, last] if status(&last.text).is_some() => finding.hint(format!(
                "the status comes first: `{} {} {} {}`",
                String::from_utf8_lossy(directive.name),
                String::from_utf8_lossy(&last.text),
                String::from_utf8_lossy(&path.text),
                String::from_utf8_lossy(&url.text),
            )),
            _ => finding.hint("permanent, temp, seeother, gone, or a number comes first"),
        };
        self.report_at(directive, words[0].at, words[0].len, finding);
    }

    pub(super) fn redirect_relative(
        &mut self,
        directive: &Directive<'_>,
        context: &mut Context<'_>,
    ) {
        let on = self.flag(directive);
        context.dir.config.redirect_relative = on.or(context.dir.config.redirect_relative);
    }

    /// `Alias URL-path file-path`, or `Alias file-path` in a `<Location>`.
    pub(super) fn alias(&mut self, directive: &Directive<'_>, context: &mut Context<'_>) {
        let Some(words) = self.words(directive, 1, 2, "Alias URL-path file-path") else { return };
        if let [file] = words.as_slice() {
            return self.section_alias(directive, file, context);
        }
        if !self.server_only(directive, context) {
            return;
        }
        let path = self.word(directive, &words[0]);
        let target = self.word(directive, &words[1]);
        let filing = AliasList::file_path(&mut self.pool, path);
        let matcher = AliasMatcher::Path(path);
        let rule =
            AliasRule { matcher, target, status: 0, is_ready: false, place: directive.place };
        self.servers[context.server].path_aliases.push(rule, filing);
    }

    pub(super) fn alias_match(&mut self, directive: &Directive<'_>, context: &mut Context<'_>) {
        if !self.server_only(directive, context) {
            return;
        }
        let Some(words) = self.words(directive, 2, 2, "AliasMatch pattern file-path") else {
            return;
        };
        let text = self.word(directive, &words[0]);
        match self.new_pattern(text, Case::Sensitive) {
            Ok((matcher, handles)) => {
                let target = self.word(directive, &words[1]);
                let matcher = AliasMatcher::of(matcher);
                let rule = AliasRule {
                    matcher,
                    target,
                    status: 0,
                    is_ready: false,
                    place: directive.place,
                };
                let filing = Filing::of(handles);
                self.servers[context.server].path_aliases.push(rule, filing);
            }
            Err(error) => self.bad_pattern(directive, &words[0], &error),
        }
    }

    fn add_redirect(
        &mut self,
        directive: &Directive<'_>,
        (status, subject): (u16, Subject),
        path: &Word<'_>,
        target: Option<&Word<'_>>,
        context: &mut Context<'_>,
    ) {
        if !self.status_fits(directive, status, target) {
            return;
        }
        let (matcher, filing) = match subject {
            Subject::Path => {
                if !self.target_fits(directive, target) {
                    return;
                }
                self.warn_of_relative(directive, path);
                if let Some(target) = target {
                    self.warn_of_bare_host(directive, path, target);
                }
                let path = self.word(directive, path);
                (AliasMatcher::Path(path), AliasList::file_path(&mut self.pool, path))
            }
            Subject::Pattern => {
                let text = self.word(directive, path);
                match self.new_pattern(text, Case::Sensitive) {
                    Ok((matcher, handles)) => (AliasMatcher::of(matcher), Filing::of(handles)),
                    Err(error) => return self.bad_pattern(directive, path, &error),
                }
            }
        };
        let target = target.map(|word| self.word(directive, word)).unwrap_or_default();
        let is_ready =
            !matches!(matcher, AliasMatcher::Path(_)) && is_constant(self.pool.get(target));
        let rule = AliasRule { matcher, target, status, is_ready, place: directive.place };
        context.dir.redirects.push(rule, filing);
    }

    /// Whether the target of `Redirect` is a URL or a path; an error otherwise.
    fn target_fits(&mut self, directive: &Directive<'_>, target: Option<&Word<'_>>) -> bool {
        match target {
            Some(target) if !is_url(&target.text) && !target.text.starts_with(b"/") => {
                let finding = Finding::error(format!("redirect to non-URL {}", show(&target.text)))
                    .hint("a target is a URL with its scheme, or a path that begins with `/`");
                self.report_at(directive, target.at, target.len, finding);
                false
            }
            _ => true,
        }
    }

    fn warn_of_relative(&mut self, directive: &Directive<'_>, path: &Word<'_>) {
        if path.text.starts_with(b"/") {
            return;
        }
        let message = format!("{} never matches: paths begin with `/`", show(&path.text));
        let hint = format!("write `/{}`", String::from_utf8_lossy(&path.text));
        self.report_at(directive, path.at, path.len, Finding::warning(message).hint(hint));
    }

    /// Whether status and target go together; an error otherwise.
    fn status_fits(
        &mut self,
        directive: &Directive<'_>,
        status: u16,
        target: Option<&Word<'_>>,
    ) -> bool {
        match target {
            Some(target) if !is_redirect(status) => {
                let message = format!("status {status} is no redirect and takes no URL");
                self.report_at(directive, target.at, target.len, Finding::error(message));
                false
            }
            None if is_redirect(status) => {
                self.report(directive, Finding::error("the URL to redirect to is missing"));
                false
            }
            _ => true,
        }
    }

    /// A word as text of the pool: in its file, if it stands there as it is.
    pub(super) fn word(&mut self, directive: &Directive<'_>, word: &Word<'_>) -> Str {
        match &word.text {
            std::borrow::Cow::Borrowed(text) => {
                let quote = usize::from(text.len() < word.len);
                directive.args_text.slice(word.at + quote, text.len())
            }
            std::borrow::Cow::Owned(text) => self.pool.add(text),
        }
    }

    pub(super) fn bad_pattern(
        &mut self,
        directive: &Directive<'_>,
        word: &Word<'_>,
        error: &milepost_pcre::CompileError,
    ) {
        let message = format!("{} is not a regular expression: {error}", show(&word.text));
        let inside = word.len.min(error.offset + usize::from(word.len > word.text.len()));
        let at = word.at + inside.min(word.len.saturating_sub(1));
        self.report_at(directive, at, 1, Finding::error(message));
    }
}

impl AliasDraft {
    pub(super) fn push(&mut self, rule: AliasRule, filing: Filing) {
        self.rules.push(rule);
        self.filings.push(filing);
    }

    /// Makes the last rule answer 403, if it stands at `place`.
    pub(super) fn refuse_last(&mut self, place: Place) {
        if let Some(last) = self.rules.last_mut().filter(|last| last.place == place) {
            last.status = 403;
        }
    }

    /// The list, if there is a rule in it.
    pub(super) fn finish(self, builder: &Builder<'_>) -> Option<Part<AliasList>> {
        self.finish_list(builder).map(Part::new)
    }

    /// As [`AliasDraft::finish`], for a list that is a part of something else.
    pub(super) fn finish_list(self, builder: &Builder<'_>) -> Option<AliasList> {
        let AliasDraft { rules, filings } = self;
        (!rules.is_empty()).then(|| AliasList::new(&builder.pool, rules, &filings, builder.lookup))
    }
}

/// Reads a status: a word, or anything that begins with a digit.
fn status(text: &[u8]) -> Option<u16> {
    Some(match text.to_ascii_lowercase().as_slice() {
        b"permanent" => 301,
        b"temp" => 302,
        b"seeother" => 303,
        b"gone" => 410,
        [b'0'..=b'9', ..] => {
            let digits = text.iter().take_while(|byte| byte.is_ascii_digit());
            digits.fold(0_u16, |number, digit| {
                number.saturating_mul(10).saturating_add(u16::from(digit - b'0'))
            })
        }
        _ => return None,
    })
}

fn is_redirect(status: u16) -> bool {
    (300..400).contains(&status)
}

/// `ap_is_url`: a scheme and a colon at the start.
pub(crate) fn is_url(text: &[u8]) -> bool {
    // Nearly all are one of these.
    if text.starts_with(b"http:") || text.starts_with(b"https:") {
        return true;
    }
    let scheme =
        text.iter().take_while(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(byte));
    let len = scheme.count();
    len > 0 && text.get(len) == Some(&b':')
}
