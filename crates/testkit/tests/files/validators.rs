//! Entity tags, and the conditions that clients make of them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use milepost_testkit::beside::fields;

use crate::support::{MODIFIED, check, date, get, shown, start, write};

const FILES: [(&str, &str); 4] = [
    ("a.txt", "success\n"),
    ("dir/a.txt", "below\n"),
    ("dir/sub/a.txt", "deeper\n"),
    ("empty", ""),
];

#[test]
fn entity_tags_are_made_of_what_is_named() {
    let targets = ["/a.txt", "/dir/a.txt", "/dir/sub/a.txt", "/empty", "HEAD /a.txt HTTP/1.1"];
    for (outer, middle, inner) in [
        ("", "", ""),
        ("INode MTime Size", "-INode", "+INode"),
        ("All", "None", "+Size"),
        ("None", "MTime", "-MTime"),
        ("+INode", "-Size", "Size -Size"),
        ("INode", "+Size -INode", "+MTime"),
        ("MTime Size", "Size None", "None Size"),
        ("Digest", "+Digest", "-Digest"),
        ("-MTime", "-Size", "All -INode"),
        ("MTime -MTime +Size", "+INode", "+MTime -INode"),
        ("None Digest", "None", "Digest None"),
        ("LMTime", "+Size", "LastModified"),
    ] {
        let line = |text: &str| match text {
            "" => String::new(),
            text => format!("FileETag {text}\n"),
        };
        let configuration = format!(
            "{}<Directory @ROOT@/htdocs/dir>\n{}</Directory>\n\
             <Directory @ROOT@/htdocs/dir/sub>\n{}</Directory>\n",
            line(outer),
            line(middle),
            line(inner)
        );
        check(&configuration, &FILES, &targets);
    }
}

#[test]
fn a_large_file_has_the_digest_of_all_of_it() {
    let large = "0123456789".repeat(30_000);
    check("FileETag Digest\n", &[("large.txt", &large)], &["HEAD /large.txt HTTP/1.1"]);
}

#[test]
fn a_file_that_has_just_changed_has_a_weak_tag() {
    let servers = start("", &[]);
    let path = servers.root().join("htdocs/new.txt");
    let is_weak = |head: &str, _: &str| {
        let etag = fields(head, &["ETag"]);
        if etag.contains("W/") { "weak".to_owned() } else { etag }
    };
    // It may take longer than a second to ask on a busy machine; then both say so at another try.
    let mut same = false;
    for _ in 0..5 {
        std::fs::write(&path, "new").unwrap();
        let compare = || servers.compare(&[get("/new.txt")], is_weak);
        same |= std::panic::catch_unwind(std::panic::AssertUnwindSafe(compare)).is_ok();
    }
    assert!(same);
    write(&path, "new");
    servers.compare(&[get("/new.txt")], is_weak);
}

#[test]
fn conditions_hold_or_do_not() {
    let modified = UNIX_EPOCH + MODIFIED;
    let (same, before) = (date(modified), date(modified - Duration::from_secs(1)));
    let after = date(modified + Duration::from_secs(1));
    let future = date(SystemTime::now() + Duration::from_secs(3600));
    let micros = MODIFIED.as_micros();
    let etag = format!("\"8-{micros:x}\"");
    let mut conditions = vec![String::new()];
    for name in ["If-Match", "If-None-Match"] {
        for value in [
            etag.as_str(),
            &format!("W/{etag}"),
            "\"x\"",
            &format!("\"x\", {etag}"),
            &format!("\"x\",W/{etag}"),
            "*",
            "",
            "x",
            &format!("\"x\"\n{name}: {etag}"),
        ] {
            conditions.push(format!("{name}: {value}"));
        }
    }
    for name in ["If-Modified-Since", "If-Unmodified-Since"] {
        for value in [&same, &before, &after, &future, "yesterday", ""] {
            conditions.push(format!("{name}: {value}"));
        }
    }
    for two in [
        format!("If-None-Match: \"x\"\nIf-Modified-Since: {same}"),
        format!("If-None-Match: {etag}\nIf-Modified-Since: {before}"),
        format!("If-None-Match: {etag}\nIf-Modified-Since: {same}"),
        format!("If-Match: {etag}\nIf-None-Match: {etag}"),
        format!("If-Match: \"x\"\nIf-None-Match: {etag}"),
        format!("If-Match: {etag}\nIf-Unmodified-Since: {before}"),
        format!("If-Unmodified-Since: {same}\nIf-Modified-Since: {same}"),
        format!("If-None-Match: W/{etag}\nRange: bytes=1-2"),
        format!("If-None-Match: {etag}\nRange: bytes=1-2"),
        format!("If-Modified-Since: {same}\nRange: bytes=1-2"),
        format!("Range: bytes=1-2\nIf-Range: {etag}"),
        format!("Range: bytes=1-2\nIf-Range: W/{etag}"),
        "Range: bytes=1-2\nIf-Range: \"x\"".to_owned(),
        "Range: bytes=1-2\nIf-Range: x".to_owned(),
        format!("Range: bytes=1-2\nIf-Range: {same}"),
        format!("Range: bytes=1-2\nIf-Range: {before}"),
        format!("Range: bytes=1-2\nIf-Range: {after}"),
        format!("If-Range: {etag}"),
    ] {
        conditions.push(two);
    }
    let requests: Vec<String> = conditions
        .iter()
        .flat_map(|fields| {
            ["GET", "HEAD", "POST"].map(|method| format!("{method} /a.txt HTTP/1.1\n{fields}"))
        })
        .collect();
    let configuration = "Header set X-Set yes\nHeader always set Cache-Control always\n\
        AddLanguage de .txt\nAddEncoding x-mine .txt\nHeader set Content-Location /x\n\
        Header set Content-MD5 x\nHeader append Vary Accept\n\
        Header set Content-Security-Policy self\nHeader set Set-Cookie a=b\n\
        Header set Content-Disposition inline\n";
    start(configuration, &FILES).compare(&requests, shown);
    let none: Vec<String> =
        requests.iter().filter(|text| text.contains("Match")).cloned().collect();
    start("FileETag None\n", &FILES).compare(&none, shown);
}

#[test]
fn trace_sends_the_request_back() {
    let requests: Vec<String> = [
        "TRACE /a.txt?x=%41 HTTP/1.1\nX-Some: 1\nx-some: 2\nCookie: a=b",
        "TRACE /none HTTP/1.0\n",
        "TRACE * HTTP/1.1\n",
        "TRACE /r HTTP/1.1\n",
        "TRACE /dir HTTP/1.1\n",
        "TRACE /ruled HTTP/1.1\n",
        "TRACE /a.txt HTTP/1.1\nContent-Length: 3\n\nabc",
        "TRACE /a.txt HTTP/1.1\nContent-Length: 0\n",
    ]
    .map(str::to_owned)
    .to_vec();
    for configuration in ["", "TraceEnable on\n", "TraceEnable Off\n"] {
        let configuration = format!(
            "{configuration}Redirect /r http://t/\nRewriteEngine On\nRewriteRule ^/ruled - [G]\n\
             <Directory @ROOT@/htdocs>\nRequire all denied\n</Directory>\nHeader set X-Set yes\n"
        );
        start(&configuration, &FILES).compare(&requests, |head, content| {
            // httpd sends it in one chunk.
            let chunk =
                content.split_once("\r\n").and_then(|(_, rest)| rest.split_once("\r\n0\r\n"));
            let content = chunk.filter(|_| head.contains("chunked")).map_or(content, |it| it.0);
            let head: Vec<_> =
                head.lines().filter(|line| !line.starts_with("Content-Length")).collect();
            shown(&head.join("\n"), content)
        });
    }
}

#[test]
fn every_method_is_answered_alike() {
    let methods = ["OPTIONS", "PUT", "DELETE", "PATCH", "FOO", "get", "PROPFIND", "TRACE"];
    let requests = methods.map(|method| format!("{method} /a.txt HTTP/1.1\n"));
    let status = |head: &str, _: &str| head.get(9..12).unwrap_or("none").to_owned();
    start("TraceEnable Off\n", &FILES).compare(&requests, status);
    start("", &FILES).compare(&requests, status);
}
