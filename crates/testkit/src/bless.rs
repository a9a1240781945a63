//! Writes the answers of real httpd into the spec files as expectations.
//!
//! Every request stands on a line of its own that starts with `{ target =`; every refused
//! configuration has a line `refused =`. Only these lines are written anew, so comments and layout
//! stay. The answers are then to be read by whoever wrote the case: that httpd gives them is
//! certain, that they show what the case is called is not.

use std::path::Path;

use crate::answer::Expected;
use crate::bytes;
use crate::case::{Case, Exchange, HOST, SpecError};
use crate::engine::Verdict;

/// Rewrites the `text` of a spec file so that its cases expect `verdicts`.
///
/// # Errors
/// [`SpecError::Case`] for every case that got no answers, or is not laid out line by line.
pub fn bless(
    file: &Path,
    text: &str,
    cases: &[Case],
    verdicts: &[Verdict],
) -> Result<String, Vec<SpecError>> {
    let wrong = |case: &Case, what: String| SpecError::Case {
        file: file.to_owned(),
        case: case.name.clone(),
        what,
    };
    let mut requests = Vec::new();
    let mut refusals = Vec::new();
    let mut errors = Vec::new();
    for (case, verdict) in cases.iter().zip(verdicts) {
        match (&case.refused, verdict) {
            (Some(_), Verdict::Refused(message)) => {
                refusals.push(format!("refused = {}", quoted(message)));
            }
            (None, Verdict::Answers(answers)) => {
                for (exchange, answer) in case.exchanges.iter().zip(answers) {
                    match answer {
                        Ok(answer) => {
                            let expected = exchange.expected.blessed(answer);
                            requests.push(request_line(exchange, &expected));
                        }
                        Err(error) => errors.push(wrong(case, error.clone())),
                    }
                }
            }
            (Some(_), Verdict::Answers(_)) => {
                errors.push(wrong(case, "is accepted by httpd".to_owned()));
            }
            (None, Verdict::Refused(message)) => {
                errors.push(wrong(case, format!("is refused by httpd: {message}")));
            }
        }
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    let (mut requests, mut refusals) = (requests.into_iter(), refusals.into_iter());
    let mut lines = Vec::new();
    for line in text.lines() {
        let new = if line.trim_start().starts_with("{ target =") {
            requests.next()
        } else if line.starts_with("refused =") {
            refusals.next()
        } else {
            Some(line.to_owned())
        };
        lines.push(new.unwrap_or_default());
    }
    lines.push(String::new());
    let blessed = lines.join("\n");
    // Nothing but the expectations may have changed, whatever the layout was.
    let again = crate::case::parse(file, &blessed).map_err(|error| vec![error])?;
    let without = |cases: &[Case]| cases.iter().map(without_expectations).collect::<Vec<_>>();
    match cases
        .iter()
        .zip(without(&again))
        .find(|(case, again)| without_expectations(case) != *again)
    {
        Some((case, _)) => {
            Err(vec![wrong(case, "is not laid out with one request to a line".to_owned())])
        }
        None => Ok(blessed),
    }
}

/// Renders an exchange as the line of a spec file.
pub fn request_line(exchange: &Exchange, expected: &Expected) -> String {
    let ask = &exchange.ask;
    let mut parts = vec![format!("target = {}", quoted(&bytes::write(&ask.target)))];
    if ask.method != "GET" {
        parts.push(format!("method = {}", quoted(&ask.method)));
    }
    if ask.minor == 0 {
        parts.push("version = \"1.0\"".to_owned());
    }
    let (hosts, others): (Vec<_>, Vec<_>) =
        ask.fields.iter().partition(|(name, _)| name.eq_ignore_ascii_case("Host"));
    match hosts.as_slice() {
        [] => parts.push("host = \"-\"".to_owned()),
        [(_, host)] if host == HOST.as_bytes() => {}
        [(_, host)] => parts.push(format!("host = {}", quoted(&bytes::write(host)))),
        _ => {}
    }
    let mut names: Vec<&str> = Vec::new();
    let listed = if hosts.len() > 1 { ask.fields.iter().collect() } else { others };
    for (name, _) in &listed {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    let fields = names.iter().map(|name| {
        let values = listed.iter().filter(|(other, _)| other == name);
        let values: Vec<_> = values.map(|(_, value)| quoted(&bytes::write(value))).collect();
        match values.as_slice() {
            [value] => format!("{} = {value}", key(name)),
            values => format!("{} = [{}]", key(name), values.join(", ")),
        }
    });
    let fields: Vec<_> = fields.collect();
    if !fields.is_empty() {
        parts.push(format!("fields = {{ {} }}", fields.join(", ")));
    }
    if let Some(address) = &ask.address {
        parts.push(format!("address = {}", quoted(address)));
    }
    if let Some(status) = expected.status {
        parts.push(format!("status = {status}"));
    }
    if let Some(location) = &expected.location {
        parts.push(format!("location = {}", quoted(&bytes::write(location))));
    }
    if let Some(served) = &expected.served {
        parts.push(format!("served = {}", quoted(served)));
    }
    let looked_at = expected.fields.iter();
    let answers: Vec<_> = looked_at
        .map(|(name, value)| format!("{} = {}", key(name), quoted(&bytes::write(value))))
        .collect();
    if !answers.is_empty() {
        parts.push(format!("answers = {{ {} }}", answers.join(", ")));
    }
    format!("  {{ {} }},", parts.join(", "))
}

/// Renders a case as it stands in a spec file, without the name of its area.
pub fn case_text(case: &Case) -> String {
    let mut lines = vec![
        "[[case]]".to_owned(),
        format!("name = {}", quoted(&case.name)),
        format!("source = {}", quoted(&case.source)),
    ];
    if case.scope == crate::case::Scope::Server {
        lines.push("scope = \"server\"".to_owned());
    }
    lines.push(format!("config = {}", block(&case.config)));
    let plain = |path: &str, content: &str| content == format!("{path}\n");
    let tree = case.files.iter().filter(|(path, content)| plain(path, content));
    let tree: Vec<_> = tree.map(|(path, _)| quoted(path)).collect();
    if !tree.is_empty() {
        lines.push(format!("tree = [{}]", tree.join(", ")));
    }
    for (path, content) in case.files.iter().filter(|(path, content)| !plain(path, content)) {
        lines.push(format!("files.{} = {}", quoted(path), block(content)));
    }
    for (path, target) in &case.links {
        lines.push(format!("links.{} = {}", quoted(path), quoted(target)));
    }
    if let Some(message) = &case.refused {
        lines.push(format!("refused = {}", quoted(message)));
    }
    if !case.exchanges.is_empty() {
        lines.push("requests = [".to_owned());
        lines.extend(
            case.exchanges.iter().map(|exchange| request_line(exchange, &exchange.expected)),
        );
        lines.push("]".to_owned());
    }
    lines.push(String::new());
    lines.join("\n")
}

fn without_expectations(case: &Case) -> Case {
    let mut case = case.clone();
    case.refused = case.refused.map(|_| String::new());
    for exchange in &mut case.exchanges {
        exchange.expected = Expected::default();
    }
    case
}

/// Writes a TOML string, literal where that saves escapes.
fn quoted(text: &str) -> String {
    let literal = text.contains(['\\', '"']) && !text.contains(['\'', '\n', '\r', '\t']);
    if literal { format!("'{text}'") } else { escaped(text) }
}

fn escaped(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            c if c.is_control() => quoted.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// Writes a text of several lines.
fn block(text: &str) -> String {
    let literal = !text.contains("'''") && !text.contains('\r') && !text.ends_with('\'');
    if literal && text.contains('\n') { format!("'''\n{text}'''") } else { quoted(text) }
}

fn key(name: &str) -> String {
    let bare = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    if bare { name.to_owned() } else { quoted(name) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::Answer;

    const TEXT: &str = r#"# A comment that stays.
[[case]]
name = "a"
source = "s"
config = '''
Redirect /a http://t/b
'''
requests = [
  { target = "/a", answers = { Vary = "x" } },
  { target = '/"\xff', host = "o:1", method = "HEAD", version = "1.0", fields = { X = ["1", "2"] } }, # lost
]

[[case]]
name = "b"
source = "s"
config = "Bad"
refused = "?"
"#;

    #[test]
    fn expectations_are_written_and_the_rest_stays() {
        let file = Path::new("x.toml");
        let cases = crate::case::parse(file, TEXT).unwrap();
        let location = Some(b"http://t/b\\".to_vec());
        let answer = Answer { status: 302, location, ..Answer::default() };
        let verdicts = [
            Verdict::Answers(vec![Ok(answer.clone()), Ok(answer)]),
            Verdict::Refused("line 1: Invalid \"x\"".to_owned()),
        ];
        let blessed = bless(file, TEXT, &cases, &verdicts).unwrap();
        assert!(blessed.starts_with("# A comment that stays.\n"));
        for line in [
            r#"  { target = "/a", status = 302, location = 'http://t/b\', answers = { Vary = "" } },"#,
            r#"  { target = '/"\xff', method = "HEAD", version = "1.0", host = "o:1", fields = { X = ["1", "2"] }, status = 302, location = 'http://t/b\' },"#,
            r#"refused = 'line 1: Invalid "x"'"#,
        ] {
            assert!(blessed.lines().any(|written| written == line), "{line}\nis not in\n{blessed}");
        }
        let again = crate::case::parse(file, &blessed).unwrap();
        assert_eq!(bless(file, &blessed, &again, &verdicts).unwrap(), blessed);
    }

    #[test]
    fn a_rendered_case_reads_the_same() {
        let cases = crate::case::parse(Path::new("x.toml"), TEXT).unwrap();
        let text: Vec<_> = cases.iter().map(case_text).collect();
        assert_eq!(crate::case::parse(Path::new("x.toml"), &text.join("\n")).unwrap(), cases);
    }
}
