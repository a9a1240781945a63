//! `RegexDefaultOptions`, and the patterns that it is for: all that come after it, and those of `.htaccess` files.
//!
//! Source: httpd 2.4.71 `server/core.c`, `set_regex_default_options`; `server/util_pcre.c`, `ap_regcomp`,
//! `ap_regcomp_default_cflag_by_name`.

use milepost_pcre::{Case, CompileError, Options};

use super::{Builder, Directive};
use crate::index::Handle;
use crate::pattern::Pattern;
use crate::pool::Str;

impl Builder<'_> {
    /// Makes a pattern that means what patterns mean by now.
    ///
    /// # Errors
    /// When PCRE2 would not compile it.
    pub(super) fn new_pattern(
        &mut self,
        text: Str,
        case: Case,
    ) -> Result<(Pattern, Option<Handle>), CompileError> {
        Pattern::new(&mut self.pool, text, self.regex.with(case))
    }

    /// `RegexDefaultOptions [none] [+|-]option …`, whose words are known to be right. One without a sign
    /// leaves no other.
    pub(super) fn regex_default_options(&mut self, directive: &Directive<'_>) {
        const NONE: Options =
            Options { case: Case::Sensitive, dot_matches_all: false, dollar_at_end_only: false };
        for word in directive.texts() {
            let lower = word.to_ascii_lowercase();
            let (is_said, name) = match lower.split_first() {
                Some((b'+', name)) => (true, name),
                Some((b'-', name)) => (false, name),
                _ => {
                    self.regex = NONE;
                    (true, &lower[..])
                }
            };
            match name {
                b"icase" if is_said => self.regex.case = Case::Insensitive,
                b"icase" => self.regex.case = Case::Sensitive,
                b"dotall" => self.regex.dot_matches_all = is_said,
                b"dollar_endonly" => self.regex.dollar_at_end_only = is_said,
                _ => {}
            }
        }
    }
}
