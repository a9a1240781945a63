//! What a run is to do: targets, connections, when to send, when to stop.
//!
//! Arrival and stop are values, so one worker loop carries every combination of them.

use std::net::IpAddr;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::browse::Browsing;
use crate::names::Names;
use crate::rate::Rate;
use crate::route::ConnectTo;
use crate::share::Share;
use crate::target::Target;
use crate::tls::TlsSettings;
use crate::variables::Variables;

/// Connections when nothing else is asked for.
pub const CONNECTIONS_DEFAULT: usize = 10;

/// Time that a request may take before it counts as an error.
///
/// Longer than the idle timeouts that servers ship with for the head of a request, shorter than the
/// patience of whoever started the run.
pub const TIMEOUT_DEFAULT: Duration = Duration::from_secs(10);

/// Everything a run needs to know. Start from [`Plan::new`] and change the fields.
///
/// ```
/// use std::time::Duration;
/// use milepost_load::{Arrival, Plan, Stop, Target};
///
/// let address: std::net::SocketAddr = "127.0.0.1:8080".parse().unwrap();
/// let mut plan = Plan::new(vec![Target::new(address, "localhost:8080", "/test/1")]);
/// plan.connections = 50;
/// plan.arrival = Arrival::uniform(1_000.0);
/// plan.stop = Stop::Duration(Duration::from_secs(30));
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Plan {
    /// What is requested, in the order given by [`Plan::order`]. Must not be empty.
    pub targets: Vec<Target>,
    /// Order in which the targets are taken.
    pub order: Order,
    /// What the places `{{...}}` of requests are filled from; without it they are sent as they stand.
    pub variables: Option<Arc<Variables>>,
    /// Seed of everything random in the run.
    pub seed: u64,
    /// Requests that may be outstanding at the same time, over all threads. One each on a
    /// connection of its own.
    pub connections: usize,
    /// Worker threads. Never more than connections.
    pub threads: usize,
    /// Whether connections are used for more than one request.
    pub persistence: Persistence,
    /// Requests after which a persistent connection is closed and another one opened; see
    /// [`Plan::persistence`]. `None` leaves that to the server.
    pub requests_per_connection: Option<NonZeroU64>,
    /// When requests are sent.
    pub arrival: Arrival,
    /// What comes before the measured part.
    pub warm_up: WarmUp,
    /// When the measured part ends.
    pub stop: Stop,
    /// Time a request may take.
    pub timeout: Duration,
    /// From when that time counts.
    pub timeout_from: TimeoutFrom,
    /// What happens when a connection cannot be opened.
    pub refusal: Refusal,
    /// Longest rest of a connection between an answer and its next request, in the closed loop. Each
    /// is drawn from zero to that with the same probability.
    pub pause_max: Duration,
    /// How the sockets are reached.
    pub io: Io,
    /// What a worker does until there is news.
    pub waiting: Waiting,
    /// Processors that the threads run on, in turn, over all processes together. Empty leaves it to the system.
    pub cpus: Vec<usize>,
    /// What is done with an answer beside checking it: follow a redirect, keep a cookie.
    pub browsing: Browsing,
    /// Other places for hosts that redirects lead to; see [`crate::Router::connect_to`].
    pub connect_to: Vec<ConnectTo>,
    /// All addresses of the hosts, which new connections go to in turn; without it they go to those of the
    /// targets.
    pub names: Option<Arc<Names>>,
    /// Speak HTTP/2, with as many streams at a time on each connection. Over TLS the server must offer
    /// it; without TLS it is taken for granted.
    pub http2: Option<usize>,
    /// Send as many requests at a time on each connection, without waiting for their answers; see
    /// [`crate::PIPELINE_MAX`].
    pub pipeline: Option<usize>,
    /// How TLS is spoken with targets that want it.
    pub tls: TlsSettings,
    /// Local addresses that connections are opened from, one after the other. Empty leaves it to the
    /// system.
    pub sources: Vec<IpAddr>,
    /// Bytes of the send and of the receive buffer of each socket, if not the system's.
    pub socket_buffer: Option<usize>,
    /// Bytes a second that each connection receives at most, in the mean of each answer. With small
    /// buffers ([`Plan::socket_buffer`]) the server sees it at once.
    pub receive_rate: Option<f64>,
    /// Leave the first connection that is used up open, to see when the server closes it, for this
    /// long after the run at most. Only with one request to a connection.
    pub linger_max: Option<Duration>,
    /// Which share of all this is done by this process, when several do it together.
    pub share: Share,
}

/// Order in which targets are requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// One after the other, over all threads together, again from the start after the last.
    Sequential,
    /// Each drawn independently, all with the same probability or by their weights, from the seed.
    Random,
    /// One after the other over each connection by itself; connection i of n starts i/n into the list.
    Each,
}

/// Whether a connection is used for more than one request. Unless told not to, the request says
/// which, in a Connection field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Persistence {
    /// Send `Connection: keep-alive` and go on until the server closes.
    KeepAlive,
    /// Send `Connection: close` and use a new connection for every request.
    Close,
    /// Send no Connection field and use a new connection for every request. An HTTP/1.0 server should
    /// then close after its answer; what one does that does not is the question.
    Unsaid,
}

/// When requests are sent.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Arrival {
    /// Closed loop: each connection sends its next request when the answer to the last is complete.
    Closed,
    /// Open loop: requests are due by the clock, whether or not earlier ones are answered. The next
    /// free connection takes what is due; response time counts from when it was due.
    Open {
        /// Requests a second over all connections, now and later.
        rate: Rate,
        /// How they lie at that rate.
        spacing: Spacing,
    },
}

/// How the requests of an open loop follow each other.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Spacing {
    /// Evenly: at a constant rate, number k is due at start + k / rate.
    Even,
    /// Evenly, with each due time moved at random, following the seed. The rate stays exact.
    Jittered {
        /// How far two times that follow each other may come closer or go apart, as a share of the
        /// even interval: 0.1 gives intervals of 90 % to 110 % of it. From 0 to 1.
        share: f64,
    },
    /// Each independent of all others, as from many users who do not know of each other: a Poisson
    /// process, following the seed. At a constant rate the intervals are exponential.
    Poisson,
}

impl Arrival {
    /// An open loop with a constant rate at even intervals.
    #[must_use]
    pub fn uniform(per_second: f64) -> Self {
        Self::open(per_second, Spacing::Even)
    }

    /// An open loop with a constant rate.
    #[must_use]
    pub fn open(per_second: f64, spacing: Spacing) -> Self {
        Self::Open { rate: Rate::constant(per_second), spacing }
    }

    /// The rate of an open loop; `None` in the closed one.
    #[must_use]
    pub fn rate(&self) -> Option<&Rate> {
        match self {
            Self::Closed => None,
            Self::Open { rate, .. } => Some(rate),
        }
    }
}

/// What comes before the measured part. Its answers are checked, its times are left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WarmUp {
    /// Measure from the first request.
    None,
    /// Load for this long.
    Duration(Duration),
    /// This many requests.
    Requests(u64),
}

/// When a run ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// After exactly this many requests, answered or failed.
    Requests(u64),
    /// After this long. Requests still outstanding then are reported as unanswered.
    Duration(Duration),
    /// After this many requests or this long, whichever comes first.
    Either(u64, Duration),
    /// After each connection has sent this many requests.
    RequestsEach(u64),
}

/// How a worker reaches its sockets. The checks and the report are the same.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Io {
    /// io_uring where the kernel has it and allows it, readiness elsewhere and where only that can do what is
    /// asked for (HTTP/2, a limited rate of receiving, a connection that is left open).
    #[default]
    Auto,
    /// io_uring: all requests of a turn in one system call.
    Uring,
    /// Readiness: epoll or what the system has in its place.
    Epoll,
}

/// What a worker does when there is nothing to do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Waiting {
    /// It sleeps, and is woken some ten microseconds after an answer has come.
    #[default]
    Sleep,
    /// It asks for news without end, on a processor that it has for itself: it sends in time and sees answers
    /// when they come.
    BusyPoll,
}

/// From when the time counts that a request may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeoutFrom {
    /// From sending the request, or from connecting, to the end of its answer.
    Request,
    /// From the last byte that came: an answer may take any time as long as it goes on.
    LastByte,
}

/// What happens when a connection cannot be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// It is tried again after a pause. Some tries cost the request, some seconds the connection.
    Retry,
    /// The request fails at once, as often as it takes. Whoever asks for that watches and stops the
    /// run: against a server that is gone it goes on as fast as it can.
    Fail,
}

impl Plan {
    /// A plan with the defaults: closed loop, keep-alive, one thread,
    /// [`CONNECTIONS_DEFAULT`] connections, no warm-up, ten seconds.
    #[must_use]
    pub fn new(targets: Vec<Target>) -> Self {
        Self {
            targets,
            order: Order::Sequential,
            variables: None,
            seed: 0,
            connections: CONNECTIONS_DEFAULT,
            threads: 1,
            persistence: Persistence::KeepAlive,
            arrival: Arrival::Closed,
            warm_up: WarmUp::None,
            stop: Stop::Duration(Duration::from_secs(10)),
            timeout: TIMEOUT_DEFAULT,
            timeout_from: TimeoutFrom::Request,
            refusal: Refusal::Retry,
            pause_max: Duration::ZERO,
            io: Io::Auto,
            waiting: Waiting::Sleep,
            cpus: Vec::new(),
            browsing: Browsing::default(),
            connect_to: Vec::new(),
            names: None,
            http2: None,
            pipeline: None,
            requests_per_connection: None,
            tls: TlsSettings::default(),
            sources: Vec::new(),
            socket_buffer: None,
            receive_rate: None,
            linger_max: None,
            share: Share::WHOLE,
        }
    }
}
