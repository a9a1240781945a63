//! The cases of `spec/*.toml`: a configuration, a tree of files, requests, the answers to them.
//!
//! Texts may hold `@ROOT@` (the directory of the case), `@ADDRESS@` and `@PORT@` (where its server
//! listens). The document root is `@ROOT@/htdocs`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::answer::Expected;
use crate::bytes;

/// The host that requests name unless they say otherwise, and the `ServerName` of every case.
pub const HOST: &str = "www.test";

/// One case.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Case {
    /// The name of the file it stands in, without its extension.
    pub area: String,
    /// What it shows, in a few words; unique within the area.
    pub name: String,
    /// Where Apache does it: source file and function, or section of the manual.
    pub source: String,
    /// Where `config` is put.
    pub scope: Scope,
    /// The directives under test.
    pub config: String,
    /// The files, by path below `@ROOT@`; a path that ends in `/` is an empty directory.
    pub files: BTreeMap<String, String>,
    /// Symbolic links: path below `@ROOT@` to target.
    pub links: BTreeMap<String, String>,
    /// What httpd says instead of starting, when the configuration is faulty.
    pub refused: Option<String>,
    /// The requests, in order.
    pub exchanges: Vec<Exchange>,
}

/// Where the configuration of a case stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// In a virtual host of its own: many cases share one httpd.
    #[default]
    Vhost,
    /// In the main server: the case has an httpd of its own.
    Server,
}

/// A request and the answer that is expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchange {
    /// What is sent.
    pub ask: Ask,
    /// What should come back.
    pub expected: Expected,
}

/// A request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// The method.
    pub method: String,
    /// The request-target, as bytes.
    pub target: Vec<u8>,
    /// The minor version of HTTP/1.
    pub minor: u8,
    /// The field lines, `Host` included.
    pub fields: Vec<(String, Vec<u8>)>,
    /// The loopback address to send it to, when it is not the case's own.
    pub address: Option<String>,
}

/// What is wrong with a spec file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpecError {
    /// The file cannot be read.
    #[error("{}: {error}", file.display())]
    Read {
        /// The file, or the directory.
        file: PathBuf,
        /// What happened.
        error: std::io::Error,
    },
    /// The file is no TOML, or not of our shape; the message names line and column.
    #[error("{}: {error}", file.display())]
    Toml {
        /// The file.
        file: PathBuf,
        /// What is wrong, and where.
        error: toml::de::Error,
    },
    /// One case says something that cannot be.
    #[error("{}: case {case:?}: {what}", file.display())]
    Case {
        /// The file.
        file: PathBuf,
        /// The name of the case.
        case: String,
        /// What is wrong.
        what: String,
    },
}

impl Ask {
    /// Makes a GET request for `target` with the usual `Host`.
    pub fn get(target: &[u8]) -> Ask {
        Ask {
            method: "GET".to_owned(),
            target: target.to_vec(),
            minor: 1,
            fields: vec![("Host".to_owned(), HOST.into())],
            address: None,
        }
    }

    /// Renders the message head, ready to send.
    pub fn head(&self) -> Vec<u8> {
        let mut head = Vec::with_capacity(128 + self.target.len());
        head.extend_from_slice(self.method.as_bytes());
        head.push(b' ');
        head.extend_from_slice(&self.target);
        head.extend_from_slice(format!(" HTTP/1.{}\r\n", self.minor).as_bytes());
        for (name, value) in &self.fields {
            head.extend_from_slice(name.as_bytes());
            head.extend_from_slice(b": ");
            head.extend_from_slice(value);
            head.extend_from_slice(b"\r\n");
        }
        head.extend_from_slice(b"\r\n");
        head
    }
}

/// Reads every `*.toml` of `directory` that holds cases, by name.
///
/// # Errors
/// [`SpecError`] for the first file that is not as it should be.
pub fn read_all(directory: &Path) -> Result<Vec<Case>, SpecError> {
    let mut cases = Vec::new();
    for file in spec_files(directory)? {
        let text = std::fs::read_to_string(&file)
            .map_err(|error| SpecError::Read { file: file.clone(), error })?;
        cases.extend(parse(&file, &text)?);
    }
    Ok(cases)
}

/// Lists the files of `directory` that hold cases, sorted.
///
/// # Errors
/// [`SpecError::Read`] when the directory cannot be listed.
pub fn spec_files(directory: &Path) -> Result<Vec<PathBuf>, SpecError> {
    let io = |error| SpecError::Read { file: directory.to_owned(), error };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(io)? {
        let path = entry.map_err(io)?.path();
        let toml = path.extension().is_some_and(|extension| extension == "toml");
        if toml && path.file_name().is_some_and(|name| name != crate::known::FILE_NAME) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Reads the cases of one file.
///
/// # Errors
/// [`SpecError`] with the file, the place and the case.
pub fn parse(file: &Path, text: &str) -> Result<Vec<Case>, SpecError> {
    let written: File =
        toml::from_str(text).map_err(|error| SpecError::Toml { file: file.to_owned(), error })?;
    let area = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let mut cases: Vec<Case> = Vec::with_capacity(written.case.len());
    for case in written.case {
        let name = case.name.clone();
        let wrong =
            |what: String| SpecError::Case { file: file.to_owned(), case: name.clone(), what };
        if cases.iter().any(|earlier| earlier.name == case.name) {
            return Err(wrong("an earlier case has the same name".to_owned()));
        }
        if case.requests.is_empty() && case.refused.is_none() {
            return Err(wrong("has neither requests nor `refused`".to_owned()));
        }
        cases.push(case.checked(&area).map_err(wrong)?);
    }
    Ok(cases)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    case: Vec<WrittenCase>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenCase {
    name: String,
    source: String,
    #[serde(default)]
    scope: Scope,
    config: String,
    /// Files whose content is their own path.
    #[serde(default)]
    tree: Vec<String>,
    #[serde(default)]
    files: BTreeMap<String, String>,
    #[serde(default)]
    links: BTreeMap<String, String>,
    refused: Option<String>,
    #[serde(default)]
    requests: Vec<WrittenRequest>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenRequest {
    target: String,
    method: Option<String>,
    /// `-` sends no `Host`.
    host: Option<String>,
    version: Option<String>,
    #[serde(default)]
    fields: BTreeMap<String, OneOrMany>,
    address: Option<String>,
    status: Option<u16>,
    location: Option<String>,
    served: Option<String>,
    #[serde(default)]
    answers: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl WrittenCase {
    fn checked(self, area: &str) -> Result<Case, String> {
        let mut files = self.files;
        for path in self.tree {
            let content = format!("{path}\n");
            if files.insert(path.clone(), content).is_some() {
                return Err(format!("{path} stands in `tree` and in `files`"));
            }
        }
        for path in files.keys().chain(self.links.keys()) {
            let inside = Path::new(path)
                .components()
                .all(|part| matches!(part, std::path::Component::Normal(_)));
            if path.is_empty() || !inside {
                return Err(format!("{path:?} does not stay below @ROOT@"));
            }
        }
        let exchanges: Result<_, _> =
            self.requests.into_iter().map(WrittenRequest::checked).collect();
        Ok(Case {
            area: area.to_owned(),
            name: self.name,
            source: self.source,
            scope: self.scope,
            config: self.config,
            files,
            links: self.links,
            refused: self.refused,
            exchanges: exchanges?,
        })
    }
}

impl WrittenRequest {
    fn checked(self) -> Result<Exchange, String> {
        let minor = match self.version.as_deref() {
            None | Some("1.1") => 1,
            Some("1.0") => 0,
            Some(other) => return Err(format!("version {other:?} is neither 1.0 nor 1.1")),
        };
        let mut fields = Vec::new();
        match self.host.as_deref() {
            Some("-") => {}
            Some(host) => fields.push(("Host".to_owned(), bytes::read(host))),
            None if self.fields.keys().any(|name| name.eq_ignore_ascii_case("Host")) => {}
            None => fields.push(("Host".to_owned(), HOST.into())),
        }
        for (name, values) in self.fields {
            let values = match values {
                OneOrMany::One(value) => vec![value],
                OneOrMany::Many(values) => values,
            };
            fields.extend(values.iter().map(|value| (name.clone(), bytes::read(value))));
        }
        let ask = Ask {
            method: self.method.unwrap_or_else(|| "GET".to_owned()),
            target: bytes::read(&self.target),
            minor,
            fields,
            address: self.address,
        };
        let expected = Expected {
            status: self.status,
            location: self.location.as_deref().map(bytes::read),
            served: self.served,
            fields: self.answers.into_iter().map(|(n, v)| (n, bytes::read(&v))).collect(),
        };
        Ok(Exchange { ask, expected })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_is_read() {
        let cases = parse(
            Path::new("spec/alias-prefix.toml"),
            r#"
            [[case]]
            name = "one"
            source = "mod_alias.c"
            config = "Redirect /a http://t/a"
            tree = ["htdocs/x.html"]
            requests = [
              { target = '/a\x0a', host = "-", version = "1.0", status = 302, location = "http://t/a" },
              { target = "/x.html", fields = { X = ["1", "2"] } },
            ]
            "#,
        );
        let [case] = <[Case; 1]>::try_from(cases.unwrap()).unwrap();
        assert_eq!(case.area, "alias-prefix");
        assert_eq!(case.files["htdocs/x.html"], "htdocs/x.html\n");
        assert_eq!(case.exchanges[0].ask.head(), b"GET /a\n HTTP/1.0\r\n\r\n");
        assert_eq!(case.exchanges[0].expected.to_string(), "302 http://t/a");
        let head = b"GET /x.html HTTP/1.1\r\nHost: www.test\r\nX: 1\r\nX: 2\r\n\r\n";
        assert_eq!(case.exchanges[1].ask.head(), head);
        assert_eq!(case.exchanges[1].expected.status, None);
    }

    #[test]
    fn errors_name_file_and_case() {
        let case =
            |more: &str| format!("[[case]]\nname = \"n\"\nsource = \"s\"\nconfig = \"\"\n{more}\n");
        check(&case("requests = []"), "a.toml: case \"n\": has neither requests nor `refused`");
        check(&case("tree = [\"../x\"]\nrefused = \"\""), "\"../x\" does not stay below @ROOT@");
        check(&case("requests = [{ target = \"/\", version = \"2\" }]"), "neither 1.0 nor 1.1");
        check(&case("request = []"), "unknown field `request`");
    }

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let error = parse(Path::new("a.toml"), text).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}
