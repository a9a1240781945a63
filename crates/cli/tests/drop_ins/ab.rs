//! `milepost ab` beside ab.

use std::fs;
use std::path::Path;

use milepost_testkit::directory::Directory;

use crate::program::{NOBODY, Printed, both, run};
use crate::server::Server;

/// Labels whose values do not depend on time.
const COUNTS: [&str; 10] = [
    "Server Software",
    "Server Hostname",
    "Server Port",
    "Document Path",
    "Document Length",
    "Concurrency Level",
    "Complete requests",
    "Failed requests",
    "Total transferred",
    "HTML transferred",
];

#[test]
fn labels_and_counts_are_the_same() {
    for server in Server::both() {
        fs::write(server.directory().join("body"), "a=1&b=2").expect("a file");
        for (options, path) in [
            ("-n 1 -c 1", "/ok"),
            ("-n 200 -c 4", "/ok"),
            ("-n 50 -c 2", "/r"),
            ("-n 30 -q", "/none"),
            ("-k -n 300 -c 3", "/ok"),
            ("-k -n 20", "/r?a=b&c"),
            ("-i -n 10", "/ok"),
            ("-k -i -n 10", "/r"),
            ("-n 10 -p body -T application/x-www-form-urlencoded", "/r"),
            ("-n 10 -u body", "/none"),
            ("-n 10 -l -d", "/ok"),
            ("-n 10 -S", "/ok"),
            ("-n 10 -C a=b -A u:p -H X-Own:1 -H Host:other.example", "/ok"),
            ("-n 10 -s 5 -b 8192 -r", "/ok"),
            ("-n 5 -H Connection:close", "/ok"),
        ] {
            let url = server.url(path);
            let mut arguments: Vec<_> = options.split(' ').collect();
            arguments.push(&url);
            let [theirs, ours] = both("ab", server.directory(), &arguments);
            let what = format!("{}: ab {options} {path}", server.name);
            assert_eq!((ours.exit, theirs.exit), (Some(0), Some(0)), "{what}");
            assert_eq!(labels(&ours), labels(&theirs), "{what}");
            for label in COUNTS.into_iter().chain(more_counts(&theirs)) {
                assert_eq!(ours.value(label), theirs.value(label), "{what}: {label}");
            }
            assert_eq!(percentiles(&ours), percentiles(&theirs), "{what}");
            assert_eq!(progress(&ours), progress(&theirs), "{what}");
        }
    }
}

#[test]
fn the_html_table_has_the_same_cells() {
    let [apache, _] = Server::both();
    let arguments = ["-w", "-k", "-n", "10", "-y", "align=right", &apache.url("/r")];
    let [theirs, ours] = both("ab", apache.directory(), &arguments);
    // Without the banner, with digits made alike.
    let shape = |printed: &Printed| {
        let table = printed.out.split_once("<table").expect("a table").1.to_owned();
        let labels = table.split("<th").skip(1).map(|cell| cell.split("</th>").next().unwrap());
        labels.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(shape(&ours), shape(&theirs));
    assert!(ours.out.contains("<td colspan=2 bgcolor=white>10</td>"), "{}", ours.out);
}

#[test]
fn verbosity_shows_the_same_lines() {
    for server in Server::both() {
        let arguments = ["-v", "11", "-n", "1", "-c", "1", &server.url("/r")];
        let [theirs, ours] = both("ab", server.directory(), &arguments);
        let shown = |printed: &Printed| -> Vec<String> {
            let start = printed.out.find("INFO: ").expect("what was sent");
            let end = printed.out.find("..done").expect("the end");
            let lines = printed.out[start..end].lines();
            // Time goes on between the two, and what is sent is not the same.
            lines
                .filter(|line| {
                    !["Date:", "User-Agent:", "Connection:"].iter().any(|it| line.starts_with(it))
                })
                .map(str::to_owned)
                .collect()
        };
        assert_eq!(shown(&ours), shown(&theirs), "{}", server.name);
    }
}

#[test]
fn the_files_have_the_same_form() {
    let [_, nginx] = Server::both();
    let (directory, url) = (nginx.directory(), nginx.url("/ok"));
    for number in ["60", "200"] {
        let arguments = ["-n", number, "-e", "csv", "-g", "tsv", &url];
        let form = || (csv_form(directory), tsv_form(directory));
        assert_eq!(run("ab", directory, &arguments).exit, Some(0));
        let theirs = form();
        // Milepost runs second and writes over them.
        let [_, ours] = both("ab", directory, &arguments);
        assert_eq!((ours.exit, form()), (Some(0), theirs));
    }
}

#[test]
fn exit_codes_and_their_reasons_are_the_same() {
    let directory = Directory::new().expect("a directory");
    let refused = format!("http://{NOBODY}/");
    for (arguments, reason) in [
        (vec!["-n", "1", &refused], "apr_socket_recv: Connection refused (111)"),
        (vec!["-n", "0", &refused], "Invalid number of requests"),
        (vec!["-n", "x", &refused], "Invalid number of requests"),
        (vec!["-c", "5", "-n", "2", &refused], "Cannot use concurrency level greater than"),
        (vec![], "ab: wrong number of arguments"),
        (vec!["-n"], "option requires an argument"),
        (vec!["-n", "1", "http://127.0.0.1"], "ab: invalid URL"),
        (vec![&*refused, "more"], "ab: wrong number of arguments"),
        (vec!["-p", "nofile", &refused], "Could not open POST data file (nofile): No such file"),
        (vec!["-i", "-p", "/dev/null", &refused], "Cannot mix POST with other methods"),
        (vec!["-n", "1", "http://nohost.invalid/"], "apr_sockaddr_info_get() for nohost.invalid: "),
        (vec!["-h"], "Usage: ab [options]"),
    ] {
        let [theirs, ours] = both("ab", directory.path(), &arguments);
        assert_eq!(ours.exit, theirs.exit, "{arguments:?}: {ours:?} {theirs:?}");
        for printed in [&theirs, &ours] {
            assert!(printed.err.contains(reason), "{arguments:?}: {printed:?}");
        }
    }
}

/// Labels in order. ab's warnings come and go with what it rounds; mean and median are never so far
/// apart as they say.
fn labels(printed: &Printed) -> Vec<&str> {
    let mut labels = printed.labels(|printed| &printed.out);
    labels.retain(|label| !["ERROR", "WARNING"].contains(label));
    labels
}

/// Counts that only some runs have.
fn more_counts(printed: &Printed) -> Vec<&'static str> {
    let labels = labels(printed);
    let names = ["Non-2xx responses", "Keep-Alive requests"];
    names.into_iter().filter(|name| labels.contains(name)).collect()
}

/// What stands before the times of the table of percentiles.
fn percentiles(printed: &Printed) -> Vec<&str> {
    let lines = printed.out.lines().filter(|line| line.contains("%  "));
    lines.map(|line| line.split_once('%').expect("a percentage").0).collect()
}

fn progress(printed: &Printed) -> Vec<&str> {
    printed.err.lines().filter(|line| line.ends_with(" requests")).collect()
}

/// Header and first column.
fn csv_form(directory: &Path) -> Vec<String> {
    let text = fs::read_to_string(directory.join("csv")).expect("a file");
    let mut lines = text.lines();
    let header = lines.next().expect("a header").to_owned();
    let column = lines.map(|line| line.split_once(',').expect("two columns").0.to_owned());
    std::iter::once(header).chain(column).collect()
}

/// Header, number of rows, and the form of the first row with digits made alike.
fn tsv_form(directory: &Path) -> (String, usize, Vec<usize>) {
    let text = fs::read_to_string(directory.join("tsv")).expect("a file");
    let mut lines = text.lines();
    let header = lines.next().expect("a header").to_owned();
    let rows: Vec<_> = lines.collect();
    let words = rows[0].split('\t').map(|cell| cell.split(' ').count()).collect();
    (header, rows.len(), words)
}
