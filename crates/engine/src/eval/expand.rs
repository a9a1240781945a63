//! Expands substitutions, test strings and variables: `$1`, `%1`, `%{VARIABLE}`, `${map:key|default}`.
//!
//! Source: httpd 2.4.71 `modules/mappers/mod_rewrite.c`, `do_expand`, `escape_backref`.

use milepost_http::path;
use milepost_pcre::Captures;

use super::{Hop, Run};
use crate::pool::Pool;
use crate::program::BackrefEscape;

/// Deepest nesting of map calls in a key or a default.
const DEPTH_MAX: usize = 16;

/// The string that a rule matched, and where its groups are.
#[derive(Clone, Copy)]
pub(super) struct Backrefs<'a> {
    pub(super) subject: &'a [u8],
    pub(super) groups: &'a Captures,
    /// The text of the rule.
    pub(super) pool: &'a Pool,
}

impl<'a> Backrefs<'a> {
    fn get(self, digit: u8) -> &'a [u8] {
        let span = self.groups.get(usize::from(digit - b'0'));
        span.and_then(|span| self.subject.get(span)).unwrap_or_default()
    }
}

/// The parts of a result that came out of an expansion and hold a `?`: a client can put one there.
#[derive(Default)]
pub(super) struct Origins {
    spans: Vec<(usize, usize)>,
}

impl Origins {
    /// Whether nothing with a `?` came out of an expansion.
    pub(super) fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Whether the byte at `at` came out of an expansion.
    pub(super) fn has(&self, at: usize) -> bool {
        self.spans.iter().any(|&(start, end)| (start..end).contains(&at))
    }

    fn note(&mut self, out: &[u8], start: usize) {
        if memchr::memchr(b'?', &out[start..]).is_some() {
            self.spans.push((start, out.len()));
        }
    }
}

impl Run<'_> {
    /// Appends the expansion of `template`. `escape` is for backreferences alone; `origins` hears what came
    /// out of an expansion, if somebody asks.
    pub(super) fn expand(
        &mut self,
        hop: &Hop,
        template: &[u8],
        backrefs: Backrefs<'_>,
        escape: Option<BackrefEscape>,
        out: &mut Vec<u8>,
        origins: Option<&mut Origins>,
    ) {
        self.expand_nested(hop, template, backrefs, escape, out, origins, 0);
    }

    #[allow(clippy::too_many_arguments, reason = "the recursion carries what `expand` was given")]
    fn expand_nested(
        &mut self,
        hop: &Hop,
        template: &[u8],
        backrefs: Backrefs<'_>,
        escape: Option<BackrefEscape>,
        out: &mut Vec<u8>,
        mut origins: Option<&mut Origins>,
        depth: usize,
    ) {
        let mut rest = template;
        // Templates are short, and there is not far to go to the next of these.
        while let Some(at) = rest.iter().position(|&byte| IS_SPECIAL[usize::from(byte)]) {
            out.extend_from_slice(&rest[..at]);
            rest = &rest[at..];
            let start = out.len();
            let used = match rest {
                [b'\\', next, ..] => {
                    out.push(*next);
                    rest = &rest[2..];
                    continue;
                }
                [sign @ (b'$' | b'%'), digit @ b'0'..=b'9', ..] => {
                    let condition = &self.work.condition;
                    let value = if *sign == b'$' {
                        backrefs.get(*digit)
                    } else {
                        Backrefs {
                            subject: &condition.subject,
                            groups: &condition.groups,
                            ..backrefs
                        }
                        .get(*digit)
                    };
                    match escape {
                        None => out.extend_from_slice(value),
                        Some(escape) => escape_backref(backrefs.pool, value, escape, out),
                    }
                    2
                }
                [b'%', b'{', ..] => match closing_brace(&rest[2..]) {
                    Some(end) => {
                        self.variable(hop, &rest[2..2 + end], out);
                        end + 3
                    }
                    None => literal(rest, 2, out),
                },
                [b'$', b'{', inner @ ..] => match MapCall::parse(inner) {
                    Some(call) if depth < DEPTH_MAX => {
                        self.map_call(hop, &call, backrefs, escape, out, depth + 1);
                        b"${".len() + call.len
                    }
                    _ => literal(rest, 2, out),
                },
                _ => {
                    out.push(rest[0]);
                    rest = &rest[1..];
                    continue;
                }
            };
            if let Some(origins) = &mut origins {
                origins.note(out, start);
            }
            rest = &rest[used..];
        }
        out.extend_from_slice(rest);
    }

    /// `${map:key|default}`: the value, or the default.
    fn map_call(
        &mut self,
        hop: &Hop,
        call: &MapCall<'_>,
        backrefs: Backrefs<'_>,
        escape: Option<BackrefEscape>,
        out: &mut Vec<u8>,
        depth: usize,
    ) {
        let found = match call.key {
            // Most keys are a group, and are looked up where they stand.
            [b'$', digit @ b'0'..=b'9'] if escape.is_none() => {
                self.look_up(call.name, backrefs.get(*digit), out)
            }
            key => {
                let mut expanded = self.take_buffer();
                self.expand_nested(hop, key, backrefs, escape, &mut expanded, None, depth);
                let found = self.look_up(call.name, &expanded, out);
                self.put_buffer(expanded);
                found
            }
        };
        if !found {
            self.expand_nested(hop, call.default, backrefs, escape, out, None, depth);
        }
    }
}

/// The parts of `${name:key|default}`.
#[derive(Clone, Copy, Default)]
struct MapCall<'t> {
    name: &'t [u8],
    key: &'t [u8],
    default: &'t [u8],
    /// Bytes behind `${`, with the brace that closes it.
    len: usize,
}

impl<'t> MapCall<'t> {
    /// Takes apart what stands behind `${`. `None` without a closing brace or without a name.
    fn parse(text: &'t [u8]) -> Option<MapCall<'t>> {
        let (mut colon, mut bar) = (None, None);
        let (mut depth, mut at) = (0_u32, 0);
        loop {
            match *text.get(at)? {
                b'\\' if at + 1 < text.len() => at += 1,
                b'{' => depth += 1,
                b'}' if depth > 0 => depth -= 1,
                b'}' => break,
                b':' if depth == 0 && colon.is_none() => colon = Some(at),
                b'|' if depth == 0 && colon.is_some() && bar.is_none() => bar = Some(at),
                _ => {}
            }
            at += 1;
        }
        let colon = colon?;
        let key_end = bar.unwrap_or(at);
        let default = bar.map_or(&b""[..], |bar| &text[bar + 1..at]);
        Some(MapCall { name: &text[..colon], key: &text[colon + 1..key_end], default, len: at + 1 })
    }
}

/// The bytes of a template that do not stand for themselves.
static IS_SPECIAL: [bool; 256] = {
    let mut table = [false; 256];
    table[b'\\' as usize] = true;
    table[b'$' as usize] = true;
    table[b'%' as usize] = true;
    table
};

/// `B` and its relatives.
fn escape_backref(pool: &Pool, value: &[u8], escape: BackrefEscape, out: &mut Vec<u8>) {
    let (only, except) =
        (escape.only.map(|set| pool.get(set)), escape.except.map(|set| pool.get(set)));
    for &byte in value {
        let control = byte <= b' ' || byte == 0x7f;
        let chosen = match only {
            Some(only) => only.contains(&byte) || escape.controls && control,
            None => !escape.controls || control,
        };
        let plain = byte.is_ascii_alphanumeric()
            || byte == b'_'
            || !chosen
            || except.is_some_and(|except| except.contains(&byte));
        match byte {
            byte if plain => out.push(byte),
            b' ' if !escape.no_plus => out.push(b'+'),
            byte => path::push_escaped(byte, out),
        }
    }
}

/// Appends the first `len` bytes as they are.
fn literal(rest: &[u8], len: usize, out: &mut Vec<u8>) -> usize {
    out.extend_from_slice(&rest[..len]);
    len
}

/// Where the brace that was opened before `text` closes, nested braces counted.
fn closing_brace(text: &[u8]) -> Option<usize> {
    let mut depth = 1;
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        match byte {
            b'\\' if text.get(at + 1).is_some() => at += 1,
            b'{' => depth += 1,
            b'}' => {
                depth -= 1;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
        at += 1;
    }
    None
}
