//! Any pattern and path: however a rule is filed and matched, it finds what PCRE2 finds.
//!
//! The input is a pattern and the bytes of a path, with a line feed between them.
#![no_main]

#[allow(dead_code, reason = "the tests of the engine use all of it")]
#[path = "../../crates/engine/tests/support/mod.rs"]
mod support;

use libfuzzer_sys::fuzz_target;
use milepost_engine::{Lookup, Scratch};
use milepost_http::path::{AboveRoot, EncodedSlashes, Slashes, normalize, push_escaped, unescape};
use milepost_pcre::{Captures, Case, Matcher, Regex};

use support::{Table, ask, load};

fuzz_target!(|input: &[u8]| {
    let Some(end) = input.iter().position(|&byte| byte == b'\n') else { return };
    let (pattern, subject) = (&input[..end], &input[end + 1..]);
    let Ok(pattern) = str::from_utf8(pattern) else { return };
    // What the configuration reads as something else than a part of the pattern.
    if pattern.is_empty()
        || pattern.starts_with('!')
        || pattern.contains(['\0', '\r'])
        || pattern.contains("${")
    {
        return;
    }
    let mut target = vec![b'/'];
    for &byte in subject {
        match byte {
            b'/' | b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => target.push(byte),
            byte => push_escaped(byte, &mut target),
        }
    }
    let (mut normal, mut path) = (Vec::new(), Vec::new());
    if normalize(&target, Slashes::Merge, AboveRoot::Refuse, &mut normal).is_err()
        || unescape(&normal, EncodedSlashes::Refuse, &mut path).is_err()
        || target.len() > 4000
    {
        return;
    }
    let target = String::from_utf8(target).expect("escaped");
    let quoted = pattern.replace('\\', "\\\\").replace('"', "\\\"");
    let redirect = format!("RedirectMatch 301 \"{quoted}\" http://t/$1,$2\n");
    check(&redirect, &target, expected(pattern, Case::Sensitive, &path));
    // mod_rewrite reads its arguments by itself, and there a backslash is what it is.
    if !pattern.contains('"') && !pattern.ends_with('\\') {
        let rewrite =
            format!("RewriteEngine On\nRewriteRule \"{pattern}\" http://t/ [NC,R=301,L]\n");
        let found = expected(pattern, Case::Insensitive, &path);
        check(&rewrite, &target, found.map(|found| found.map(|_| None)));
    }
});

/// What PCRE2 finds: nothing, or the redirect's two groups, if they are texts that stay as they are. The
/// outer `None`: it does not compile.
fn expected(pattern: &str, case: Case, path: &[u8]) -> Option<Option<Option<String>>> {
    let regex = Regex::new(pattern.as_bytes(), case).ok()?;
    let found = Matcher::new().find(&regex, path).unwrap_or(None);
    let group = |captures: &Captures, group| {
        let span = captures.get(group).unwrap_or_default();
        String::from_utf8(path[span].to_vec()).ok()
    };
    Some(found.map(|captures| {
        let groups = format!("{},{}", group(&captures, 1)?, group(&captures, 2)?);
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b',' || byte == b'/';
        groups.bytes().all(plain).then_some(groups)
    }))
}

fn check(text: &str, target: &str, expected: Option<Option<Option<String>>>) {
    let files = Table::default();
    for lookup in [Lookup::Index, Lookup::Scan] {
        let site = load(text, &files, lookup).site;
        assert_eq!(site.is_some(), expected.is_some(), "whether it loads: {text}");
        let (Some(site), Some(expected)) = (site, &expected) else { return };
        let answer = ask(&site, &files, "t", target, &mut Scratch::default());
        match expected {
            None => assert!(!answer.starts_with("301"), "{text} {target}: {answer}"),
            Some(None) => {
                assert!(answer.starts_with("301") || answer == "500", "{text} {target}: {answer}")
            }
            Some(Some(groups)) => {
                assert_eq!(answer, format!("301 http://t/{groups}"), "{text} {target}")
            }
        }
    }
}
