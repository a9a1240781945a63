//! `milepost load --http2` against Apache and nginx, over TLS and by prior knowledge.

use crate::program::{Printed, run};
use crate::server::Server;

const MILEPOST: &str = env!("CARGO_BIN_EXE_milepost");

#[test]
fn requests_go_over_streams_and_every_answer_is_checked() {
    for server in Server::both() {
        let name = server.name;
        let mut urls = vec![(server.secure_url(""), true)];
        if name == "apache" {
            // By prior knowledge; this nginx has that only instead of HTTP/1.1.
            urls.push((server.url(""), false));
        }
        for (url, is_secure) in urls {
            let load = |path: &str, options: &str| {
                let url = format!("{url}{path}");
                let words = ["load", "-q", "-k", "--json", "--http2", "-n", "200", &url];
                let words: Vec<_> = words.into_iter().chain(options.split_whitespace()).collect();
                run(MILEPOST, server.directory(), &words)
            };
            let printed = load("/ok", "-c 2 --streams 5 --expect-status 200 --expect-bytes 8");
            let what = format!("{name} {url}: {printed:?}");
            assert_eq!(printed.exit, Some(0), "{what}");
            assert_eq!(number(&printed, "requests"), 200, "{what}");
            assert_eq!(number(&printed, "errors"), 0, "{what}");
            assert_eq!(number(&printed, "opened"), 2, "{what}");
            assert_eq!(number(&printed, "content"), 1_600, "{what}");
            assert!(number(&printed, "received") > 1_600, "{what}");
            assert_eq!(printed.out.contains("\"full_handshakes\": 2,"), is_secure, "{what}");

            let location = format!("{url}/elsewhere");
            let redirect = "--expect-status 301 --streams 3 -c 1 --rate 1000 --expect-location";
            let printed = load("/r", &format!("{redirect} {location}"));
            let what = format!("{name} {url}: {printed:?}");
            assert_eq!(printed.exit, Some(1), "{what}");
            assert_eq!(number(&printed, "wrong_answers"), 200, "{what}");
            assert!(printed.out.contains("got\": \"status 301, Location http"), "{what}");
        }
    }
}

#[test]
fn a_server_without_http2_is_an_error_and_the_run_ends() {
    let [_, nginx] = Server::both();
    let url = nginx.url("/ok");
    let words = ["load", "-q", "--http2", "-d", "20s", &url];
    let printed = run(MILEPOST, nginx.directory(), &words);
    assert!(matches!(printed.exit, Some(1 | 2)), "{printed:?}");
}

#[test]
fn an_open_loop_sends_by_the_clock_and_says_how_late() {
    let [_, nginx] = Server::both();
    let url = nginx.secure_url("/ok");
    for (options, polls) in [("", false), ("--busy-poll", true)] {
        let words =
            "load -q -k --json --http2 -n 300 --rate 600 --arrival poisson -c 1 --streams 4";
        let words = words.split(' ').chain(options.split_whitespace()).chain([&*url]);
        let printed = run(MILEPOST, nginx.directory(), &words.collect::<Vec<_>>());
        assert_eq!(printed.exit, Some(0), "{printed:?}");
        assert_eq!(number(&printed, "requests"), 300, "{printed:?}");
        let report: serde_json::Value = serde_json::from_str(&printed.out).expect("an object");
        let generator = &report["generator"];
        assert_eq!(generator["busy_poll"], polls, "{generator}");
        // All but those that waited for the connection.
        assert!(generator["lateness_ns"]["samples"].as_u64() > Some(200), "{generator}");
        let polled = generator["polled_seconds"].as_f64().expect("a number");
        let cpu = generator["cpu_seconds"].as_f64().expect("a number");
        // Whoever polls has been at it whenever nothing was to do, on a processor or waiting for one.
        assert!(if polls { polled > 0.0 && cpu > 0.0 } else { polled < 0.4 }, "{generator}");
    }
}

/// A number of the JSON, by its name.
#[track_caller]
fn number(printed: &Printed, name: &str) -> u64 {
    let start = format!("\"{name}\": ");
    let at = printed.out.find(&start).unwrap_or_else(|| panic!("no {name}: {printed:?}"));
    let digits = printed.out[at + start.len()..].split(|it: char| !it.is_ascii_digit());
    digits.into_iter().next().unwrap_or_default().parse().expect("a number")
}
