//! Finds the way to the server of a URL: its address, another one in its place, a proxy.
//!
//! Each host is looked up once, before the run, so that no name server is measured.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::endpoint::Endpoint;
use crate::names::Names;
use crate::target::{Scheme, Target, Tunnel};
use crate::url::{HttpUrl, UrlError, UrlErrorKind, look_up};

/// How the servers of a run are reached. By default directly, by their names.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Router {
    /// Everything goes through this proxy.
    pub proxy: Option<Proxy>,
    /// Everything goes to this Unix socket.
    pub unix_socket: Option<PathBuf>,
    /// Other places for some hosts; the first that fits counts.
    pub connect_to: Vec<ConnectTo>,
    addresses: HashMap<(String, u16), SocketAddr>,
}

/// A proxy for `http` URLs, which it is asked for as they are, and `https` URLs, to whose servers it
/// makes tunnels.
#[derive(Debug, Clone)]
pub struct Proxy {
    /// Where it is.
    pub url: HttpUrl,
    /// Value of the Proxy-Authorization field.
    pub authorization: Option<String>,
    /// Whether `http` URLs go through tunnels too.
    pub tunnels_all: bool,
}

/// Connections to a host and port that go elsewhere. The request says what it said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectTo {
    /// The host in the URL; any without.
    host: Option<String>,
    /// The port in the URL; any without.
    port: Option<u16>,
    /// The host instead; the same without.
    to_host: Option<String>,
    /// The port instead; the same without.
    to_port: Option<u16>,
}

/// Why a server cannot be reached.
#[derive(Debug, thiserror::Error)]
#[error("cannot find the host {host}")]
pub struct RouteError {
    /// The host.
    pub host: String,
    /// What the system says.
    pub source: io::Error,
}

impl Router {
    /// A `GET` of the URL, with the way to its server.
    ///
    /// # Errors
    ///
    /// When the host has no address.
    pub fn target(&mut self, url: &HttpUrl) -> Result<Target, RouteError> {
        if let Some(path) = &self.unix_socket {
            return Ok(url.target(path.clone()));
        }
        let Some(proxy) = self.proxy.clone() else {
            let address = self.address(url)?;
            return Ok(url.target(address));
        };
        let address = self.address(&proxy.url)?;
        let mut target = url.target(address);
        if url.scheme() == Scheme::Https || proxy.tunnels_all {
            target.tunnel = Some(Tunnel { authorization: proxy.authorization });
        } else {
            target.request_target = target.uri();
            if let Some(credentials) = proxy.authorization {
                target.fields.push(("Proxy-Authorization".to_owned(), credentials));
            }
        }
        Ok(target)
    }

    /// All addresses of the hosts that were asked for so far, which are looked up `every` so often.
    #[must_use]
    pub fn names(&self, every: Option<Duration>) -> Names {
        let hosts = self.addresses.iter();
        let hosts = hosts.map(|((name, port), address)| (*address, name.clone(), *port));
        Names::new(hosts.collect(), every)
    }

    fn address(&mut self, url: &HttpUrl) -> Result<Endpoint, RouteError> {
        let (host, port) = (url.host(), url.port());
        let (host, port) = ConnectTo::apply(&self.connect_to, host, port);
        let key = (host.to_owned(), port);
        if let Some(address) = self.addresses.get(&key) {
            return Ok(Endpoint::Tcp(*address));
        }
        match look_up(host, port) {
            Ok(address) => {
                self.addresses.insert(key, address);
                Ok(Endpoint::Tcp(address))
            }
            Err(source) => Err(RouteError { host: key.0, source }),
        }
    }
}

impl Proxy {
    /// Reads `HOST[:PORT]`, with `http://` in front or not.
    ///
    /// # Errors
    ///
    /// When it is no URL of a proxy that plain HTTP is spoken with.
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        let with_scheme =
            if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
        let url = HttpUrl::parse(&with_scheme)?;
        if url.scheme() == Scheme::Https {
            return Err(UrlError { kind: UrlErrorKind::SecureProxy, at: 0 });
        }
        Ok(Self { url, authorization: None, tunnels_all: false })
    }
}

impl ConnectTo {
    /// Reads `HOST:PORT:TO_HOST:TO_PORT`; what is empty means any, or the same. Addresses of IPv6 stand
    /// in brackets.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut rest = text;
        loop {
            let (part, after) = match rest.strip_prefix('[') {
                Some(inner) => inner
                    .split_once(']')
                    .ok_or_else(|| format!("{text}: a bracket is not closed"))?,
                None => rest.split_at(rest.find(':').unwrap_or(rest.len())),
            };
            parts.push(part);
            match after.strip_prefix(':') {
                Some(after) => rest = after,
                None if after.is_empty() => break,
                None => return Err(format!("{text}: a colon is missing after the bracket")),
            }
        }
        let port = |text: &str| match text {
            "" => Ok(None),
            digits => match digits.parse::<u16>() {
                Ok(port) if port > 0 => Ok(Some(port)),
                _ => Err(format!("{digits} is no port")),
            },
        };
        let host = |text: &str| (!text.is_empty()).then(|| text.to_ascii_lowercase());
        match parts[..] {
            // `HOST:PORT:TO_HOST` leaves the port.
            [from, from_port, to] => Ok(Self {
                host: host(from),
                port: port(from_port)?,
                to_host: host(to),
                to_port: None,
            }),
            [from, from_port, to, to_port] => Ok(Self {
                host: host(from),
                port: port(from_port)?,
                to_host: host(to),
                to_port: port(to_port)?,
            }),
            _ => Err(format!("{text}: HOST:PORT:TO_HOST:TO_PORT is needed")),
        }
    }

    /// Host and port that are connected to for those of a URL.
    pub(crate) fn apply<'a>(rules: &'a [Self], host: &'a str, port: u16) -> (&'a str, u16) {
        match rules.iter().find(|rule| rule.is_for(host, port)) {
            Some(rule) => (rule.to_host.as_deref().unwrap_or(host), rule.to_port.unwrap_or(port)),
            None => (host, port),
        }
    }

    fn is_for(&self, host: &str, port: u16) -> bool {
        self.host.as_ref().is_none_or(|own| own.eq_ignore_ascii_case(host))
            && self.port.is_none_or(|own| own == port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_go_elsewhere_and_requests_say_what_they_said() {
        let mut router = Router::default();
        for rule in ["a.example:80:127.0.0.2:8080", "b.example::[::1]:", "::127.0.0.3:"] {
            router.connect_to.push(ConnectTo::parse(rule).unwrap());
        }
        for (url, address) in [
            ("http://a.example/x", "127.0.0.2:8080"),
            ("http://A.example:80/x", "127.0.0.2:8080"),
            ("http://b.example:81/x", "[::1]:81"),
            ("https://b.example/x", "[::1]:443"),
            ("http://a.example:81/x", "127.0.0.3:81"),
        ] {
            let url = HttpUrl::parse(url).unwrap();
            let target = router.target(&url).unwrap();
            assert_eq!(target.address.to_string(), address);
            assert_eq!((&*target.authority, &*target.request_target), (url.authority(), "/x"));
        }
        for wrong in ["", "a:80", "a:b:c:d", "a:0:c:1", "[::1:80:b:1", "[::1]80:b:1", "a:1:b:2:c"] {
            assert!(ConnectTo::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_proxy_is_asked_for_the_url_or_for_a_tunnel() {
        let mut proxy = Proxy::parse("127.0.0.1:3128").unwrap();
        proxy.authorization = Some("Basic x".to_owned());
        let mut router = Router { proxy: Some(proxy), ..Router::default() };
        let target = |router: &mut Router, url| {
            let target = router.target(&HttpUrl::parse(url).unwrap()).unwrap();
            (target.request_target, target.fields, target.tunnel)
        };
        let field = ("Proxy-Authorization".to_owned(), "Basic x".to_owned());
        let plain = target(&mut router, "http://nowhere.invalid/a");
        assert_eq!(plain, ("http://nowhere.invalid/a".to_owned(), vec![field], None));
        let tunnel = || Some(Tunnel { authorization: Some("Basic x".to_owned()) });
        let secure = target(&mut router, "https://nowhere.invalid/a");
        assert_eq!(secure, ("/a".to_owned(), vec![], tunnel()));
        router.proxy.as_mut().unwrap().tunnels_all = true;
        let tunnelled = target(&mut router, "http://nowhere.invalid/a");
        assert_eq!(tunnelled, ("/a".to_owned(), vec![], tunnel()));
        assert!(Proxy::parse("https://h").is_err());
    }
}
