//! Access logs have httpd's lines: real httpd and milepost side by side.

use std::path::Path;
use std::time::Duration;

use milepost_testkit::beside::Beside;

/// Requests of many kinds. The first line of a failing one is its request line.
const REQUESTS: [&str; 15] = [
    "GET /a.txt HTTP/1.1\nReferer: http://r/\nUser-Agent: \"x\" \\ y\tz\nCookie: a=1; b=two",
    "GET /a.txt?q=1&r=%41 HTTP/1.1",
    "HEAD /a.txt HTTP/1.1",
    "GET /none HTTP/1.1",
    "GET /r/x?y HTTP/1.1",
    "GET /gone HTTP/1.1",
    "GET /in HTTP/1.1\nX-Multi: 1\nX-Multi: 2",
    "GET /%c3%a9%22/../a.txt HTTP/1.1",
    "POST /a.txt HTTP/1.1\nContent-Length: 3\n\nabc",
    "GET /a.txt HTTP/1.1\nRange: bytes=0-2",
    "GET /a.txt HTTP/1.1\nIf-None-Match: *",
    "GET http://www.test/a.txt HTTP/1.1",
    "GET /a.txt/more HTTP/1.1",
    "OPTIONS * HTTP/1.1",
    "GET /a.txt HTTP/1.1\nX-Forwarded-For: 7.1.1.1, 10.0.0.9",
];

/// Sends all requests to both, and compares what they log in each of `formats`.
#[track_caller]
fn check(configuration: &str, logs: &[&str]) {
    let mut text = format!(
        "SetEnvIf Request_URI txt$ text=yes\nRedirect /r http://t/\nRedirect gone /gone\n\
         RewriteEngine On\nRewriteRule ^/in$ /a.txt [E=rule:%{{REQUEST_METHOD}}]\n\
         Header set X-Set yes\nHeader always set X-Always yes\n{configuration}"
    );
    for (number, log) in logs.iter().enumerate() {
        text.push_str(&format!("CustomLog @ROOT@/log{number}.@LOGS@ {log}\n"));
    }
    let servers = Beside::start(&["expires", "remoteip"], &text, |root| {
        std::fs::write(root.join("htdocs/a.txt"), "success\n").unwrap();
    });
    servers.compare(&REQUESTS.map(str::to_owned), |head, _| {
        head.get(9..12).unwrap_or("none").to_owned()
    });
    let root = servers.root();
    let mut wrong = String::new();
    for (number, log) in logs.iter().enumerate() {
        let read = |who| lines(&root.join(format!("log{number}.{who}")), |_| true);
        let expected = read("httpd");
        let found = await_lines(|| read("milepost"), expected.len());
        for (at, expected) in expected.iter().enumerate() {
            if found.get(at) != Some(expected) {
                wrong.push_str(&format!(
                    "{log}\n  httpd:    {expected}\n  milepost: {:?}\n",
                    found.get(at)
                ));
            }
        }
        assert!(found.len() <= expected.len(), "{log}: {found:?}");
    }
    assert!(wrong.is_empty(), "{wrong}");
}

fn lines(path: &Path, wanted: impl Fn(&str) -> bool) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().filter(|line| wanted(line)).map(str::to_owned).collect()
}

/// Logs are written a moment later.
fn await_lines(read: impl Fn() -> Vec<String>, count: usize) -> Vec<String> {
    for _ in 0..300 {
        if read().len() >= count {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    read()
}

#[test]
fn items_are_those_of_httpd() {
    check(
        "LogFormat \"%h %l %u \\\"%r\\\" %>s \\\"%{Referer}i\\\" \\\"%{User-Agent}i\\\"\" combined\n",
        &[
            "combined",
            "\"%a %{c}a %A %v %V %H %m\"",
            "\"%U %q %s %<s %>s\"",
            "\"%f\" env=text",
            "\"%{X-Multi}i %{Cookie}i %{a}C %{B}C %{none}C\"",
            "\"%{text}e %{rule}e %{REDIRECT_rule}e %{none}e\"",
            "\"%{X-Set}o %{X-Always}o %{Location}o %{Content-Range}o %{ETag}o\"",
            "\"%400,404{Host}i %!200,304,302{Host}i %200s\"",
            "\"%k %X %u %^ti\"",
            "\"%U %R\"",
            "\"%B %b\" env=text",
            "\"%%\\t%{Host}i\\\\ \\q\" env=!text",
        ],
    );
}

#[test]
fn requests_in_the_error_log_have_a_number() {
    let (mut traced, mut numbers) = (0, Vec::new());
    let servers = Beside::start(
        &[],
        "LogLevel warn\n<Location /in>\nLogLevel rewrite:trace1\n</Location>\nRewriteEngine On\n\
         RewriteRule ^/ -\nCustomLog @ROOT@/log.@LOGS@ \"%U %L\"\n",
        |_| {},
    );
    let requests = ["GET /in HTTP/1.1", "GET /out HTTP/1.1", "GET /in/2 HTTP/1.1"];
    servers.compare(&requests.map(str::to_owned), |_, _| String::new());
    for who in ["httpd", "milepost"] {
        let read = || lines(&servers.root().join(format!("log.{who}")), |_| true);
        for line in await_lines(read, requests.len()) {
            let (path, number) = line.split_once(' ').unwrap();
            assert_eq!(number == "-", path == "/out", "{who}: {line}");
            if number != "-" {
                traced += 1;
                numbers.push(number.to_owned());
            }
        }
    }
    numbers.sort();
    numbers.dedup();
    assert_eq!((traced, numbers.len()), (4, 4));
}

#[test]
fn clients_are_those_behind_a_proxy() {
    check(
        "RemoteIPHeader X-Forwarded-For\nRemoteIPInternalProxy 127.0.0.1\n",
        &["\"%a %{c}a %h\"", "\"%a\" \"expr=-R '10.0.0.0/8'\""],
    );
}

#[test]
fn expressions_choose_requests() {
    check(
        "",
        &[
            "\"%r\" \"expr=%{REQUEST_STATUS} -ge 400\"",
            "\"%r\" \"expr=%{REQUEST_URI} =~ /txt/ && %{REQUEST_METHOD} == 'GET'\"",
            "\"%r\" \"expr=reqenv('text') == 'yes'\"",
            "\"%r\" \"expr=-n resp('Location')\"",
            "\"%r\" \"expr=! -R '127.0.0.0/8'\"",
        ],
    );
}
