//! What the configuration says about the server itself: listeners, persistence, limits.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::log::LogSettings;
use crate::protocol::Protocols;
use crate::tls::TlsSettings;

/// The server-wide settings of a site, with Apache's defaults where nothing was said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// `Listen`, in order.
    pub listens: Vec<Listen>,
    /// `ServerRoot`.
    pub server_root: PathBuf,
    /// `TypesConfig`; default `conf/mime.types`.
    pub types_file: Option<PathBuf>,
    /// `KeepAlive`; default on.
    pub keep_alive: bool,
    /// `KeepAliveTimeout`; default 5 s.
    pub keep_alive_timeout: Duration,
    /// `MaxKeepAliveRequests`; default 100, `None` for 0 (no limit).
    pub keep_alive_requests_max: Option<u32>,
    /// `Timeout`; default 60 s.
    pub timeout: Duration,
    /// `LimitRequestLine`; default 8190 bytes.
    pub request_line_bytes_max: usize,
    /// `LimitRequestFields`; default 100, 0 for no limit.
    pub fields_max: usize,
    /// `LimitRequestFieldSize`; default 8190 bytes.
    pub field_bytes_max: usize,
    /// What virtual hosts say of their connections in place of the main server, by their numbers.
    pub own_connections: BTreeMap<usize, OwnConnections>,
    /// `ListenBacklog`; default 511.
    pub listen_backlog: i32,
    /// `MaxRequestWorkers`; default none. It bounds [`Settings::connections_max`].
    pub requests_max: Option<u32>,
    /// `AsyncRequestWorkerFactor` in hundredths; default 200.
    pub async_factor_percent: u32,
    /// `GracefulShutdownTimeout`; default 0, no limit.
    pub graceful_timeout: Option<Duration>,
    /// `RequestReadTimeout header=`; default none: `Timeout` is the limit.
    pub head_timeout: Option<ReadTimeout>,
    /// `RequestReadTimeout body=`; default none: `Timeout` is the limit.
    pub content_timeout: Option<ReadTimeout>,
    /// `PidFile`.
    pub pid_file: Option<PathBuf>,
    /// `User`, a name or `#` and a number.
    pub user: Option<String>,
    /// `Group`, the same.
    pub group: Option<String>,
    /// `CustomLog` and the like.
    pub logs: LogSettings,
    /// `ServerAdmin`.
    pub server_admin: Option<String>,
    /// TLS, server by server.
    pub tls: TlsSettings,
    /// `Protocols` and what belongs to it, by the number of the server.
    pub protocols: Vec<Protocols>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            listens: Vec::new(),
            server_root: PathBuf::from("/"),
            types_file: None,
            keep_alive: true,
            keep_alive_timeout: Duration::from_secs(5),
            keep_alive_requests_max: Some(100),
            timeout: Duration::from_secs(60),
            request_line_bytes_max: 8190,
            fields_max: 100,
            field_bytes_max: 8190,
            own_connections: BTreeMap::new(),
            listen_backlog: 511,
            requests_max: None,
            async_factor_percent: 200,
            graceful_timeout: None,
            head_timeout: None,
            content_timeout: None,
            pid_file: None,
            user: None,
            group: None,
            logs: LogSettings::default(),
            server_admin: None,
            tls: TlsSettings::default(),
            protocols: Vec::new(),
        }
    }
}

impl Settings {
    /// `Timeout` of a server.
    #[must_use]
    pub fn timeout_of(&self, server: usize) -> Duration {
        self.own_connections.get(&server).and_then(|own| own.timeout).unwrap_or(self.timeout)
    }

    /// `LimitRequestLine` of a server.
    #[must_use]
    pub fn request_line_bytes_max_of(&self, server: usize) -> usize {
        let own = self.own_connections.get(&server).and_then(|own| own.request_line_bytes_max);
        own.unwrap_or(self.request_line_bytes_max)
    }

    /// How many connections may be open at once: as many as httpd's event MPM takes with the same
    /// `MaxRequestWorkers`. `None`: as many as the process has descriptors for.
    ///
    /// Source: httpd 2.4.71 `docs/manual/mod/event.html`, `AsyncRequestWorkerFactor`.
    #[must_use]
    pub fn connections_max(&self) -> Option<usize> {
        let factor = u64::from(self.async_factor_percent) + 100;
        let max = u64::from(self.requests_max?) * factor / 100;
        Some(usize::try_from(max).unwrap_or(usize::MAX).max(1))
    }
}

/// What a virtual host says of its connections; the main server says the rest.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OwnConnections {
    /// `KeepAlive`
    pub keep_alive: Option<bool>,
    /// `KeepAliveTimeout`
    pub keep_alive_timeout: Option<Duration>,
    /// `MaxKeepAliveRequests`; `Some(None)` is no limit.
    pub keep_alive_requests_max: Option<Option<u32>>,
    /// `Timeout`
    pub timeout: Option<Duration>,
    /// `LimitRequestLine`
    pub request_line_bytes_max: Option<usize>,
    /// `LimitRequestFields`
    pub fields_max: Option<usize>,
    /// `LimitRequestFieldSize`
    pub field_bytes_max: Option<usize>,
}

/// A limit for the time that a part of a request takes to arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadTimeout {
    /// The time that it has in any case.
    pub first: Duration,
    /// The time that it has at most.
    pub last: Option<Duration>,
    /// Each so many bytes buy another second.
    pub bytes_per_second_min: Option<u32>,
}

impl ReadTimeout {
    /// The time that it has when so many bytes have arrived.
    pub fn after(&self, bytes: u64) -> Duration {
        let bought = self.bytes_per_second_min.map_or(0, |rate| bytes / u64::from(rate.max(1)));
        let time = self.first.saturating_add(Duration::from_secs(bought));
        self.last.map_or(time, |last| time.min(last))
    }
}

/// One `Listen` directive. A bare port listens on the IPv6 and the IPv4 wildcard address.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listen {
    /// The addresses to bind.
    pub addresses: Vec<SocketAddr>,
    /// The Unix socket to bind, in their place: `Listen unix:/run/milepost.sock`.
    pub unix: Option<PathBuf>,
    /// The directive, `vhost.conf:3`, for messages about a port that cannot be had.
    pub place: String,
}
