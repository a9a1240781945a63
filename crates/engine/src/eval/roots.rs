//! `/~user`, and document roots that are named after hosts.
//!
//! Source: httpd 2.4.71 `modules/mappers/mod_userdir.c`, `translate_userdir`; `modules/mappers/mod_vhost_alias.c`,
//! `mva_translate`, `vhost_alias_interpolate`.

use super::identity::write_text;
use super::{Context, End, Hop, Run, Translated};
use crate::build::bytes_to_path;
use crate::outside::FileKind;
use crate::program::{HostRoot, RootPiece, Span};

/// Parts of a host's name that can be asked for; more belong to the last one.
const PARTS_MAX: usize = 19;

/// Stands for a part that a name does not have.
const NO_PART: &[u8] = b"_";

impl Run<'_> {
    /// `UserDir`: the files of a user, or the server that has them.
    pub(super) fn translate_user(&mut self, hop: &mut Hop) -> Translated {
        let server = self.server;
        let Some(named) = hop.uri.strip_prefix(b"/~") else { return Translated::Declined };
        let end = memchr::memchr(b'/', named).unwrap_or(named.len());
        let (user, rest) = named.split_at(end);
        if matches!(user, b"" | b"." | b"..") || !server.user_dir.serves(user) {
            return Translated::Declined;
        }
        let places = &server.user_dir.places;
        for (place, number) in places.iter().zip(1..) {
            let file = match self.user_place(place, user) {
                Place::Url(mut url) => {
                    url.extend_from_slice(rest);
                    self.work.answer = url;
                    return Translated::End(End::Redirect(302));
                }
                Place::Directory(path) => path,
                Place::Nowhere => continue,
            };
            let is_last = number == places.len();
            if !is_last && self.outside.kind(bytes_to_path(&file)) == FileKind::Missing {
                continue;
            }
            let prefix = hop.uri[..b"/~".len() + user.len()].to_vec();
            hop.filename = [&file, rest].concat();
            hop.context = Some(Context { prefix, document_root: file });
            self.root_relative(&mut hop.filename);
            return Translated::Done;
        }
        Translated::Declined
    }

    /// What one place of `UserDir` means for a user.
    fn user_place(&self, place: &[u8], user: &[u8]) -> Place {
        let is_absolute = place.starts_with(b"/");
        let (before, behind) = match memchr::memchr(b'*', place) {
            Some(star) => (Some(&place[..star]), &place[star + 1..]),
            None => (None, place),
        };
        let url = before.filter(|before| !is_absolute && before.contains(&b':'));
        match (url, before) {
            // What follows the star does not count for another server.
            (Some(before), _) => Place::Url([before, user].concat()),
            (None, Some(before)) if is_absolute || behind.is_empty() => {
                Place::Directory([before, user, behind].concat())
            }
            (None, None) if is_absolute => Place::Directory([place, b"/", user].concat()),
            _ => match self.outside.home(user) {
                Some(home) => Place::Directory([&home, &b"/"[..], behind].concat()),
                None => Place::Nowhere,
            },
        }
    }

    /// `VirtualDocumentRoot` and its relatives.
    pub(super) fn translate_host(&mut self, hop: &mut Hop) -> Translated {
        let roots = &self.server.host_roots;
        let slashes = hop.uri.iter().take_while(|&&byte| byte == b'/').count();
        if slashes == 0 {
            return Translated::Declined;
        }
        let below_scripts = hop.uri[slashes..].strip_prefix(b"cgi-bin");
        let scripts = roots.scripts.as_ref().and_then(Option::as_ref);
        let scripts = scripts.zip(below_scripts.filter(|below| below.starts_with(b"/")));
        let documents = roots.documents.as_ref().and_then(Option::as_ref);
        let Some((root, below)) = scripts.or(documents.map(|root| (root, &hop.uri[..]))) else {
            return Translated::Declined;
        };
        if root.is_refused {
            return Translated::End(End::Status(403));
        }
        let mut path = Vec::new();
        self.write_root(root, &mut path);
        let ends_in_slash =
            matches!(root.pieces.last(), Some(RootPiece::Text(text)) if text.ends_with(b"/"));
        let below = if ends_in_slash { &below[1..] } else { below };
        hop.filename = [&path, below].concat();
        hop.context = Some(Context { prefix: Vec::new(), document_root: path.clone() });
        hop.document_root = Some(path);
        Translated::Done
    }

    /// Puts the parts of the name in.
    fn write_root(&self, root: &HostRoot, out: &mut Vec<u8>) {
        let mut name = Vec::new();
        if root.by_address {
            write_text(&mut name, format_args!("{}", self.request.local.ip().to_canonical()));
        } else {
            self.write_bare_name(&mut name);
        }
        for piece in &*root.pieces {
            match piece {
                RootPiece::Text(text) => out.extend_from_slice(text),
                RootPiece::Port => write_text(out, format_args!("{}", self.server_port())),
                RootPiece::Part(part, letters) => {
                    out.extend(part_of(&name, *part, *letters).to_ascii_lowercase());
                }
            }
        }
    }
}

/// Where a user's files are.
#[derive(Debug, PartialEq, Eq)]
enum Place {
    Directory(Vec<u8>),
    /// On another server; what follows the user's name is to be added.
    Url(Vec<u8>),
    Nowhere,
}

/// Some parts of a name, or some letters of them.
fn part_of(name: &[u8], part: Span, letters: Span) -> &[u8] {
    let dots = memchr::memchr_iter(b'.', name).take(PARTS_MAX - 1);
    let starts: Vec<usize> = [0].into_iter().chain(dots.clone().map(|dot| dot + 1)).collect();
    let ends: Vec<usize> = dots.chain([name.len()]).collect();
    let text = match part.of(starts.len()) {
        Some(range) => &name[starts[range.start]..ends[range.end - 1]],
        None => NO_PART,
    };
    letters.of(text.len()).map_or(NO_PART, |range| &text[range])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_parts() {
        let span = |number, from_end, and_rest| Span { number, from_end, and_rest };
        let all = Span::default();
        for (part, letters, expected) in [
            (all, all, "www.a.test"),
            (span(2, false, false), all, "a"),
            (span(2, false, true), all, "a.test"),
            (span(2, true, true), all, "www.a"),
            (span(4, false, false), all, "_"),
            (span(1, true, false), span(2, false, true), "est"),
            (span(1, false, false), span(4, false, false), "_"),
        ] {
            let found = part_of(b"www.a.test", part, letters);
            assert_eq!(found, expected.as_bytes(), "{part:?} {letters:?}");
        }
        assert_eq!(part_of(b"", all, all), b"");
        let many = "a.".repeat(30);
        assert_eq!(part_of(many.as_bytes(), span(1, true, false), all).len(), 60 - 36);
    }
}
