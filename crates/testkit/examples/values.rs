//! Gives every directive of httpd a score of values and asks httpd and milepost which they load.
//!
//! `values [--only PART] [--from NAME] [--one-of N] [--words]` prints each line that one of them takes and the
//! other does not, and a total; what is meant to differ stands in `src/values/known.txt`,
//! whose entries must differ. `--from` begins at a
//! directive of the engine's table. Of what milepost refuses httpd is asked about every Nth line, or all. With
//! `--words`, directives that refuse something are given every keyword of [`values::WORDS`] too. Exit 0: all
//! agree, 1: some differ, 2: could not run.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for people")]

use std::error::Error;
use std::process::ExitCode;

use milepost_testkit::httpd::Program;
use milepost_testkit::values::{self, Found, SweepError, Trial};

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
    let (mut only, mut from, mut one_of, mut with_words) = (String::new(), String::new(), 1, false);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("{argument} needs a value"));
        match argument.as_str() {
            "--only" => only = value()?.to_lowercase(),
            "--from" => from = value()?,
            "--one-of" => one_of = value()?.parse::<std::num::NonZeroUsize>()?.get(),
            "--words" => with_words = true,
            _ => return Err(format!("unknown argument {argument}").into()),
        }
    }
    let program = Program::find()?;
    let mut trials = values::trials(&values::VALUES, |name| name.to_lowercase().contains(&only))?;
    let begins = |trial: &Trial| trial.line().split(' ').next() == Some(&from);
    trials.drain(..trials.iter().position(begins).unwrap_or(0));
    let compare = |trials: &[Trial]| -> Result<Found, SweepError> {
        let found = values::sweep(&program, trials, one_of)?;
        for difference in &found.differences {
            let say = |verdict: &Option<String>| match verdict {
                Some(verdict) => verdict.clone(),
                None => "takes it".to_owned(),
            };
            println!(
                "{}\n  httpd    {}\n  milepost {}",
                difference.trial.line(),
                say(&difference.httpd),
                say(&difference.milepost)
            );
        }
        Ok(found)
    };
    let found = compare(&trials)?;
    let (mut asked, mut differ) = (found.asked, found.differences.len());
    if with_words {
        let trials = values::trials(&values::WORDS, |name| found.choosy.contains(name))?;
        let found = compare(&trials)?;
        asked += found.asked;
        differ += found.differences.len();
    }
    for entry in &found.stale {
        println!("known.txt: `{entry}` no longer differs");
    }
    differ += found.stale.len();
    println!("{asked} lines, {differ} differ");
    Ok(differ)
}
