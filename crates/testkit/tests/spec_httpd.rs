//! Every expectation in `spec/` is what real httpd answers.

use milepost_testkit::known::KnownDifferences;
use milepost_testkit::{Judge, case, spec};

#[test]
fn every_case_passes_on_real_httpd() {
    let cases = case::read_all(&spec::directory()).expect("the spec files are readable");
    assert!(!cases.is_empty(), "no cases below {}", spec::directory().display());
    let judge = Judge::new().expect("the judge is installed");
    let report = spec::run(&judge, &cases, &KnownDifferences::default()).expect("httpd runs");
    assert!(report.is_clean(), "{report}");
}
