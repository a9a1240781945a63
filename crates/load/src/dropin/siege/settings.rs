//! What siege can be told, by its resource file or its command line.

use std::path::PathBuf;
use std::time::Duration;

use super::Fault;
use crate::browse::Login;
use crate::target::Version;

/// Users unless `limit` says otherwise.
const LIMIT_DEFAULT: usize = 255;

/// Longest time that can be asked for, in seconds: a year.
const SECONDS_MAX: f64 = 365.0 * 86_400.0;

/// Keys of the resource file. Any other defines a variable.
const KEYS: [&str; 58] = [
    "verbose",
    "color",
    "quiet",
    "debug",
    "json_output",
    "show-logfile",
    "logging",
    "logfile",
    "gmethod",
    "parser",
    "nofollow",
    "csv",
    "timestamp",
    "fullurl",
    "display-id",
    "limit",
    "protocol",
    "chunked",
    "cache",
    "connection",
    "concurrent",
    "time",
    "reps",
    "file",
    "url",
    "delay",
    "timeout",
    "expire-session",
    "cookies",
    "failures",
    "internet",
    "benchmark",
    "user-agent",
    "accept-encoding",
    "url-escaping",
    "login",
    "login-url",
    "auth-url",
    "attempts",
    "ftp-login",
    "unique",
    "ssl-cert",
    "ssl-key",
    "ssl-timeout",
    "ssl-ciphers",
    "proxy-host",
    "proxy-port",
    "proxy-login",
    "follow-location",
    "zero-data-ok",
    "header",
    "spinner",
    "username",
    "password",
    "content-type",
    "mark",
    "quirks",
    "linger-report",
];

/// Settings of a run.
#[derive(Debug, Clone)]
pub(super) struct Settings {
    pub(super) mode: Mode,
    pub(super) verbose: bool,
    pub(super) quiet: bool,
    pub(super) json: bool,
    pub(super) show_logfile: bool,
    pub(super) logging: bool,
    pub(super) logfile: PathBuf,
    pub(super) mark: Option<String>,
    /// Method of `-g`.
    pub(super) get_method: String,
    /// Whether the elements of pages are requested.
    pub(super) parser: bool,
    pub(super) skipped_hosts: Vec<String>,
    pub(super) csv: bool,
    pub(super) timestamp: bool,
    pub(super) full_url: bool,
    pub(super) display_id: bool,
    pub(super) limit: usize,
    pub(super) version: Version,
    pub(super) keep_alive: bool,
    pub(super) concurrent: usize,
    pub(super) reps: Reps,
    pub(super) time: Option<Duration>,
    pub(super) file: Option<PathBuf>,
    pub(super) url: Option<String>,
    pub(super) delay: Duration,
    pub(super) timeout: Duration,
    pub(super) cookies: bool,
    pub(super) failures: u64,
    pub(super) internet: bool,
    pub(super) benchmark: bool,
    pub(super) user_agent: Option<String>,
    pub(super) accept_encoding: String,
    pub(super) content_type: Option<String>,
    pub(super) logins: Vec<Login>,
    pub(super) proxy_host: Option<String>,
    pub(super) proxy_port: u16,
    pub(super) proxy_login: Option<String>,
    pub(super) ssl_cert: Option<PathBuf>,
    pub(super) ssl_key: Option<PathBuf>,
    pub(super) ssl_ciphers: Option<String>,
    pub(super) follow: bool,
    pub(super) fields: Vec<(String, String)>,
    pub(super) quirks: Quirks,
    pub(super) linger_max: Option<Duration>,
}

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// Load.
    Siege,
    /// Show one exchange with its heads.
    Get,
    /// Show one exchange with its content.
    Print,
}

/// How often each user requests something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reps {
    /// Until the run ends.
    Endless,
    /// As many times.
    Count(u64),
    /// The whole list once.
    Once,
}

/// Whose defects are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quirks {
    None,
    /// siege 4.0.
    Siege40,
    /// siege 4.2.
    Siege42,
}

impl Default for Settings {
    /// What siege's own template of the resource file says, but that pages are not parsed unless asked:
    /// that would load something else than the list.
    fn default() -> Self {
        Self {
            mode: Mode::Siege,
            verbose: true,
            quiet: false,
            json: false,
            show_logfile: true,
            logging: false,
            logfile: PathBuf::from("/var/log/siege.log"),
            mark: None,
            get_method: "HEAD".to_owned(),
            parser: false,
            skipped_hosts: Vec::new(),
            csv: false,
            timestamp: false,
            full_url: false,
            display_id: false,
            limit: LIMIT_DEFAULT,
            version: Version::Http11,
            keep_alive: false,
            concurrent: 25,
            reps: Reps::Endless,
            time: None,
            file: None,
            url: None,
            delay: Duration::ZERO,
            timeout: Duration::from_secs(30),
            cookies: true,
            failures: 1024,
            internet: false,
            benchmark: false,
            user_agent: None,
            accept_encoding: "gzip, deflate".to_owned(),
            content_type: None,
            logins: Vec::new(),
            proxy_host: None,
            proxy_port: 3128,
            proxy_login: None,
            ssl_cert: None,
            ssl_key: None,
            ssl_ciphers: None,
            follow: true,
            fields: Vec::new(),
            quirks: Quirks::None,
            linger_max: None,
        }
    }
}

impl Settings {
    /// Whether the resource file knows the key.
    pub(super) fn knows(key: &str) -> bool {
        KEYS.contains(&key)
    }

    /// Sets what the resource file calls `key`.
    ///
    /// # Errors
    ///
    /// When the value does not fit, or asks for what is not done.
    pub(super) fn set(&mut self, key: &str, value: &str) -> Result<(), Fault> {
        match key {
            "verbose" => self.verbose = flag(key, value)?,
            "quiet" => self.quiet = flag(key, value)?,
            "json_output" => self.json = flag(key, value)?,
            "show-logfile" => self.show_logfile = flag(key, value)?,
            "logging" => self.logging = flag(key, value)?,
            "logfile" => self.logfile = value.into(),
            "mark" => self.mark = Some(value.to_owned()),
            "gmethod" => value.clone_into(&mut self.get_method),
            "parser" => self.parser = flag(key, value)?,
            "nofollow" => self.skipped_hosts.push(value.to_owned()),
            "csv" => self.csv = flag(key, value)?,
            "timestamp" => self.timestamp = flag(key, value)?,
            "fullurl" => self.full_url = flag(key, value)?,
            "display-id" => self.display_id = flag(key, value)?,
            "limit" => self.limit = number(key, value)?,
            "protocol" => {
                self.version = match value.to_ascii_uppercase().as_str() {
                    "HTTP/1.1" => Version::Http11,
                    "HTTP/1.0" => Version::Http10,
                    _ => return Err(bad(key, value, "HTTP/1.1 or HTTP/1.0")),
                };
            }
            "connection" => {
                self.keep_alive = match value.to_ascii_lowercase().as_str() {
                    "keep-alive" => true,
                    "close" => false,
                    _ => return Err(bad(key, value, "keep-alive or close")),
                };
            }
            // siege takes none for one.
            "concurrent" => self.concurrent = number::<usize>(key, value)?.max(1),
            "reps" if value == "once" => self.reps = Reps::Once,
            "reps" => match number(key, value)? {
                0 => return Err(bad(key, value, "at least 1, or once")),
                count => self.reps = Reps::Count(count),
            },
            "time" => self.time = Some(time(key, value)?),
            "file" => self.file = Some(value.into()),
            "url" => self.url = Some(value.to_owned()),
            "delay" => self.delay = seconds(key, value, 0.0)?,
            "timeout" => self.timeout = seconds(key, value, 0.001)?,
            "cookies" => self.cookies = flag(key, value)?,
            "failures" => self.failures = number(key, value)?,
            "internet" => self.internet = flag(key, value)?,
            "benchmark" => self.benchmark = flag(key, value)?,
            "user-agent" => self.user_agent = Some(value.to_owned()),
            "accept-encoding" => value.clone_into(&mut self.accept_encoding),
            "content-type" => self.content_type = Some(value.to_owned()),
            "login" => self.logins.push(login(key, value)?),
            "proxy-host" => self.proxy_host = (!value.is_empty()).then(|| value.to_owned()),
            "proxy-port" => self.proxy_port = number(key, value)?,
            "proxy-login" => self.proxy_login = Some(value.to_owned()),
            "follow-location" => self.follow = flag(key, value)?,
            "header" => self.fields.push(field(value)?),
            "quirks" => {
                self.quirks = match value {
                    "siege40" => Quirks::Siege40,
                    "siege42" => Quirks::Siege42,
                    _ => return Err(bad(key, value, "siege40 or siege42")),
                };
            }
            "linger-report" => {
                let wait = crate::dropin::note::linger_max(Some(value).filter(|it| !it.is_empty()));
                self.linger_max = Some(wait.ok_or_else(|| bad(key, value, "a number of seconds"))?);
            }
            // What it is without them.
            "debug" | "cache" | "expire-session" if !flag(key, value)? => {}
            "chunked" | "url-escaping" | "zero-data-ok" if flag(key, value)? => {}
            "ssl-cert" => self.ssl_cert = Some(value.into()),
            "ssl-key" => self.ssl_key = Some(value.into()),
            "ssl-ciphers" => self.ssl_ciphers = Some(value.to_owned()),
            // The time of a request counts for its handshake too.
            "ssl-timeout" => {}
            // They change what a terminal looks like, or how files of an upload are named.
            "color" | "spinner" | "unique" | "attempts" => {}
            _ => return Err(Fault::Fatal(format!("{key} = {value}: not done in milepost siege"))),
        }
        Ok(())
    }
}

fn bad(key: &str, value: &str, needs: &str) -> Fault {
    Fault::Fatal(format!("{key} needs {needs}, not {value:?}"))
}

fn flag(key: &str, value: &str) -> Result<bool, Fault> {
    match value.to_ascii_lowercase().as_str() {
        "true" | "on" | "yes" | "1" => Ok(true),
        "false" | "off" | "no" | "0" => Ok(false),
        _ => Err(bad(key, value, "true or false")),
    }
}

fn number<N: std::str::FromStr>(key: &str, value: &str) -> Result<N, Fault> {
    value.parse().map_err(|_| bad(key, value, "a number"))
}

fn seconds(key: &str, value: &str, min: f64) -> Result<Duration, Fault> {
    let number = value.parse().ok().filter(|number| (min..=SECONDS_MAX).contains(number));
    number.map(Duration::from_secs_f64).ok_or_else(|| bad(key, value, "a number of seconds"))
}

/// A number with S, M or H; minutes without.
fn time(key: &str, value: &str) -> Result<Duration, Fault> {
    let unit = value.trim_start_matches(|it: char| it.is_ascii_digit() || it == '.');
    let seconds = match unit.trim().to_ascii_lowercase().as_str() {
        "s" => 1.0,
        "" | "m" => 60.0,
        "h" => 3600.0,
        _ => return Err(bad(key, value, "a number with S, M or H")),
    };
    let number: Option<f64> = value[..value.len() - unit.len()].parse().ok();
    let length = number.map(|number| number * seconds).filter(|it| *it > 0.0 && *it <= SECONDS_MAX);
    let length = length.ok_or_else(|| bad(key, value, "a number with S, M or H"))?;
    Ok(Duration::from_secs_f64(length))
}

/// `user:password`, and a realm after another colon.
fn login(key: &str, value: &str) -> Result<Login, Fault> {
    let mut parts = value.splitn(3, ':');
    match (parts.next(), parts.next()) {
        (Some(user), Some(password)) => Ok(Login {
            user: user.to_owned(),
            password: password.to_owned(),
            realm: parts
                .next()
                .filter(|realm| !realm.is_empty() && *realm != "all")
                .map(str::to_owned),
        }),
        _ => Err(bad(key, value, "user:password or user:password:realm")),
    }
}

fn field(line: &str) -> Result<(String, String), Fault> {
    match line.split_once(':') {
        Some((name, value)) => Ok((name.trim().to_owned(), value.trim().to_owned())),
        None => Err(Fault::Fatal("no ':' in http-header".to_owned())),
    }
}
