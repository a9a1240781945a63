//! Requests near the rules of a configuration: some match, some nearly, some not at all.
//!
//! The rules are read off the text by a reader of its own, simpler than Apache's: it only has to
//! find what would be good to ask for.

mod around;

use fastrand::Rng;

use crate::bytes;
use crate::case::{Ask, HOST};
use crate::sample::sample;

pub use around::{Condition, around, meet};

/// What a rule looks for in a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// The URL of the directory that the rule stands in; ends in a slash.
    pub directory: String,
    /// The URL-path or the pattern.
    pub subject: Subject,
    /// The conditions before it: test string and pattern.
    pub conditions: Vec<(String, String)>,
}

/// What the path of a request is compared with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// The URL-path of `Redirect`, `Alias`, `<Location>`.
    Path(String),
    /// The pattern of `RedirectMatch`, `AliasMatch`, `<LocationMatch>`: over the whole path.
    Whole(String),
    /// The pattern of `RewriteRule`: over the path below `directory` in per-directory context.
    Relative(String),
}

/// Reads the rules of a configuration text that applies to the directory with the URL `directory`;
/// `per_directory` says that patterns of `RewriteRule` are matched below it.
pub fn rules(text: &str, directory: &str, per_directory: bool) -> Vec<Rule> {
    let mut rules = Vec::new();
    let mut conditions = Vec::new();
    for line in logical_lines(text) {
        let words = words(&line);
        let Some(name) = words.first() else { continue };
        let arguments = &words[1..];
        let last = |from_end: usize| {
            arguments.len().checked_sub(from_end).and_then(|at| arguments.get(at)).cloned()
        };
        let subject = match name.to_ascii_lowercase().as_str() {
            "rewritecond" => {
                if let [test, pattern, ..] = arguments {
                    conditions.push((test.clone(), pattern.clone()));
                }
                continue;
            }
            "rewriterule" => arguments.first().map(|pattern| {
                let pattern = pattern.strip_prefix('!').unwrap_or(pattern).to_owned();
                if per_directory { Subject::Relative(pattern) } else { Subject::Whole(pattern) }
            }),
            "redirect" | "redirectpermanent" | "redirecttemp" | "alias" | "scriptalias"
            | "proxypass" => {
                let path = arguments.iter().find(|word| word.starts_with('/'));
                path.cloned().map(Subject::Path)
            }
            "redirectmatch" => {
                let url = arguments.iter().position(|word| word.contains(['/', '^', '.']));
                url.map(|at| Subject::Whole(arguments[at].clone()))
            }
            "aliasmatch" | "scriptaliasmatch" => last(2).map(Subject::Whole),
            "proxypassmatch" => arguments.first().cloned().map(Subject::Whole),
            "<location" => match arguments {
                [tilde, pattern, ..] if tilde == "~" => {
                    Some(Subject::Whole(pattern.trim_end_matches('>').to_owned()))
                }
                [path, ..] => Some(Subject::Path(path.trim_end_matches('>').to_owned())),
                [] => None,
            },
            "<locationmatch" => {
                last(1).map(|pattern| Subject::Whole(pattern.trim_end_matches('>').to_owned()))
            }
            _ => None,
        };
        if let Some(subject) = subject {
            let conditions = std::mem::take(&mut conditions);
            rules.push(Rule { directory: directory.to_owned(), subject, conditions });
        }
    }
    rules
}

/// How near to a rule a request is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nearness {
    /// Made to match.
    Match,
    /// Made to match, then changed a little.
    Near,
}

/// Makes a request for a rule.
pub fn ask(rule: &Rule, nearness: Nearness, rng: &mut Rng) -> Ask {
    let mut path = path(rule, rng);
    let mut ask = Ask::get(b"");
    let mut query = None;
    for (test, pattern) in &rule.conditions {
        condition(test, pattern, &mut path, &mut query, &mut ask, rng);
    }
    if nearness == Nearness::Near {
        change(&mut path, rng);
        if rng.u8(..) < 30 {
            query = None;
        }
    }
    if query.is_none() && rng.u8(..) < 60 {
        query = Some(any_query(rng));
    }
    ask.target = target(&path, query.as_deref(), rng);
    ask
}

/// Makes a request that has nothing to do with any rule.
pub fn far(rng: &mut Rng) -> Ask {
    let mut path = b"/".to_vec();
    for at in 0..rng.usize(0..3) {
        if at > 0 {
            path.push(b'/');
        }
        path.extend((0..rng.usize(1..8)).map(|_| rng.lowercase() as u8));
    }
    let query = if rng.bool() { None } else { Some(any_query(rng)) };
    Ask::get(&target(&path, query.as_deref(), rng))
}

fn any_query(rng: &mut Rng) -> Vec<u8> {
    const QUERIES: [&str; 10] =
        ["", "a=1", "x", "q=a%20b", "a=1&b=2", "%3f", "a=%zz", "?", "a=b?c=d", "id=42&"];
    rng.choice(QUERIES).unwrap_or_default().as_bytes().to_vec()
}

/// A decoded path that the rule's subject matches.
fn path(rule: &Rule, rng: &mut Rng) -> Vec<u8> {
    match &rule.subject {
        Subject::Path(path) => {
            const RESTS: [&str; 6] = ["", "", "/", "/x", "/x/y.html", "x"];
            let mut path = path.as_bytes().to_vec();
            path.extend_from_slice(rng.choice(RESTS).unwrap_or_default().as_bytes());
            path
        }
        Subject::Whole(pattern) => matching(pattern, b"", rng),
        Subject::Relative(pattern) => matching(pattern, rule.directory.as_bytes(), rng),
    }
}

fn matching(pattern: &str, directory: &[u8], rng: &mut Rng) -> Vec<u8> {
    const AROUND: [&str; 4] = ["", "a", "x/", "/y"];
    let mut path = directory.to_vec();
    match sample(pattern, rng) {
        Some(sample) => {
            if !sample.starts && rng.u8(..) < 100 {
                path.extend_from_slice(rng.choice(AROUND).unwrap_or_default().as_bytes());
            }
            path.extend_from_slice(&sample.bytes);
            if !sample.ends && rng.u8(..) < 100 {
                path.extend_from_slice(rng.choice(AROUND).unwrap_or_default().as_bytes());
            }
        }
        // Its letters are at least near it.
        None => path.extend(pattern.bytes().filter(|b| b.is_ascii_alphanumeric() || *b == b'/')),
    }
    if path.first() != Some(&b'/') {
        path.insert(0, b'/');
    }
    path
}

/// Puts what a condition asks for where it looks.
fn condition(
    test: &str,
    pattern: &str,
    path: &mut Vec<u8>,
    query: &mut Option<Vec<u8>>,
    ask: &mut Ask,
    rng: &mut Rng,
) {
    let positive = pattern.strip_prefix('!').unwrap_or(pattern);
    let wanted = match positive.strip_prefix('=') {
        Some(exact) => exact.trim_matches('"').as_bytes().to_vec(),
        None => sample(positive, rng).map(|sample| sample.bytes).unwrap_or_default(),
    };
    // A negated condition is met by nearly anything else; half the time it is to fail.
    if positive.len() != pattern.len() && rng.bool() {
        return;
    }
    let visible: Vec<u8> =
        wanted.iter().copied().filter(|byte| matches!(byte, b' '..=b'~')).collect();
    let test = test.to_ascii_uppercase();
    let mut set = |name: &str, value: Vec<u8>| {
        ask.fields.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        ask.fields.push((name.to_owned(), value));
    };
    match test.as_str() {
        "%{HTTP_HOST}" | "%{SERVER_NAME}" | "%{HTTP:HOST}" => {
            let mut host = visible;
            host.retain(|byte| byte.is_ascii_alphanumeric() || b".-_:".contains(byte));
            // A pattern for a part of a name gives a part of a name.
            if host.first().is_none_or(|&byte| byte == b'.') {
                host.splice(0..0, *b"www");
            }
            if host.last() == Some(&b'.') {
                host.extend_from_slice(b"test");
            }
            set("Host", host);
        }
        "%{QUERY_STRING}" => *query = Some(wanted),
        "%{REQUEST_URI}" if rng.u8(..) < 160 && wanted.first() == Some(&b'/') => *path = wanted,
        // What a name ends in, most of the time.
        "%{REQUEST_URI}" | "%{REQUEST_FILENAME}" if rng.u8(..) < 80 && !wanted.is_empty() => {
            path.extend_from_slice(&wanted);
        }
        // `old.test/page` is asked for as the page of that host.
        "%{HTTP_HOST}%{REQUEST_URI}" | "%{HTTP_HOST}/$1" | "%{HTTP_HOST}$1" => {
            let slash = visible.iter().position(|&byte| byte == b'/').unwrap_or(visible.len());
            if slash < visible.len() {
                *path = visible[slash..].to_vec();
            }
            if slash > 0 {
                set("Host", visible[..slash].to_vec());
            }
        }
        "%{HTTP_USER_AGENT}" => set("User-Agent", visible),
        "%{HTTP_REFERER}" => set("Referer", visible),
        "%{HTTP_COOKIE}" => set("Cookie", visible),
        "%{HTTP_ACCEPT}" => set("Accept", visible),
        "%{HTTP_FORWARDED}" => set("Forwarded", visible),
        "%{REQUEST_METHOD}" => {
            const METHODS: [&str; 9] =
                ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "TRACK", "PROPFIND"];
            if let Some(method) = METHODS.iter().find(|method| method.as_bytes() == wanted) {
                ask.method = (*method).to_owned();
            }
        }
        "%{THE_REQUEST}" => {
            // `GET /index.html?x HTTP/1.1`: the middle word is the target.
            let mut words = visible.split(|&byte| byte == b' ').skip(1);
            if let Some(target) = words.next().filter(|target| target.starts_with(b"/")) {
                let mut halves = target.splitn(2, |&byte| byte == b'?');
                *path = halves.next().unwrap_or_default().to_vec();
                *query = halves.next().map(<[u8]>::to_vec);
            }
        }
        _ => {
            let field = test.strip_prefix("%{HTTP:").and_then(|rest| rest.strip_suffix('}'));
            let token = |name: &&str| name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
            // A request here has no content, and must not promise any.
            let framing =
                |name: &str| matches!(name, "HOST" | "TRANSFER-ENCODING" | "CONTENT-LENGTH");
            if let Some(name) = field.filter(token).filter(|name| !framing(name)) {
                set(name, visible);
            }
        }
    }
}

/// Changes a decoded path a little.
fn change(path: &mut Vec<u8>, rng: &mut Rng) {
    const INSERTS: [&[u8]; 16] = [
        b"/",
        b"//",
        b"/./",
        b"/../",
        b"x",
        b".",
        b"?",
        b"#",
        b"%",
        b"\n",
        b" ",
        b"\xff",
        b"+",
        b"\xc3\xa9",
        b"&=",
        b"$1",
    ];
    let at = rng.usize(0..=path.len()).max(1).min(path.len());
    match rng.u8(0..8) {
        0 => path.push(b'/'),
        1 => path.truncate(path.len().saturating_sub(1).max(1)),
        2 => {
            path.iter_mut().for_each(|byte| {
                *byte =
                    if rng.bool() { byte.to_ascii_uppercase() } else { byte.to_ascii_lowercase() }
            });
        }
        3 => {
            path.truncate(at.max(1));
        }
        4 if path.len() > 1 => {
            path.remove(rng.usize(1..path.len()));
        }
        5 => path.extend_from_slice(b"/more"),
        _ => {
            let insert = rng.choice(INSERTS).unwrap_or_default();
            path.splice(at..at, insert.iter().copied());
        }
    }
}

/// Encodes a decoded path and a query string: what must be encoded, and some that need not.
fn target(path: &[u8], query: Option<&[u8]>, rng: &mut Rng) -> Vec<u8> {
    let mut target = Vec::with_capacity(path.len() + 16);
    let eager = rng.u8(..) < 40;
    let upper = rng.bool();
    for byte in bytes::of_file(path) {
        let must = matches!(byte, 0..=b' ' | 0x7f | b'%' | b'?' | b'#');
        let may = byte >= 0x80 || (eager && byte != b'/' && rng.u8(..) < 80);
        // An encoded slash is refused before any rule is asked, so it is rare.
        let slash = byte == b'/' && rng.u16(..) < 200;
        if must || (may && (byte < 0x80 || rng.u8(..) < 200)) || slash {
            let digits = if upper { format!("%{byte:02X}") } else { format!("%{byte:02x}") };
            target.extend_from_slice(digits.as_bytes());
        } else {
            target.push(byte);
        }
    }
    if let Some(query) = query {
        target.push(b'?');
        // A query string is sent as it is, but for what cannot stand in a request line.
        for byte in bytes::of_file(query) {
            match byte {
                0..=b' ' | 0x7f | b'#' => {
                    target.extend_from_slice(format!("%{byte:02x}").as_bytes())
                }
                _ => target.push(byte),
            }
        }
    }
    target
}

/// Joins continued lines and drops comments.
pub(crate) fn logical_lines(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut joined = String::new();
    for line in text.lines() {
        match line.strip_suffix('\\') {
            Some(begun) => joined.push_str(begun),
            None => {
                joined.push_str(line);
                let whole = std::mem::take(&mut joined);
                if !whole.trim_start().starts_with('#') {
                    lines.push(whole);
                }
            }
        }
    }
    lines
}

/// Splits a line at blanks; quotes hold words together and a backslash hides a blank.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = line.trim();
    while !rest.is_empty() {
        let quote = rest.chars().next().filter(|first| matches!(first, '"' | '\''));
        let word;
        (word, rest) = match quote {
            Some(quote) => rest[1..].split_once(quote).unwrap_or((&rest[1..], "")),
            None => {
                let mut escaped = false;
                let end = rest.find(|character: char| {
                    let ends = character.is_whitespace() && !escaped;
                    escaped = character == '\\' && !escaped;
                    ends
                });
                rest.split_at(end.unwrap_or(rest.len()))
            }
        };
        words.push(word.to_owned());
        rest = rest.trim_start();
    }
    words
}

/// Replaces the usual host of a request by `host`, unless a condition chose another.
pub fn at_host(ask: &mut Ask, host: &str) {
    for (name, value) in &mut ask.fields {
        if name == "Host" && value.as_slice() == HOST.as_bytes() {
            *value = host.into();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
# RewriteRule ^commented$ x
RewriteCond %{HTTP_HOST} ^old\.test$ [NC]
RewriteRule "^a b$" \
    http://t/ [R]
Redirect permanent /x http://t/x
RedirectMatch 301 ^/y(\d)$ http://t/$1
<Location ~ "/z">
"#;

    #[test]
    fn rules_are_read_off_the_text() {
        let rules = rules(TEXT, "/d/", true);
        let subjects: Vec<_> = rules.iter().map(|rule| rule.subject.clone()).collect();
        assert_eq!(
            subjects,
            [
                Subject::Relative("^a b$".into()),
                Subject::Path("/x".into()),
                Subject::Whole(r"^/y(\d)$".into()),
                Subject::Whole("/z".into()),
            ]
        );
        assert_eq!(rules[0].conditions, [("%{HTTP_HOST}".into(), r"^old\.test$".into())]);
        assert_eq!(rules[1].conditions, []);
    }

    #[test]
    fn requests_match_when_they_should() {
        let rules = rules(TEXT, "/d/", true);
        let mut rng = Rng::with_seed(3);
        for _ in 0..50 {
            let ask = ask(&rules[0], Nearness::Match, &mut rng);
            let path = ask.target.split(|&byte| byte == b'?').next().unwrap();
            let decoded = String::from_utf8_lossy(path).to_ascii_lowercase();
            assert!(decoded.len() >= "/d/a%20b".len(), "{decoded}");
            assert_eq!(ask.fields, [("Host".to_owned(), b"old.test".to_vec())]);
        }
    }

    #[test]
    fn targets_hold_no_byte_that_ends_a_request_line() {
        let rules = rules(TEXT, "/", true);
        let mut rng = Rng::with_seed(5);
        for _ in 0..2000 {
            let rule = rng.choice(&rules).unwrap();
            let ask = ask(rule, Nearness::Near, &mut rng);
            assert!(ask.target.iter().all(|&byte| byte > b' ' && byte != 0x7f), "{ask:?}");
            assert!(ask.target.starts_with(b"/") || ask.target.starts_with(b"%2"), "{ask:?}");
        }
    }
}
