//! What a run found. The JSON form of [`Report`] is an interface: names stay, new ones may come.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU64;

use milepost_stats::histogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::assertion::Verdict;
use crate::failure::FailureKind;
use crate::plan::Io;
use crate::rate::Stage;

/// Result of one run. Sent requests = `requests` + `errors` + `unanswered`.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// Complete answers, right or wrong.
    pub requests: u64,
    /// Complete answers that were not the expected ones. Their times are in no quantile.
    pub wrong_answers: u64,
    /// Requests that ended without a complete answer.
    pub errors: u64,
    /// Requests outstanding, or due and not sent, when the run was ended.
    pub unanswered: u64,
    /// Length of the measured part.
    pub seconds: f64,
    /// Right answers a second.
    pub requests_per_second: f64,
    /// CPU time of the generator's threads, user and system, for each request that ended.
    pub client_cpu_us_per_request: f64,
    /// From sending a request to the end of its answer, right answers only.
    pub service_ns: Times,
    /// From when a request was meant to be sent to the end of its answer, right answers only.
    pub response_ns: Times,
    /// From sending a request to the first byte of its answer, right answers only.
    pub first_byte_ns: Times,
    /// From opening a connection to its being writable, with the tunnel if there is one.
    pub connect_ns: Times,
    /// From then to when TLS had been agreed upon.
    pub tls_ns: Times,
    /// Answers by status.
    pub statuses: BTreeMap<u16, u64>,
    /// Traffic.
    pub bytes: Bytes,
    /// Connections.
    pub connections: Connections,
    /// What TLS did; nothing without it.
    pub tls: Option<TlsSummary>,
    /// What became of chains; nothing unless answers lead to further requests.
    pub chains: Option<ChainSummary>,
    /// How long the server kept the first connection after its answer, if the plan wanted to know.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub linger: Option<Linger>,
    /// The first few wrong answers, each to another target.
    pub wrong_answer_examples: Vec<WrongAnswer>,
    /// Errors by kind, most frequent first.
    pub errors_by_kind: Vec<ErrorCount>,
    /// How the generator itself did.
    pub generator: Generator,
    /// What came before the measured part, if anything.
    pub warm_up: Option<WarmUpCounts>,
    /// Why the run ended.
    pub ended: Ended,
    /// Seed of the run.
    pub seed: u64,
    /// What was asked for.
    pub plan: PlanSummary,
    /// Doubts about the measurement, each with what to try.
    pub warnings: Vec<Warning>,
    /// What became of the assertions, in their order.
    pub assertions: Vec<AssertionOutcome>,
    /// The distributions behind the times. Not part of the JSON.
    #[serde(skip)]
    pub distributions: Box<Distributions>,
}

/// What became of one assertion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AssertionOutcome {
    /// As it was written.
    pub assertion: String,
    /// Whether it held.
    pub verdict: Verdict,
    /// What was found instead, or why nothing was.
    pub found: String,
}

/// Every time that was measured, in constant memory.
#[derive(Clone, Default)]
pub struct Distributions {
    /// See [`Report::service_ns`].
    pub service: Histogram,
    /// See [`Report::response_ns`].
    pub response: Histogram,
    /// See [`Report::first_byte_ns`].
    pub first_byte: Histogram,
    /// See [`Report::connect_ns`].
    pub connect: Histogram,
    /// See [`Report::tls_ns`].
    pub tls: Histogram,
    /// See [`Generator::lateness_ns`].
    pub lateness: Histogram,
}

impl fmt::Debug for Distributions {
    /// Without its thousands of counts.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Distributions").finish_non_exhaustive()
    }
}

/// What tells one run from another.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlanSummary {
    /// Target URI of the first target.
    pub url: String,
    /// Number of targets.
    pub urls: usize,
    /// Connections.
    pub connections: usize,
    /// Threads, of all processes.
    pub threads: usize,
    /// Processes.
    pub processes: usize,
    /// Whether connections are used for more than one request.
    pub keep_alive: bool,
    /// Streams at a time on each connection of HTTP/2; `null` over HTTP/1.
    pub streams: Option<usize>,
    /// Requests at a time on each connection of HTTP/1; `null` without pipelines.
    pub pipeline: Option<usize>,
    /// Requests after which a connection is closed; `null` leaves that to the server.
    pub requests_per_connection: Option<NonZeroU64>,
    /// Longest pause of a connection between two requests; 0 without pauses.
    pub pause_max_seconds: f64,
    /// `closed`, or how the requests of an open loop lie: `uniform`, `jittered`, `poisson`.
    pub arrival: &'static str,
    /// Requests a second of an open loop; `null` in a closed one, and when the rate changes.
    pub rate: Option<f64>,
    /// The rate over time, if it changes; `null` otherwise.
    pub stages: Option<Vec<Stage>>,
    /// Time that a request may take.
    pub timeout_seconds: f64,
}

/// Quantiles of one distribution in nanoseconds, three significant digits; `max` and `mean` exact.
///
/// Requests that were given up (timeout, end of the run) are in it as right-censored at their age,
/// in the manner of Kaplan and Meier. A quantile that they leave open is only a lower bound and is
/// named in `at_least`. Without samples all values are `null`.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Times {
    /// Right answers behind the figures.
    pub samples: u64,
    /// Requests given up whose age is taken into account.
    pub censored: u64,
    /// Median.
    pub p50: Option<u64>,
    /// 75th percentile.
    pub p75: Option<u64>,
    /// 90th percentile.
    pub p90: Option<u64>,
    /// 95th percentile.
    pub p95: Option<u64>,
    /// 99th percentile.
    pub p99: Option<u64>,
    /// 99.9th percentile.
    pub p999: Option<u64>,
    /// 99.99th percentile, if a request took longer.
    pub p9999: Option<u64>,
    /// 99.999th percentile, if a request took longer.
    pub p99999: Option<u64>,
    /// The longest, exact.
    pub max: Option<u64>,
    /// Arithmetic mean of the samples, exact, censored ones left out.
    pub mean: Option<f64>,
    /// Names of the fields above that are lower bounds: the true value is at least that.
    pub at_least: Vec<&'static str>,
}

/// Bytes on the wire above TCP.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bytes {
    /// Sent: heads and content.
    pub sent: u64,
    /// Received: heads, content and framing.
    pub received: u64,
    /// Content of complete answers, without framing.
    pub content: u64,
}

/// What happened to connections, over the whole run including the warm-up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Connections {
    /// Asked for.
    pub asked: u64,
    /// Opened in all.
    pub opened: u64,
    /// Persistent connections that the server ended between two requests. Not an error.
    pub closed_by_server: u64,
    /// Requests sent again because the connection that they went out on was ended just then.
    pub resent: u64,
    /// Most requests that were outstanding at a time; with several threads, the sum of each one's
    /// most.
    pub busy_max: u64,
}

/// What TLS did in the measured part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TlsSummary {
    /// Handshakes with certificate and key exchange.
    pub full_handshakes: u64,
    /// Handshakes that took up an earlier session.
    pub resumed_handshakes: u64,
    /// What was negotiated on the first connection.
    #[serde(flatten)]
    pub session: TlsSession,
}

/// What was negotiated on a connection.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlsSession {
    /// `TLSv1.2` or `TLSv1.3`.
    pub version: String,
    /// Cipher, as OpenSSL calls it.
    pub cipher: String,
    /// Group of the key exchange.
    pub key_exchange: Option<String>,
    /// Bits of the key in the server's certificate.
    pub server_key_bits: Option<u32>,
}

/// What became of chains: a request of the list with all that followed from its answers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ChainSummary {
    /// Those that ended, and of which every answer was right.
    pub right: u64,
    /// Those that ended otherwise.
    pub wrong: u64,
    /// Those of which a request failed: one that led in a circle among them.
    pub failed: u64,
    /// From when the first request was meant to be sent to the end of the last answer, right ones only.
    pub response_ns: Times,
    /// By place in the chain; what comes after the 32nd counts there.
    pub hops: Vec<HopSummary>,
}

/// Requests with the same place in their chains.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HopSummary {
    /// Complete answers.
    pub answers: u64,
    /// Chains that ended with them.
    pub ended: u64,
    /// From sending the request to the end of its answer, right or wrong.
    pub service_ns: Times,
}

/// What a server did with a connection that it should have closed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Linger {
    /// From the end of the answer to when the server closed, or to when nobody waited any longer.
    pub seconds: f64,
    /// Whether the server closed.
    pub closed: bool,
}

/// One wrong answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WrongAnswer {
    /// Target URI.
    pub url: String,
    /// What should have come.
    pub expected: String,
    /// What came.
    pub got: String,
}

/// Errors of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ErrorCount {
    /// The kind.
    pub kind: FailureKind,
    /// How often.
    pub count: u64,
    /// The first of them: target URI and what happened.
    pub example: String,
}

/// How the generator itself did.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Generator {
    /// Worker threads.
    pub threads: usize,
    /// How they reached their sockets; never [`Io::Auto`].
    pub io: Io,
    /// CPU time of all workers in the measured part.
    pub cpu_seconds: f64,
    /// CPU time of the busiest worker, but for what it polled in vain, over the length of the measured part;
    /// 1 is a whole core.
    pub busiest_thread: f64,
    /// Whether the workers polled all the time, and did not sleep.
    pub busy_poll: bool,
    /// Time that all workers asked for news when there was none. Part of their CPU time.
    pub polled_seconds: f64,
    /// From when a request could and should have been sent to when it was: the generator's own
    /// delay, which is no fault of the server.
    pub lateness_ns: Times,
    /// Longest turn of a worker loop. An answer that came in during it was noticed that much late.
    pub longest_turn_ns: u64,
    /// Share of this machine's time, in per cent, that its host kept during the run; `None` where the kernel
    /// does not tell.
    pub steal_percent: Option<f64>,
}

/// Counts of the warm-up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct WarmUpCounts {
    /// Complete answers.
    pub requests: u64,
    /// Wrong ones among them.
    pub wrong_answers: u64,
    /// Failed requests.
    pub errors: u64,
    /// Length.
    pub seconds: f64,
}

/// Why the run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// The number of requests was reached.
    Requests,
    /// The time was over.
    Duration,
    /// [`crate::Control::stop`] was called.
    Interrupted,
    /// No connection could be opened any more.
    GaveUp,
}

/// A doubt about the measurement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Warning {
    /// Which doubt.
    pub kind: WarningKind,
    /// What was seen.
    pub message: String,
    /// What to try.
    pub advice: String,
}

/// Kinds of doubt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum WarningKind {
    /// A worker used nearly a whole core: the generator, not the server, may be the limit.
    GeneratorSaturated,
    /// The host of this virtual machine kept a part of its time.
    Stolen,
    /// The open loop did not send at the rate asked for.
    RateNotReached,
    /// Fewer than a hundred samples stand behind the highest quantile shown.
    FewSamples,
    /// Wrong answers or errors happened in the warm-up.
    WarmUpNotClean,
    /// The run was ended before its time.
    EndedEarly,
    /// In a closed loop the server stood still for a time that hardly any request shows.
    Stalled,
    /// In an open loop requests waited for a connection to be free.
    Queued,
    /// Many connections were ended by the server although persistence was asked for.
    NotPersistent,
}
