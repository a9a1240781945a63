//! What is counted, from the directive to the text, and across a reload.

use std::path::Path;

use milepost_engine::LoadOptions;
use milepost_http::request::{HeadLimits, HeadRoom, parse};

use super::*;
use crate::outside::FileSystem;
use crate::site::SiteResponder;

fn site(root: &Path, text: &str) -> Arc<Site> {
    std::fs::write(root.join("a.conf"), text).unwrap();
    let options = LoadOptions {
        server_root: root.to_owned(),
        file: Some("a.conf".into()),
        ..LoadOptions::default()
    };
    Arc::new(milepost_engine::Site::load(&options, &FileSystem).site.unwrap())
}

fn ask(responder: &mut SiteResponder, path: &str) {
    let text = format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n");
    let mut room = HeadRoom::default();
    let head = parse(text.as_bytes(), &HeadLimits::default(), &mut room).unwrap().unwrap();
    let address = ([127, 0, 0, 1], 80).into();
    let peer = Peer::new(address, address);
    responder.respond(&head, &peer, &mut Reply::default());
}

/// The samples of one metric, without the time of the last hit.
fn samples(metrics: &Metrics, name: &str) -> Vec<String> {
    let mut text = Vec::new();
    text::write(metrics, &mut text);
    let text = String::from_utf8(text).unwrap();
    text.lines().filter(|line| line.starts_with(name)).map(str::to_owned).collect()
}

#[test]
fn hits_are_those_of_lines_and_outlive_a_reload() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let file = root.join("a.conf");
    let line = |line: u32, hits: u64| {
        format!("milepost_rule_hits_total{{file=\"{}\",line=\"{line}\"}} {hits}", file.display())
    };
    let hits = |metrics: &Metrics| samples(metrics, "milepost_rule_hits_total{");
    let metrics = Metrics::new(true);
    let first =
        site(root, "Redirect /a http://b/\n\nRedirect \\\n  /c http://d/\nRedirect /e http://f/\n");
    metrics.expect(&first);
    let mut workers: Vec<_> =
        (0..2).map(|_| SiteResponder::new(Arc::clone(&first)).with_metrics(&metrics)).collect();
    assert!(hits(&metrics).is_empty());
    for worker in &mut workers {
        ask(worker, "/a");
        ask(worker, "/c");
        ask(worker, "/none");
    }
    ask(&mut workers[0], "/a");
    assert_eq!(hits(&metrics), [line(1, 3), line(3, 2)]);
    let last = samples(&metrics, "milepost_rule_last_hit_timestamp_seconds{");
    let last: u64 = last[0].rsplit(' ').next().unwrap().parse().unwrap();
    assert!(last > 1_700_000_000);

    // Line 1 has moved, line 3 is gone; a reload that does not happen changes nothing.
    let second = site(root, "# new\n  Redirect /a http://b/\nRedirect /g http://h/\n");
    metrics.expect(&second);
    assert_eq!(hits(&metrics), [line(1, 3), line(3, 2)]);
    let mut worker = SiteResponder::new(Arc::clone(&second)).with_metrics(&metrics);
    assert_eq!(hits(&metrics), [line(2, 3)]);
    ask(&mut worker, "/a");
    ask(&mut worker, "/g");
    assert_eq!(hits(&metrics), [line(2, 4), line(3, 1)]);

    // The same text again: nothing is lost, joined lines neither.
    let third = site(root, "# new\n  Redirect /a http://b/\nRedirect /g http://h/\n");
    metrics.expect(&third);
    let _worker = SiteResponder::new(third).with_metrics(&metrics);
    assert_eq!(hits(&metrics), [line(2, 4), line(3, 1)]);
}

#[test]
fn nothing_is_counted_one_by_one_unless_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    let site = site(directory.path(), "Redirect /a http://b/\n");
    let metrics = Metrics::default();
    assert!(metrics.hits(&site).is_none());
    assert!(!metrics.worker().is_timed);
}

#[test]
fn workers_are_added_up_by_status_and_class() {
    let metrics = Metrics::new(true);
    let (first, second) = (metrics.worker(), metrics.worker());
    for counters in [&first, &second] {
        counters.accepted();
        counters.answered(301, 100, Some(std::time::Instant::now()));
    }
    first.answered(404, 7, None);
    second.ended();
    metrics.reloaded(false);
    for (name, expected) in [
        ("milepost_requests_total{", vec!["{status=\"301\"} 2", "{status=\"404\"} 1"]),
        ("milepost_connections_open", vec![" 1"]),
        ("milepost_response_content_bytes_total", vec![" 207"]),
        ("milepost_answer_seconds_count", vec![" 2"]),
        ("milepost_answer_seconds_bucket{le=\"+Inf\"}", vec![" 2"]),
        ("milepost_workers", vec![" 2"]),
        ("milepost_reloads_total{", vec!["{result=\"done\"} 0", "{result=\"failed\"} 1"]),
    ] {
        let name_only = name.trim_end_matches('{');
        let expected: Vec<_> = expected.iter().map(|rest| format!("{name_only}{rest}")).collect();
        assert_eq!(samples(&metrics, name), expected);
    }
}
