//! Reads a list of URLs, each with the answer that is right for it.
//!
//! One URL a line, and after it, separated by white space, what to expect:
//!
//! ```text
//! # The redirects of the shop.
//! http://localhost:8080/test/1      status=301 location=http://localhost:8080/new/1
//! http://localhost:8080/robots.txt  status=200 bytes=8
//! http://localhost:8080/gone        status=410 method=HEAD
//! ```
//!
//! Empty lines and lines that begin with `#` are skipped. A plain list of URLs is a valid one.

use crate::target::Expectation;
use crate::url::{HttpUrl, UrlErrorKind};

/// One line of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedUrl {
    /// The URL.
    pub url: HttpUrl,
    /// The method, if the line names one.
    pub method: Option<String>,
    /// The content, if the line has one: as it was written, so a file with `@` in front.
    pub body: Option<String>,
    /// How often it is requested in relation to the others, if the line says so.
    pub weight: Option<u32>,
    /// What the line expects.
    pub expectation: Expectation,
}

impl ListedUrl {
    /// A line with nothing but a URL.
    #[must_use]
    pub fn new(url: HttpUrl) -> Self {
        Self { url, method: None, body: None, weight: None, expectation: Expectation::default() }
    }
}

/// What is wrong with a list, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{line}:{column}: {kind}")]
pub struct UrlListError {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// What is wrong.
    pub kind: UrlListErrorKind,
}

/// What can be wrong with a list.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UrlListErrorKind {
    /// The line does not begin with a URL.
    #[error(transparent)]
    Url(#[from] UrlErrorKind),
    /// A word after the URL is none of those known.
    #[error(
        "unknown word {0:?}; known are status=, location=, bytes=, sha256=, method=, body= and weight="
    )]
    Word(String),
    /// A word is there twice.
    #[error("{0}= is there twice")]
    Twice(&'static str),
    /// The value does not fit the word.
    #[error("{word}= needs {needs}, not {value:?}")]
    Value {
        /// The word before the `=`.
        word: &'static str,
        /// What it needs.
        needs: &'static str,
        /// What stands there.
        value: String,
    },
    /// Not a single URL in it.
    #[error("the list has no URL")]
    Empty,
}

/// Reads all lines of `text`.
///
/// # Errors
///
/// The first mistake, with its line and column.
pub fn parse_url_list(text: &str) -> Result<Vec<ListedUrl>, UrlListError> {
    let mut urls = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        let mut words = words(line);
        let Some((at, first)) = words.next().filter(|(_, word)| !word.starts_with('#')) else {
            continue;
        };
        let fail = |kind: UrlListErrorKind, at: usize| UrlListError {
            line: number,
            column: line[..at].chars().count() + 1,
            kind,
        };
        let url = HttpUrl::parse(first).map_err(|error| fail(error.kind.into(), at + error.at))?;
        let mut listed = ListedUrl::new(url);
        for (at, word) in words {
            add(&mut listed, word).map_err(|kind| fail(kind, at))?;
        }
        urls.push(listed);
    }
    if urls.is_empty() {
        return Err(UrlListError { line: 1, column: 1, kind: UrlListErrorKind::Empty });
    }
    Ok(urls)
}

/// Adds what one word says.
fn add(listed: &mut ListedUrl, word: &str) -> Result<(), UrlListErrorKind> {
    let (name, value) = word.split_once('=').unwrap_or((word, ""));
    let bad = |word, needs| UrlListErrorKind::Value { word, needs, value: value.to_owned() };
    let expectation = &mut listed.expectation;
    match name {
        "status" => {
            let status = value.parse().ok().filter(|status| (100..1000).contains(status));
            let status = status.ok_or_else(|| bad("status", "a number of three digits"))?;
            once(&mut expectation.status, status, "status")
        }
        "location" if value.is_empty() => Err(bad("location", "the value of the Location field")),
        "location" => once(&mut expectation.location, value.into(), "location"),
        "bytes" => {
            let bytes = value.parse().map_err(|_| bad("bytes", "a number of bytes"))?;
            once(&mut expectation.content_bytes, bytes, "bytes")
        }
        "method" if value.is_empty() => Err(bad("method", "a method")),
        "method" => once(&mut listed.method, value.into(), "method"),
        "sha256" => {
            let sha256 = value.parse().map_err(|_| bad("sha256", "64 hexadecimal digits"))?;
            once(&mut expectation.content_sha256, sha256, "sha256")
        }
        "body" => once(&mut listed.body, value.into(), "body"),
        "weight" => {
            let weight = value.parse().ok().filter(|weight| *weight > 0);
            let weight = weight.ok_or_else(|| bad("weight", "a number from 1"))?;
            once(&mut listed.weight, weight, "weight")
        }
        _ => Err(UrlListErrorKind::Word(word.to_owned())),
    }
}

fn once<T>(slot: &mut Option<T>, value: T, name: &'static str) -> Result<(), UrlListErrorKind> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(UrlListErrorKind::Twice(name)),
    }
}

/// Words and where they begin.
fn words(line: &str) -> impl Iterator<Item = (usize, &str)> {
    let start = line.as_ptr() as usize;
    line.split_whitespace().map(move |word| (word.as_ptr() as usize - start, word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_is_a_url_and_what_to_expect() {
        let list = "# comment\n\nhttp://h/a\n  http://h/b status=301\tlocation=http://h/c?d=e bytes=0\r\n\
                    http://h/f method=HEAD status=404";
        let urls = parse_url_list(list).unwrap();
        let found: Vec<_> = urls
            .iter()
            .map(|it| (it.url.request_target(), it.method.as_deref(), &it.expectation))
            .collect();
        assert_eq!(
            found,
            [
                ("/a", None, &Expectation::default()),
                ("/b", None, &Expectation::redirect(301, "http://h/c?d=e").content_bytes(0)),
                ("/f", Some("HEAD"), &Expectation::status(404)),
            ]
        );
    }

    #[test]
    fn mistakes_have_a_line_and_a_column() {
        let url = "http://h/a";
        refuse("", "1:1: the list has no URL");
        refuse("# nothing\n", "1:1: the list has no URL");
        refuse("\n  /a", "2:3: a URL begins with http:// or https://");
        refuse("http://h/\u{e4}", "1:10: '\u{e4}' must be percent-encoded");
        refuse("\u{e4} # x", "1:1: a URL begins with http:// or https://");
        refuse(
            &format!("{url} 301"),
            "1:12: unknown word \"301\"; known are status=, location=, bytes=, sha256=, method=, body= and weight=",
        );
        refuse(
            &format!("{url}\n{url} status=3o1"),
            "2:12: status= needs a number of three digits, not \"3o1\"",
        );
        refuse(
            &format!("{url} status=99"),
            "1:12: status= needs a number of three digits, not \"99\"",
        );
        refuse(
            &format!("{url} location="),
            "1:12: location= needs the value of the Location field, not \"\"",
        );
        refuse(&format!("{url} bytes=-1"), "1:12: bytes= needs a number of bytes, not \"-1\"");
        refuse(
            &format!("{url} sha256=12"),
            "1:12: sha256= needs 64 hexadecimal digits, not \"12\"",
        );
        refuse(&format!("{url} weight=0"), "1:12: weight= needs a number from 1, not \"0\"");
        refuse(&format!("{url} status=301 status=302"), "1:23: status= is there twice");
    }

    #[track_caller]
    fn refuse(list: &str, message: &str) {
        assert_eq!(parse_url_list(list).unwrap_err().to_string(), message);
    }
}
