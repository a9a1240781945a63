//! `ab`: its command line, its output, its files, its exit codes.
//!
//! Requests speak HTTP/1.0 as ab's do, but say `Connection: close`, or `keep-alive` with `-k`: what is
//! left unsaid costs an idle timeout for each answer when client and server disagree about it. For the
//! same reason an answer ends where its framing says. Both are what ab is most often wrong about.
//!
//! Source: the observed behaviour and the manual of ab 2.3 (httpd 2.4).

mod files;
mod html;
mod options;
mod plan;
mod recorder;
mod text;

use std::path::Path;
use std::time::SystemTime;

use super::{Outside, note};
use crate::control::Control;
use crate::failure::RunError;
use crate::report::Report;
use crate::run::run_observed;
use crate::tls::Identity;
use crate::wire::Single;

use options::{Asked, Fault, Options};
use recorder::{Fatal, Recorder, Taken};

/// The command line is wrong: ab exits with EINVAL.
const EXIT_USAGE: u8 = 22;

/// It could not do what it was asked to.
const EXIT_FAILURE: u8 = 1;

/// A name that cannot be looked up: the low byte of APR's number for it, 670002.
const EXIT_NO_HOST: u8 = 50;

/// Everything that the outputs are made of.
#[derive(Debug)]
struct Outcome<'a> {
    options: &'a Options,
    report: &'a Report,
    taken: &'a Taken,
    /// When the run began.
    began: SystemTime,
}

/// Runs ab with the words after its name, and returns its exit code.
pub(super) fn run(words: &[String], outside: &dyn Outside, control: &Control) -> u8 {
    let options = match Options::parse(words) {
        Ok(Asked::Run(options)) => options,
        Ok(Asked::Version) => {
            outside.out(&text::BANNER);
            return 0;
        }
        Ok(Asked::Help) => {
            outside.out(text::USAGE);
            return 0;
        }
        Ok(Asked::Usage) => {
            outside.err(text::USAGE);
            return EXIT_USAGE;
        }
        Err(Fault::Usage(message)) => {
            outside.err(&format!("ab: {message}\n{}", text::USAGE));
            return EXIT_USAGE;
        }
        Err(Fault::Refused(message)) => {
            outside.err(&format!("{message}\n"));
            return EXIT_FAILURE;
        }
    };
    let body = match &options.body {
        None => Vec::new(),
        Some(path) => match outside.read(path) {
            Ok(body) => body,
            Err(error) => {
                let reason = plain(&error);
                outside.err(&format!(
                    "ab: Could not open {} ({}): {reason}\n",
                    options.body_name(),
                    path.display()
                ));
                return EXIT_FAILURE;
            }
        },
    };
    let identity = match options.identity.as_ref().map(|path| identity(path, outside)).transpose() {
        Ok(identity) => identity,
        Err(message) => {
            outside.err(&format!("ab: {message}\n"));
            return EXIT_FAILURE;
        }
    };
    outside.out(&text::opening(&options));
    let plan = match plan::plan(&options, body, identity) {
        Ok(plan) => plan,
        Err(plan::PlanFault::NoHost { host, error }) => {
            let reason = error.to_string();
            let reason = reason.rsplit(": ").next().unwrap_or_default();
            outside.err(&format!("apr_sockaddr_info_get() for {host}: {reason} (670002)\n"));
            return EXIT_NO_HOST;
        }
        Err(plan::PlanFault::Unusable(message)) => {
            outside.err(&format!("ab: {message}\n"));
            return EXIT_FAILURE;
        }
    };
    if options.verbosity >= 2 {
        match Single::render(&plan.targets[0], plan.persistence) {
            Ok(request) => outside.out(&recorder::request(&options.method, &request.bytes)),
            Err(error) => return refuse(&error, outside),
        }
    }
    let recorder = Recorder::new(&options, outside, control);
    let began = SystemTime::now();
    let report = match run_observed(&plan, control, &recorder) {
        Ok(report) => report,
        Err(error) => return refuse(&error, outside),
    };
    let taken = recorder.into_taken();
    if let Some(Fatal { message, exit }) = &taken.fatal {
        outside.err(&format!("{message}\n"));
        let answered = taken.rows.len();
        if answered > 0 {
            outside.out(&format!("Total of {answered} requests completed\n"));
        }
        return *exit;
    }
    let outcome = Outcome { options: &options, report: &report, taken: &taken, began };
    finish(&outcome, outside)
}

/// Prints the report and writes the files.
fn finish(outcome: &Outcome<'_>, outside: &dyn Outside) -> u8 {
    let options = outcome.options;
    if options.shows_progress() {
        outside.err(&format!("Finished {} requests\n", outcome.taken.done()));
    } else {
        outside.out("..done\n");
    }
    let mut exit = 0;
    for (path, name, text) in files::files(outcome) {
        if let Err(error) = outside.write(path, &text) {
            let reason = plain(&error);
            outside.err(&format!("Cannot open {name} output file: {reason}\n"));
            exit = EXIT_FAILURE;
        }
    }
    let report = if options.html { html::report(outcome) } else { text::report(outcome) };
    outside.out(&report);
    let asked = options.linger_max.is_some();
    outside.err(&note::notes(outcome.report, "ab", asked));
    if outcome.taken.done() == plan::REQUESTS_TIMED && options.requests.is_none() {
        outside.err("milepost: -t without -n ends after 50000 requests, as documented; -n gives another number\n");
    }
    exit
}

/// Reads certificate and key of the client.
fn identity(path: &Path, outside: &dyn Outside) -> Result<Identity, String> {
    let name = path.display();
    let pem = outside.read(path).map_err(|error| format!("-E {name}: {}", plain(&error)))?;
    Identity::from_pem(&pem, &pem).map_err(|error| format!("-E {name}: {error}"))
}

/// Says why the run cannot be done.
fn refuse(error: &RunError, outside: &dyn Outside) -> u8 {
    outside.err(&match error {
        RunError::Unsendable { what, value, .. } => {
            format!("ab: {what} cannot be sent: {value:?}\n")
        }
        error => format!("ab: {error}\n"),
    });
    EXIT_FAILURE
}

/// The error in the system's words, without the number that Rust adds.
fn plain(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests;
