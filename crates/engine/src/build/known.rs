//! Every directive and section of httpd and its modules: whose it is, where it may stand, what it takes.
//!
//! Most of them cannot change where a request goes (types, compression, caching, logs, processes). They are
//! held to this table and accepted with a note, so that a configuration loads here when it loads in httpd,
//! and fails at the same line.
//!
//! Source: httpd 2.4.71, `httpd -L` with all modules loaded; the number of arguments from what it says of a
//! directive without any.

use std::collections::HashMap;
use std::sync::OnceLock;

use crate::program::Override;

/// One directive or section.
#[derive(Debug)]
pub(super) struct Known {
    /// As httpd writes it; a section begins with `<`.
    pub(super) name: &'static str,
    /// The modules any of which has it, by source file.
    pub(super) modules: &'static str,
    pub(super) place: Place,
    /// The classes of `AllowOverride` that let a `.htaccess` have it.
    class: &'static str,
    pub(super) args: Args,
}

/// Where a directive may stand besides `.htaccess` files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// In the server configuration, outside virtual hosts.
    Main,
    /// In the server configuration and virtual hosts.
    Server,
    /// There, and in `<Proxy>`.
    Proxy,
    /// In sections for directories, files and locations.
    Section,
    Anywhere,
}

/// What a directive takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Args {
    /// `On` or `Off`.
    Flag,
    /// Between two numbers of arguments.
    Count(usize, usize),
    /// One or three.
    OneOrThree,
    /// It reads the line itself.
    Line,
    Section,
}

impl Known {
    /// Whether it makes a place one of which httpd's core knows, as all of its directives do but those that
    /// are over when the file has been read.
    pub(super) fn is_core(&self) -> bool {
        const READ: [&str; 4] = ["Define", "UnDefine", "Include", "IncludeOptional"];
        self.modules == "core.c" && !READ.contains(&self.name)
    }

    /// Whether a `.htaccess` file with `allowed` may have it.
    pub(super) fn is_allowed(&self, allowed: &Override) -> bool {
        let lower = || self.name.to_ascii_lowercase().into_bytes().into_boxed_slice();
        self.class.split('+').any(|class| match class {
            "All" => allowed.has_class(),
            "AuthConfig" => allowed.auth_config,
            "FileInfo" => allowed.file_info,
            "Indexes" => allowed.indexes,
            "Limit" => allowed.limit,
            "Options" => allowed.options,
            _ => false,
        }) || self.class != "-" && !allowed.names.is_empty() && allowed.names.contains(&lower())
    }
}

/// Finds a directive, or a section by its name with `<`, in lower case.
pub(super) fn find(lower: &[u8]) -> Option<&'static Known> {
    static TABLE: OnceLock<HashMap<Box<[u8]>, Known>> = OnceLock::new();
    let table = TABLE.get_or_init(|| {
        let entries = entries();
        entries.map(|known| (known.name.to_ascii_lowercase().into_bytes().into(), known)).collect()
    });
    table.get(lower)
}

/// All directives and sections.
pub(super) fn entries() -> impl Iterator<Item = Known> {
    const TEXT: &str = include_str!("known.txt");
    let mut modules = "";
    let lines = TEXT.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(move |line| {
        let Some(line) = line.strip_prefix("  ") else {
            modules = line;
            return None;
        };
        let [name, place, class, args] = *line.split(' ').collect::<Vec<_>>() else {
            unreachable!("the table is part of the program: {line}")
        };
        let place = match place {
            "main" => Place::Main,
            "server" => Place::Server,
            "proxy" => Place::Proxy,
            "dir" => Place::Section,
            _ => Place::Anywhere,
        };
        let args = match args {
            "section" => Args::Section,
            "flag" => Args::Flag,
            "1" => Args::Count(1, 1),
            "2" => Args::Count(2, 2),
            "3" => Args::Count(3, 3),
            "1-2" => Args::Count(1, 2),
            "1-3" => Args::Count(1, 3),
            "2-3" => Args::Count(2, 3),
            "1|3" => Args::OneOrThree,
            "1+" => Args::Count(1, usize::MAX),
            "2+" => Args::Count(2, usize::MAX),
            _ => Args::Line,
        };
        Some(Known { name, modules, place, class, args })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_read() {
        let known = find(b"expiresbytype").unwrap();
        assert_eq!((known.name, known.modules), ("ExpiresByType", "mod_expires.c"));
        assert_eq!((known.place, known.args), (Place::Anywhere, Args::Count(2, 2)));
        assert!(known.is_allowed(&Override { indexes: true, ..Override::default() }));
        assert!(!known.is_allowed(&Override { file_info: true, ..Override::default() }));
        let all = Override { names: vec![(*b"listen").into()], ..Override::default() };
        assert!(!find(b"listen").unwrap().is_allowed(&all));
        assert_eq!(find(b"<files").map(|known| known.args), Some(Args::Section));
        assert!(find(b"files").is_none());
    }

    #[test]
    fn names_stand_once() {
        let names: Vec<_> = entries().map(|known| known.name.to_ascii_lowercase()).collect();
        let mut once = names.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), names.len());
    }
}
