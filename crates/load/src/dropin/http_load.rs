//! `http_load`: its command line, its URL file, its report, its exit codes.
//!
//! Every fetch has a connection of its own, in HTTP/1.0, and says `Connection: close`. What differs is
//! what http_load gets wrong: a rate is the rate that was asked for and not the next one whose interval
//! is a whole number of milliseconds, jitter works at every rate, an answer without content ends at its
//! head, and the Host field has the port.
//!
//! Source: the interface of http_load 12mar2006 with the patches of Tim Bunce, and of http_load_ng.

mod options;
mod plan;
mod recorder;
mod text;

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Instant;

use super::{Outside, note};
use crate::control::Control;
use crate::run::run_observed;

use options::{Asked, Options};
use recorder::Recorder;

/// The command line or the file of URLs is wrong, or the run cannot be done.
const EXIT_FAILURE: u8 = 1;

/// Runs http_load with the words after its name, and returns its exit code.
pub(super) fn run(words: &[String], outside: &dyn Outside, control: &Control) -> u8 {
    let options = match Options::parse(words) {
        Ok(Asked::Run(options)) => options,
        Ok(Asked::Help) => {
            outside.out(text::USAGE);
            return 0;
        }
        Err(message) => {
            outside.err(&format!("http_load: {message}\n{}", text::USAGE));
            return EXIT_FAILURE;
        }
    };
    let plan = match plan::plan(&options, outside) {
        Ok(plan) => plan,
        Err(message) => {
            outside.err(&format!("http_load: {message}\n"));
            return EXIT_FAILURE;
        }
    };
    let recorder = Recorder::new(&options, outside, control);
    let outcome = progressing(&options, outside, &recorder, control, || {
        run_observed(&plan, control, &recorder)
    });
    let report = match outcome {
        Ok(report) => report,
        Err(error) => {
            outside.err(&format!("http_load: {error}\n"));
            return EXIT_FAILURE;
        }
    };
    let taken = recorder.into_taken();
    outside.out(&text::report(&options, &report, &taken));
    outside.err(&text::more(&report, &taken));
    outside.err(&note::notes(&report, "http_load", options.linger_max.is_some()));
    0
}

/// Does `work`, and with `-verbose` says every now and then how far it is.
fn progressing<T: Send>(
    options: &Options,
    outside: &dyn Outside,
    recorder: &Recorder<'_>,
    control: &Control,
    work: impl FnOnce() -> T + Send,
) -> T {
    let Some(every) = options.progress_every else { return work() };
    thread::scope(|scope| {
        let (done, is_done) = channel::<()>();
        scope.spawn(move || {
            let began = Instant::now();
            while is_done.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                let started = control.progress().sent;
                outside.err(&text::progress(began.elapsed(), recorder.completed(), started));
            }
        });
        let result = work();
        drop(done);
        result
    })
}

#[cfg(test)]
mod tests;
