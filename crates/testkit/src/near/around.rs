//! Conditions that a configuration sets beside its rules: variables by field, sections with expressions.
//!
//! A request that meets one of them by chance shows what hangs on it, whatever rule the request is for.

use fastrand::Rng;

use super::{condition, logical_lines, words};
use crate::case::Ask;

/// Something that a configuration looks for in a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// Where it looks, as a test string of `RewriteCond`.
    pub test: String,
    /// The pattern, or `=` and the value.
    pub pattern: String,
}

/// Reads off a configuration text what it looks for in the fields of a request and in its method.
pub fn around(text: &str) -> Vec<Condition> {
    let mut found = Vec::new();
    for line in logical_lines(text) {
        let words = words(&line);
        let name = words.first().map(|name| name.to_ascii_lowercase()).unwrap_or_default();
        match (name.as_str(), &words[words.len().min(1)..]) {
            ("setenvif" | "setenvifnocase", [attribute, pattern, ..]) => {
                found.push(Condition { test: test(attribute), pattern: pattern.clone() });
            }
            ("browsermatch" | "browsermatchnocase", [pattern, ..]) => {
                let test = "%{HTTP_USER_AGENT}".to_owned();
                found.push(Condition { test, pattern: pattern.clone() });
            }
            ("rewritecond", [test, pattern, ..]) if !pattern.starts_with('-') => {
                found.push(Condition { test: test.clone(), pattern: pattern.clone() });
            }
            _ => comparisons(&line, &mut found),
        }
    }
    found
}

/// Has a request meet a condition, as far as its fields and its method go.
pub fn meet(wanted: &Condition, ask: &mut Ask, rng: &mut Rng) {
    let (mut path, mut query) = (Vec::new(), None);
    condition(&wanted.test, &wanted.pattern, &mut path, &mut query, ask, rng);
}

/// The test string for an attribute of `SetEnvIf`.
fn test(attribute: &str) -> String {
    match attribute.to_ascii_lowercase().as_str() {
        "request_method" => "%{REQUEST_METHOD}".to_owned(),
        _ => format!("%{{HTTP:{attribute}}}"),
    }
}

/// Finds `%{NAME} == 'value'` and `%{NAME} =~ m#pattern#` in a line.
fn comparisons(line: &str, found: &mut Vec<Condition>) {
    let mut rest = line;
    while let Some(at) = rest.find("%{") {
        rest = &rest[at..];
        let Some(end) = rest.find('}') else { return };
        let test = rest[..=end].to_owned();
        rest = &rest[end + 1..];
        // The name may stand in quotes of its own.
        let after = rest.trim_start_matches(['\'', '"', ')', ' ', '\t']);
        let (is_pattern, value) = match after.get(..2) {
            Some("==" | "-e") => (false, after.trim_start_matches(['=', '-', 'e', 'q', ' ', '\t'])),
            Some("=~" | "!~") => (true, after[2..].trim_start().trim_start_matches('m')),
            _ => continue,
        };
        let Some(delimiter) = value.chars().next() else { return };
        let Some((value, _)) = value[delimiter.len_utf8()..].split_once(delimiter) else {
            continue;
        };
        let pattern = if is_pattern { value.to_owned() } else { format!("={value}") };
        found.push(Condition { test, pattern });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_read_off_the_text() {
        let text = r#"
SetEnvIfNoCase Referer "bad\.test" bad
BrowserMatch ^Mozilla/4 gzip-only
<If "%{HTTP_HOST} == 'a.test' && %{HTTP:X-Proto} =~ m#^https?$#">
Require expr "%{REQUEST_METHOD} !~ /GET/"
RewriteCond %{HTTP_COOKIE} lang=de
RewriteCond %{REQUEST_FILENAME} -f
"#;
        let found: Vec<_> = around(text).into_iter().map(|c| c.test + " " + &c.pattern).collect();
        let expected = [
            r"%{HTTP:Referer} bad\.test",
            "%{HTTP_USER_AGENT} ^Mozilla/4",
            "%{HTTP_HOST} =a.test",
            "%{HTTP:X-Proto} ^https?$",
            "%{REQUEST_METHOD} GET",
            "%{HTTP_COOKIE} lang=de",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_condition_is_met() {
        let mut ask = Ask::get(b"/");
        let wanted = Condition { test: "%{HTTP:Accept-Language}".into(), pattern: "^fr".into() };
        meet(&wanted, &mut ask, &mut Rng::with_seed(1));
        assert!(ask.fields.contains(&("ACCEPT-LANGUAGE".to_owned(), b"fr".to_vec())), "{ask:?}");
    }
}
