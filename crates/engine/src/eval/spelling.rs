//! mod_speling: where no file is, a file beside it whose name differs by one slip answers, by a redirect.
//!
//! One name that is nearer than all others gives a 301. Several, or one that has no more in common than what
//! stands before its first dot, give a 300 with a list of them.
//!
//! Source: httpd 2.4.71 `modules/mappers/mod_speling.c`, `check_speling`, `spdist`, `sort_by_quality`.

use milepost_http::path;

use super::listing::write_escaped;
use super::target::split_query;
use super::{Config, End, Hop, Run};
use crate::build::{bytes_to_path, path_to_bytes};
use crate::outside::FileKind;
use crate::program::Spelling;
use crate::trace::Event;

/// The note with the page of a 300.
pub(super) const VARIANTS: &[u8] = b"variant-list";

/// Names that a 300 lists; httpd lists all, however many a directory has.
const NAMES_MAX: usize = 1000;

/// How one name differs from another, the nearest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Slip {
    Case,
    Swapped,
    Missing,
    Extra,
    Mistyped,
    /// Only what is before the first dot is the same.
    Suffix,
}

impl Slip {
    /// What a person is told.
    fn reason(self) -> &'static str {
        match self {
            Slip::Case => "miscapitalized",
            Slip::Swapped => "transposed characters",
            Slip::Missing => "character missing",
            Slip::Extra => "extra character",
            Slip::Mistyped => "mistyped character",
            Slip::Suffix => "common basename",
        }
    }
}

/// A name that may have been meant.
struct Meant {
    name: Vec<u8>,
    slip: Slip,
}

impl Run<'_> {
    /// Redirects to the file that was meant, if nothing is where the request leads.
    pub(super) fn respell(&mut self, hop: &mut Hop, config: &Config<'_>) -> Option<End> {
        let spelling = config.get().spelling.filter(|spelling| spelling.is_on)?;
        let is_get = matches!(self.method(hop), b"GET" | b"HEAD");
        if !is_get || hop.kind != Some(FileKind::Missing) || hop.proxied || hop.subrequest {
            return None;
        }
        let slash = memchr::memrchr(b'/', &hop.filename).filter(|_| hop.uri != b"/")?;
        let (directory, asked) = (&hop.filename[..slash], &hop.filename[slash + 1..]);
        // What a rule has put in the place of the path is nothing that the client could mend.
        let above = hop.uri.strip_suffix(&hop.path_info[..])?.strip_suffix(asked)?.to_vec();
        let mut meant = self.meant(directory, asked, spelling)?;
        meant.sort_by_key(|meant| meant.slip);
        let nearest = meant.first()?;
        let next = meant.get(1).map(|meant| meant.slip);
        let is_clear = nearest.slip != Slip::Suffix && next != Some(nearest.slip);
        let query = match self.redirects {
            // Not as rules have left it.
            0 => split_query(self.request.target).1,
            _ => hop.has_args.then_some(&hop.args[..]),
        };
        self.note(None, |_| Event::Respelled {
            names: meant.iter().map(|meant| meant.name.clone()).collect(),
        });
        let url = |name: &[u8]| {
            let mut url = Vec::new();
            path::escape(&[&above, name, &hop.path_info].concat(), &mut url);
            for part in query.iter().flat_map(|query| [&b"?"[..], query]) {
                url.extend_from_slice(part);
            }
            url
        };
        if is_clear {
            let mut answer = std::mem::take(&mut self.work.answer);
            answer.clear();
            self.write_self_url(&mut answer);
            answer.extend_from_slice(&url(&nearest.name));
            self.work.answer = answer;
            return Some(End::Redirect(301));
        }
        let page = page(&hop.uri, meant.iter().map(|meant| (url(&meant.name), meant.slip)));
        hop.notes.set(VARIANTS, &page);
        Some(End::Status(300))
    }

    /// The names of a directory that are near to one. `None`: it cannot be listed, or the name is there.
    fn meant(&self, directory: &[u8], asked: &[u8], spelling: Spelling) -> Option<Vec<Meant>> {
        let names = self.outside.list(bytes_to_path(directory)).ok()?;
        let mut meant = Vec::new();
        // httpd sees the directory itself and the one above it as names, too.
        let dots = [&b"."[..], b".."];
        for name in dots.into_iter().chain(names.iter().map(|name| path_to_bytes(name))) {
            // A link that leads nowhere: a redirect would lead back here.
            if name == asked {
                return None;
            }
            if let Some(slip) = slip(asked, name, spelling)
                && meant.len() < NAMES_MAX
            {
                meant.push(Meant { name: name.to_vec(), slip });
            }
        }
        Some(meant)
    }
}

/// How `asked` differs from `name`; `None` if by more than what counts.
fn slip(asked: &[u8], name: &[u8], spelling: Spelling) -> Option<Slip> {
    if asked.eq_ignore_ascii_case(name) {
        return Some(Slip::Case);
    }
    if !spelling.case_only
        && let Some(slip) = one_slip(asked, name)
    {
        return Some(slip);
    }
    let stem = |name: &[u8]| memchr::memchr(b'.', name).unwrap_or(name.len());
    let (asked, name) = (&asked[..stem(asked)], &name[..stem(name)]);
    (spelling.other_suffix && asked.eq_ignore_ascii_case(name)).then_some(Slip::Suffix)
}

/// The one slip between two names that differ in any case.
fn one_slip(asked: &[u8], name: &[u8]) -> Option<Slip> {
    let same = asked.iter().zip(name).take_while(|(a, b)| a.eq_ignore_ascii_case(b)).count();
    let (asked, name) = (&asked[same..], &name[same..]);
    let is_same = |a: Option<&[u8]>, b: Option<&[u8]>| match (a, b) {
        (Some(a), Some(b)) => a.eq_ignore_ascii_case(b),
        _ => false,
    };
    if let ([a, b, asked @ ..], [c, d, name @ ..]) = (asked, name)
        && (a.eq_ignore_ascii_case(d) && b.eq_ignore_ascii_case(c))
        && asked.eq_ignore_ascii_case(name)
    {
        return Some(Slip::Swapped);
    }
    match () {
        () if is_same(asked.get(1..), name.get(1..)) => Some(Slip::Mistyped),
        () if is_same(asked.get(1..), Some(name)) => Some(Slip::Extra),
        () if is_same(Some(asked), name.get(1..)) => Some(Slip::Missing),
        () => None,
    }
}

/// The page of a 300.
fn page(uri: &[u8], meant: impl Iterator<Item = (Vec<u8>, Slip)>) -> Vec<u8> {
    let mut page = b"<!DOCTYPE HTML PUBLIC \"-//IETF//DTD HTML 2.0//EN\">\n<html><head>\n\
        <title>300 Multiple Choices</title>\n</head><body>\n<h1>Multiple Choices</h1>\n\
        <p>There is no <code>"
        .to_vec();
    write_escaped(uri, &mut page);
    page.extend_from_slice(b"</code> here, but these have names like it:</p>\n<ul>\n");
    for (url, slip) in meant {
        page.extend_from_slice(b"<li><a href=\"");
        write_escaped(&url, &mut page);
        page.extend_from_slice(b"\">");
        write_escaped(&url, &mut page);
        page.extend_from_slice(format!("</a> ({})\n", slip.reason()).as_bytes());
    }
    page.extend_from_slice(b"</ul>\n</body></html>\n");
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_slip_counts() {
        for (asked, name, expected) in [
            ("Guide", "guide", Some(Slip::Case)),
            ("gudie", "Guide", Some(Slip::Swapped)),
            ("guid", "guide", Some(Slip::Missing)),
            ("guidee", "guide", Some(Slip::Extra)),
            ("guxde", "guide", Some(Slip::Mistyped)),
            ("guxxe", "guide", None),
            ("guide.txt", "GUIDE.html", Some(Slip::Suffix)),
            ("x", ".", Some(Slip::Mistyped)),
            ("xx", ".", None),
            ("x.", ".", Some(Slip::Extra)),
        ] {
            let found = slip(asked.as_bytes(), name.as_bytes(), Spelling::default());
            assert_eq!(found, expected, "{asked} {name}");
        }
    }

    #[test]
    fn less_can_count() {
        let case_only = Spelling { case_only: true, ..Spelling::default() };
        assert_eq!(slip(b"guid.x", b"guide.x", case_only), None);
        assert_eq!(slip(b"guide.x", b"Guide.y", case_only), Some(Slip::Suffix));
        let whole = Spelling { other_suffix: false, ..Spelling::default() };
        assert_eq!(slip(b"guide.xx", b"Guide.y", whole), None);
    }
}
