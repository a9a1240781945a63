//! Milepost answers random configurations as httpd does.
//!
//! `MILEPOST_CASES` and `MILEPOST_SEED` change how many and which; the seed is printed on failure.

use milepost_engine::Lookup;
use milepost_testkit::differential::{Contest, Tally};
use milepost_testkit::generate::{self, Area};
use milepost_testkit::httpd::Program;
use milepost_testkit::known::KnownDifferences;
use milepost_testkit::{Case, Judge, Milepost, bless, shrink, spec};

/// Enough to meet each directive and flag often, within seconds.
const CASES: u64 = 400;
/// Any number; a fixed one, so that an unchanged tree passes or fails the same way twice.
const SEED: u64 = 2026;
/// Cases compared at a time.
const BATCH: usize = 100;
/// Differences that are made small before the test gives up; each takes some seconds.
const SHRINK_MAX: usize = 3;

#[test]
fn redirects() {
    check(&[Area::Alias]);
}

#[test]
fn rewriting() {
    check(&[Area::Rewrite, Area::Map, Area::Alias]);
}

#[test]
fn variables() {
    check(&[Area::Rewrite, Area::Variable]);
}

#[test]
fn other_servers() {
    check(&[Area::Proxy, Area::Field, Area::Section, Area::Rewrite]);
}

#[test]
fn everything() {
    check(&all_areas());
}

fn all_areas() -> Vec<Area> {
    Area::ALL.iter().map(|(_, area)| *area).collect()
}

#[track_caller]
fn check(areas: &[Area]) {
    let number = |name: &str, otherwise: u64| match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text:?}")),
        Err(_) => otherwise,
    };
    let (seed, count) = (number("MILEPOST_SEED", SEED), number("MILEPOST_CASES", CASES));
    let program = Program::find().expect("httpd is installed").with_modules(&generate::MODULES);
    let judge = Judge::with(program.clone()).expect("httpd runs");
    let scan = Milepost::new(Lookup::Scan, program.clone());
    let index = Milepost::new(Lookup::Index, program);
    let known = KnownDifferences::read(&spec::directory()).expect("the list is readable");
    let contest = Contest { judge: &judge, scan: &scan, index: &index, known: &known };
    let numbers: Vec<usize> = (0..usize::try_from(count).expect("it fits")).collect();
    let mut tally = Tally::default();
    let mut small = Vec::new();
    for batch in numbers.chunks(BATCH) {
        let cases: Vec<Case> =
            batch.iter().map(|&number| generate::case(seed, number, areas)).collect();
        for found in contest.compare(&cases, &mut tally).expect("all three answer") {
            if small.len() < SHRINK_MAX {
                let found = shrink::shrink(&contest, found).expect("all three answer");
                small.push(format!("{}# milepost: {}", bless::case_text(&found.case), found.got));
            }
        }
    }
    assert_eq!(tally.differing, 0, "seed {seed}: {tally:?}\n\n{}", small.join("\n\n"));
    assert!(tally.requests > tally.cases * 6, "few requests were answered: {tally:?}");
}
