//! Every directive with a score of values: milepost takes what httpd takes, but for what `known.txt` names.

use milepost_testkit::httpd::Program;
use milepost_testkit::values;

/// Of the lines that milepost refuses, httpd is asked about one of so many: it has to be run for each. The
/// whole is `cargo run -p milepost-testkit --example values`.
const ONE_OF: usize = 67;

#[test]
fn values_are_taken_as_in_httpd() {
    let program = Program::find().expect("httpd is installed");
    let trials =
        values::trials(&values::VALUES, |_| true).expect("the table of directives is there");
    let found = values::sweep(&program, &trials, ONE_OF).expect("httpd runs");
    assert!(found.asked > 3500, "{} lines", found.asked);
    let differences = found.differences.iter().map(|found| {
        format!("{}: httpd {:?}, milepost {:?}\n", found.trial.line(), found.httpd, found.milepost)
    });
    let differences: String = differences.collect();
    assert!(differences.is_empty(), "{differences}");
    assert!(found.stale.is_empty(), "known.txt names what no longer differs: {:?}", found.stale);
}
