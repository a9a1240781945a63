//! Random configurations over the directives, with requests near them: the differential test's food.
//!
//! The same seed, number and areas give the same case on every machine. Names and paths come from
//! small sets, so that rules and requests meet and overlap; everything that httpd accepts may come
//! up, sensible or not, and now and then something that it does not accept.

mod around;
mod coverage;
mod directory;
mod expression;
mod field;
mod host;
mod path;
mod proxy;
mod redirect;
mod rewrite;
mod section;

use std::collections::BTreeMap;

use fastrand::Rng;

use crate::answer::Expected;
use crate::bytes;
use crate::case::{Ask, Case, Exchange, Scope};
use crate::near::{self, Nearness};

pub use coverage::Coverage;

/// The modules that the cases need beside those of every case.
pub const MODULES: [&str; 8] = [
    "authn_core",
    "authn_file",
    "authz_user",
    "auth_basic",
    "autoindex",
    "negotiation",
    "proxy",
    "proxy_http",
];
/// Requests of one case.
const REQUESTS: usize = 12;
/// Directives of one scope, at most; bugs that need more of them shrink to fewer anyway.
const DIRECTIVES_MAX: usize = 7;

/// What a generated configuration may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Area {
    /// `Redirect` and `RedirectMatch` in server context.
    Alias,
    /// `RewriteRule`, `RewriteCond` and `RewriteOptions` in server context.
    Rewrite,
    /// `RewriteMap`.
    Map,
    /// `.htaccess` files and `<Directory>`.
    Directory,
    /// `<Location>`, `<Files>`, and their kin by pattern.
    Section,
    /// `Alias`, `DirectoryIndex`, `DirectorySlash`, `FallbackResource`, `ErrorDocument`.
    Files,
    /// `SetEnvIf` and its kin, and what looks at variables.
    Variable,
    /// `<If>`, `RewriteCond expr`, expressions as targets.
    Expression,
    /// Several virtual hosts, and inheritance between them and the main server.
    Vhost,
    /// `Header` and `RequestHeader`.
    Field,
    /// `ProxyPass` and its kin, and `[P]`.
    Proxy,
    /// Quoting, continued lines, wrong arguments.
    Syntax,
}

impl Area {
    /// All areas, with their names on the command line.
    pub const ALL: [(&'static str, Area); 12] = [
        ("alias", Area::Alias),
        ("rewrite", Area::Rewrite),
        ("map", Area::Map),
        ("directory", Area::Directory),
        ("section", Area::Section),
        ("files", Area::Files),
        ("variable", Area::Variable),
        ("expression", Area::Expression),
        ("vhost", Area::Vhost),
        ("field", Area::Field),
        ("proxy", Area::Proxy),
        ("syntax", Area::Syntax),
    ];

    /// Finds an area by its name.
    pub fn named(name: &str) -> Option<Area> {
        Area::ALL.iter().find(|(known, _)| *known == name).map(|(_, area)| *area)
    }
}

/// Makes case `number` of `seed`.
pub fn case(seed: u64, number: usize, areas: &[Area]) -> Case {
    let mixed = (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut maker = Maker {
        rng: Rng::with_seed(seed ^ mixed),
        areas: areas.to_vec(),
        files: BTreeMap::new(),
        maps: Vec::new(),
    };
    maker.lay_out_files();
    let vhosts = maker.may(Area::Vhost) && maker.one_in(3);
    let config = if vhosts { maker.hosts() } else { maker.server() };
    let exchanges = maker.exchanges(&config, vhosts);
    Case {
        area: "generated".to_owned(),
        name: format!("generated {seed}/{number}"),
        source: "found by the differential test".to_owned(),
        scope: if vhosts { Scope::Server } else { Scope::Vhost },
        config,
        files: maker.files,
        links: BTreeMap::new(),
        refused: None,
        exchanges,
    }
}

/// A case in the making.
struct Maker {
    rng: Rng,
    areas: Vec<Area>,
    files: BTreeMap<String, String>,
    /// Names of maps that are defined.
    maps: Vec<&'static str>,
}

/// Where a directive is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Context {
    Server,
    /// In a section for files or URLs.
    Section,
    /// In an `.htaccess` file.
    Htaccess,
}

impl Maker {
    fn may(&self, area: Area) -> bool {
        self.areas.contains(&area)
    }

    fn one_in(&mut self, times: u32) -> bool {
        self.rng.u32(0..times) == 0
    }

    fn pick<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        self.rng.choice(choices).copied().unwrap_or_default()
    }

    fn lay_out_files(&mut self) {
        let paths = [
            "a/b.html",
            "a/b.txt",
            "a/index.html",
            "b",
            "docs/x.html",
            "docs/x.html.de",
            "index.html",
            "x.html",
        ];
        for path in paths {
            let path = format!("htdocs/{path}");
            let content = format!("{path}\n");
            self.files.insert(path, content);
        }
        // What is no file at all still has a directory to stand in.
        self.files.insert("htdocs/docs/deep/".to_owned(), String::new());
    }

    /// A virtual host, or the main server.
    fn server(&mut self) -> String {
        let mut text = String::new();
        if self.may(Area::Map) && self.one_in(2) {
            text.push_str(&self.map_definitions());
        }
        if self.one_in(6) {
            text.push_str(self.pick(&[
                "AllowEncodedSlashes On\n",
                "AllowEncodedSlashes NoDecode\n",
                "MergeSlashes Off\n",
                "UseCanonicalName On\n",
                "UseCanonicalPhysicalPort On\n",
                "RedirectRelative On\n",
                "AliasPreservePath On\n",
                "LimitInternalRecursion 2\n",
                "LimitInternalRecursion 3 2\n",
                "AccessFileName .acl .htaccess\n",
                "TraceEnable Off\n",
                "TraceEnable extended\n",
                "QualifyRedirectURL On\n",
            ]));
        }
        let mut writers: Vec<fn(&mut Maker) -> String> = Vec::new();
        if self.may(Area::Alias) {
            writers.push(|maker| maker.redirects(Context::Server));
        }
        if self.may(Area::Rewrite) {
            writers.push(|maker| maker.rewrites(Context::Server));
            writers.push(|maker| maker.rewrites(Context::Server));
        }
        if self.may(Area::Directory) {
            writers.push(Maker::directories);
        }
        if self.may(Area::Section) {
            writers.push(Maker::sections);
        }
        if self.may(Area::Files) {
            writers.push(|maker| maker.file_directives(Context::Server));
        }
        if self.may(Area::Variable) {
            writers.push(Maker::variables);
        }
        if self.may(Area::Expression) {
            writers.push(|maker| maker.conditionals(Context::Server));
        }
        if self.may(Area::Field) {
            writers.push(|maker| maker.fields(Context::Server));
        }
        if self.may(Area::Proxy) {
            writers.push(|maker| maker.proxies(Context::Server));
        }
        for _ in 0..self.rng.usize(1..=3) {
            if let Some(write) = self.rng.choice(&writers).copied() {
                let lines = write(self);
                let wraps = self.may(Area::Syntax) && self.one_in(6);
                text.push_str(&if wraps { self.wrapped(&lines, Context::Server) } else { lines });
            }
        }
        if self.may(Area::Syntax) && self.one_in(3) {
            text = self.roughen(&text);
        }
        text
    }

    /// Requests near what was written, some of them far from it.
    fn exchanges(&mut self, config: &str, has_hosts: bool) -> Vec<Exchange> {
        let mut rules = near::rules(config, "/", false);
        for (path, text) in &self.files {
            if let Some(directory) =
                path.strip_prefix("htdocs").and_then(|path| path.strip_suffix(".htaccess"))
            {
                rules.extend(near::rules(text, directory, true));
            }
        }
        let expected = self.looked_at();
        let asks = (0..REQUESTS).map(|at| {
            let mut ask = match self.rng.choice(&rules) {
                Some(rule) if at % 6 != 5 => {
                    let nearness = if at % 2 == 0 { Nearness::Match } else { Nearness::Near };
                    near::ask(rule, nearness, &mut self.rng)
                }
                _ => self.plain(),
            };
            self.vary(&mut ask, has_hosts);
            Exchange { ask, expected: expected.clone() }
        });
        asks.collect()
    }

    /// The fields of an answer that the directives of the chosen areas set.
    fn looked_at(&self) -> Expected {
        // In the order in which they are read back.
        let areas = [(Area::Proxy, "X-Asked"), (Area::Field, field::NAME)];
        let names = areas.into_iter().filter(|(area, _)| self.may(*area)).map(|(_, name)| name);
        let fields = names.map(|name| (name.to_owned(), Vec::new())).collect();
        Expected { fields, ..Expected::default() }
    }

    /// A request for some path of the vocabulary.
    fn plain(&mut self) -> Ask {
        let path = self.path();
        let mut target = Vec::new();
        for byte in bytes::of_file(path.as_bytes()) {
            match byte {
                b' ' | b'%' | b'?' | b'#' => {
                    target.extend_from_slice(format!("%{byte:02x}").as_bytes());
                }
                byte => target.push(byte),
            }
        }
        Ask::get(&target)
    }

    /// Changes what is not the path, now and then.
    fn vary(&mut self, ask: &mut Ask, has_hosts: bool) {
        if self.one_in(12) {
            ask.method = self.pick(&["HEAD", "POST", "OPTIONS"]).to_owned();
        }
        if self.one_in(5) {
            let host = self.pick(&[
                "host0.test",
                "host1.test",
                "a.test",
                "HOST0.Test",
                "www.test:8080",
                "www.test:80",
                "old.test",
                "x.old.test.",
            ]);
            near::at_host(ask, host);
        }
        if self.one_in(6) {
            let (name, value) = if self.one_in(2) {
                ("User-Agent", "bot/1")
            } else {
                ("X-A", self.pick(&["1", "b", "10"]))
            };
            set(ask, name, value);
        }
        if self.one_in(40) {
            ask.minor = 0;
            if self.one_in(2) {
                ask.fields.retain(|(name, _)| name != "Host");
            }
        }
        if self.may(Area::Files) && self.one_in(5) {
            let (name, value) = self
                .rng
                .choice([
                    ("Accept", "text/plain"),
                    ("Accept", "text/html;q=0.3, text/plain"),
                    ("Accept-Language", "de, en;q=0.5"),
                    ("Accept-Language", "fr"),
                ])
                .unwrap_or_default();
            set(ask, name, value);
        }
        if has_hosts && self.one_in(4) {
            self.vary_host(ask);
        }
        if self.may(Area::Proxy) && self.one_in(5) && !ask.target.contains(&b'?') {
            let query = self.pick(&[
                "?location=http://@BACKEND@/back/x",
                "?location=/back/y",
                "?location=http://t/b",
                "?status=404",
                "?status=503",
            ]);
            ask.target.extend_from_slice(query.as_bytes());
        }
        // In the order in which a case is read: `Host`, then the others by name.
        ask.fields.sort_by(|(one, _), (other, _)| {
            (one != "Host", one.as_str()).cmp(&(other != "Host", other.as_str()))
        });
    }

    /// Rewrites lines in other ways of writing the same, and sometimes not quite the same.
    fn roughen(&mut self, text: &str) -> String {
        let mut rough = String::new();
        for line in text.lines() {
            match self.rng.u8(0..12) {
                0 => rough.push_str(&format!("  \t{line}  \n")),
                1 if line.contains(' ') => {
                    rough.push_str(&line.replacen(' ', " \\\n  ", 1));
                    rough.push('\n');
                }
                2 => rough.push_str(&format!("# {line}\n{line}\n")),
                3 => {
                    let upper = line.find([' ', '>']).unwrap_or(line.len());
                    rough.push_str(&line[..upper].to_ascii_uppercase());
                    rough.push_str(&line[upper..]);
                    rough.push('\n');
                }
                4 if self.one_in(4) => rough.push_str(&format!("{line} extra\n")),
                5 if self.one_in(4) => rough.push_str(&format!("{line} # comment\n")),
                6 if self.one_in(6) => {
                    let shorter = line.rsplit_once(' ').map_or(line, |(before, _)| before);
                    rough.push_str(&format!("{shorter}\n"));
                }
                7 => rough.push_str(&format!("{line}\r\n")),
                _ => rough.push_str(&format!("{line}\n")),
            }
        }
        rough
    }
}

/// Adds a field to a request that has none of that name.
fn set(ask: &mut Ask, name: &str, value: &str) {
    if !ask.fields.iter().any(|(known, _)| known.eq_ignore_ascii_case(name)) {
        ask.fields.push((name.to_owned(), value.into()));
    }
}

/// Writes a word so that it stays one: quoted when it must be.
fn word(text: &str) -> String {
    if text.is_empty() || text.contains([' ', '\t']) || text.starts_with(['"', '\'']) {
        format!("\"{}\"", text.replace('"', "\\\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_number_gives_the_same_case() {
        let areas: Vec<Area> = Area::ALL.iter().map(|(_, area)| *area).collect();
        for number in 0..50 {
            assert_eq!(case(1, number, &areas), case(1, number, &areas));
        }
        assert_ne!(case(1, 1, &areas).config, case(2, 1, &areas).config);
    }

    #[test]
    fn cases_read_back_from_their_spec_text() {
        let areas: Vec<Area> = Area::ALL.iter().map(|(_, area)| *area).collect();
        for number in 0..200 {
            let made = case(3, number, &areas);
            let text = crate::bless::case_text(&made);
            let read = crate::case::parse(std::path::Path::new("generated.toml"), &text);
            assert_eq!(read.unwrap_or_else(|error| panic!("{error}\n{text}")), [made], "{text}");
        }
    }
}
