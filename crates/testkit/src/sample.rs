//! Strings that a regular expression matches, for requests that meet a rule.
//!
//! The pattern is taken apart by `regex-syntax`; what that does not know of PCRE (lookaround,
//! back-references, possessive quantifiers) is left out first. So a sample matches nearly always
//! and not for certain, which is all that a request near a rule has to do.

use fastrand::Rng;
use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, Hir, HirKind, Look};

/// Repetitions beyond the least number; more of them make no other path through a rule.
const EXTRA_REPETITIONS_MAX: u32 = 3;
/// A bound on what `{1000}` makes of a request.
const REPETITIONS_MAX: u32 = 40;

/// A string that a pattern matches, and where the pattern holds it fast.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// The string.
    pub bytes: Vec<u8>,
    /// Whether the match must stand at the start of the subject.
    pub starts: bool,
    /// Whether it must stand at the end.
    pub ends: bool,
}

/// Makes a string that `pattern` matches; `None` when the pattern cannot be taken apart.
pub fn sample(pattern: &str, rng: &mut Rng) -> Option<Sample> {
    let parse = |pattern: &str| {
        let mut parser = ParserBuilder::new().unicode(false).utf8(false).build();
        parser.parse(pattern).ok()
    };
    let hir = parse(pattern).or_else(|| parse(&simplified(pattern)))?;
    let mut bytes = Vec::new();
    append(&hir, &mut bytes, rng);
    let properties = hir.properties();
    let starts = properties.look_set_prefix_any().contains(Look::Start);
    let ends = properties.look_set_suffix_any().contains(Look::End);
    Some(Sample { bytes, starts, ends })
}

fn append(hir: &Hir, bytes: &mut Vec<u8>, rng: &mut Rng) {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Literal(literal) => bytes.extend_from_slice(&literal.0),
        HirKind::Class(class) => append_class(class, bytes, rng),
        HirKind::Repetition(repetition) => {
            let least = repetition.min.min(REPETITIONS_MAX);
            let most = repetition.max.unwrap_or(u32::MAX).min(least + EXTRA_REPETITIONS_MAX);
            for _ in 0..rng.u32(least..=most.max(least)) {
                append(&repetition.sub, bytes, rng);
            }
        }
        HirKind::Capture(capture) => append(&capture.sub, bytes, rng),
        HirKind::Concat(parts) => parts.iter().for_each(|part| append(part, bytes, rng)),
        HirKind::Alternation(parts) => {
            if let Some(part) = rng.choice(parts) {
                append(part, bytes, rng);
            }
        }
    }
}

/// Takes a plain character of the class where it has one, and any other now and then.
fn append_class(class: &Class, bytes: &mut Vec<u8>, rng: &mut Rng) {
    const PLAIN: &[u8] = b"abcxyz019AZ-_/.";
    let contains = |byte: u8| match class {
        Class::Bytes(class) => class.iter().any(|r| (r.start()..=r.end()).contains(&byte)),
        Class::Unicode(class) => {
            class.iter().any(|r| (r.start()..=r.end()).contains(&char::from(byte)))
        }
    };
    let plain: Vec<u8> = PLAIN.iter().copied().filter(|&byte| contains(byte)).collect();
    if let Some(&byte) = rng.choice(&plain).filter(|_| rng.u8(..) < 240) {
        bytes.push(byte);
        return;
    }
    match class {
        Class::Bytes(class) => {
            if let Some(range) = rng.choice(class.ranges()) {
                bytes.push(rng.u8(range.start()..=range.end()));
            }
        }
        Class::Unicode(class) => {
            if let Some(range) = rng.choice(class.ranges()) {
                let mut utf8 = [0; 4];
                bytes.extend_from_slice(range.start().encode_utf8(&mut utf8).as_bytes());
            }
        }
    }
}

/// Leaves out lookaround groups, back-references, and the `+` of possessive quantifiers.
fn simplified(pattern: &str) -> String {
    let mut simple = String::with_capacity(pattern.len());
    let mut rest = pattern;
    while let Some(first) = rest.chars().next() {
        let lookaround = ["(?=", "(?!", "(?<=", "(?<!"].iter().any(|open| rest.starts_with(open));
        if lookaround {
            rest = &rest[group_length(rest)..];
        } else if let Some(escaped) = rest.strip_prefix('\\').and_then(|r| r.chars().next()) {
            let length = 1 + escaped.len_utf8();
            if !matches!(escaped, '1'..='9' | 'K' | 'G') {
                simple.push_str(&rest[..length]);
            }
            rest = &rest[length..];
        } else {
            let possessive = first == '+' && simple.ends_with(['+', '*', '?', '}']);
            if !possessive {
                simple.push(first);
            }
            rest = &rest[first.len_utf8()..];
        }
    }
    simple
}

/// Returns the length of the group that `text` begins with, brackets included.
fn group_length(text: &str) -> usize {
    let (mut depth, mut escaped) = (0_usize, false);
    for (at, character) in text.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '(' => depth += 1,
            ')' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_match() {
        check("^/a/b$", b"/a/b", true, true);
        check("x{3}", b"xxx", false, false);
        check(r"^/a(?=b)(?!c(d))b\1e$", b"/abe", true, true);
        check(r"\.git", b".git", false, false);
        check("é$", "é".as_bytes(), false, true);
    }

    #[test]
    fn every_branch_comes_up() {
        let mut rng = Rng::with_seed(1);
        let samples: Vec<_> = (0..100).filter_map(|_| sample("^(a|b)[0-9]?$", &mut rng)).collect();
        for start in [b'a', b'b'] {
            let lengths: Vec<_> =
                samples.iter().filter(|s| s.bytes[0] == start).map(|s| s.bytes.len()).collect();
            assert!(lengths.contains(&1) && lengths.contains(&2), "{samples:?}");
        }
    }

    #[test]
    fn possessive_quantifiers_are_read_as_greedy() {
        let made = sample("^a++b?+$", &mut Rng::with_seed(1)).expect("it parses");
        assert!(made.bytes.starts_with(b"a"), "{made:?}");
    }

    #[test]
    fn what_cannot_be_parsed_has_no_sample() {
        assert_eq!(sample("a(", &mut Rng::with_seed(1)), None);
    }

    #[track_caller]
    fn check(pattern: &str, expected: &[u8], starts: bool, ends: bool) {
        let made = sample(pattern, &mut Rng::with_seed(7)).expect("it parses");
        assert_eq!(made, Sample { bytes: expected.to_vec(), starts, ends });
    }
}
