//! Reads siege's lists of URLs: variables, methods and contents.
//!
//! ```text
//! # A comment.
//! HOST = http://localhost:8080
//! $(HOST)/test/1
//! localhost:8080/test/2
//! $(HOST)/form POST name=value&other=value
//! $(HOST)/upload PUT <./file
//! ```

use std::collections::HashMap;

use super::expand::{Forms, expand, is_name};

/// Methods that a line may name.
const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/// One line of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    /// From 1.
    pub(super) number: usize,
    pub(super) url: String,
    pub(super) method: Option<&'static str>,
    pub(super) content: Content,
    /// Content type, if the line says one.
    pub(super) content_type: Option<String>,
}

/// What is sent with the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Content {
    /// Nothing.
    None,
    /// The rest of the line.
    Text(String),
    /// What is in a file.
    File(String),
}

/// Reads all lines. What the list does not define is looked up with `value`.
pub(super) fn parse(text: &str, value: impl Fn(&str) -> Option<String>) -> Vec<Line> {
    let mut variables: HashMap<String, String> = HashMap::new();
    let mut lines = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let known = |name: &str| variables.get(name).cloned().or_else(|| value(name));
        let expanded = expand(line, Forms::Enclosed, known);
        match line.split_once('=') {
            Some((name, _)) if is_variable(name.trim()) => {
                let value = expanded.split_once('=').map_or("", |(_, value)| value);
                variables.insert(name.trim().to_owned(), value.trim().to_owned());
            }
            _ => lines.push(one(&expanded, number)),
        }
    }
    lines
}

/// Reads one line that is no variable.
pub(super) fn one(line: &str, number: usize) -> Line {
    let mut found = Line {
        number,
        url: line.to_owned(),
        method: None,
        content: Content::None,
        content_type: None,
    };
    // The method is the first word that is one: what is before it is the URL, blanks and all.
    let method = METHODS.into_iter().filter_map(|method| {
        let at = line.find(&format!(" {method}")).filter(|at| {
            let after = &line[at + 1 + method.len()..];
            after.is_empty() || after.starts_with(char::is_whitespace)
        })?;
        Some((at, method))
    });
    let Some((at, method)) = method.min() else { return found };
    line[..at].trim_end().clone_into(&mut found.url);
    found.method = Some(method);
    let mut rest = line[at + 1 + method.len()..].trim();
    if let Some((content_type, after)) = rest.strip_prefix("-T").and_then(|it| it.split_once(';')) {
        found.content_type = Some(content_type.trim().to_owned());
        rest = after.trim();
    }
    found.content = match rest.strip_prefix('<') {
        Some(file) => Content::File(file.trim().to_owned()),
        None if rest.is_empty() => Content::None,
        None => Content::Text(rest.to_owned()),
    };
    found
}

fn is_variable(name: &str) -> bool {
    !name.is_empty() && name.chars().all(is_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_defined_and_used() {
        let list = "# c\n\nH = http://h:80\nP=$(H)/p\n  $(P)/a?b=c  \n${H}/$(HOME)/\\$(P)\n$(NONE)x/y?a=1\n";
        let lines = parse(list, |name| (name == "HOME").then(|| "root".to_owned()));
        let urls: Vec<_> = lines.iter().map(|line| (line.number, &*line.url)).collect();
        assert_eq!(
            urls,
            [(5, "http://h:80/p/a?b=c"), (6, "http://h:80/root/$(P)"), (7, "x/y?a=1")]
        );
    }

    #[test]
    fn methods_and_contents_follow_the_url() {
        check("h/a", "h/a", None, Content::None, None);
        check("h/a POST a=1&b=$x", "h/a", Some("POST"), Content::Text("a=1&b=$x".into()), None);
        check("h/a PUT  <./file", "h/a", Some("PUT"), Content::File("./file".into()), None);
        check("h/a POST", "h/a", Some("POST"), Content::None, None);
        check("h/a HEAD", "h/a", Some("HEAD"), Content::None, None);
        check("h/a DELETE  ", "h/a", Some("DELETE"), Content::None, None);
        check("h/a b", "h/a b", None, Content::None, None);
        check("h/a POSTER", "h/a POSTER", None, Content::None, None);
        check("h/a POST x PUT y", "h/a", Some("POST"), Content::Text("x PUT y".into()), None);
        let json = Content::Text("{}".into());
        check("h/a PATCH -T text/json; {}", "h/a", Some("PATCH"), json, Some("text/json"));
    }

    #[track_caller]
    fn check(
        line: &str,
        url: &str,
        method: Option<&str>,
        content: Content,
        content_type: Option<&str>,
    ) {
        let found = one(line.trim(), 1);
        assert_eq!((&*found.url, found.method, found.content), (url, method, content), "{line}");
        assert_eq!(found.content_type.as_deref(), content_type);
    }
}
