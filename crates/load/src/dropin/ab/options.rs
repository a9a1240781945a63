//! ab's command line: what was typed, checked.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::dropin::getopt::{self, Part, Spec, Value};
use crate::dropin::note;
use crate::plan::Persistence;
use crate::route::Proxy;
use crate::tls::{CipherList, TlsVersion};
use crate::url::HttpUrl;

/// Most connections, as in ab.
const CONCURRENCY_MAX: usize = 20_000;

/// Most requests: ab counts them in an `int`.
const REQUESTS_MAX: u64 = i32::MAX as u64;

/// From this many requests on progress is shown.
const PROGRESS_REQUESTS_MIN: u64 = 150;

const SPEC: Spec<'_> = Spec {
    short: "n:c:t:s:b:T:p:u:v:lrkVhwiIx:y:z:C:H:P:A:g:X:de:SqB:m:Z:f:E:",
    long: &[
        ("help", Value::None, "help"),
        ("quirks", Value::Required, "quirks"),
        ("linger-report", Value::Optional, "linger-report"),
    ],
    permutes: false,
};

/// What the command line asks for.
#[derive(Debug)]
pub(super) enum Asked {
    Run(Box<Options>),
    Version,
    /// As an error, which is what it is to ab.
    Usage,
    Help,
}

/// Why it is refused.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// It is no command line of ab; the usage helps.
    Usage(String),
    /// It cannot be done.
    Refused(String),
}

/// A run of ab.
#[derive(Debug)]
pub(super) struct Options {
    pub(super) url: HttpUrl,
    /// If asked for.
    pub(super) requests: Option<u64>,
    pub(super) concurrency: usize,
    pub(super) time_limit: Option<Duration>,
    pub(super) timeout: Duration,
    pub(super) window: Option<usize>,
    pub(super) bind: Option<IpAddr>,
    pub(super) method: String,
    pub(super) body: Option<PathBuf>,
    pub(super) content_type: Option<String>,
    pub(super) verbosity: i32,
    pub(super) html: bool,
    /// Attributes of table, rows and cells.
    pub(super) attributes: [String; 3],
    /// Field lines in the order in which they are sent.
    pub(super) fields: Vec<(String, String)>,
    pub(super) proxy: Option<Proxy>,
    pub(super) hides_server_name: bool,
    pub(super) ciphers: Option<CipherList>,
    pub(super) version: Option<TlsVersion>,
    /// Certificate and key of the client, in one file.
    pub(super) identity: Option<PathBuf>,
    /// Whether `-k` was given.
    pub(super) keep_alive: bool,
    pub(super) persistence: Persistence,
    pub(super) hides_percentiles: bool,
    pub(super) hides_deviation: bool,
    pub(super) quiet: bool,
    pub(super) accepts_any_length: bool,
    pub(super) tolerates_errors: bool,
    pub(super) gnuplot: Option<PathBuf>,
    pub(super) csv: Option<PathBuf>,
    /// Whether figures are those of ab 2.4, right or wrong.
    pub(super) quirks: bool,
    /// Given by `--linger-report`.
    pub(super) linger_max: Option<Duration>,
}

/// What is collected before it can be checked together.
#[derive(Debug, Default)]
struct Typed {
    cookies: Vec<String>,
    login: Option<String>,
    proxy_login: Option<String>,
    own: Vec<(String, String)>,
    connection: Option<Persistence>,
}

impl Options {
    /// Reads the words after the name of the program.
    ///
    /// # Errors
    ///
    /// What is wrong with them first.
    pub(super) fn parse(words: &[String]) -> Result<Asked, Fault> {
        let parts = SPEC.split(words).map_err(|fault| {
            Fault::Usage(match fault {
                getopt::Fault::Unknown(name) => format!("illegal option -- {name}"),
                getopt::Fault::NoValue(name) => format!("option requires an argument -- {name}"),
                getopt::Fault::Surplus(name) => format!("option takes no argument -- {name}"),
                getopt::Fault::Ambiguous(name) => format!("ambiguous option -- {name}"),
            })
        })?;
        let (mut operands, mut settings) = (Vec::new(), Vec::new());
        for part in parts {
            match part {
                Part::Operand(text) => operands.push(text),
                Part::Option(name, _) if name == "h" => return Ok(Asked::Usage),
                Part::Option(name, _) if name == "help" => return Ok(Asked::Help),
                Part::Option(name, _) if name == "V" => return Ok(Asked::Version),
                Part::Option(name, value) => settings.push((name, value.unwrap_or_default())),
            }
        }
        let [operand] = &operands[..] else {
            return Err(Fault::Usage("wrong number of arguments".to_owned()));
        };
        let mut options = Self::of(url(operand)?);
        options.quirks = quirks(&settings)?;
        let mut typed = Typed::default();
        for (name, value) in settings {
            options.set(&name, value, &mut typed)?;
        }
        options.complete(typed)?;
        Ok(Asked::Run(Box::new(options)))
    }

    fn of(url: HttpUrl) -> Self {
        Self {
            url,
            requests: None,
            concurrency: 1,
            time_limit: None,
            timeout: Duration::from_secs(30),
            window: None,
            bind: None,
            method: "GET".to_owned(),
            body: None,
            content_type: None,
            verbosity: 0,
            html: false,
            attributes: [String::new(), String::new(), "bgcolor=white".to_owned()],
            fields: Vec::new(),
            proxy: None,
            hides_server_name: false,
            ciphers: None,
            version: None,
            identity: None,
            keep_alive: false,
            persistence: Persistence::Close,
            hides_percentiles: false,
            hides_deviation: false,
            quiet: false,
            accepts_any_length: false,
            tolerates_errors: false,
            gnuplot: None,
            csv: None,
            quirks: false,
            linger_max: None,
        }
    }

    fn set(&mut self, name: &str, value: String, typed: &mut Typed) -> Result<(), Fault> {
        match name {
            "n" => self.requests = Some(number(&value, 1..=REQUESTS_MAX, "number of requests")?),
            "c" => {
                let range = 1..=CONCURRENCY_MAX as u64;
                self.concurrency = number(&value, range, "concurrency [range 1..20000]")? as usize;
            }
            "t" => {
                let seconds = number(&value, 1..=REQUESTS_MAX, "time limit in seconds")?;
                self.time_limit = Some(Duration::from_secs(seconds));
                if self.quirks {
                    // A number that was given before is lost.
                    self.requests = None;
                }
            }
            "s" => {
                let seconds = number(&value, 1..=REQUESTS_MAX, "timeout in seconds")?;
                self.timeout = Duration::from_secs(seconds);
            }
            "b" => {
                self.window = Some(number(&value, 1..=REQUESTS_MAX, "window size")? as usize);
            }
            "B" => {
                let address = value.parse();
                let fault = |_| refused(format!("-B: {value:?} is no IP address"));
                self.bind = Some(address.map_err(fault)?);
            }
            "v" => self.verbosity = number(&value, 0..=1_000, "verbosity")? as i32,
            "i" => self.use_method("HEAD")?,
            "m" => self.use_method(&value)?,
            "p" | "u" => {
                self.use_method(if name == "p" { "POST" } else { "PUT" })?;
                self.body = Some(value.into());
            }
            "T" => self.content_type = Some(value),
            "w" => self.html = true,
            "x" | "y" | "z" => {
                self.html = true;
                let at = usize::from(name.as_bytes()[0] - b'x');
                self.attributes[at] = value;
            }
            "C" => typed.cookies.push(value),
            "H" => return self.add_field(&value, typed),
            "A" => typed.login = Some(credentials(name, &value)?),
            "P" => typed.proxy_login = Some(credentials(name, &value)?),
            "X" => {
                let proxy = Proxy::parse(&value);
                let fault = |error| refused(format!("-X: {value:?}: {error}"));
                self.proxy = Some(proxy.map_err(fault)?);
            }
            "k" => self.keep_alive = true,
            "d" => self.hides_percentiles = true,
            "S" => self.hides_deviation = true,
            "q" => self.quiet = true,
            "l" => self.accepts_any_length = true,
            "r" => self.tolerates_errors = true,
            "g" => self.gnuplot = Some(value.into()),
            "e" => self.csv = Some(value.into()),
            "quirks" => {}
            "linger-report" => {
                let given = (!value.is_empty()).then_some(&*value);
                let wait = note::linger_max(given);
                let fault =
                    || refused(format!("--linger-report: {value:?} is no number of seconds"));
                self.linger_max = Some(wait.ok_or_else(fault)?);
            }
            "I" => self.hides_server_name = true,
            "Z" => {
                let ciphers = CipherList::parse(&value);
                self.ciphers = Some(ciphers.map_err(|error| refused(format!("-Z: {error}")))?);
            }
            "f" if value.eq_ignore_ascii_case("ALL") => self.version = None,
            "f" => {
                let version = TlsVersion::parse(&value);
                self.version = Some(version.map_err(|error| refused(format!("-f: {error}")))?);
            }
            "E" => self.identity = Some(value.into()),
            other => return Err(Fault::Usage(format!("illegal option -- {other}"))),
        }
        Ok(())
    }

    /// Only one option may say what the method is.
    fn use_method(&mut self, method: &str) -> Result<(), Fault> {
        if self.method != "GET" && self.method != method {
            let own =
                if matches!(method, "POST" | "PUT" | "HEAD") { method } else { &*self.method };
            return Err(Fault::Refused(format!("Cannot mix {own} with other methods\n")));
        }
        method.clone_into(&mut self.method);
        Ok(())
    }

    fn add_field(&self, line: &str, typed: &mut Typed) -> Result<(), Fault> {
        let Some((name, value)) = line.split_once(':') else {
            return Err(refused(format!(
                "-H {line:?}: a field line is a name, a colon and a value"
            )));
        };
        let value = value.trim();
        if !name.eq_ignore_ascii_case("Connection") {
            typed.own.push((name.to_owned(), value.to_owned()));
            return Ok(());
        }
        // Every request has this field; here it is said what is in it.
        typed.connection = Some(match value.to_ascii_lowercase().as_str() {
            "close" => Persistence::Close,
            "keep-alive" => Persistence::KeepAlive,
            _ => return Err(refused(format!("-H {line:?}: only close and keep-alive are done"))),
        });
        Ok(())
    }

    /// What several options decide together.
    fn complete(&mut self, typed: Typed) -> Result<(), Fault> {
        let unsaid = if self.quirks { Persistence::Unsaid } else { Persistence::Close };
        let of_k = if self.keep_alive { Persistence::KeepAlive } else { unsaid };
        self.persistence = typed.connection.unwrap_or(of_k);
        let mut field = |name: &str, value: String| self.fields.push((name.to_owned(), value));
        if self.quirks {
            typed.cookies.last().into_iter().for_each(|cookie| field("Cookie", cookie.clone()));
        } else if !typed.cookies.is_empty() {
            field("Cookie", typed.cookies.join("; "));
        }
        typed.login.into_iter().for_each(|login| field("Authorization", login));
        match &mut self.proxy {
            Some(proxy) => proxy.authorization = typed.proxy_login,
            None => {
                typed.proxy_login.into_iter().for_each(|login| field("Proxy-Authorization", login))
            }
        }
        if self.body.is_some() {
            let content_type = self.content_type.clone();
            field("Content-Type", content_type.unwrap_or_else(|| "text/plain".to_owned()));
        }
        self.fields.extend(typed.own);
        if self.requests.is_some_and(|requests| self.concurrency as u64 > requests)
            || (self.requests.is_none() && self.time_limit.is_none() && self.concurrency > 1)
        {
            let message = "Cannot use concurrency level greater than total number of requests";
            return Err(Fault::Usage(message.to_owned()));
        }
        Ok(())
    }

    /// What the option is called that names the body.
    pub(super) fn body_name(&self) -> &'static str {
        if self.method == "PUT" { "PUT data file" } else { "POST data file" }
    }

    /// Whether lines tell how far the run is.
    pub(super) fn shows_progress(&self) -> bool {
        !self.quiet && self.count() > PROGRESS_REQUESTS_MIN
    }

    /// Most requests of the run.
    pub(super) fn count(&self) -> u64 {
        match (self.requests, self.time_limit) {
            (Some(requests), _) => requests,
            (None, Some(_)) => super::plan::REQUESTS_TIMED,
            (None, None) => 1,
        }
    }
}

fn refused(message: String) -> Fault {
    Fault::Refused(format!("ab: {message}"))
}

fn number(text: &str, range: std::ops::RangeInclusive<u64>, what: &str) -> Result<u64, Fault> {
    let number = text.parse().ok().filter(|number| range.contains(number));
    number.ok_or_else(|| Fault::Refused(format!("Invalid {what}\n")))
}

fn credentials(name: &str, text: &str) -> Result<String, Fault> {
    if !text.contains(':') {
        return Err(refused(format!("-{name}: credentials are a user, a colon and a password")));
    }
    Ok(format!("Basic {}", crate::base64::encode(text.as_bytes())))
}

/// A URL as ab takes it: the scheme may be missing, the slash after the host not.
fn url(text: &str) -> Result<HttpUrl, Fault> {
    let rest = match text.split_once("://") {
        Some((_, rest)) => rest,
        None => text,
    };
    if !rest.contains('/') {
        return Err(Fault::Usage("invalid URL".to_owned()));
    }
    let with_scheme = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    HttpUrl::parse(&with_scheme).map_err(|error| Fault::Usage(format!("invalid URL: {error}")))
}

/// Whether the known defects are asked for. Known first, as they change what other options mean.
fn quirks(settings: &[(String, String)]) -> Result<bool, Fault> {
    match settings.iter().rfind(|(name, _)| name == "quirks") {
        None => Ok(false),
        Some((_, value)) if value == "ab24" => Ok(true),
        Some((_, value)) => Err(refused(format!("--quirks={value}: only ab24 is known"))),
    }
}
