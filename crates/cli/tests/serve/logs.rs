//! Logs and metrics.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::support::{SOON, Server, ask, directory, free_address, path, until, write};

#[test]
fn logs_are_opened_anew_by_a_signal() {
    let directory = directory();
    let address = free_address();
    let file = |name: &str| Path::join(directory.path(), name);
    let configuration = format!(
        "Listen {address}\nErrorLog errors\nCustomLog access \"%U %{{milepost-rule}}n\"\n\
         Redirect 301 /a http://b.example/\n"
    );
    write(&directory, "httpd.conf", &configuration);
    let mut server = Server::start(&["-d", path(&directory), "-f", "httpd.conf"]);
    ask(address, "/a/1");
    fs::rename(file("access"), file("access.1")).expect("renamed");
    fs::rename(file("errors"), file("errors.1")).expect("renamed");
    ask(address, "/a/2");
    server.signal("USR1");
    let said = |name: &str, what: &str| {
        let end = Instant::now() + SOON;
        while !fs::read_to_string(file(name)).is_ok_and(|text| text.contains(what)) {
            assert!(Instant::now() < end, "{what} is not in {name}");
            std::thread::sleep(Duration::from_millis(10));
        }
    };
    said("errors", "] serving httpd.conf anew on ");
    ask(address, "/a/3");
    write(&directory, "httpd.conf", "CustomLog access %j\n");
    server.signal("HUP");
    // One line, with its time and level.
    let conf = file("httpd.conf");
    let conf = conf.display();
    let error = format!("] {conf}:1:18: error: unknown item `%j` in the log format");
    said("errors", &error);
    let errors = fs::read_to_string(file("errors")).expect("a log");
    let line = errors.lines().find(|line| line.contains(&error)).expect("a line");
    assert!(line.starts_with('[') && line.contains(" [core:error] [pid "), "{line}");
    server.signal("TERM");
    assert_eq!(server.end().code(), Some(0));
    let rule = format!("{}:4", file("httpd.conf").display());
    let read = |name: &str| fs::read_to_string(file(name)).expect("a log");
    let first = read("errors.1");
    assert!(first.contains("] serving httpd.conf on "), "{first}");
    assert!(read("errors").ends_with("] stopped\n"), "{}", read("errors"));
    assert_eq!(read("access.1"), format!("/a/1 {rule}\n/a/2 {rule}\n"));
    assert_eq!(read("access"), format!("/a/3 {rule}\n"));
}

#[test]
fn the_error_log_has_what_mod_rewrite_does_and_json_is_a_format() {
    let directory = directory();
    let address = free_address();
    let file = |name: &str| Path::join(directory.path(), name);
    let configuration = format!(
        "Listen {address}\nErrorLog errors\nCustomLog access.json json\nLogLevel warn rewrite:trace4\n\
         RewriteEngine On\nRewriteCond %{{HTTP_USER_AGENT}} \"old (.*)\" [NC]\n\
         RewriteRule ^/a/(.*)$ http://b.example/$1 [R=301,L]\n\
         <VirtualHost *>\nServerName quiet.example\nLogLevel warn\nRewriteEngine On\n\
         RewriteRule ^ - [G]\n</VirtualHost>\n\
         <VirtualHost *>\nServerName loud.example\nRewriteEngine On\nRewriteOptions Inherit\n</VirtualHost>\n"
    );
    write(&directory, "httpd.conf", &configuration);
    let mut server = Server::start(&["-d", path(&directory), "-f", "httpd.conf"]);
    for (host, agent) in [("loud", "Old \\\"x"), ("loud", "new"), ("quiet", "x")] {
        let mut stream = TcpStream::connect(address).expect("connects");
        let head =
            format!("GET /a/b?c HTTP/1.1\r\nHost: {host}.example\r\nUser-Agent: {agent}\r\n");
        stream.write_all(format!("{head}Connection: close\r\n\r\n").as_bytes()).expect("sent");
        stream.read_to_string(&mut String::new()).expect("answered");
    }
    server.signal("TERM");
    assert_eq!(server.end().code(), Some(0));
    let errors = fs::read_to_string(file("errors")).expect("a log");
    let rewriting: Vec<&str> =
        errors.lines().filter_map(|line| line.split_once("[rewrite:")).map(|it| it.1).collect();
    let conf = file("httpd.conf").display().to_string();
    // Without process and port, which nobody knows before.
    let told: Vec<String> = rewriting
        .iter()
        .map(|line| {
            let (level, rest) = line.split_once(']').expect("a level");
            let (_, what) = rest.split_once("[loud.example] ").expect("a host");
            format!("{level} {}", what.replace(&conf, "CONF"))
        })
        .collect();
    assert_eq!(
        told,
        [
            "trace2 init rewrite engine with requested uri /a/b",
            "trace3 applying pattern '^/a/(.*)$' to uri '/a/b' (CONF:7)",
            "trace4 RewriteCond: input='Old \\\\\"x' pattern='old (.*)' => matched (CONF:6)",
            "trace2 rewrite '/a/b' -> 'http://b.example/b' (CONF:7)",
            "trace1 redirect to http://b.example/b?c [REDIRECT/301] (CONF:7)",
            "trace2 init rewrite engine with requested uri /a/b",
            "trace3 applying pattern '^/a/(.*)$' to uri '/a/b' (CONF:7)",
            "trace4 RewriteCond: input='new' pattern='old (.*)' => not-matched (CONF:6)",
            "trace1 pass through /a/b",
        ]
    );
    let access = fs::read_to_string(file("access.json")).expect("a log");
    let lines: Vec<serde_json::Value> =
        access.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let statuses: Vec<_> = lines.iter().map(|line| line["status"].as_u64()).collect();
    assert_eq!(statuses, [Some(301), Some(404), Some(410)]);
    assert_eq!(lines[0]["location"], "http://b.example/b?c");
    assert_eq!(lines[0]["rule"], format!("{conf}:7"));
    assert_eq!(lines[0]["user_agent"], "Old \\\"x");
    assert_eq!(lines[2]["target"], "/a/b?c");
    assert_eq!(lines[2]["server"], "quiet.example");
    assert_eq!(lines[2]["location"], serde_json::Value::Null);
}

#[test]
fn a_log_program_keeps_its_rights_over_a_reload() {
    let directory = directory();
    let address = free_address();
    let log = directory.path().join("log");
    let script = "#!/bin/sh\ncd \"$(dirname \"$0\")\"\n\
                  while read -r line; do echo \"$line\" >> log; done\n";
    write(&directory, "reader", script);
    let reader = directory.path().join("reader");
    fs::set_permissions(&reader, fs::Permissions::from_mode(0o755)).expect("changed");
    // That user may start the program, and write nothing here.
    let start = |logs: &str| {
        let text = format!("Listen {address}\nUser #12345\nGroup #12346\n{logs}");
        write(&directory, "httpd.conf", &text);
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).expect("changed");
        Server::start(&["-d", path(&directory), "-f", "httpd.conf"])
    };
    let mut server = start(&format!("CustomLog \"|{}\" %U\n", reader.display()));
    for count in 1..=3 {
        ask(address, "/a");
        until(|| fs::read_to_string(&log).is_ok_and(|text| text == "/a\n".repeat(count)));
        server.signal("HUP");
        assert!(server.next_line().contains(" anew on "));
    }
    server.signal("TERM");
    assert_eq!(server.end().code(), Some(0));
    let mut server = start(&format!("ErrorLog \"|{}\"\n", reader.display()));
    for count in 1..=3 {
        server.signal("HUP");
        let anew = |text: String| text.matches(" anew on ").count() == count;
        until(|| fs::read_to_string(&log).is_ok_and(anew));
    }
    server.signal("TERM");
    assert_eq!(server.end().code(), Some(0));
}

#[test]
fn a_program_of_the_error_log_that_ends_is_started_again() {
    let directory = directory();
    let address = free_address();
    let log = directory.path().join("log");
    let once = "#!/bin/sh\nread -r line\necho \"$line\" >> \"$(dirname \"$0\")/log\"\n";
    write(&directory, "once", once);
    let once = directory.path().join("once");
    fs::set_permissions(&once, fs::Permissions::from_mode(0o755)).expect("changed");
    let text = format!("Listen {address}\nErrorLog \"|{}\"\n", once.display());
    write(&directory, "httpd.conf", &text);
    let server = Server::start(&["-d", path(&directory), "-f", "httpd.conf"]);
    write(&directory, "httpd.conf", "Nonsense\n");
    for _ in 1..=3 {
        let before = fs::read_to_string(&log).unwrap_or_default();
        server.signal("HUP");
        until(|| fs::read_to_string(&log).is_ok_and(|text| text.len() > before.len()));
    }
}

#[test]
fn metrics_have_an_address_of_their_own() {
    let directory = directory();
    let address = free_address();
    write(&directory, "a.conf", &format!("Listen {address}\nRedirect 301 /a http://b.example/\n"));
    let metrics = "127.0.0.1:0";
    let server = Server::start(&[
        "-d",
        path(&directory),
        "-f",
        "a.conf",
        "--metrics",
        metrics,
        "--workers",
        "2",
    ]);
    let (_, rest) = server.announcement.split_once("metrics on http://").expect("an address");
    let metrics = rest.strip_suffix("/metrics").expect("a path").parse().expect("an address");
    for _ in 0..5 {
        assert!(ask(address, "/a").starts_with("HTTP/1.1 301 "));
    }
    assert!(ask(address, "/metrics").starts_with("HTTP/1.1 404 "));
    let hit = format!(
        "\nmilepost_rule_hits_total{{file=\"{}\",line=\"2\"}} 5\n",
        directory.path().join("a.conf").display()
    );
    let text = ask(metrics, "/metrics");
    assert!(text.contains("\nContent-Type: text/plain; version=0.0.4"), "{text}");
    assert!(text.contains("\nmilepost_requests_total{status=\"301\"} 5\n"), "{text}");
    assert!(text.contains("\nmilepost_requests_total{status=\"404\"} 1\n"), "{text}");
    assert!(text.contains(&hit), "{text}");
    // Hits outlive the reload that rotates the logs.
    server.signal("USR1");
    server.next_line();
    let text = ask(metrics, "/metrics");
    assert!(text.contains(&hit), "{text}");
    assert!(text.contains("\nmilepost_reloads_total{result=\"done\"} 1\n"), "{text}");
    assert!(ask(metrics, "/").starts_with("HTTP/1.1 404 "));
}
