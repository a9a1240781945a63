//! `milepost http_load` against real servers. The original is in no distribution; what is held here is
//! its interface: labels, their order, the form of the numbers, exit codes.

use std::fs;

use crate::program::{Printed, Running, ours};
use crate::server::Server;

#[test]
fn the_report_of_real_servers_has_the_lines_of_http_load() {
    for server in Server::both() {
        let directory = server.directory();
        let urls =
            format!("{}\n{}\n{}\n", server.url("/ok"), server.url("/r"), server.url("/none"));
        fs::write(directory.join("urls"), urls).expect("a file");
        // Too many to be over in the hundredth of a second below which no rates are printed.
        for line in [
            "-parallel 5 -fetches 900 urls",
            "-p 2 -f 900 -checksum -seed 3 urls",
            "-rate 100 -jitter -seconds 1 urls",
            "-p 1 -f 900 --quirks=http_load urls",
        ] {
            let words: Vec<_> = line.split(' ').collect();
            let printed = ours("http_load", directory, &words);
            let what = format!("{}: http_load {line}: {printed:?}", server.name);
            assert_eq!(printed.exit, Some(0), "{what}");
            let counts = counts(&printed);
            assert_eq!(
                counts.fetches,
                counts.codes.iter().map(|(_, count)| count).sum::<u64>(),
                "{what}"
            );
            let codes: Vec<_> = counts.codes.iter().map(|(code, _)| &**code).collect();
            assert_eq!(codes, ["200", "301", "404"], "{what}");
        }
    }
}

#[test]
fn ctrl_c_prints_the_report() {
    let [_, nginx] = Server::both();
    fs::write(nginx.directory().join("urls"), nginx.url("/ok")).expect("a file");
    let running = Running::start("http_load", nginx.directory(), &["-p", "2", "-s", "600", "urls"]);
    // Long enough for some fetches; that they were some is what is asserted.
    std::thread::sleep(std::time::Duration::from_millis(500));
    let printed = running.interrupt();
    assert_eq!(printed.exit, Some(0), "{printed:?}");
    assert!(counts(&printed).fetches > 0, "{printed:?}");
}

struct Counts {
    fetches: u64,
    codes: Vec<(String, u64)>,
}

/// Reads the report, every line of which must be there and have its form.
#[track_caller]
fn counts(printed: &Printed) -> Counts {
    let mut lines = printed.out.lines();
    let mut next = || lines.next().unwrap_or_else(|| panic!("a line is missing: {printed:?}"));
    let [fetches, ..] = numbers(next(), "# fetches, # max parallel, # bytes, in # seconds")[..]
    else {
        panic!("{printed:?}")
    };
    numbers(next(), "# mean bytes/connection");
    numbers(next(), "# fetches/sec, # bytes/sec");
    for name in ["connect", "first-response"] {
        let times = numbers(next(), &format!("msecs/{name}: # mean, # max, # min"));
        assert!(times[2] <= times[0] && times[0] <= times[1], "{printed:?}");
    }
    assert_eq!(next(), "HTTP response codes:");
    let codes = lines.map(|line| {
        let (code, count) =
            line.strip_prefix("  code ").and_then(|it| it.split_once(" -- ")).expect("a code");
        (code.to_owned(), count.parse().expect("a count"))
    });
    Counts { fetches: fetches as u64, codes: codes.collect() }
}

/// The numbers of a line, which otherwise is `form`.
#[track_caller]
fn numbers(line: &str, form: &str) -> Vec<f64> {
    let mut numbers = Vec::new();
    let words = line.split(' ').map(|word| {
        let (bare, comma) = word.strip_suffix(',').map_or((word, ""), |bare| (bare, ","));
        match bare.parse::<f64>() {
            Ok(number) => {
                numbers.push(number);
                format!("#{comma}")
            }
            Err(_) => word.to_owned(),
        }
    });
    assert_eq!(words.collect::<Vec<_>>().join(" "), form);
    numbers
}
