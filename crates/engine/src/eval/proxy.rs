//! Sends a request to another server, and takes the answer of that server further.
//!
//! The URL stands in the place of the file's name, after `proxy:`, as in httpd, because rules of a
//! `<Location>` see it there. While the other server is asked, the decision is put aside as
//! [`Suspended`]: the worker's scratch decides other requests meanwhile. When the answer is there the
//! decision goes on: either the response fields are mapped and edited, or the request has failed and the
//! document of its error is looked for, as for any other error.
//!
//! Source: httpd 2.4.71 `modules/proxy/mod_proxy.c`, `proxy_trans`, `ap_proxy_trans_match`, `proxy_fixup`;
//! `proxy_util.c`, `ap_proxy_location_reverse_map`, `ap_proxy_cookie_reverse_map`, `ap_proxy_canonenc_ex`;
//! `mod_proxy_http.c`, `proxy_http_canon`.

use std::net::Ipv6Addr;

use milepost_http::path::EncodedSlashes;
use milepost_pcre::Captures;

use super::alias::{covers, substitute};
use super::conclude::Answer;
use super::edit::{Stage, Target};
use super::identity::write_text;
use super::{Config, End, Hop, Run, Scratch, Table, Translated, Work};
use crate::build::{after_scheme, balancer_name, begins, is_url};
use crate::decision::Place;
use crate::outside::Outside;
use crate::pattern::Pattern;
use crate::pool::Pool;
use crate::program::{AliasMatcher, DirConfig, Mapping, PassStyle, Program, SectionPassMatcher};
use crate::proxy::{ChangedFields, Proxied, ProxyTo};
use crate::request::Request;
use crate::site::Site;
use crate::trace::Event;

/// What stands before the URL.
pub(super) const MARK: &[u8] = b"proxy:";

/// A decision that waits for the answer of another server.
#[derive(Debug, Default)]
pub struct Suspended {
    hop: Hop,
    first: Hop,
    has_first: bool,
    redirects: u32,
    host: super::target::Host,
    server: usize,
    request: Table,
    always: Table,
    rule: Option<(Place, Option<std::sync::Arc<Pool>>)>,
}

/// What another server has answered.
#[derive(Debug, Clone, Copy)]
pub struct ProxiedAnswer<'a> {
    /// The status.
    pub status: u16,
    /// The number of the backend that was asked; `None` if it is none.
    pub backend: Option<usize>,
    /// The fields that are passed on, in order.
    pub fields: &'a [(&'a [u8], &'a [u8])],
}

impl Scratch {
    /// Puts the decision aside that this scratch has just made, so that it can be used for others.
    pub fn suspend(&mut self) -> Suspended {
        let work = &mut self.work;
        Suspended {
            hop: std::mem::take(&mut self.hop),
            first: if self.has_first { std::mem::take(&mut work.first) } else { Hop::default() },
            has_first: self.has_first,
            redirects: self.redirects,
            host: std::mem::take(&mut self.host),
            server: self.server,
            request: std::mem::take(&mut work.request),
            always: std::mem::take(&mut work.always),
            rule: self.rule.take(),
        }
    }

    /// Takes a decision up again, in place of the last one.
    pub fn resume(&mut self, suspended: Suspended) {
        let Suspended { hop, first, has_first, redirects, host, server, request, always, rule } =
            suspended;
        (self.hop, self.host, self.server) = (hop, host, server);
        (self.has_first, self.redirects, self.rule) = (has_first, redirects, rule);
        (self.work.first, self.work.request, self.work.always) = (first, request, always);
        self.work.cookies.clear();
    }
}

impl Site {
    /// Goes on with a decision that [`Scratch::resume`] has brought back: the other server has answered.
    /// What comes out is [`crate::Outcome::Passed`] with all fields of the response, or the answer to an
    /// error.
    pub fn decide_answered<'s>(
        &'s self,
        request: &Request<'_>,
        outside: &dyn Outside,
        scratch: &'s mut Scratch,
        answer: &ProxiedAnswer<'_>,
    ) -> crate::Decision<'s> {
        super::go_on(self.program(), request, outside, scratch, |run, hop| {
            let config = hop.config.clone();
            let config = config.as_deref().unwrap_or(&run.server.base);
            if hop.status == 200 && config.proxy.overrides(answer.status) {
                let answer = run.conclude(hop, End::Status(answer.status));
                return run.finish(hop, answer);
            }
            run.finish_proxied(hop, answer)
        })
    }

    /// Goes on with a decision that [`Scratch::resume`] has brought back: the other server has not
    /// answered, and `status` is what becomes of it.
    pub fn decide_failed<'s>(
        &'s self,
        request: &Request<'_>,
        outside: &dyn Outside,
        scratch: &'s mut Scratch,
        status: u16,
    ) -> crate::Decision<'s> {
        super::go_on(self.program(), request, outside, scratch, |run, hop| {
            let answer = run.conclude(hop, End::Status(status));
            run.finish(hop, answer)
        })
    }

    /// Decides anew where [`Scratch::resume`] has brought a decision back: the content of the request is not
    /// accepted, and `status` is what becomes of it. Nothing of the first decision is left.
    pub fn decide_refused<'s>(
        &'s self,
        request: &Request<'_>,
        outside: &dyn Outside,
        scratch: &'s mut Scratch,
        status: u16,
    ) -> crate::Decision<'s> {
        super::go_on(self.program(), request, outside, scratch, |run, hop| {
            run.has_first = false;
            run.work.always.clear();
            hop.fields.clear();
            hop.status = 200;
            let answer = run.conclude(hop, End::Status(status));
            run.finish(hop, answer)
        })
    }
}

/// What the server needs to know of a request to another one.
pub(super) fn proxied<'s>(
    program: &'s Program,
    number: usize,
    work: &'s Work,
    hop: &'s Hop,
    status: u16,
) -> Proxied<'s> {
    let server = &program.servers[number];
    let url = hop.filename.strip_prefix(MARK).unwrap_or(&hop.filename);
    let config = hop.config.as_deref().unwrap_or(&server.base);
    let to = if after_scheme(url, b"balancer://").is_some() {
        let name = balancer_name(url);
        let named = |number: &&usize| program.balancers[**number].url == name;
        // What is no balancer has no address either, and ends in an error.
        server.proxy.balancers.iter().find(named).map_or(ProxyTo::Url, |n| ProxyTo::Balancer(*n))
    } else {
        let backends = server.proxy.backends.iter();
        let fits = |number: &&usize| begins(program.backends[**number].url.as_bytes(), url);
        let longest = backends.filter(fits).max_by_key(|n| program.backends[**n].url.len());
        longest.map_or(ProxyTo::Url, |number| ProxyTo::Backend(*number))
    };
    let is_set = |name: &[u8]| hop.env.get(name).is_some();
    let buffering = hop.env.get(b"proxy-request-buffering");
    let is_off = |value: &[u8]| value.eq_ignore_ascii_case(b"off") || value == b"0";
    Proxied {
        status,
        url,
        to,
        as_get: hop.as_get,
        server: number,
        tls: config.proxy.tls,
        preserve_host: config.proxy.preserve_host == Some(true),
        add_fields: config.proxy.add_fields != Some(false),
        via: server.proxy.via.unwrap_or_default(),
        timeout: server.proxy.timeout.unwrap_or_else(|| program.settings.timeout_of(number)),
        server_name: server.name.map(|name| program.pool.get(name.host)).unwrap_or_default(),
        streams: buffering.is_some_and(is_off) || is_set(b"proxy-sendchunked"),
        content_bytes_max: config.content_bytes_max(),
        no_reuse: is_set(b"proxy-nokeepalive"),
        client: work.client.map(|client| client.ip()),
        fields: ChangedFields(&work.request),
    }
}

impl<'r> Run<'r> {
    /// `ProxyPass`: that of the section, then those of the server.
    pub(super) fn translate_proxy(&mut self, hop: &mut Hop, config: &Config<'_>) -> Translated {
        if hop.proxied {
            return Translated::Done;
        }
        let server = self.server;
        let section = config.get().pass.as_ref();
        if section.is_none() && server.passes.is_empty() || hop.uri.first() != Some(&b'/') {
            return Translated::Declined;
        }
        if hop.env.get(b"no-proxy").is_some() {
            return Translated::Declined;
        }
        let interpolates = config.get().proxy.interpolate == Some(true);
        if let Some(part) = section {
            let pool = part.pool(&self.program.pool);
            let pass = &*part.value;
            let raw = self.raw_target(hop, pass.style);
            let mut find = |pattern: &Pattern, subject: &[u8]| {
                pattern.find(pool, subject, &mut self.work.matcher).unwrap_or(None)
            };
            let (covered, captures, raw_captures) = match &pass.matcher {
                SectionPassMatcher::Path(path) => (covers(pool.get(*path), &hop.uri), None, None),
                SectionPassMatcher::Match(pattern) => {
                    (0, find(pattern, &hop.uri), raw.and_then(|raw| find(pattern, raw)))
                }
            };
            if covered > 0 || captures.is_some() {
                self.rule = Some((pass.place, part.own_text().cloned()));
                let path = match &pass.matcher {
                    SectionPassMatcher::Path(path) => Some(pool.get(*path)),
                    SectionPassMatcher::Match(_) => None,
                };
                let found = Pass {
                    target: pool.get(pass.target),
                    style: pass.style,
                    covered,
                    captures: captures.as_ref(),
                    raw_captures,
                    path,
                    interpolates,
                };
                return self.pass_on(hop, &found);
            }
        }
        for part in &server.passes {
            let pool = part.pool(&self.program.pool);
            let Some(found) = self.find_alias(&part.value.list, pool, &hop.uri) else { continue };
            self.rule = Some((found.rule.place, part.own_text().cloned()));
            let style = part.value.styles[found.number as usize];
            let raw = self.raw_target(hop, style);
            let (path, raw_captures) = match &found.rule.matcher {
                AliasMatcher::Path(path) => (Some(pool.get(*path)), None),
                AliasMatcher::Exact(path) => {
                    let raw = raw.filter(|raw| *raw == pool.get(*path));
                    (None, raw.map(|raw| Captures::of([(0, raw.len())])))
                }
                AliasMatcher::Match(pattern) => {
                    let matcher = &mut self.work.matcher;
                    let find = |raw| pattern.find(pool, raw, matcher).unwrap_or(None);
                    (None, raw.and_then(find))
                }
            };
            let found = Pass {
                target: pool.get(found.rule.target),
                style,
                covered: found.covered,
                captures: found.captures.as_ref(),
                raw_captures,
                path,
                interpolates,
            };
            return self.pass_on(hop, &found);
        }
        Translated::Declined
    }

    /// Makes the URL of a `ProxyPass` that matched.
    fn pass_on(&mut self, hop: &mut Hop, pass: &Pass<'_>) -> Translated {
        if pass.target == b"!" {
            self.rule = None;
            return Translated::Declined;
        }
        let mut target = self.take_buffer();
        if pass.interpolates && pass.style.interpolate {
            self.settle_env(hop);
            interpolate(pass.target, &hop.env, &mut target);
        } else {
            target.extend_from_slice(pass.target);
        }
        // The path as it was sent is used only where it matches just like the one that was understood.
        let raw = self.raw_target(hop, pass.style);
        let mut url = self.take_buffer();
        url.extend_from_slice(MARK);
        let start = url.len();
        let mut whole = true;
        let is_raw;
        match (pass.path, pass.captures) {
            (None, Some(captures)) => {
                let raw = raw.zip(pass.raw_captures.as_ref());
                is_raw = raw.is_some();
                let (subject, captures) = raw.unwrap_or((&hop.uri, captures));
                whole = substitute(&target, subject, captures, &mut url);
                if url[start..] == target[..] {
                    url.extend_from_slice(subject);
                }
            }
            (path, _) => {
                let raw = raw.filter(|raw| covers(path.unwrap_or_default(), raw) == pass.covered);
                url.extend_from_slice(&target);
                url.extend_from_slice(&raw.unwrap_or(&hop.uri)[pass.covered..]);
                is_raw = raw.is_some();
            }
        }
        hop.raw_url = is_raw;
        self.put_buffer(target);
        std::mem::swap(&mut hop.filename, &mut url);
        self.put_buffer(url);
        if !whole {
            return Translated::End(End::Status(500));
        }
        hop.proxied = true;
        Translated::Done
    }

    /// The target as it was sent, or as the subrequest or the internal redirect has it, where `style` asks for it
    /// and if it is a path.
    fn raw_target<'h>(&self, hop: &'h Hop, style: PassStyle) -> Option<&'h [u8]>
    where
        'r: 'h,
    {
        let is_own = self.redirects == 0 && !hop.subrequest;
        let target = if is_own { self.request.target } else { &hop.target };
        (style.raw && target.first() == Some(&b'/')).then_some(target)
    }

    /// Keeps the target of a subrequest or an internal redirect, if anybody may ask for it.
    pub(super) fn keep_target(&self, hop: &mut Hop, target: &[u8]) {
        if self.program.proxies {
            hop.target.clear();
            hop.target.extend_from_slice(target);
        }
    }

    /// `[P]` of the server: the string is a URL.
    pub(super) fn rewrite_to_proxy(&mut self, hop: &mut Hop, no_escape: bool) -> Translated {
        if !self.program.proxies {
            // httpd without mod_proxy says the same.
            return Translated::End(End::Status(403));
        }
        if no_escape && hop.has_args {
            hop.filename.push(b'?');
            hop.filename.extend_from_slice(&hop.args);
        }
        hop.raw_url = no_escape;
        self.mark_proxied(hop);
        Translated::Done
    }

    /// `[P]` of a directory: the same, and the URL gets the form in which it is sent.
    pub(super) fn rewrite_directory_to_proxy(
        &mut self,
        hop: &mut Hop,
        config: &DirConfig,
        no_escape: bool,
    ) -> Option<End> {
        match self.rewrite_to_proxy(hop, no_escape) {
            Translated::End(end) => Some(end),
            Translated::Declined | Translated::Done => {
                self.canonical_proxy_url(hop, config).err().map(End::Status)
            }
        }
    }

    fn mark_proxied(&mut self, hop: &mut Hop) {
        if !hop.filename.starts_with(MARK) {
            hop.filename.splice(0..0, MARK.iter().copied());
        }
        hop.proxied = true;
    }

    /// Writes the URL as it is sent: scheme and host in lower case, the path escaped, the query string.
    pub(super) fn canonical_proxy_url(
        &mut self,
        hop: &mut Hop,
        config: &DirConfig,
    ) -> Result<(), u16> {
        let mut url = self.take_buffer();
        url.extend_from_slice(MARK);
        let keeps = config.encoded_slashes == Some(EncodedSlashes::Keep);
        let result = write_canonical(hop, keeps, &mut url);
        if result.is_ok() {
            std::mem::swap(&mut hop.filename, &mut url);
        }
        self.put_buffer(url);
        let (place, text) = self.rule.clone().unzip();
        let text = text.flatten();
        let pool = text.as_deref().unwrap_or(&self.program.pool);
        self.note(place.map(|place| (place, pool)), |_| Event::Proxied {
            url: hop.filename.strip_prefix(MARK).unwrap_or(&hop.filename).to_vec(),
        });
        result
    }

    /// Makes the response fields of an answer that is passed on.
    fn finish_proxied(&mut self, hop: &mut Hop, answer: &ProxiedAnswer<'_>) -> Answer {
        let config = hop.config.clone();
        let config = config.as_deref().unwrap_or(&self.server.base);
        let mut value = self.take_buffer();
        for (name, sent) in answer.fields {
            let is = |known: &[u8]| name.eq_ignore_ascii_case(known);
            value.clear();
            if is(b"Location") || is(b"Content-Location") || is(b"URI") || is(b"Destination") {
                self.reverse_location(&config.proxy.reverse, answer.backend, sent, &mut value);
            } else if is(b"Set-Cookie") {
                reverse_cookie(&config.proxy, sent, &mut value);
            } else {
                value.extend_from_slice(sent);
            }
            hop.fields.add(name, &value);
        }
        self.put_buffer(value);
        // A document for an error keeps the error's status where errors of backends have documents.
        if !config.proxy.overrides(hop.status) {
            hop.status = answer.status;
        }
        let edits = &config.edits;
        // A change that fails ends the changes of its list, and that is all.
        let _ = self.run_edits(hop, &edits.always, Target::Always, Stage::Late);
        let _ = self.run_edits(hop, &edits.success, Target::Success, Stage::Late);
        self.check_fields(hop, Answer::Passed(hop.status))
    }

    /// `ProxyPassReverse`: appends a URL of the other server as one of ours.
    fn reverse_location(
        &self,
        mappings: &[Mapping],
        backend: Option<usize>,
        url: &[u8],
        out: &mut Vec<u8>,
    ) {
        let start = out.len();
        for Mapping { from, to } in mappings {
            let found = match after_scheme(to, b"balancer://") {
                Some(rest) => self.reverse_of_balancer(from, to, rest, backend, url, out),
                None => reverse_of_url(from, to, url, out),
            };
            if found {
                if !is_url(&out[start..]) {
                    let path = out.split_off(start);
                    self.write_self_url(out);
                    out.extend_from_slice(&path);
                }
                return;
            }
        }
        out.extend_from_slice(url);
    }

    /// A mapping of a balancer is one of the member that has answered, and of the others.
    fn reverse_of_balancer(
        &self,
        here: &[u8],
        balancer: &[u8],
        rest: &[u8],
        backend: Option<usize>,
        url: &[u8],
        out: &mut Vec<u8>,
    ) -> bool {
        let name = balancer_name(balancer);
        let Some(balancer) = self.program.balancers.iter().find(|known| known.url == name) else {
            return false;
        };
        let path = memchr::memchr(b'/', rest).map_or(&b""[..], |slash| &rest[slash..]);
        let path = if path == b"/" { b"" } else { path };
        let members = balancer.members.iter().map(|member| member.backend);
        // The one that has answered is asked first: URLs of two members may begin alike.
        for number in backend.into_iter().chain(members) {
            let mut member = self.program.backends[number].url.as_bytes();
            if let Some(bar) = memchr::memchr(b'|', member) {
                member = &member[bar + 1..];
            }
            if !path.is_empty() {
                member = member.strip_suffix(b"/").unwrap_or(member);
            }
            let Some(after) = after_scheme(url, member) else { continue };
            let Some(after) = after.strip_prefix(path) else { continue };
            if !(here == b"/" && after.first() == Some(&b'/')) {
                out.extend_from_slice(here);
            }
            out.extend_from_slice(after);
            return true;
        }
        false
    }
}

/// A `ProxyPass` that matched.
struct Pass<'a> {
    target: &'a [u8],
    style: PassStyle,
    /// Bytes of the path that its own covers.
    covered: usize,
    captures: Option<&'a Captures>,
    /// What its pattern finds in the target as it was sent.
    raw_captures: Option<Captures>,
    /// Its path, if it is no pattern.
    path: Option<&'a [u8]>,
    interpolates: bool,
}

/// Appends `text` with `${NAME}` replaced by variables; one that is not set is empty.
fn interpolate(text: &[u8], env: &Table, out: &mut Vec<u8>) {
    let mut rest = text;
    while let Some(start) = memchr::memmem::find(rest, b"${") {
        let Some(end) = memchr::memchr(b'}', &rest[start..]) else { break };
        out.extend_from_slice(&rest[..start]);
        out.extend_from_slice(env.get(&rest[start + 2..start + end]).unwrap_or_default());
        rest = &rest[start + end + 1..];
    }
    out.extend_from_slice(rest);
}

/// Appends the URL of `hop.filename` in the form in which it is sent. Errors are statuses.
fn write_canonical(hop: &Hop, keeps_slashes: bool, out: &mut Vec<u8>) -> Result<(), u16> {
    let url = hop.filename.strip_prefix(MARK).unwrap_or(&hop.filename);
    let url = match after_scheme(url, b"unix:") {
        Some(rest) => {
            let bar = memchr::memchr(b'|', rest).ok_or(400_u16)?;
            out.extend_from_slice(b"unix:");
            out.extend_from_slice(&rest[..=bar]);
            &rest[bar + 1..]
        }
        None => url,
    };
    let colon = memchr::memchr(b':', url).filter(|colon| *colon > 0).ok_or(400_u16)?;
    out.extend(url[..colon].iter().map(u8::to_ascii_lowercase));
    let authority = url[colon..].strip_prefix(b"://").ok_or(400_u16)?;
    let end = memchr::memchr(b'/', authority).unwrap_or(authority.len());
    let (authority, path) = authority.split_at(end);
    // Names and passwords are not for the request line.
    let authority = memchr::memrchr(b'@', authority).map_or(authority, |at| &authority[at + 1..]);
    let is_https = matches!(url[..colon].to_ascii_lowercase().as_slice(), b"https" | b"wss");
    let (host, port) = split_port(authority).ok_or(400_u16)?;
    let is_host = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._:[]~%!$&'()*+,;=".contains(byte);
    if host.is_empty() || !host.iter().all(is_host) {
        return Err(400);
    }
    out.extend_from_slice(b"://");
    // A host with a `:` counts as an address.
    let is_bare = host[0] != b'[' && host.contains(&b':');
    out.extend_from_slice(if is_bare { b"[" } else { b"" });
    out.extend(host.iter().map(u8::to_ascii_lowercase));
    out.extend_from_slice(if is_bare { b"]" } else { b"" });
    if let Some(port) = port.filter(|port| *port != if is_https { 443 } else { 80 }) {
        write_text(out, format_args!(":{port}"));
    }
    let path = path.strip_prefix(b"/").unwrap_or(path);
    out.push(b'/');
    if hop.raw_url {
        // What was sent is passed on, and may hold nothing that could end a line.
        if path.iter().any(|byte| *byte <= b' ' || *byte == 0x7f) {
            return Err(403);
        }
        out.extend_from_slice(path);
        return Ok(());
    }
    escape(path, keeps_slashes, out);
    if hop.has_args {
        if hop.args.iter().any(|byte| *byte <= b' ' || *byte == 0x7f) {
            return Err(403);
        }
        out.push(b'?');
        out.extend_from_slice(&hop.args);
    }
    Ok(())
}

/// Splits the digits behind the last `:` off an authority. A `:` with anything else behind it is part of the host.
///
/// Source: apr 1.7 `network_io/unix/sockaddr.c`, `apr_parse_addr_port`.
fn split_port(authority: &[u8]) -> Option<(&[u8], Option<u16>)> {
    let digits = authority.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let (before, digits) = authority.split_at(authority.len() - digits);
    let (host, port) = match before.strip_suffix(b":").filter(|_| !digits.is_empty()) {
        Some(host) => {
            let port = std::str::from_utf8(digits).ok()?.parse().ok();
            (host, Some(port.filter(|port| *port > 0)?))
        }
        None if before.is_empty() => return None,
        None => (authority, None),
    };
    let is_right = match host {
        [] => false,
        [b'[', inner @ ..] => {
            let inner = std::str::from_utf8(inner.strip_suffix(b"]")?).ok()?;
            inner.parse::<Ipv6Addr>().is_ok()
        }
        _ => true,
    };
    is_right.then_some((host, port))
}

/// Appends a decoded path, escaped as mod_proxy does.
fn escape(path: &[u8], keeps_slashes: bool, out: &mut Vec<u8>) {
    const DIGITS: &[u8] = b"0123456789ABCDEF";
    for (at, &byte) in path.iter().enumerate() {
        let is_slash = || {
            let next = path.get(at + 1..at + 3).unwrap_or_default();
            [&b"2f"[..], b"5c"].iter().any(|code| next.eq_ignore_ascii_case(code))
        };
        let plain = byte.is_ascii_alphanumeric()
            || b"~$-_.+!*'(),;:@&=/".contains(&byte)
            || byte == b'%' && keeps_slashes && is_slash();
        if plain {
            out.push(byte);
        } else {
            let digit = |number: u8| DIGITS[usize::from(number & 15)];
            out.extend_from_slice(&[b'%', digit(byte >> 4), digit(byte)]);
        }
    }
}

/// Appends `here` and what follows `there` in `url`; false if `url` does not begin with it.
fn reverse_of_url(here: &[u8], there: &[u8], url: &[u8], out: &mut Vec<u8>) -> bool {
    // A mapping that is a path is one of any host.
    let part = if there.first() == Some(&b'/') {
        memchr::memmem::find(url, b"://")
            .and_then(|at| memchr::memchr(b'/', &url[at + 3..]).map(|slash| &url[at + 3 + slash..]))
            .unwrap_or(url)
    } else {
        url
    };
    match after_scheme(part, there).filter(|_| !there.is_empty()) {
        Some(after) => {
            out.extend_from_slice(here);
            out.extend_from_slice(after);
            true
        }
        None => false,
    }
}

/// `ProxyPassReverseCookieDomain` and `ProxyPassReverseCookiePath`.
fn reverse_cookie(proxy: &crate::program::ProxyDir, cookie: &[u8], out: &mut Vec<u8>) {
    let path = attribute(cookie, b"path=").and_then(|(start, end)| {
        let fits = |mapping: &&Mapping| cookie[start..end].starts_with(&mapping.from);
        proxy.cookie_paths.iter().find(fits).map(|mapping| (start, end, &mapping.to))
    });
    let domain = attribute(cookie, b"domain=").and_then(|(start, end)| {
        let fits = |mapping: &&Mapping| after_scheme(&cookie[start..end], &mapping.from).is_some();
        proxy.cookie_domains.iter().find(fits).map(|mapping| (start, end, &mapping.to))
    });
    let mut changes = [path, domain];
    changes.sort_by_key(|change| change.map_or(usize::MAX, |(start, ..)| start));
    let mut at = 0;
    for (start, end, to) in changes.into_iter().flatten() {
        out.extend_from_slice(&cookie[at..start]);
        out.extend_from_slice(to);
        at = end;
    }
    out.extend_from_slice(&cookie[at..]);
}

/// Where the value of the first `name` stands, in any case.
fn attribute(cookie: &[u8], name: &[u8]) -> Option<(usize, usize)> {
    let at = cookie.windows(name.len()).position(|part| part.eq_ignore_ascii_case(name))?;
    let start = at + name.len();
    let end = memchr::memchr(b';', &cookie[start..]).map_or(cookie.len(), |end| start + end);
    Some((start, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_escaped_as_mod_proxy_does() {
        for (path, keeps, expected) in [
            (&b"a b/c?d"[..], false, "a%20b/c%3Fd"),
            (b"100%/x", false, "100%25/x"),
            (b"a%2fb", false, "a%252fb"),
            (b"a%2fb%5Cc%41", true, "a%2fb%5Cc%2541"),
            (b"\xc3\xa4~$-_.+!*'(),;:@&=", false, "%C3%A4~$-_.+!*'(),;:@&="),
        ] {
            let mut out = Vec::new();
            escape(path, keeps, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }

    #[test]
    fn variables_are_put_in() {
        let mut env = Table::default();
        env.set(b"A", b"1");
        let mut out = Vec::new();
        interpolate(b"http://h/${A}/${B}/${", &env, &mut out);
        assert_eq!(out, b"http://h/1//${");
    }
}
