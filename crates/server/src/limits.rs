//! Every bound of a connection: those that the configuration sets, and those that are ours.

use std::collections::BTreeMap;
use std::time::Duration;

use milepost_engine::{OwnConnections, ReadTimeout, Settings};
use milepost_http::request::HeadLimits;

/// A fresh input buffer: holds a browser's head of 1 to 2 KiB, or some dozens of pipelined ones.
pub(crate) const INPUT_BYTES: usize = 16 * 1024;

/// The largest head. Apache's default limits allow 100 fields of 8190 bytes, which is just below.
pub(crate) const HEAD_BYTES_MAX: usize = 1024 * 1024;

/// Read no further into a rest of the buffer that is smaller than this: move what is unread first.
pub(crate) const READ_BYTES_MIN: usize = 2 * 1024;

/// Answers to pipelined requests are collected up to this size before they are written.
pub(crate) const OUTPUT_BYTES: usize = 64 * 1024;

/// A file is sent in pieces of this size.
pub(crate) const FILE_PIECE_BYTES: usize = 64 * 1024;

/// Buffers that a worker keeps for the next connection that is not idle. More are seldom in use at
/// once, as an answer is mostly written as soon as it is made.
pub(crate) const BUFFERS_KEPT_MAX: usize = 64;

/// Content that nobody will look at is read up to this size, to keep the connection; beyond it the
/// connection is closed, which costs the client a new one.
pub(crate) const CONTENT_DISCARDED_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// How long a closed connection waits for the client's last words to stop, so that they do not turn
/// into a reset that takes the answer away. Apache waits 30 s.
pub(crate) const LINGER_TIMEOUT: Duration = Duration::from_secs(10);

/// The pause in the client's last words after which it is taken to be done; as in Apache.
pub(crate) const LINGER_PAUSE: Duration = Duration::from_secs(2);

/// The most bytes of last words that are listened to.
pub(crate) const LINGER_BYTES_MAX: u64 = CONTENT_DISCARDED_BYTES_MAX;

/// How long a stopping server waits for answers that are under way.
pub(crate) const STOP_GRACE: Duration = Duration::from_secs(10);

/// How long to wait when the process has no descriptor left for a new connection.
pub(crate) const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How long to wait before looking again whether there is room for another connection.
pub(crate) const CROWDED_PAUSE: Duration = Duration::from_millis(10);

/// How long a handshake may take where `RequestReadTimeout handshake=` says nothing: as long as a browser
/// on a bad line needs, and not as long as `Timeout`, since nobody has said who he is yet.
const TLS_HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(20);

/// How long the last words of TLS may take to be written.
pub(crate) const TLS_GOODBYE_TIMEOUT: Duration = Duration::from_secs(2);

/// What the first record of TLS begins with. Plain HTTP begins with a letter.
pub(crate) const TLS_RECORD_HANDSHAKE: u8 = 22;

/// The head of a request in HTTP/2, as RFC 9113 section 6.5.2 counts. `h2` answers 431 beyond it. Below
/// the limit of HTTP/1, as a connection can send a hundred of them at a time.
pub(crate) const H2_HEAD_BYTES_MAX: u32 = 64 * 1024;

/// What a client may send ahead on all streams of a connection together.
pub(crate) const H2_CONNECTION_WINDOW_BYTES: u32 = 1024 * 1024;

/// Content up to this size is handed over with the head. It waits in memory if the client's window is
/// closed: for `H2MaxSessionStreams` answers that is 1.6 MB.
pub(crate) const H2_CONTENT_AT_ONCE_BYTES_MAX: usize = 16 * 1024;

/// Streams that a client may reset before they are answered, until it is told to calm down and left:
/// what is known as rapid reset.
pub(crate) const H2_RESETS_MAX: usize = 20;

/// How long a stream that was reset is remembered, so that frames under way do no harm.
pub(crate) const H2_RESET_MEMORY: Duration = Duration::from_secs(5);

/// Errors on streams of one connection until it is left.
pub(crate) const H2_STREAM_ERRORS_MAX: usize = 256;

/// Connections that are answered before the rest of the worker gets a turn.
pub(crate) const LANE_EVENTS_MAX: usize = 256;

/// Buffers that are read from one connection before others get a turn.
pub(crate) const LANE_READS_MAX: usize = 16;

/// Lines of one log that wait to be written: some seconds of a disk that stands still, at 100,000
/// requests a second. Beyond it lines are dropped, as waiting would stop the answers too.
pub(crate) const LOG_WAITING_BYTES_MAX: usize = 32 * 1024 * 1024;

/// How long lines are collected before they are written together.
pub(crate) const LOG_PAUSE: Duration = Duration::from_millis(100);

/// How long the end of the server waits for the last lines to be written.
pub(crate) const LOG_CLOSE_GRACE: Duration = Duration::from_secs(2);

/// Places of rules that a worker remembers for the log. Looking one up takes a pass over its file.
pub(crate) const RULE_PLACES_MAX: usize = 65_536;

/// Content of a proxied request is kept in memory up to this size, and in a temporary file beyond it. Forms
/// fit; a thousand uploads at once take 128 MiB.
pub(crate) const PROXY_HELD_MEMORY_BYTES_MAX: usize = 128 * 1024;

/// What is read from a client or a backend at a time, for a proxied request.
pub(crate) const PROXY_PIECE_BYTES: usize = 32 * 1024;

/// Nothing more is read from a backend while so much waits for its client.
pub(crate) const PROXY_WAITING_BYTES_MAX: usize = 64 * 1024;

/// The largest response head of a backend, the same that load accepts.
pub(crate) const PROXY_HEAD_BYTES_MAX: usize = milepost_http::response::HEAD_BYTES_MAX;

/// Idle connections to a backend that a worker keeps at most, unless `max` says less.
pub(crate) const PROXY_IDLE_MAX: usize = 64;

/// How long a connection to a backend may be idle and still be used, unless `ttl` says otherwise. Backends
/// close theirs sooner or later than this, which is noticed before use.
pub(crate) const PROXY_IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// A request that may not be sent twice goes on a connection that was idle for less than this, or on a new
/// one: no backend gives up connections so soon, so none is on its way to be closed.
pub(crate) const PROXY_UNREPEATABLE_IDLE_MAX: Duration = Duration::from_secs(1);

/// How often idle connections to backends are looked at.
pub(crate) const PROXY_IDLE_LOOK: Duration = Duration::from_secs(1);

/// How long the addresses of a name are remembered.
pub(crate) const PROXY_ADDRESS_AGE_MAX: Duration = Duration::from_secs(30);

/// The most of a response head of a backend that logs look at.
pub(crate) const LOGGED_HEAD_BYTES_MAX: usize = 64 * 1024;

/// Responses before the final one that a backend may send for one request.
pub(crate) const PROXY_INTERIM_MAX: u32 = 16;

/// How often the document of an error may itself come from a backend.
pub(crate) const PROXY_DOCUMENTS_MAX: u32 = 2;

/// What the configuration says about connections, server by server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AllLimits {
    /// Of the main server.
    pub(crate) main: Limits,
    /// Of virtual hosts that say anything of their own, by their numbers.
    own: BTreeMap<usize, Limits>,
}

impl From<&Settings> for AllLimits {
    fn from(settings: &Settings) -> AllLimits {
        let main = Limits::from(settings);
        let own = settings.own_connections.iter();
        let own = own.map(|(server, own)| (*server, main.with(own))).collect();
        AllLimits { main, own }
    }
}

impl AllLimits {
    /// Whether it matters which server it is.
    pub(crate) fn differ(&self) -> bool {
        !self.own.is_empty()
    }

    /// Those of a server.
    pub(crate) fn of(&self, server: usize) -> &Limits {
        if self.differ() { self.own.get(&server).unwrap_or(&self.main) } else { &self.main }
    }
}

/// What the configuration says about connections of one server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Limits {
    pub(crate) head: HeadLimits,
    pub(crate) keep_alive: bool,
    pub(crate) keep_alive_timeout: Duration,
    pub(crate) keep_alive_requests_max: Option<u32>,
    pub(crate) timeout: Duration,
    pub(crate) connections_max: Option<usize>,
    pub(crate) head_timeout: Option<ReadTimeout>,
    pub(crate) content_timeout: Option<ReadTimeout>,
    pub(crate) handshake_timeout: Option<ReadTimeout>,
}

impl From<&Settings> for Limits {
    fn from(settings: &Settings) -> Limits {
        Limits {
            head: HeadLimits {
                request_line_bytes_max: settings.request_line_bytes_max,
                field_bytes_max: settings.field_bytes_max,
                fields_max: settings.fields_max,
            },
            keep_alive: settings.keep_alive,
            keep_alive_timeout: settings.keep_alive_timeout,
            keep_alive_requests_max: settings.keep_alive_requests_max,
            timeout: settings.timeout,
            connections_max: settings.connections_max(),
            head_timeout: settings.head_timeout,
            content_timeout: settings.content_timeout,
            handshake_timeout: settings.tls.handshake_timeout,
        }
    }
}

impl Limits {
    /// These, with what a virtual host says in place of some.
    fn with(&self, own: &OwnConnections) -> Limits {
        let requests_max = own.keep_alive_requests_max;
        Limits {
            head: HeadLimits {
                request_line_bytes_max: own
                    .request_line_bytes_max
                    .unwrap_or(self.head.request_line_bytes_max),
                field_bytes_max: own.field_bytes_max.unwrap_or(self.head.field_bytes_max),
                fields_max: own.fields_max.unwrap_or(self.head.fields_max),
            },
            keep_alive: own.keep_alive.unwrap_or(self.keep_alive),
            keep_alive_timeout: own.keep_alive_timeout.unwrap_or(self.keep_alive_timeout),
            keep_alive_requests_max: requests_max.unwrap_or(self.keep_alive_requests_max),
            timeout: own.timeout.unwrap_or(self.timeout),
            ..self.clone()
        }
    }

    /// How long the first byte of a connection may take.
    pub(crate) fn first(&self) -> Duration {
        let first = self.head_timeout.map_or(self.timeout, |limit| limit.first);
        self.timeout.min(first)
    }

    /// How long a TLS handshake may take.
    pub(crate) fn handshake(&self) -> Duration {
        let said = self.handshake_timeout.map(|limit| limit.last.unwrap_or(limit.first));
        said.unwrap_or(TLS_HANDSHAKE_TIMEOUT.min(self.timeout))
    }
}
