//! Clients that are not ours keep their connections to `milepost serve`, or see them closed, as they ask.
//!
//! ab without `-k` sends HTTP/1.0 without a Connection field and waits for the end of the connection:
//! a server that keeps it open makes every request last until a timeout.

use std::time::{Duration, Instant};

use milepost_testkit::directory::Directory;
use serde_json::Value;

use crate::support::{Finished, Server, run, write};

const CONFIGURATION: &str = "Listen 127.0.0.1:0\nMaxKeepAliveRequests 0\nKeepAliveTimeout 15\n\
                             Redirect 301 /test/1 http://www.example.org/new/1\n";

/// Less than one `KeepAliveTimeout` of the configuration.
const AT_ONCE: Duration = Duration::from_secs(12);

#[test]
fn ab_without_keep_alive_does_not_wait() {
    with_server(|server| {
        let began = Instant::now();
        let finished = ok("ab", &["-n", "200", "-c", "4", &server.url("/test/1")]);
        assert!(began.elapsed() < AT_ONCE, "ab waited {:?}", began.elapsed());
        assert_eq!(field(&finished, "Complete requests"), "200");
        assert_eq!(field(&finished, "Failed requests"), "0");
        assert_eq!(field(&finished, "Non-2xx responses"), "200");
    });
}

#[test]
fn ab_with_keep_alive_keeps_its_connections() {
    with_server(|server| {
        let finished = ok("ab", &["-k", "-n", "200", "-c", "4", &server.url("/test/1")]);
        assert_eq!(field(&finished, "Complete requests"), "200");
        assert_eq!(field(&finished, "Failed requests"), "0");
        assert_eq!(field(&finished, "Keep-Alive requests"), "200");
    });
}

#[test]
fn curl_uses_the_connection_again() {
    with_server(|server| {
        let url = server.url("/test/1");
        let form = "%{http_code} %{redirect_url} %{num_connects}\n";
        let finished =
            ok("curl", &["-s", "-o", "/dev/null", "-w", form, &url, "-o", "/dev/null", &url]);
        let line = "301 http://www.example.org/new/1";
        assert_eq!(finished.stdout, format!("{line} 1\n{line} 0\n"));
        let finished = ok("curl", &["-s", "-I", "--http1.0", &url]);
        assert!(finished.stdout.contains("\r\nConnection: close\r\n"), "{}", finished.stdout);
    });
}

#[test]
fn wrk_sees_no_errors() {
    with_server(|server| {
        let finished = ok("wrk", &["-t1", "-c10", "-d1s", &server.url("/test/1")]);
        assert!(finished.stdout.contains("Requests/sec:"), "{}", finished.stdout);
        for trouble in ["Socket errors", "Non-2xx or 3xx"] {
            assert!(!finished.stdout.contains(trouble), "{}", finished.stdout);
        }
    });
}

#[test]
fn siege_sees_no_errors() {
    let home = Directory::new().expect("a directory");
    let home = home.path().to_str().expect("UTF-8");
    with_server(|server| {
        for protocol in ["HTTP/1.0", "HTTP/1.1"] {
            let settings =
                format!("follow-location = false\nlogging = false\nprotocol = {protocol}\n");
            let rc = write(home.as_ref(), "siegerc", &settings);
            let arguments = ["-R", &rc, "-b", "-j", "-c", "5", "-r", "20", &server.url("/test/1")];
            let finished = run("siege", &arguments, &[("HOME", home)]);
            let start = finished.stdout.find('{').expect("JSON");
            let report: Value = serde_json::from_str(&finished.stdout[start..]).expect("JSON");
            assert_eq!(report["transactions"], 100, "{protocol}: {report}");
            assert_eq!(report["failed_transactions"], 0, "{protocol}: {report}");
        }
    });
}

/// Serves the configuration while `body` runs, and sees that the server then ends in order.
#[track_caller]
fn with_server(body: impl FnOnce(&Server)) {
    let directory = Directory::new().expect("a directory");
    let server = Server::start_with(directory.path(), CONFIGURATION);
    body(&server);
    server.stop();
}

#[track_caller]
fn ok(program: &str, arguments: &[&str]) -> Finished {
    let finished = run(program, arguments, &[]);
    assert_eq!(finished.code, Some(0), "{program} {arguments:?}: {finished:?}");
    finished
}

/// Returns what ab prints after `name`.
fn field<'a>(finished: &'a Finished, name: &str) -> &'a str {
    let value = finished.stdout.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    value.unwrap_or_else(|| panic!("no {name}: {}", finished.stdout)).trim()
}
