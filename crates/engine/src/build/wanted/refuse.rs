//! Whether an argument is what a directive wants, and what to say if not.
//!
//! Source: httpd 2.4.71, the functions named at each; else what `httpd -t` says.

use super::super::Builder;
use super::super::access::network;
use super::super::report::{Finding, show};
use super::MOST;
use super::Wanted::{
    self, Address, Before, Bytes, Condition, Decimal, Digit, Directory, File, FileOr, Number,
    Present, Size, Span, Start, Time, UrlOr, Whole, Window, With, Word, ZeroOr,
};
use crate::number::leading_number;
use crate::outside::FileKind;

impl Builder<'_> {
    /// What is wrong with an argument, if anything.
    pub(super) fn refuse(&self, text: &[u8], wanted: Wanted) -> Option<Finding> {
        let hint = |what: &str| {
            let finding = Finding::error(format!("{} is not known here", show(text)));
            Some(finding.hint(what))
        };
        match wanted {
            Word(words) if words.iter().any(|word| word.as_bytes().eq_ignore_ascii_case(text)) => {
                None
            }
            Word(words) | Start(words) if !begins(text, words, wanted) => {
                hint(&format!("write one of {}", words.join(", ")))
            }
            Word(_) | Start(_) => None,
            Number(least, most) => out_of_range(text, leading_number(text), least, most),
            ZeroOr(least) => match leading_number(text) {
                0 => None,
                number => out_of_range(text, number, least, MOST),
            },
            Whole(least, most) => {
                let digits = text.strip_prefix(b"-").unwrap_or(text);
                if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
                    return hint("write a number");
                }
                out_of_range(text, leading_number(text), least, most)
            }
            Time if is_time(text) => None,
            Time => hint("write a number of seconds, or `500ms`, `2min`, `1h`"),
            Present => None,
            Decimal if is_decimal(text) => None,
            Decimal => hint("write a number"),
            Bytes if is_bytes(text, b"bkmg") => None,
            Bytes => hint("write a number of bytes, or `500k`, `10m`"),
            Size(least) if !is_bytes(text, b"km") || text == b"0" || leading_number(text) < 0 => {
                hint(&format!("write a number of bytes from {least} on, or `64k`"))
            }
            Size(least) => {
                let bytes = match text.last() {
                    Some(b'k' | b'K' | b'm' | b'M') => leading_number(text).saturating_mul(1024),
                    _ => leading_number(text),
                };
                out_of_range(text, bytes, least, MOST)
            }
            Window if text.ends_with(b"%") && is_bytes(&text[..text.len() - 1], b"") => None,
            Window | Span(_) => {
                let least = if let Span(least) = wanted { least } else { i64::MIN };
                match span(text) {
                    Some(time) if time >= least => None,
                    Some(_) => hint("write a longer time"),
                    None => hint("write a number of days, or `12h`, `30mi`, `10s`"),
                }
            }
            Before(words) => {
                let kind = text.split(|&byte| byte == b':').next().unwrap_or_default();
                let known = words.iter().any(|word| word.as_bytes().eq_ignore_ascii_case(kind));
                if known { None } else { hint(&format!("write one of {}", words.join(", "))) }
            }
            UrlOr(words) => {
                let known = words.iter().any(|word| word.as_bytes().eq_ignore_ascii_case(text));
                let is_url = text.contains(&b':') || text.starts_with(b"//");
                if known || is_url { None } else { hint("write a URL") }
            }
            FileOr(words) => match words.iter().any(|word| word.as_bytes() == text) {
                true => None,
                false => self.refuse(text, File),
            },
            With(part) if memchr::memmem::find(text, part.as_bytes()).is_some() => None,
            With(part) => hint(&format!("there is no `{part}` in it")),
            Address if is_address(text) => None,
            Address => hint("write an address, or a network as in `10.0.0.0/8`"),
            Condition => match crate::expr::Condition::parse(text, self.dialect()) {
                Ok(_) => None,
                Err(error) => Some(Finding::error(error.to_string())),
            },
            Digit if text.first().is_some_and(u8::is_ascii_digit) => None,
            Digit => hint("write a number"),
            File | Directory => {
                let kind = self.outside.kind(&self.resolve(text));
                let (is_there, what) = match wanted {
                    File => (matches!(kind, FileKind::File(1..)), "file"),
                    _ => (kind == FileKind::Directory, "directory"),
                };
                let message = format!("the {what} {} does not exist", show(text));
                (!is_there).then(|| Finding::error(message))
            }
        }
    }
}

fn begins(text: &[u8], words: &[&str], wanted: Wanted) -> bool {
    matches!(wanted, Start(_))
        && words.iter().any(|word| {
            text.get(..word.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(word.as_bytes()))
        })
}

/// Source: `server/util.c`, `ap_timeout_parameter_parse`.
fn is_time(text: &[u8]) -> bool {
    /// More digits than a time has.
    const DIGITS_MAX: usize = 15;
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let unit = text[digits..].to_ascii_lowercase();
    let known = [&b"s"[..], b"h", b"ms", b"mi"].iter().any(|begin| unit.starts_with(begin));
    (1..=DIGITS_MAX).contains(&digits) && (unit.is_empty() || known)
}

fn is_decimal(text: &[u8]) -> bool {
    let digits = text.strip_prefix(b"-").or(text.strip_prefix(b"+")).unwrap_or(text);
    let digits = digits.strip_prefix(b".").unwrap_or(digits);
    digits.first().is_some_and(u8::is_ascii_digit)
}

/// Whether this is digits, and perhaps one of `units` in any case.
fn is_bytes(text: &[u8], units: &[u8]) -> bool {
    /// More digits than a number of bytes has.
    const DIGITS_MAX: usize = 18;
    let digits = match text.split_last() {
        Some((unit, digits)) if units.contains(&unit.to_ascii_lowercase()) => digits,
        _ => text,
    };
    (1..=DIGITS_MAX).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit)
}

/// The milliseconds of a number and its unit; days where there is none.
///
/// Source: `modules/md/md_util.c`, `md_duration_parse`.
fn span(text: &[u8]) -> Option<i64> {
    let unsigned = text.strip_prefix(b"-").unwrap_or(text);
    let digits = unsigned.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let number = leading_number(text);
    if digits == 0 || number == MOST {
        return None;
    }
    let unit = match unsigned[digits..].to_ascii_lowercase().as_slice() {
        b"" | b"d" => 86_400_000,
        b"h" => 3_600_000,
        b"mi" => 60_000,
        b"s" => 1000,
        b"ms" => 1,
        _ => return None,
    };
    Some(number.saturating_mul(unit))
}

/// An address or a network; a name with a point in it might be a host's.
fn is_address(text: &[u8]) -> bool {
    network(text).is_some()
        || text.eq_ignore_ascii_case(b"localhost")
        || text.contains(&b'.')
            && !text.contains(&b'/')
            && text.last().is_some_and(u8::is_ascii_alphabetic)
}

fn out_of_range(text: &[u8], number: i64, least: i64, most: i64) -> Option<Finding> {
    (!(least..=most).contains(&number)).then(|| {
        let finding = Finding::error(format!("{} is out of range", show(text)));
        match most {
            MOST.. => finding.hint(format!("write a number from {least} on")),
            most => finding.hint(format!("write a number from {least} to {most}")),
        }
    })
}
