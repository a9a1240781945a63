//! Sections: which requests they are for, and what they say.

use crate::pattern::Pattern;
use crate::pool::Str;
use crate::program::DirConfig;

/// A `<Directory>`, `<Location>` or `<Files>` and its contents.
#[derive(Debug)]
pub(crate) struct Section {
    pub(crate) matcher: SectionMatcher,
    /// Slashes in the path of a `<Directory>`; none for regular expressions and other sections.
    pub(crate) depth: Option<usize>,
    /// The variables that named groups of its regular expression set, and the numbers of the groups.
    pub(crate) groups: Vec<(Box<[u8]>, u32)>,
    pub(crate) config: DirConfig,
}

/// What a section is compared with, and how.
#[derive(Debug)]
pub(crate) enum SectionMatcher {
    /// Whole segments of a path. Directories end in `/`.
    Path(Str),
    /// A pattern with `*`, `?` and `[…]` that a slash does not match.
    Wildcard(Str),
    /// A regular expression.
    Regex(Box<Pattern>),
}

/// Where directives stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Outside all sections, in the main server.
    Main,
    /// In a `<VirtualHost>`.
    VirtualHost,
    /// In a `<Directory>`, `<DirectoryMatch>`.
    Directory,
    /// In a `<Location>`, `<LocationMatch>`.
    Location,
    /// In a `<Files>`, `<FilesMatch>`.
    Files,
    /// In a `<Proxy>`, `<ProxyMatch>`.
    Proxy,
    /// In an `<If>`, `<ElseIf>` or `<Else>`.
    If,
    /// In a `.htaccess` file.
    Htaccess,
}

impl Scope {
    /// Whether this is server config or a virtual host, not a directory context.
    pub(crate) fn is_server(self) -> bool {
        matches!(self, Scope::Main | Scope::VirtualHost)
    }
}
