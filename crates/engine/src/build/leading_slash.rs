//! Finds the slip of a rule in a directory that waits for the slash of the URL-path, which it never sees.
//!
//! Source: httpd 2.4.71 `mod_rewrite.c`, `apply_rewrite_rule`: the path of the directory goes, its slash too.

use crate::program::{Flags, RewriteRule, Substitution};

/// Whether a pattern matches only what begins with a slash.
pub(super) fn wants_slash(pattern: &[u8]) -> bool {
    let Some(rest) = pattern.strip_prefix(b"^/") else { return false };
    if matches!(rest.first(), Some(b'?' | b'*' | b'{')) {
        return false;
    }
    // Another alternative may begin with anything.
    let (mut depth, mut escaped) = (0_usize, false);
    for &byte in rest {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            b'|' if depth == 0 => return false,
            _ => {}
        }
    }
    true
}

/// Whether a rule after these sees the path of the request, and not what one of them has put in its place.
pub(super) fn sees_the_path(rules: &[RewriteRule]) -> bool {
    let ends = |rule: &RewriteRule| {
        [Flags::LAST, Flags::END, Flags::STATUS].into_iter().any(|flag| rule.flags.has(flag))
    };
    rules.iter().all(|rule| rule.substitution == Substitution::None || ends(rule))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_slash_that_must_be_there_counts() {
        for (pattern, expected) in [
            ("^/a", true),
            ("^/a(/|$)", true),
            ("^/(a\\|b)\\|c", true),
            ("^/", true),
            ("^/?a", false),
            ("^/*a", false),
            ("^/{0,1}a", false),
            ("^/a|b", false),
            ("^(/a)", false),
            ("/a", false),
        ] {
            assert_eq!(wants_slash(pattern.as_bytes()), expected, "{pattern}");
        }
    }
}
