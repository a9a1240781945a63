//! Patterns with `*`, `?` and `[…]`, as fnmatch(3) has them: a slash is matched only by a slash.
//!
//! Source: apr 1.7 `strings/apr_fnmatch.c`; httpd 2.4.71 `server/util.c`, `ap_strcasecmp_match`.

/// Whether the whole of `text` matches `pattern`, slashes only by slashes.
pub(crate) fn matches(pattern: &[u8], text: &[u8]) -> bool {
    // One way back is enough: a later `*` can always take over from an earlier one.
    let (mut at, mut pos) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while pos < text.len() {
        let step = match pattern.get(at) {
            Some(b'*') => {
                retry = Some((at + 1, pos));
                at += 1;
                continue;
            }
            Some(b'?') if text[pos] != b'/' => Some(1),
            Some(b'[') if text[pos] != b'/' => class(&pattern[at..], text[pos]),
            Some(b'\\') => (pattern.get(at + 1) == Some(&text[pos])).then_some(2),
            Some(&byte) => (byte == text[pos]).then_some(1),
            None => None,
        };
        match (step, &mut retry) {
            (Some(len), _) => {
                at += len;
                pos += 1;
            }
            (None, Some((after, from))) if text[*from] != b'/' => {
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

/// The length of the class at the start of `pattern`, if `byte` is in it.
fn class(pattern: &[u8], byte: u8) -> Option<usize> {
    let negated = matches!(pattern.get(1), Some(b'!' | b'^'));
    let first = 1 + usize::from(negated);
    let mut at = first;
    let mut found = false;
    loop {
        let low = *pattern.get(at)?;
        if low == b']' && at > first {
            break;
        }
        let high = match pattern.get(at + 1..at + 3) {
            Some(&[b'-', high]) if high != b']' => {
                at += 2;
                high
            }
            _ => low,
        };
        found |= (low..=high).contains(&byte);
        at += 1;
    }
    (found != negated).then_some(at + 1)
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
        ] {
            assert_eq!(matches(pattern.as_bytes(), text.as_bytes()), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn names_ignore_case() {
        assert!(matches_name(b"*.example.com", b"WWW.Example.COM"));
        assert!(!matches_name(b"*.example.com", b"example.com"));
        assert!(matches_name(b"w?w.*", b"www.x"));
    }
}
