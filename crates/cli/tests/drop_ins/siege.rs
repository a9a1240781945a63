//! `milepost siege` beside siege.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use milepost_testkit::directory::Directory;
use serde_json::Value;

use crate::program::{NOBODY, Printed, both};
use crate::server::Server;

/// What siege's own template says, but for colours, JSON and page elements.
const RESOURCES: &str = "verbose = true\ncolor = off\njson_output = false\nshow-logfile = false\n\
                         logging = false\nparser = false\nprotocol = HTTP/1.1\nconnection = close\n\
                         delay = 0.0\ngmethod = GET\n";

/// Labels whose values do not depend on time.
const COUNTS: [&str; 5] = [
    "Transactions",
    "Availability",
    "Data transferred",
    "Successful transactions",
    "Failed transactions",
];

#[test]
fn labels_counts_and_lines_are_the_same() {
    for server in Server::both() {
        let directory = server.directory();
        let list = format!(
            "# A comment.\nHOST={}\n$(HOST)/ok\n${{HOST}}/r\nhttp://$(HOST)/none POST a=1&b=2\n\
             $(HOST)/ok?c=$(NOTHING)d\n$(HOST)/form PUT <./body\n  http://{}/a b  \n",
            server.address, server.address
        );
        configure(directory);
        fs::write(directory.join("urls"), list).expect("a file");
        fs::write(directory.join("body"), "a=1&b=2").expect("a file");
        for (options, path) in [
            ("-c 1 -r 3 -b", "/ok"),
            ("-c 1 -r 3 -b", "/r"),
            ("-c 2 -r 2 -b", "/chain"),
            ("-c 1 -r 3 -b -F", "/chain"),
            ("-c 3 -r 4 -b", "/none"),
            ("-c1 -r2 -d0", "/ok?a=b"),
            ("--concurrent=2 --reps=2 --benchmark", "/ok"),
            ("-c 2 -r once -b -f urls", ""),
            ("-c 1 -r 9 -b -f urls", ""),
            ("-i -c 2 -r 5 -b", "/r"),
            ("-c 1 -r 1 -A agent -H X-Own:1 -T text/x", "/ok"),
        ] {
            let url = server.url(path);
            let mut arguments: Vec<_> = options.split(' ').collect();
            if !path.is_empty() {
                arguments.push(&url);
            }
            let [theirs, ours] = both("siege", directory, &arguments);
            let what = format!("{}: siege {options} {path}", server.name);
            assert_eq!((ours.exit, theirs.exit), (Some(0), Some(0)), "{what}");
            assert_eq!(ours.labels(err), theirs.labels(err), "{what}");
            for label in COUNTS {
                assert_eq!(ours.value(label), theirs.value(label), "{what}: {label}");
            }
            assert_eq!(lines(&ours), lines(&theirs), "{what}");
        }
    }
}

#[test]
fn json_has_the_same_keys_and_counts() {
    let [apache, _] = Server::both();
    configure(apache.directory());
    let arguments = ["-j", "-c", "2", "-r", "3", "-b", &apache.url("/r")];
    let printed = both("siege", apache.directory(), &arguments);
    let [theirs, ours] = printed.map(|it| {
        assert_eq!((it.exit, it.err.trim()), (Some(0), ""));
        // Keys in their order, which a map would lose, and without the times.
        let keys: Vec<_> =
            it.out.lines().filter_map(|line| Some(line.split('"').nth(1)?.to_owned())).collect();
        let object: BTreeMap<String, Value> = serde_json::from_str(&it.out).expect("an object");
        let counts = ["transactions", "successful_transactions", "failed_transactions"];
        (keys, counts.map(|key| object[key].clone()), it.out.matches('\t').count())
    });
    assert_eq!(ours, theirs);
}

#[test]
fn one_exchange_is_shown_in_the_same_form() {
    for server in Server::both() {
        configure(server.directory());
        for mode in ["-g", "-p"] {
            let [theirs, ours] = both("siege", server.directory(), &[mode, &server.url("/r")]);
            assert_eq!((ours.exit, theirs.exit), (Some(0), Some(0)));
            // What is sent is not the same, and time goes on between the two.
            let shown = |printed: &Printed| -> Vec<String> {
                let own = ["Date:", "User-Agent:", "Accept:", "Accept-Encoding:"];
                let lines = printed.out.lines();
                let lines = lines.filter(|line| !own.iter().any(|name| line.starts_with(name)));
                lines.map(str::to_owned).collect()
            };
            assert_eq!(shown(&ours), shown(&theirs), "{} {mode}", server.name);
            assert_eq!(ours.value("Transactions"), theirs.value("Transactions"));
        }
    }
}

#[test]
fn the_log_has_the_same_form() {
    let [_, nginx] = Server::both();
    let directory = nginx.directory();
    configure(directory);
    let forms = ["theirs", "ours"].map(|whose| {
        let file = format!("-l{}", directory.join(whose).display());
        let url = nginx.url("/r");
        let printed =
            both("siege", directory, &[&file, "-m", "a mark", "-c", "1", "-r", "2", &url]);
        assert!(printed.iter().all(|it| it.exit == Some(0)), "{printed:?}");
        // The original wrote header, mark and row, and milepost added a mark and a row.
        let text = fs::read_to_string(directory.join(whose)).expect("a log");
        let lines: Vec<_> = text.lines().map(str::to_owned).collect();
        assert_eq!(lines.len(), 5, "{text}");
        assert_eq!(lines[1], lines[3]);
        let cells = |line: &str| line.split(',').map(str::len).collect::<Vec<_>>();
        assert_eq!(cells(&lines[2]), cells(&lines[4]), "{text}");
        lines[0].clone()
    });
    assert_eq!(forms[0], forms[1]);
}

#[test]
fn exit_codes_and_their_reasons_are_the_same() {
    let directory = Directory::new().expect("a directory");
    configure(directory.path());
    let refused = format!("http://{NOBODY}/");
    for (arguments, reason) in [
        (vec!["-c", "1", "-r", "3", &refused], "Connection refused"),
        (vec!["-f", "nofile"], "unable to open file: nofile: No such file or directory"),
        (vec!["-h"], "Usage: siege [options]"),
        (vec!["-Q"], "siege: invalid option -- 'Q'"),
        (vec!["-C"], "CURRENT  SIEGE  CONFIGURATION"),
        (vec!["-H", "nocolon", &refused], "no ':' in http-header"),
        (
            vec!["-c", "1", "-r", "1", "-t", "1S", &refused],
            "defaulting to time-based testing: 1 seconds",
        ),
    ] {
        let [theirs, ours] = both("siege", directory.path(), &arguments);
        assert_eq!(ours.exit, theirs.exit, "{arguments:?}: {ours:?} {theirs:?}");
        for printed in [&theirs, &ours] {
            let text = format!("{}{}", printed.out, printed.err);
            assert!(text.contains(reason), "{arguments:?}: {printed:?}");
        }
    }
}

/// Settings in the home directory of both.
pub(crate) fn configure(home: &Path) {
    fs::create_dir_all(home.join(".siege")).expect("a directory that can be written");
    fs::write(home.join(".siege/siege.conf"), RESOURCES).expect("a file");
}

fn err(printed: &Printed) -> &str {
    &printed.err
}

/// The lines of the transactions, without their times; users take turns as they like.
fn lines(printed: &Printed) -> Vec<String> {
    let mut lines: Vec<_> = printed
        .out
        .lines()
        .map(|line| match line.split_once(" secs:") {
            None => line.to_owned(),
            Some((before, after)) => {
                let digits = |it: char| it.is_ascii_digit() || it == '.';
                format!("{}secs:{after}", before.trim_end_matches(digits))
            }
        })
        .collect();
    lines.sort();
    lines
}
