//! `FallbackResource`, `DirectoryIndexRedirect`, `DirectoryCheckHandler`.
//!
//! Source: httpd 2.4.71 `modules/mappers/mod_dir.c`, `configure_redirect`, `dir_cmds`.

use std::sync::Arc;

use super::report::{Finding, show};
use super::{Builder, Context, Directive};

impl Builder<'_> {
    /// `FallbackResource URL-path|disabled`
    pub(super) fn fallback_resource(
        &mut self,
        directive: &Directive<'_>,
        context: &mut Context<'_>,
    ) {
        let usage = "FallbackResource URL-path";
        let Some(words) = self.words(directive, 1, 1, usage) else { return };
        let path = &words[0].text;
        context.dir.config.fallback = Some(if path.eq_ignore_ascii_case(b"disabled") {
            Arc::from([])
        } else {
            Arc::from(&**path)
        });
    }

    /// `DirectoryIndexRedirect On|Off|permanent|temp|seeother|3xx`
    pub(super) fn directory_index_redirect(
        &mut self,
        directive: &Directive<'_>,
        context: &mut Context<'_>,
    ) {
        let usage = "DirectoryIndexRedirect On|Off|permanent|temp|seeother|3xx";
        let Some(words) = self.words(directive, 1, 1, usage) else { return };
        let text = &words[0].text;
        let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let number = || std::str::from_utf8(&text[..digits]).ok()?.parse::<u16>().ok();
        let status = match text.to_ascii_lowercase().as_slice() {
            b"on" | b"temp" => Some(302),
            b"off" => None,
            b"permanent" => Some(301),
            b"seeother" => Some(303),
            _ => match number().filter(|status| (300..400).contains(status)) {
                Some(status) => Some(status),
                None => {
                    let finding = Finding::error(format!("{} is no redirect", show(text)))
                        .hint(format!("write `{usage}`"));
                    return self.report_at(directive, words[0].at, words[0].len, finding);
                }
            },
        };
        context.dir.config.index_redirect = Some(status);
    }

    /// `DirectoryCheckHandler On|Off`
    pub(super) fn directory_check_handler(
        &mut self,
        directive: &Directive<'_>,
        context: &mut Context<'_>,
    ) {
        let flag = self.flag(directive);
        context.dir.config.check_handler = flag.or(context.dir.config.check_handler);
    }
}
