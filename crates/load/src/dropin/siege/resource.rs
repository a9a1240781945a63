//! Reads siege's resource file: settings and variables, one a line.

use std::collections::HashMap;

use super::expand::{Forms, expand};

/// One line that is no comment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    /// From 1.
    pub(super) line: usize,
    pub(super) key: String,
    pub(super) value: String,
}

/// Reads all lines. A line that `is_setting` does not know defines a variable for those below it; what
/// is not defined is looked up with `outer`.
pub(super) fn parse(
    text: &str,
    is_setting: impl Fn(&str) -> bool,
    outer: impl Fn(&str) -> Option<String>,
) -> Vec<Entry> {
    let mut variables: HashMap<String, String> = HashMap::new();
    let mut entries = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (key, value) = line
            .split_once('=')
            .unwrap_or_else(|| line.split_once(char::is_whitespace).unwrap_or((line, "")));
        let known = |name: &str| variables.get(name).cloned().or_else(|| outer(name));
        let (key, value) = (key.trim().to_owned(), expand(value.trim(), Forms::All, known));
        if is_setting(&key) {
            entries.push(Entry { line: number, key, value });
        } else {
            variables.insert(key, value);
        }
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_and_variables() {
        let text = "# c\nverbose = true\nHOST = h.example\nurl = $(HOST)/$HOME/${NONE}x\nreps 5\nheader = A: b=c\n";
        let is_setting = |key: &str| ["verbose", "url", "reps", "header"].contains(&key);
        let entries = parse(text, is_setting, |name| (name == "HOME").then(|| "root".to_owned()));
        let found: Vec<_> = entries.iter().map(|it| (it.line, &*it.key, &*it.value)).collect();
        assert_eq!(
            found,
            [
                (2, "verbose", "true"),
                (4, "url", "h.example/root/x"),
                (5, "reps", "5"),
                (6, "header", "A: b=c")
            ]
        );
    }
}
