//! What a client says that it wants, and how much an offer is what it wants.
//!
//! Transparent negotiation (RFC 2295, the field `Negotiate`) is not looked at.
//!
//! Source: httpd 2.4.71 `modules/mappers/mod_negotiation.c`, `get_entry`, `set_accept_quality`,
//! `mime_match`, `set_language_quality`, `set_encoding_quality`, `set_charset_quality`, `is_variant_better`,
//! `level_cmp`.

use std::cmp::Ordering;

use crate::number::leading_number;
use crate::program::{Mime, Priority};

/// How much something is wanted, in ten-thousandths.
type Quality = u32;

/// As much as can be asked for.
const WHOLE: Quality = 10_000;
/// Nobody has asked for it, but it is better than nothing.
const LEAST: Quality = 1;
/// `en`, where `en-GB` has been asked for.
const RELATED: Quality = 10;
/// `*/*` and `type/*`, of those who do not say themselves how much they want anything.
const ANY_TYPE: Quality = 100;
const ANY_SUBTYPE: Quality = 200;
/// A program, where files may be meant, and where they may not.
const SCRIPT: Quality = 10;
const SCRIPT_PREFERRED: Quality = 20_000;

/// The media type of what a handler makes.
pub(super) const SCRIPT_TYPE: &[u8] = b"application/x-httpd-cgi";

/// The level of HTML that does not say its own.
const HTML_LEVEL: u32 = 2;

/// The charset of a text that does not say its own.
const TEXT_CHARSET: &[u8] = b"iso-8859-1";

/// What is said of a file that could answer.
#[derive(Debug, Default)]
pub(super) struct Offer {
    pub(super) media_type: Vec<u8>,
    /// `level=` of the type.
    pub(super) level: u32,
    /// `qs=` of the type: how good it is by itself. Nothing is worth anything without a type.
    pub(super) worth: Quality,
    /// In lower case; empty if nothing says it.
    pub(super) charset: Vec<u8>,
    pub(super) languages: Vec<Vec<u8>>,
    /// Empty if it is sent as it is.
    pub(super) encoding: Vec<u8>,
    pub(super) bytes: u64,
}

/// The fields of a request about what it wants; `None` for one that is not there.
#[derive(Debug, Default)]
pub(super) struct Wishes {
    /// That for programs is among them.
    types: Vec<Range>,
    /// Whether any type is wanted less than wholly.
    says_how_much: bool,
    languages: Option<Vec<Range>>,
    charsets: Option<Vec<Range>>,
    encodings: Option<Vec<Range>>,
}

/// One item of such a field, its name in lower case.
#[derive(Debug, PartialEq, Eq)]
struct Range {
    name: Vec<u8>,
    quality: Quality,
    level: u32,
}

/// How good an offer is. All of its qualities are above 0.
#[derive(Debug, PartialEq, Eq)]
struct Rank<'o> {
    /// How much the type is wanted, times what the offer is worth.
    media: u64,
    media_type: &'o [u8],
    /// The level of the type if that is why it is wanted, and the level itself.
    levels: (u32, u32),
    language: Quality,
    /// The place in `LanguagePriority`; the number of places if it has none.
    place: usize,
    charset: Quality,
    /// Whether it says a charset that is not the one of all texts.
    has_charset: bool,
    encoding: Quality,
    bytes: u64,
}

impl Offer {
    /// One of a media type, which may name a charset.
    pub(super) fn of(media_type: &[u8]) -> Offer {
        let lower = media_type.to_ascii_lowercase();
        let mut parts = lower.split(|&byte| byte == b';').map(<[u8]>::trim_ascii);
        let name = parts.next().unwrap_or_default().to_vec();
        let charset = parts.find_map(|part| part.strip_prefix(b"charset="));
        let charset = charset.unwrap_or_default().iter().copied().filter(|&byte| byte != b'"');
        let charset = charset.collect();
        let range = ranges(&lower).pop();
        let (worth, level) = range.map_or((WHOLE, 0), |range| (range.quality, range.level));
        Offer { media_type: name, charset, level, worth, ..Offer::default() }
    }

    /// Whether it is sent as it is.
    pub(super) fn is_plain(&self) -> bool {
        matches!(&self.encoding[..], b"" | b"7bit" | b"8bit" | b"binary" | b"identity")
    }
}

impl Wishes {
    /// Reads them; `field` gives the value of a field of the request. `prefers_scripts`: it is one for a program
    /// rather than for a file.
    pub(super) fn new(prefers_scripts: bool, field: impl Fn(&[u8]) -> Option<Vec<u8>>) -> Wishes {
        let read = |name: &[u8]| field(name).map(|value| ranges(&value));
        let types = read(b"Accept");
        let says_how_much = types.iter().flatten().any(|range| range.quality < WHOLE);
        let mut types = types
            .unwrap_or_else(|| vec![Range { name: b"*/*".to_vec(), quality: WHOLE, level: 0 }]);
        let quality = if prefers_scripts { SCRIPT_PREFERRED } else { SCRIPT };
        types.push(Range { name: SCRIPT_TYPE.to_vec(), quality, level: 0 });
        Wishes {
            types,
            says_how_much,
            languages: read(b"Accept-Language"),
            charsets: read(b"Accept-Charset"),
            encodings: read(b"Accept-Encoding"),
        }
    }

    /// Returns the number of the best offer, the first of equal ones; `None` if none is wanted.
    ///
    /// `preferred` is a language that is taken, if it is there, whatever the client says.
    pub(super) fn best(
        &self,
        offers: &[(usize, &Offer)],
        preferred: Option<&[u8]>,
        mime: Option<&Mime>,
    ) -> Option<usize> {
        let negotiates = offers.iter().any(|(_, offer)| !offer.languages.is_empty());
        let without = if negotiates { LEAST } else { WHOLE };
        let best_of = |preferred: Option<&[u8]>| {
            let mut best: Option<(usize, Rank<'_>)> = None;
            for (number, offer) in offers {
                let is_spoken = |wanted: &[u8]| offer.languages.iter().any(|it| *it == wanted);
                let language = match preferred {
                    Some(wanted) if !is_spoken(wanted) => continue,
                    Some(_) => (WHOLE, None),
                    None => self.language(offer, without, mime),
                };
                let Some(rank) = self.rank(offer, language) else { continue };
                if best.as_ref().is_none_or(|(_, known)| rank.is_better(known)) {
                    best = Some((*number, rank));
                }
            }
            best.map(|(number, _)| number)
        };
        preferred.and_then(|wanted| best_of(Some(wanted))).or_else(|| best_of(None))
    }

    fn rank<'o>(
        &self,
        offer: &'o Offer,
        (language, place): (Quality, Option<usize>),
    ) -> Option<Rank<'o>> {
        let (media, matched) = self.media(&offer.media_type, offer.level);
        let rank = Rank {
            media: u64::from(media) * u64::from(offer.worth),
            media_type: &offer.media_type,
            levels: (matched, offer.level),
            language,
            place: place.unwrap_or(usize::MAX),
            charset: self.charset(offer),
            has_charset: !offer.charset.is_empty() && offer.charset != TEXT_CHARSET,
            encoding: self.encoding(offer),
            bytes: offer.bytes,
        };
        let wanted = [rank.language, rank.charset, rank.encoding];
        (rank.media > 0 && !wanted.contains(&0)).then_some(rank)
    }

    /// How much a type is wanted, and its level if a range of just this type takes that. The most exact range
    /// counts.
    fn media(&self, media_type: &[u8], level: u32) -> (Quality, u32) {
        let kind = media_type.split(|&byte| byte == b'/').next().unwrap_or_default();
        let mut best = (0, 0);
        for range in &self.types {
            let exactness = if range.name == media_type && range.level >= level {
                3
            } else if range.name.strip_suffix(b"/*").is_some_and(|of| of == kind) {
                2
            } else {
                u32::from(matches!(&range.name[..], b"*" | b"*/*"))
            };
            if exactness > best.0 {
                best = match exactness {
                    1 if !self.says_how_much => (1, ANY_TYPE),
                    2 if !self.says_how_much => (2, ANY_SUBTYPE),
                    _ => (exactness, range.quality),
                };
            }
        }
        (best.1, if best.0 == 3 { level } else { 0 })
    }

    /// The quality of the language that is wanted most, and the first place that one has in `LanguagePriority`.
    /// `without` is the quality of an offer without any.
    fn language(
        &self,
        offer: &Offer,
        without: Quality,
        mime: Option<&Mime>,
    ) -> (Quality, Option<usize>) {
        if offer.languages.is_empty() {
            return (without, None);
        }
        let quality =
            self.languages.as_ref().map_or(WHOLE, |wanted| spoken(wanted, &offer.languages));
        let Priority { prefer, fallback } = mime.and_then(|mime| mime.priority).unwrap_or_default();
        let order = mime.map_or(&[][..], |mime| &mime.languages);
        let begins = |language: &[u8], of: &[u8]| {
            language.get(..of.len()).is_some_and(|start| start.eq_ignore_ascii_case(of))
        };
        let place = |language: &Vec<u8>| order.iter().position(|known| begins(language, known));
        match offer.languages.iter().filter_map(place).min() {
            Some(place) if quality == 0 && fallback => (LEAST, Some(place)),
            Some(place) if quality > 0 && prefer => (quality, Some(place)),
            _ => (quality, None),
        }
    }

    fn charset(&self, offer: &Offer) -> Quality {
        let Some(wanted) = &self.charsets else { return WHOLE };
        let charset = match &offer.charset[..] {
            [] if !offer.media_type.starts_with(b"text/") => return WHOLE,
            [] => TEXT_CHARSET,
            charset => charset,
        };
        let without = if charset == TEXT_CHARSET { WHOLE } else { 0 };
        named(wanted, |name| name == charset).unwrap_or(without)
    }

    fn encoding(&self, offer: &Offer) -> Quality {
        let is_plain = offer.is_plain();
        let Some(wanted) = &self.encodings else {
            return if is_plain { WHOLE } else { WHOLE / 2 };
        };
        let encoding = if is_plain { b"identity" } else { &offer.encoding[..] };
        let without = if is_plain { LEAST } else { 0 };
        named(wanted, |name| short(name) == short(encoding)).unwrap_or(without)
    }
}

impl Rank<'_> {
    fn is_better(&self, other: &Rank<'_>) -> bool {
        // Of one type, the highest level that was asked for, or else the lowest there is.
        let levels = match self.media_type == other.media_type {
            true => self.levels.0.cmp(&other.levels.0).then(other.levels.1.cmp(&self.levels.1)),
            false => Ordering::Equal,
        };
        let first = (self.media.cmp(&other.media))
            .then(self.language.cmp(&other.language))
            .then(other.place.cmp(&self.place))
            .then(levels)
            .then(self.charset.cmp(&other.charset));
        match first {
            Ordering::Greater => true,
            Ordering::Less => false,
            Ordering::Equal if self.has_charset && !other.has_charset => true,
            Ordering::Equal => {
                self.encoding.cmp(&other.encoding).then(other.bytes.cmp(&self.bytes)).is_gt()
            }
        }
    }
}

/// The name of an encoding without the `x-` of old.
fn short(name: &[u8]) -> &[u8] {
    name.strip_prefix(b"x-").unwrap_or(name)
}

/// The quality of the first range with a name that is meant, or else of the last `*`.
fn named(ranges: &[Range], is_meant: impl Fn(&[u8]) -> bool) -> Option<Quality> {
    let any = || ranges.iter().rfind(|range| range.name == b"*");
    ranges.iter().find(|range| is_meant(&range.name)).or_else(any).map(|range| range.quality)
}

/// How much the best of these languages is wanted. For each, the longest range counts that it begins with.
fn spoken(wanted: &[Range], languages: &[Vec<u8>]) -> Quality {
    let mut best: Option<Quality> = None;
    let mut related = 0;
    let any = wanted.iter().find(|range| range.name == b"*").map(|range| range.quality);
    let mut may_be_any = false;
    for language in languages {
        let mut longest: Option<&Range> = None;
        for range in wanted.iter().filter(|range| range.name != b"*") {
            let name = &range.name;
            let rest = language.strip_prefix(&name[..]);
            if rest.is_some_and(|rest| matches!(rest, [] | [b'-', ..]))
                && name.len() > longest.map_or(0, |known| known.name.len())
            {
                longest = Some(range);
            }
            // As in httpd, whatever begins with the same letters is taken for related.
            if longest.is_none()
                && let Some(dash) = memchr::memchr(b'-', name)
                && language.starts_with(&name[..dash])
            {
                related = RELATED;
            }
        }
        best = best.max(longest.map(|range| range.quality));
        may_be_any |= longest.is_none();
    }
    if may_be_any {
        best = best.max(any);
    }
    best.unwrap_or(related)
}

/// The items of a field.
fn ranges(field: &[u8]) -> Vec<Range> {
    let mut ranges = Vec::new();
    for item in field.split(|&byte| byte == b',') {
        let mut parts = item.split(|&byte| byte == b';');
        let names = parts.next().unwrap_or_default().split(u8::is_ascii_whitespace);
        let names = names.filter(|name| !name.is_empty());
        ranges.extend(names.map(|name| {
            let name = name.to_ascii_lowercase();
            let level = if name == b"text/html" { HTML_LEVEL } else { 0 };
            Range { name, quality: WHOLE, level }
        }));
        let Some(last) = ranges.last_mut() else { continue };
        for part in parts {
            let Some(at) = memchr::memchr(b'=', part) else { continue };
            match part[..at].trim_ascii().to_ascii_lowercase().as_slice() {
                b"q" | b"qs" => last.quality = quality(&part[at + 1..]),
                b"level" => last.level = level(&part[at + 1..]),
                _ => {}
            }
        }
    }
    ranges
}

/// Reads a level: the digits that it begins with.
fn level(text: &[u8]) -> u32 {
    let text = text.trim_ascii_start();
    let number = leading_number(text.strip_prefix(b"\"").unwrap_or(text));
    u32::try_from(number).unwrap_or_default()
}

/// Reads a quality as httpd does: three digits count, and what is no number below 1 is 1.
fn quality(text: &[u8]) -> Quality {
    let text = text.trim_ascii_start();
    let text = text.strip_prefix(b"\"").unwrap_or(text);
    let fraction = match text {
        [b'0', b'.', rest @ ..] | [b'.', rest @ ..] => rest,
        [b'0', ..] => return 0,
        _ => return WHOLE,
    };
    let digits = fraction.iter().take(3).take_while(|byte| byte.is_ascii_digit());
    let weights = [1000, 100, 10];
    digits.zip(weights).map(|(digit, weight)| u32::from(digit - b'0') * weight).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wishes(fields: &[(&str, &str)]) -> Wishes {
        Wishes::new(false, |name| {
            let found = fields.iter().find(|(known, _)| known.as_bytes() == name);
            found.map(|(_, value)| value.as_bytes().to_vec())
        })
    }

    #[test]
    fn fields_are_read_as_they_come() {
        let read = |field: &str| -> Vec<(String, Quality)> {
            let ranges = ranges(field.as_bytes()).into_iter();
            ranges.map(|it| (String::from_utf8(it.name).unwrap(), it.quality)).collect()
        };
        let expected = [("text/html", 5000), ("a", WHOLE), ("b", 10)];
        let found = read("Text/HTML; level=1 ;Q=0.5, a b;q=.0019,, ");
        assert_eq!(found, expected.map(|(name, quality)| (name.to_owned(), quality)));
        for (text, expected) in [
            ("", WHOLE),
            ("1", WHOLE),
            ("0", 0),
            ("0.", 0),
            ("0.25x", 2500),
            ("\"0.1\"", 1000),
            ("x", WHOLE),
        ] {
            assert_eq!(quality(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn the_most_exact_type_counts() {
        for (accept, media_type, expected) in [
            ("text/html", "text/html", WHOLE),
            ("text/html;q=0.5, */*;q=0.1", "image/png", 1000),
            ("image/*", "image/png", ANY_SUBTYPE),
            ("image/*, text/*;q=0.9", "image/png", WHOLE),
            ("*/*, text/html;q=0.3", "text/html", 3000),
            ("text/html", "image/png", 0),
            ("*/*", "application/x-httpd-cgi", SCRIPT),
        ] {
            let wishes = wishes(&[("Accept", accept)]);
            let found = wishes.media(media_type.as_bytes(), 0);
            assert_eq!(found, (expected, 0), "{accept} {media_type}");
        }
    }

    #[test]
    fn the_longest_range_of_a_language_counts() {
        for (accept, languages, expected) in [
            ("de;q=0.8, en", &[&b"en-gb"[..]][..], WHOLE),
            ("en;q=0.8, en-gb;q=0.1", &[b"en-gb"], 1000),
            ("de;q=0.8", &[b"en"], 0),
            ("en-us", &[b"en"], RELATED),
            ("de;q=0.8, *;q=0.2", &[b"en"], 2000),
            ("de;q=0.8, en;q=0.4", &[b"en", b"de"], 8000),
            ("en;q=0, *", &[b"en"], 0),
        ] {
            let languages: Vec<_> = languages.iter().map(|it| it.to_vec()).collect();
            assert_eq!(spoken(&ranges(accept.as_bytes()), &languages), expected, "{accept}");
        }
    }

    #[test]
    fn encodings_have_two_names() {
        let wishes = wishes(&[("Accept-Encoding", "x-gzip;q=0.5, br")]);
        for (encoding, expected) in [("gzip", 5000), ("x-gzip", 5000), ("", LEAST), ("zstd", 0)] {
            let offer = Offer { encoding: encoding.into(), ..Offer::default() };
            assert_eq!(wishes.encoding(&offer), expected, "{encoding}");
        }
        let gzip = Offer { encoding: b"gzip".to_vec(), ..Offer::default() };
        assert_eq!(Wishes::default().encoding(&gzip), WHOLE / 2);
    }
}
