//! Runs the corpus, on real httpd or on the engine; writes httpd's answers as the expectations.
//!
//! `spec [--bless] [--engine httpd|scan|index|BINARY] [AREA…]` exits with 0 when all is as expected, 1 when
//! not, 2 when it cannot run. Known differences count for milepost only, whose BINARY is asked through a socket.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for people")]

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

use milepost_engine::Lookup;
use milepost_testkit::httpd::Program;
use milepost_testkit::known::KnownDifferences;
use milepost_testkit::{Case, Engine, Judge, Milepost, Served, bless, case, spec};

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("spec: {error}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<ExitCode, Box<dyn Error>> {
    let (mut blessing, mut engine, mut areas) = (false, "httpd".to_owned(), Vec::new());
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--bless" => blessing = true,
            "--engine" => engine = arguments.next().ok_or("--engine needs a name")?,
            _ => areas.push(argument),
        }
    }
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
    let known = KnownDifferences::read(&spec::directory())?;
    let program = Program::find()?;
    let report = match engine.as_str() {
        "httpd" => spec::run(&judge, &cases, &KnownDifferences::default())?,
        "scan" => spec::run(&Milepost::new(Lookup::Scan, program), &cases, &known)?,
        "index" => spec::run(&Milepost::new(Lookup::Index, program), &cases, &known)?,
        // Any other name is the path of a `milepost` to ask through its socket.
        binary => spec::run(&Served::new(PathBuf::from(binary), program), &cases, &known)?,
    };
    println!("{report}");
    Ok(ExitCode::from(u8::from(!report.is_clean())))
}
