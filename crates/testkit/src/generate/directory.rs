//! `.htaccess` files, `<Directory>` sections, and the directives that find files.

use super::{Context, Maker, word};

/// The directories that exist below the document root, with their URLs.
const DIRECTORIES: [&str; 4] = ["/", "/a/", "/docs/", "/docs/deep/"];

impl Maker {
    /// Writes `.htaccess` files, and now and then a `<Directory>` section.
    pub(super) fn directories(&mut self) -> String {
        for _ in 0..self.rng.usize(1..=2) {
            let directory = self.pick(&DIRECTORIES);
            let body = self.body(Context::Htaccess);
            self.files.insert(format!("htdocs{directory}.htaccess"), body);
        }
        if self.one_in(2) {
            return String::new();
        }
        let directory = self.pick(&DIRECTORIES);
        let body = self.body(Context::Section);
        if self.one_in(5) {
            let pattern = self.pick(&["/docs", "/htdocs/(a|docs)", "/a/?$", "deep"]);
            format!("<DirectoryMatch \"{pattern}\">\n{body}</DirectoryMatch>\n")
        } else {
            format!("<Directory \"@ROOT@/htdocs{directory}\">\n{body}</Directory>\n")
        }
    }

    /// What maps URLs to files, and what happens where there is none.
    pub(super) fn file_directives(&mut self, context: Context) -> String {
        let mut text = String::new();
        for _ in 0..self.rng.usize(1..=3) {
            let line = match self.rng.u8(0..10) {
                0 if context == Context::Server => {
                    let path = self.path();
                    let target = self.pick(&["/a", "/docs", "/docs/", "/x.html", ""]);
                    format!("Alias {} \"@ROOT@/htdocs{target}\"", word(&path))
                }
                0 => {
                    let target = self.pick(&["/a", "/docs", "/docs/", "/x.html"]);
                    format!("Alias \"@ROOT@/htdocs{target}\"")
                }
                1 if context == Context::Server => {
                    let pattern = self.pattern(false);
                    format!("AliasMatch {} \"@ROOT@/htdocs/$1\"", word(&pattern))
                }
                2 => format!(
                    "DirectoryIndex {}",
                    self.pick(&["x.html", "none.html index.html", "/x.html", "disabled", "b.html"])
                ),
                3 => format!("DirectorySlash {}", self.pick(&["Off", "On"])),
                4 => format!(
                    "FallbackResource {}",
                    self.pick(&["/index.html", "/none", "/docs/x.html", "disabled"])
                ),
                5 => {
                    let code = self.pick(&["404", "403", "410", "401", "500", "400", "301"]);
                    let target = self.pick(&[
                        "http://t/error",
                        "/x.html",
                        "/none",
                        "text",
                        "/a/",
                        "/docs",
                        "default",
                        "\"http://t%{REQUEST_URI}?%{QUERY_STRING}\"",
                        "\"/x.html?%{escape:%{HTTP_HOST}}\"",
                        "http://www.test:@PORT@/x.html",
                    ]);
                    format!("ErrorDocument {code} {target}")
                }
                6 => self
                    .pick(&[
                        "DirectoryIndexRedirect On",
                        "DirectoryIndexRedirect permanent",
                        "DirectoryIndexRedirect 303",
                        "DirectoryCheckHandler On",
                        "IndexIgnore *",
                    ])
                    .to_owned(),
                7 => self
                    .pick(&[
                        "SetHandler none",
                        "SetHandler default-handler",
                        "SetHandler httpd/unix-directory",
                        "SetHandler unknown",
                        "AddHandler unknown .html",
                        "RemoveHandler .html",
                        "AddType text/plain .html",
                        "RemoveType .html",
                        "ForceType text/plain",
                        "AddType httpd/x .x",
                        "SetOutputFilter UNKNOWN",
                        "AddOutputFilter UNKNOWN .html",
                        "RemoveOutputFilter .html",
                        "SetInputFilter UNKNOWN",
                    ])
                    .to_owned(),
                8 => self
                    .pick(&[
                        "AddLanguage de .de",
                        "AddLanguage en .html",
                        "AddLanguage de .de\nLanguagePriority de en\nForceLanguagePriority Prefer Fallback",
                        "DefaultLanguage fr",
                        "AddCharset utf-8 .html",
                        "AddEncoding x-gzip .txt",
                        "RemoveLanguage .de",
                        "MultiviewsMatch Any",
                        "MultiviewsMatch NegotiatedOnly",
                        "MultiviewsMatch Handlers Filters",
                    ])
                    .to_owned(),
                _ => format!("AcceptPathInfo {}", self.pick(&["On", "Off", "Default"])),
            };
            text.push_str(&line);
            text.push('\n');
        }
        text
    }
}
