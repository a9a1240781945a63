//! Matches the patterns that need no backtracking as they stand, in one pass: `^/([^/]+)/(\d+)/?$`.
//!
//! Such a pattern is anchored, by a `^` or by a `.*` that takes all there is, and a sequence of literals, groups without alternatives, and runs like
//! `[^/]+` or `.*`. What follows a run is the end, or a literal that is not in the run's class, so a run
//! that takes all it can is the only one that can match: PCRE2 finds the same, with more ado. All other
//! patterns are left to it.
//!
//! Source: pcre2pattern(3), as compiled with `PCRE2_DOTALL` and `PCRE2_DOLLAR_ENDONLY`, without UTF.

use milepost_pcre::{Captures, GROUPS_MAX};

/// One step through a pattern.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// This byte.
    Byte(u8),
    /// This byte or none.
    Maybe(u8),
    /// As many bytes of a class as there are, at least so many.
    Run(Class, usize),
    /// A group begins or ends.
    Open,
    Close,
    /// `$`, at the very end.
    End,
}

/// Whether the pattern, in which case matters, is one that [`find`] can match.
pub(super) fn is_walkable(pattern: &[u8]) -> bool {
    let Some(mut steps) = Steps::of(pattern) else { return false };
    let (mut groups, mut is_open) = (1, false);
    // The class of a run that the next literal must not be in.
    let mut run: Option<Class> = None;
    while !steps.rest.is_empty() {
        let Some(step) = steps.next() else { return false };
        match step {
            Step::Byte(byte) => {
                if run.take().is_some_and(|class| class.has(byte)) {
                    return false;
                }
            }
            Step::Maybe(byte) => {
                let is_last = matches!(steps.rest, b"$");
                if is_open || !is_last || run.take().is_some_and(|class| class.has(byte)) {
                    return false;
                }
            }
            Step::Run(class, _) => {
                if run.replace(class).is_some() {
                    return false;
                }
            }
            Step::Open => {
                groups += 1;
                // Within a group a run may also be followed by its end alone.
                if std::mem::replace(&mut is_open, true) || groups > GROUPS_MAX {
                    return false;
                }
            }
            Step::Close => {
                if !std::mem::replace(&mut is_open, false) {
                    return false;
                }
            }
            Step::End => {
                if is_open || !steps.rest.is_empty() {
                    return false;
                }
            }
        }
    }
    !is_open
}

/// Where the literal ends that every match of a walkable pattern begins with, if it is more than a slash and
/// what follows says nothing of the next byte. Most patterns with groups are like that.
pub(super) fn literal_end(pattern: &[u8]) -> Option<usize> {
    let mut steps = Steps { rest: pattern.strip_prefix(b"^")? };
    let literal = steps.literal();
    // A literal and all the rest is simpler still.
    if literal.len() < 2 || matches!(steps.rest, b"(.*)" | b"(.*)$") {
        return None;
    }
    let is_open = matches!(
        steps.rest.strip_prefix(b"(").unwrap_or(steps.rest),
        [b'.', ..] | [b'[', b'^', ..] | [b'[', b'0', b'-', b'9', b']', ..] | [b'\\', b'd', ..]
    );
    (is_open && is_walkable(pattern)).then_some(1 + literal.len())
}

/// Matches a pattern that [`is_walkable`].
pub(super) fn find(pattern: &[u8], subject: &[u8]) -> Option<Captures> {
    let mut captures = Captures::default();
    let (mut groups, mut group_start) = (0, 0);
    let mut at = 0;
    let mut steps = Steps::of(pattern)?;
    loop {
        let literal = steps.literal();
        if !literal.is_empty() {
            if !subject[at..].starts_with(literal) {
                return None;
            }
            at += literal.len();
        }
        // The groups that nearly all patterns are made of need no closer look.
        let (len, rest) = match steps.rest {
            [b'(', b'.', b'*', b')', rest @ ..] => (subject.len() - at, rest),
            [b'(', b'.', b'+', b')', rest @ ..] if at < subject.len() => (subject.len() - at, rest),
            [b'(', b'[', b'^', b'/', b']', b'+', b')', rest @ ..] => {
                match Class::Not(b'/').run(&subject[at..]) {
                    0 => return None,
                    len => (len, rest),
                }
            }
            _ => (0, steps.rest),
        };
        if rest.len() < steps.rest.len() {
            groups += 1;
            captures.set(groups, at, at + len);
            at += len;
            steps.rest = rest;
            continue;
        }
        let Some(step) = steps.next() else { break };
        match step {
            Step::Byte(byte) => {
                if subject.get(at) != Some(&byte) {
                    return None;
                }
                at += 1;
            }
            Step::Maybe(byte) => at += usize::from(subject.get(at) == Some(&byte)),
            Step::Run(class, least) => {
                let rest = &subject[at..];
                let len = class.run(rest);
                if len < least {
                    return None;
                }
                at += len;
            }
            Step::Open => {
                groups += 1;
                group_start = at;
            }
            Step::Close => captures.set(groups, group_start, at),
            Step::End => {
                if at < subject.len() {
                    return None;
                }
            }
        }
    }
    captures.set(0, 0, at);
    Some(captures)
}

/// The steps of a pattern. `None` at the end, and at anything that is not understood.
struct Steps<'p> {
    rest: &'p [u8],
}

impl<'p> Steps<'p> {
    /// Those behind a `^`, or all of a pattern that matches at the start or nowhere: one that begins with a
    /// run of any bytes.
    #[inline]
    fn of(pattern: &'p [u8]) -> Option<Steps<'p>> {
        match pattern {
            [b'^', rest @ ..] => Some(Steps { rest }),
            rest @ ([b'.', b'*' | b'+', ..] | [b'(', b'.', b'*' | b'+', ..]) => {
                Some(Steps { rest })
            }
            _ => None,
        }
    }

    /// Takes the bytes that stand for themselves.
    #[inline]
    fn literal(&mut self) -> &'p [u8] {
        let special = |&byte: &u8| IS_SPECIAL[usize::from(byte)];
        let mut len = self.rest.iter().position(special).unwrap_or(self.rest.len());
        // The last one may be there or not.
        if self.rest.get(len) == Some(&b'?') {
            len = len.saturating_sub(1);
        }
        let (literal, rest) = self.rest.split_at(len);
        self.rest = rest;
        literal
    }

    #[inline]
    fn next(&mut self) -> Option<Step> {
        let (&first, mut rest) = self.rest.split_first()?;
        let unit = match first {
            b'(' => {
                // `(?` and `(*` mean something else.
                if matches!(rest.first(), Some(b'?' | b'*')) {
                    return None;
                }
                self.rest = rest;
                return Some(Step::Open);
            }
            b')' => {
                if is_quantifier(rest) {
                    return None;
                }
                self.rest = rest;
                return Some(Step::Close);
            }
            b'$' => {
                self.rest = rest;
                return if is_quantifier(rest) { None } else { Some(Step::End) };
            }
            b'.' => Unit::Class(Class::Any),
            b'[' => {
                let (class, after) = bracket(rest)?;
                rest = after;
                Unit::Class(class)
            }
            b'\\' => {
                let (&escaped, after) = rest.split_first()?;
                rest = after;
                match escaped {
                    b'd' => Unit::Class(Class::Digit),
                    escaped if escaped.is_ascii_punctuation() => Unit::Byte(escaped),
                    _ => return None,
                }
            }
            b'^' | b'|' | b'?' | b'*' | b'+' | b'{' => return None,
            byte => Unit::Byte(byte),
        };
        let quantifier = rest.first().copied().filter(|byte| b"?*+{".contains(byte));
        let step = match (unit, quantifier) {
            (Unit::Byte(byte), None) => Step::Byte(byte),
            (Unit::Byte(byte), Some(b'?')) => Step::Maybe(byte),
            (Unit::Class(class), Some(b'*')) => Step::Run(class, 0),
            (Unit::Class(class), Some(b'+')) => Step::Run(class, 1),
            _ => return None,
        };
        if quantifier.is_some() {
            rest = &rest[1..];
            // Lazy and possessive quantifiers.
            if is_quantifier(rest) {
                return None;
            }
        }
        self.rest = rest;
        Some(step)
    }
}

/// The bytes that do not stand for themselves.
static IS_SPECIAL: [bool; 256] = {
    let mut table = [false; 256];
    let special = br"\^$.[|()?*+{";
    let mut at = 0;
    while at < special.len() {
        table[special[at] as usize] = true;
        at += 1;
    }
    table
};

/// What a quantifier stands behind.
enum Unit {
    Byte(u8),
    Class(Class),
}

fn is_quantifier(rest: &[u8]) -> bool {
    matches!(rest.first(), Some(b'?' | b'*' | b'+' | b'{'))
}

/// A set of bytes.
#[derive(Clone, Copy, Debug)]
enum Class {
    /// `.`
    Any,
    /// `[^x]`
    Not(u8),
    /// `\d`, `[0-9]`
    Digit,
    /// One bit for each byte.
    Set([u64; 4]),
}

impl Class {
    fn has(&self, byte: u8) -> bool {
        match self {
            Class::Any => true,
            Class::Not(other) => byte != *other,
            Class::Digit => byte.is_ascii_digit(),
            Class::Set(bits) => bits[usize::from(byte >> 6)] >> (byte & 63) & 1 == 1,
        }
    }

    /// How many bytes at the start of `text` are in the class.
    fn run(&self, text: &[u8]) -> usize {
        let end = match self {
            Class::Any => None,
            Class::Not(other) => text.iter().position(|byte| byte == other),
            Class::Digit => text.iter().position(|byte| !byte.is_ascii_digit()),
            Class::Set(_) => text.iter().position(|&byte| !self.has(byte)),
        };
        end.unwrap_or(text.len())
    }
}

/// Reads a class behind its `[`, and returns what follows its `]`.
fn bracket(text: &[u8]) -> Option<(Class, &[u8])> {
    match text {
        [b'^', byte, b']', rest @ ..] if !b"\\[]^-".contains(byte) => {
            return Some((Class::Not(*byte), rest));
        }
        [b'0', b'-', b'9', b']', rest @ ..] => return Some((Class::Digit, rest)),
        _ => {}
    }
    let (negated, mut rest) = match text {
        [b'^', rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    let mut bits = [0_u64; 4];
    let mut add = |from: u8, to: u8| {
        (from..=to).for_each(|byte| bits[usize::from(byte >> 6)] |= 1 << (byte & 63));
    };
    let mut is_empty = true;
    loop {
        let (&byte, after) = rest.split_first()?;
        rest = after;
        let from = match byte {
            // A `]` at the start is a member.
            b']' if is_empty => return None,
            b']' => break,
            // `[:alpha:]` and its like.
            b'[' => return None,
            b'\\' => {
                let (&escaped, after) = rest.split_first()?;
                rest = after;
                match escaped {
                    b'd' | b'w' => {
                        add(b'0', b'9');
                        if escaped == b'w' {
                            add(b'a', b'z');
                            add(b'A', b'Z');
                            add(b'_', b'_');
                        }
                        // What a `-` means behind a class is left to PCRE2.
                        if matches!(rest, [b'-', next, ..] if *next != b']') {
                            return None;
                        }
                        is_empty = false;
                        continue;
                    }
                    escaped if escaped.is_ascii_punctuation() => escaped,
                    _ => return None,
                }
            }
            byte => byte,
        };
        is_empty = false;
        match rest {
            [b'-', b']', ..] | [] => add(from, from),
            [b'-', b'\\' | b'[', ..] => return None,
            [b'-', to, after @ ..] => {
                // A `-` behind a range is left to PCRE2, and so is a range that is none.
                if *to < from || matches!(after, [b'-', next, ..] if *next != b']') {
                    return None;
                }
                add(from, *to);
                rest = after;
            }
            _ => add(from, from),
        }
    }
    if negated {
        bits.iter_mut().for_each(|word| *word = !*word);
    }
    Some((Class::Set(bits), rest))
}

#[cfg(test)]
mod tests {
    use milepost_pcre::{Case, Matcher, Regex};
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn literals_at_the_start() {
        for (pattern, end) in [
            ("^/a/([^/]+)/b$", Some(4)),
            (r"^/ab(\d+)$", Some(4)),
            ("^/([^/]+)", None),
            ("^/a/?$", None),
            ("^/ab([ab]+)$", None),
            ("^/ab(.*)/x$", None),
        ] {
            assert_eq!(literal_end(pattern.as_bytes()), end, "{pattern}");
        }
    }

    #[test]
    fn what_is_walked_and_what_is_not() {
        for pattern in [
            "^/a/([^/]+)/?$",
            r"^/([a-z0-9-]+)/(\d+)\.html$",
            "^/x(.*)$",
            "^/([^/]*)/b",
            r"^([\w.-]+)/",
            "^/a$",
            "(.+)",
            ".*",
            "(.*)$",
        ] {
            assert!(is_walkable(pattern.as_bytes()), "{pattern}");
        }
        for pattern in [
            "/a",
            "^/(.*)/b$",
            "^/([^/]+)x",
            "^/a|^/b",
            "^/(a|b)$",
            "^/(?:a)$",
            "^/(a)?$",
            "^/a+?b",
            "^[^/]+?/",
            "^/[[:alpha:]]+$",
            "^/a?b",
            "^/([0-9]+)([0-9]+)$",
            "^/a{2}",
            "^((a))$",
            "^/a)",
            "^/(a",
            r"^\w+$",
            ".",
            ".*/",
            "(.+?)",
            "(.*)+",
            "([^/]+)",
        ] {
            assert!(!is_walkable(pattern.as_bytes()), "{pattern}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]

        /// What is walkable compiles, and PCRE2 finds the same groups.
        #[test]
        fn as_pcre2(
            parts in prop::collection::vec(prop::sample::select(vec![
                "a", "b", "/", "-", "\\.", "\\d+", "[^/]+", "[^/]*", "[a-b]+", "[-b]*", "[b-]+", "[^a-]*",
                "[ab/]*", "[\\w]+", "[a\\-]+", "[^\\d]*", ".*", "(", ")", "/?", "$", "a?", "]", "[]a]+", "?",
                "+", "[0-9a-b-9]+", "[a-\\d]*", "{1}", "\\b", "|",
            ]), 0..7),
            start in prop::sample::select(vec!["^", "^", "^", "", "(.*", "(.+)", ".+"]),
            subject in "[ab/.1-]{0,7}|[ab/\n\u{e4}]{0,4}",
        ) {
            let pattern = format!("{start}{}", parts.concat());
            if is_walkable(pattern.as_bytes()) {
                let regex = Regex::new(pattern.as_bytes(), Case::Sensitive).expect(&pattern);
                let expected = Matcher::new().find(&regex, subject.as_bytes()).expect("no limit");
                prop_assert_eq!(find(pattern.as_bytes(), subject.as_bytes()), expected, "{}", pattern);
            }
        }
    }
}
