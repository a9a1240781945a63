//! What is written while a run goes on: a row a second to files, and metrics for whoever asks.
//!
//! All of it is made of the intervals that the load library tells, by the thread that shows progress, so
//! no disk and no reader can delay a request. What cannot be written is told once, at the end.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Context;
use milepost_load::{Interval, TlsSettings};
use milepost_stats::hdr_log;
use milepost_stats::histogram::Histogram;
use serde_json::{Value, json};

use super::prometheus::Exporter;

/// Length of an interval.
pub(super) const EVERY: Duration = Duration::from_secs(1);

/// Quantiles of an interval and their names.
const QUANTILES: [(&str, f64); 4] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p999", 0.999)];

/// The tag of service times in an HDR log; response times have none, so that any reader finds them.
const SERVICE_TAG: &str = "service";

/// Where things are written while a run goes on.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct OutputArgs {
    /// Write a row a second to FILE, separated by commas
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,

    /// Write a JSON object a second to FILE, one a line
    #[arg(long, value_name = "FILE")]
    ndjson: Option<PathBuf>,

    /// Write the times of each second to FILE, in the log format of HdrHistogram
    #[arg(long, value_name = "FILE")]
    hdr: Option<PathBuf>,

    /// Serve metrics to Prometheus at ADDRESS, such as 127.0.0.1:9464, while the run goes on
    #[arg(long, value_name = "ADDRESS")]
    prometheus: Option<SocketAddr>,

    /// Send metrics each second to the OpenTelemetry collector at URL, such as
    /// http://127.0.0.1:4318/v1/metrics
    #[cfg(feature = "otlp")]
    #[arg(long, value_name = "URL")]
    otlp: Option<String>,
}

/// The open files and the listener.
#[derive(Debug, Default)]
pub(super) struct Outputs {
    rows: Vec<(Kind, Sink)>,
    exporter: Option<Exporter>,
    #[cfg(feature = "otlp")]
    otlp: Option<super::otlp::Otlp>,
    /// When the measured part began.
    began: Option<SystemTime>,
    /// The first that went wrong.
    fault: Option<anyhow::Error>,
}

#[derive(Debug)]
struct Sink {
    path: PathBuf,
    file: BufWriter<File>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Csv,
    Ndjson,
    Hdr,
}

impl Outputs {
    /// Opens everything, so that what cannot be opened is known before the run.
    ///
    /// # Errors
    ///
    /// When a file cannot be made, or the address is taken.
    pub(super) fn open(
        args: &OutputArgs,
        #[cfg_attr(not(feature = "otlp"), allow(unused_variables, reason = "OTLP alone needs it"))]
        tls: &TlsSettings,
    ) -> anyhow::Result<Self> {
        let mut outputs = Self::default();
        let files = [(Kind::Csv, &args.csv), (Kind::Ndjson, &args.ndjson), (Kind::Hdr, &args.hdr)];
        for (kind, path) in files {
            let Some(path) = path else { continue };
            let file = File::create(path).with_context(|| cannot_write(path))?;
            outputs.rows.push((kind, Sink { path: path.clone(), file: BufWriter::new(file) }));
        }
        if let Some(address) = args.prometheus {
            outputs.exporter = Some(Exporter::bind(address)?);
        }
        #[cfg(feature = "otlp")]
        if let Some(url) = &args.otlp {
            outputs.otlp = Some(super::otlp::Otlp::open(url, tls)?);
        }
        Ok(outputs)
    }

    /// Where metrics are served.
    pub(super) fn metrics_at(&self) -> Option<SocketAddr> {
        self.exporter.as_ref().map(Exporter::address)
    }

    /// Whether there is anything to be told an interval.
    pub(super) fn is_empty(&self) -> bool {
        #[cfg(feature = "otlp")]
        if self.otlp.is_some() {
            return false;
        }
        self.rows.is_empty() && self.exporter.is_none()
    }

    /// Takes an interval of a run that began at `began`.
    pub(super) fn interval(&mut self, interval: &Interval, began: SystemTime) {
        let is_first = self.began.is_none();
        let began = *self.began.get_or_insert(began);
        let epoch = began.duration_since(UNIX_EPOCH).unwrap_or_default();
        for (kind, sink) in &mut self.rows {
            let head = if is_first { head(*kind, epoch) } else { String::new() };
            let row = match kind {
                Kind::Csv => csv_row(interval, epoch),
                Kind::Ndjson => format!("{}\n", json_row(interval, epoch)),
                Kind::Hdr => hdr_rows(interval),
            };
            // Whoever follows the file sees each second when it is over.
            let written =
                sink.file.write_all((head + &row).as_bytes()).and_then(|()| sink.file.flush());
            if let Err(error) = written
                && self.fault.is_none()
            {
                self.fault = Some(anyhow::Error::new(error).context(cannot_write(&sink.path)));
            }
        }
        if let Some(exporter) = &mut self.exporter {
            exporter.interval(interval);
        }
        #[cfg(feature = "otlp")]
        if let Some(otlp) = &mut self.otlp {
            otlp.interval(interval, began);
        }
    }

    /// Ends it.
    ///
    /// # Errors
    ///
    /// What could not be written, the first of it.
    pub(super) fn close(self) -> anyhow::Result<()> {
        #[cfg(feature = "otlp")]
        if let Some(otlp) = self.otlp {
            otlp.close()?;
        }
        self.fault.map_or(Ok(()), Err)
    }
}

fn cannot_write(path: &Path) -> String {
    format!("cannot write {}", path.display())
}

/// What stands before the first row.
fn head(kind: Kind, epoch: Duration) -> String {
    match kind {
        Kind::Csv => {
            let mut names: Vec<_> = [
                "time",
                "start",
                "seconds",
                "sent",
                "requests",
                "wrong_answers",
                "errors",
                "bytes_received",
                "requests_per_second",
            ]
            .map(str::to_owned)
            .into();
            for times in ["response_ns", "service_ns"] {
                let quantiles = QUANTILES.iter().map(|(name, _)| *name);
                let all = quantiles.chain(["max", "mean", "censored"]);
                names.extend(all.map(|name| format!("{times}_{name}")));
            }
            format!("{}\n", names.join(","))
        }
        Kind::Ndjson => String::new(),
        Kind::Hdr => hdr_log::header(concat!("milepost ", env!("CARGO_PKG_VERSION")), epoch),
    }
}

/// Right answers a second.
fn rate(interval: &Interval) -> f64 {
    let right = interval.counts.requests - interval.counts.wrong_answers;
    let seconds = interval.length.as_secs_f64();
    if seconds > 0.0 { right as f64 / seconds } else { 0.0 }
}

fn csv_row(interval: &Interval, epoch: Duration) -> String {
    let counts = interval.counts;
    let mut row = format!(
        "{:.3},{:.3},{:.3},{},{},{},{},{},{:.1}",
        (epoch + interval.start).as_secs_f64(),
        interval.start.as_secs_f64(),
        interval.length.as_secs_f64(),
        counts.sent,
        counts.requests,
        counts.wrong_answers,
        counts.errors,
        counts.bytes_received,
        rate(interval),
    );
    for times in [&interval.response, &interval.service] {
        let quantiles = QUANTILES.iter().map(|(_, q)| times.quantile(*q));
        for estimate in quantiles.chain([times.max()]) {
            row.push(',');
            row.push_str(&estimate.map(|it| it.ns.to_string()).unwrap_or_default());
        }
        let mean = times.mean().map(|mean| format!("{mean:.0}")).unwrap_or_default();
        row.push_str(&format!(",{mean},{}", times.censored_len()));
    }
    row.push('\n');
    row
}

fn json_row(interval: &Interval, epoch: Duration) -> Value {
    let counts = interval.counts;
    let millis = |time: Duration| (time.as_secs_f64() * 1e3).round() / 1e3;
    json!({
        "time": millis(epoch + interval.start),
        "start": millis(interval.start),
        "seconds": millis(interval.length),
        "sent": counts.sent,
        "requests": counts.requests,
        "wrong_answers": counts.wrong_answers,
        "errors": counts.errors,
        "bytes_received": counts.bytes_received,
        "requests_per_second": (rate(interval) * 10.0).round() / 10.0,
        "response_ns": json_times(&interval.response),
        "service_ns": json_times(&interval.service),
    })
}

fn json_times(times: &Histogram) -> Value {
    let mut object = json!({ "samples": times.len(), "censored": times.censored_len() });
    for (name, q) in QUANTILES {
        object[name] = json!(times.quantile(q).map(|it| it.ns));
    }
    object["max"] = json!(times.max().map(|it| it.ns));
    object["mean"] = json!(times.mean().map(f64::round));
    object
}

fn hdr_rows(interval: &Interval) -> String {
    let Interval { start, length, response, service, .. } = interval;
    let line = |times, tag| hdr_log::line(times, *start, *length, tag).unwrap_or_default();
    line(response, None) + &line(service, Some(SERVICE_TAG))
}
