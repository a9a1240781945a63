//! Lines that load, in httpd too, and are most often not what was meant.
//!
//! Each is seen in the line alone; what takes several rules to see is found by [`crate::lint`].

use milepost_syntax::Word;

use super::report::{Finding, show};
use super::{Builder, Directive};

impl Builder<'_> {
    /// `Redirect / https://host`: what stands below `/` is put right behind the name of the host.
    pub(super) fn warn_of_bare_host(
        &mut self,
        directive: &Directive<'_>,
        path: &Word<'_>,
        target: &Word<'_>,
    ) {
        let authority = target.text.windows(3).position(|bytes| bytes == b"://").map(|at| at + 3);
        let rest = authority.and_then(|at| target.text.get(at..)).unwrap_or(b"/");
        if !path.text.ends_with(b"/") || rest.iter().any(|byte| b"/?#".contains(byte)) {
            return;
        }
        let target_text = String::from_utf8_lossy(&target.text);
        let below = [&path.text[..], b"a"].concat();
        let finding = Finding::warning(format!("{} goes to `{target_text}a`", show(&below)))
            .hint(format!("end the URL as the path ends: `{target_text}/`"));
        self.report_at(directive, target.at, target.len, finding);
    }

    /// `RewriteRule %{QUERY_STRING} …`: a pattern is compared with the path, and nothing in it is replaced.
    pub(super) fn warn_of_variable(&mut self, directive: &Directive<'_>, word: &Word<'_>) {
        let Some(at) = memchr::memmem::find(&word.text, b"%{") else { return };
        let rest = &word.text[at..];
        let Some(end) = memchr::memchr(b'}', rest) else { return };
        let variable = &rest[..=end];
        // `%{2}` is a percent sign, twice.
        if !rest[2].is_ascii_alphabetic() {
            return;
        }
        let finding =
            Finding::warning(format!("{} stands for itself in a pattern", show(variable))).hint(
                format!(
                    "test it before the rule: `RewriteCond {} pattern`",
                    String::from_utf8_lossy(variable)
                ),
            );
        self.report_at(directive, word.at, word.len, finding);
    }

    /// `RewriteRule pattern -[F]`: flags without a blank before them are a part of the substitution.
    pub(super) fn warn_of_glued_flags(&mut self, directive: &Directive<'_>, word: &Word<'_>) {
        let Some(inner) = word.text.strip_suffix(b"]") else { return };
        let Some(at) = memchr::memrchr(b'[', inner) else { return };
        if !inner[at + 1..].split(|byte| *byte == b',').all(|flag| self.is_flag(flag)) {
            return;
        }
        let (target, flags) = word.text.split_at(at);
        let (target, flags) = (String::from_utf8_lossy(target), String::from_utf8_lossy(flags));
        let finding = Finding::warning(format!("`{flags}` is a part of the target"))
            .hint(format!("write a blank before the flags: `{target} {flags}`"));
        self.report_at(directive, word.at, word.len, finding);
    }

    /// A comment behind a directive, whose words are arguments as well as any.
    pub(super) fn warn_of_comment(&mut self, directive: &Directive<'_>, lower: &[u8]) {
        // These read as many words as they need and leave the rest of the line.
        if memchr::memchr(b'#', directive.args).is_none()
            || matches!(lower, b"rewriterule" | b"rewritecond")
        {
            return;
        }
        let words = directive.words();
        let begins = |word: &&Word<'_>| word.len > 0 && directive.args.get(word.at) == Some(&b'#');
        let Some(word) = words.iter().skip(1).find(begins) else { return };
        let is_last = words.last().is_some_and(|last| last.at == word.at);
        if is_last && word.text.iter().any(|byte| *byte != b'#') {
            return;
        }
        let finding = Finding::warning("`#` begins no comment here: its words are arguments")
            .hint("a comment is a line of its own");
        self.report_at(directive, word.at, word.len, finding);
    }
}
