//! Backends and balancers: their URLs and their parameters.
//!
//! Source: httpd 2.4.71 `modules/proxy/mod_proxy.c`, `set_worker_param`, `set_balancer_param`,
//! `add_member`, `set_proxy_param`; `proxy_util.c`, `ap_proxy_define_worker`, `ap_proxy_get_worker_ex`.

use std::time::Duration;

use milepost_syntax::Word;

use super::report::{Finding, show};
use super::{Builder, Context, Directive};
use crate::program::Scope;
use crate::proxy::{Backend, Balancer, BalancerMethod, Member, MemberStatus, Upgrade};

/// How long a backend is left alone after a failed connection, unless `retry` says otherwise.
const RETRY: Duration = Duration::from_secs(60);

/// How a URL of a backend is understood.
enum Kind {
    Backend,
    Balancer,
    /// Of a protocol that is not spoken here: requests get a 503.
    Unspoken,
}

impl Builder<'_> {
    /// Whether a URL is one that requests can go to; an error otherwise.
    pub(super) fn is_proxy_url(&mut self, directive: &Directive<'_>, word: &Word<'_>) -> bool {
        self.kind_of(directive, word, &word.text).is_some()
    }

    fn kind_of(&mut self, directive: &Directive<'_>, word: &Word<'_>, url: &[u8]) -> Option<Kind> {
        let rest = match after_scheme(url, b"unix:") {
            None => url,
            Some(rest) => match memchr::memchr(b'|', rest) {
                Some(bar) => &rest[bar + 1..],
                None => {
                    let finding = Finding::error("the URL behind the socket is missing")
                        .hint("write `unix:/path/to/socket|http://localhost/`");
                    self.report_at(directive, word.at, word.len, finding);
                    return None;
                }
            },
        };
        if after_scheme(rest, b"balancer://").is_some() {
            return Some(Kind::Balancer);
        }
        if [&b"http://"[..], b"ws://", b"https://", b"wss://"]
            .iter()
            .any(|scheme| after_scheme(rest, scheme).is_some())
        {
            return Some(Kind::Backend);
        }
        let end = memchr::memchr(b':', rest).unwrap_or(rest.len());
        let scheme = String::from_utf8_lossy(&rest[..end]).to_ascii_lowercase();
        let host = rest[end..].strip_prefix(b"://").unwrap_or_default();
        let has_host = host.first().is_some_and(|first| !b"/:".contains(first));
        let is_named = rest.contains(&b'$') || backend_name(rest).is_some();
        if scheme.is_empty() || !has_host || !is_named {
            let finding = Finding::error(format!("{} is no URL of a backend", show(&word.text)))
                .hint("write `http://host:port/path`");
            self.report_at(directive, word.at, word.len, finding);
            return None;
        }
        let is_known = ["fcgi", "ajp", "uwsgi", "scgi", "h2", "h2c", "ftp", "fd"];
        let status = if is_known.contains(&scheme.as_str()) { 503 } else { 500 };
        let message = format!(
            "backends of the protocol `{scheme}` are not supported: requests get a {status}"
        );
        let finding = Finding::warning(message)
            .hint("have the backend speak HTTP/1.1: `http://` or `unix:/path|http://localhost/`");
        self.report_at(directive, word.at, word.len, finding);
        self.has_proxy = true;
        Some(Kind::Unspoken)
    }

    /// The backend or balancer that a URL names, made if it is new, with its parameters set.
    pub(super) fn pass_worker(
        &mut self,
        directive: &Directive<'_>,
        word: &Word<'_>,
        url: &[u8],
        parameters: &[&Word<'_>],
        server: usize,
    ) {
        match self.kind_of(directive, word, url) {
            None | Some(Kind::Unspoken) => {}
            Some(Kind::Balancer) => {
                let number = self.balancer(url, server);
                self.balancer_parameters(directive, number, parameters);
            }
            Some(Kind::Backend) => {
                let Some((number, is_new)) = self.backend(directive, word, url, server) else {
                    return;
                };
                if is_new {
                    self.backend_parameters(directive, number, None, parameters);
                } else if let [first, ..] = parameters {
                    // Apache shares the backend that was named first, and ignores these too.
                    let known = self.backends[number].url.clone();
                    let place = self.backends[number].place.clone();
                    let finding = Finding::warning(format!(
                        "the parameters are ignored: the backend is that of `{known}` ({place})"
                    ))
                    .hint(
                        "give them where the backend is named first, or put the longer URL first",
                    );
                    self.report_at(directive, first.at, first.len, finding);
                }
            }
        }
    }

    /// `BalancerMember [balancer] url [key=value …]`
    pub(super) fn balancer_member(&mut self, directive: &Directive<'_>, context: &Context<'_>) {
        self.has_proxy = true;
        let words = directive.words();
        let own = (context.scope == Scope::Proxy).then(|| context.directory.to_vec());
        let (balancer, rest) = match (own, words.as_slice()) {
            (Some(name), words) => (name, words),
            (None, [name, rest @ ..]) => (name.text.to_vec(), rest),
            (None, []) => (Vec::new(), &[][..]),
        };
        let Some((url, parameters)) = rest.split_first() else {
            let finding = Finding::error("`BalancerMember` has too few arguments")
                .hint("write `BalancerMember url [key=value ...]` in a `<Proxy balancer://name>`");
            return self.report(directive, finding);
        };
        if after_scheme(&balancer, b"balancer://").is_none() {
            let finding = Finding::error("`BalancerMember` belongs in a `<Proxy balancer://name>`");
            return self.report(directive, finding);
        }
        if let Some(word) = parameters.iter().find(|word| !word.text.contains(&b'=')) {
            let finding = Finding::error(format!("{} is no parameter", show(&word.text)))
                .hint("write `BalancerMember url [key=value ...]`");
            return self.report_at(directive, word.at, word.len, finding);
        }
        let Some(Kind::Backend) = self.kind_of(directive, url, &url.text) else { return };
        let Some((backend, is_new)) = self.backend(directive, url, &url.text, context.server)
        else {
            return;
        };
        let number = self.balancer(&balancer, context.server);
        let parameters: Vec<_> = parameters.iter().collect();
        self.balancers[number].members.push(Member {
            backend,
            route: None,
            redirect: None,
            load_factor: 100,
            set: 0,
            status: MemberStatus::default(),
        });
        let member = self.balancers[number].members.len() - 1;
        // Two balancers may have one backend; what is said of the connection is said once.
        let _ = is_new;
        self.backend_parameters(directive, backend, Some((number, member)), &parameters);
    }

    /// `ProxySet [url] key=value …`
    pub(super) fn proxy_set(&mut self, directive: &Directive<'_>, context: &Context<'_>) {
        self.has_proxy = true;
        let words = directive.words();
        let own = (context.scope == Scope::Proxy).then(|| context.directory.to_vec());
        let (url, parameters) = match (&own, words.as_slice()) {
            (Some(url), words) => (url.as_slice(), words),
            (None, [url, rest @ ..]) => (&*url.text, rest),
            (None, []) => (&b""[..], &[][..]),
        };
        let Some(first) = words.first() else {
            let finding = Finding::error("`ProxySet` has too few arguments")
                .hint("write `ProxySet url key=value ...`");
            return self.report(directive, finding);
        };
        let parameters: Vec<_> = parameters.iter().collect();
        let kind = self.kind_of(directive, first, url);
        let (backends, balancers) = (self.backends.len(), self.balancers.len());
        match kind {
            None | Some(Kind::Unspoken) => return,
            Some(Kind::Balancer) => {
                let number = self.balancer(url, context.server);
                self.balancer_parameters(directive, number, &parameters);
            }
            Some(Kind::Backend) => {
                if let Some((number, _)) = self.backend(directive, first, url, context.server) {
                    self.backend_parameters(directive, number, None, &parameters);
                }
            }
        }
        let is_new = self.backends.len() > backends || self.balancers.len() > balancers;
        if own.is_none() && is_new {
            let finding = Finding::error(format!("nothing is passed to {} so far", show(url)))
                .hint("put `ProxySet` behind its `ProxyPass`, or into a `<Proxy>`");
            self.report_at(directive, first.at, first.len, finding);
        }
    }

    /// The number of a balancer, made if it is new.
    fn balancer(&mut self, url: &[u8], server: usize) -> usize {
        let url = balancer_name(url);
        let own = &mut self.servers[server].proxy.own.balancers;
        if let Some(known) = own.iter().find(|number| self.balancers[**number].url == url) {
            return *known;
        }
        own.push(self.balancers.len());
        self.balancers.push(Balancer {
            url,
            members: Vec::new(),
            method: BalancerMethod::Requests,
            sticky: None,
            separator: None,
            no_failover: false,
            attempts_max: None,
            timeout: None,
            fail_on: Vec::new(),
            force_recovery: true,
        });
        self.balancers.len() - 1
    }

    /// The number of the backend that a URL goes to: the one with the longest URL that begins it, or a new
    /// one. Also whether it is new.
    fn backend(
        &mut self,
        directive: &Directive<'_>,
        word: &Word<'_>,
        url: &[u8],
        server: usize,
    ) -> Option<(usize, bool)> {
        let Some(name) = backend_name(url) else {
            let finding = Finding::error(format!("{} is no URL of a backend", show(&word.text)))
                .hint("write `http://host:port/path`");
            self.report_at(directive, word.at, word.len, finding);
            return None;
        };
        let own = &self.servers[server].proxy.own.backends;
        let known = own
            .iter()
            .filter(|number| begins(self.backends[**number].url.as_bytes(), name.as_bytes()))
            .max_by_key(|number| self.backends[**number].url.len());
        if let Some(known) = known {
            return Some((*known, false));
        }
        let (file, line) = self.pool.describe(directive.place);
        let is_ws = name.contains("ws://") || name.contains("wss://");
        let upgrade = if is_ws { Upgrade::Only("websocket".to_owned()) } else { Upgrade::None };
        self.backends.push(Backend {
            url: name,
            connections_max: None,
            acquire: None,
            ttl: None,
            timeout: None,
            connect_timeout: None,
            retry: RETRY,
            reuse: true,
            ping: None,
            keep_alive: false,
            upgrade,
            place: format!("{}:{line}", file.display()),
        });
        let number = self.backends.len() - 1;
        self.servers[server].proxy.own.backends.push(number);
        Some((number, true))
    }

    fn backend_parameters(
        &mut self,
        directive: &Directive<'_>,
        number: usize,
        member: Option<(usize, usize)>,
        parameters: &[&Word<'_>],
    ) {
        for word in parameters {
            let (key, value) = split(&word.text);
            let set = set_backend(&mut self.backends[number], &key, &value);
            let set = match (set, member) {
                (Err(Unknown), Some((balancer, member))) => {
                    set_member(&mut self.balancers[balancer].members[member], &key, &value)
                }
                // Without a balancer these mean nothing, to Apache either.
                (Err(Unknown), None) => set_member(&mut no_member(), &key, &value),
                (set, _) => set,
            };
            if !self.parameter_fits(directive, word, &key, &value, set) {
                return;
            }
        }
    }

    fn balancer_parameters(
        &mut self,
        directive: &Directive<'_>,
        number: usize,
        parameters: &[&Word<'_>],
    ) {
        for word in parameters {
            let (key, value) = split(&word.text);
            let module = format!("mod_lbmethod_{value}.c");
            if key == "lbmethod" && !self.names.modules.has(&module) {
                let message = format!("no module that is loaded has the method `{value}`");
                return self.report_at(directive, word.at, word.len, Finding::error(message));
            }
            let set = set_balancer(&mut self.balancers[number], &key, &value);
            if !self.parameter_fits(directive, word, &key, &value, set) {
                return;
            }
        }
    }

    /// Whether a parameter is known and its value one of it; an error otherwise.
    fn parameter_fits(
        &mut self,
        directive: &Directive<'_>,
        word: &Word<'_>,
        key: &str,
        value: &str,
        set: Result<bool, Unknown>,
    ) -> bool {
        let finding = match set {
            Ok(true) => return true,
            Ok(false) => Finding::error(format!("`{value}` is no value for `{key}`")),
            Err(Unknown) if is_ignored(key) => return true,
            Err(Unknown) if key.starts_with("hc") => match self.health_check(key, value) {
                Ok(()) => {
                    self.note_health_checks(directive, word);
                    return true;
                }
                Err(finding) => finding,
            },
            Err(Unknown) => Finding::error(format!("unknown parameter `{key}`"))
                .hint("see the manual of mod_proxy for the parameters of `ProxyPass`"),
        };
        self.report_at(directive, word.at, word.len, finding);
        false
    }
}

/// The key is none of these.
struct Unknown;

/// Parameters about memory, flushing and the number of connections that are kept, which change no answer.
fn is_ignored(key: &str) -> bool {
    matches!(
        key,
        "min"
            | "smax"
            | "iobuffersize"
            | "receivebuffersize"
            | "flushpackets"
            | "flushwait"
            | "responsefieldsize"
            | "addressttl"
            | "secret"
            | "growth"
            | "nonce"
            | "failontimeout"
            | "scolonpathdelim"
    )
}

/// Sets a parameter; false if the value is none.
fn set_backend(backend: &mut Backend, key: &str, value: &str) -> Result<bool, Unknown> {
    let seconds = || time(value, 1000);
    Ok(match key {
        "max" => {
            backend.connections_max = value.parse().ok().filter(|max| *max > 0);
            backend.connections_max.is_some()
        }
        "acquire" => set(&mut backend.acquire, time(value, 1)),
        "ttl" => set(&mut backend.ttl, seconds()),
        "timeout" => set(&mut backend.timeout, seconds().filter(|time| !time.is_zero())),
        "connectiontimeout" => {
            set(&mut backend.connect_timeout, seconds().filter(|time| !time.is_zero()))
        }
        "retry" => seconds().map(|time| backend.retry = time).is_some(),
        "ping" => set(&mut backend.ping, seconds()),
        "disablereuse" => flag(value).map(|on| backend.reuse = !on).is_some(),
        "enablereuse" => flag(value).map(|on| backend.reuse = on).is_some(),
        "keepalive" => flag(value).map(|on| backend.keep_alive = on).is_some(),
        "upgrade" => {
            backend.upgrade = match value.to_ascii_lowercase().as_str() {
                "none" => Upgrade::None,
                "any" | "*" => Upgrade::Any,
                name => Upgrade::Only(name.to_owned()),
            };
            !value.is_empty()
        }
        _ => return Err(Unknown),
    })
}

fn set_member(member: &mut Member, key: &str, value: &str) -> Result<bool, Unknown> {
    Ok(match key {
        "loadfactor" => {
            let factor: Option<f64> = value.parse().ok().filter(|n| (1.0..=100.0).contains(n));
            factor.map(|factor| member.load_factor = (factor * 100.0) as u32).is_some()
        }
        "route" => {
            member.route = Some(value.to_owned());
            true
        }
        "redirect" => {
            member.redirect = Some(value.to_owned());
            true
        }
        "lbset" => value.parse().ok().map(|number: u32| member.set = number).is_some(),
        "status" => set_status(&mut member.status, value),
        _ => return Err(Unknown),
    })
}

/// `+H`, `-D`, `H+D`: letters, each set or not.
fn set_status(status: &mut MemberStatus, value: &str) -> bool {
    let mut on = true;
    for letter in value.chars() {
        let flag = match letter.to_ascii_uppercase() {
            '+' => {
                on = true;
                continue;
            }
            '-' => {
                on = false;
                continue;
            }
            'D' | 'S' => &mut status.disabled,
            'H' => &mut status.standby,
            'R' => &mut status.spare,
            'N' => &mut status.draining,
            'I' => &mut status.ignores_errors,
            'E' => &mut status.failed,
            _ => return false,
        };
        *flag = on;
    }
    !value.is_empty()
}

fn set_balancer(balancer: &mut Balancer, key: &str, value: &str) -> Result<bool, Unknown> {
    Ok(match key {
        "stickysession" => {
            let (cookie, path) = value.split_once('|').unwrap_or((value, value));
            balancer.sticky = Some((cookie.to_owned(), path.to_owned()));
            !value.is_empty()
        }
        "stickysessionsep" => {
            balancer.separator =
                value.bytes().next().filter(|_| !value.eq_ignore_ascii_case("off"));
            !value.is_empty()
        }
        "nofailover" => flag(value).map(|on| balancer.no_failover = on).is_some(),
        "forcerecovery" => flag(value).map(|on| balancer.force_recovery = on).is_some(),
        "timeout" => set(&mut balancer.timeout, time(value, 1000)),
        "maxattempts" => {
            balancer.attempts_max = value.parse().ok();
            balancer.attempts_max.is_some()
        }
        "lbmethod" => {
            balancer.method = match value {
                "byrequests" => BalancerMethod::Requests,
                "bytraffic" => BalancerMethod::Traffic,
                "bybusyness" => BalancerMethod::Busyness,
                _ => return Ok(false),
            };
            true
        }
        "failonstatus" => {
            let codes: Option<Vec<u16>> =
                value.split(',').map(|code| code.trim().parse().ok()).collect();
            codes.map(|codes| balancer.fail_on = codes).is_some()
        }
        _ => return Err(Unknown),
    })
}

fn no_member() -> Member {
    Member {
        backend: 0,
        route: None,
        redirect: None,
        load_factor: 100,
        set: 0,
        status: MemberStatus::default(),
    }
}

fn set<T>(slot: &mut Option<T>, value: Option<T>) -> bool {
    let is_some = value.is_some();
    *slot = value;
    is_some
}

fn flag(value: &str) -> Option<bool> {
    match value.to_ascii_lowercase().as_str() {
        "on" => Some(true),
        "off" => Some(false),
        _ => None,
    }
}

/// A number with a unit, or in units of `unit_ms`.
pub(super) fn time(value: &str, unit_ms: u64) -> Option<Duration> {
    let digits = value.bytes().take_while(u8::is_ascii_digit).count();
    let unit = match value[digits..].to_ascii_lowercase().as_str() {
        "" => unit_ms,
        "ms" => 1,
        "s" => 1000,
        "mi" | "min" => 60_000,
        "h" => 3_600_000,
        _ => return None,
    };
    value[..digits].parse::<u64>().ok()?.checked_mul(unit).map(Duration::from_millis)
}

fn split(text: &[u8]) -> (String, String) {
    let text = String::from_utf8_lossy(text);
    let (key, value) = text.split_once('=').unwrap_or((&text, ""));
    (key.to_ascii_lowercase(), value.to_owned())
}

/// What follows a scheme in any case.
pub(crate) fn after_scheme<'u>(url: &'u [u8], scheme: &[u8]) -> Option<&'u [u8]> {
    let start = url.get(..scheme.len())?;
    start.eq_ignore_ascii_case(scheme).then(|| &url[scheme.len()..])
}

/// The name of a balancer: its URL without path, in lower case.
pub(crate) fn balancer_name(url: &[u8]) -> String {
    const SCHEME: usize = b"balancer://".len();
    let rest = url.get(SCHEME..).unwrap_or_default();
    let end = memchr::memchr(b'/', rest).unwrap_or(rest.len());
    format!("balancer://{}", String::from_utf8_lossy(&rest[..end]).to_ascii_lowercase())
}

/// Whether the URL of a backend begins `url`, its host and port as a whole.
pub(crate) fn begins(backend: &[u8], url: &[u8]) -> bool {
    url.starts_with(backend) && backend.len() >= path_start(url)
}

/// Where the path of a URL begins, or where the URL ends.
fn path_start(url: &[u8]) -> usize {
    let host = memchr::memmem::find(url, b"://").map_or(0, |at| at + 3);
    memchr::memchr(b'/', &url[host..]).map_or(url.len(), |slash| host + slash)
}

/// The name of a backend: its URL with scheme and host in lower case, without a default port.
fn backend_name(url: &[u8]) -> Option<String> {
    let (socket, url) = match after_scheme(url, b"unix:") {
        Some(rest) => {
            let bar = memchr::memchr(b'|', rest)?;
            (Some(std::str::from_utf8(&rest[..bar]).ok()?), &rest[bar + 1..])
        }
        None => (None, url),
    };
    let url = std::str::from_utf8(url).ok()?;
    let (scheme, rest) = url.split_once("://")?;
    let scheme = scheme.to_ascii_lowercase();
    let end = rest.find('/').unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let default = if matches!(scheme.as_str(), "https" | "wss") { ":443" } else { ":80" };
    let authority = authority.to_ascii_lowercase();
    let bracket = authority.rfind(']').unwrap_or(0);
    if let Some((_, port)) = authority[bracket..].rsplit_once(':') {
        port.parse::<u16>().ok().filter(|port| *port > 0)?;
    }
    let authority = authority.strip_suffix(default).unwrap_or(&authority);
    if authority.is_empty() {
        return None;
    }
    let socket = socket.map(|path| format!("unix:{path}|")).unwrap_or_default();
    Some(format!("{socket}{scheme}://{authority}{path}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_backends_are_canonical() {
        for (url, expected) in [
            ("HTTP://Host.Example:80/A", Some("http://host.example/A")),
            ("https://h:443", Some("https://h")),
            ("http://h:443/", Some("http://h:443/")),
            ("ws://[::1]:8080/x", Some("ws://[::1]:8080/x")),
            ("http://[::1]/x", Some("http://[::1]/x")),
            ("unix:/run/x|http://LOCAL/", Some("unix:/run/x|http://local/")),
            ("http://h:99999/", None),
            ("http:///x", None),
        ] {
            assert_eq!(backend_name(url.as_bytes()).as_deref(), expected, "{url}");
        }
    }

    #[test]
    fn hosts_are_compared_whole() {
        for (backend, url, expected) in [
            ("http://h", "http://h/x", true),
            ("http://h", "http://hx/x", false),
            ("http://h", "http://h:8080/x", false),
            ("http://h/a", "http://h/abc", true),
            ("http://h/a", "http://h/b", false),
        ] {
            assert_eq!(begins(backend.as_bytes(), url.as_bytes()), expected, "{backend} {url}");
        }
    }

    #[test]
    fn letters_set_the_status() {
        let mut status = MemberStatus::default();
        assert!(set_status(&mut status, "+H-D"));
        assert_eq!(status, MemberStatus { standby: true, ..MemberStatus::default() });
        assert!(!set_status(&mut status, "+Q"));
    }
}
