//! `ProxyPass` and its relatives: the rules of a server, and what sections say about proxied requests.
//!
//! Source: httpd 2.4.71 `modules/proxy/mod_proxy.h`, `struct proxy_alias`, `proxy_dir_conf`.

use std::sync::Arc;
use std::time::Duration;

use crate::decision::Place;
use crate::pattern::Pattern;
use crate::pool::Str;
use crate::program::AliasList;
use crate::proxy::Via;

/// `ProxyPass` and `ProxyPassMatch` outside sections, in order.
#[derive(Debug)]
pub(crate) struct PassList {
    /// What each is compared with; the target is the backend's URL.
    pub(crate) list: AliasList,
    /// The same rules by number: how the URL is made.
    pub(crate) styles: Vec<PassStyle>,
}

/// How the URL of a `ProxyPass` is made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PassStyle {
    /// `nocanon`: of the path as it was sent.
    pub(crate) raw: bool,
    /// `interpolate`: `${NAME}` is a variable, where `ProxyPassInterpolateEnv` is on.
    pub(crate) interpolate: bool,
}

/// `ProxyPass` in a `<Location>`.
#[derive(Debug)]
pub(crate) struct SectionPass {
    /// The path of the section, or its pattern.
    pub(crate) matcher: SectionPassMatcher,
    /// The backend's URL, or `!`.
    pub(crate) target: Str,
    pub(crate) style: PassStyle,
    pub(crate) place: Place,
}

/// What the path is compared with.
#[derive(Debug)]
pub(crate) enum SectionPassMatcher {
    /// The path of the `<Location>`.
    Path(Str),
    /// The pattern of the `<LocationMatch>`.
    Match(Box<Pattern>),
}

/// What a section says about proxied requests.
#[derive(Debug, Clone, Default)]
pub(crate) struct ProxyDir {
    /// `ProxyPreserveHost`
    pub(crate) preserve_host: Option<bool>,
    /// `ProxyAddHeaders`
    pub(crate) add_fields: Option<bool>,
    /// `ProxyErrorOverride`: for these statuses, or for all errors if there are none.
    pub(crate) error_override: Option<Option<Arc<[u16]>>>,
    /// `ProxyPassInterpolateEnv`
    pub(crate) interpolate: Option<bool>,
    /// The number of the section whose `SSLProxy…` count.
    pub(crate) tls: Option<usize>,
    /// `ProxyPassReverse`: URL-path here, URL there.
    pub(crate) reverse: Vec<Mapping>,
    /// `ProxyPassReverseCookieDomain`: there, here.
    pub(crate) cookie_domains: Vec<Mapping>,
    /// `ProxyPassReverseCookiePath`: there, here.
    pub(crate) cookie_paths: Vec<Mapping>,
}

/// A text and what takes its place.
#[derive(Debug, Clone)]
pub(crate) struct Mapping {
    pub(crate) from: Arc<[u8]>,
    pub(crate) to: Arc<[u8]>,
}

/// What a server says about proxied requests.
#[derive(Debug, Clone, Default)]
pub(crate) struct ProxyServer {
    pub(crate) via: Option<Via>,
    pub(crate) timeout: Option<Duration>,
    /// Numbers of backends, its own first.
    pub(crate) backends: Vec<usize>,
    /// Numbers of balancers, its own first.
    pub(crate) balancers: Vec<usize>,
}

impl ProxyDir {
    /// Lets the more specific `over` override. Its mappings come last, and the first that fits counts.
    pub(crate) fn merge(&mut self, over: &ProxyDir) {
        self.preserve_host = over.preserve_host.or(self.preserve_host);
        self.add_fields = over.add_fields.or(self.add_fields);
        self.tls = over.tls.or(self.tls);
        if over.error_override.is_some() {
            self.error_override.clone_from(&over.error_override);
        }
        self.interpolate = over.interpolate.or(self.interpolate);
        self.reverse.extend(over.reverse.iter().cloned());
        self.cookie_domains.extend(over.cookie_domains.iter().cloned());
        self.cookie_paths.extend(over.cookie_paths.iter().cloned());
    }

    /// Whether an error of the backend is answered by this server.
    pub(crate) fn overrides(&self, status: u16) -> bool {
        match &self.error_override {
            None | Some(None) => false,
            Some(Some(codes)) if codes.is_empty() => (400..600).contains(&status),
            Some(Some(codes)) => codes.contains(&status),
        }
    }
}
