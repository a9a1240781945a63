//! Lists a directory, as mod_autoindex does.
//!
//! Each entry is looked at as a request for it would be, so what a section forbids is not listed.
//!
//! Source: httpd 2.4.71 `modules/generators/mod_autoindex.c`, `index_directory`, `make_autoindex_entry`,
//! `make_parent_entry`, `dsortf`, `emit_head`, `emit_tail`, `find_title`.

mod entry;
mod page;
mod shown;

use milepost_http::path;

use self::entry::Entry;
use self::page::{Page, write_plain};
use super::directory::Found;
use super::{Hop, Run};
use crate::build::{bytes_to_path, path_to_bytes};
use crate::outside::FileKind;
use crate::program::{Column, ListFlags, Listed, Listing, Mime, find_attached};
use crate::serving::ServingDir;
use crate::wildcard;

/// The most entries that a list has: it is made in memory, for each request.
const LISTED_MAX: usize = 10_000;

/// The most bytes of a header or readme that a page takes in.
const DOCUMENT_BYTES_MAX: u64 = 1 << 20;

/// How far into a document its title is looked for, in bytes.
const TITLE_BYTES_MAX: usize = 8191;

/// What a query asks of a list.
pub(super) struct Wanted {
    pub(super) flags: ListFlags,
    pub(super) column: Column,
    pub(super) downwards: bool,
    /// `P=`: entries are like this, escaped and not.
    pattern: Option<(Vec<u8>, Vec<u8>)>,
    /// `F=` and `V=`, for links to other orders.
    fancy: Option<u8>,
    version: Option<u8>,
}

impl Run<'_> {
    /// Writes the list of a directory into the answer.
    pub(super) fn list(
        &mut self,
        hop: &mut Hop,
        listing: &Listing,
        serving: &ServingDir,
        mime: Option<&Mime>,
    ) {
        let wanted = Wanted::new(listing, hop.has_args.then_some(&hop.args));
        let mut directory = hop.filename.clone();
        if directory.last() != Some(&b'/') {
            directory.push(b'/');
        }
        self.describe_list(hop, listing, serving, &directory);
        let mut title = Vec::new();
        write_escaped(&hop.uri, &mut title);
        while title.len() > 1 && title.ends_with(b"/") {
            title.pop();
        }
        let mut page = Page::new(listing, &wanted, title);
        let header = self.document(hop, find_attached(&listing.headers, Listed::at(&directory)));
        page.begin(header.as_ref());
        let mut entries: Vec<Entry> = parent(hop, listing, &directory).into_iter().collect();
        let mut names = self.outside.list(bytes_to_path(&directory)).unwrap_or_default();
        names.sort_unstable();
        for name in &names {
            if entries.len() > LISTED_MAX {
                break;
            }
            let name = path_to_bytes(name);
            entries.extend(self.entry(hop, listing, mime, &wanted, &directory, name));
        }
        entries.sort_by(|left, right| left.compare(right, &wanted));
        page.list(&entries);
        let readme = self.document(hop, find_attached(&listing.readmes, Listed::at(&directory)));
        page.end(readme.as_ref());
        let made = page.into_bytes();
        self.work.answer.clear();
        self.work.answer.extend_from_slice(&made);
    }

    /// Type, charset and, if asked, the validators. As in httpd, no condition is ever held against them.
    fn describe_list(
        &mut self,
        hop: &mut Hop,
        listing: &Listing,
        serving: &ServingDir,
        directory: &[u8],
    ) {
        let media_type = listing.media_type.as_deref().unwrap_or(b"text/html");
        let charset = listing.charset.as_deref().unwrap_or(b"ISO-8859-1");
        hop.fields.set(b"Content-Type", &[media_type, b";charset=", charset].concat());
        if listing.options.flags().has(ListFlags::TRACK_MODIFIED)
            && let Some(modified_ns) = self.outside.modified_ns(bytes_to_path(directory))
        {
            let seconds = modified_ns.div_euclid(1_000_000_000);
            let mut text = Vec::new();
            super::cookie::write_date(i64::try_from(seconds).unwrap_or(0), ' ', &mut text);
            hop.fields.set(b"Last-Modified", &text);
            if let Some(parts) = serving.resolve().etag
                && let Some(tag) = self.outside.directory_tag(bytes_to_path(directory), parts)
            {
                hop.fields.set(b"ETag", tag.as_bytes());
            }
        }
    }

    /// A header or readme, as HTML. A text of another type is shown as it is.
    fn document(&mut self, hop: &Hop, name: Option<&[u8]>) -> Option<Document> {
        let name = name?;
        let rule = self.rule.clone();
        let found = self.look_at(hop, name);
        self.rule = rule;
        let Found::File(mut sub) = found else { return None };
        let media_type = self.media_type(&mut sub)?;
        let is_html = media_type.eq_ignore_ascii_case(b"text/html");
        let is_text = media_type.get(..5).is_some_and(|it| it.eq_ignore_ascii_case(b"text/"));
        if !is_text || !matches!(sub.kind, Some(FileKind::File(0..=DOCUMENT_BYTES_MAX))) {
            return None;
        }
        let content = self.outside.read(bytes_to_path(&sub.filename)).ok()?;
        let mut html = Vec::with_capacity(content.len());
        if is_html {
            html = content;
        } else {
            write_plain(&content, &mut html);
        }
        Some(Document { html, is_html })
    }

    /// The type of what a subrequest has found, without parameters.
    fn media_type(&mut self, sub: &mut Hop) -> Option<Vec<u8>> {
        let config = sub.config.clone();
        let config = config.as_deref().unwrap_or(&self.server.base);
        self.describe_type(sub, config.mime.as_deref());
        let media_type = sub.fields.get(b"Content-Type")?;
        let bare = media_type.split(|&byte| byte == b';').next().unwrap_or_default();
        Some(bare.trim_ascii().to_vec())
    }

    /// An entry, unless it is not to be listed.
    fn entry(
        &mut self,
        hop: &Hop,
        listing: &Listing,
        mime: Option<&Mime>,
        wanted: &Wanted,
        directory: &[u8],
        name: &[u8],
    ) -> Option<Entry> {
        if wanted.pattern.as_ref().is_some_and(|(_, pattern)| !is_like(pattern, name)) {
            return None;
        }
        let file = [directory, name].concat();
        if listing.ignores(&file) {
            return None;
        }
        let mut sub =
            self.look_at_entry(hop, &file, name, wanted.flags.has(ListFlags::SHOW_FORBIDDEN))?;
        let (size, slash): (_, &[u8]) = match sub.kind {
            Some(FileKind::File(length)) => (Some(length), b""),
            Some(FileKind::Directory) => (None, b"/"),
            _ => return None,
        };
        let mut entry = Entry { name: [name, slash].concat(), ..Entry::default() };
        if !wanted.flags.has(ListFlags::FANCY | ListFlags::TABLE) {
            return Some(entry);
        }
        let modified_ns = self.outside.modified_ns(bytes_to_path(&file)).unwrap_or(0);
        let seconds = i64::try_from(modified_ns.div_euclid(1_000_000_000)).unwrap_or(0);
        entry.modified = Some((seconds, self.outside.utc_offset(seconds)));
        entry.modified_ns = modified_ns;
        entry.size = size;
        entry.is_directory = size.is_none();
        let media_type = self.media_type(&mut sub);
        let encoding = mime.and_then(|mime| super::handler::encoding(mime, &sub.filename));
        if entry.is_directory {
            entry.attach_as_directory(listing, &file, b"DIR");
        } else {
            let listed = Listed { path: &file, media_type: media_type.as_deref(), encoding };
            entry.icon = find_attached(&listing.icons, listed).map(<[u8]>::to_vec);
            entry.text = find_attached(&listing.texts, listed).map(<[u8]>::to_vec);
        }
        entry.description = listing.description(&file).map(<[u8]>::to_vec);
        let is_html = media_type.as_deref() == Some(b"text/html") && encoding.is_none();
        if entry.description.is_none() && is_html && wanted.flags.has(ListFlags::SCAN_TITLES) {
            let length_max = DOCUMENT_BYTES_MAX;
            if size.is_some_and(|size| size <= length_max) {
                entry.description = self.outside.read(bytes_to_path(&file)).ok().and_then(title);
            }
        }
        Some(entry)
    }

    /// Looks whether a request for the entry would be answered.
    fn look_at_entry(
        &mut self,
        hop: &Hop,
        file: &[u8],
        name: &[u8],
        shows_forbidden: bool,
    ) -> Option<Hop> {
        let mut sub = self.new_subrequest(hop);
        sub.uri.clone_from(&hop.uri);
        sub.uri.extend_from_slice(name);
        sub.filename.extend_from_slice(file);
        let (rule, naming, levels) = (self.rule.clone(), self.naming, self.levels);
        let answer = std::mem::take(&mut self.work.answer);
        self.subrequests += 1;
        let status = match self.map_to_storage(&mut sub) {
            Err(status) => status,
            Ok(config) => match self.check_access(&mut sub, &config) {
                Err(super::End::Status(status)) => status,
                _ => {
                    sub.config = config.shared();
                    200
                }
            },
        };
        self.subrequests -= 1;
        self.work.answer = answer;
        (self.rule, self.naming, self.levels) = (rule, naming, levels);
        let is_shown = status < 400 || shows_forbidden && matches!(status, 401 | 403);
        is_shown.then_some(sub)
    }
}

/// What a page takes in.
struct Document {
    html: Vec<u8>,
    /// It may have its own beginning and end.
    is_html: bool,
}

/// The entry that leads upwards; the root has none.
fn parent(hop: &Hop, listing: &Listing, directory: &[u8]) -> Option<Entry> {
    let path = hop.uri.strip_suffix(b"/").unwrap_or(&hop.uri);
    let slash = memchr::memrchr(b'/', path)?;
    let file = [directory, b".."].concat();
    if listing.ignores(&file) {
        return None;
    }
    let name = path[..=slash].to_vec();
    let mut entry = Entry { name, is_parent: true, ..Entry::default() };
    if listing.options.flags().has(ListFlags::FANCY) {
        entry.attach_as_directory(listing, &file, b"PARENTDIR");
        entry.description = listing.description(&file).map(<[u8]>::to_vec);
    }
    Some(entry)
}

/// Whether a name is like a pattern of a query. A dot at its beginning is met by a dot alone.
fn is_like(pattern: &[u8], name: &[u8]) -> bool {
    (name.first() != Some(&b'.') || pattern.first() == Some(&b'.'))
        && wildcard::matches_text(pattern, name, milepost_pcre::Case::Sensitive)
}

/// The title of an HTML document, on one line.
fn title(mut content: Vec<u8>) -> Option<Vec<u8>> {
    content.truncate(TITLE_BYTES_MAX);
    let lower = content.to_ascii_lowercase();
    let start = memchr::memmem::find(&lower, b"<title>")? + b"<title>".len();
    let rest = &content[start..];
    let end = memchr::memchr(b'<', rest).unwrap_or(rest.len());
    let is_break = |byte: &u8| matches!(byte, b'\r' | b'\n');
    let leading = rest[..end].iter().take_while(|byte| is_break(byte)).count();
    let text = &rest[leading..end];
    Some(text.iter().map(|byte| if is_break(byte) { b' ' } else { *byte }).collect())
}

impl Wanted {
    fn new(listing: &Listing, args: Option<&Vec<u8>>) -> Wanted {
        let (column, downwards) = listing.order.unwrap_or((Column::Name, false));
        let flags = listing.options.flags();
        let mut wanted =
            Wanted { flags, column, downwards, pattern: None, fancy: None, version: None };
        if flags.has(ListFlags::IGNORE_CLIENT) {
            wanted.flags |= ListFlags::NO_SORTING;
        } else {
            wanted.read(args.map(Vec::as_slice).unwrap_or_default());
        }
        wanted
    }

    /// Reads a query up to what is not understood.
    fn read(&mut self, query: &[u8]) {
        for part in query.split(|byte| b"&;".contains(byte)) {
            match part {
                [b'C', b'=', letter] => {
                    match Column::ALL.into_iter().find(|it| it.letter() == *letter) {
                        Some(column) => self.column = column,
                        None => return,
                    }
                }
                [b'O', b'=', letter @ (b'A' | b'D')] => self.downwards = *letter == b'D',
                [b'F', b'=', digit @ b'0'..=b'2'] => {
                    let plain = self.flags.without(ListFlags::FANCY | ListFlags::TABLE);
                    self.flags = match digit {
                        b'0' => plain,
                        b'1' => plain | ListFlags::FANCY,
                        _ => plain | ListFlags::FANCY | ListFlags::TABLE,
                    };
                    self.fancy = Some(*digit);
                }
                [b'V', b'=', digit @ (b'0' | b'1')] => {
                    let plain = self.flags.without(ListFlags::VERSION_SORT);
                    self.flags =
                        if *digit == b'0' { plain } else { plain | ListFlags::VERSION_SORT };
                    self.version = Some(*digit);
                }
                [b'P', b'=', pattern @ ..] => {
                    let mut plain = Vec::new();
                    let decoded =
                        path::unescape(pattern, path::EncodedSlashes::Decode, &mut plain).is_ok();
                    let mut escaped = Vec::new();
                    path::escape(&plain, &mut escaped);
                    self.pattern = (decoded && !plain.is_empty()).then_some((escaped, plain));
                }
                _ => return,
            }
        }
    }

    /// Writes what links to other orders keep of the query.
    fn write_kept(&self, out: &mut Vec<u8>) {
        for (name, digit) in [(&b";F="[..], self.fancy), (b";V=", self.version)] {
            if let Some(digit) = digit {
                out.extend_from_slice(name);
                out.push(digit);
            }
        }
        if let Some((escaped, _)) = &self.pattern {
            out.extend_from_slice(b";P=");
            // As httpd has it: no mark of HTML is left but `&`.
            out.extend_from_slice(escaped);
        }
    }
}

/// Appends text with what HTML gives a meaning to escaped.
pub(super) fn write_escaped(text: &[u8], out: &mut Vec<u8>) {
    for &byte in text {
        match byte {
            b'<' => out.extend_from_slice(b"&lt;"),
            b'>' => out.extend_from_slice(b"&gt;"),
            b'&' => out.extend_from_slice(b"&amp;"),
            b'"' => out.extend_from_slice(b"&quot;"),
            byte => out.push(byte),
        }
    }
}
