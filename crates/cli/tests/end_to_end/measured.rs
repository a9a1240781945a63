//! `milepost load` on `milepost serve`: right answers are timed, wrong ones are counted.
//!
//! Without the check of the answers the second test fails, and so do those of the lab.

use milepost_testkit::directory::Directory;
use serde_json::Value;

use crate::support::{Finished, Server, milepost, write};

/// The first pattern lacks its anchors, so that it answers for `/test/10` too: quickly and wrongly.
const CONFIGURATION: &str = "Listen 127.0.0.1:0\n\
                             RedirectMatch 301 /test/1 http://www.example.org/new/1\n\
                             RedirectMatch 301 ^/test/10$ http://www.example.org/new/10\n";

#[test]
fn right_answers_are_timed() {
    let directory = Directory::new().expect("a directory");
    let server = Server::start_with(directory.path(), CONFIGURATION);
    let (url, location) = (server.url("/test/1"), "http://www.example.org/new/1");
    let options = ["-n", "2000", "--expect-status", "301", "--expect-location", location];
    let (finished, report) = load(&[&[&*url], &options[..]].concat());
    assert_eq!(finished.code, Some(0), "{report}");
    assert_eq!((&report["requests"], &report["wrong_answers"]), (&2000.into(), &0.into()));
    assert_eq!(report["service_ns"]["samples"], 2000);
    server.stop();
}

#[test]
fn a_wrong_answer_is_counted_and_not_timed() {
    let directory = Directory::new().expect("a directory");
    let server = Server::start_with(directory.path(), CONFIGURATION);
    let (url, location) = (server.url("/test/10"), "http://www.example.org/new/10");
    let options = ["-n", "2000", "--expect-status", "301", "--expect-location", location];
    let (finished, report) = load(&[&[&*url], &options[..]].concat());
    assert_eq!(finished.code, Some(1), "{report}");
    assert_eq!((&report["requests"], &report["wrong_answers"]), (&2000.into(), &2000.into()));
    assert_eq!(report["requests_per_second"], 0.0);
    assert_eq!(report["service_ns"]["p50"], Value::Null);
    let got = "status 301, Location http://www.example.org/new/1";
    assert_eq!(report["wrong_answer_examples"][0]["got"], got);
    server.stop();
}

#[test]
fn each_url_of_a_list_has_its_own_expectation() {
    let directory = Directory::new().expect("a directory");
    let server = Server::start_with(directory.path(), CONFIGURATION);
    let lines = [("/test/1", 1), ("/test/10", 10), ("/test/2", 2)].map(|(path, number)| {
        let url = server.url(path);
        match number {
            2 => format!("{url} status=404\n"),
            _ => format!("{url} status=301 location=http://www.example.org/new/{number}\n"),
        }
    });
    let list = write(directory.path(), "urls.txt", &lines.concat());
    let (finished, report) = load(&["--urls", &list, "-n", "300", "-c", "3"]);
    assert_eq!(finished.code, Some(1), "{report}");
    assert_eq!((&report["requests"], &report["wrong_answers"]), (&300.into(), &100.into()));
    assert_eq!(report["service_ns"]["samples"], 200);
    server.stop();
}

#[track_caller]
fn load(arguments: &[&str]) -> (Finished, Value) {
    let finished = milepost(&[&["load", "--json"], arguments].concat());
    let report = serde_json::from_str(&finished.stdout);
    let report = report.unwrap_or_else(|error| panic!("{error}: {finished:?}"));
    (finished, report)
}
