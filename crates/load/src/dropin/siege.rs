//! `siege`: its command line, resource file and URL lists, its lines, report and log.
//!
//! A transaction is one exchange, as in siege: a redirect that is followed makes two. What differs is
//! what siege gets wrong: every user draws every URL with the same probability, times are not rounded
//! to hundredths of a second before they are added up, redirects end after twenty or when they go
//! round in a circle, and a run of a minute takes a minute.
//!
//! Source: the observed behaviour and the manual of siege 4.0.7.

mod expand;
mod options;
mod plan;
mod recorder;
mod resource;
mod settings;
mod text;
mod urls;

use super::{Outside, note};
use crate::control::Control;
use crate::report::Ended;
use crate::run::run_observed;

use options::Asked;
use recorder::Recorder;
use settings::{Mode, Settings};

/// It could not do what it was asked to.
const EXIT_FAILURE: u8 = 1;

/// Why there is no run.
#[derive(Debug, PartialEq, Eq)]
enum Fault {
    /// The command line is none of siege's: siege prints its help, and exits with 0.
    Usage(String),
    /// It cannot be done.
    Fatal(String),
}

/// Runs siege with the words after its name, and returns its exit code.
pub(super) fn run(words: &[String], outside: &dyn Outside, control: &Control) -> u8 {
    let settings = match options::parse(words, outside) {
        Ok(Asked::Run(settings)) => settings,
        Ok(Asked::Version) => {
            outside.out(&format!("{}\n\n", text::name()));
            return 0;
        }
        Ok(Asked::Help) => {
            outside.out(text::USAGE);
            return 0;
        }
        Ok(Asked::Configuration(settings, file)) => {
            outside.out(&text::configuration(&settings, file.as_deref()));
            return 0;
        }
        Err(fault) => return refuse(&fault, outside),
    };
    match besiege(&settings, outside, control) {
        Ok(()) => 0,
        Err(fault) => refuse(&fault, outside),
    }
}

fn besiege(settings: &Settings, outside: &dyn Outside, control: &Control) -> Result<(), Fault> {
    let plan = plan::plan(settings, outside)?;
    if let Some(text) = text::capped(settings) {
        outside.out(&text);
    }
    let is_quiet = settings.quiet || settings.json;
    if !is_quiet && settings.mode != Mode::Get {
        outside.err(&text::opening(plan.connections));
    }
    let recorder = Recorder::new(settings, outside, control, plan.connections);
    let report =
        run_observed(&plan, control, &recorder).map_err(|error| Fault::Fatal(error.to_string()))?;
    let taken = recorder.into_taken();
    let is_lifted = settings.time.is_some() || report.ended == Ended::Interrupted;
    if !is_quiet && is_lifted && !taken.aborted {
        outside.err("\nLifting the server siege...");
    }
    if taken.aborted {
        outside.err(text::ABORTED);
    }
    let figures = text::Figures::new(settings, &report, &taken);
    if settings.json {
        outside.err("\n");
        outside.out(&figures.json());
    } else if !settings.quiet {
        outside.err(&format!("\n{}", figures.report(settings.quirks)));
        outside.err(&note::times(&report));
        outside.err(&note::notes(&report, "siege", settings.linger_max.is_some()));
    }
    log(settings, outside, &figures)
}

/// Adds to the log file what it is to have.
fn log(settings: &Settings, outside: &dyn Outside, figures: &text::Figures) -> Result<(), Fault> {
    if !settings.logging || settings.mode != Mode::Siege {
        return Ok(());
    }
    let path = &settings.logfile;
    let mut rows = String::new();
    if outside.read(path).is_err() {
        rows.push_str(text::LOG_HEADER);
    }
    if let Some(mark) = &settings.mark {
        rows.push_str(&format!("**** {mark} ****\n"));
    }
    rows.push_str(&figures.log_row());
    outside.append(path, &rows).map_err(|error| {
        Fault::Fatal(format!("unable to open log file {}: {error}", path.display()))
    })?;
    if settings.show_logfile && !settings.quiet && !settings.json {
        outside.err(&text::log_note(path));
    }
    Ok(())
}

fn refuse(fault: &Fault, outside: &dyn Outside) -> u8 {
    match fault {
        Fault::Usage(message) => {
            outside.err(&format!("{message}\n"));
            outside.out(text::USAGE);
            0
        }
        Fault::Fatal(message) => {
            outside.err(&format!("[fatal] {message}\n"));
            EXIT_FAILURE
        }
    }
}

#[cfg(test)]
mod tests;
