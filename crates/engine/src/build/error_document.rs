//! `ErrorDocument status document`.
//!
//! Source: httpd 2.4.71 `server/core.c`, `set_error_document`.

use super::report::{Finding, show};
use super::{Builder, Context, Directive, is_url};
use crate::program::{Document, DocumentKind, ErrorDocument, Part};
use crate::status;

impl Builder<'_> {
    pub(super) fn error_document(&mut self, directive: &Directive<'_>, context: &mut Context<'_>) {
        let Some(words) = self.words(directive, 2, 2, "ErrorDocument status document") else {
            return;
        };
        let (code, document) = (&words[0], &words[1]);
        let Some(status) = leading_status(&code.text).filter(|&status| status::is_known(status))
        else {
            let finding =
                Finding::error(format!("{} is no status that httpd knows", show(&code.text)))
                    .hint("write a number, such as 404");
            return self.report_at(directive, code.at, code.len, finding);
        };
        let text = &document.text;
        // Only a text with a variable, a group or an escape in it says other than it reads.
        let content = if text.iter().any(|byte| b"%$\\".contains(byte)) {
            match self.template(directive, document) {
                Some(template) => Document::Expanded(template),
                None => return,
            }
        } else {
            Document::Plain(self.word(directive, document))
        };
        // A text with a blank is no URL, whatever it begins with.
        let blank = text.contains(&b' ');
        let kind = if text.eq_ignore_ascii_case(b"default") {
            DocumentKind::Default
        } else if !blank && text.starts_with(b"/") {
            DocumentKind::Path(content)
        } else if !blank && is_url(text) {
            if status == 401 {
                let finding =
                    Finding::warning("a URL for 401 is ignored: the client would not log in")
                        .hint("name a path of this server");
                return self.report_at(directive, document.at, document.len, finding);
            }
            DocumentKind::Url(content)
        } else {
            DocumentKind::Text(content)
        };
        let documents = &mut context.dir.config.error_documents;
        documents.retain(|(known, _)| *known != status);
        documents.push((status, Part::new(ErrorDocument { kind, place: directive.place })));
    }
}

/// The digits that a text begins with, if they can be a status.
fn leading_status(text: &[u8]) -> Option<u16> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    std::str::from_utf8(&text[..digits]).ok()?.parse().ok()
}
