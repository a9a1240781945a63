//! Every case of `spec/` through the socket of `milepost serve`, with the answers of real httpd.

use std::path::PathBuf;

use milepost_testkit::httpd::Program;
use milepost_testkit::known::KnownDifferences;
use milepost_testkit::{Served, case, spec};

#[test]
fn every_case_passes_through_a_socket() {
    let cases = case::read_all(&spec::directory()).expect("the spec files are readable");
    let known = KnownDifferences::read(&spec::directory()).expect("the list is readable");
    let program = Program::find().expect("httpd is installed");
    let binary = PathBuf::from(env!("CARGO_BIN_EXE_milepost"));
    let report = spec::run(&Served::new(binary, program), &cases, &known).expect("it serves");
    assert!(report.is_clean(), "{report}");
    assert!(report.total().passed > 2000, "{report}");
}
