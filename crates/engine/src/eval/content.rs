//! What a response says of its content: type, encoding, languages, and when it expires.
//!
//! Each extension of a file's name adds what it means; of types the last one counts. `ForceType` comes
//! before any of them, and `T=` of a rule before that. A charset belongs to the type: one that an extension
//! names, or else that of `AddDefaultCharset` for text.
//!
//! Source: httpd 2.4.71 `modules/http/mod_mime.c`, `find_ct`; `server/core.c`, `core_override_type`;
//! `modules/http/http_protocol.c`, `ap_make_content_type`; `modules/metadata/mod_expires.c`,
//! `expires_filter`, `set_expiration_fields`.

use super::cookie::write_date;
use super::handler::{extension, extensions};
use super::identity::write_text;
use super::rewrite::FORCED_TYPE;
use super::{Hop, Run};
use crate::build::bytes_to_path;
use crate::program::{Expires, ExpiryBase, Mime};

/// The types that get the charset of `AddDefaultCharset`.
const WITH_CHARSET: [&[u8]; 2] = [b"text/plain", b"text/html"];

/// The type of the pages that the server makes itself.
const PAGE_TYPE: &[u8] = b"text/html";

/// The type of those that say a status, unless a variable takes the charset from them.
const STATUS_PAGE_TYPE: &[u8] = b"text/html; charset=iso-8859-1";

impl Run<'_> {
    /// Sets the type of the file, before directives change fields.
    pub(super) fn describe_type(&mut self, hop: &mut Hop, mime: Option<&Mime>) {
        let mut media_type = self.take_buffer();
        let mut charset = None;
        for name in extensions(&hop.filename) {
            let said = mime.and_then(|mime| extension(mime, name));
            let forced = said.and_then(|said| said.media_type.as_deref());
            let found = forced.or_else(|| self.program.media_type(name, self.outside));
            if let Some(found) = found.filter(|found| !found.is_empty()) {
                media_type.clear();
                media_type.extend_from_slice(found);
            }
            charset = said.and_then(|said| said.charset.as_deref()).or(charset);
        }
        if let Some(charset) = charset.filter(|_| !media_type.is_empty()) {
            set_charset(&mut media_type, charset);
        }
        let forced = mime.and_then(|mime| mime.forced_type.as_deref());
        let forced = hop.notes.get(FORCED_TYPE).or(forced.filter(|forced| !forced.is_empty()));
        if let Some(forced) = forced {
            media_type.clear();
            media_type.extend_from_slice(forced);
        }
        add_default_charset(&mut media_type, mime);
        if !media_type.is_empty() {
            hop.fields.set(b"Content-Type", &media_type);
        }
        self.put_buffer(media_type);
    }

    /// The type of the answer, as expressions see it; empty before there is one.
    pub(super) fn content_type<'h>(&self, hop: &'h Hop) -> &'h [u8] {
        let plain = || hop.env.get(b"suppress-error-charset").is_some();
        match hop.fields.get(b"Content-Type") {
            Some(said) => said,
            None if !hop.says_status => b"",
            None if plain() => PAGE_TYPE,
            None => STATUS_PAGE_TYPE,
        }
    }

    /// Sets encodings and languages of the file: no directive changes those that its name says, but
    /// `Header` can say others.
    pub(super) fn describe_coding(&mut self, hop: &mut Hop, mime: Option<&Mime>) {
        let Some(mime) = mime else { return };
        let mut encodings = self.take_buffer();
        let mut languages = self.take_buffer();
        for said in extensions(&hop.filename).filter_map(|name| extension(mime, name)) {
            append(&mut encodings, b", ", said.encoding.as_deref());
            append(&mut languages, b",", said.language.as_deref());
        }
        if languages.is_empty() {
            append(&mut languages, b"", mime.default_language.as_deref());
        }
        for (name, mut value) in
            [(&b"Content-Encoding"[..], encodings), (b"Content-Language", languages)]
        {
            if !value.is_empty() {
                if name == b"Content-Language" {
                    let always = self.work.always.get(name);
                    join_languages(&mut value, always.or(hop.fields.get(name)));
                }
                self.work.always.remove(name);
                hop.fields.set(name, &value);
            }
            self.put_buffer(value);
        }
    }

    /// Sets when the answer expires, as mod_expires does: never for an error.
    pub(super) fn add_expiry(&mut self, hop: &mut Hop, expires: Option<&Expires>, is_file: bool) {
        let Some(expires) = expires.filter(|_| hop.status < 400) else { return };
        if hop.fields.get(b"Expires").is_some() || self.work.always.get(b"Expires").is_some() {
            return;
        }
        let media_type = if is_file { hop.fields.get(b"Content-Type") } else { Some(PAGE_TYPE) };
        let Some(expiry) = expires.find(media_type) else { return };
        let (now, _) = self.outside.now();
        let from = match expiry.from {
            ExpiryBase::Access => now,
            ExpiryBase::Modification => {
                let stamp = self.outside.stamp(bytes_to_path(&hop.filename));
                let Ok(Some(stamp)) = stamp else { return };
                i64::try_from(stamp.modified_ns.div_euclid(1_000_000_000)).unwrap_or(now)
            }
        };
        let expires = from.saturating_add(expiry.seconds).clamp(now, YEAR_9999);
        let mut text = self.take_buffer();
        write_text(&mut text, format_args!("max-age={}", expires - now));
        hop.fields.merge(b"Cache-Control", &text);
        text.clear();
        write_date(expires, ' ', &mut text);
        hop.fields.set(b"Expires", &text);
        self.put_buffer(text);
    }
}

/// The last second that a date of HTTP can name.
const YEAR_9999: i64 = 253_402_300_799;

fn append(list: &mut Vec<u8>, between: &[u8], value: Option<&[u8]>) {
    let Some(value) = value else { return };
    if !list.is_empty() {
        list.extend_from_slice(between);
    }
    list.extend_from_slice(value);
}

/// Adds the languages of a field that are not there yet.
fn join_languages(languages: &mut Vec<u8>, field: Option<&[u8]>) {
    let added = field.into_iter().flat_map(|field| field.split(|&byte| byte == b','));
    for language in added.map(<[u8]>::trim_ascii).filter(|language| !language.is_empty()) {
        let mut known = languages.split(|&byte| byte == b',');
        if !known.any(|known| known.eq_ignore_ascii_case(language)) {
            append(languages, b",", Some(language));
        }
    }
}

/// Gives a type its charset, in the place of the one that it has.
fn set_charset(media_type: &mut Vec<u8>, charset: &[u8]) {
    let mut parts = media_type.split(|&byte| byte == b';').map(<[u8]>::trim_ascii);
    let mut made = parts.next().unwrap_or_default().to_vec();
    let mut is_there = false;
    let push = |made: &mut Vec<u8>, name: &[u8], value: &[u8]| {
        made.extend_from_slice(b"; ");
        made.extend_from_slice(name);
        made.extend_from_slice(value);
    };
    for part in parts.filter(|part| !part.is_empty()) {
        if !part.starts_with(b"charset=") {
            push(&mut made, b"", part);
        } else if !std::mem::replace(&mut is_there, true) {
            push(&mut made, b"charset=", charset);
        }
    }
    if !is_there {
        push(&mut made, b"charset=", charset);
    }
    *media_type = made;
}

/// `AddDefaultCharset`
pub(super) fn add_default_charset(media_type: &mut Vec<u8>, mime: Option<&Mime>) {
    let charset = mime.and_then(|mime| mime.default_charset.as_deref()).unwrap_or_default();
    let has = |part: &[u8]| {
        media_type.windows(part.len()).any(|window| window.eq_ignore_ascii_case(part))
    };
    if !charset.is_empty() && !has(b"charset=") && WITH_CHARSET.iter().any(|known| has(known)) {
        media_type.extend_from_slice(b"; charset=");
        media_type.extend_from_slice(charset);
    }
}

#[cfg(test)]
mod tests {
    use super::set_charset;

    #[test]
    fn a_charset_takes_the_place_of_another() {
        for (media_type, expected) in [
            ("text/html", "text/html; charset=x"),
            ("text/html;charset=utf-8", "text/html; charset=x"),
            ("text/html; a=b; charset=utf-8", "text/html; a=b; charset=x"),
        ] {
            let mut made = media_type.as_bytes().to_vec();
            set_charset(&mut made, b"x");
            assert_eq!(made, expected.as_bytes(), "{media_type}");
        }
    }
}
