//! Configurations as they are found on real servers: milepost loads and answers them as httpd does.
//!
//! The files are written for this test, after what blogs, shops and how-tos have in common; each is asked
//! for every rule in it. `lines.txt` has single directives, right and wrong ones; the texts that cannot
//! stand in a file of their own (line ends, long lines) are made here.

use std::path::Path;

use milepost_engine::Lookup;
use milepost_testkit::corpus::{self, Place};
use milepost_testkit::differential::differences;
use milepost_testkit::httpd::Program;
use milepost_testkit::{Case, Engine, Judge, Milepost, Verdict, spec};

/// Any number.
const SEED: u64 = 7;
/// Requests for each single line: what it does to a request matters less than whether it loads.
const REQUESTS_PER_LINE: usize = 2;

#[test]
fn files() {
    let mut cases = Vec::new();
    for entry in std::fs::read_dir(directory()).expect("the directory is there") {
        let path = entry.expect("it can be listed").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !name.ends_with(".conf") {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("the file is readable");
        let is_host = name.ends_with(".vhost.conf");
        let place = if is_host { Place::Server } else { Place::Htaccess };
        cases.push(corpus::case(&name, &text, place, SEED));
    }
    assert!(cases.len() >= 12, "{} files", cases.len());
    check(&cases);
}

#[test]
fn line_ends_and_long_lines() {
    let rules = "RewriteEngine On\nRewriteRule ^a$ http://t/a [R]\nRedirect /b http://t/b\n";
    let crlf = rules.replace('\n', "\r\n");
    let comment = |len: usize| format!("#{}\n{rules}", "x".repeat(len - 1));
    let blanks = " ".repeat(5000);
    let texts = [
        crlf.clone(),
        format!("\u{feff}{rules}"),
        rules.replace('\n', "\r"),
        rules.trim_end().to_owned(),
        format!("{rules}\\"),
        rules.replace(" http", " \\\nhttp"),
        crlf.replace(" http", " \\\r\n http"),
        comment(8191),
        comment(8192),
        comment(8190).replace('\n', "\r\n"),
        comment(8191).replace('\n', "\r\n"),
        format!("<IfModule mod_none.c>\n{}</IfModule>\n", comment(9000)),
        rules.replace(" http", &format!("{blanks}\\\n{blanks}http")),
    ];
    let cases = texts.iter().enumerate().flat_map(|(number, text)| {
        [Place::Htaccess, Place::Server]
            .map(|place| corpus::case(&format!("text {number} {place:?}"), text, place, SEED))
    });
    check(&cases.collect::<Vec<_>>());
}

#[test]
fn single_lines() {
    let text = std::fs::read_to_string(directory().join("lines.txt")).expect("it is readable");
    let mut cases = Vec::new();
    for line in text.lines().skip(1) {
        for place in [Place::Htaccess, Place::Server] {
            let mut case =
                corpus::case(&format!("{line} ({place:?})"), &format!("{line}\n"), place, SEED);
            case.exchanges.truncate(REQUESTS_PER_LINE);
            cases.push(case);
        }
    }
    assert!(cases.len() > 600, "{} lines", cases.len());
    check(&cases);
}

fn directory() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real_world")
}

#[track_caller]
fn check(cases: &[Case]) {
    let program = Program::find().expect("httpd is installed").with_modules(&corpus::MODULES);
    let judge = Judge::with(program.clone()).expect("httpd runs");
    let scan = Milepost::new(Lookup::Scan, program.clone());
    let index = Milepost::new(Lookup::Index, program);
    let all: Vec<&Case> = cases.iter().collect();
    let [judged, scanned, indexed]: [Vec<Verdict>; 3] = [&judge as &dyn Engine, &scan, &index]
        .map(|engine| engine.run(&all).expect("all three answer"));
    let mut wrong = String::new();
    for (((case, judged), scanned), indexed) in
        cases.iter().zip(&judged).zip(&scanned).zip(&indexed)
    {
        for found in differences(case, judged, scanned, indexed).into_iter().take(3) {
            let request = found.request.map(|at| spec::one_line(&case.exchanges[at].ask));
            wrong.push_str(&format!(
                "{}: {:?} {}\n    httpd    {}\n    milepost {}\n",
                case.name,
                found.kind,
                request.unwrap_or_default(),
                found.expected,
                found.got
            ));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
