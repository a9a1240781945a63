//! Sends what a run has counted so far to a collector of OpenTelemetry, each second and at the end.
//!
//! Sums and histograms are cumulative, so what a slow collector misses is in the next; the last message has
//! the figures of the whole run. A thread of its own sends, so no collector can delay anything.
//!
//! Source: OTLP 1.3, "OTLP/HTTP" with JSON encoding; opentelemetry-proto `metrics.proto`.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, bail};
use milepost_load::{
    Control, Counts, HttpUrl, Interval, Io, Persistence, Plan, Refusal, Scheme, Stop, TlsSettings,
};
use milepost_stats::histogram::Histogram;
use serde_json::{Value, json};

use super::network::trust_system;
use super::prometheus::BUCKETS_US;

/// A collector that takes longer to accept, or to answer, is not waited for.
const PATIENCE: Duration = Duration::from_secs(2);

/// `AGGREGATION_TEMPORALITY_CUMULATIVE`.
const CUMULATIVE: u32 = 2;

/// The metrics and the thread that sends them.
#[derive(Debug)]
pub(super) struct Otlp {
    counts: Counts,
    response: Histogram,
    service: Histogram,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// What is to be sent; what was not sent in time is replaced by the next.
    message: Option<String>,
    ends: bool,
    /// The first that went wrong.
    fault: Option<anyhow::Error>,
}

impl Otlp {
    /// Gets ready to send to `url`, over TLS to whom the run trusts. Whether somebody is there is seen when
    /// something is sent.
    ///
    /// # Errors
    ///
    /// When it is no URL that can be sent to, or nobody is trusted.
    pub(super) fn open(url: &str, tls: &TlsSettings) -> anyhow::Result<Self> {
        let parsed = HttpUrl::parse(url).with_context(|| format!("cannot send to {url}"))?;
        let tls = match parsed.scheme() {
            Scheme::Http => TlsSettings::default(),
            Scheme::Https => trusted(tls).with_context(|| format!("cannot send to {url}"))?,
        };
        let shared = Arc::<Shared>::default();
        let thread = thread::Builder::new().name("otlp".to_owned()).spawn({
            let shared = Arc::clone(&shared);
            move || shared.send_all(&parsed, &tls)
        });
        Ok(Self {
            counts: Counts::default(),
            response: Histogram::new(),
            service: Histogram::new(),
            shared,
            thread: Some(thread.context("cannot start a thread")?),
        })
    }

    /// Takes an interval of a run that began at `began`.
    pub(super) fn interval(&mut self, interval: &Interval, began: SystemTime) {
        self.counts.add(interval.counts);
        self.response.merge(&interval.response);
        self.service.merge(&interval.service);
        let began = began.duration_since(UNIX_EPOCH).unwrap_or_default();
        let times = [began, began + interval.start + interval.length];
        let message = message(self.counts, &self.response, &self.service, times);
        self.shared.state().message = Some(message.to_string());
        self.shared.changed.notify_one();
    }

    /// Sends what is left.
    ///
    /// # Errors
    ///
    /// The first that could not be sent.
    pub(super) fn close(mut self) -> anyhow::Result<()> {
        self.end();
        match self.shared.state().fault.take() {
            None => Ok(()),
            Some(error) => Err(error.context("cannot send to the OTLP collector")),
        }
    }

    fn end(&mut self) {
        self.shared.state().ends = true;
        self.shared.changed.notify_one();
        if let Some(thread) = self.thread.take() {
            // It has nothing to say about why it ended.
            let _ = thread.join();
        }
    }
}

impl Drop for Otlp {
    fn drop(&mut self) {
        self.end();
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends each message that there is, and ends after the last.
    fn send_all(&self, url: &HttpUrl, tls: &TlsSettings) {
        loop {
            let mut state = self.state();
            let message = loop {
                match state.message.take() {
                    Some(message) => break message,
                    None if state.ends => return,
                    None => {
                        state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
                    }
                }
            };
            drop(state);
            if let Err(error) = post(url, tls, message) {
                self.state().fault.get_or_insert(error);
            }
        }
    }
}

/// Whom a collector must be: somebody whom the servers of the run may be.
fn trusted(tls: &TlsSettings) -> anyhow::Result<TlsSettings> {
    let mut own = TlsSettings::default();
    own.trusted.clone_from(&tls.trusted);
    own.trusts_any = tls.trusts_any;
    if own.trusted.is_empty() && !own.trusts_any {
        trust_system(&mut own)?;
    }
    Ok(own)
}

/// Sends one message, which is a run of one request, and looks whether it was taken.
fn post(url: &HttpUrl, tls: &TlsSettings, message: String) -> anyhow::Result<()> {
    let mut target = url.target(url.resolve()?);
    target.method = "POST".to_owned();
    target.fields.push(("Content-Type".to_owned(), "application/json".to_owned()));
    target.content = message.into_bytes().into();
    let mut plan = Plan::new(vec![target]);
    plan.io = Io::Epoll;
    plan.tls = tls.clone();
    plan.connections = 1;
    plan.persistence = Persistence::Close;
    plan.refusal = Refusal::Fail;
    plan.timeout = PATIENCE;
    plan.stop = Stop::Requests(1);
    let report = milepost_load::run(&plan, &Control::new())?;
    match report.statuses.first_key_value() {
        Some((200..300, _)) => Ok(()),
        Some((status, _)) => bail!("it answered with status {status}"),
        None => bail!("{}", report.errors_by_kind.first().map_or("no answer", |it| &it.example)),
    }
}

/// An `ExportMetricsServiceRequest` with when the run began and what it is now.
fn message(
    counts: Counts,
    response: &Histogram,
    service: &Histogram,
    [began, now]: [Duration; 2],
) -> Value {
    let nanos = |time: Duration| time.as_nanos().to_string();
    // Whole numbers of 64 bits are strings in this JSON.
    let point = |value: u64, attributes: Value| {
        json!({
            "startTimeUnixNano": nanos(began),
            "timeUnixNano": nanos(now),
            "asInt": value.to_string(),
            "attributes": attributes,
        })
    };
    let sum = |name: &str, unit: &str, points: Vec<Value>| {
        json!({
            "name": format!("milepost.load.{name}"),
            "unit": unit,
            "sum": { "aggregationTemporality": CUMULATIVE, "isMonotonic": true, "dataPoints": points },
        })
    };
    let times = |name: &str, times: &Histogram| {
        let within = times.counts_within(&BUCKETS_US.map(|micros| micros * 1_000));
        let ends = within.iter().copied().chain([times.len()]);
        let starts = [0].into_iter().chain(within.iter().copied());
        let buckets: Vec<_> =
            ends.zip(starts).map(|(end, start)| (end - start).to_string()).collect();
        let point = json!({
            "startTimeUnixNano": nanos(began),
            "timeUnixNano": nanos(now),
            "count": times.len().to_string(),
            "sum": times.sum() as f64 / 1e9,
            "bucketCounts": buckets,
            "explicitBounds": BUCKETS_US.map(|micros| micros as f64 / 1e6),
        });
        json!({
            "name": format!("milepost.load.{name}"),
            "unit": "s",
            "histogram": { "aggregationTemporality": CUMULATIVE, "dataPoints": [point] },
        })
    };
    let Counts { sent, requests, wrong_answers, errors, bytes_received, .. } = counts;
    let results =
        [("right", requests - wrong_answers), ("wrong", wrong_answers), ("error", errors)];
    let by_result = results.map(|(result, count)| {
        point(count, json!([{ "key": "result", "value": { "stringValue": result } }]))
    });
    let metrics = [
        sum("sent", "{request}", vec![point(sent, json!([]))]),
        sum("requests", "{request}", by_result.to_vec()),
        sum("received", "By", vec![point(bytes_received, json!([]))]),
        times("response", response),
        times("service", service),
    ];
    let name = json!([{ "key": "service.name", "value": { "stringValue": "milepost load" } }]);
    let scope = json!({ "name": "milepost", "version": env!("CARGO_PKG_VERSION") });
    json!({
        "resourceMetrics": [{
            "resource": { "attributes": name },
            "scopeMetrics": [{ "scope": scope, "metrics": metrics }],
        }],
    })
}
