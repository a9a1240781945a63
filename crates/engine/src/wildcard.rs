//! Patterns with `*`, `?` and `[…]`, as fnmatch(3) has them.
//!
//! Source: apr 1.7 `strings/apr_fnmatch.c`; httpd 2.4.71 `server/util.c`, `ap_strcasecmp_match`.

use milepost_pcre::Case;

/// Whether the whole of `text` matches `pattern`, slashes only by slashes.
pub(crate) fn matches(pattern: &[u8], text: &[u8]) -> bool {
    run(pattern, text, Rules { slashes: true, case: Case::Sensitive })
}

/// Whether the whole of `text` matches `pattern`, slashes being nothing special.
pub(crate) fn matches_text(pattern: &[u8], text: &[u8], case: Case) -> bool {
    run(pattern, text, Rules { slashes: false, case })
}

/// How bytes are compared.
#[derive(Clone, Copy)]
struct Rules {
    /// A slash is matched only by a slash.
    slashes: bool,
    case: Case,
}

impl Rules {
    fn bars(self, byte: u8) -> bool {
        self.slashes && byte == b'/'
    }

    fn same(self, left: u8, right: u8) -> bool {
        match self.case {
            Case::Sensitive => left == right,
            Case::Insensitive => left.eq_ignore_ascii_case(&right),
        }
    }

    fn between(self, low: u8, byte: u8, high: u8) -> bool {
        let lower = |byte: u8| byte.to_ascii_lowercase();
        (low..=high).contains(&byte)
            || self.case == Case::Insensitive && (lower(low)..=lower(high)).contains(&lower(byte))
    }
}

fn run(pattern: &[u8], text: &[u8], rules: Rules) -> bool {
    // One way back is enough: a later `*` can always take over from an earlier one.
    let (mut at, mut pos) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while pos < text.len() {
        let byte = text[pos];
        let step = match pattern[at..] {
            [b'*', ..] => {
                retry = Some((at + 1, pos));
                at += 1;
                continue;
            }
            [b'?', ..] => (!rules.bars(byte)).then_some(1),
            [b'[', ..] => match class(&pattern[at..], byte, rules) {
                Some((len, found)) => (found && !rules.bars(byte)).then_some(len),
                // A bracket that is not closed is a byte like any other.
                None => (byte == b'[').then_some(1),
            },
            [b'\\', next, ..] => rules.same(next, byte).then_some(2),
            [plain, ..] => rules.same(plain, byte).then_some(1),
            [] => None,
        };
        match (step, &mut retry) {
            (Some(len), _) => {
                at += len;
                pos += 1;
            }
            (None, Some((after, from))) if !rules.bars(text[*from]) => {
                *from += 1;
                (at, pos) = (*after, *from);
            }
            _ => return false,
        }
    }
    pattern[at..].iter().all(|&byte| byte == b'*')
}

/// Whether `name` matches a `ServerAlias`: `*` and `?`, letters in both cases, slashes nothing special.
pub(crate) fn matches_name(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut pos) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while pos < name.len() {
        match pattern.get(at) {
            Some(b'*') => {
                retry = Some((at + 1, pos));
                at += 1;
            }
            Some(byte) if *byte == b'?' || byte.eq_ignore_ascii_case(&name[pos]) => {
                at += 1;
                pos += 1;
            }
            _ => {
                let Some((after, from)) = &mut retry else { return false };
                *from += 1;
                (at, pos) = (*after, *from);
            }
        }
    }
    pattern[at..].iter().all(|&byte| byte == b'*')
}

/// The length of the class at the start of `pattern`, and whether `byte` is in it. `None` if it does not
/// end.
fn class(pattern: &[u8], byte: u8, rules: Rules) -> Option<(usize, bool)> {
    let negated = matches!(pattern.get(1), Some(b'!' | b'^'));
    let first = 1 + usize::from(negated);
    let mut at = first;
    let mut found = false;
    while at == first || pattern.get(at) != Some(&b']') {
        let low = member(pattern, &mut at, rules)?;
        let is_range = pattern.get(at) == Some(&b'-') && pattern.get(at + 1) != Some(&b']');
        if is_range {
            at += 1;
            found |= rules.between(low, byte, member(pattern, &mut at, rules)?);
        } else {
            found |= rules.same(low, byte);
        }
    }
    Some((at + 1, found != negated))
}

/// The byte of a class at `at`, which may stand behind a backslash.
fn member(pattern: &[u8], at: &mut usize, rules: Rules) -> Option<u8> {
    if pattern.get(*at) == Some(&b'\\') {
        *at += 1;
    }
    let byte = pattern.get(*at).copied().filter(|&byte| !rules.bars(byte))?;
    *at += 1;
    Some(byte)
}

/// Whether httpd takes a text for one with wildcards.
///
/// Source: APR 1.7 `strings/apr_fnmatch.c`, `apr_fnmatch_test`.
pub(crate) fn is_wild(text: &[u8]) -> bool {
    let mut opened = false;
    let mut bytes = text.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'*' | b'?' => return true,
            b'\\' => _ = bytes.next(),
            b'[' => opened = true,
            b']' if opened => return true,
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_stop_at_slashes() {
        for (pattern, text, expected) in [
            ("*.conf", "a.conf", true),
            ("*.conf", "a/b.conf", false),
            ("/a/*/c", "/a/b/c", true),
            ("/a/?", "/a/b", true),
            ("/a/?", "/a//", false),
            ("v[0-9].conf", "v1.conf", true),
            ("v[!0-9].conf", "v1.conf", false),
            ("a*b*c", "aXbYbZc", true),
            ("a*", "a", true),
            ("", "a", false),
            ("a[/]c", "a/c", false),
            ("/*/*", "/a/.b", true),
            ("a/*", "a/", true),
        ] {
            assert_eq!(matches(pattern.as_bytes(), text.as_bytes()), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn texts_have_no_slashes() {
        for (pattern, text, expected) in [
            ("/*", "/a/b", true),
            ("/a?b", "/a/b", true),
            ("a[/]c", "a/c", true),
            ("a[b]c", "abc", true),
            ("a[^x]c", "abc", true),
            ("a[]]c", "a]c", true),
            ("a[-]c", "a-c", true),
            ("a[x-]c", "a-c", true),
            ("[a-]", "b", false),
            ("[a-]]", "-]", true),
            (r"[a-\d]", "c", true),
            ("[[]a[]]", "[a]", true),
            ("[a", "[a", true),
            ("[a", "a", false),
            (r"a\*c", "a*c", true),
            (r"a\*c", "abc", false),
            ("A[a-c]C", "aBc", false),
        ] {
            let found = matches_text(pattern.as_bytes(), text.as_bytes(), Case::Sensitive);
            assert_eq!(found, expected, "{pattern} {text}");
        }
        assert!(matches_text(b"A[a-c]C", b"aBc", Case::Insensitive));
    }

    #[test]
    fn names_ignore_case() {
        assert!(matches_name(b"*.example.com", b"WWW.Example.COM"));
        assert!(!matches_name(b"*.example.com", b"example.com"));
        assert!(matches_name(b"w?w.*", b"www.x"));
    }
}
