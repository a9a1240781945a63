//! `milepost check`: what is wrong with a configuration, before a server meets it.

mod access_files;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use milepost_engine::{Diagnostic, Purpose, Severity};
use milepost_server::FileSystem;
use serde_json::{Value, json};

use super::configuration::Configuration;

/// Arguments of `milepost check`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit status: 0 clean (notes do not count), 1 findings, and it loads all the same, 2 does not load.")]
pub(crate) struct Args {
    #[command(flatten)]
    configuration: Configuration,
    /// How findings are printed
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
    /// Only load it: do not look for rules that can never answer and the like
    #[arg(long)]
    no_lints: bool,
    /// Configuration file, as with -f; or a directory whose .htaccess files are meant, with those of all
    /// directories in it, as `AllowOverride All` has them; or one file whose name ends in .htaccess
    #[arg(default_value = ".", conflicts_with = "file")]
    path: PathBuf,
}

/// The forms that findings are printed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// For people: the line, a mark below it, and what to do
    Human,
    /// One JSON array
    Json,
    /// SARIF 2.1.0, for code review tools
    Sarif,
}

/// The configuration does not load.
const EXIT_DOES_NOT_LOAD: u8 = 2;
/// It loads, and something was found.
const EXIT_FINDINGS: u8 = 1;

/// Runs `milepost check`.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let path = &args.path;
    let access_files = match args.configuration.file {
        None if path.is_dir() || access_files::is_one(path) => Some(access_files::find(path)?),
        _ => None,
    };
    let path = if access_files::is_one(path) { parent(path) } else { path };
    let (loaded, _) = args.configuration.load(path, Purpose::Look)?;
    let mut diagnostics = loaded.diagnostics;
    if let Some(site) = &loaded.site {
        if !args.no_lints {
            diagnostics.extend(site.lint());
        }
        for file in access_files.iter().flatten() {
            let text = fs::read(file).with_context(|| file.display().to_string())?;
            let mut read = site.htaccess(file, text, &FileSystem);
            diagnostics.append(&mut read.diagnostics);
            if !args.no_lints {
                diagnostics.extend(read.lint());
            }
        }
    }
    let mut out = io::stdout().lock();
    match args.format {
        Format::Human => {
            for diagnostic in &diagnostics {
                writeln!(out, "{diagnostic}\n")?;
            }
            writeln!(out, "{}", summary(&diagnostics, access_files.as_deref()))?;
        }
        Format::Json => {
            let findings: Vec<Value> = diagnostics.iter().map(as_json).collect();
            serde_json::to_writer_pretty(&mut out, &findings)?;
            writeln!(out)?;
        }
        Format::Sarif => {
            serde_json::to_writer_pretty(&mut out, &as_sarif(&diagnostics))?;
            writeln!(out)?;
        }
    }
    Ok(match diagnostics.iter().map(|found| found.severity).max() {
        Some(Severity::Error) => ExitCode::from(EXIT_DOES_NOT_LOAD),
        Some(Severity::Warning) => ExitCode::from(EXIT_FINDINGS),
        Some(Severity::Note) | None => ExitCode::SUCCESS,
    })
}

/// The directory of a file.
fn parent(file: &Path) -> &Path {
    file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// `2 errors, 1 warning`, or that all is well; in how many `.htaccess` files, if it was about them.
fn summary(diagnostics: &[Diagnostic], files: Option<&[PathBuf]>) -> String {
    let count = |severity| {
        let count = diagnostics.iter().filter(|found| found.severity == severity).count();
        let plural = if count == 1 { "" } else { "s" };
        (count > 0).then(|| format!("{count} {severity}{plural}"))
    };
    let counts = [Severity::Error, Severity::Warning, Severity::Note].map(count);
    let counts: Vec<String> = counts.into_iter().flatten().collect();
    let found = if counts.is_empty() { "nothing found".to_owned() } else { counts.join(", ") };
    match files.map(<[PathBuf]>::len) {
        None => found,
        Some(0) => format!("{found}: there is no .htaccess file"),
        Some(1) => format!("{found} in 1 .htaccess file"),
        Some(count) => format!("{found} in {count} .htaccess files"),
    }
}

fn as_json(found: &Diagnostic) -> Value {
    json!({
        "severity": found.severity.to_string(),
        "file": found.file,
        "line": found.line,
        "column": found.column,
        "length": found.length,
        "message": found.message,
        "hint": found.hint,
        "also": found.also.as_ref().map(|(file, line, what)| json!({
            "file": file, "line": line, "message": what,
        })),
    })
}

fn as_sarif(diagnostics: &[Diagnostic]) -> Value {
    let location = |file: &Path, line: u32, column: Option<(u32, u32)>| {
        let mut region = json!({ "startLine": line.max(1) });
        if let Some((start, length)) = column {
            region["startColumn"] = json!(start.max(1));
            region["endColumn"] = json!(start.max(1) + length);
        }
        json!({ "physicalLocation": { "artifactLocation": { "uri": file }, "region": region } })
    };
    let result = |found: &Diagnostic| {
        let text = match &found.hint {
            Some(hint) => format!("{} ({hint})", found.message),
            None => found.message.clone(),
        };
        let also = found.also.iter().map(|(file, line, what)| {
            let mut place = location(file, *line, None);
            place["message"] = json!({ "text": what });
            place
        });
        json!({
            "level": found.severity.to_string(),
            "message": { "text": text },
            "locations": [location(&found.file, found.line, Some((found.column, found.length)))],
            "relatedLocations": also.collect::<Vec<_>>(),
        })
    };
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": { "name": "milepost", "version": env!("CARGO_PKG_VERSION") } },
            "results": diagnostics.iter().map(result).collect::<Vec<_>>(),
        }],
    })
}
