//! Gives directives a score of values and compares which of them httpd loads, and milepost.
//!
//! A process of httpd for each line would take a quarter of an hour, because it stops at the first error. So
//! all lines with one value that milepost takes stand in one configuration, which httpd has to take as a whole;
//! what it names is taken out and looked at by itself. What milepost refuses is asked line by line.

mod words;

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use milepost_engine::{LoadOptions, Purpose, Severity, Site};

use crate::directory::Directory;
use crate::disk::Disk;
use crate::httpd::{HttpdError, Program};

pub use words::{VALUES, WORDS};

/// Modules that others need loaded before them.
const FIRST: [&str; 8] = ["ldap", "dbd", "proxy", "session", "dav", "cache", "watchdog", "xml2enc"];
/// One process model is enough.
const LEFT_OUT: [&str; 2] = ["mpm_prefork", "mpm_worker"];
/// The differences that are meant to be.
const KNOWN: &str = include_str!("values/known.txt");

/// A directive with a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trial {
    name: String,
    value: &'static str,
    place: Place,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Main,
    Host,
    Directory,
}

/// A line that one of the two takes and the other does not.
#[derive(Debug)]
pub struct Difference {
    /// The line.
    pub trial: Trial,
    /// What httpd has against it.
    pub httpd: Option<String>,
    /// What milepost has against it.
    pub milepost: Option<String>,
}

/// What a sweep found.
#[derive(Debug, Default)]
pub struct Found {
    /// How many lines both were asked about.
    pub asked: usize,
    /// Those that differ.
    pub differences: Vec<Difference>,
    /// The directives of lines that milepost refuses.
    pub choosy: BTreeSet<String>,
    /// Entries of `known.txt` none of whose lines differ.
    pub stale: Vec<String>,
}

/// What keeps a sweep from being made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SweepError {
    /// httpd cannot be run.
    #[error(transparent)]
    Httpd(#[from] HttpdError),
    /// A file cannot be read or written.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Trial {
    /// The line of a configuration.
    pub fn line(&self) -> String {
        format!("{} {}", self.name, self.value).trim_end().to_owned()
    }

    /// Whether the two are known to differ about it.
    pub fn is_known(&self) -> bool {
        known().any(|entry| self.is_of(entry))
    }

    /// Whether an entry of `known.txt` is about it.
    fn is_of(&self, (name, value): (&str, &str)) -> bool {
        (name == "*" || name == self.name) && (value == "*" || value == self.value)
    }

    fn text(&self) -> String {
        let line = self.line();
        match self.place {
            Place::Main => line + "\n",
            Place::Host => {
                format!("<VirtualHost *:80>\nServerName host.test\n{line}\n</VirtualHost>\n")
            }
            Place::Directory => format!("<Directory \"/srv\">\n{line}\n</Directory>\n"),
        }
    }
}

/// The entries of `known.txt`.
fn known() -> impl Iterator<Item = (&'static str, &'static str)> {
    let entries = KNOWN.lines().filter(|line| !line.starts_with(['#', '=']));
    entries.filter_map(|entry| entry.split_once(' '))
}

/// Makes a line of each directive in the engine's table whose name `is_wanted`, with each of `values`.
///
/// # Errors
/// When the table cannot be read.
pub fn trials(
    values: &[&'static str],
    is_wanted: impl Fn(&str) -> bool,
) -> Result<Vec<Trial>, SweepError> {
    let mut trials = Vec::new();
    for Known { name, place, .. } in table()? {
        if name.starts_with('<') || !is_wanted(&name) {
            continue;
        }
        trials.extend(values.iter().map(|value| Trial { name: name.clone(), value, place }));
    }
    Ok(trials)
}

/// A directive or section of the engine's table.
#[derive(Debug)]
pub(crate) struct Known {
    /// As httpd writes it; a section begins with `<`.
    pub(crate) name: String,
    /// The source file of its module, or of several.
    pub(crate) module: String,
    place: Place,
}

/// Reads the engine's table of directives.
pub(crate) fn table() -> io::Result<Vec<Known>> {
    let table = Path::new(env!("CARGO_MANIFEST_DIR")).join("../engine/src/build/known.txt");
    let (mut known, mut module) = (Vec::new(), String::new());
    for line in fs::read_to_string(table)?.lines() {
        let Some(entry) = line.strip_prefix("  ") else {
            module = line.to_owned();
            continue;
        };
        let words: Vec<&str> = entry.split_whitespace().collect();
        let [name, place, class, _] = words[..] else { continue };
        let place = match (place, class) {
            ("main", _) => Place::Main,
            ("server" | "proxy", _) | ("any", "-") => Place::Host,
            _ => Place::Directory,
        };
        known.push(Known { name: name.to_owned(), module: module.clone(), place });
    }
    Ok(known)
}

/// Compares the two; of what milepost refuses, httpd is asked about every `one_of`th line.
///
/// # Errors
/// When httpd or the file system does not do its part.
pub fn sweep(program: &Program, trials: &[Trial], one_of: usize) -> Result<Found, SweepError> {
    let sweep = Sweep { program: with_all_modules(program.clone())?, folder: Directory::new()? };
    fs::create_dir_all(sweep.folder.path().join("logs"))?;
    let mut found = Found::default();
    let (mut taken, mut refused) = (Vec::new(), Vec::new());
    for trial in trials {
        match sweep.milepost(trial)? {
            None => taken.push(trial),
            Some(why) => {
                found.choosy.insert(trial.name.clone());
                refused.push((trial, why));
            }
        }
    }
    let values: BTreeSet<&str> = taken.iter().map(|trial| trial.value).collect();
    for value in values {
        let together: Vec<&Trial> = taken
            .iter()
            .copied()
            .filter(|trial| trial.value == value && !trial.is_known())
            .collect();
        found.asked += together.len();
        sweep.together(together, &mut found.differences)?;
    }
    for (trial, why) in refused.into_iter().filter(|(trial, _)| !trial.is_known()).step_by(one_of) {
        found.asked += 1;
        if sweep.httpd(&[trial])?.is_none() {
            let difference = Difference { trial: trial.clone(), httpd: None, milepost: Some(why) };
            found.differences.push(difference);
        }
    }
    for entry in known() {
        let mut about = trials.iter().filter(|trial| trial.is_of(entry)).peekable();
        if about.peek().is_some() && !sweep.any_differs(about)? {
            found.stale.push(format!("{} {}", entry.0, entry.1));
        }
    }
    Ok(found)
}

/// Something httpd has against a configuration, and the number of its line if it says so.
type Objection = (Option<u32>, String);

struct Sweep {
    program: Program,
    folder: Directory,
}

impl Sweep {
    /// Whether one of the lines is taken by one of the two alone. It ends with the first such line.
    fn any_differs<'t>(
        &self,
        mut trials: impl Iterator<Item = &'t Trial>,
    ) -> Result<bool, SweepError> {
        trials.try_fold(false, |differs, trial| {
            Ok(differs || self.httpd(&[trial])?.is_none() != self.milepost(trial)?.is_none())
        })
    }

    /// Finds those of `trials` that httpd does not take.
    fn together(
        &self,
        mut trials: Vec<&Trial>,
        differences: &mut Vec<Difference>,
    ) -> Result<(), SweepError> {
        while let Some((line, message)) = self.httpd(&trials)? {
            if let [trial] = trials[..] {
                differences.push(Difference {
                    trial: trial.clone(),
                    httpd: Some(message),
                    milepost: None,
                });
                return Ok(());
            }
            let Some(at) = line.and_then(|line| self.trial_at(&trials, line)) else {
                let rest = trials.split_off(trials.len() / 2);
                self.together(rest, differences)?;
                continue;
            };
            // It may only be in the way of another.
            let alone = trials.remove(at);
            self.together(vec![alone], differences)?;
        }
        Ok(())
    }

    /// Which of the trials stands at a line.
    fn trial_at(&self, trials: &[&Trial], line: u32) -> Option<usize> {
        let mut last = self.beginning().lines().count();
        trials.iter().position(|trial| {
            last += trial.text().lines().count();
            last >= line as usize
        })
    }

    fn beginning(&self) -> String {
        let root = self.folder.path().display();
        let modules = self.program.load_modules();
        format!("ServerRoot \"{root}\"\nListen 127.0.0.1:80\n{modules}ServerName main.test\n")
    }

    fn write(&self, trials: &[&Trial]) -> io::Result<PathBuf> {
        let conf = self.folder.path().join("httpd.conf");
        let texts = trials.iter().map(|trial| trial.text());
        fs::write(&conf, self.beginning() + &texts.collect::<String>())?;
        Ok(conf)
    }

    /// What httpd has against a configuration, if anything.
    fn httpd(&self, trials: &[&Trial]) -> Result<Option<Objection>, SweepError> {
        match self.program.check(&self.write(trials)?) {
            Ok(()) => Ok(None),
            Err(HttpdError::Refused(refusal)) => {
                Ok(Some((refusal.place.map(|(_, line)| line), refusal.message)))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// What milepost has against a line, if anything.
    fn milepost(&self, trial: &Trial) -> Result<Option<String>, SweepError> {
        let options = LoadOptions {
            server_root: self.folder.path().to_owned(),
            file: Some(self.write(&[trial])?),
            purpose: Purpose::Look,
            ..LoadOptions::default()
        };
        let loaded = Site::load(&options, &Disk::default());
        let errors = loaded.diagnostics.iter().filter(|found| found.severity == Severity::Error);
        Ok(loaded.site.is_none().then(|| errors.map(|error| error.message.clone()).collect()))
    }
}

fn with_all_modules(program: Program) -> io::Result<Program> {
    let mut names: Vec<&'static str> = FIRST.to_vec();
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(program.modules())? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let name = name.strip_prefix("mod_").and_then(|name| name.strip_suffix(".so"));
        found.extend(name.filter(|name| !LEFT_OUT.contains(name)).map(str::to_owned));
    }
    let rest = found.into_iter().filter(|name| !FIRST.contains(&name.as_str()));
    names.extend(rest.map(|name| &*Box::leak(name.into_boxed_str())));
    Ok(program.with_modules(&names))
}
