//! `milepost load` against every server: persistent connections, a new one for each request, pipelines, TLS,
//! HTTP/2, chains.

use crate::program::run;
use crate::server::Server;

const MILEPOST: &str = env!("CARGO_BIN_EXE_milepost");

#[test]
fn every_answer_of_every_server_is_right() {
    for server in Server::all() {
        let (clear, secure) = (server.url("/ok"), server.secure_url("/ok"));
        for (url, options) in [
            (&clear, "-c 4"),
            (&clear, "-c 4 --io epoll"),
            (&clear, "-c 4 --no-keep-alive"),
            (&clear, "-c 4 --rate 2000 --arrival poisson"),
            (&clear, "-c 2 --pipeline 8"),
            (&clear, "-c 2 --pipeline 8 --rate 2000"),
            (&secure, "-c 4"),
            (&secure, "-c 4 --no-keep-alive"),
            (&secure, "-c 2 --pipeline 8"),
            (&secure, "-c 2 --http2 --streams 4"),
            (&secure, "-c 2 --http2 --rate 2000"),
            (&clear, "-c 2 --http2 --streams 4"),
        ] {
            if server.name == "nginx" && options.contains("--http2") && url == &clear {
                // It has that only instead of HTTP/1.1.
                continue;
            }
            let fixed = ["load", "-q", "-k", "-n", "300", "--expect-status", "200"];
            let more = ["--expect-bytes", "8", "--expect-sha256", OK_SHA256, url];
            let words: Vec<_> = fixed.into_iter().chain(more).chain(options.split(' ')).collect();
            let printed = run(MILEPOST, server.directory(), &words);
            let what = format!("{} {url} {options}: {printed:?}", server.name);
            assert_eq!(printed.exit, Some(0), "{what}");
            assert!(printed.out.contains("\nright answers   300 "), "{what}");
        }
    }
}

#[test]
fn chains_of_every_server_are_followed() {
    for server in Server::all() {
        for (url, options) in [
            (server.url("/chain"), "-c 3"),
            (server.url("/chain"), "-c 3 --no-keep-alive"),
            (server.secure_url("/chain"), "-c 2 --http2 --streams 2"),
        ] {
            let fixed = ["load", "-q", "-k", "-L", "-n", "60", "--expect-status", "302", &url];
            let words: Vec<_> = fixed.into_iter().chain(options.split(' ')).collect();
            let printed = run(MILEPOST, server.directory(), &words);
            let what = format!("{} {url} {options}: {printed:?}", server.name);
            assert_eq!(printed.exit, Some(0), "{what}");
            assert!(
                printed.out.contains("\nchains          60 right, 0 wrong, 0 failed\n"),
                "{what}"
            );
            assert!(
                printed.out.contains("\nstatus          60 with 200, 60 with 301, 60 with 302\n"),
                "{what}"
            );
        }
    }
}

/// `printf 'success\\n' | sha256sum`
const OK_SHA256: &str = "81b2bd4ea98c8db66554fbc8d7637a1a69a130f331feb732b75caab4c4868fd5";
