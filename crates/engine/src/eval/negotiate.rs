//! `MultiViews`: where `/a` is not there, `/a.html` or another file that begins with `a.` may answer.
//!
//! Each such file whose extensions are known is looked at by a subrequest; of those that would be sent, the
//! best for the request's `Accept` and `Accept-Language` becomes the request. Where files begin so and none
//! can be sent, the answer is 404, whatever rules the directory has.
//!
//! Source: httpd 2.4.71 `modules/mappers/mod_negotiation.c`, `handle_multi`, `read_types_multi`,
//! `is_variant_better`; `modules/http/mod_mime.c`, `find_ct`.

use super::handler::{extension, extensions};
use super::{Config, End, Hop, Run};
use crate::build::{bytes_to_path, path_to_bytes};
use crate::outside::FileKind;
use crate::program::Mime;

/// A file that could answer.
struct Variant {
    sub: Box<Hop>,
    media_type: Vec<u8>,
    language: Option<Vec<u8>>,
    is_encoded: bool,
    size: u64,
}

/// What a file's name says of it.
#[derive(Default)]
pub(super) struct Described {
    pub(super) media_type: Option<Vec<u8>>,
    language: Option<Vec<u8>>,
    is_encoded: bool,
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
            any = true;
            variants.extend(self.variant(hop, &directory, name, &wanted));
        }
        if variants.is_empty() {
            return if any { Err(End::Status(404)) } else { Ok(false) };
        }
        let languages = config.get().mime.as_ref().map_or(&[][..], |mime| &mime.languages);
        let Some(best) = self.best(&variants, languages) else { return Err(End::Status(406)) };
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
        let Some(FileKind::File(size)) = sub.kind else { return None };
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
        let handled = || described.has_handler.then(|| b"application/x-httpd-cgi".to_vec());
        Some(Variant {
            media_type: described.media_type.take().or_else(handled)?,
            language: described.language.take(),
            is_encoded: described.is_encoded,
            size,
            sub: Box::new(sub),
        })
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
                if let Some(language) = &said.language {
                    described.language = Some(language.to_vec());
                }
                described.is_encoded |= said.encoding.is_some();
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
        described
    }

    /// The number of the best variant; `None` if the client wants none of them.
    fn best(&self, variants: &[Variant], priority: &[Box<[u8]>]) -> Option<usize> {
        let mut accept = Vec::new();
        let has_accept = self.write_request_field(b"Accept", &mut accept);
        let mut wanted_languages = Vec::new();
        let has_languages = self.write_request_field(b"Accept-Language", &mut wanted_languages);
        let rank = |variant: &Variant| {
            let media = if has_accept { media_quality(&accept, &variant.media_type) } else { 1000 };
            let language = match &variant.language {
                Some(language) if has_languages => language_quality(&wanted_languages, language),
                // Better than one in a language that was not asked for.
                None if has_languages => 1,
                _ => 1000,
            };
            let place = variant.language.as_deref().and_then(|language| {
                priority.iter().position(|known| known.eq_ignore_ascii_case(language))
            });
            let place = place.unwrap_or(usize::MAX);
            (media, language, std::cmp::Reverse((place, variant.is_encoded, variant.size)))
        };
        let mut best = None;
        for (number, variant) in variants.iter().enumerate() {
            let rank = rank(variant);
            // The first in alphabetical order stays where nothing tells two apart.
            if rank.0 > 0 && best.as_ref().is_none_or(|(_, known)| rank > *known) {
                best = Some((number, rank));
            }
        }
        best.map(|(number, _)| number)
    }
}

/// How much `Accept` wants a media type, in thousandths.
fn media_quality(accept: &[u8], media_type: &[u8]) -> u32 {
    let media_type = media_type.split(|&byte| byte == b';').next().unwrap_or_default().trim_ascii();
    let kind = media_type.split(|&byte| byte == b'/').next().unwrap_or_default();
    let mut best = (0, 0);
    for (range, quality) in ranges(accept) {
        let exactness = if range.eq_ignore_ascii_case(media_type) {
            3
        } else if range.strip_suffix(b"/*").is_some_and(|range| range.eq_ignore_ascii_case(kind)) {
            2
        } else if matches!(range, b"*/*" | b"*") {
            1
        } else {
            0
        };
        if exactness > best.0 {
            best = (exactness, quality);
        }
    }
    best.1
}

/// How much `Accept-Language` wants a language, in thousandths.
fn language_quality(accept: &[u8], language: &[u8]) -> u32 {
    let mut best = (0, 0);
    for (range, quality) in ranges(accept) {
        let begins = language.len() > range.len()
            && language[..range.len()].eq_ignore_ascii_case(range)
            && language[range.len()] == b'-';
        let exactness = if range.eq_ignore_ascii_case(language) {
            3
        } else if begins {
            2
        } else {
            u32::from(range == b"*")
        };
        if exactness > best.0 {
            best = (exactness, quality);
        }
    }
    best.1
}

/// The ranges of an `Accept` field and their qualities, in thousandths.
fn ranges(field: &[u8]) -> impl Iterator<Item = (&[u8], u32)> {
    field.split(|&byte| byte == b',').map(|part| {
        let mut parts = part.split(|&byte| byte == b';').map(<[u8]>::trim_ascii);
        let range = parts.next().unwrap_or_default();
        let quality = parts.find_map(|part| {
            let value = part.strip_prefix(b"q=").or(part.strip_prefix(b"Q="))?;
            std::str::from_utf8(value).ok()?.parse::<f32>().ok()
        });
        (range, (quality.unwrap_or(1.0).clamp(0.0, 1.0) * 1000.0) as u32)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn qualities() {
        for (accept, media_type, expected) in [
            ("text/html", "text/html", 1000),
            ("text/html;q=0.5, */*;q=0.1", "text/html; charset=x", 500),
            ("text/html;q=0.5, */*;q=0.1", "image/png", 100),
            ("image/*", "image/png", 1000),
            ("text/html", "image/png", 0),
        ] {
            assert_eq!(media_quality(accept.as_bytes(), media_type.as_bytes()), expected);
        }
        assert_eq!(language_quality(b"de;q=0.8, en", b"en-GB"), 1000);
        assert_eq!(language_quality(b"de;q=0.8", b"en"), 0);
    }
}
