//! Gives every directive of httpd a score of values and asks httpd and milepost which they load.
//!
//! `values [--only PART] [--from NAME] [--words]` prints each line that one of them takes and the other does not, and a
//! total. `--from` begins at a directive of the engine's table. With `--words`, directives that refuse a word they do not know are given every keyword of
//! [`WORDS`] too. Exit 0: all agree, 1: some differ, 2: could not run.
//!
//! What httpd says is one run of `httpd -t` for each line: it stops at the first error.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for people")]

use std::collections::BTreeSet;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use milepost_engine::{LoadOptions, Lookup, Purpose, Severity, Site};
use milepost_testkit::disk::Disk;
use milepost_testkit::httpd::{HttpdError, Program};

/// Processes of httpd at a time.
const THREADS: usize = 2;

/// Arguments of any directive: nothing, numbers in and out of range, units, words, paths, several.
const VALUES: [&str; 18] = [
    "",
    "On",
    "Off",
    "0",
    "1",
    "-1",
    "300",
    "99999999999999999999",
    "10s",
    "8k",
    "x",
    "/none/x",
    "\"\"",
    "text/html",
    "a b",
    "1 2",
    "On x",
    "a b c",
];

/// Words that some directive knows.
const WORDS: [&str; 92] = [
    "Any",
    "Min",
    "Full",
    "Prod",
    "Double",
    "DNS",
    "EMail",
    "Extended",
    "Default",
    "Auto",
    "Inherit",
    "Before",
    "After",
    "Netscape",
    "Cookie",
    "Cookie2",
    "RFC2109",
    "RFC2965",
    "Lax",
    "Strict",
    "optional",
    "require",
    "optional_no_ca",
    "leaf",
    "chain",
    "builtin",
    "SSL",
    "TLS",
    "STARTTLS",
    "never",
    "finding",
    "searching",
    "always",
    "Basic",
    "Digest",
    "Form",
    "auth",
    "auth-int",
    "MD5",
    "MD5-sess",
    "file",
    "dbm",
    "disk",
    "socache",
    "conn",
    "once",
    "server",
    "thread",
    "request",
    "stat",
    "forever",
    "And",
    "Or",
    "fcgi",
    "FPM",
    "GENERIC",
    "IsError",
    "Ignore",
    "StartBody",
    "Block",
    "error",
    "nocontent",
    "map",
    "referer",
    "NoDecode",
    "Conn",
    "NegotiatedOnly",
    "Handlers",
    "Filters",
    "Prefer",
    "Fallback",
    "Ascending",
    "permanent",
    "temp",
    "seeother",
    "disabled",
    "debug",
    "trace8",
    "info",
    "MTime",
    "INode Size",
    "Digest Size",
    "HTTP",
    "TCP4",
    "h2",
    "http/1.1",
    "file:/x",
    "shmcb:/x",
    "dbm:/x",
    "env",
    "A100 x",
    "\"access plus 1 day\"",
];

/// Modules that others need loaded before them.
const FIRST: [&str; 8] = ["ldap", "dbd", "proxy", "session", "dav", "cache", "watchdog", "xml2enc"];
/// One process model is enough.
const LEFT_OUT: [&str; 2] = ["mpm_prefork", "mpm_worker"];

/// A line to be judged.
struct Trial {
    name: String,
    line: String,
    place: &'static str,
}

fn main() -> ExitCode {
    match run() {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::from(1),
        Err(error) => {
            eprintln!("values: {error}");
            ExitCode::from(2)
        }
    }
}

/// Returns how many lines differ.
fn run() -> Result<usize, Box<dyn Error>> {
    let (mut only, mut from, mut with_words) = (String::new(), String::new(), false);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--only" => only = arguments.next().ok_or("--only needs a value")?.to_lowercase(),
            "--from" => from = arguments.next().ok_or("--from needs a value")?,
            "--words" => with_words = true,
            _ => return Err(format!("unknown argument {argument}").into()),
        }
    }
    let program = with_all_modules(Program::find()?)?;
    let mut names = directives()?;
    names.retain(|(name, _)| name.to_lowercase().contains(&only));
    let at = names.iter().position(|(name, _)| name.eq_ignore_ascii_case(&from)).unwrap_or(0);
    names.drain(..at);
    let refused = Mutex::new(BTreeSet::new());
    let trials = trials(&names, &VALUES);
    let mut differ = judge(&program, &trials, &refused)?;
    let mut count = trials.len();
    if with_words {
        let refused = refused.lock().map_err(|_| "a thread panicked")?.clone();
        names.retain(|(name, _)| refused.contains(name));
        let trials = self::trials(&names, &WORDS);
        count += trials.len();
        differ += judge(&program, &trials, &Mutex::default())?;
    }
    println!("{count} lines, {differ} differ");
    Ok(differ)
}

/// The names and places of the engine's own table.
fn directives() -> Result<Vec<(String, &'static str)>, Box<dyn Error>> {
    let table = Path::new(env!("CARGO_MANIFEST_DIR")).join("../engine/src/build/known.txt");
    let text = fs::read_to_string(table)?;
    let mut names = Vec::new();
    for line in text.lines().filter(|line| line.starts_with("  ")) {
        let mut words = line.split_whitespace();
        let (Some(name), Some(place), Some(class)) = (words.next(), words.next(), words.next())
        else {
            continue;
        };
        let place = match (place, class) {
            ("main", _) => "main",
            ("server", _) | ("any", "-") => "host",
            _ => "directory",
        };
        if !name.starts_with('<') {
            names.push((name.to_owned(), place));
        }
    }
    Ok(names)
}

fn trials(names: &[(String, &'static str)], values: &[&str]) -> Vec<Trial> {
    let all = names.iter().flat_map(|(name, place)| {
        values.iter().map(move |value| Trial {
            name: name.clone(),
            line: format!("{name} {value}").trim_end().to_owned(),
            place,
        })
    });
    all.collect()
}

/// Prints what differs and returns how many lines do; `refused` gets the names that refuse an odd word.
fn judge(
    program: &Program,
    trials: &[Trial],
    refused: &Mutex<BTreeSet<String>>,
) -> Result<usize, Box<dyn Error>> {
    let (next, differ) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let work = |folder: PathBuf| -> Result<(), String> {
        fs::create_dir_all(folder.join("logs")).map_err(|error| error.to_string())?;
        while let Some(trial) = trials.get(next.fetch_add(1, Ordering::Relaxed)) {
            let conf = folder.join("httpd.conf");
            fs::write(&conf, text(program, trial, &folder)).map_err(|error| error.to_string())?;
            let theirs = match program.check(&conf) {
                Ok(()) => None,
                Err(HttpdError::Refused(refusal)) => Some(refusal.message),
                Err(error) => return Err(error.to_string()),
            };
            if theirs.is_some() && trial.line.ends_with(" x") {
                refused.lock().map_err(|_| "a thread panicked")?.insert(trial.name.clone());
            }
            let ours = load(&folder, conf);
            if ours.is_some() != theirs.is_some() {
                differ.fetch_add(1, Ordering::Relaxed);
                let say =
                    |verdict: Option<String>| verdict.unwrap_or_else(|| "takes it".to_owned());
                println!(
                    "{} ({})\n  httpd    {}\n  milepost {}",
                    trial.line,
                    trial.place,
                    say(theirs),
                    say(ours)
                );
            }
        }
        Ok(())
    };
    let root = std::env::temp_dir().join(format!("milepost-values-{}", std::process::id()));
    let done: Result<Vec<()>, String> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|number| {
                scope.spawn({
                    let (work, folder) = (&work, root.join(number.to_string()));
                    move || work(folder)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().map_err(|_| "a thread panicked")?).collect()
    });
    fs::remove_dir_all(&root)?;
    done?;
    Ok(differ.into_inner())
}

fn text(program: &Program, trial: &Trial, folder: &Path) -> String {
    let line = &trial.line;
    let body = match trial.place {
        "main" => line.clone(),
        "host" => format!("<VirtualHost *:80>\n{line}\n</VirtualHost>"),
        _ => format!("<Directory \"/srv\">\n{line}\n</Directory>"),
    };
    let modules = program.load_modules();
    format!(
        "ServerRoot \"{}\"\nListen 127.0.0.1:80\n{modules}ServerName main.test\n{body}\n",
        folder.display()
    )
}

/// What milepost has against a configuration, if anything.
fn load(folder: &Path, file: PathBuf) -> Option<String> {
    let options = LoadOptions {
        server_root: folder.to_owned(),
        file: Some(file),
        lookup: Lookup::Index,
        purpose: Purpose::Look,
        ..LoadOptions::default()
    };
    let loaded = Site::load(&options, &Disk::default());
    let errors = loaded.diagnostics.iter().filter(|found| found.severity == Severity::Error);
    loaded.site.is_none().then(|| errors.map(|error| error.message.clone()).collect())
}

fn with_all_modules(program: Program) -> Result<Program, Box<dyn Error>> {
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
