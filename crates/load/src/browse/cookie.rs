//! Keeps the cookies of one visitor.
//!
//! As a browser would, within what a benchmark needs: a cookie goes back to where it came from, by
//! host, domain and path, until it expires. There is no list of public suffixes; a domain of a single
//! label is refused.
//!
//! Source: RFC 6265 sections 5.1 to 5.4.

use std::time::{Duration, SystemTime};

/// Cookies of one visitor; the oldest goes first. RFC 6265 section 6.1 wants at least 50 for a
/// domain, and a visitor of a benchmark sees few domains.
const COOKIES_MAX: usize = 100;

/// Longest cookie that is kept: name, value and attributes (RFC 6265 section 6.1).
const COOKIE_BYTES_MAX: usize = 4096;

/// The cookies of one visitor.
#[derive(Debug, Clone, Default)]
pub(crate) struct Jar {
    cookies: Vec<Cookie>,
}

#[derive(Debug, Clone)]
struct Cookie {
    name: String,
    value: String,
    /// Host or domain, in lower case.
    domain: String,
    /// Whether only `domain` itself gets it, and not what is below.
    host_only: bool,
    path: String,
    expires: Option<SystemTime>,
}

impl Jar {
    /// Takes the value of a Set-Cookie field that came from `path` on `host`.
    pub(crate) fn set(&mut self, value: &[u8], host: &str, path: &str, now: SystemTime) {
        let Some(cookie) = Cookie::parse(value, host, path, now) else { return };
        let same = |other: &Cookie| {
            (&other.name, &other.domain, &other.path)
                == (&cookie.name, &cookie.domain, &cookie.path)
        };
        let expired = cookie.expires.is_some_and(|at| at <= now);
        match self.cookies.iter().position(same) {
            Some(at) if expired => drop(self.cookies.remove(at)),
            Some(at) => self.cookies[at] = cookie,
            None if expired => {}
            None => {
                if self.cookies.len() == COOKIES_MAX {
                    self.cookies.remove(0);
                }
                self.cookies.push(cookie);
            }
        }
    }

    /// The value of the Cookie field of a request for `path` on `host`; `None` without cookies for it.
    pub(crate) fn field(&self, host: &str, path: &str, now: SystemTime) -> Option<String> {
        let mut fitting: Vec<&Cookie> =
            self.cookies.iter().filter(|cookie| cookie.fits(host, path, now)).collect();
        // Longer paths first, and otherwise as they were set (RFC 6265 section 5.4).
        fitting.sort_by_key(|cookie| std::cmp::Reverse(cookie.path.len()));
        let pairs: Vec<_> =
            fitting.iter().map(|cookie| format!("{}={}", cookie.name, cookie.value)).collect();
        (!pairs.is_empty()).then(|| pairs.join("; "))
    }
}

impl Cookie {
    fn parse(value: &[u8], host: &str, path: &str, now: SystemTime) -> Option<Self> {
        let text = std::str::from_utf8(value).ok().filter(|text| text.len() <= COOKIE_BYTES_MAX)?;
        let mut parts = text.split(';');
        let (name, value) = parts.next()?.split_once('=')?;
        let (name, value) = (name.trim(), value.trim());
        // Anything else would break out of the Cookie field that it is sent in.
        if name.is_empty() || !text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic()) {
            return None;
        }
        let host = host.to_ascii_lowercase();
        let mut cookie = Self {
            name: name.to_owned(),
            value: value.to_owned(),
            domain: host.clone(),
            host_only: true,
            path: directory(path).to_owned(),
            expires: None,
        };
        let mut max_age = None;
        for part in parts {
            let (attribute, value) = part.split_once('=').unwrap_or((part, ""));
            let value = value.trim();
            match attribute.trim().to_ascii_lowercase().as_str() {
                // It would never be sent over a connection that is not secure.
                "secure" => return None,
                "path" if value.starts_with('/') => cookie.path = value.to_owned(),
                "domain" if !value.is_empty() => {
                    let domain = value.trim_start_matches('.').to_ascii_lowercase();
                    if domain != host {
                        if !domain.contains('.') || !is_below(&host, &domain) {
                            return None;
                        }
                        cookie.domain = domain;
                    }
                    cookie.host_only = is_address(&host);
                }
                "max-age" => max_age = value.parse::<i64>().ok().or(max_age),
                "expires" => cookie.expires = httpdate::parse_http_date(value).ok(),
                _ => {}
            }
        }
        if let Some(seconds) = max_age {
            let age = Duration::from_secs(u64::try_from(seconds).unwrap_or_default());
            cookie.expires = if age.is_zero() { Some(now) } else { now.checked_add(age) };
        }
        Some(cookie)
    }

    fn fits(&self, host: &str, path: &str, now: SystemTime) -> bool {
        let host = host.to_ascii_lowercase();
        let path = path.split('?').next().unwrap_or_default();
        let fits_host = host == self.domain || (!self.host_only && is_below(&host, &self.domain));
        let fits_path = path.strip_prefix(&*self.path).is_some_and(|rest| {
            rest.is_empty() || rest.starts_with('/') || self.path.ends_with('/')
        });
        fits_host && fits_path && self.expires.is_none_or(|at| at > now)
    }
}

/// Whether `host` is a name under `domain`.
fn is_below(host: &str, domain: &str) -> bool {
    !is_address(host) && host.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.'))
}

fn is_address(host: &str) -> bool {
    host.parse::<std::net::IpAddr>().is_ok()
}

/// The default path of a cookie: up to the last slash, without it.
fn directory(path: &str) -> &str {
    let path = path.split('?').next().unwrap_or_default();
    match path.rfind('/') {
        None | Some(0) => "/",
        Some(slash) => &path[..slash],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_goes_back_where_it_came_from() {
        check("a=1", "h.example", "/x/y", "h.example", "/x/z?q", Some("a=1"));
        check("a=1", "h.example", "/x/y", "H.Example", "/x", Some("a=1"));
        check("a=1", "h.example", "/x/y", "h.example", "/xy", None);
        check("a=1", "h.example", "/x/y", "other.example", "/x/y", None);
        check("a=1", "h.example", "/x/y", "sub.h.example", "/x/y", None);
        check("a=1; Path=/; HttpOnly", "h.example", "/x/y", "h.example", "/", Some("a=1"));
        check("a=1", "127.0.0.1", "/", "127.0.0.1", "/", Some("a=1"));
    }

    #[test]
    fn a_domain_widens_it_to_names_below() {
        let domain = "a=1; Domain=.shop.example; Path=/";
        check(domain, "www.shop.example", "/", "static.shop.example", "/", Some("a=1"));
        check(domain, "www.shop.example", "/", "myshop.example", "/", None);
        check(domain, "www.other.example", "/", "www.shop.example", "/", None);
        check("a=1; Domain=example; Path=/", "shop.example", "/", "shop.example", "/", None);
        check("a=1; Domain=0.0.1; Path=/", "127.0.0.1", "/", "127.0.0.1", "/", None);
    }

    #[test]
    fn what_must_not_be_sent_is_not_kept() {
        check("a=1; Secure", "h", "/", "h", "/", None);
        check("a=1; Max-Age=0", "h", "/", "h", "/", None);
        check("a=1; Expires=Thu, 01 Jan 1970 00:00:00 GMT", "h", "/", "h", "/", None);
        check(
            "a=1; Max-Age=60; Expires=Thu, 01 Jan 1970 00:00:00 GMT",
            "h",
            "/",
            "h",
            "/",
            Some("a=1"),
        );
        check("a=1\u{7}", "h", "/", "h", "/", None);
        check("=1", "h", "/", "h", "/", None);
        check("a", "h", "/", "h", "/", None);
        check(&format!("a={}", "x".repeat(COOKIE_BYTES_MAX - 2)), "h", "/", "x", "/", None);
        check(&format!("a={}", "x".repeat(COOKIE_BYTES_MAX)), "h", "/", "h", "/", None);
    }

    #[test]
    fn a_cookie_replaces_its_namesake_and_expires() {
        let (mut jar, now) = (Jar::default(), SystemTime::UNIX_EPOCH + Duration::from_secs(1_000));
        let field = |jar: &Jar, at| jar.field("h", "/a/b", at);
        jar.set(b"a=1; Path=/", "h", "/a/b", now);
        jar.set(b"b=2; Max-Age=5", "h", "/a/b", now);
        jar.set(b"a=3; Path=/", "h", "/a/b", now);
        assert_eq!(field(&jar, now).as_deref(), Some("b=2; a=3"));
        assert_eq!(field(&jar, now + Duration::from_secs(5)).as_deref(), Some("a=3"));
        jar.set(b"a=; Path=/; Max-Age=-1", "h", "/a/b", now);
        assert_eq!(field(&jar, now).as_deref(), Some("b=2"));
    }

    #[test]
    fn the_number_of_cookies_is_limited() {
        let (mut jar, now) = (Jar::default(), SystemTime::UNIX_EPOCH);
        for number in 0..=COOKIES_MAX {
            jar.set(format!("c{number}=x").as_bytes(), "h", "/", now);
        }
        let field = jar.field("h", "/", now).unwrap();
        assert_eq!(field.split("; ").count(), COOKIES_MAX);
        assert!(!field.contains("c0=x"), "the oldest goes first");
    }

    /// Sets `cookie` at one place and asks at another.
    #[track_caller]
    fn check(cookie: &str, host: &str, path: &str, to: &str, at: &str, field: Option<&str>) {
        let (mut jar, now) = (Jar::default(), SystemTime::UNIX_EPOCH + Duration::from_secs(1_000));
        jar.set(cookie.as_bytes(), host, path, now);
        assert_eq!(jar.field(to, at, now).as_deref(), field, "{cookie}");
    }
}
