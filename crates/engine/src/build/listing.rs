//! The directives of mod_autoindex. That their arguments are right has been seen to.
//!
//! Source: httpd 2.4.71 `modules/generators/mod_autoindex.c`, `push_item`, `add_icon`, `add_desc`,
//! `add_opts`, `set_default_order`.

use std::sync::Arc;

use super::report::{Finding, show};
use super::{Builder, Context, Directive};
use crate::program::{
    Attached, AttachedTo, Column, Description, IndexOptions, ListFlags, Listing, Width,
};

/// The pixels of icons of which it is only said that they have some: width, and height.
const ICON_PIXELS: [u32; 2] = [20, 22];

/// The width of names and descriptions, in bytes.
const WIDTH: usize = 23;

/// The widest column, in bytes: every line of every page has it.
const WIDTH_MAX: u32 = 1024;

impl Builder<'_> {
    /// Runs a directive whose arguments are right; false if it is none of these.
    pub(super) fn listing(
        &mut self,
        directive: &Directive<'_>,
        lower: &[u8],
        context: &mut Context<'_>,
    ) -> bool {
        let words = directive.texts();
        let Some((first, rest)) = words.split_first() else { return lower == b"indexoptions" };
        let below: Box<[u8]> = [&context.directory[..], b"*"].concat().into();
        let attached =
            |to, value: &[u8]| Attached { below: below.clone(), to, value: value.into() };
        let listing = |context| listing_of(context);
        match lower {
            b"indexoptions" => words.iter().for_each(|word| say(listing_of(context), word)),
            b"indexorderdefault" => match order(first, &rest[0]) {
                Some(order) => listing(context).order = Some(order),
                None => {
                    let message = format!("{} orders no list", show(directive.args));
                    let hint =
                        "write `IndexOrderDefault Ascending|Descending Name|Date|Size|Description`";
                    self.report(directive, Finding::error(message).hint(hint));
                }
            },
            b"indexignore" => {
                let items = words.iter().map(|word| attached(AttachedTo::All, word));
                listing(context).ignored.extend(items);
            }
            b"indexignorereset" => {
                listing(context).ignores_anew = first.eq_ignore_ascii_case(b"on");
            }
            b"headername" => listing(context).headers.push(attached(AttachedTo::All, first)),
            b"readmename" => listing(context).readmes.push(attached(AttachedTo::All, first)),
            b"defaulticon" => listing(context).default_icon = Some((**first).into()),
            b"indexstylesheet" => listing(context).style_sheet = Some((**first).into()),
            b"indexheadinsert" => listing(context).head_insert = Some((**first).into()),
            b"adddescription" => {
                let items = rest.iter().map(|word| description(first, word));
                listing(context).descriptions.extend(items);
            }
            b"addalt" | b"addaltbytype" | b"addaltbyencoding" => {
                let items = rest.iter().map(|word| attached(to(lower, word), first));
                listing(context).texts.extend(items);
            }
            b"addicon" | b"addiconbytype" | b"addiconbyencoding" => {
                let (text, icon) = match first.strip_prefix(b"(") {
                    None => (None, &first[..]),
                    Some(inner) => match split_pair(inner) {
                        Some((text, icon)) => (Some(text), icon),
                        None => {
                            let message = format!("{} has no `,` and `)`", show(first));
                            let finding = Finding::error(message).hint("write `(text,icon)`");
                            self.report(directive, finding);
                            return true;
                        }
                    },
                };
                let listing = listing(context);
                for word in rest {
                    let text = text.map(|text| attached(to(lower, word), text));
                    listing.texts.extend(text);
                    listing.icons.push(attached(to(lower, word), icon));
                }
            }
            _ => return false,
        }
        true
    }
}

/// What the section says of lists, made if it is new.
fn listing_of<'c>(context: &'c mut Context<'_>) -> &'c mut Listing {
    Arc::make_mut(context.dir.config.listing.get_or_insert_default())
}

/// Splits `text,icon)`.
fn split_pair(inner: &[u8]) -> Option<(&[u8], &[u8])> {
    let comma = memchr::memchr(b',', inner)?;
    let end = memchr::memchr(b')', &inner[comma..])?;
    Some((&inner[..comma], &inner[comma + 1..comma + end]))
}

/// What an argument of `AddIcon` and its relatives is for.
fn to(lower: &[u8], word: &[u8]) -> AttachedTo {
    if lower.ends_with(b"bytype") {
        return AttachedTo::MediaType(word.into());
    }
    if lower.ends_with(b"byencoding") {
        return AttachedTo::Encoding(word.to_ascii_lowercase().into());
    }
    let word = if word == b"**DIRECTORY**" { b"^^DIRECTORY^^" } else { word };
    let has_wildcards = word.iter().any(|byte| b"*?".contains(byte));
    let before: &[u8] = if has_wildcards { b"" } else { b"*" };
    AttachedTo::Path([before, word].concat().into())
}

fn description(text: &[u8], word: &[u8]) -> Description {
    let is_path = word.contains(&b'/');
    let has_wildcards = is_path || word.iter().any(|byte| b"*?[".contains(byte));
    let before: &[u8] = match (has_wildcards, is_path) {
        (false, _) => b"",
        (true, false) => b"*",
        (true, true) => b"*/",
    };
    let after: &[u8] = if has_wildcards { b"*" } else { b"" };
    let pattern = [before, word, after].concat().into();
    Description { pattern, has_wildcards, is_path, text: text.into() }
}

fn order(direction: &[u8], column: &[u8]) -> Option<(Column, bool)> {
    let downwards = match direction.to_ascii_lowercase().as_slice() {
        b"ascending" => false,
        b"descending" => true,
        _ => return None,
    };
    let column = match column.to_ascii_lowercase().as_slice() {
        b"name" => Column::Name,
        b"date" => Column::Modified,
        b"size" => Column::Size,
        b"description" => Column::Description,
        _ => return None,
    };
    Some((column, downwards))
}

/// One word of `IndexOptions`.
fn say(listing: &mut Listing, word: &[u8]) {
    let sign = word.first().copied().filter(|sign| b"+-".contains(sign));
    let word = &word[usize::from(sign.is_some())..];
    let (name, value) = match memchr::memchr(b'=', word) {
        Some(at) => (&word[..at], Some(&word[at + 1..])),
        None => (word, None),
    };
    let width = |value: Option<&[u8]>| match value {
        None => Width::Fixed(WIDTH),
        Some(value) if value.first() == Some(&b'*') => Width::Needed,
        Some(value) => Width::Fixed(number(value).min(WIDTH_MAX) as usize),
    };
    let options: &mut IndexOptions = &mut listing.options;
    let lower = name.to_ascii_lowercase();
    match lower.as_slice() {
        b"none" => return options.say_none(),
        b"namewidth" => listing.name_width = Some(width(value)),
        b"descriptionwidth" => listing.description_width = Some(width(value)),
        b"iconwidth" | b"iconheight" => {
            let at = usize::from(lower == b"iconheight");
            let pixels = value.map_or(ICON_PIXELS[at], number);
            listing.icon_size[at] = Some(if sign == Some(b'-') { 0 } else { pixels });
        }
        b"charset" => listing.charset = value.map(Into::into),
        b"type" => listing.media_type = value.map(Into::into),
        lower => {
            if let Some(flag) = ListFlags::named(lower) {
                return options.say(sign, flag);
            }
        }
    }
    options.say(sign, ListFlags::default());
}

/// As C's `atoi`, of digits.
fn number(text: &[u8]) -> u32 {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit());
    digits.fold(0, |number: u32, digit| {
        number.saturating_mul(10).saturating_add(u32::from(digit - b'0'))
    })
}
