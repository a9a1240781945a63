//! Compares milepost with real httpd on random configurations, and shrinks what differs.
//!
//! `differential [--cases N] [--seed S] [--area NAME]… [--only NUMBER] [--shrink N] [--show]
//! [--coverage]` prints each difference as a spec case, with `--coverage` also how often each directive, flag and
//! variable came up and which never did. Exit 0: none, 1: some, 2: could not run.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for people")]

use std::collections::HashSet;
use std::error::Error;
use std::process::ExitCode;
use std::time::Instant;

use milepost_engine::Lookup;
use milepost_testkit::differential::{Contest, Tally};
use milepost_testkit::generate::{self, Area, Coverage};
use milepost_testkit::httpd::Program;
use milepost_testkit::known::KnownDifferences;
use milepost_testkit::{Case, Judge, Milepost, bless, shrink, spec};

/// Cases compared at a time: as many as one httpd takes.
const BATCH: usize = 200;

struct Options {
    cases: usize,
    seed: u64,
    areas: Vec<Area>,
    only: Option<usize>,
    shrink: usize,
    show: bool,
    coverage: bool,
}

fn main() -> ExitCode {
    match options().and_then(|options| run(&options)) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::from(1),
        Err(error) => {
            eprintln!("differential: {error}");
            ExitCode::from(2)
        }
    }
}

fn options() -> Result<Options, Box<dyn Error>> {
    let mut options = Options {
        cases: 1000,
        seed: fastrand::u64(0..1_000_000),
        areas: Vec::new(),
        only: None,
        shrink: 10,
        show: false,
        coverage: false,
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        match name.as_str() {
            "--show" => {
                options.show = true;
                continue;
            }
            "--coverage" => {
                options.coverage = true;
                continue;
            }
            _ => {}
        }
        let value = arguments.next().ok_or_else(|| format!("{name} needs a value"))?;
        match name.as_str() {
            "--cases" => options.cases = value.parse()?,
            "--seed" => options.seed = value.parse()?,
            "--only" => options.only = Some(value.parse()?),
            "--shrink" => options.shrink = value.parse()?,
            "--area" => {
                let area = Area::named(&value).ok_or_else(|| format!("no area {value:?}"))?;
                options.areas.push(area);
            }
            _ => return Err(format!("unknown option {name}").into()),
        }
    }
    if options.areas.is_empty() {
        options.areas = Area::ALL.iter().map(|(_, area)| *area).collect();
    }
    Ok(options)
}

/// Returns how many cases differ.
fn run(options: &Options) -> Result<usize, Box<dyn Error>> {
    let started = Instant::now();
    let program = Program::find()?.with_modules(&generate::MODULES);
    let judge = Judge::with(program.clone())?;
    let scan = Milepost::new(Lookup::Scan, program.clone());
    let index = Milepost::new(Lookup::Index, program);
    let known = KnownDifferences::read(&spec::directory())?;
    let contest = Contest { judge: &judge, scan: &scan, index: &index, known: &known };
    let numbers: Vec<usize> = match options.only {
        Some(number) => vec![number],
        None => (0..options.cases).collect(),
    };
    let mut tally = Tally::default();
    let mut shown = HashSet::new();
    let mut coverage = Coverage::default();
    for batch in numbers.chunks(BATCH) {
        let make = |&number: &usize| generate::case(options.seed, number, &options.areas);
        let cases: Vec<Case> = batch.iter().map(make).collect();
        cases.iter().for_each(|case| coverage.add(case));
        if options.show {
            cases.iter().for_each(|case| println!("{}", bless::case_text(case)));
        }
        let before = tally.differing;
        for (at, found) in contest.compare(&cases, &mut tally)?.into_iter().enumerate() {
            let (kind, name) = (found.kind, found.case.name.clone());
            if before + at >= options.shrink {
                println!("# {name}: {kind:?}, got {}", found.got);
                continue;
            }
            let small = shrink::shrink(&contest, found)?;
            let nameless = Case { name: String::new(), ..small.case.clone() };
            if shown.insert(bless::case_text(&nameless)) {
                println!("# {kind:?}: milepost: {}", small.got);
                println!("{}", bless::case_text(&small.case));
            } else {
                println!("# {name}: shrinks to the same as one before\n");
            }
        }
    }
    if options.coverage {
        print!("{coverage}");
    }
    let Tally { cases, refused, requests, known, undefined, differing } = tally;
    println!(
        "seed {}: {cases} cases ({refused} refused by httpd, {known} with known differences), \
         {requests} requests ({undefined} that httpd answers from freed memory), {differing} differing, \
         {:.1} s",
        options.seed,
        started.elapsed().as_secs_f64()
    );
    Ok(differing)
}
