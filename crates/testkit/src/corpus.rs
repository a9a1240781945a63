//! Real configurations, loaded into httpd and milepost, asked about every rule in them.
//!
//! A folder holds files and an `INDEX.tsv` whose columns `file` and `context` say what each is: the
//! text of an `.htaccess`, of a virtual host, or of whole virtual hosts. Nothing of it is kept here.

mod here;
mod mend;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use fastrand::Rng;

use crate::answer::Expected;
use crate::bytes;
use crate::case::{Ask, Case, Exchange, Scope};
use crate::near::{self, Condition, Nearness, Rule};

pub use mend::without_line;

/// Modules that real configurations use beside those of [`crate::httpd`].
pub const MODULES: [&str; 30] = [
    "actions",
    "auth_basic",
    "auth_digest",
    "authn_core",
    "authn_file",
    "authz_groupfile",
    "authz_user",
    "autoindex",
    "brotli",
    "cache",
    "deflate",
    "expires",
    "ext_filter",
    "filter",
    "include",
    "lbmethod_byrequests",
    "mime_magic",
    "negotiation",
    "proxy",
    "proxy_balancer",
    "proxy_fcgi",
    "proxy_http",
    "proxy_wstunnel",
    "remoteip",
    "reqtimeout",
    "slotmem_shm",
    "socache_shmcb",
    "ssl",
    "status",
    "substitute",
];
/// What every file is asked for, whether there are rules in it or not.
const EVERYWHERE: [&str; 12] = [
    "/",
    "/index.html",
    "/index.php",
    "/index",
    "/a",
    "/a/",
    "/images/",
    "/images/logo.png",
    "/robots.txt/more",
    "/missing.php",
    "/.htaccess",
    "/wp-login.php?x=1",
];
/// Requests for each rule: made to match, near it, and about anything.
const REQUESTS_PER_RULE: [usize; 3] = [9, 8, 3];

/// Where the text of a file belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In the `.htaccess` of the document root.
    Htaccess,
    /// In a virtual host.
    Server,
    /// Beside other virtual hosts: it holds them itself.
    Hosts,
}

/// What is wrong with a folder.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CorpusError {
    /// A file cannot be read.
    #[error("{}: {error}", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// What happened.
        error: io::Error,
    },
    /// The index lacks a column.
    #[error("{}: no column {column:?}", file.display())]
    Column {
        /// The index.
        file: PathBuf,
        /// The column.
        column: &'static str,
    },
}

/// A file of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    /// Its name.
    pub name: String,
    /// What it holds.
    pub text: String,
    /// Where that belongs.
    pub place: Place,
}

impl Text {
    /// Makes a case of the file as it is, with requests from `seed`.
    pub fn case(&self, seed: u64) -> Case {
        case(&self.name, &self.text, self.place, seed)
    }

    /// Makes a case of the file with its directories, logs and ports moved to the case, if it has any.
    pub fn moved(&self, seed: u64) -> Option<Case> {
        let moved = here::moved(&self.text);
        if moved.text.trim_end() == self.text.trim_end() {
            return None;
        }
        let mut case = case(&format!("{} (moved)", self.name), &moved.text, self.place, seed);
        case.files.extend(moved.files);
        if self.place != Place::Htaccess {
            case.config.push_str(&here::access());
        }
        Some(case)
    }
}

/// Reads a folder.
///
/// # Errors
/// [`CorpusError`] when the index or a file of it cannot be read.
pub fn read(folder: &Path) -> Result<Vec<Text>, CorpusError> {
    let index = folder.join("INDEX.tsv");
    let text = read_text(&index)?;
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().unwrap_or_default().split('\t').collect();
    let column = |name: &'static str| {
        let at = header.iter().position(|column| *column == name);
        at.ok_or_else(|| CorpusError::Column { file: index.clone(), column: name })
    };
    let (file, context) = (column("file")?, column("context")?);
    let mut texts = Vec::new();
    for line in lines {
        let columns: Vec<&str> = line.split('\t').collect();
        let (Some(name), Some(context)) = (columns.get(file), columns.get(context)) else {
            continue;
        };
        let text = read_text(&folder.join(name))?;
        texts.push(Text { name: (*name).to_owned(), text, place: place(context) });
    }
    Ok(texts)
}

/// Makes a case of one file.
pub fn case(name: &str, text: &str, place: Place, seed: u64) -> Case {
    let text = &here::on_loopback(text);
    let mut rng = Rng::with_seed(
        name.bytes().fold(seed, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte))),
    );
    let mut files = BTreeMap::new();
    for path in ["index.html", "index.php", "robots.txt", "a/index.html", "images/logo.png"] {
        let path = format!("htdocs/{path}");
        let content = format!("{path}\n");
        files.insert(path, content);
    }
    let mut exchanges = Vec::new();
    let mut asked_hosts = Vec::new();
    let mut ask_about =
        |rules: &[Rule], around: &[Condition], hosts: &[String], address: Option<&str>| {
            for rule in rules {
                for (kind, count) in REQUESTS_PER_RULE.into_iter().enumerate() {
                    for _ in 0..count {
                        let mut ask = match kind {
                            0 => near::ask(rule, Nearness::Match, &mut rng),
                            1 => near::ask(rule, Nearness::Near, &mut rng),
                            _ if rng.bool() => {
                                Ask::get(rng.choice(EVERYWHERE).unwrap_or("/").as_bytes())
                            }
                            _ => near::far(&mut rng),
                        };
                        if let Some(condition) = rng.choice(around).filter(|_| rng.bool()) {
                            near::meet(condition, &mut ask, &mut rng);
                        }
                        if let Some(host) = rng.choice(hosts) {
                            near::at_host(&mut ask, host);
                        }
                        ask.address = address.map(str::to_owned);
                        exchanges.push(Exchange { ask, expected: Expected::default() });
                    }
                }
            }
        };
    let generally = |hosts: &[String], exchanges: &mut Vec<Exchange>| {
        for target in EVERYWHERE {
            let mut ask = Ask::get(target.as_bytes());
            if let Some(host) = hosts.first() {
                near::at_host(&mut ask, host);
            }
            exchanges.push(Exchange { ask, expected: Expected::default() });
        }
    };
    let config = match place {
        Place::Htaccess => {
            ask_about(&near::rules(text, "/", true), &near::around(text), &[], None);
            files.insert("htdocs/.htaccess".to_owned(), text.to_owned());
            String::new()
        }
        Place::Server => {
            ask_about(&near::rules(text, "/", false), &near::around(text), &[], None);
            with_final_newline(text)
        }
        Place::Hosts => {
            let mut ports = Ports::default();
            for part in text.split("</VirtualHost>") {
                let hosts = hosts(part);
                let port = part.lines().find_map(port_of_host);
                let address = port.and_then(|port| ports.address(port));
                let rules = near::rules(part, "/", false);
                ask_about(&rules, &near::around(part), &hosts, address.as_deref());
                asked_hosts.extend(hosts);
            }
            on_our_port(text)
        }
    };
    generally(&asked_hosts, &mut exchanges);
    Case {
        area: "corpus".to_owned(),
        name: name.to_owned(),
        source: "a real configuration".to_owned(),
        scope: if place == Place::Hosts { Scope::Server } else { Scope::Vhost },
        config,
        files,
        links: BTreeMap::new(),
        refused: None,
        exchanges,
    }
}

fn place(context: &str) -> Place {
    if context.starts_with("per-dir") {
        Place::Htaccess
    } else if context.starts_with("vhosts") {
        Place::Hosts
    } else {
        Place::Server
    }
}

/// Bytes that are no UTF-8 stay what they are, by [`bytes::text`].
fn read_text(file: &Path) -> Result<String, CorpusError> {
    let content =
        std::fs::read(file).map_err(|error| CorpusError::Read { file: file.to_owned(), error })?;
    Ok(bytes::text(&content))
}

fn with_final_newline(text: &str) -> String {
    if text.ends_with('\n') { text.to_owned() } else { format!("{text}\n") }
}

/// The names of a virtual host that requests can use.
fn hosts(text: &str) -> Vec<String> {
    let mut hosts = Vec::new();
    for line in near::logical_lines(text) {
        let mut words = line.split_whitespace();
        let name = words.next().unwrap_or_default();
        if name.eq_ignore_ascii_case("ServerName") || name.eq_ignore_ascii_case("ServerAlias") {
            hosts.extend(words.map(|host| host.replace('*', "any").replace('?', "x")));
        }
    }
    hosts
}

/// The addresses that stand for the ports of a configuration: all of them are one port here.
#[derive(Debug, Default)]
struct Ports(Vec<String>);

impl Ports {
    /// Returns the loopback address that stands for `port`; none for the one of HTTP, which is any address.
    fn address(&mut self, port: &str) -> Option<String> {
        if port == "80" {
            return None;
        }
        let known = self.0.iter().position(|known| known == port);
        let at = known.unwrap_or_else(|| {
            self.0.push(port.to_owned());
            self.0.len() - 1
        });
        Some(format!("127.79.{}.{}", at / 250, at % 250 + 1))
    }
}

/// Returns the port of a line that opens a virtual host: that of HTTP unless it names one.
fn port_of_host(line: &str) -> Option<&str> {
    let (name, address) = line.trim_start().split_once(char::is_whitespace)?;
    if !name.eq_ignore_ascii_case("<VirtualHost") {
        return None;
    }
    let first = address.split(['>', ' ', '\t']).find(|word| !word.is_empty()).unwrap_or_default();
    let port = first.trim_matches('"').rsplit_once(':').map(|(_, port)| port);
    Some(port.filter(|port| !matches!(*port, "" | "*") && !port.ends_with(']')).unwrap_or("80"))
}

/// Moves `<VirtualHost address:80>` to the port that the server under test listens on, and those of other
/// ports to an address for each.
fn on_our_port(text: &str) -> String {
    let mut ports = Ports::default();
    let line = |line: &str| match port_of_host(line) {
        Some(port) => match ports.address(port) {
            Some(address) => format!("<VirtualHost {address}:@PORT@>\n"),
            None => "<VirtualHost *:@PORT@>\n".to_owned(),
        },
        None => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_gets_its_requests() {
        let text = "RewriteEngine On\nRewriteRule ^a$ /b [R]\nRedirect /c /d\n";
        let case = case("x", text, Place::Htaccess, 1);
        let about_rules = 2 * REQUESTS_PER_RULE.iter().sum::<usize>();
        assert_eq!(case.exchanges.len(), about_rules + EVERYWHERE.len());
        assert_eq!(case.files["htdocs/.htaccess"], text);
    }

    #[test]
    fn virtual_hosts_are_asked_by_their_names() {
        let text = "<VirtualHost 1.2.3.4:80>\nServerName a.test\nRedirect /c /d\n</VirtualHost>\n";
        let case = case("x", text, Place::Hosts, 1);
        assert!(case.config.starts_with("<VirtualHost *:@PORT@>\n"));
        let hosts = case.exchanges.iter().map(|exchange| &exchange.ask.fields[0].1);
        assert!(hosts.into_iter().all(|host| host == b"a.test"));
    }

    #[test]
    fn each_port_is_asked_at_an_address() {
        let host = |port| format!("<VirtualHost *:{port}>\nRedirect /c /d\n</VirtualHost>\n");
        let case = case("x", &(host(80) + &host(443)), Place::Hosts, 1);
        assert!(case.config.contains("\n<VirtualHost 127.79.0.1:@PORT@>\n"), "{}", case.config);
        let secure = case.exchanges.iter().filter(|exchange| exchange.ask.address.is_some());
        assert_eq!(secure.count(), REQUESTS_PER_RULE.iter().sum::<usize>());
    }
}
