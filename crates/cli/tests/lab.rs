//! `milepost lab` from the outside: what it prints, how it ends, and that it leaves nothing running.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

const MILEPOST: &str = env!("CARGO_BIN_EXE_milepost");

/// The smallest run that still has every method: 20 rules, and trials of 20 requests.
const SMALL: [&str; 12] = [
    "lab",
    "run",
    "redirect-methods",
    "--quick",
    "--rules",
    "20",
    "--rounds",
    "1",
    "--requests",
    "20",
    "--seed",
    "7",
];

#[test]
fn experiments_are_listed() {
    let output = run(&["lab", "list"]);
    assert_eq!(output.status.code(), Some(0));
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.starts_with("redirect-methods\n"), "{text}");
    let json: Value =
        serde_json::from_slice(&run(&["lab", "list", "--json"]).stdout).expect("JSON");
    assert_eq!(json[0]["name"], "redirect-methods");
}

/// The seed's forms: milepost and Apache answer alike, right for the right and wrong for the wrong.
#[test]
fn milepost_answers_as_apache_does() {
    let directory = directory();
    let output = small(&directory, &["--servers", "milepost,milepost-scan,apache", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");

    let servers = ["milepost", "milepost-scan", "apache"];
    let alternatives = json["alternatives"].as_array().expect("alternatives");
    for server in servers {
        let methods = alternatives.iter().filter(|found| found["server"] == server);
        assert!(methods.count() >= 8, "this test needs apache2: {}", json["missing_servers"]);
    }
    let wrong = |server: &str| -> Vec<[String; 3]> {
        let examples = json["wrong_answer_examples"].as_array().expect("examples").iter();
        let name = format!("{server}/redirectmatch-unanchored");
        let of_server = examples.filter(|example| example["alternative"] == name.as_str());
        let mut wrong: Vec<[String; 3]> = of_server
            .map(|e| [&e["target"], &e["connections"], &e["got"]].map(Value::to_string))
            .collect();
        wrong.sort();
        wrong
    };
    assert_eq!(wrong("apache").len(), 3, "middle and last on 1, last on 10 connections");
    assert_eq!(wrong("milepost"), wrong("apache"));
    assert_eq!(wrong("milepost-scan"), wrong("apache"));
    let all = json["wrong_answer_examples"].as_array().map(Vec::len);
    assert_eq!(all, Some(9), "no other method answers wrongly");
    assert_left_nothing(&directory);
}

#[test]
fn tables_and_report_are_made_and_made_again() {
    let directory = directory();
    let output = small(&directory, &["--servers", "milepost", "--only", "redirect*,none"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.starts_with("What a redirect costs, 20 rules\n"), "{text}");
    assert!(text.contains("WRONG ANSWERS (as the experiment expects)"), "{text}");
    let page = directory.path().join("report.html");
    assert!(text.ends_with(&format!("report: {}\n", page.display())), "{text}");

    let first = fs::read_to_string(&page).expect("a report");
    fs::remove_file(&page).expect("our own file");
    let again = run(&["lab", "report", path(&directory)]);
    assert_eq!(again.status.code(), Some(0), "{}", stderr(&again));
    assert_eq!(String::from_utf8_lossy(&again.stdout), text);
    assert!(fs::read_to_string(&page).expect("a report") == first, "the report differs");
}

#[test]
fn an_answer_that_nobody_expects_ends_with_1() {
    let directory = directory();
    let text = fs::read_to_string("../../lab/experiments/redirect-methods.toml").expect("the file");
    let text = text.replace("wrong = [\"middle\", \"last\"]", "");
    let file = directory.path().join("mine.toml");
    fs::write(&file, text).expect("a writable directory");
    let out = directory.path().join("out");
    let file = file.display().to_string();
    let out = out.display().to_string();
    let mut arguments = SMALL.to_vec();
    arguments[2] = &file;
    arguments.extend(["--servers", "milepost", "--only", "redirectmatch*", "--out", &out]);
    let output = run(&arguments);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("WRONG ANSWER: milepost/redirectmatch-unanchored"));
    assert_left_nothing(&directory);
}

#[test]
fn what_cannot_be_done_ends_with_2_and_one_message() {
    let directory = directory();
    let mine = directory.path().join("mine.txt");
    fs::write(&mine, "not a result").expect("a writable directory");
    check_failure(
        &["lab", "run", "nothing"],
        "no experiment \"nothing\"; there is redirect-methods",
    );
    check_failure(&["lab", "run", "./nothing.toml"], "./nothing.toml: No such file");
    check_failure(&["lab", "report", path(&directory)], "result.json: No such file");
    let taken = ["lab", "run", "redirect-methods", "--servers", "milepost", "--out"];
    let taken: Vec<&str> = taken.into_iter().chain([path(&directory)]).collect();
    check_failure(&taken, "holds files that are not an earlier result");
    let none = ["lab", "run", "redirect-methods", "--servers", "nginx", "--only", "redirect"];
    check_failure(&none, "nothing to run");
    assert!(mine.exists());
}

#[test]
fn an_interrupted_run_leaves_nothing_running() {
    for signal in ["-INT", "-TERM", "-HUP"] {
        let directory = directory();
        let mut child = Command::new(MILEPOST)
            .args(["lab", "run", "redirect-methods", "--quick", "--rules", "20", "--out"])
            .arg(directory.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("milepost starts");
        let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
        let measuring = |line: &String| line.starts_with("round 1");
        lines.by_ref().map_while(Result::ok).find(measuring).expect("a first round");
        assert!(processes(&directory) > 10, "the servers run");

        let killed = Command::new("kill").args([signal, &child.id().to_string()]).status();
        assert!(killed.expect("kill runs").success());
        let status = child.wait().expect("milepost ends");
        let last = lines.map_while(Result::ok).last();
        assert_eq!(status.code(), Some(2), "{signal}");
        assert_eq!(last.as_deref(), Some("milepost: interrupted"), "{signal}");
        assert_left_nothing(&directory);
    }
}

#[track_caller]
fn check_failure(arguments: &[&str], message: &str) {
    let output = run(arguments);
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{text}");
    let last = text.lines().last().unwrap_or_default();
    assert!(last.starts_with("milepost: ") && last.contains(message), "{text}");
}

fn small(directory: &TempDir, more: &[&str]) -> Output {
    let mut arguments = SMALL.to_vec();
    arguments.extend(more);
    arguments.extend(["--out", path(directory)]);
    run(&arguments)
}

fn run(arguments: &[&str]) -> Output {
    Command::new(MILEPOST).args(arguments).stdin(Stdio::null()).output().expect("milepost runs")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn directory() -> TempDir {
    tempfile::tempdir().expect("a directory")
}

fn path(directory: &TempDir) -> &str {
    directory.path().to_str().expect("a path in UTF-8")
}

#[track_caller]
fn assert_left_nothing(directory: &TempDir) {
    assert_eq!(processes(directory), 0, "processes left");
}

/// Counts the processes that have a file in `directory` open: every server keeps its output there.
fn processes(directory: &TempDir) -> usize {
    let path = directory.path().canonicalize().expect("the directory");
    let entries = fs::read_dir("/proc").expect("/proc").flatten();
    entries.filter(|entry| is_process(&entry.path()) && has_open(&entry.path(), &path)).count()
}

fn is_process(entry: &Path) -> bool {
    let id = entry.file_name().and_then(|name| name.to_str()).and_then(|name| name.parse().ok());
    id.is_some_and(|id: u32| id != std::process::id())
}

fn has_open(process: &Path, directory: &Path) -> bool {
    let files = fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
    let mut files = files.filter_map(|file| fs::read_link(file.path()).ok());
    files.any(|file| file.starts_with(directory))
}
