//! The servers that the lab can start: how to find one, configure it and call it.
//!
//! Each gets a configuration of its own that says everything, so that a person can start the same
//! server by hand. All of them serve the same documents, write no access log, keep connections open
//! without a limit on their requests, and use one worker (Apache: one process of threads).

mod apache;
mod milepost;
mod nginx;
#[cfg(test)]
mod tests;

use std::env;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};

use crate::account::Account;
use crate::experiment::Method;
use crate::site::Site;

/// Directories to search after PATH: daemons live there, and PATH of a user often lacks them.
const DAEMON_DIRECTORIES: [&str; 2] = ["/usr/sbin", "/usr/local/sbin"];

/// A kind of server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ServerKind {
    /// milepost, with its index.
    Milepost,
    /// milepost trying every rule: what the index is measured against.
    MilepostScan,
    /// Apache httpd with the event MPM.
    Apache,
    /// nginx.
    Nginx,
}

/// The configuration language that a server reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syntax {
    /// Apache's.
    Apache,
    /// nginx's.
    Nginx,
}

/// A server that was found on this machine.
#[derive(Clone, Debug)]
pub struct Server {
    /// Which kind it is.
    pub kind: ServerKind,
    /// The program.
    pub program: PathBuf,
    /// What the program says of itself.
    pub version: String,
    modules: apache::Modules,
}

/// A server that cannot take part, and why.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
pub struct Missing {
    /// Which kind.
    pub server: ServerKind,
    /// Why not.
    pub reason: String,
}

/// What a configuration is made for.
#[derive(Clone, Copy, Debug)]
pub struct Setup<'a> {
    /// The server's own directory: its configuration, pid file and error log.
    pub directory: &'a Path,
    /// Where it listens.
    pub address: SocketAddr,
    /// What it serves.
    pub site: &'a Site,
    /// The account of its workers when it is started as root.
    pub account: Option<&'a Account>,
    /// The most connections that it will see at a time.
    pub connections_max: u32,
}

impl ServerKind {
    /// Every kind, in the order of the tables.
    pub const ALL: [Self; 4] = [Self::Milepost, Self::MilepostScan, Self::Apache, Self::Nginx];

    /// Returns the word that files and options use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Milepost => "milepost",
            Self::MilepostScan => "milepost-scan",
            Self::Apache => "apache",
            Self::Nginx => "nginx",
        }
    }

    /// Returns what tables call it.
    pub fn title(self) -> &'static str {
        match self {
            Self::Milepost => "milepost",
            Self::MilepostScan => "milepost --scan",
            Self::Apache => "Apache",
            Self::Nginx => "nginx",
        }
    }

    /// Returns the kind called `name`.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Returns the language of its configuration.
    pub fn syntax(self) -> Syntax {
        match self {
            Self::Milepost | Self::MilepostScan | Self::Apache => Syntax::Apache,
            Self::Nginx => Syntax::Nginx,
        }
    }

    /// Tells whether `method` has a text in its language.
    pub fn can_run(self, method: &Method) -> bool {
        match self.syntax() {
            Syntax::Apache => method.apache.is_some(),
            Syntax::Nginx => method.nginx.is_some(),
        }
    }
}

impl Server {
    /// Looks for the server; `milepost` is the program to use for milepost itself.
    ///
    /// # Errors
    ///
    /// [`Missing`], with the reason.
    pub fn find(kind: ServerKind, milepost: &Path) -> Result<Self, Missing> {
        match kind {
            ServerKind::Milepost | ServerKind::MilepostScan => milepost::find(kind, milepost),
            ServerKind::Apache => apache::find(),
            ServerKind::Nginx => nginx::find(),
        }
        .map_err(|reason| Missing { server: kind, reason })
    }

    /// Returns the name of its configuration file.
    pub fn configuration_name(&self) -> &'static str {
        match self.kind {
            ServerKind::Milepost | ServerKind::MilepostScan => "milepost.conf",
            ServerKind::Apache => "httpd.conf",
            ServerKind::Nginx => "nginx.conf",
        }
    }

    /// Writes its configuration, except the rules, which the site has and this includes.
    pub fn configuration(&self, setup: &Setup<'_>) -> String {
        match self.kind {
            ServerKind::Milepost | ServerKind::MilepostScan => milepost::configuration(setup),
            ServerKind::Apache => apache::configuration(setup, &self.modules),
            ServerKind::Nginx => nginx::configuration(setup),
        }
    }

    /// Returns the command that serves `file` in the foreground.
    pub fn command(&self, file: &Path) -> Command {
        let mut command = Command::new(&self.program);
        match self.kind {
            ServerKind::Milepost => command.args(["serve", "--workers", "1", "-f"]).arg(file),
            ServerKind::MilepostScan => {
                command.args(["serve", "--scan", "--workers", "1", "-f"]).arg(file)
            }
            ServerKind::Apache => command.args(["-DFOREGROUND", "-f"]).arg(file),
            ServerKind::Nginx => {
                command.arg("-p").args(file.parent()).arg("-c").arg(file);
                &mut command
            }
        };
        command
    }
}

/// Returns the first of `names` on PATH or where daemons live.
fn program(names: &[&str]) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let directories: Vec<PathBuf> =
        env::split_paths(&path).chain(DAEMON_DIRECTORIES.map(PathBuf::from)).collect();
    let mut candidates =
        names.iter().flat_map(|name| directories.iter().map(move |directory| directory.join(name)));
    candidates.find(|candidate| candidate.is_file())
}

/// Runs `program` with `arguments` and returns what it prints on both outputs.
///
/// # Errors
///
/// Why it could not be run.
fn output(program: &Path, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{} cannot be run: {error}", program.display()))?;
    let text = [output.stdout, output.stderr].concat();
    Ok(String::from_utf8_lossy(&text).into_owned())
}

#[cfg(test)]
impl Server {
    /// A server that is only talked about.
    pub(crate) fn for_test(kind: ServerKind) -> Self {
        let modules = apache::Modules::default();
        Self { kind, program: kind.name().into(), version: "1.0".to_owned(), modules }
    }
}
