//! Ranges: one, several, too many.

use crate::support::{shown, start};

const TEXT: &str = "0123456789abcdefghijklmnopqrstuvwxyz";

/// Content with its boundary, which is random, blanked.
fn blanked(head: &str, content: &str) -> String {
    let boundary = head.split("boundary=").nth(1).and_then(|rest| rest.lines().next());
    let Some(boundary) = boundary else { return shown(head, content) };
    // httpd's is one digit shorter now and then.
    assert!(matches!(boundary.len(), 14..=16), "{head}");
    let length = format!("Content-Length: {}", content.len());
    assert!(content.is_empty() || head.contains(&length), "{head}");
    let head: Vec<_> = head.lines().filter(|line| !line.starts_with("Content-Length")).collect();
    shown(&head.join("\n").replace(boundary, "B"), &content.replace(boundary, "B"))
}

#[track_caller]
fn check(configuration: &str, ranges: &[&str]) {
    let large = TEXT.repeat(4000);
    let servers = start(configuration, &[("a.txt", TEXT), ("b", TEXT), ("large.txt", &large)]);
    let requests: Vec<String> = ranges
        .iter()
        .flat_map(|range| {
            ["GET /a.txt", "GET /b", "HEAD /a.txt", "POST /a.txt"]
                .map(|line| format!("{line} HTTP/1.1\nRange: {range}"))
        })
        .collect();
    servers.compare(&requests, blanked);
    let requests: Vec<String> =
        ranges.iter().map(|range| format!("GET /large.txt HTTP/1.1\nRange: {range}")).collect();
    servers.compare(&requests, blanked);
}

#[test]
fn one_range() {
    check(
        "Header set X-Set yes\n",
        &[
            "bytes=0-0",
            "bytes=0-",
            "bytes=0-35",
            "bytes=1-",
            "bytes=5-9",
            "bytes=30-100",
            "bytes=35-",
            "bytes=36-",
            "bytes=36-40",
            "bytes=-5",
            "bytes=-0",
            "bytes=-36",
            "bytes=-100",
            "bytes=9-5",
            "bytes=-",
            "bytes=",
            "bytes",
            "bytes=a-b",
            "Bytes=1-2",
            "lines=1-2",
            "bytes= 1-2",
            "bytes=1-2 ",
            "bytes=1 -2",
            "bytes=+1-2",
            "bytes=1--2",
            "bytes=99999999999999999999-",
            "bytes=1-99999999999999999999",
            "none",
        ],
    );
}

#[test]
fn several_ranges() {
    check(
        "AddDefaultCharset utf-8\n",
        &[
            "bytes=0-0,5-9",
            "bytes=5-9,0-0",
            "bytes=0-4,5-9",
            "bytes=0-4,3-9",
            "bytes=3-9,0-4",
            "bytes=0-9,2-3",
            "bytes=2-3,0-9",
            "bytes=0-1, 4-5 ,8-9",
            "bytes=0-1,,4-5",
            "bytes=,1-2",
            "bytes=0-1,40-50",
            "bytes=40-50,0-1",
            "bytes=40-50,60-70",
            "bytes=0-1,x",
            "bytes=-5,0-1",
            "bytes=0-20,10-35",
            "bytes=0-35,0-35",
            "bytes=0-20,22-35,0-20",
            "bytes=1-1,3-3,5-5,7-7",
            "bytes=20-30,5-15,25-35",
        ],
    );
}

#[test]
fn limits_of_ranges() {
    let ranges: Vec<String> = [
        (0..3).map(|at| format!("{0}-{0}", 2 * at)).collect::<Vec<_>>().join(","),
        (0..2).map(|at| format!("{0}-{0}", 2 * at)).collect::<Vec<_>>().join(","),
        "4-4,2-2".to_owned(),
        "6-6,4-4,2-2".to_owned(),
        "0-2,2-4".to_owned(),
        "0-2,2-4,4-6".to_owned(),
        "4-8,2-5".to_owned(),
        "1-2".to_owned(),
    ]
    .map(|range| format!("bytes={range}"))
    .to_vec();
    let ranges: Vec<&str> = ranges.iter().map(String::as_str).collect();
    for configuration in [
        "MaxRanges 2\n",
        "MaxRanges none\n",
        "MaxRanges unlimited\nMaxRangeOverlaps 1\nMaxRangeReversals 1\n",
        "MaxRangeOverlaps none\nMaxRangeReversals none\n",
        "MaxRanges default\nMaxRangeReversals unlimited\n",
    ] {
        check(configuration, &ranges);
    }
    let many = |count: usize| {
        let ranges: Vec<String> = (0..count).map(|at| format!("{0}-{0}", 2 * at)).collect();
        format!("bytes={}", ranges.join(","))
    };
    check("", &[&many(15)]);
    // The usual limit is 200.
    let requests =
        [200, 201].map(|count| format!("GET /large.txt HTTP/1.1\nRange: {}", many(count)));
    let large = TEXT.repeat(4000);
    // httpd sends so many in pieces, with a framing of their own.
    let status = |head: &str, _: &str| head.get(9..12).unwrap_or("none").to_owned();
    start("", &[("large.txt", &large)]).compare(&requests, status);
}
