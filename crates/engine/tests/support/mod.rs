//! A world made of a table, and a short way to load a site and ask it.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

use milepost_engine::{
    Decision, Diagnostic, FileKind, LoadOptions, Loaded, Lookup, Outcome, Outside, Request, Scheme,
    Scratch, Site, Stamp, Version,
};

/// Files by path; a path that is the start of another is a directory.
#[derive(Default)]
pub(crate) struct Table {
    pub(crate) files: HashMap<PathBuf, Vec<u8>>,
}

impl Table {
    pub(crate) fn with(files: &[(&str, &str)]) -> Table {
        let entry = |(path, text): &(&str, &str)| (PathBuf::from(path), text.as_bytes().to_vec());
        Table { files: files.iter().map(entry).collect() }
    }
}

impl Outside for Table {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.files.get(path).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<PathBuf>> {
        let below =
            |path: &PathBuf| path.strip_prefix(directory).ok()?.iter().next().map(PathBuf::from);
        let mut names: Vec<_> = self.files.keys().filter_map(below).collect();
        names.sort();
        names.dedup();
        Ok(names)
    }

    fn stamp(&self, path: &Path) -> io::Result<Option<Stamp>> {
        let stamp = |text: &Vec<u8>| Stamp {
            inode: (0, 0),
            len: text.len() as u64,
            modified_ns: 0,
            changed_ns: 0,
        };
        Ok(self.files.get(path).map(stamp))
    }

    fn report(&self, diagnostics: &[Diagnostic]) {
        panic!("a .htaccess file does not compile: {diagnostics:?}");
    }

    fn kind(&self, path: &Path) -> FileKind {
        let trailing_slash = path.as_os_str().as_encoded_bytes().ends_with(b"/");
        match self.files.get(path) {
            Some(text) if !trailing_slash => FileKind::File(text.len() as u64),
            _ if self.files.keys().any(|file| file.starts_with(path) && file != path) => {
                FileKind::Directory
            }
            _ => FileKind::Missing,
        }
    }

    fn random(&self) -> u64 {
        4
    }

    fn now(&self) -> (i64, i32) {
        (1_795_246_205, 0)
    }
}

/// Loads the directives of `text`.
pub(crate) fn load(text: &str, outside: &dyn Outside, lookup: Lookup) -> Loaded {
    let options = LoadOptions {
        server_root: PathBuf::from("/srv"),
        after: vec![text.to_owned()],
        lookup,
        ..LoadOptions::default()
    };
    Site::load(&options, outside)
}

/// A GET, as `301 http://…`, `404` or `200 /path`.
pub(crate) fn ask(
    site: &Site,
    outside: &dyn Outside,
    host: &str,
    target: &str,
    scratch: &mut Scratch,
) -> String {
    match (Ask { host, target }).decide(site, outside, scratch).outcome {
        Outcome::Redirect { status, location } => {
            format!("{status} {}", String::from_utf8_lossy(location))
        }
        Outcome::Status(status) => status.to_string(),
        Outcome::Text { status, text } => format!("{status} {}", String::from_utf8_lossy(text)),
        Outcome::File { status, path, .. } => format!("{status} {}", String::from_utf8_lossy(path)),
        Outcome::Proxy(proxied) => format!("proxy {}", String::from_utf8_lossy(proxied.url)),
        Outcome::Passed(status) => format!("passed {status}"),
    }
}

/// A GET.
#[derive(Clone, Copy)]
pub(crate) struct Ask<'a> {
    pub(crate) host: &'a str,
    pub(crate) target: &'a str,
}

impl Ask<'_> {
    /// Asks the site.
    pub(crate) fn decide<'s>(
        self,
        site: &'s Site,
        outside: &dyn Outside,
        scratch: &'s mut Scratch,
    ) -> Decision<'s> {
        let fields: &[(&str, &[u8])] = &[("Host", self.host.as_bytes())];
        let request = Request {
            method: b"GET",
            target: self.target.as_bytes(),
            version: Version::Http11,
            scheme: Scheme::Http,
            tls: None,
            fields: &SliceFields(fields),
            local: ([127, 0, 0, 1], 80).into(),
            remote: ([127, 0, 0, 1], 40_000).into(),
        };
        site.decide(&request, outside, scratch)
    }
}

struct SliceFields<'a>(&'a [(&'a str, &'a [u8])]);

impl milepost_engine::Fields for SliceFields<'_> {
    fn value(&self, name: &str) -> Option<std::borrow::Cow<'_, [u8]>> {
        self.0.value(name)
    }

    fn count(&self, name: &str) -> usize {
        self.0.count(name)
    }

    fn counted(&self, name: &str) -> (usize, Option<std::borrow::Cow<'_, [u8]>>) {
        self.0.counted(name)
    }

    fn name(&self, number: usize) -> Option<&str> {
        self.0.name(number)
    }
}
