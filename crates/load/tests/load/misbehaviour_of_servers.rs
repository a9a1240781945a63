//! The drop-ins against every way in which a server can misbehave: none hangs, each request has failed.

use milepost_load::FailureKind;
use milepost_load::dropin::Program;

use crate::desk::Desk;
use crate::misbehaviour::for_each_fault;

#[test]
fn ab_counts_all_as_failed() {
    for_each_fault(|fault, peer| {
        let url = format!("http://{}/a", peer.address());
        let said = Desk::default().run(Program::Ab, &format!("-n 4 -c 2 -r -s 1 {url}"));
        let what = format!("{}: {said:?}", fault.name);
        if fault.goes_on() {
            assert_eq!((said.exit, number(&said.out, "Complete requests:")), (0, 4), "{what}");
        } else if fault.kinds == [FailureKind::TimedOut] {
            // That ends the whole run, as in ab.
            assert_eq!(said.exit, 119, "{what}");
        } else {
            let counts =
                ["Complete requests:", "Failed requests:"].map(|label| number(&said.out, label));
            assert_eq!((said.exit, counts), (0, [4, 4]), "{what}");
        }
    });
}

#[test]
fn siege_counts_all_as_failed() {
    for_each_fault(|fault, peer| {
        let desk = Desk::default().with("rc", "timeout = 1\n");
        let url = format!("http://{}/a", peer.address());
        let said = desk.run(Program::Siege, &format!("-R rc -c 2 -r 2 -b {url}"));
        let what = format!("{}: {said:?}", fault.name);
        let counts = ["Transactions:", "Failed transactions:"].map(|it| number(&said.err, it));
        assert_eq!(said.exit, 0, "{what}");
        if fault.goes_on() {
            assert_eq!(counts[0] + counts[1], 4, "{what}");
        } else {
            assert_eq!(counts, [0, 4], "{what}");
        }
    });
}

#[test]
fn http_load_has_no_status_of_any() {
    for_each_fault(|fault, peer| {
        let desk = Desk::default().with("urls", &format!("http://{}/a\n", peer.address()));
        let said = desk.run(Program::HttpLoad, "-p 2 -f 4 -timeout 1 urls");
        let what = format!("{}: {said:?}", fault.name);
        assert_eq!(said.exit, 0, "{what}");
        assert!(said.out.starts_with("4 fetches, "), "{what}");
        if !fault.goes_on() {
            assert!(!said.out.contains("  code "), "{what}");
            let is_late = fault.kinds == [FailureKind::TimedOut];
            assert_eq!(said.out.contains("\n4 timeouts\n"), is_late, "{what}");
        }
    });
}

/// The first number behind a label.
#[track_caller]
fn number(text: &str, label: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(label));
    let line = line.unwrap_or_else(|| panic!("no {label} in {text}"));
    line.split_whitespace().next().unwrap_or_default().parse().expect("a number")
}
