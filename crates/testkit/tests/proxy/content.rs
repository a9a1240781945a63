//! Content that nobody wants: when it is asked for, how much of it is accepted, and what comes after it.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use milepost_testkit::directory::Directory;

use crate::support::Both;

const PATHS: [&str; 9] = [
    "/local.txt",
    "/none",
    "/dir/",
    "/dir",
    "/redirect",
    "/gone",
    "/denied",
    "/document/none",
    "/unlimited/none",
];

/// What comes behind the head, and the fields that announce it.
const CONTENTS: [(&str, &str); 8] = [
    ("Content-Length: 10\r\n", "0123456789"),
    ("Content-Length: 11\r\n", "0123456789a"),
    ("Transfer-Encoding: chunked\r\n", "a\r\n0123456789\r\n0\r\n\r\n"),
    ("Transfer-Encoding: chunked\r\n", "6\r\n012345\r\n5\r\n6789a\r\n0\r\n\r\n"),
    ("Transfer-Encoding: chunked\r\n", "zz\r\n"),
    ("Expect: 100-continue\r\nContent-Length: 10\r\n", "0123456789"),
    ("Expect: 100-continue\r\nContent-Length: 11\r\n", "0123456789a"),
    ("Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n", "b\r\n0123456789a\r\n0\r\n\r\n"),
];

#[test]
fn content_is_taken_and_limited_alike() {
    let directory = Directory::new().unwrap();
    let both = Both::start(
        &directory,
        "LimitRequestBody 10\n\
         ErrorDocument 413 \"large\"\n\
         Redirect /redirect http://t/\n\
         Redirect gone /gone\n\
         <Location /denied>\nRequire all denied\n</Location>\n\
         <Location /document>\nErrorDocument 404 /local.txt\n</Location>\n\
         <Location /unlimited>\nLimitRequestBody 0\n</Location>\n",
    );
    let mut wrong = String::new();
    for path in PATHS {
        for method in ["GET", "POST", "PUT"] {
            for (fields, content) in CONTENTS {
                let head = format!("{method} {path} HTTP/1.1\r\nHost: www.test\r\n{fields}\r\n");
                let expected = ask(both.httpd, &head, content);
                let found = ask(both.milepost, &head, content);
                if expected != found {
                    writeln!(wrong, "{head}{content}\nhttpd {expected}, milepost {found}").unwrap();
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// The statuses of all answers to a request, and to one more that follows it; and whether the document of
/// 413 is among them.
fn ask(address: SocketAddr, head: &str, content: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let rest =
        format!("{content}GET /local.txt HTTP/1.1\r\nHost: www.test\r\nConnection: close\r\n\r\n");
    let mut answers = Vec::new();
    let sent = if head.contains("Expect") {
        stream.write_all(head.as_bytes()).unwrap();
        while !answers.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            answers.push(byte[0]);
        }
        if answers.starts_with(b"HTTP/1.1 100 ") {
            stream.write_all(rest.as_bytes())
        } else {
            Ok(())
        }
    } else {
        stream.write_all(format!("{head}{rest}").as_bytes())
    };
    // It may have been closed by then, which the answer says.
    let _ = sent;
    let _ = stream.read_to_end(&mut answers);
    let answers = String::from_utf8_lossy(&answers);
    let statuses: Vec<_> = answers
        .match_indices("HTTP/1.1 ")
        .map(|(at, mark)| &answers[at + mark.len()..][..3])
        .collect();
    format!("{statuses:?}{}", if answers.contains("large") { " large" } else { "" })
}
