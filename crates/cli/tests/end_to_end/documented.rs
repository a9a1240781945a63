//! The JSON that programs read is the one that `docs/` describes: no field less, no field more.

use std::collections::BTreeSet;

use milepost_testkit::directory::Directory;
use serde_json::Value;

use crate::support::{Server, lab, milepost};

const LOAD: &str = include_str!("../../../../docs/load.md");
const RESULT: &str = include_str!("../../../../docs/result-format.md");

/// The times that both reports have.
const TIMES: [&str; 6] = ["p50", "p90", "p99", "p999", "max", "mean"];

#[test]
fn load_prints_what_is_documented() {
    let directory = Directory::new().expect("a directory");
    let configuration = "Listen 127.0.0.1:0\nRedirect 301 /test/1 http://www.example.org/new/1\n";
    let server = Server::start_with(directory.path(), configuration);
    let finished = milepost(&["load", &server.url("/test/1"), "-n", "3000", "--json"]);
    assert_eq!((finished.code, &*finished.stderr), (Some(0), ""));
    server.stop();
    let report: Value = serde_json::from_str(&finished.stdout).expect("one JSON object");

    assert_eq!(names(&report), documented(LOAD, "## JSON"));
    for part in ["service_ns", "response_ns", "first_byte_ns", "connect_ns"] {
        let times: Vec<f64> = TIMES.map(|name| number(&report[part][name])).into();
        assert!(times[..4].is_sorted() && times[3] <= times[4], "{part}: {times:?}");
        assert!(times[0] > 0.0 && times[5] <= times[4], "{part}: {times:?}");
    }
    assert_eq!(report["requests"], 3000);
    assert_eq!(report["statuses"]["301"], 3000);
    assert_eq!((&report["wrong_answers"], &report["errors"]), (&0.into(), &0.into()));
    assert!(number(&report["requests_per_second"]) > 0.0);
    assert!(number(&report["client_cpu_us_per_request"]) > 0.0);
}

#[test]
fn results_have_the_documented_form() {
    let directory = Directory::new().expect("a directory");
    let out = directory.path().join("out");
    let sizes = ["--rules", "20", "--rounds", "2", "--requests", "50"];
    let only = ["--servers", "milepost,apache", "--only", "redirect*,none"];
    let result = lab(&out, &[&sizes[..], &only].concat());

    assert_eq!(names(&result), documented(RESULT, "## The object"));
    assert_eq!(names(&result["environment"]), documented(RESULT, "## `environment`"));
    for (part, heading) in [("alternatives", "## `alternatives[]`"), ("trials", "## `trials[]`")] {
        let items = result[part].as_array().expect("an array");
        assert!(!items.is_empty(), "{part}");
        for item in items {
            assert_eq!(names(item), documented(RESULT, heading), "{part}");
        }
    }
    for trial in result["trials"].as_array().expect("an array") {
        let right = number(&trial["requests"]) - number(&trial["wrong_answers"]);
        if right > 0.0 {
            let times: Vec<f64> = TIMES.map(|name| number(&trial["service_ns"][name])).into();
            assert!(times[..4].is_sorted() && times[3] <= times[4], "{trial}");
            assert!(number(&trial["requests_per_second"]) > 0.0, "{trial}");
        } else {
            // A wrong answer is no sample, however fast it came.
            assert_eq!(trial["service_ns"], Value::Null, "{trial}");
            assert_eq!(trial["requests_per_second"], 0.0, "{trial}");
        }
        let cpu = &trial["server_cpu_us_per_request"];
        assert!(number(&cpu["user"]) + number(&cpu["system"]) > 0.0, "{trial}");
    }
    let written = std::fs::read(out.join("result.json")).expect("the file");
    let written: Value = serde_json::from_slice(&written).expect("JSON");
    assert!(written == result, "--json prints the file");
}

/// Returns the names in the first column of the table under `heading`.
#[track_caller]
fn documented(text: &str, heading: &str) -> BTreeSet<String> {
    let lines = text.lines().skip_while(|line| line != &heading).skip(1);
    let lines = lines.take_while(|line| !line.starts_with("## "));
    let cells = lines.filter_map(|line| line.strip_prefix("| `")?.split(" | ").next());
    let names = cells.flat_map(|cell| cell.split(", ")).map(|name| name.replace('`', ""));
    let names: BTreeSet<String> = names.collect();
    assert!(!names.is_empty(), "no table under {heading:?}");
    names
}

#[track_caller]
fn names(object: &Value) -> BTreeSet<String> {
    object.as_object().expect("an object").keys().cloned().collect()
}

#[track_caller]
fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}
