//! Digest authentication with Apache's mod_auth_digest: `milepost load` over HTTP/1 and 2, and siege.

use std::fs;

use crate::program::{both, run};
use crate::server::Server;
use crate::siege::configure;

const MILEPOST: &str = env!("CARGO_BIN_EXE_milepost");

#[test]
fn apache_takes_every_digest() {
    let [apache, _] = Server::both();
    let url = apache.url("/private");
    for protocol in ["-c 2", "-c 2 --http2", "-c 2 --no-keep-alive", "-c 1 --io epoll --rate 500"] {
        let load = |user: &str| {
            let fixed = ["load", "-q", "-n", "100", "-u", user, &url];
            let words: Vec<_> = fixed.into_iter().chain(protocol.split(' ')).collect();
            run(MILEPOST, apache.directory(), &words)
        };
        let printed = load("Mufasa:Circle of Life");
        let what = format!("{protocol}: {printed:?}");
        assert_eq!(printed.exit, Some(0), "{what}");
        // Each visitor is asked once.
        let statuses = printed.out.lines().find(|line| line.starts_with("status ")).expect("one");
        assert!(statuses.contains("100 with 200, "), "{what}");
        let asked = statuses.split(", ").nth(1).expect("the other").split(' ').next().unwrap();
        assert!(["1", "2"].contains(&asked), "{what}");
        let printed = load("Mufasa:wrong");
        assert!(!printed.out.contains("with 200"), "{printed:?}");
        assert!(printed.out.contains(" with 401\n"), "{printed:?}");
        assert_eq!(printed.exit, Some(1), "{printed:?}");
    }
}

#[test]
fn siege_logs_in_as_siege_does() {
    let [apache, _] = Server::both();
    configure(apache.directory());
    let rc = apache.directory().join(".siege/siege.conf");
    let settings = fs::read_to_string(&rc).expect("the file of siege");
    fs::write(&rc, format!("{settings}\nlogin = Mufasa:Circle of Life:lions\n")).expect("a file");
    let [theirs, ours] =
        both("siege", apache.directory(), &["-c", "1", "-r", "3", "-b", &apache.url("/private")]);
    for (name, printed) in [("siege", &theirs), ("milepost", &ours)] {
        assert_eq!(printed.value("Availability"), "100.00 %", "{name}: {printed:?}");
        assert_eq!(printed.out.matches(" 200 ").count(), 3, "{name}: {printed:?}");
    }
}
