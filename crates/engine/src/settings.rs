//! What the configuration says about the server itself: listeners, persistence, limits.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::log::LogSettings;

/// The server-wide settings of a site, with Apache's defaults where nothing was said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// `Listen`, in order.
    pub listens: Vec<Listen>,
    /// `ServerRoot`.
    pub server_root: PathBuf,
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
    /// `ListenBacklog`; default 511.
    pub listen_backlog: i32,
    /// `CustomLog` and the like.
    pub logs: LogSettings,
    /// `ServerAdmin`.
    pub server_admin: Option<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            listens: Vec::new(),
            server_root: PathBuf::from("/"),
            keep_alive: true,
            keep_alive_timeout: Duration::from_secs(5),
            keep_alive_requests_max: Some(100),
            timeout: Duration::from_secs(60),
            request_line_bytes_max: 8190,
            fields_max: 100,
            field_bytes_max: 8190,
            listen_backlog: 511,
            logs: LogSettings::default(),
            server_admin: None,
        }
    }
}

/// One `Listen` directive. A bare port listens on the IPv6 and the IPv4 wildcard address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listen {
    /// The addresses to bind.
    pub addresses: Vec<SocketAddr>,
    /// The directive, `vhost.conf:3`, for messages about a port that cannot be had.
    pub place: String,
}
