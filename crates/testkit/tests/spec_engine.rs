//! The engine gives the answers in `spec/`, by scan and by index, but for the known differences.

use milepost_engine::Lookup;
use milepost_testkit::httpd::Program;
use milepost_testkit::known::KnownDifferences;
use milepost_testkit::{Milepost, case, spec};

#[test]
fn every_case_passes_by_scan() {
    check(Lookup::Scan);
}

#[test]
fn every_case_passes_by_index() {
    check(Lookup::Index);
}

#[track_caller]
fn check(lookup: Lookup) {
    let cases = case::read_all(&spec::directory()).expect("the spec files are readable");
    let known = KnownDifferences::read(&spec::directory()).expect("the list is readable");
    assert!(!cases.is_empty(), "no cases below {}", spec::directory().display());
    let program = Program::find().expect("httpd is installed");
    let report = spec::run(&Milepost::new(lookup, program), &cases, &known).expect("it runs");
    assert!(report.is_clean(), "{report}");
}
