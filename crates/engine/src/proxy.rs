//! The servers behind this one, as the configuration describes them, and a request that goes to one.
//!
//! The engine decides where a request goes; connections, and which member of a balancer has the turn, are
//! the server's.
//!
//! Source: httpd 2.4.71 `modules/proxy/mod_proxy.h`, `proxy_worker_shared`, `proxy_balancer_shared`;
//! `proxy_util.c`, `ap_proxy_define_worker`.

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use crate::eval::Table;

/// One server behind this one: a worker, in Apache's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backend {
    /// Its URL: `http://host:8080/path`, or `unix:/path/to/socket|http://host`.
    pub url: String,
    /// `max`: the most connections of one worker thread at a time; `None` for no limit.
    pub connections_max: Option<usize>,
    /// `acquire`: how long to wait for one of them; `None`: not at all.
    pub acquire: Option<Duration>,
    /// `ttl`: how long a connection may be idle and still be used.
    pub ttl: Option<Duration>,
    /// `timeout`: how long to wait for the backend to take or send the next bytes.
    pub timeout: Option<Duration>,
    /// `connectiontimeout`
    pub connect_timeout: Option<Duration>,
    /// `retry`: how long it is left alone after a connection has failed.
    pub retry: Duration,
    /// Whether connections are used for more than one request: not with `disablereuse=On`.
    pub reuse: bool,
    /// `ping`: the backend must say `100 Continue` in this time before content is sent.
    pub ping: Option<Duration>,
    /// `keepalive`: whether the system probes idle connections.
    pub keep_alive: bool,
    /// `upgrade`: to which protocols a connection may be upgraded.
    pub upgrade: Upgrade,
    /// Where the directive stands: `vhost.conf:3`.
    pub place: String,
}

/// The protocols that a connection may be upgraded to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Upgrade {
    /// None: requests are ordinary ones.
    #[default]
    None,
    /// Any that the client asks for.
    Any,
    /// This one, in any case.
    Only(String),
}

/// Several backends for the same URLs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Balancer {
    /// Its name, `balancer://name`.
    pub url: String,
    /// The members, in order.
    pub members: Vec<Member>,
    /// `lbmethod`
    pub method: BalancerMethod,
    /// `stickysession`: the names of the cookie and of the path parameter that hold the route.
    pub sticky: Option<(String, String)>,
    /// `stickysessionsep`: what stands before the route.
    pub separator: Option<u8>,
    /// `nofailover=On`: a session does not move to another member.
    pub no_failover: bool,
    /// `maxattempts`: how often another member is tried; `None`: each once.
    pub attempts_max: Option<usize>,
    /// `timeout`: how long to wait for a member to be free.
    pub timeout: Option<Duration>,
    /// `failonstatus`: statuses after which a member is left alone.
    pub fail_on: Vec<u16>,
    /// `forcerecovery`: whether members are tried before their time when none else is left.
    pub force_recovery: bool,
}

/// How the next member is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BalancerMethod {
    /// By the number of requests, weighted.
    #[default]
    Requests,
    /// By the number of bytes, weighted.
    Traffic,
    /// By the number of requests under way.
    Busyness,
}

/// A member of a balancer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// The number of its backend among [`crate::Site::backends`].
    pub backend: usize,
    /// `route`
    pub route: Option<String>,
    /// `redirect`: the route that takes over its sessions when it is not there.
    pub redirect: Option<String>,
    /// `loadfactor`, in hundredths.
    pub load_factor: u32,
    /// `lbset`: members of a higher set are used when those of a lower one cannot be.
    pub set: u32,
    /// `status`
    pub status: MemberStatus,
}

/// What a member is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MemberStatus {
    /// `D`, `S`: not used.
    pub disabled: bool,
    /// `H`: used when no other can be.
    pub standby: bool,
    /// `R`: used in place of one that cannot be.
    pub spare: bool,
    /// `N`: used for the sessions that it has, and no new ones.
    pub draining: bool,
    /// `I`: used though its connections fail.
    pub ignores_errors: bool,
    /// `E`: as after a failed connection.
    pub failed: bool,
}

/// Where a request goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProxyTo {
    /// To the backend with this number.
    Backend(usize),
    /// To a member of the balancer with this number.
    Balancer(usize),
    /// To the server that the URL names, which is nobody's backend: connections are not kept.
    Url,
}

/// `ProxyVia`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Via {
    /// Fields pass as they are.
    #[default]
    Off,
    /// Requests and responses get a line.
    On,
    /// The same, with the version of the server.
    Full,
    /// The lines of others are removed from requests.
    Block,
}

/// A request that goes to a server behind this one. Borrowed from the scratch.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Proxied<'s> {
    /// 200, or the status of the error whose document it is.
    pub status: u16,
    /// The whole URL: `http://host:port/path?query`, after `unix:/path|` for a socket.
    pub url: &'s [u8],
    /// Who is asked for it.
    pub to: ProxyTo,
    /// It is a `GET` without content, whatever the client has sent: the document of an error.
    pub as_get: bool,
    /// The number of the server that sends it there.
    pub server: usize,
    /// The number of the `<Proxy>` section, in [`crate::TlsSettings::sections`], whose TLS it has; `None`: that
    /// of the server.
    pub tls: Option<usize>,
    /// `ProxyPreserveHost`
    pub preserve_host: bool,
    /// `ProxyAddHeaders`
    pub add_fields: bool,
    /// `ProxyVia`
    pub via: Via,
    /// `ProxyTimeout`, or `Timeout`.
    pub timeout: Duration,
    /// The name of this server, for `X-Forwarded-Server` and `Via`.
    pub server_name: &'s [u8],
    /// Content is sent on while it arrives, and not kept until it is complete.
    pub streams: bool,
    /// A variable says that no connection is to be used again.
    pub no_reuse: bool,
    /// `LimitRequestBody`: the most bytes of content; `None` for no limit.
    pub content_bytes_max: Option<u64>,
    /// Whom `X-Forwarded-For` names; `None`: who has connected.
    pub client: Option<IpAddr>,
    /// The request fields that directives have changed.
    pub fields: ChangedFields<'s>,
}

impl fmt::Debug for Proxied<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?} {}", self.status, self.to, String::from_utf8_lossy(self.url))
    }
}

/// Request fields that directives have changed, in place of those that were sent.
#[derive(Clone, Copy)]
pub struct ChangedFields<'s>(pub(crate) &'s Table);

impl<'s> ChangedFields<'s> {
    /// Whether a field was changed or removed: what was sent does not count.
    pub fn decides(&self, name: &[u8]) -> bool {
        !self.0.is_empty() && self.0.decides(name)
    }

    /// Names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&'s [u8], &'s [u8])> + use<'s> {
        self.0.iter()
    }
}

impl PartialEq for ChangedFields<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.0.iter().eq(other.0.iter())
    }
}

impl Eq for ChangedFields<'_> {}
