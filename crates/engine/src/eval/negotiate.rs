//! `MultiViews`: where `/a` is not there, `/a.html` or another file that begins with `a.` may answer.
//!
//! Each such file whose extensions are known is looked at by a subrequest; of those that would be sent, the
//! one that the client wants most ([`wishes`]) becomes the request. Where files begin so and none can be sent,
//! the answer is 404, whatever rules the directory has; where none of them is wanted, 406.
//!
//! A type map names such files itself.
//!
//! Source: httpd 2.4.71 `modules/mappers/mod_negotiation.c`, `handle_multi`, `handle_map_file`, `read_types_multi`,
//! `discard_variant_by_env`; `modules/http/mod_mime.c`, `find_ct`.

mod type_map;
mod wishes;

use milepost_http::path;
use wishes::{Offer, SCRIPT_TYPE, Wishes};

use super::content::add_default_charset;
use super::handler::{extension, extensions, handler_of};
use super::{Config, End, Hop, Run};
use crate::build::{bytes_to_path, path_to_bytes};
use crate::outside::FileKind;
use crate::program::Mime;

/// A file that could answer.
struct Variant {
    sub: Box<Hop>,
    offer: Offer,
}

/// What a file's name says of it.
#[derive(Default)]
pub(super) struct Described {
    pub(super) media_type: Option<Vec<u8>>,
    charset: Option<Vec<u8>>,
    languages: Vec<Vec<u8>>,
    encodings: Vec<Vec<u8>>,
    has_handler: bool,
    /// Extensions that mean nothing.
    unknown: Vec<Vec<u8>>,
}

impl Run<'_> {
    /// Lets a file that stands for `hop` take its place; false if there is none to try.
    pub(super) fn negotiate(&mut self, hop: &mut Hop, config: &Config<'_>) -> Result<bool, End> {
        if hop.kind != Some(FileKind::Missing)
            || config.get().options.multi_views != Some(true)
            || !self.program.names.modules.has("mod_negotiation.c")
        {
            return Ok(false);
        }
        let Some(slash) = memchr::memrchr(b'/', &hop.filename) else { return Ok(false) };
        let directory = hop.filename[..=slash].to_vec();
        let wanted = hop.filename[slash + 1..].to_vec();
        let Ok(mut names) = self.outside.list(bytes_to_path(&directory)) else {
            return Ok(false);
        };
        names.sort_unstable();
        let begins = |name: &[u8]| {
            name.strip_prefix(&wanted[..]).is_some_and(|rest| rest.first() == Some(&b'.'))
        };
        let mut variants = Vec::new();
        let mut any = false;
        for name in names.iter().map(|name| path_to_bytes(name)).filter(|name| begins(name)) {
            let path = [&directory, name].concat();
            if self.outside.kind_of_link(bytes_to_path(&path)) == FileKind::Directory {
                continue;
            }
            any = true;
            variants.extend(self.variant(hop, &directory, name, &wanted));
        }
        if variants.is_empty() {
            return if any { Err(End::Status(404)) } else { Ok(false) };
        }
        let prefers_scripts = !matches!(self.method(hop), b"GET" | b"HEAD")
            || hop.has_args
            || !hop.path_info.is_empty();
        let offers = variants.iter().map(|variant| &variant.offer);
        let best = self.best(hop, prefers_scripts, offers, config.get().mime.as_deref());
        let Some(best) = best else { return Err(End::Status(406)) };
        self.become_subrequest(hop, variants.swap_remove(best).sub);
        Ok(true)
    }

    /// Looks at one file; `None` if it cannot be sent.
    fn variant(
        &mut self,
        hop: &Hop,
        directory: &[u8],
        name: &[u8],
        wanted: &[u8],
    ) -> Option<Variant> {
        if self.subrequests >= self.server.recursion_max.1 {
            return None;
        }
        let mut sub = self.new_subrequest(hop);
        let path = hop.uri.strip_suffix(&hop.path_info[..]).unwrap_or(&hop.uri);
        let parent = memchr::memrchr(b'/', path).map_or(0, |slash| slash + 1);
        sub.uri = [&path[..parent], name, &hop.path_info].concat();
        sub.filename = [directory, name].concat();
        sub.set_args(hop.has_args.then_some(&hop.args));
        let rule = self.rule.clone();
        let answer = std::mem::take(&mut self.work.answer);
        self.subrequests += 1;
        let looked = self.look_at_file(&mut sub, &hop.path_info);
        self.subrequests -= 1;
        self.work.answer = answer;
        self.rule = rule;
        // A rule that leads elsewhere does so again, in the request itself.
        if !matches!(looked, Ok(()) | Err(End::Internal)) {
            return None;
        }
        let Some(FileKind::File(bytes)) = sub.kind else { return None };
        let config = sub.config.clone();
        let config = config.as_deref().unwrap_or(&self.server.base);
        let mut described = self.describe(config.mime.as_deref(), &sub.filename);
        // What means nothing must have been asked for, in the same order.
        let mut asked = wanted.split(|&byte| byte == b'.');
        let base = name.split(|&byte| byte == b'.').next().unwrap_or_default();
        let mut unknown = std::iter::once(base.to_vec()).chain(described.unknown.drain(..));
        if !unknown.all(|part| asked.any(|asked| *asked == *part)) {
            return None;
        }
        let handled = || described.has_handler.then(|| SCRIPT_TYPE.to_vec());
        let media_type = described.media_type.take().or_else(handled)?;
        let mut offer = Offer::of(&media_type);
        if let Some(charset) = described.charset {
            offer.charset = charset;
        }
        offer.languages = described.languages;
        offer.encoding = described.encodings.join(&b", "[..]);
        offer.bytes = bytes;
        Some(Variant { offer, sub: Box::new(sub) })
    }

    /// Whether a handler, or the type of a file, says that it is a type map.
    pub(super) fn reads_type_maps(&self, handler: &[u8]) -> bool {
        type_map::HANDLERS.contains(&handler) && self.program.names.modules.has("mod_negotiation.c")
    }

    /// Answers with what a type map names: a file, by an internal redirect, or a text of its own.
    pub(super) fn answer_by_map(&mut self, hop: &mut Hop, mime: Option<&Mime>) -> End {
        let map = match hop.kind {
            Some(FileKind::Directory) => Ok(Vec::new()),
            _ => self.outside.read(bytes_to_path(&hop.filename)),
        };
        let map = match map {
            Ok(map) => map,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return End::Status(404),
            Err(_) => return End::Status(403),
        };
        let slash = memchr::memrchr(b'/', &hop.filename).map_or(0, |slash| slash + 1);
        let (directory, own_name) = hop.filename.split_at(slash);
        let Ok(mut entries) = type_map::parse(&map, own_name) else { return End::Status(500) };
        for entry in &mut entries {
            let path = [directory, &entry.file].concat();
            entry.offer.bytes =
                entry.bytes.unwrap_or_else(|| match self.outside.kind(bytes_to_path(&path)) {
                    FileKind::File(bytes) => bytes,
                    _ => 0,
                });
        }
        let offers = entries.iter().map(|entry| &entry.offer);
        let Some(best) = self.best(hop, false, offers, mime) else { return End::Status(406) };
        let is_neighbour = |entry: &type_map::Entry| !entry.file.contains(&b'/');
        let is_one_place = hop.path_info.is_empty()
            && entries.iter().all(|entry| entry.body.is_none() && is_neighbour(entry));
        let entry = entries.swap_remove(best);
        if let Some(body) = entry.body {
            return self.send_body(hop, &entry.offer, &map[body], mime);
        }
        let path = [directory, &entry.file].concat();
        let named = mime.and_then(|mime| handler_of(mime, &path));
        if is_one_place && named.is_some_and(|named| self.reads_type_maps(named)) {
            // A map among the files of a map.
            return End::Status(506);
        }
        let uri = hop.uri.strip_suffix(&hop.path_info[..]).unwrap_or(&hop.uri);
        let parent = memchr::memrchr(b'/', uri).map_or(0, |slash| slash + 1);
        let answer = &mut self.work.answer;
        answer.clear();
        path::escape(&uri[..parent], answer);
        answer.extend_from_slice(&entry.file);
        answer.extend_from_slice(&hop.path_info);
        if hop.has_args {
            answer.push(b'?');
            answer.extend_from_slice(&hop.args);
        }
        hop.is_handled = false;
        End::Internal
    }

    /// Sends a text that stands in a map.
    fn send_body(&mut self, hop: &mut Hop, offer: &Offer, body: &[u8], mime: Option<&Mime>) -> End {
        if !matches!(self.method(hop), b"GET" | b"HEAD" | b"POST") {
            return End::Status(405);
        }
        let mut media_type = offer.media_type.clone();
        if !offer.charset.is_empty() {
            media_type.extend_from_slice(b"; charset=");
            media_type.extend_from_slice(&offer.charset);
        }
        add_default_charset(&mut media_type, mime);
        hop.fields.set(b"Content-Type", &media_type);
        if !offer.languages.is_empty() {
            hop.fields.set(b"Content-Language", &offer.languages.join(&b", "[..]));
        }
        if !offer.encoding.is_empty() {
            hop.fields.set(b"Content-Encoding", &offer.encoding);
        }
        self.work.answer.clear();
        self.work.answer.extend_from_slice(body);
        End::Page
    }

    /// The number of the offer that the client wants most, if it wants any.
    fn best<'o>(
        &self,
        hop: &Hop,
        prefers_scripts: bool,
        offers: impl Iterator<Item = &'o Offer>,
        mime: Option<&Mime>,
    ) -> Option<usize> {
        let wishes = Wishes::new(prefers_scripts, |name| {
            let mut value = Vec::new();
            self.write_request_field(name, &mut value).then_some(value)
        });
        let sends_encoded = |offer: &Offer| {
            let only_html = || self.env(hop, b"gzip-only-text/html").is_some_and(|it| *it == *b"1");
            self.env(hop, b"no-gzip").is_none()
                && (offer.media_type.starts_with(b"text/html") || !only_html())
        };
        let offers: Vec<_> = offers
            .enumerate()
            .filter(|(_, offer)| offer.is_plain() || sends_encoded(offer))
            .collect();
        wishes.best(&offers, self.env(hop, b"prefer-language").as_deref(), mime)
    }

    /// The phases of a subrequest for a file.
    fn look_at_file(&mut self, sub: &mut Hop, path_info: &[u8]) -> Result<(), End> {
        let naming = self.naming;
        let config = self.map_to_storage(sub).map_err(End::Status)?;
        sub.path_info.extend_from_slice(path_info);
        sub.config = config.shared();
        self.set_env_of_sections(sub, &config);
        self.check_access(sub, &config)?;
        let end = self.fixups(sub, &config);
        self.naming = naming;
        end.map_or(Ok(()), Err)
    }

    /// What mod_mime makes of a name.
    pub(super) fn describe(&self, mime: Option<&Mime>, filename: &[u8]) -> Described {
        let mut described = Described::default();
        for name in extensions(filename) {
            let said = mime.and_then(|mime| extension(mime, name));
            let mut known = false;
            let media_type = said.and_then(|said| said.media_type.as_deref());
            if let Some(media_type) =
                media_type.or_else(|| self.program.media_type(name, self.outside))
            {
                described.media_type = Some(media_type.to_vec()).filter(|said| !said.is_empty());
                known = true;
            }
            if let (Some(said), Some(mime)) = (said, mime) {
                described.languages.extend(said.language.as_ref().map(|it| it.to_vec()));
                described.encodings.extend(said.encoding.as_ref().map(|it| it.to_vec()));
                if let Some(charset) = &said.charset {
                    described.charset = Some(charset.to_vec());
                }
                described.has_handler |= said.handler.is_some();
                known |= said.language.is_some()
                    || said.encoding.is_some()
                    || said.charset.is_some()
                    || said.handler.is_some() && mime.match_handlers == Some(true)
                    || said.filter.is_some() && mime.match_filters == Some(true);
            }
            if !known {
                described.unknown.push(name.to_vec());
            }
        }
        if described.languages.is_empty() {
            let default = mime.and_then(|mime| mime.default_language.as_ref());
            described.languages.extend(default.map(|language| language.to_vec()));
        }
        described
    }
}
