//! Lays cases out on disk: a directory, an address and a configuration file for each.
//!
//! Every case has a loopback address of its own (Linux answers on all of 127.0.0.0/8). A virtual
//! host is therefore found by its address alone, requests may name any host, and hundreds of cases
//! share one httpd without seeing each other. The same configuration text, for one case alone, is
//! what milepost gets.

use std::fmt::Write;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use crate::backend::Backend;
use crate::bytes;
use crate::case::{Case, HOST, Scope};
use crate::directory::Directory;
use crate::httpd::Program;

/// Cases that fit on one stage: the addresses of 127.77.0.0/16 that end in 1 to 250.
pub const CASES_MAX: usize = 256 * ADDRESSES_PER_BLOCK;
const ADDRESSES_PER_BLOCK: usize = 250;

/// Stands for the address of a server behind those of the cases.
const BACKEND: &str = "@BACKEND@";

/// Cases on one stage: a start of httpd costs 5 ms, so more of them gain nothing.
const TOGETHER: usize = 200;

/// Says which cases share a stage: those of virtual hosts do, a main server has one for itself.
///
/// Every engine puts a case in the same place so, and the path of that place is the same in all
/// answers, in whatever disguise it comes.
pub fn groups(cases: &[&Case]) -> Vec<Vec<usize>> {
    let (vhosts, servers): (Vec<usize>, Vec<usize>) =
        (0..cases.len()).partition(|&at| cases[at].scope == Scope::Vhost);
    vhosts.chunks(TOGETHER).chain(servers.chunks(1)).map(<[usize]>::to_vec).collect()
}

/// Cases on disk.
#[derive(Debug)]
pub struct Stage {
    directory: Directory,
    plots: Vec<Plot>,
    port: u16,
    /// What stands behind the cases that ask for it, until the stage is cleared.
    _backend: Option<Backend>,
}

/// The place of one case.
#[derive(Debug, Clone)]
pub struct Plot {
    root: PathBuf,
    address: Ipv4Addr,
    port: u16,
    scope: Scope,
    /// Where the modules of httpd are.
    modules: PathBuf,
    backend: Option<SocketAddr>,
}

impl Stage {
    /// Writes the files of `cases`, for servers that listen on `port`.
    ///
    /// # Errors
    /// As the file system reports them.
    ///
    /// # Panics
    /// With more than [`CASES_MAX`] cases.
    pub fn new(cases: &[&Case], port: u16) -> io::Result<Stage> {
        assert!(cases.len() <= CASES_MAX, "a stage holds at most {CASES_MAX} cases");
        let directory = Directory::new()?;
        let mut plots = Vec::with_capacity(cases.len());
        // Cases that need no modules of their own do without an httpd.
        let modules = Program::find().map(|program| program.modules().to_owned());
        let modules = modules.unwrap_or_default();
        let asks = |case: &&&Case| {
            let mut texts = case.files.values().chain([&case.config]);
            texts.any(|text| text.contains(BACKEND))
        };
        let backend = cases.iter().find(asks).map(|_| Backend::start()).transpose()?;
        for (at, case) in cases.iter().enumerate() {
            let root = directory.path().join(format!("case{at}"));
            let (block, last) = (at / ADDRESSES_PER_BLOCK, at % ADDRESSES_PER_BLOCK + 1);
            let octet = |number| u8::try_from(number).expect("CASES_MAX keeps it below 256");
            let address = Ipv4Addr::new(127, 77, octet(block), octet(last));
            let scope = case.scope;
            let (modules, backend) = (modules.clone(), backend.as_ref().map(Backend::address));
            let plot = Plot { root, address, port, scope, modules, backend };
            plot.write(case)?;
            plots.push(plot);
        }
        std::fs::write(directory.path().join("mime.types"), "text/html html\ntext/plain txt\n")?;
        Ok(Stage { directory, plots, port, _backend: backend })
    }

    /// Returns the directory of the stage.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Returns the places of the cases, in the order in which they were given.
    pub fn plots(&self) -> &[Plot] {
        &self.plots
    }

    /// Writes a configuration for `program` that serves the cases numbered `which`.
    ///
    /// # Errors
    /// As the file system reports them.
    pub fn write_httpd_conf(&self, program: &Program, which: &[usize]) -> io::Result<PathBuf> {
        let root = self.path().display();
        let mut text = program.process_directives(self.path());
        text.push_str(&common_directives(program, self.path(), self.port));
        for &at in which {
            writeln!(text, "Include \"{root}/case{at}/site.conf\"").expect("writes to a String");
        }
        let path = self.path().join("httpd.conf");
        std::fs::write(&path, text)?;
        Ok(path)
    }
}

impl Plot {
    /// Returns `@ROOT@`.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the socket address that serves the case, or the one named `other`.
    pub fn socket(&self, other: Option<&str>) -> Option<SocketAddr> {
        let address = match other {
            Some(other) => other.parse().ok()?,
            None => self.address,
        };
        Some(SocketAddr::new(IpAddr::V4(address), self.port))
    }

    /// Returns the address of the server behind the case, if it has one.
    pub fn backend(&self) -> Option<SocketAddr> {
        self.backend
    }

    /// Replaces the placeholders in `text` by what they stand for.
    pub fn fill(&self, text: &str) -> String {
        self.placeholders()
            .iter()
            .fold(text.to_owned(), |text, (name, value)| text.replace(name, value))
    }

    /// Replaces the root, the address and the port in `bytes` by their placeholders.
    pub fn blank(&self, bytes: &[u8]) -> Vec<u8> {
        let known = self.placeholders();
        known
            .iter()
            .filter(|(_, value)| !value.is_empty())
            .fold(bytes.to_vec(), |bytes, (name, value)| {
                replace(&bytes, value.as_bytes(), name.as_bytes())
            })
    }

    /// Writes the configuration of this case alone, without what only a process needs.
    ///
    /// # Errors
    /// As the file system reports them.
    pub fn write_site_conf(&self, program: &Program) -> io::Result<PathBuf> {
        let mut text = common_directives(program, &self.root, self.port);
        let stage = self.root.parent().unwrap_or(&self.root).display();
        writeln!(text, "TypesConfig \"{stage}/mime.types\"").expect("as above");
        writeln!(text, "Include \"{}/site.conf\"", self.root.display()).expect("as above");
        let path = self.root.join("alone.conf");
        std::fs::write(&path, text)?;
        Ok(path)
    }

    /// Longest values first, so that none is replaced inside another.
    fn placeholders(&self) -> [(&'static str, String); 5] {
        let backend = self.backend.map(|address| address.to_string());
        [
            (BACKEND, backend.unwrap_or_default()),
            ("@ROOT@", self.root.display().to_string()),
            ("@ADDRESS@", self.address.to_string()),
            ("@PORT@", self.port.to_string()),
            ("@MODULES@", self.modules.display().to_string()),
        ]
    }

    fn write(&self, case: &Case) -> io::Result<()> {
        let documents = self.root.join("htdocs");
        std::fs::create_dir_all(&documents)?;
        for (path, content) in &case.files {
            let full = self.root.join(path);
            if path.ends_with('/') {
                std::fs::create_dir_all(full)?;
                continue;
            }
            if let Some(parent) = full.parent() {
                std::fs::create_dir_all(parent)?;
            }
            std::fs::write(full, bytes::of_file(self.fill(content).as_bytes()))?;
        }
        for (path, target) in &case.links {
            std::os::unix::fs::symlink(self.fill(target), self.root.join(path))?;
        }
        let config = bytes::of_file(self.fill(&case.config).as_bytes());
        std::fs::write(self.root.join("case.conf"), config)?;
        std::fs::write(self.root.join("site.conf"), self.site(case, &documents))
    }

    /// The case's own file is included, so that line numbers in messages are those of its text.
    fn site(&self, case: &Case, documents: &Path) -> String {
        let documents = documents.display();
        // Without such a file there is nothing to allow, and one path less for the engine to take.
        let dotted = |path: &&String| path.rsplit('/').next().is_some_and(|n| n.starts_with('.'));
        let overrides = if case.files.keys().any(|path| dotted(&path)) { "All" } else { "None" };
        let body = format!(
            "ServerName {HOST}\n\
             DocumentRoot \"{documents}\"\n\
             <Directory \"{documents}\">\n\
             Require all granted\n\
             AllowOverride {overrides}\n\
             Options FollowSymLinks\n\
             </Directory>\n\
             Include \"{}/case.conf\"\n",
            self.root.display()
        );
        match self.scope {
            Scope::Server => body,
            Scope::Vhost => {
                format!("<VirtualHost {}:{}>\n{body}</VirtualHost>\n", self.address, self.port)
            }
        }
    }
}

/// The directives that both httpd and milepost get before the cases.
fn common_directives(program: &Program, root: &Path, port: u16) -> String {
    let mut text = format!("ServerRoot \"{}\"\nListen 0.0.0.0:{port}\n", root.display());
    text.push_str(&program.load_modules());
    // The main server of a stage of virtual hosts is never asked; its name is set so that httpd
    // does not look up the machine's.
    text.push_str("ServerName main.test\n");
    text
}

fn replace(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut replaced = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some(at) = rest.windows(from.len()).position(|window| window == from) {
        replaced.extend_from_slice(&rest[..at]);
        replaced.extend_from_slice(to);
        rest = &rest[at + from.len()..];
    }
    replaced.extend_from_slice(rest);
    replaced
}
