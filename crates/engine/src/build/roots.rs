//! `UserDir`, and `VirtualDocumentRoot`, `VirtualScriptAlias` and their `IP` forms.
//!
//! Source: httpd 2.4.71 `modules/mappers/mod_userdir.c`, `set_user_dir`; `modules/mappers/mod_vhost_alias.c`,
//! `vhost_alias_set`.

use super::report::{Finding, show};
use super::{Builder, Context, Directive};
use crate::program::{HostRoot, RootPiece, Span};

impl Builder<'_> {
    /// Runs a directive whose arguments are right; false if it is none of these.
    pub(super) fn roots(
        &mut self,
        directive: &Directive<'_>,
        lower: &[u8],
        context: &Context<'_>,
    ) -> bool {
        match lower {
            b"userdir" => self.user_dir(directive, context),
            b"virtualdocumentroot" | b"virtualdocumentrootip" => {
                let root = self.host_root(directive, lower.ends_with(b"ip"));
                let roots = &mut self.servers[context.server].server.host_roots;
                roots.documents = root.or(roots.documents.take());
            }
            b"virtualscriptalias" | b"virtualscriptaliasip" => {
                let root = self.host_root(directive, lower.ends_with(b"ip"));
                let is_refused = matches!(root, Some(Some(_))) && self.runs_scripts();
                if is_refused {
                    self.warn_of_scripts(directive);
                }
                let root = root.map(|root| root.map(|root| HostRoot { is_refused, ..root }));
                let roots = &mut self.servers[context.server].server.host_roots;
                roots.scripts = root.or(roots.scripts.take());
            }
            _ => return false,
        }
        true
    }

    /// `UserDir place…`, `UserDir enabled|disabled [user…]`
    fn user_dir(&mut self, directive: &Directive<'_>, context: &Context<'_>) {
        let words = directive.texts();
        let Some((first, names)) = words.split_first() else { return };
        let users = &mut self.servers[context.server].server.user_dir;
        let is_off = match first.to_ascii_lowercase().as_slice() {
            b"disable" | b"disabled" => true,
            b"enable" | b"enabled" => false,
            _ => {
                users.places = words.iter().map(|word| Box::from(&**word)).collect();
                return;
            }
        };
        let list = if is_off { &mut users.disabled } else { &mut users.enabled };
        list.extend(names.iter().map(|name| Box::from(&**name)));
        if names.is_empty() {
            users.is_off = Some(is_off);
        }
    }

    /// The path of a directive of mod_vhost_alias; `Some(None)` for `None`.
    fn host_root(
        &mut self,
        directive: &Directive<'_>,
        by_address: bool,
    ) -> Option<Option<HostRoot>> {
        let words = directive.words();
        let word = words.first()?;
        if !word.text.starts_with(b"/") {
            return Some(None);
        }
        match pieces(&word.text) {
            Some(pieces) => {
                Some(Some(HostRoot { by_address, is_refused: false, pieces: pieces.into() }))
            }
            None => {
                let message =
                    format!("{} has a `%` with nothing behind it that is known", show(&word.text));
                let hint = "write `%0` for the whole name, `%1` or `%-2` for a part, `%2+` for a part and what \
                            follows, `%1.1` for a letter of a part, `%p` for the port, `%%` for `%`";
                self.report_at(directive, word.at, word.len, Finding::error(message).hint(hint));
                None
            }
        }
    }
}

/// The pieces of a path; `None`: a `%` is wrong.
fn pieces(text: &[u8]) -> Option<Vec<RootPiece>> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let Some(behind) = rest.strip_prefix(b"%") else {
            let end = memchr::memchr(b'%', rest).unwrap_or(rest.len());
            pieces.push(RootPiece::Text(rest[..end].into()));
            rest = &rest[end..];
            continue;
        };
        rest = match behind {
            [b'%', behind @ ..] => {
                pieces.push(RootPiece::Text((*b"%").into()));
                behind
            }
            [b'p', behind @ ..] => {
                pieces.push(RootPiece::Port);
                behind
            }
            behind => {
                let (part, mut behind) = span(behind)?;
                let mut letters = Span::default();
                if let Some(after) = behind.strip_prefix(b".") {
                    (letters, behind) = span(after)?;
                }
                pieces.push(RootPiece::Part(part, letters));
                behind
            }
        };
    }
    Some(pieces)
}

/// `[-]digit[+]`, and what follows it.
fn span(text: &[u8]) -> Option<(Span, &[u8])> {
    let digits = text.strip_prefix(b"-");
    let (digit, rest) =
        digits.unwrap_or(text).split_first().filter(|(it, _)| it.is_ascii_digit())?;
    let after = rest.strip_prefix(b"+");
    let number = usize::from(digit - b'0');
    let span = Span { number, from_end: digits.is_some(), and_rest: after.is_some() };
    Some((span, after.unwrap_or(rest)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_taken_apart() {
        let span = |number, from_end, and_rest| Span { number, from_end, and_rest };
        assert_eq!(
            pieces(b"/a%%%-2+.1/%p").unwrap(),
            [
                RootPiece::Text((*b"/a").into()),
                RootPiece::Text((*b"%").into()),
                RootPiece::Part(span(2, true, true), span(1, false, false)),
                RootPiece::Text((*b"/").into()),
                RootPiece::Port,
            ]
        );
        for wrong in ["/%", "/%x", "/%-", "/%1.", "/%1.x"] {
            assert_eq!(pieces(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
