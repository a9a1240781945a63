//! Whole runs on real servers, small ones: what they find, and that they leave nothing behind.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use milepost_lab::experiment::{BUILT_IN, Experiment};
use milepost_lab::results::Results;
use milepost_lab::{Event, Options, Request, RunError, ServerKind};
use milepost_load::Control;
use serde_json::Value;
use tempfile::TempDir;

#[test]
fn a_run_finds_what_the_experiment_expects() {
    let directory = directory();
    let request = request(&directory, built_in());
    let results = run(&request, &mut |_| {}).unwrap_or_else(|error| panic!("{error}"));

    assert!(!results.has_mismatch(), "{:?}", results.error_examples);
    for server in ["apache", "nginx"] {
        assert!(
            results.alternatives.iter().any(|found| found.server.name() == server),
            "this test needs apache2 and nginx: {:?}",
            results.missing_servers
        );
    }
    // Without the check of answers these would be fast redirects.
    let wrong: Vec<(&str, &str)> = results
        .wrong_answer_examples
        .iter()
        .map(|example| (example.alternative.as_str(), example.got.as_str()))
        .collect();
    assert!(!wrong.is_empty());
    for (alternative, got) in wrong {
        assert_eq!(alternative, "apache/redirectmatch-unanchored");
        assert!(got.ends_with("/new/1") || got.ends_with("/new/2"), "{got}");
    }
    for trial in results.trials.iter().filter(|trial| trial.wrong_answers > 0) {
        assert_eq!(trial.wrong_answers, trial.requests, "{trial:?}");
        assert_eq!(trial.service_ns, None, "a wrong answer is no sample");
    }
    assert_left_nothing(&directory);
}

#[test]
fn the_result_has_the_documented_form() {
    let directory = directory();
    let mut request = request(&directory, built_in());
    request.options.only = vec!["none".to_owned(), "map".to_owned()];
    let results = run(&request, &mut |_| {}).unwrap_or_else(|error| panic!("{error}"));
    results.write(directory.path()).expect("a writable directory");

    let text = fs::read_to_string(directory.path().join("result.json")).expect("a file");
    let json: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(json["experiment"], "redirect-methods");
    assert_eq!(json["seed"], 7);
    assert!(json["environment"]["cpu_model"].is_string());
    let alternative = &json["alternatives"][0];
    for field in ["name", "server", "server_version", "method"] {
        assert!(alternative[field].is_string(), "{field}");
    }
    assert_eq!(alternative["rules"], 0);
    for trial in json["trials"].as_array().expect("trials") {
        let names = ["alternative", "target"];
        let numbers = ["connections", "round", "requests", "wrong_answers", "errors"];
        let figures = ["requests_per_second", "client_cpu_us_per_request"];
        let times = ["p50", "p90", "p99", "p999", "max", "mean"];
        assert!(names.iter().all(|field| trial[field].is_string()), "{trial}");
        assert!(numbers.iter().all(|field| trial[field].is_u64()), "{trial}");
        assert!(figures.iter().all(|field| trial[field].is_f64()), "{trial}");
        assert!(times.iter().all(|field| trial["service_ns"][field].is_number()), "{trial}");
        let cpu = &trial["server_cpu_us_per_request"];
        let (user, system) = (cpu["user"].as_f64(), cpu["system"].as_f64());
        let sum = user.expect("user") + system.expect("system");
        // No server answers in less than a microsecond or needs a second.
        assert!((1.0..1e6).contains(&sum), "{trial}");
    }
    // Three alternatives, the control, two rounds; four targets and the load of the full run.
    assert_eq!(json["trials"].as_array().map(Vec::len), Some(4 * 2 * 8));
    assert!(Results::read(directory.path()).expect("a result") == results, "it reads as written");
    assert_left_nothing(&directory);
}

#[test]
fn an_answer_that_nobody_expects_is_a_mismatch() {
    let directory = directory();
    let text = built_in().replace("example.org/new/@N@\" }", "example.org/other/@N@\" }");
    assert_ne!(text, built_in());
    let mut request = request(&directory, text);
    request.options.only = vec!["nginx/map".to_owned()];
    let mut unexpected = 0;
    let results = run(&request, &mut |event| {
        if let Event::Wrong { expected: false, .. } = event {
            unexpected += 1;
        }
    });
    assert!(results.unwrap_or_else(|error| panic!("{error}")).has_mismatch());
    // First, middle and last, of the alternative and of its control; the miss is right.
    assert_eq!(unexpected, 6);
}

#[test]
fn a_right_answer_that_should_be_wrong_is_a_mismatch() {
    let directory = directory();
    let text = built_in().replace("name = \"map\"", "name = \"map\"\nwrong = [\"last\"]");
    assert_ne!(text, built_in());
    let mut request = request(&directory, text);
    request.options.only = vec!["nginx/map".to_owned()];
    let results = run(&request, &mut |_| {}).unwrap_or_else(|error| panic!("{error}"));
    assert!(results.has_mismatch());
}

#[test]
fn a_server_that_dies_at_start_is_told_in_one_message() {
    let directory = directory();
    let text = built_in().replace("apache.each = \"Redirect 301 ", "apache.each = \"Redirekt 301 ");
    let mut request = request(&directory, text);
    request.options.only = vec!["apache/none".to_owned(), "apache/redirect".to_owned()];
    let error = run(&request, &mut |_| {}).expect_err("a server that refuses its configuration");
    let message = error.to_string();
    assert!(message.starts_with("apache/redirect ended (exit status: 1) and said:"), "{message}");
    assert!(message.contains("Invalid command 'Redirekt'"), "{message}");
    assert_left_nothing(&directory);
}

#[test]
fn an_interruption_stops_every_server() {
    let directory = directory();
    let request = request(&directory, built_in());
    let control = Control::new();
    let experiment = Experiment::parse(&request.experiment_text).expect("an experiment");
    let mut running = 0;
    let outcome = milepost_lab::run(&experiment, &request, &control, &mut |event| {
        if let Event::Trial { done: 5, .. } = event {
            running = processes(&directory).len();
            control.stop();
        }
    });
    assert!(matches!(outcome, Err(RunError::Interrupted)), "{outcome:?}");
    assert!(running >= 12, "{running} processes were seen");
    assert_left_nothing(&directory);
}

#[test]
fn a_panic_stops_every_server() {
    let directory = directory();
    let mut request = request(&directory, built_in());
    request.options.only = vec!["none".to_owned()];
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        run(&request, &mut |event| {
            assert!(!matches!(event, Event::Trial { .. }), "on purpose");
        })
    }));
    assert!(outcome.is_err());
    assert_left_nothing(&directory);
}

fn built_in() -> String {
    BUILT_IN[0].1.to_owned()
}

/// Asks for Apache and nginx with 20 rules, two rounds and trials of a few requests.
fn request(directory: &TempDir, text: String) -> Request {
    let options = Options {
        rules: Some(20),
        rounds: Some(2),
        requests: Some(20),
        servers: vec![ServerKind::Apache, ServerKind::Nginx],
        seed: 7,
        ..Options::default()
    };
    Request {
        options,
        experiment_text: text.replace("warm_up_ms = 12", "warm_up_ms = 1"),
        directory: directory.path().to_owned(),
        milepost: "/nonexistent".into(),
        command: vec!["milepost".to_owned(), "lab".to_owned()],
    }
}

fn run(request: &Request, observe: &mut dyn FnMut(Event<'_>)) -> Result<Results, RunError> {
    let experiment = Experiment::parse(&request.experiment_text).expect("an experiment");
    milepost_lab::run(&experiment, request, &Control::new(), observe)
}

fn directory() -> TempDir {
    tempfile::tempdir().expect("a directory")
}

#[track_caller]
fn assert_left_nothing(directory: &TempDir) {
    assert_eq!(processes(directory), Vec::<String>::new(), "processes left");
}

/// Returns the processes that work in `directory`. The workers of Apache and nginx change their name
/// or keep their parent's; all of them keep the error log open.
fn processes(directory: &TempDir) -> Vec<String> {
    let path = directory.path().canonicalize().expect("the directory");
    let entries = fs::read_dir("/proc").expect("/proc").flatten();
    entries
        .filter(|entry| {
            let files = fs::read_dir(entry.path().join("fd")).into_iter().flatten().flatten();
            let mut files = files.filter_map(|file| fs::read_link(file.path()).ok());
            is_other_process(&entry.path()) && files.any(|file| file.starts_with(&path))
        })
        .map(|entry| fs::read_to_string(entry.path().join("comm")).unwrap_or_default())
        .collect()
}

fn is_other_process(entry: &Path) -> bool {
    let id = entry.file_name().and_then(|name| name.to_str()).and_then(|name| name.parse().ok());
    id.is_some_and(|id: u32| id != std::process::id())
}
