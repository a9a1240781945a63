//! http_load's command line: words that may be cut short anywhere, as long as they lead somewhere.
//!
//! A word stands for the first flag of the list that it begins, so `-s` is `-seconds` and `-p` is
//! `-parallel`.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use crate::dropin::note;

/// Bytes a second of a modem of 33.6 kbit/s, as `-throttle` has it: ten bits for a byte.
const THROTTLE_BYTES: f64 = 3_360.0;

/// Bits for a byte on a line with a start and a stop bit, as `-Throttle` counts.
const BITS_PER_BYTE: f64 = 10.0;

/// How often `-verbose` says how far it is.
const PROGRESS_EVERY: Duration = Duration::from_secs(60);

/// A connection on which nothing moves for this long is given up.
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(60);

/// Longest time that can be asked for, in seconds: a year.
const SECONDS_MAX: f64 = 365.0 * 86_400.0;

/// Most connections that can be asked for: with more, no address has enough ports.
const PARALLEL_MAX: usize = 65_536;

/// Highest rate of http_load, whose timer counts milliseconds.
const RATE_MAX_QUIRKS: f64 = 1_000.0;

/// Flags in the order in which a word is held against them, each with whether it has a value.
const FLAGS: [(&str, bool); 15] = [
    ("-checksum", false),
    ("-throttle", false),
    ("-Throttle", true),
    ("-verbose", false),
    ("-timeout", true),
    ("-jitter", false),
    ("-parallel", true),
    ("-rate", true),
    ("-fetches", true),
    ("-seconds", true),
    ("-seed", true),
    ("-sip", true),
    ("-cipher", true),
    ("-proxy", true),
    ("-header", true),
];

/// Flags of http_load_ng that are not done, so that nothing is taken for something else.
const NOT_DONE: [&str; 1] = ["-hostaliases"];

/// What the command line asks for.
#[derive(Debug)]
pub(super) enum Asked {
    Run(Box<Options>),
    Help,
}

/// A run of http_load.
#[derive(Debug, PartialEq)]
pub(super) struct Options {
    pub(super) start: Start,
    pub(super) stop: End,
    pub(super) checksum: bool,
    /// Bytes a second of each connection.
    pub(super) throttle: Option<f64>,
    pub(super) progress_every: Option<Duration>,
    pub(super) timeout: Duration,
    pub(super) seed: u64,
    pub(super) sources: Option<PathBuf>,
    /// With the keywords in the place of ciphers resolved.
    pub(super) cipher: Option<String>,
    pub(super) proxy: Option<String>,
    pub(super) fields: Vec<(String, String)>,
    pub(super) url_file: PathBuf,
    /// Whether the defects of http_load are asked for.
    pub(super) quirks: bool,
    /// Given by `--linger-report`.
    pub(super) linger_max: Option<Duration>,
}

/// When fetches are started.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Start {
    /// As many at a time.
    Parallel(usize),
    /// As many a second.
    Rate { per_second: f64, jitter: bool },
}

/// When the run ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum End {
    Fetches(u64),
    Seconds(Duration),
}

impl Options {
    /// Reads the words after the name of the program.
    ///
    /// # Errors
    ///
    /// What is wrong with them first.
    pub(super) fn parse(words: &[String]) -> Result<Asked, String> {
        let mut typed = Typed::default();
        let mut words = words.iter().peekable();
        while let Some(word) = words.next_if(|word| word.starts_with('-') && word.len() > 1) {
            if matches!(word.as_str(), "--help" | "-help" | "-h") {
                return Ok(Asked::Help);
            }
            if let Some(own) = word.strip_prefix("--") {
                typed.set_own(own)?;
                continue;
            }
            let (flag, has_value) = flag(word)?;
            let value = match has_value {
                false => "",
                true => words.next().ok_or_else(|| format!("{flag} needs a value"))?,
            };
            typed.set(flag, value)?;
        }
        let url_file = match (words.next(), words.next()) {
            (Some(file), None) => file.into(),
            (None, _) => return Err("the file of URLs is missing".to_owned()),
            (Some(_), Some(more)) => {
                return Err(format!("one file of URLs is the last word, not {more:?}"));
            }
        };
        typed.into_options(url_file).map(|options| Asked::Run(Box::new(options)))
    }
}

/// The flag that a word stands for, and whether it has a value.
fn flag(word: &str) -> Result<(&'static str, bool), String> {
    if let Some((flag, has_value)) = FLAGS.iter().find(|(flag, _)| flag.starts_with(word)) {
        return Ok((flag, *has_value));
    }
    Err(match NOT_DONE.iter().find(|flag| flag.starts_with(word)) {
        Some(flag) => format!("{flag}: not done in milepost http_load"),
        None => format!("unknown flag {word}"),
    })
}

/// What is collected before it can be checked together.
#[derive(Debug, Default)]
struct Typed {
    parallel: Option<usize>,
    rate: Option<f64>,
    jitter: bool,
    fetches: Option<u64>,
    seconds: Option<Duration>,
    checksum: bool,
    throttle: Option<f64>,
    verbose: bool,
    timeout: Option<Duration>,
    seed: u64,
    sources: Option<PathBuf>,
    cipher: Option<String>,
    proxy: Option<String>,
    fields: Vec<(String, String)>,
    quirks: bool,
    linger_max: Option<Duration>,
}

impl Typed {
    fn set(&mut self, flag: &str, value: &str) -> Result<(), String> {
        match flag {
            "-checksum" => self.checksum = true,
            "-throttle" => self.throttle = Some(THROTTLE_BYTES),
            "-Throttle" => {
                let bits = number(flag, value, "a number of bits a second")?;
                self.throttle = Some(positive(flag, value, bits)? / BITS_PER_BYTE);
            }
            "-verbose" => self.verbose = true,
            "-timeout" => self.timeout = Some(seconds(flag, value)?),
            "-jitter" => self.jitter = true,
            "-parallel" => {
                let parallel = number(flag, value, "a number of connections")?;
                if !(1..=PARALLEL_MAX).contains(&parallel) {
                    return Err(format!("-parallel is from 1 to {PARALLEL_MAX}, not {value}"));
                }
                self.parallel = Some(parallel);
            }
            "-rate" => {
                let rate = number(flag, value, "a number of fetches a second")?;
                self.rate = Some(positive(flag, value, rate)?);
            }
            "-fetches" => {
                let fetches = number(flag, value, "a number of fetches")?;
                if fetches == 0 {
                    return Err("-fetches is at least 1, not 0".to_owned());
                }
                self.fetches = Some(fetches);
            }
            "-seconds" => self.seconds = Some(seconds(flag, value)?),
            "-seed" => self.seed = number(flag, value, "a whole number")?,
            "-sip" => self.sources = Some(value.into()),
            "-cipher" => self.cipher = Some(cipher(value).to_owned()),
            "-proxy" => self.proxy = Some(value.to_owned()),
            _ => match value.split_once(':') {
                Some((name, value)) => {
                    self.fields.push((name.trim().to_owned(), value.trim().to_owned()));
                }
                None => {
                    return Err(format!("-header needs a name, a colon and a value: {value:?}"));
                }
            },
        }
        Ok(())
    }

    fn set_own(&mut self, word: &str) -> Result<(), String> {
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (word, None),
        };
        match (name, value) {
            ("quirks", Some("http_load")) => self.quirks = true,
            ("quirks", _) => return Err("the quirks are --quirks=http_load".to_owned()),
            ("linger-report", value) => {
                let wait = note::linger_max(value);
                self.linger_max =
                    Some(wait.ok_or("--linger-report needs a number of seconds".to_owned())?);
            }
            _ => return Err(format!("unknown option --{word}")),
        }
        Ok(())
    }

    fn into_options(self, url_file: PathBuf) -> Result<Options, String> {
        let start = match (self.parallel, self.rate) {
            (Some(parallel), None) => Start::Parallel(parallel),
            (None, Some(per_second)) => Start::Rate { per_second, jitter: self.jitter },
            _ => return Err("exactly one of -parallel and -rate says when to start".to_owned()),
        };
        let stop = match (self.fetches, self.seconds) {
            (Some(fetches), None) => End::Fetches(fetches),
            (None, Some(length)) => End::Seconds(length),
            _ => return Err("exactly one of -fetches and -seconds says when to end".to_owned()),
        };
        match start {
            Start::Parallel(_) if self.jitter => {
                return Err("-jitter goes with -rate only".to_owned());
            }
            Start::Rate { per_second, .. } if self.quirks && per_second > RATE_MAX_QUIRKS => {
                return Err("rate may be at most 1000".to_owned());
            }
            _ => {}
        }
        Ok(Options {
            start,
            stop,
            checksum: self.checksum,
            throttle: self.throttle,
            progress_every: self.verbose.then_some(PROGRESS_EVERY),
            timeout: self.timeout.unwrap_or(TIMEOUT_DEFAULT),
            seed: self.seed,
            sources: self.sources,
            cipher: self.cipher,
            proxy: self.proxy,
            fields: self.fields,
            url_file,
            quirks: self.quirks,
            linger_max: self.linger_max,
        })
    }
}

/// What a keyword stands for; anything else stands for itself.
fn cipher(name: &str) -> &str {
    match name {
        "fastsec" => "RC4-MD5",
        "highsec" => "DES-CBC3-SHA",
        "paranoid" => "AES256-SHA",
        own => own,
    }
}

fn number<N: FromStr>(flag: &str, value: &str, needs: &str) -> Result<N, String> {
    value.parse().map_err(|_| format!("{flag} needs {needs}, not {value:?}"))
}

fn positive(flag: &str, value: &str, number: f64) -> Result<f64, String> {
    if number.is_finite() && number > 0.0 {
        return Ok(number);
    }
    Err(format!("{flag} is above zero, not {value}"))
}

fn seconds(flag: &str, value: &str) -> Result<Duration, String> {
    let seconds: f64 = number(flag, value, "a number of seconds")?;
    if seconds > 0.0 && seconds <= SECONDS_MAX {
        return Ok(Duration::from_secs_f64(seconds));
    }
    Err(format!("{flag} is above zero and a year at most, not {value}"))
}
