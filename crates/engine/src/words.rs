//! Looks at short texts in words of eight bytes: paths are done before vectors have begun.
//!
//! Source: Henry S. Warren, *Hacker's Delight*, "Find First 0-Byte"; chess programming's "magic"
//! multiplication, which gathers one bit of each byte.

use milepost_http::bytes::{EACH, below};

/// The high bit of each byte.
const HIGH: u64 = EACH * 0x80;

/// Longest text whose places [`slashes`] can tell: as many as a set of 64 numbers can hold, its length too.
pub(crate) const MASKED_BYTES_MAX: usize = 62;

/// The places of the slashes in the first [`MASKED_BYTES_MAX`] bytes of a text and a little more: bit `n` for
/// byte `n`.
#[inline]
pub(crate) fn slashes(text: &[u8]) -> u64 {
    let text = &text[..text.len().min(64)];
    let places = |word: &[u8; 8]| gather(equal(u64::from_le_bytes(*word), b'/'));
    let Some(last) = text.last_chunk::<8>() else {
        return text.iter().rev().fold(0, |mask, &byte| (mask << 1) | u64::from(byte == b'/'));
    };
    // The last word lies over the one before it.
    let mut mask = places(last) << (text.len() - 8);
    for (word, at) in text.as_chunks::<8>().0.iter().zip((0..).step_by(8)) {
        mask |= places(word) << at;
    }
    mask
}

/// Whether a request-target is nothing but a path as it will be looked up: it begins with a slash, and there
/// is no query string, no escape, no byte that no target may have, no `//`, and no segment with a dot first.
///
/// A no is not for sure: `!` and `'` make it one too.
#[inline]
pub(crate) fn is_bare_path(target: &[u8]) -> bool {
    let Some(last) = target.last_chunk::<8>() else {
        let is_end = |byte: u8| byte == b'/' || byte == b'.';
        let has_pair = || target.windows(2).any(|pair| pair[0] == b'/' && is_end(pair[1]));
        let is_good = |&byte: &u8| byte > b' ' && !b"\x7f#%?".contains(&byte);
        return target.first() == Some(&b'/') && target.iter().all(is_good) && !has_pair();
    };
    // `after_slash` is the high bit of the first byte if the word before this one ends in a slash.
    let look = |word: &[u8; 8], after_slash: u64| {
        let word = u64::from_le_bytes(*word);
        let forbidden = below(word, b'!') | below(word ^ (EACH * 0x7f), 1);
        // One bit tells `.` from `/`, and two tell `#` from `%` (and these from `'` and `!`).
        let special = equal(word | (EACH * 0x06), b'\'') | equal(word, b'?');
        let slash = equal(word, b'/');
        let pair = ((slash << 8) | after_slash) & equal(word | EACH, b'/');
        (forbidden | special | pair, slash >> 56)
    };
    let (mut found, _) = look(last, 0);
    let mut after_slash = 0;
    for word in target.as_chunks::<8>().0 {
        let (bits, slash) = look(word, after_slash);
        (found, after_slash) = (found | bits, slash);
    }
    target[0] == b'/' && found & HIGH == 0
}

/// The high bit of each byte of `word` that is `byte`.
#[inline]
fn equal(word: u64, byte: u8) -> u64 {
    let other = word ^ (EACH * u64::from(byte));
    !(((other & !HIGH) + !HIGH) | other) & HIGH
}

/// Moves the high bit of byte `n` to bit `n`.
#[inline]
fn gather(high: u64) -> u64 {
    (high >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56
}

#[cfg(test)]
mod tests {
    use milepost_http::path;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]

        #[test]
        fn places_are_those_of_slashes(text in "[/a.0-]{0,80}") {
            let text = text.as_bytes();
            let expected = (0..text.len().min(64)).filter(|&at| text[at] == b'/');
            prop_assert_eq!(slashes(text), expected.fold(0, |mask, at| mask | 1 << at));
        }

        /// What is a bare path needs nothing, and nearly all that need nothing are known.
        #[test]
        fn bare_paths(start in "/?", rest in prop::collection::vec(0..=255_u8, 0..40), at in 0..40_usize,
                      plain in "[a-z0-9/.~$@-]{0,40}", mixed: bool) {
            let mut target = [start.as_bytes(), plain.as_bytes()].concat();
            if mixed && at < target.len() {
                target.truncate(at);
                target.extend_from_slice(&rest[..rest.len() % 3]);
                target.extend_from_slice(&plain.as_bytes()[at.min(plain.len())..]);
            }
            let is_good = |&byte: &u8| byte > b' ' && !b"\x7f#?".contains(&byte);
            let needs_nothing = path::is_plain(&target) && target.iter().all(is_good);
            let is_bare = is_bare_path(&target);
            prop_assert!(needs_nothing || !is_bare, "{:?}", target);
            let is_odd = |byte: &u8| b"!'".contains(byte);
            prop_assert!(is_bare || !needs_nothing || target.iter().any(is_odd), "{:?}", target);
        }
    }
}
