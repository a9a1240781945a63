//! TLS against Apache and nginx: the drop-ins beside the originals, and `milepost load`.

use std::fs;

use crate::program::{both, ours, run};
use crate::server::Server;
use crate::siege::configure;

#[test]
fn ab_prints_what_ab_prints_of_https() {
    for server in Server::both() {
        let url = server.secure_url("/ok");
        for line in ["-n 40 -c 2", "-n 40 -k", "-n 3 -f TLS1.2 -Z ECDHE-ECDSA-AES256-GCM-SHA384"] {
            let mut words: Vec<_> = line.split(' ').collect();
            words.push(&url);
            let [theirs, ours] = both("ab", server.directory(), &words);
            let what = format!("{}: ab {line}: {theirs:?} {ours:?}", server.name);
            assert_eq!(ours.exit, theirs.exit, "{what}");
            assert_eq!(ours.labels(|it| &it.out), theirs.labels(|it| &it.out), "{what}");
            for label in ["Complete requests", "Failed requests", "HTML transferred"] {
                assert_eq!(ours.value(label), theirs.value(label), "{what}");
            }
            // Where TLS 1.3 is spoken, each library prefers another cipher.
            if line.contains("-Z") {
                let label = "SSL/TLS Protocol";
                assert_eq!(ours.value(label), theirs.value(label), "{what}");
            }
        }
    }
}

#[test]
fn siege_and_http_load_do_https() {
    for server in Server::both() {
        let (directory, url) = (server.directory(), server.secure_url("/r"));
        configure(directory);
        let words = ["--no-parser", "-r", "5", "-c", "2", &url];
        let [theirs, printed] = both("siege", directory, &words);
        for label in ["Transactions", "Failed transactions"] {
            assert_eq!(printed.value(label), theirs.value(label), "{theirs:?} {printed:?}");
        }
        fs::write(directory.join("sslurl.txt"), format!("{url}\n")).expect("a file");
        let cipher = "ECDHE-ECDSA-AES128-GCM-SHA256";
        let words = ["-cipher", cipher, "-parallel", "5", "-fetch", "100", "sslurl.txt"];
        let printed = ours("http_load", directory, &words);
        assert_eq!(printed.exit, Some(0), "{printed:?}");
        assert!(printed.out.contains("code 301 -- 100"), "{printed:?}");
    }
}

#[test]
fn load_checks_certificates_and_tells_full_handshakes_from_resumed_ones() {
    let milepost = env!("CARGO_BIN_EXE_milepost");
    for server in Server::both() {
        let (directory, url) = (server.directory(), server.secure_url("/ok"));
        let load = |options: &str| {
            let words = ["load", "-q", "-n", "20", "-c", "1", "--json", &url];
            let words: Vec<_> = words.into_iter().chain(options.split_whitespace()).collect();
            run(milepost, directory, &words)
        };
        let refused = load("");
        assert_eq!(refused.exit, Some(2), "{refused:?}");
        assert!(refused.err.contains("trust its authority with --cacert"), "{refused:?}");
        for (options, full, resumed) in [
            ("--cacert cert.pem", 1, 0),
            ("-k --no-keep-alive --tls-max 1.2", 1, 19),
            ("-k --no-keep-alive --tls-resume off", 20, 0),
            ("-k --no-keep-alive --tls-min 1.3", 1, 19),
        ] {
            let printed = load(options);
            let what = format!("{} {options}: {printed:?}", server.name);
            assert_eq!(printed.exit, Some(0), "{what}");
            for (name, count) in [("full", full), ("resumed", resumed)] {
                let field = format!("\"{name}_handshakes\": {count},");
                assert!(printed.out.contains(&field), "{field} {what}");
            }
        }
    }
}
