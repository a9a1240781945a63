//! Runs the corpus on real httpd; with `--bless`, writes its answers as the expectations.
//!
//! `spec [--bless] [AREA…]` exits with 0 when all is as expected, 1 when not, 2 when it cannot run.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for people")]

use std::error::Error;
use std::process::ExitCode;

use milepost_testkit::known::KnownDifferences;
use milepost_testkit::{Case, Engine, Judge, bless, case, spec};

fn main() -> ExitCode {
    match run(std::env::args().skip(1).collect()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("spec: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(mut areas: Vec<String>) -> Result<ExitCode, Box<dyn Error>> {
    let blessing = areas.iter().any(|argument| argument == "--bless");
    areas.retain(|argument| argument != "--bless");
    let judge = Judge::new()?;
    let mut cases: Vec<Case> = Vec::new();
    for file in case::spec_files(&spec::directory())? {
        let area = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if !areas.is_empty() && !areas.contains(&area) {
            continue;
        }
        let mut text = std::fs::read_to_string(&file)?;
        if blessing {
            let written = case::parse(&file, &text)?;
            let verdicts = judge.run(&written.iter().collect::<Vec<_>>())?;
            match bless::bless(&file, &text, &written, &verdicts) {
                Ok(blessed) => text = blessed,
                Err(errors) => {
                    for error in errors {
                        eprintln!("spec: {error}");
                    }
                    continue;
                }
            }
            std::fs::write(&file, &text)?;
        }
        cases.extend(case::parse(&file, &text)?);
    }
    let report = spec::run(&judge, &cases, &KnownDifferences::default())?;
    println!("{report}");
    Ok(ExitCode::from(u8::from(!report.is_clean())))
}
