//! How files are sent and when they expire: `FileETag`, `MaxRanges` and its relatives, mod_expires.
//!
//! Source: httpd 2.4.71 `server/core.c`, `set_etag_bits`, `set_max_ranges`; `modules/metadata/mod_expires.c`,
//! `check_code`, `set_expiresbytype`.

use crate::number::leading_number;
use std::sync::Arc;

use milepost_syntax::{Word, Words};

use super::report::{Finding, show};
use super::{Builder, Context, Directive};
use crate::program::{Expires, Expiry, ExpiryBase};
use crate::serving::{EtagBits, RangeLimit};

impl Builder<'_> {
    /// Runs a directive whose number of arguments is right; false if it is none of these.
    pub(super) fn serving(
        &mut self,
        directive: &Directive<'_>,
        lower: &[u8],
        context: &mut Context<'_>,
    ) -> bool {
        let words = directive.words();
        let serving = &mut context.dir.config.serving;
        match lower {
            b"fileetag" => self.file_etag(directive, &words, context),
            b"maxranges" => self.range_limit(directive, &words, &mut serving.ranges_max),
            b"maxrangeoverlaps" => self.range_limit(directive, &words, &mut serving.overlaps_max),
            b"maxrangereversals" => self.range_limit(directive, &words, &mut serving.reversals_max),
            b"expiresactive" => {
                expires_of(context).active = Some(words[0].text.eq_ignore_ascii_case(b"on"));
            }
            b"expiresdefault" => {
                if let Some(expiry) = self.expiry(directive, &words[0]) {
                    expires_of(context).default = Some(expiry);
                }
            }
            b"expiresbytype" => {
                if let Some(expiry) = self.expiry(directive, &words[1]) {
                    expires_of(context).set(&words[0].text.to_ascii_lowercase(), expiry);
                }
            }
            _ => return false,
        }
        true
    }

    /// `INode`, `MTime`, `Size`, `Digest`, with or without a sign; `All` and `None` without.
    fn file_etag(
        &mut self,
        directive: &Directive<'_>,
        words: &[Word<'_>],
        context: &mut Context<'_>,
    ) {
        let mut etag = context.dir.config.serving.etag;
        let mut is_first = true;
        for word in words {
            let lower = word.text.to_ascii_lowercase();
            let (sign, name) = match lower.split_first() {
                Some((sign @ (b'+' | b'-'), name)) => (Some(*sign), name),
                _ => (None, &lower[..]),
            };
            let bit = match name {
                b"inode" => EtagBits::INODE,
                b"mtime" | b"lmtime" | b"lastmodified" => EtagBits::MODIFIED,
                b"size" => EtagBits::SIZE,
                b"digest" => EtagBits::DIGEST,
                b"all" if sign.is_none() => EtagBits::ALL,
                b"none" if sign.is_none() => EtagBits::NONE,
                _ => {
                    let names = ["INode", "MTime", "Size", "Digest", "All", "None"];
                    let names = &names[..if sign.is_some() { 4 } else { 6 }];
                    let message = format!("{} is not known here", show(&word.text));
                    let hint = format!("write one of {}", names.join(", "));
                    let finding = Finding::error(message).hint(hint);
                    return self.report_at(directive, word.at, word.len, finding);
                }
            };
            match sign {
                Some(b'+') => {
                    etag.added |= bit;
                    etag.removed &= !bit;
                }
                Some(_) => {
                    etag.removed |= bit;
                    etag.added &= !bit;
                }
                None => {
                    // The first word without a sign starts over, as do `All` and `None`.
                    let starts_over = matches!(name, b"all" | b"none");
                    let set =
                        if std::mem::take(&mut is_first) || starts_over { 0 } else { etag.set };
                    etag = EtagBits { set: set | bit, ..EtagBits::default() };
                }
            }
        }
        context.dir.config.serving.etag = etag;
    }

    /// `none`, `default`, `unlimited`, or a number.
    fn range_limit(
        &mut self,
        directive: &Directive<'_>,
        words: &[Word<'_>],
        limit: &mut Option<RangeLimit>,
    ) {
        let word = &words[0];
        *limit = match word.text.to_ascii_lowercase().as_slice() {
            b"none" => Some(RangeLimit::None),
            b"default" => None,
            b"unlimited" => Some(RangeLimit::Unlimited),
            text => {
                let number = u32::try_from(atoi(text)).ok();
                let Some(number) = number.filter(|&number| number > 0) else {
                    let message = format!("{} is no number of ranges", show(&word.text));
                    let hint = "write a number above 0, `none`, `default` or `unlimited`";
                    let finding = Finding::error(message).hint(hint);
                    return self.report_at(directive, word.at, word.len, finding);
                };
                Some(RangeLimit::Most(number))
            }
        };
    }

    fn expiry(&mut self, directive: &Directive<'_>, word: &Word<'_>) -> Option<Expiry> {
        let message = match parse_expiry(&word.text) {
            Ok(expiry) => return Some(expiry),
            Err(message) => message,
        };
        let hint = "write `access plus 1 month`, or `A` or `M` and seconds";
        self.report_at(directive, word.at, word.len, Finding::error(message).hint(hint));
        None
    }
}

/// What the section says of expiry, made if it is new.
fn expires_of<'c>(context: &'c mut Context<'_>) -> &'c mut Expires {
    Arc::make_mut(context.dir.config.expires.get_or_insert_default())
}

/// Reads `A3600`, `M86400`, `access plus 1 month 2 days`; an error says what is wrong.
fn parse_expiry(text: &[u8]) -> Result<Expiry, String> {
    // The code as it is kept; what follows the number is not looked at.
    if let Some((letter @ (b'A' | b'M'), number)) = text.split_first() {
        let from = if *letter == b'A' { ExpiryBase::Access } else { ExpiryBase::Modification };
        return Ok(Expiry { from, seconds: atoi(number) });
    }
    let mut parts = Words::new(text).map(|part| part.text).filter(|part| !part.is_empty());
    // The first letters of each word count, in any case.
    let begins = |part: &[u8], start: &str| {
        part.get(..start.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(start.as_bytes()))
    };
    let base = parts.next().unwrap_or_default();
    let from = if begins(&base, "n") || begins(&base, "a") {
        ExpiryBase::Access
    } else if begins(&base, "m") {
        ExpiryBase::Modification
    } else {
        return Err(format!("{} is no time to count from", show(&base)));
    };
    let mut part = parts.next().unwrap_or_default();
    if begins(&part, "p") {
        part = parts.next().unwrap_or_default();
    }
    let mut seconds = 0_i64;
    while !part.is_empty() {
        if !part[0].is_ascii_digit() {
            return Err(format!("{} is no number", show(&part)));
        }
        let Some(unit) = parts.next() else {
            return Err(format!("the unit of {} is missing", show(&part)));
        };
        const UNITS: &[(&str, i64)] = &[
            ("y", 365 * 86_400),
            ("mo", 30 * 86_400),
            ("w", 7 * 86_400),
            ("d", 86_400),
            ("h", 3600),
            ("mi", 60),
            ("s", 1),
        ];
        let Some((_, factor)) = UNITS.iter().find(|(start, _)| begins(&unit, start)) else {
            return Err(format!("{} is no unit of time", show(&unit)));
        };
        seconds = seconds.saturating_add(atoi(&part).saturating_mul(*factor));
        part = parts.next().unwrap_or_default();
    }
    Ok(Expiry { from, seconds })
}

/// As C's `atoi`, which has 32 bits.
fn atoi(text: &[u8]) -> i64 {
    leading_number(text).clamp(-i64::from(i32::MAX), i64::from(i32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_expiry() {
        for (text, from, seconds) in [
            ("A3600", ExpiryBase::Access, 3600),
            ("M-5x", ExpiryBase::Modification, -5),
            ("access", ExpiryBase::Access, 0),
            ("now plus 1 month 2 days", ExpiryBase::Access, 32 * 86_400),
            ("modification 1 year 1 minute", ExpiryBase::Modification, 365 * 86_400 + 60),
        ] {
            assert_eq!(parse_expiry(text.as_bytes()), Ok(Expiry { from, seconds }), "{text}");
        }
        for text in ["", "later", "access plus", "access plus x days", "access plus 1"] {
            let is_fine = text == "access plus";
            assert_eq!(parse_expiry(text.as_bytes()).is_ok(), is_fine, "{text}");
        }
    }
}
