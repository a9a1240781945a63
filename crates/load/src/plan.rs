//! What a run is to do: targets, connections, when to send, when to stop.
//!
//! Arrival and stop are values, so one worker loop carries every combination of them.

use std::time::Duration;

use crate::target::Target;

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
/// let address = "127.0.0.1:8080".parse().unwrap();
/// let mut plan = Plan::new(vec![Target::new(address, "localhost:8080", "/test/1")]);
/// plan.connections = 50;
/// plan.arrival = Arrival::Uniform { per_second: 1_000.0 };
/// plan.stop = Stop::Duration(Duration::from_secs(30));
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Plan {
    /// What is requested, in the order given by [`Plan::order`]. Must not be empty.
    pub targets: Vec<Target>,
    /// Order in which the targets are taken.
    pub order: Order,
    /// Seed of everything random in the run.
    pub seed: u64,
    /// Requests that may be outstanding at the same time, over all threads. One each on a
    /// connection of its own.
    pub connections: usize,
    /// Worker threads. Never more than connections.
    pub threads: usize,
    /// Whether connections are used for more than one request.
    pub persistence: Persistence,
    /// When requests are sent.
    pub arrival: Arrival,
    /// What comes before the measured part.
    pub warm_up: WarmUp,
    /// When the measured part ends.
    pub stop: Stop,
    /// Time a request may take, from sending it (or from connecting) to the end of its response.
    pub timeout: Duration,
}

/// Order in which targets are requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// One after the other, over all threads together, again from the start after the last.
    Sequential,
    /// Each drawn independently, all with the same probability, from the seed.
    Random,
}

/// Whether a connection is used for more than one request. The request always says which, in a
/// Connection field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Persistence {
    /// Send `Connection: keep-alive` and go on until the server closes.
    KeepAlive,
    /// Send `Connection: close` and use a new connection for every request.
    Close,
}

/// When requests are sent.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Arrival {
    /// Closed loop: each connection sends its next request when the answer to the last is complete.
    Closed,
    /// Open loop: request number k is due at start + k / `per_second`, whether or not earlier ones
    /// are answered. The next free connection takes it; response time counts from when it was due.
    Uniform {
        /// Requests a second over all connections. Must be positive and finite.
        per_second: f64,
    },
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
}

impl Plan {
    /// A plan with the defaults: closed loop, keep-alive, one thread,
    /// [`CONNECTIONS_DEFAULT`] connections, no warm-up, ten seconds.
    #[must_use]
    pub fn new(targets: Vec<Target>) -> Self {
        Self {
            targets,
            order: Order::Sequential,
            seed: 0,
            connections: CONNECTIONS_DEFAULT,
            threads: 1,
            persistence: Persistence::KeepAlive,
            arrival: Arrival::Closed,
            warm_up: WarmUp::None,
            stop: Stop::Duration(Duration::from_secs(10)),
            timeout: TIMEOUT_DEFAULT,
        }
    }
}
