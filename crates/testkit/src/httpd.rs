//! Real httpd as the judge: one process on a loopback port, started in milliseconds.
//!
//! `-X` keeps everything in the one process that we started: it starts in about 5 ms, and killing
//! it by its own id leaves nothing behind. Its pid file appears once the port is bound, so a server
//! that someone else runs on the same port is never taken for ours.
//!
//! Source: httpd 2.4.71 `server/mpm/event/event.c`, `event_run`; httpd(8).

use std::fmt::Write;
use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Set it to judge by another httpd than the one found on `PATH`.
pub const HTTPD_VARIABLE: &str = "MILEPOST_HTTPD";
/// Set it when the modules of that httpd are not found beside it.
pub const MODULES_VARIABLE: &str = "MILEPOST_HTTPD_MODULES";

/// The process environment of every httpd under test, and what milepost is told of it.
pub const ENVIRONMENT: [(&str, &str); 4] = [
    ("PATH", "/usr/sbin:/usr/bin:/sbin:/bin"),
    ("LANG", "C"),
    ("TZ", "UTC"),
    ("MILEPOST_SPEC", "from-environment"),
];

/// The modules that redirect configurations use.
const MODULES: [&str; 12] = [
    "mpm_event",
    "authz_core",
    "authz_host",
    "access_compat",
    "alias",
    "dir",
    "env",
    "headers",
    "macro",
    "mime",
    "rewrite",
    "setenvif",
];
/// Modules that some builds compile in and others load.
const MODULES_IF_SHARED: [&str; 3] = ["unixd", "log_config", "version"];

/// A configuration of a million lines loads within seconds; this is for a machine under load.
pub(crate) const START_MAX: Duration = Duration::from_secs(60);
/// How long a process may take to end before it is killed.
pub(crate) const STOP_MAX: Duration = Duration::from_secs(2);
/// Between two looks; a start takes about 5 ms.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(1);

/// An installed httpd.
#[derive(Debug, Clone)]
pub struct Program {
    path: PathBuf,
    modules: PathBuf,
    more: Vec<&'static str>,
}

/// A running httpd; stopped when dropped.
#[derive(Debug)]
pub struct Httpd {
    child: Child,
}

/// Why no httpd runs.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HttpdError {
    /// There is none on this machine.
    #[error(
        "no httpd found (apache2, httpd): install apache2-bin, or set {HTTPD_VARIABLE} to its path"
    )]
    Missing,
    /// There is one, without its modules.
    #[error("no modules found for {}: set {MODULES_VARIABLE} to their directory", .0.display())]
    NoModules(PathBuf),
    /// It does not accept its configuration.
    #[error("{0}")]
    Refused(Refusal),
    /// Another process took the port between our choice and its start.
    #[error("the port is in use")]
    PortInUse,
    /// It neither serves nor ends.
    #[error("httpd did not start within {} s", START_MAX.as_secs())]
    Silent,
    /// It could not be run, or its files not be written.
    #[error("{path}: {error}", path = .path.display())]
    Io {
        /// What we were at.
        path: PathBuf,
        /// What happened.
        error: io::Error,
    },
}

/// What httpd says of a configuration that it does not accept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// File and line of the directive, where it says so.
    pub place: Option<(PathBuf, u32)>,
    /// What is wrong, on one line.
    pub message: String,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.place {
            Some((file, line)) => write!(f, "{}:{line}: {}", file.display(), self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl Program {
    /// Finds httpd and its modules.
    ///
    /// # Errors
    /// [`HttpdError::Missing`] and [`HttpdError::NoModules`], with what to do.
    pub fn find() -> Result<Program, HttpdError> {
        let path = match std::env::var_os(HTTPD_VARIABLE) {
            Some(path) => PathBuf::from(path),
            None => on_path().ok_or(HttpdError::Missing)?,
        };
        let beside = path.parent().and_then(Path::parent).map(|prefix| prefix.join("modules"));
        let modules = std::env::var_os(MODULES_VARIABLE)
            .map(PathBuf::from)
            .into_iter()
            .chain(["/usr/lib/apache2/modules", "/usr/lib64/httpd/modules"].map(PathBuf::from))
            .chain(beside)
            .find(|directory| directory.join("mod_rewrite.so").is_file());
        match modules {
            Some(modules) => Ok(Program { path, modules, more: Vec::new() }),
            None => Err(HttpdError::NoModules(path)),
        }
    }

    /// Loads `modules` as well, as far as this httpd has them.
    #[must_use]
    pub fn with_modules(mut self, modules: &[&'static str]) -> Program {
        self.more.extend_from_slice(modules);
        self
    }

    /// Returns its first line of `-v`, `Apache/2.4.71 (Debian)`.
    ///
    /// # Errors
    /// [`HttpdError::Io`] when it cannot be run.
    pub fn version(&self) -> Result<String, HttpdError> {
        let output = Command::new(&self.path)
            .arg("-v")
            .output()
            .map_err(|error| HttpdError::Io { path: self.path.clone(), error })?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let first = text.lines().next().unwrap_or_default();
        Ok(first.trim_start_matches("Server version: ").to_owned())
    }

    /// Returns the directory of its modules.
    pub fn modules(&self) -> &Path {
        &self.modules
    }

    /// Returns the `LoadModule` lines for the modules that redirect configurations use.
    pub fn load_modules(&self) -> String {
        let file = |module: &str| self.modules.join(format!("mod_{module}.so"));
        let optional = MODULES_IF_SHARED.into_iter().chain(self.more.iter().copied());
        let shared = optional.filter(|module| file(module).is_file());
        let mut text = String::new();
        for module in shared.chain(MODULES) {
            writeln!(text, "LoadModule {module}_module \"{}\"", file(module).display())
                .expect("writes to a String");
        }
        text
    }

    /// Returns the directives that only a process needs: its user, its files, its threads.
    pub fn process_directives(&self, root: &Path) -> String {
        let root = root.display();
        let mut text = format!(
            "DefaultRuntimeDir \"{root}\"\n\
             PidFile \"{root}/httpd.pid\"\n\
             ErrorLog \"{root}/error.log\"\n\
             TypesConfig \"{root}/mime.types\"\n\
             KeepAlive On\nMaxKeepAliveRequests 0\nKeepAliveTimeout 60\nTimeout 60\n\
             <IfModule mpm_event_module>\n\
             StartServers 1\nServerLimit 1\nThreadLimit 8\nThreadsPerChild 8\n\
             MaxRequestWorkers 8\nMinSpareThreads 1\nMaxSpareThreads 8\n\
             </IfModule>\n"
        );
        if rustix::process::geteuid().is_root() {
            text.push_str("User www-data\nGroup www-data\n");
        }
        text
    }

    /// Runs `httpd -t` on a configuration.
    ///
    /// # Errors
    /// [`HttpdError::Refused`] with what it says, when it does not accept it.
    pub fn check(&self, conf: &Path) -> Result<(), HttpdError> {
        let (mut child, notes) = self.spawn(conf, &["-t"])?;
        let status = child.wait().map_err(|error| self.io(error))?;
        if status.success() { Ok(()) } else { Err(HttpdError::Refused(refusal(&notes))) }
    }

    /// Starts it on a configuration of a [`crate::stage::Stage`] and waits until it serves.
    ///
    /// # Errors
    /// [`HttpdError`] when it does not.
    pub fn start(&self, conf: &Path) -> Result<Httpd, HttpdError> {
        let root = conf.parent().unwrap_or(Path::new("/"));
        let pid_file = root.join("httpd.pid");
        let (child, notes) = self.spawn(conf, &["-X"])?;
        let mut httpd = Httpd { child };
        let started = Instant::now();
        while started.elapsed() < START_MAX {
            if httpd.child.try_wait().map_err(|error| self.io(error))?.is_some() {
                return Err(match refusal(&notes) {
                    refusal if refusal.message.contains("could not bind") => HttpdError::PortInUse,
                    refusal => HttpdError::Refused(refusal),
                });
            }
            let pid = std::fs::read_to_string(&pid_file).unwrap_or_default();
            if pid.trim_end().parse() == Ok(httpd.child.id()) {
                return Ok(httpd);
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Err(HttpdError::Silent)
    }

    /// Runs it with its messages in `DIR/stderr`, `DIR` being the directory of `conf`.
    fn spawn(&self, conf: &Path, options: &[&str]) -> Result<(Child, PathBuf), HttpdError> {
        let notes = conf.with_file_name("stderr");
        for left in ["error.log", "httpd.pid"] {
            // Usually there is none; then there is nothing to mistake for the new one's.
            let _ = std::fs::remove_file(conf.with_file_name(left));
        }
        let io = |path: &Path, error| HttpdError::Io { path: path.to_owned(), error };
        let stderr = File::create(&notes).map_err(|error| io(&notes, error))?;
        let child = Command::new(&self.path)
            .args(options)
            .arg("-f")
            .arg(conf)
            .env_clear()
            .envs(ENVIRONMENT)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(stderr)
            .spawn()
            .map_err(|error| io(&self.path, error))?;
        Ok((child, notes))
    }

    fn io(&self, error: io::Error) -> HttpdError {
        HttpdError::Io { path: self.path.clone(), error }
    }
}

impl Httpd {
    /// Whether the process still runs; some configurations make httpd crash.
    pub fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }
}

impl Drop for Httpd {
    fn drop(&mut self) {
        stop(&mut self.child);
    }
}

/// Asks a process of ours to end, waits for it, and ends it if it does not.
pub(crate) fn stop(child: &mut Child) {
    // Once it has ended and been waited for, its id may be somebody else's.
    if !matches!(child.try_wait(), Ok(None)) {
        return;
    }
    let pid = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
    if let Some(pid) = pid {
        // It may end by itself at this moment; then there is nothing to stop.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    }
    let asked = Instant::now();
    while asked.elapsed() < STOP_MAX {
        if !matches!(child.try_wait(), Ok(None)) {
            return;
        }
        std::thread::sleep(LOOK_EVERY);
    }
    let _ = child.kill();
    let _ = child.wait();
}

/// Returns a port that was free a moment ago on every address.
///
/// # Errors
/// As the system reports them.
pub fn free_port() -> io::Result<u16> {
    let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
    Ok(TcpListener::bind(any)?.local_addr()?.port())
}

fn on_path() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // Debian keeps it in /usr/sbin, which is not on every user's PATH.
    let directories = std::env::split_paths(&path).chain(["/usr/sbin".into()]);
    let mut candidates = directories
        .flat_map(|directory: PathBuf| ["apache2", "httpd"].map(|name| directory.join(name)));
    candidates.find(|candidate| candidate.is_file())
}

/// Makes sense of what httpd wrote before it ended.
fn refusal(notes: &Path) -> Refusal {
    let read = |path: &Path| {
        String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).into_owned()
    };
    let mut text = read(notes);
    text.push_str(&read(&notes.with_file_name("error.log")));
    parse_refusal(&text)
}

/// Takes the place from the last `Syntax error on line 3 of FILE:`, which is the innermost one when
/// files include each other, and the message from what follows it.
fn parse_refusal(text: &str) -> Refusal {
    const MARK: &str = "Syntax error on line ";
    let place_and_message = text.rfind(MARK).and_then(|at| {
        let (line, rest) = text[at + MARK.len()..].split_once(" of ")?;
        let (file, message) = rest.split_once(':')?;
        Some(((PathBuf::from(file), line.parse().ok()?), message))
    });
    if let Some((place, message)) = place_and_message {
        let lines = message.lines().take_while(|line| !line.starts_with('['));
        let words: Vec<_> = lines.map(str::trim).filter(|line| !line.is_empty()).collect();
        return Refusal { place: Some(place), message: words.join(" ") };
    }
    // Anything else that is no mere warning.
    let lines = text.lines().filter(|line| !line.contains(":warn]") && !line.is_empty());
    Refusal { place: None, message: lines.collect::<Vec<_>>().join(" ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_its_place() {
        let text = "[Sat Nov 21 05:45:29 2026] [core:warn] [pid 1] x\n\
                    AH00526: Syntax error on line 3 of /t/case.conf:\nRedirect to non-URL\n";
        let place = Some((PathBuf::from("/t/case.conf"), 3));
        let message = "Redirect to non-URL".to_owned();
        assert_eq!(parse_refusal(text), Refusal { place, message });
    }

    #[test]
    fn the_innermost_file_is_the_place() {
        let text = "apache2: Syntax error on line 9 of /t/httpd.conf: Syntax error on line 2 of \
                    /t/case.conf: </Location> without matching <Location> section\n";
        let place = Some((PathBuf::from("/t/case.conf"), 2));
        let message = "</Location> without matching <Location> section".to_owned();
        assert_eq!(parse_refusal(text), Refusal { place, message });
    }

    #[test]
    fn other_refusals_are_given_whole() {
        let text = "(98)Address already in use: AH00072: could not bind\nno listening sockets\n";
        let message = "(98)Address already in use: AH00072: could not bind no listening sockets";
        assert_eq!(parse_refusal(text), Refusal { place: None, message: message.to_owned() });
    }
}
