//! Moves a configuration from the machine that it was written for to a case.
//!
//! Directories become ones of the case and get files; what only that machine has (certificates, logs, ports,
//! modules by path, placeholders of a template) goes. Lines stay where they are. Every engine gets the same
//! text, so a move that misses the mark costs a rule that is asked, and never makes a difference.

use std::collections::BTreeMap;

/// Where the directories of the other machine are put, below `@ROOT@`.
const DISK: &str = "disk";
/// What stands in each of its directories.
const CONTENTS: [&str; 5] =
    ["index.html", "index.php", "robots.txt", "a/index.html", "images/logo.png"];
/// Directives that belong to a process or to a machine: the case has its own, or does without.
const LEFT_OUT: [&str; 25] = [
    "customlog",
    "defaultruntimedir",
    "errorlog",
    "group",
    "listen",
    "loadmodule",
    "loglevel",
    "mutex",
    "pidfile",
    "rewritelog",
    "rewriteloglevel",
    "scriptlog",
    "scriptsock",
    "scoreboardfile",
    "serverroot",
    "sslcacertificatefile",
    "sslcacertificatepath",
    "sslcarevocationfile",
    "sslcertificatechainfile",
    "sslcertificatefile",
    "sslcertificatekeyfile",
    "sslengine",
    "transferlog",
    "typesconfig",
    "user",
];

/// A configuration that fits a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Moved {
    /// Its text; paths in it hold `@ROOT@`.
    pub(super) text: String,
    /// The files that it is to find, by path below `@ROOT@`.
    pub(super) files: BTreeMap<String, String>,
}

/// Moves `text`.
pub(super) fn moved(text: &str) -> Moved {
    let plain: Vec<String> = text.lines().map(without_template).collect();
    let directories = directories(&plain);
    let mut files = BTreeMap::new();
    for directory in &directories {
        let below = format!("{DISK}{directory}");
        let is_file = directory.rsplit('/').next().is_some_and(|last| last.contains('.'));
        if is_file {
            files.insert(below.clone(), format!("{below}\n"));
            continue;
        }
        for name in CONTENTS {
            let path = format!("{below}/{name}");
            files.insert(path.clone(), format!("{path}\n"));
        }
    }
    // One directory may lie in what another line calls a file.
    let names: Vec<String> = files.keys().cloned().collect();
    files.retain(|path, _| !names.iter().any(|other| other.starts_with(&format!("{path}/"))));
    let mut moved = String::with_capacity(text.len());
    for line in &plain {
        let name = line.split_whitespace().next().unwrap_or_default().to_ascii_lowercase();
        if !LEFT_OUT.contains(&name.as_str()) {
            moved.push_str(&with_paths(line, &directories));
        }
        moved.push('\n');
    }
    Moved { text: moved, files }
}

/// Puts backends and whatever else has an address of its own on the loopback, where nobody answers.
///
/// Nothing is asked outside of this machine, whose gateway would answer for what is not there.
pub(super) fn on_loopback(text: &str) -> String {
    let mut near = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("://") {
        near.push_str(before);
        near.push_str("://");
        rest = after;
        let end = after.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(after.len());
        if after[..end].parse::<std::net::Ipv4Addr>().is_ok()
            && let Some((_, others)) = after.split_once('.')
        {
            near.push_str("127.");
            rest = others;
        }
    }
    near.push_str(rest);
    near
}

/// What a case needs so that the moved directories may be served.
pub(super) fn access() -> String {
    format!("<Directory \"@ROOT@/{DISK}\">\nRequire all granted\nAllowOverride All\n</Directory>\n")
}

/// The absolute paths of the file system that the lines name, longest first.
fn directories(lines: &[String]) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for line in lines {
        let mut words = line.split_whitespace().map(|word| word.trim_matches(['"', '\'', '>']));
        let name = words.next().unwrap_or_default().to_ascii_lowercase();
        let path = match name.as_str() {
            "documentroot" | "<directory" | "virtualdocumentroot" => words.next(),
            "alias" | "scriptalias" => words.nth(1),
            _ => None,
        };
        let path = path.unwrap_or_default().trim_end_matches('/');
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"/._-".contains(&b);
        if path.len() > 1 && path.starts_with('/') && path.bytes().all(plain) {
            found.push(path.to_owned());
        }
    }
    found.sort_by_key(|path| std::cmp::Reverse(path.len()));
    found.dedup();
    found
}

/// Puts the paths that begin with one of `directories` on the case's disk.
fn with_paths(line: &str, directories: &[String]) -> String {
    let (urls, mut rest) = line.split_at(urls_end(line));
    let mut moved = urls.to_owned();
    while let Some(first) = rest.chars().next() {
        let begins = moved.is_empty() || moved.ends_with([' ', '\t', '"', '\'']);
        let directory = directories.iter().find(|directory| {
            let after = rest.strip_prefix(directory.as_str());
            begins && after.is_some_and(|after| !after.starts_with(char::is_alphanumeric))
        });
        let length = match directory {
            Some(directory) => {
                moved.push_str(&format!("@ROOT@/{DISK}"));
                directory.len()
            }
            None => first.len_utf8(),
        };
        moved.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    moved
}

/// Where the URL-path ends that a directive has before a path of the file system.
fn urls_end(line: &str) -> usize {
    let mut words = line.split_whitespace();
    let name = words.next().unwrap_or_default().to_ascii_lowercase();
    if !matches!(name.as_str(), "alias" | "scriptalias" | "redirect" | "<location") {
        return 0;
    }
    let Some(url) = words.next() else { return 0 };
    url.as_ptr() as usize - line.as_ptr() as usize + url.len()
}

/// Puts a word for each placeholder of a template, and nothing for its statements.
fn without_template(line: &str) -> String {
    let statement = line.trim_start();
    if statement.starts_with("{%") || (statement.starts_with("<%") && !statement.starts_with("<%="))
    {
        return String::new();
    }
    let mut plain = line.to_owned();
    for (open, close) in [("<%=", "%>"), ("{{", "}}")] {
        while let Some((before, after)) = plain.split_once(open)
            && let Some((_, after)) = after.split_once(close)
        {
            plain = format!("{before}template{after}");
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_moved() {
        let text = "DocumentRoot \"/srv/www\"\nErrorLog /var/log/x\nAlias /srv/www /srv/www/x\n\
                    RewriteCond /srv/www%{REQUEST_URI} -f\nRedirect /srv/wwwx /y\nServerName {{ host }}\n";
        let expected = "DocumentRoot \"@ROOT@/disk/srv/www\"\n\nAlias /srv/www @ROOT@/disk/srv/www/x\n\
                        RewriteCond @ROOT@/disk/srv/www%{REQUEST_URI} -f\nRedirect /srv/wwwx /y\n\
                        ServerName template\n";
        let moved = moved(text);
        assert_eq!(moved.text, expected);
        assert!(moved.files.contains_key("disk/srv/www/x/index.html"));
    }

    #[test]
    fn backends_are_on_the_loopback() {
        let text = "ProxyPass /a http://10.1.2.3:8/\nProxyPass /b http://10.test/ # ://1.2.3\n";
        let expected =
            "ProxyPass /a http://127.1.2.3:8/\nProxyPass /b http://10.test/ # ://1.2.3\n";
        assert_eq!(on_loopback(text), expected);
    }

    #[test]
    fn statements_of_a_template_go() {
        let moved = moved("<% if x %>\n<%= y %> /a\n{% end %}\n");
        assert_eq!(moved.text, "\ntemplate /a\n\n");
    }
}
