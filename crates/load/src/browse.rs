//! What a visitor does with an answer: follows a redirect, keeps a cookie, logs in, loads a page's
//! elements.
//!
//! The requests that follow from one of the list are its chain; they go one after the other over the
//! connections of the same slot. Values in, next request out: no socket in here. A redirect is
//! followed only where a browser would, and where it leads nowhere, in a circle or on and on, the
//! request that it answers has failed: a chain always ends.
//!
//! Source: RFC 9110 sections 15.4 (redirection) and 11.6 (authentication), RFC 6265 (cookies).

mod cookie;
mod login;
mod page;
mod reference;

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::SystemTime;

use crate::answer::Failure;
use crate::failure::FailureKind;
use crate::head_fields::{field, fields};
use crate::keep::{Keep, KeepContent};
use crate::target::{Scheme, Target, Tunnel};
use crate::url::HttpUrl;

use cookie::Jar;
use login::Session;
use reference::resolve;

/// Redirects in a row that are followed unless the plan says otherwise, as browsers do.
pub const REDIRECTS_MAX_DEFAULT: u32 = 20;

/// Status of an answer that asks for a login.
pub(crate) const UNAUTHORIZED: u16 = 401;

/// So much of a page is searched for elements.
const PAGE_BYTES_MAX: usize = 1024 * 1024;

/// What is done with an answer beside checking it. By default nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Browsing {
    /// Most redirects in a row that are followed: 301, 302, 303, 307 and 308. Zero follows none.
    pub redirects_max: u32,
    /// Whether each connection keeps cookies and sends them back.
    pub cookies: bool,
    /// Whether the images, style sheets, scripts and frames of an HTML page are requested too.
    pub page_elements: bool,
    /// Hosts that no page element is requested from.
    pub skipped_hosts: Vec<String>,
    /// What is answered to a 401 that asks for basic or digest authentication: the first that is for its
    /// realm.
    pub logins: Vec<Login>,
}

/// Credentials for basic and digest authentication.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Login {
    /// User.
    pub user: String,
    /// Password.
    pub password: String,
    /// Realm that they are for; any without.
    pub realm: Option<String>,
}

/// What comes after an answer.
#[derive(Debug)]
pub(crate) enum Step {
    /// The chain is complete.
    Done,
    /// This is requested next. Its address is that of the request before: whoever connects looks up
    /// another authority.
    Next(Box<Target>),
    /// The answer leads nowhere, so its request has failed.
    Failed(Failure),
}

/// One visitor: what a slot remembers from request to request.
#[derive(Debug, Default)]
pub(crate) struct Visit {
    jar: Jar,
    /// How it is known to authorities that asked for a login.
    sessions: Vec<Session>,
    /// Whether a session was renewed in this chain.
    renewed: bool,
    /// Redirects in a row so far.
    redirects: u32,
    /// Digests of what was requested in this chain of redirects, as it went over the wire.
    seen: Vec<u64>,
    /// Elements of the page that are still to be requested.
    elements: VecDeque<Box<Target>>,
}

impl Browsing {
    /// Whether anything is done at all.
    pub(crate) fn is_active(&self) -> bool {
        *self != Self::default()
    }

    /// What is to be kept of each answer, with what an observer wants.
    pub(crate) fn keep(&self, wanted: Keep) -> Keep {
        if !self.is_active() {
            return wanted;
        }
        let content = match wanted.content {
            KeepContent::Bytes(max) if self.page_elements => {
                KeepContent::Bytes(max.max(PAGE_BYTES_MAX))
            }
            _ if self.page_elements => KeepContent::Bytes(PAGE_BYTES_MAX),
            content => content,
        };
        Keep { head: true, content }
    }
}

impl Visit {
    /// A request of the list is about to be sent.
    pub(crate) fn begin(&mut self) {
        self.redirects = 0;
        self.renewed = false;
        self.seen.clear();
        self.elements.clear();
    }

    /// The target with what the visitor adds to it: cookies and credentials. `None` when nothing is.
    pub(crate) fn dress(&mut self, target: &Target, browsing: &Browsing) -> Option<Target> {
        let (host, path) = place(target);
        let cookie = self.jar.field(&host, &path, SystemTime::now());
        let session = self.sessions.iter_mut().find(|session| session.is_of(target));
        let credentials = session.and_then(|session| session.credentials(&browsing.logins, target));
        if cookie.is_none() && credentials.is_none() {
            return None;
        }
        let mut target = target.clone();
        if let Some(credentials) = credentials {
            set(&mut target, "Authorization", credentials);
        }
        if let Some(mut cookie) = cookie {
            // What the plan sends is sent on, beside what the server set.
            let own = target.fields.iter().find(|(name, _)| name.eq_ignore_ascii_case("Cookie"));
            if let Some((_, own)) = own {
                cookie = format!("{own}; {cookie}");
            }
            set(&mut target, "Cookie", cookie);
        }
        Some(target)
    }

    /// A request with this digest is sent. An error if the chain has sent exactly that before: the answers could only
    /// go round in a circle.
    pub(crate) fn send(&mut self, digest: u64) -> Result<(), Failure> {
        if self.seen.contains(&digest) {
            let detail = "the redirects go round in a circle";
            return Err(Failure::new(FailureKind::RedirectLoop, detail));
        }
        self.seen.push(digest);
        Ok(())
    }

    /// Looks at the answer to `target`, before what was added to it, and says what comes next.
    pub(crate) fn step(
        &mut self,
        browsing: &Browsing,
        target: &Target,
        status: u16,
        head: &[u8],
        content: &[u8],
    ) -> Step {
        let (host, path) = place(target);
        if browsing.cookies {
            let now = SystemTime::now();
            for (_, value) in
                fields(head).filter(|(name, _)| name.eq_ignore_ascii_case(b"Set-Cookie"))
            {
                self.jar.set(value, &host, &path, now);
            }
        }
        if browsing.redirects_max > 0 && matches!(status, 301 | 302 | 303 | 307 | 308) {
            return match self.redirect(browsing, target, status, field(head, "Location")) {
                Ok(next) => Step::Next(Box::new(next)),
                Err(failure) => Step::Failed(failure),
            };
        }
        if status == UNAUTHORIZED && self.log_in(browsing, target, head) {
            return Step::Next(Box::new(target.clone()));
        }
        if browsing.page_elements && status == 200 && self.elements.is_empty() && is_page(head) {
            self.find_elements(browsing, target, content);
        }
        match self.elements.pop_front() {
            Some(next) => {
                self.redirects = 0;
                self.seen.clear();
                Step::Next(next)
            }
            None => Step::Done,
        }
    }

    /// Whether a 401 can be answered that has not been answered before.
    fn log_in(&mut self, browsing: &Browsing, target: &Target, head: &[u8]) -> bool {
        if let Some(session) = self.sessions.iter_mut().find(|session| session.is_of(target)) {
            // Once in a chain: a server whose nonces are never fresh must not keep it from ending.
            let is_renewed = !self.renewed && session.renew(head);
            self.renewed |= is_renewed;
            return is_renewed;
        }
        let session = Session::open(browsing, target, head);
        let is_open = session.is_some();
        self.sessions.extend(session);
        is_open
    }

    fn redirect(
        &mut self,
        browsing: &Browsing,
        target: &Target,
        status: u16,
        location: Option<&[u8]>,
    ) -> Result<Target, Failure> {
        let unfit = |why: String| Failure::new(FailureKind::RedirectUnfit, why);
        if self.redirects >= browsing.redirects_max {
            let detail = format!("more than {} redirects in a row", browsing.redirects_max);
            return Err(Failure::new(FailureKind::RedirectLimit, detail));
        }
        self.redirects += 1;
        let location = location.ok_or_else(|| unfit("redirect without Location".to_owned()))?;
        let shown = || location.escape_ascii().to_string();
        let text = std::str::from_utf8(location)
            .map_err(|_| unfit(format!("redirect to {}: not UTF-8", shown())))?;
        let mut next = at(target, &resolve(&target.uri(), text))
            .map_err(|error| unfit(format!("redirect to {}: {error}", shown())))?;
        // 307 and 308 keep the method; the others turn a POST into a GET, 303 anything but HEAD.
        let changes = match status {
            301 | 302 => target.method == "POST",
            303 => target.method != "HEAD",
            _ => false,
        };
        if changes {
            "GET".clone_into(&mut next.method);
            next.content = Arc::default();
            next.fields.retain(|(name, _)| !name.eq_ignore_ascii_case("Content-Type"));
        }
        Ok(next)
    }

    fn find_elements(&mut self, browsing: &Browsing, page: &Target, content: &[u8]) {
        let uri = page.uri();
        for reference in page::elements(&String::from_utf8_lossy(content)) {
            // A browser leaves out what it cannot load, and so does this.
            let Ok(mut element) = at(page, &resolve(&uri, &reference)) else { continue };
            if browsing.skipped_hosts.iter().any(|host| *host == place(&element).0) {
                continue;
            }
            "GET".clone_into(&mut element.method);
            element.content = Arc::default();
            self.elements.push_back(Box::new(element));
        }
    }
}

/// Tells one request from another.
pub(crate) fn digest(request: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    request.hash(&mut hasher);
    hasher.finish()
}

/// A request like `target` for another URI.
fn at(target: &Target, uri: &str) -> Result<Target, crate::url::UrlError> {
    let url = HttpUrl::parse(uri)?;
    let mut next = target.clone();
    // What was expected was expected of another URI.
    next.expectation = crate::target::Expectation::default();
    // Through a proxy every request goes to the same address: with the whole URI in it, or through a
    // tunnel.
    let is_forwarded = !target.request_target.starts_with('/');
    let is_proxied = is_forwarded || target.tunnel.is_some();
    next.scheme = url.scheme();
    if (url.scheme(), url.authority()) != (target.scheme, &target.authority) {
        // Fields that were meant for the other authority, and that may be secret.
        next.fields.retain(|(name, _)| {
            !["Host", "Authorization", "Cookie"].iter().any(|it| name.eq_ignore_ascii_case(it))
        });
        url.authority().clone_into(&mut next.authority);
    }
    url.request_target().clone_into(&mut next.request_target);
    if is_proxied {
        let authorization = "Proxy-Authorization";
        let own = next.fields.iter().position(|(name, _)| name.eq_ignore_ascii_case(authorization));
        let credentials = match next.tunnel.take() {
            Some(tunnel) => tunnel.authorization,
            None => own.map(|own| next.fields.remove(own).1),
        };
        if url.scheme() == Scheme::Https {
            next.tunnel = Some(Tunnel { authorization: credentials });
        } else {
            next.request_target = next.uri();
            next.fields.extend(credentials.map(|it| (authorization.to_owned(), it)));
        }
    }
    Ok(next)
}

/// Host and path of a target, for cookies.
fn place(target: &Target) -> (String, String) {
    match HttpUrl::parse(&target.uri()) {
        Ok(url) => (url.host().to_owned(), url.request_target().to_owned()),
        Err(_) => (target.authority.clone(), target.request_target.clone()),
    }
}

fn set(target: &mut Target, name: &str, value: String) {
    target.fields.retain(|(own, _)| !own.eq_ignore_ascii_case(name));
    target.fields.push((name.to_owned(), value));
}

/// Whether the answer is an HTML page that can be read as it is.
fn is_page(head: &[u8]) -> bool {
    let starts = |value: &[u8], with: &[u8]| {
        value.get(..with.len()).is_some_and(|it| it.eq_ignore_ascii_case(with))
    };
    field(head, "Content-Type").is_some_and(|value| starts(value, b"text/html"))
        && field(head, "Content-Encoding").is_none_or(|value| starts(value, b"identity"))
}

#[cfg(test)]
mod tests;
