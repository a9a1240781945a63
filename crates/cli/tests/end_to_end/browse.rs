//! What `milepost load` does with answers: follows redirects as chains, keeps cookies, over HTTP/1 and 2;
//! and HTTP/2 through a proxy, with everything that is written on the way.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread;

use milepost_testkit::directory::Directory;
use serde_json::Value;

use crate::support::{Server, milepost};

const CONFIGURATION: &str = "Listen 127.0.0.1:0\nProtocols h2c http/1.1\nMaxKeepAliveRequests 0\n\
    Redirect 308 /one /two\nRedirect 302 /two /three\nRedirect 301 /round /about\n\
    Redirect 301 /about /round\nRedirectMatch 301 ^/longer(x*)$ /longer$1x\n\
    Redirect 301 /nowhere https://nohost.invalid/\nRedirect gone /three\n";

const PROTOCOLS: [&str; 3] = ["-c 2", "-c 2 --http2", "-c 1 --http2 --streams 3 --rate 2000"];

#[test]
fn redirects_are_followed_as_chains() {
    let server = server();
    for protocol in PROTOCOLS {
        let load = |path: &str, more: &str| load(&server.url(path), &format!("{protocol} {more}"));
        let report = load("/one", "-L -n 60");
        let what = format!("{protocol}: {report}");
        // The last is gone, which is wrong, and so is every chain.
        assert_eq!(report["statuses"], serde_json::json!({"302": 60, "308": 60, "410": 60}));
        let chains = &report["chains"];
        assert_eq!((&chains["right"], &chains["wrong"]), (&0.into(), &60.into()), "{what}");
        let hops = chains["hops"].as_array().expect("an array");
        let counts: Vec<_> = hops.iter().map(|hop| (&hop["answers"], &hop["ended"])).collect();
        let (none, all) = (&Value::from(0), &Value::from(60));
        assert_eq!(counts, [(all, none), (all, none), (all, all)], "{what}");
        assert!(hops.iter().all(|hop| hop["service_ns"]["p50"].as_u64() > Some(0)), "{what}");

        // Not followed, and followed to a wrong first answer.
        let report = load("/one", "-n 60 --expect-status 308");
        assert_eq!((&report["requests"], &report["wrong_answers"]), (all, none));
        assert_eq!(report["chains"], Value::Null);

        for (path, more, kind, requests) in [
            ("/round", "-L", "redirect_loop", 10),
            ("/longer", "-L --max-redirects 4", "redirect_limit", 40),
            ("/nowhere", "-L", "redirect_unfit", 0),
        ] {
            let report = load(path, &format!("{more} -n 10"));
            let what = format!("{protocol} {path}: {report}");
            let errors = &report["errors_by_kind"];
            assert_eq!((&errors[0]["kind"], &errors[0]["count"]), (&kind.into(), &10.into()));
            assert_eq!((&report["requests"], &report["errors"]), (&requests.into(), &10.into()));
            assert_eq!(report["chains"]["failed"], 10, "{what}");
        }
    }
}

#[test]
fn a_chain_that_is_right_has_a_time_and_is_in_the_report() {
    let directory = Directory::new().expect("a directory");
    fs::write(directory.path().join("end"), "the end\n").expect("a file");
    let root = directory.path().display();
    let text = format!(
        "Listen 127.0.0.1:0\nProtocols h2c http/1.1\nRedirect 307 /first /end\n\
         DocumentRoot {root}\n<Directory {root}>\nRequire all granted\n</Directory>\n"
    );
    let server = Server::start_with(directory.path(), &text);
    for more in ["", "--http2", "--processes 2", "--http2 --template --header X:{{counter}}"] {
        let report = load(&server.url("/first"), &format!("-L -n 40 -c 2 {more}"));
        let chains = &report["chains"];
        assert_eq!((&chains["right"], &report["requests"]), (&40.into(), &80.into()), "{report}");
        let whole = chains["response_ns"]["p50"].as_u64().expect("a time");
        let hops: Vec<_> =
            (0..2).map(|at| chains["hops"][at]["service_ns"]["p50"].as_u64().unwrap()).collect();
        assert!(hops.iter().all(|hop| *hop < whole), "{chains}");
    }
    let finished = milepost(&["load", "-q", "-L", "-n", "10", &server.url("/first")]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let text = &finished.stdout;
    assert!(text.contains("\nchains          10 right, 0 wrong, 0 failed\n"), "{text}");
    assert!(text.contains("\n  request 2     10 answers, 10 of them the last; "), "{text}");
}

#[test]
fn each_stream_keeps_its_cookies() {
    let directory = Directory::new().expect("a directory");
    let log = directory.path().join("access.log");
    let text = format!(
        "Listen 127.0.0.1:0\nProtocols h2c http/1.1\nRedirect 301 /a /b\n\
         Header always set Set-Cookie \"id=7; Path=/\"\nCustomLog {} \"%{{Cookie}}i\"\n",
        log.display()
    );
    let server = Server::start_with(directory.path(), &text);
    let report =
        load(&server.url("/a"), "--http2 --streams 2 -c 1 -n 10 --cookies --expect-status 301");
    assert_eq!((&report["requests"], &report["wrong_answers"]), (&10.into(), &0.into()));
    server.stop();
    let log = fs::read_to_string(&log).expect("a log");
    let count = |line: &str| log.lines().filter(|found| *found == line).count();
    assert!((1..=2).contains(&count("-")) && count("-") + count("id=7") == 10, "{log}");
}

#[test]
fn http2_goes_through_a_tunnel_and_all_is_written() {
    let server = server();
    let proxy = proxy();
    let directory = Directory::new().expect("a directory");
    let file = |name: &str| directory.path().join(name).display().to_string();
    let (csv, ndjson, hdr) = (file("csv"), file("ndjson"), file("hdr"));
    let options = format!(
        "--http2 --streams 2 -c 2 -n 100 --expect-status 308 --proxy {proxy} --csv {csv} \
         --ndjson {ndjson} --hdr {hdr}"
    );
    let report = load(&server.url("/one"), &options);
    assert_eq!((&report["requests"], &report["errors"]), (&100.into(), &0.into()), "{report}");
    let rows = fs::read_to_string(&csv).expect("rows");
    let sent = rows.lines().skip(1).map(|row| row.split(',').nth(3).expect("a cell"));
    assert_eq!(sent.map(|it| it.parse::<u64>().expect("a number")).sum::<u64>(), 100, "{rows}");
    let lines = fs::read_to_string(&ndjson).expect("lines");
    let samples = lines.lines().map(|line| {
        let line: Value = serde_json::from_str(line).expect("JSON");
        line["response_ns"]["samples"].as_u64().expect("a count")
    });
    assert_eq!(samples.sum::<u64>(), 100, "{lines}");
    assert!(fs::read_to_string(&hdr).expect("a log").contains(",HISTFAAA"));

    let refusing = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let address = refusing.local_addr().expect("an address");
    thread::spawn(move || {
        for socket in refusing.incoming().map_while(Result::ok) {
            let _ = (&socket).write_all(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n");
            // Until the client has read it and closes.
            let _ = BufReader::new(&socket).lines().last();
        }
    });
    let url = server.url("/one");
    let proxy = address.to_string();
    let finished = milepost(&["load", "-q", "--http2", "-d", "1s", "--proxy", &proxy, &url]);
    assert_eq!(finished.code, Some(2), "{finished:?}");
    assert!(finished.stderr.contains("HTTP/1.1 403 Forbidden"), "{finished:?}");
}

fn server() -> Server {
    let directory = Directory::new().expect("a directory");
    Server::start_with(directory.path(), CONFIGURATION)
}

/// The report of a run.
#[track_caller]
fn load(url: &str, options: &str) -> Value {
    let words: Vec<_> = options.split_whitespace().collect();
    let finished = milepost(&[&["load", "-q", "--json", url], &words[..]].concat());
    serde_json::from_str(&finished.stdout).unwrap_or_else(|_| panic!("{finished:?}"))
}

/// A proxy that makes tunnels.
fn proxy() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            thread::spawn(move || tunnel(client));
        }
    });
    address
}

fn tunnel(mut client: TcpStream) {
    let mut lines = BufReader::new(client.try_clone().expect("a socket")).lines();
    let mut lines = lines.by_ref().map_while(Result::ok);
    let first = lines.next().unwrap_or_default();
    let Some(to) = first.strip_prefix("CONNECT ").and_then(|rest| rest.split(' ').next()) else {
        return;
    };
    lines.find(String::is_empty);
    let mut server = TcpStream::connect(to).expect("the server listens");
    let _ = client.write_all(b"HTTP/1.1 200 Connected\r\n\r\n");
    let (mut back, mut forth) =
        (server.try_clone().expect("one"), client.try_clone().expect("one"));
    thread::spawn(move || {
        let _ = std::io::copy(&mut back, &mut forth);
        let _ = forth.shutdown(Shutdown::Both);
    });
    let _ = std::io::copy(&mut client, &mut server);
    let _ = server.shutdown(Shutdown::Both);
}
