//! Command lines as people have published them, word for word but for the URL and the length of a run.

use std::fs;

use crate::program::{ours, run};
use crate::server::Server;
use crate::siege::configure;

#[test]
fn published_command_lines_of_ab_work() {
    for server in Server::both() {
        for (line, complete) in [
            ("-k -c 1 -n 20000", "20000"),
            ("-v 11 -n 1 -c 1", "1"),
            ("-H|Connection: close|-n1|-c1", "1"),
        ] {
            let url = server.url("/r");
            let mut words: Vec<_> =
                line.split(if line.contains('|') { '|' } else { ' ' }).collect();
            words.push(&url);
            let printed = ours("ab", server.directory(), &words);
            assert_eq!(printed.exit, Some(0), "{}: ab {line}: {}", server.name, printed.err);
            assert_eq!(printed.value("Complete requests"), complete, "ab {line}");
            assert_eq!(printed.value("Failed requests"), "0", "ab {line}");
            assert_eq!(printed.value("Non-2xx responses"), complete, "ab {line}");
        }
    }
}

#[test]
fn published_command_lines_of_siege_work() {
    for server in Server::both() {
        configure(server.directory());
        let list = format!("{}\n{}\n", server.url("/r"), server.url("/ok"));
        fs::write(server.directory().join("urllist.txt"), list).expect("a file");
        let words = ["-d0", "-c10", "-t1s", "-i", "-f", "urllist.txt"];
        let printed = ours("siege", server.directory(), &words);
        assert_eq!(printed.exit, Some(0), "{printed:?}");
        assert_eq!(printed.value("Availability"), "100.00 %");
        let elapsed = printed.value("Elapsed time");
        let seconds: f64 = elapsed.split(' ').next().expect("a word").parse().expect("a number");
        assert!((1.0..10.0).contains(&seconds), "{elapsed}");
    }
}

/// What a script with ten generators in the background did.
#[test]
fn ten_generators_are_one_command() {
    let [_, nginx] = Server::both();
    let url = nginx.url("/r");
    let words = ["load", "-q", "--processes", "10", "-c", "200", "-n", "5000", &url];
    let words = [&words[..], &["--expect-status", "301"]].concat();
    let printed = run(env!("CARGO_BIN_EXE_milepost"), nginx.directory(), &words);
    assert_eq!(printed.exit, Some(0), "{printed:?}");
    assert!(printed.out.contains("\nright answers   5,000 "), "{printed:?}");
    assert!(printed.out.contains("10 threads in 10 processes"), "{printed:?}");
}

#[test]
fn a_value_that_is_an_option_ends_siege_and_starts_nothing() {
    let [_, nginx] = Server::both();
    fs::write(nginx.directory().join("rc"), format!("url = {}\n", nginx.url("/ok")))
        .expect("a file");
    let printed = ours("siege", nginx.directory(), &["-R", "rc", "-c", "-r1"]);
    assert_eq!((printed.exit, &*printed.out), (Some(1), ""), "{printed:?}");
    assert_eq!(printed.err, "[fatal] concurrent needs a number, not \"-r1\"\n");
}

#[test]
fn an_old_cipher_is_refused_in_one_line() {
    let [_, nginx] = Server::both();
    fs::write(nginx.directory().join("sslurl.txt"), "https://127.0.0.1/\n").expect("a file");
    let words = "-cipher RC4-MD5 -parallel 20 -fetch 500 sslurl.txt".split(' ');
    let printed = ours("http_load", nginx.directory(), &words.collect::<Vec<_>>());
    assert_eq!((printed.exit, &*printed.out), (Some(1), ""), "{printed:?}");
    assert!(printed.err.contains("RC4-MD5") && printed.err.lines().count() == 1, "{printed:?}");
}
