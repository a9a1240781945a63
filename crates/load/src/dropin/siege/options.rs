//! siege's command line, and the resource file that it builds on.

use std::path::PathBuf;

use super::Fault;
use super::resource;
use super::settings::{Mode, Reps, Settings};
use crate::dropin::Outside;
use crate::dropin::getopt::{self, Part, Spec, Value};

/// Where the resource file is looked for after `$SIEGERC` and the home directory.
const RESOURCE_FILES: [&str; 3] =
    ["/etc/siege/siegerc", "/etc/siege/siege.conf", "/usr/local/etc/siegerc"];

const SPEC: Spec<'_> = Spec {
    short: "VhvqCDNFpgl::ibr:t:f:d:c:m:H:R:A:T:j",
    long: &[
        ("version", Value::None, "V"),
        ("help", Value::None, "h"),
        ("verbose", Value::None, "v"),
        ("quiet", Value::None, "q"),
        ("config", Value::None, "C"),
        ("debug", Value::None, "D"),
        ("get", Value::None, "g"),
        ("print", Value::None, "p"),
        ("concurrent", Value::Required, "c"),
        ("no-parser", Value::None, "N"),
        ("no-follow", Value::None, "F"),
        ("reps", Value::Required, "r"),
        ("time", Value::Required, "t"),
        ("delay", Value::Required, "d"),
        ("benchmark", Value::None, "b"),
        ("internet", Value::None, "i"),
        ("file", Value::Required, "f"),
        ("rc", Value::Required, "R"),
        ("log", Value::Optional, "l"),
        ("mark", Value::Required, "m"),
        ("header", Value::Required, "H"),
        ("user-agent", Value::Required, "A"),
        ("content-type", Value::Required, "T"),
        ("json-output", Value::None, "j"),
        ("quirks", Value::Required, "quirks"),
        ("linger-report", Value::Optional, "linger-report"),
    ],
    permutes: true,
};

/// What the command line asks for.
#[derive(Debug)]
pub(super) enum Asked {
    Run(Box<Settings>),
    Version,
    Help,
    /// The settings, and the resource file that they are from.
    Configuration(Box<Settings>, Option<PathBuf>),
}

/// Reads the words after the name of the program, and the resource file.
///
/// # Errors
///
/// What is wrong with them first.
pub(super) fn parse(words: &[String], outside: &dyn Outside) -> Result<Asked, Fault> {
    let parts = SPEC.split(words).map_err(|fault| {
        Fault::Usage(match fault {
            getopt::Fault::Unknown(name) if name.starts_with("--") => {
                format!("siege: unrecognized option '{name}'")
            }
            getopt::Fault::Unknown(name) => format!("siege: invalid option -- '{name}'"),
            getopt::Fault::NoValue(name) => {
                format!("siege: option requires an argument -- '{name}'")
            }
            getopt::Fault::Surplus(name) => {
                format!("siege: option '--{name}' doesn't allow an argument")
            }
            getopt::Fault::Ambiguous(name) => format!("siege: option '--{name}' is ambiguous"),
        })
    })?;
    let has = |wanted: &str| {
        parts.iter().any(|part| matches!(part, Part::Option(name, _) if name == wanted))
    };
    if has("h") {
        return Ok(Asked::Help);
    }
    if has("V") {
        return Ok(Asked::Version);
    }
    let mut settings = Settings::default();
    let named = parts.iter().rev().find_map(|part| match part {
        Part::Option(name, value) if name == "R" => value.clone(),
        _ => None,
    });
    let file = read_resource(&mut settings, named, outside)?;
    let by_file = (settings.reps, settings.time);
    let asks_configuration = has("C");
    for part in parts {
        match part {
            // The last word is the URL.
            Part::Operand(url) => settings.url = Some(url),
            Part::Option(name, value) => set(&mut settings, &name, value.unwrap_or_default())?,
        }
    }
    if asks_configuration {
        return Ok(Asked::Configuration(Box::new(settings), file));
    }
    if settings.mode != Mode::Siege {
        settings.concurrent = 1;
        (settings.reps, settings.time) = (Reps::Count(1), None);
        settings.logging = false;
    }
    if settings.time.is_some() && settings.reps != Reps::Endless {
        // What is typed counts more than what the file says; on a level, time does.
        match (settings.reps != by_file.0, settings.time != by_file.1) {
            (true, false) => settings.time = None,
            (false, true) => settings.reps = Reps::Endless,
            _ => {
                settings.reps = Reps::Endless;
                outside.err(&super::text::conflict(&settings));
            }
        }
    }
    Ok(Asked::Run(Box::new(settings)))
}

fn set(settings: &mut Settings, name: &str, value: String) -> Result<(), Fault> {
    let key = match name {
        "v" => "verbose",
        "q" => "quiet",
        "N" => {
            settings.parser = false;
            return Ok(());
        }
        "F" => {
            settings.follow = false;
            return Ok(());
        }
        "g" | "p" => {
            settings.mode = if name == "g" { Mode::Get } else { Mode::Print };
            return Ok(());
        }
        "l" => {
            settings.logging = true;
            if value.is_empty() {
                return Ok(());
            }
            "logfile"
        }
        "m" => {
            settings.logging = true;
            "mark"
        }
        "i" => "internet",
        "b" => "benchmark",
        "j" => "json_output",
        "r" => "reps",
        "t" => "time",
        "f" => "file",
        "d" => "delay",
        "c" => "concurrent",
        "H" => "header",
        "A" => "user-agent",
        "T" => "content-type",
        "D" => {
            return Err(Fault::Fatal(
                "-D: not done in milepost siege; -g shows the heads of an exchange".to_owned(),
            ));
        }
        "R" | "C" => return Ok(()),
        ours => ours,
    };
    let is_flag = matches!(name, "v" | "q" | "i" | "b" | "j");
    settings.set(key, if is_flag { "true" } else { &value })
}

/// Reads the resource file: the one that is named, or the first that there is.
fn read_resource(
    settings: &mut Settings,
    named: Option<String>,
    outside: &dyn Outside,
) -> Result<Option<PathBuf>, Fault> {
    let named = named.or_else(|| outside.variable("SIEGERC")).map(PathBuf::from);
    let (path, text) = match named {
        Some(path) => {
            let text = outside.read(&path).map_err(|error| {
                Fault::Fatal(format!("unable to open resource file {}: {error}", path.display()))
            })?;
            (path, text)
        }
        None => {
            let home = outside.variable("HOME").map(PathBuf::from);
            let own = home.map(|home| home.join(".siege/siege.conf"));
            let mut places = own.into_iter().chain(RESOURCE_FILES.map(PathBuf::from));
            match places.find_map(|path| Some((outside.read(&path).ok()?, path))) {
                Some((text, path)) => (path, text),
                None => return Ok(None),
            }
        }
    };
    let text = String::from_utf8_lossy(&text);
    for entry in resource::parse(&text, Settings::knows, |name| outside.variable(name)) {
        settings.set(&entry.key, &entry.value).map_err(|fault| match fault {
            Fault::Fatal(message) => {
                Fault::Fatal(format!("{}:{}: {message}", path.display(), entry.line))
            }
            usage @ Fault::Usage(_) => usage,
        })?;
    }
    Ok(Some(path))
}
