//! Writes the metrics as text.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::io::Write;
use std::sync::Arc;

use super::counters::{BOUNDS_NS, Backend, Counters, TLS_VERSIONS, get};
use super::hits::{HTACCESS, Hit, places};
use super::{Metrics, lock};

/// The media type of the format.
pub(super) const MEDIA_TYPE: &[u8] = b"text/plain; version=0.0.4; charset=utf-8";

/// Appends everything.
pub(super) fn write(metrics: &Metrics, out: &mut Vec<u8>) {
    let workers = lock(&metrics.workers).clone();
    let sum = |of: fn(&Counters) -> u64| workers.iter().map(|worker| of(worker)).sum::<u64>();

    head(out, "info", "gauge", "The version of the server.");
    line(out, "info", &[("version", env!("CARGO_PKG_VERSION"))], 1);
    head(out, "start_time_seconds", "gauge", "When the server began, since the epoch.");
    line(out, "start_time_seconds", &[], get(&metrics.started));
    head(out, "workers", "gauge", "Worker threads.");
    line(out, "workers", &[], workers.len());

    let ended = sum(|worker| get(&worker.ended));
    let accepted = sum(|worker| get(&worker.accepted));
    head(out, "connections_accepted_total", "counter", "Connections accepted.");
    line(out, "connections_accepted_total", &[], accepted);
    head(out, "connections_open", "gauge", "Connections that are open.");
    line(out, "connections_open", &[], accepted.saturating_sub(ended));

    head(out, "requests_total", "counter", "Answers, by status.");
    for status in 0..1000 {
        let count: u64 = workers.iter().map(|worker| get(&worker.statuses[status])).sum();
        if count > 0 {
            line(out, "requests_total", &[("status", &format!("{status:03}"))], count);
        }
    }
    let content = sum(|worker| get(&worker.content_bytes));
    head(out, "response_content_bytes_total", "counter", "Content of answers.");
    line(out, "response_content_bytes_total", &[], content);
    write_times(&workers, out);
    write_tls(&workers, out);
    write_backends(&workers, out);

    head(out, "reloads_total", "counter", "Reloads of the configuration.");
    line(out, "reloads_total", &[("result", "done")], get(&metrics.reloads));
    line(out, "reloads_total", &[("result", "failed")], get(&metrics.reloads_failed));
    head(
        out,
        "last_reload_timestamp_seconds",
        "gauge",
        "The last reload that was done; 0 for none.",
    );
    line(out, "last_reload_timestamp_seconds", &[], get(&metrics.last_reload));
    write_rules(metrics, out);
}

fn write_times(workers: &[Arc<Counters>], out: &mut Vec<u8>) {
    const NAME: &str = "answer_seconds";
    head(out, NAME, "histogram", "From the head of a request to its answer.");
    let mut below = 0;
    for class in 0..=BOUNDS_NS.len() {
        below += workers.iter().map(|worker| get(&worker.times[class])).sum::<u64>();
        let bound = match BOUNDS_NS.get(class) {
            Some(&bound) => seconds(bound),
            None => "+Inf".to_owned(),
        };
        line(out, "answer_seconds_bucket", &[("le", &bound)], below);
    }
    let ns = workers.iter().map(|worker| get(&worker.time_ns)).sum();
    line(out, "answer_seconds_sum", &[], seconds(ns));
    line(out, "answer_seconds_count", &[], below);
}

fn write_tls(workers: &[Arc<Counters>], out: &mut Vec<u8>) {
    head(out, "tls_handshakes_total", "counter", "Handshakes with clients that were done.");
    for (number, version) in TLS_VERSIONS.iter().enumerate() {
        for (resumed, text) in ["no", "yes"].into_iter().enumerate() {
            let of = |worker: &Arc<Counters>| get(&worker.handshakes[number][resumed]);
            let count: u64 = workers.iter().map(of).sum();
            let labels = [("version", *version), ("resumed", text)];
            line(out, "tls_handshakes_total", &labels, count);
        }
    }
    let failed: u64 = workers.iter().map(|worker| get(&worker.handshakes_failed)).sum();
    head(out, "tls_handshakes_failed_total", "counter", "Handshakes that came to nothing.");
    line(out, "tls_handshakes_failed_total", &[], failed);
}

/// Backends that have never been asked have no lines.
fn write_backends(workers: &[Arc<Counters>], out: &mut Vec<u8>) {
    let mut backends = BTreeMap::<String, Backend>::new();
    for worker in workers {
        for (url, counts) in lock(&worker.backends).iter() {
            backends.entry(url.clone()).or_default().add(counts);
        }
    }
    series(
        out,
        &backends,
        "proxy_requests_total",
        "Requests to backends: answered, without an answer, or with one that broke off.",
        [&[("outcome", "answered")], &[("outcome", "failed")], &[("outcome", "cut")]],
        |backend| [backend.answered, backend.failed, backend.cut],
    );
    series(
        out,
        &backends,
        "proxy_connections_total",
        "Connections to backends by request: opened for it, or used again.",
        [&[("kind", "opened")], &[("kind", "reused")]],
        |backend| [backend.opened, backend.reused],
    );
    series(
        out,
        &backends,
        "proxy_retries_total",
        "Requests that were sent once more, as an idle connection had been closed.",
        [&[]],
        |backend| [backend.retried],
    );
}

/// One counter of all backends; `of` gives a value for each of the labels.
fn series<const N: usize>(
    out: &mut Vec<u8>,
    backends: &BTreeMap<String, Backend>,
    name: &str,
    help: &str,
    labels: [&[(&str, &str)]; N],
    of: fn(&Backend) -> [u64; N],
) {
    head(out, name, "counter", help);
    for (url, counts) in backends {
        for (more, value) in labels.iter().zip(of(counts)) {
            line(out, name, &[&[("backend", &**url)], *more].concat(), value);
        }
    }
}

/// Rules that have never been hit have no line, so that a million rules are a million lines only when all
/// of them are used.
fn write_rules(metrics: &Metrics, out: &mut Vec<u8>) {
    let (site, hits) = {
        let rules = lock(&metrics.rules);
        (rules.site.clone(), rules.sum())
    };
    let htaccess = hits.iter().find(|&&(id, _)| id == HTACCESS).map_or(0, |(_, hit)| hit.count);
    let places = site.as_ref().map(|site| places(site, &hits)).unwrap_or_default();
    let mut series = |name: &str, kind: &str, help: &str, value: fn(&Hit) -> u64| {
        head(out, name, kind, help);
        for (place, hit) in &places {
            let (file, number) = (place.file.display().to_string(), place.line.to_string());
            line(out, name, &[("file", &file), ("line", &number)], value(hit));
        }
    };
    series("rule_hits_total", "counter", "Answers, by the directive that gave them.", |hit| {
        hit.count
    });
    series(
        "rule_last_hit_timestamp_seconds",
        "gauge",
        "The last answer of the directive.",
        |hit| hit.last,
    );
    head(out, "htaccess_hits_total", "counter", "Answers by directives in .htaccess files.");
    line(out, "htaccess_hits_total", &[], htaccess);
}

/// Nanoseconds in seconds, exactly.
fn seconds(ns: u64) -> String {
    let text = format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn head(out: &mut Vec<u8>, name: &str, kind: &str, help: &str) {
    // Writing to memory does not fail.
    let _ = write!(out, "# HELP milepost_{name} {help}\n# TYPE milepost_{name} {kind}\n");
}

fn line(out: &mut Vec<u8>, name: &str, labels: &[(&str, &str)], value: impl Display) {
    out.extend_from_slice(b"milepost_");
    out.extend_from_slice(name.as_bytes());
    let mut before = b'{';
    for (label, value) in labels {
        out.push(before);
        before = b',';
        out.extend_from_slice(label.as_bytes());
        out.extend_from_slice(b"=\"");
        for byte in value.bytes() {
            match byte {
                b'"' | b'\\' => out.extend([b'\\', byte]),
                b'\n' => out.extend_from_slice(b"\\n"),
                byte => out.push(byte),
            }
        }
        out.push(b'"');
    }
    if !labels.is_empty() {
        out.push(b'}');
    }
    let _ = writeln!(out, " {value}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_exact() {
        for (ns, expected) in
            [(0, "0"), (10_000, "0.00001"), (2_000_000_000, "2"), (1, "0.000000001")]
        {
            assert_eq!(seconds(ns), expected);
        }
    }

    #[test]
    fn a_label_stays_within_its_quotes() {
        let mut out = Vec::new();
        line(&mut out, "x", &[("file", "a\"b\\c\nd"), ("line", "1")], 7);
        assert_eq!(out, b"milepost_x{file=\"a\\\"b\\\\c\\nd\",line=\"1\"} 7\n");
    }
}
