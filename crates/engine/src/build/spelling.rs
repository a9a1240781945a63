//! The directives of mod_speling: `CheckSpelling`, `CheckCaseOnly`, `CheckBasenameMatch`.
//!
//! Source: httpd 2.4.71 `modules/mappers/mod_speling.c`, `speling_cmds`, `mkconfig`.

use super::{Builder, Context, Directive};

impl Builder<'_> {
    /// Runs a directive whose argument is right; false if it is none of these.
    pub(super) fn spelling(
        &mut self,
        directive: &Directive<'_>,
        lower: &[u8],
        context: &mut Context<'_>,
    ) -> bool {
        let spelling = &mut context.dir.config.spelling;
        let is_on = || directive.texts().first().is_some_and(|it| it.eq_ignore_ascii_case(b"on"));
        match lower {
            b"checkspelling" => spelling.get_or_insert_default().is_on = is_on(),
            b"checkcaseonly" => spelling.get_or_insert_default().case_only = is_on(),
            b"checkbasenamematch" => spelling.get_or_insert_default().other_suffix = is_on(),
            _ => return false,
        }
        true
    }
}
