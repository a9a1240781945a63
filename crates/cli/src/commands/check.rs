//! `milepost check`: what is wrong with a configuration, before a server meets it.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use milepost_engine::{Diagnostic, Severity};
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
    /// Configuration file, as with -f; or a directory whose .htaccess files are meant
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
    let (loaded, _) = args.configuration.load(&args.path)?;
    let mut diagnostics = loaded.diagnostics;
    if let Some(site) = loaded.site.as_ref().filter(|_| !args.no_lints) {
        diagnostics.extend(site.lint());
    }
    let mut out = io::stdout().lock();
    match args.format {
        Format::Human => {
            for diagnostic in &diagnostics {
                writeln!(out, "{diagnostic}\n")?;
            }
            writeln!(out, "{}", summary(&diagnostics))?;
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

/// `2 errors, 1 warning`, or that all is well.
fn summary(diagnostics: &[Diagnostic]) -> String {
    let count = |severity| {
        let count = diagnostics.iter().filter(|found| found.severity == severity).count();
        let plural = if count == 1 { "" } else { "s" };
        (count > 0).then(|| format!("{count} {severity}{plural}"))
    };
    let counts = [Severity::Error, Severity::Warning, Severity::Note].map(count);
    let counts: Vec<String> = counts.into_iter().flatten().collect();
    if counts.is_empty() { "nothing found".to_owned() } else { counts.join(", ") }
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
