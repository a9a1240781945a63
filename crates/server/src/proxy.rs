//! The reverse proxy: passes a request on to a backend, and the answer back.
//!
//! The order of things is what makes slow clients harmless: first the content of the request is read, all
//! of it, into memory and then a temporary file; only then a connection to the backend is taken. Such a
//! connection never waits for a client that sends. Where that is not wanted (`proxy-request-buffering` is
//! `off`) it is taken when the first content has come.
//!
//! A connection that was idle may have been closed by the backend at the very moment of its use. So it is
//! asked before whether it is open; and a request that fails before the first byte of its answer, on a
//! connection that had carried another one, is sent once more on a new one, if its method says that this
//! does no harm. Other requests go on connections that were idle for so short a time that none is about to
//! be closed, or on new ones.
//!
//! The decision waits aside meanwhile ([`crate::deferred`]) and goes on when the answer, or the failure, is
//! there.
//!
//! Source: httpd 2.4.71 `modules/proxy/mod_proxy.c`, `proxy_handler`; RFC 9110 sections 7.6 and 9.2.2.

mod address;
mod balance;
pub(crate) mod client;
mod exchange;
mod fault;
mod head;
mod held;
mod pool;
mod stream;

use std::future::poll_fn;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use milepost_engine::{Outcome, Proxied, ProxiedAnswer, ProxyTo, Site, Upgrade, Via};
use milepost_http::request::{RequestHead, Version};
use milepost_http::response::{self, RequestMethod};
use rustls::pki_types::ServerName;

use crate::deferred::{Answering, Aside, Ended, Failure};
use crate::error_log::Severity;
use crate::limits::PROXY_INTERIM_MAX;
use crate::respond::Peer;
use crate::tls::Tls;

use address::Address;
use balance::Balance;
use client::{Beginning, Client, ContentError, Incoming, Piece};
use exchange::{Answer, Exchange, Source};
pub(crate) use fault::Fault;
use head::Outgoing;
use held::Held;
use pool::Pool;
use stream::Secure;

/// What a worker knows of the backends of one configuration.
pub(crate) struct Proxies {
    site: Arc<Site>,
    tls: Option<Arc<Tls>>,
    pools: Vec<Rc<Pool>>,
    balances: Vec<Balance>,
}

impl Proxies {
    pub(crate) fn new(site: &Arc<Site>, tls: Option<Arc<Tls>>) -> Proxies {
        Proxies {
            site: Arc::clone(site),
            tls,
            pools: site.backends().iter().map(Pool::new).collect(),
            balances: site.balancers().iter().map(Balance::new).collect(),
        }
    }
}

/// A request on its way to a backend.
pub(crate) struct Forward {
    proxies: Rc<Proxies>,
    plan: Plan,
    held: Option<Held>,
    /// The status of the answer.
    pub(crate) status: u16,
}

/// What the engine has decided about it.
pub(crate) struct Plan {
    url: Vec<u8>,
    to: ProxyTo,
    as_get: bool,
    /// The number of the server that sends it there.
    server: usize,
    /// The number of the `<Proxy>` section whose TLS it has.
    tls: Option<usize>,
    preserve_host: bool,
    add_fields: bool,
    /// Whom `X-Forwarded-For` names.
    client: IpAddr,
    via: Via,
    timeout: Duration,
    server_name: Vec<u8>,
    port: u16,
    streams: bool,
    no_reuse: bool,
    content_bytes_max: Option<u64>,
    /// The fields of the request as directives have left them: lines.
    fields: Vec<u8>,
}

impl Plan {
    fn new(proxied: &Proxied<'_>, head: &RequestHead<'_>, peer: &Peer) -> Plan {
        let mut fields = Vec::with_capacity(head.bytes.len());
        for (name, value) in head.fields.iter().filter(|(name, _)| !proxied.fields.decides(name)) {
            head::push_line(&mut fields, name, value);
        }
        for (name, value) in proxied.fields.iter() {
            head::push_line(&mut fields, name, value);
        }
        Plan {
            url: proxied.url.to_vec(),
            to: proxied.to,
            as_get: proxied.as_get,
            server: proxied.server,
            tls: proxied.tls,
            preserve_host: proxied.preserve_host,
            add_fields: proxied.add_fields,
            client: proxied.client.unwrap_or(peer.remote.ip()).to_canonical(),
            via: proxied.via,
            timeout: proxied.timeout,
            server_name: proxied.server_name.to_vec(),
            port: peer.local.port(),
            streams: proxied.streams,
            no_reuse: proxied.no_reuse,
            content_bytes_max: proxied.content_bytes_max,
            fields,
        }
    }

    /// The name of this server.
    fn own_name(&self) -> Vec<u8> {
        if self.server_name.is_empty() {
            rustix::system::uname().nodename().to_bytes().to_vec()
        } else {
            self.server_name.clone()
        }
    }

    fn via_value(&self, version: &str) -> Vec<u8> {
        let mut value = format!("{version} ").into_bytes();
        value.extend_from_slice(&self.own_name());
        if !matches!(self.port, 80 | 443) {
            value.extend_from_slice(format!(":{}", self.port).as_bytes());
        }
        if self.via == Via::Full {
            value.extend_from_slice(
                concat!(" (milepost/", env!("CARGO_PKG_VERSION"), ")").as_bytes(),
            );
        }
        value
    }
}

impl Forward {
    pub(crate) fn new(proxies: &Rc<Proxies>, plan: Plan) -> Forward {
        Forward { proxies: Rc::clone(proxies), plan, held: None, status: 0 }
    }

    /// Goes to another backend, with the content that has been read.
    pub(crate) fn go_elsewhere(&mut self, plan: Plan) {
        self.plan = plan;
    }

    /// The URL that is asked for.
    pub(crate) fn url(&self) -> &[u8] {
        &self.plan.url
    }

    /// One way through: content, backend, answer. `Ok(None)`: again, the plan is another one now.
    pub(crate) async fn attempt<C: Client>(
        &mut self,
        aside: &mut Aside,
        client: &mut C,
    ) -> Result<Option<Ended>, Fault> {
        let content = if self.plan.as_get { Incoming::None } else { client.content() };
        if let (Incoming::Length(length), Some(max)) = (content, self.plan.content_bytes_max)
            && length > max
        {
            return Err(ContentError::TooLarge.into());
        }
        let mut first = Vec::new();
        if content != Incoming::None && self.held.is_none() {
            if self.plan.streams {
                poll_fn(|context| client.poll_content(context, &mut first)).await?;
            } else {
                self.held = Some(hold(client, self.plan.content_bytes_max).await?);
            }
        }
        let site = Arc::clone(&self.proxies.site);
        let ProxyTo::Balancer(number) = self.plan.to else {
            let backend = match self.plan.to {
                ProxyTo::Backend(number) => Some(number),
                ProxyTo::Balancer(_) | ProxyTo::Url => None,
            };
            let url = self.plan.url.clone();
            let address = address::split(&url).ok_or(Fault::NoAddress)?;
            if let Some(left) = backend.and_then(|number| self.proxies.pools[number].left_alone()) {
                let (address, seconds) = (address.describe(), left.as_secs() + 1);
                return Err(pool::PoolError::LeftAlone { address, seconds }.into());
            }
            return self.ask(aside, client, &address, backend, (content, &first)).await;
        };
        let balancer = &site.balancers()[number];
        let mut tried = Vec::new();
        // A member that is there, and cannot be spoken to.
        let mut refused = None;
        loop {
            let cookies = head::fields(&self.plan.fields)
                .filter(|(name, _)| name.eq_ignore_ascii_case(b"cookie"))
                .map(|(_, value)| value);
            let route = balance::route(balancer, &self.plan.url, cookies);
            let balance = &self.proxies.balances[number];
            let chosen = balance.choose(balancer, &self.proxies.pools, route, &tried);
            let Some(member) = chosen else { return Err(refused.unwrap_or(Fault::NoMember)) };
            tried.push(member);
            let backend = balancer.members[member].backend;
            let mut url = site.backends()[backend].url.clone().into_bytes();
            let path = memchr::memchr_iter(b'/', &self.plan.url).nth(2);
            let path = path.map_or(&b""[..], |slash| &self.plan.url[slash..]);
            if url.ends_with(b"/") && path.starts_with(b"/") {
                url.pop();
            }
            url.extend_from_slice(path);
            let address = address::split(&url).ok_or(Fault::NoAddress)?;
            let result = self.ask(aside, client, &address, Some(backend), (content, &first)).await;
            match result {
                // Nothing has been sent to this one, so another may have it.
                Err(Fault::Pool(error))
                    if balancer.attempts_max.is_none_or(|max| tried.len() <= max) =>
                {
                    let text = format!("{}: {error}; another member is tried", balancer.url);
                    aside.say(Severity::ERROR, &text, error.system_error());
                    let fault = Fault::from(error);
                    refused = if fault.status() == 500 { Some(fault) } else { refused };
                }
                Ok(ended) => {
                    if balancer.fail_on.contains(&self.status) {
                        self.proxies.pools[backend].fail();
                    }
                    return Ok(ended);
                }
                Err(fault) => return Err(fault),
            }
        }
    }

    /// Asks one backend, and counts what becomes of it.
    async fn ask<C: Client>(
        &mut self,
        aside: &mut Aside,
        client: &mut C,
        address: &Address<'_>,
        backend: Option<usize>,
        content: (Incoming, &[u8]),
    ) -> Result<Option<Ended>, Fault> {
        let result = self.exchange(aside, client, address, backend, content).await;
        client.counters().backend(self.counted(backend), |counts| match &result {
            Ok(Some(Ended::Cut)) => counts.cut += 1,
            Ok(_) => counts.answered += 1,
            Err(_) => counts.failed += 1,
        });
        result
    }

    /// What counts go by: a URL of the configuration, of which there are not many.
    fn counted(&self, backend: Option<usize>) -> &str {
        backend.map_or("other", |number| &self.proxies.site.backends()[number].url)
    }

    /// The same, with two requests if the connection of the first turns out to be closed.
    async fn exchange<C: Client>(
        &mut self,
        aside: &mut Aside,
        client: &mut C,
        address: &Address<'_>,
        backend: Option<usize>,
        content: (Incoming, &[u8]),
    ) -> Result<Option<Ended>, Fault> {
        let pool = match backend {
            Some(number) => Rc::clone(&self.proxies.pools[number]),
            None => Pool::none(),
        };
        let method = self.method(aside);
        let repeatable = matches!(&method[..], b"GET" | b"HEAD" | b"PUT" | b"DELETE" | b"OPTIONS");
        let is_live = self.plan.streams && content.0 != Incoming::None;
        let mut may_reuse = pool.reuses() && !self.plan.no_reuse;
        let settings = backend.map(|number| self.proxies.site.backends()[number].clone());
        let timeout = settings.as_ref().and_then(|own| own.timeout).unwrap_or(self.plan.timeout);
        let connect = settings.as_ref().and_then(|own| own.connect_timeout).unwrap_or(timeout);
        let ping =
            settings.as_ref().and_then(|own| own.ping).filter(|_| content.0 != Incoming::None);
        let allowed = match &settings {
            Some(own) => own.upgrade.clone(),
            None if address.is_web_socket => Upgrade::Only("websocket".to_owned()),
            None => Upgrade::None,
        };
        let upgrade = head::wanted_upgrade(&self.plan.fields, &allowed)
            .filter(|_| content.0 == Incoming::None && aside.version == Version::Http11)
            .map(<[u8]>::to_vec);
        loop {
            let secure = if address.secure { self.secure(address) } else { None };
            let taken = pool.take(address, may_reuse, repeatable, connect, secure).await?;
            let reused = taken.reused;
            client.counters().backend(self.counted(backend), |counts| {
                *(if reused { &mut counts.reused } else { &mut counts.opened }) += 1;
            });
            let (outgoing, source) = match (&self.held, content) {
                (Some(held), _) => {
                    (Outgoing::Length(held.length()), Source::Held { held, offset: 0 })
                }
                (None, (Incoming::None, _)) => {
                    // As the client has said it: a length of 0, or nothing.
                    let is_stated = head::fields(&self.plan.fields)
                        .any(|(name, _)| name.eq_ignore_ascii_case(b"content-length"));
                    let is_stated = is_stated && !self.plan.as_get;
                    (if is_stated { Outgoing::Length(0) } else { Outgoing::None }, Source::Done)
                }
                (None, (Incoming::Length(length), _)) => {
                    (Outgoing::Length(length), Source::Live { chunked: false })
                }
                (None, (Incoming::Unknown, _)) => {
                    (Outgoing::Chunked, Source::Live { chunked: true })
                }
            };
            let mut bytes = Vec::with_capacity(self.plan.fields.len() + 512);
            head::write_request(
                &mut bytes,
                &head::Request {
                    plan: &self.plan,
                    method: &method,
                    address,
                    content: outgoing,
                    upgrade: upgrade.as_deref(),
                    keep: pool.reuses() && !self.plan.no_reuse,
                    expect: ping.is_some(),
                    version: match aside.version {
                        Version::Http10 => "1.0",
                        Version::Http11 => "1.1",
                        Version::Http2 => "2.0",
                    },
                },
            );
            if !content.1.is_empty() && self.held.is_none() {
                match outgoing {
                    Outgoing::Chunked => {
                        bytes.extend_from_slice(format!("{:x}\r\n", content.1.len()).as_bytes());
                        bytes.extend_from_slice(content.1);
                        bytes.extend_from_slice(b"\r\n");
                    }
                    _ => bytes.extend_from_slice(content.1),
                }
            }
            let mut exchange = Exchange::new(client, taken, bytes, source, timeout, ping);
            let result = final_answer(&mut exchange, &method, upgrade.is_some()).await;
            let answer = match result {
                Ok(answer) => answer,
                Err(fault) if fault.is_stale() && reused && repeatable && !is_live => {
                    drop(exchange);
                    client.counters().backend(self.counted(backend), |counts| counts.retried += 1);
                    may_reuse = false;
                    continue;
                }
                Err(fault) => return Err(fault),
            };
            let is_upgraded = answer.status == 101;
            if is_upgraded && upgrade.is_none() {
                return Err(Fault::NotAskedFor);
            }
            self.status = answer.status;
            let keep = pool.reuses() && !self.plan.no_reuse;
            let is_http10 = answer.head.starts_with(b"HTTP/1.0");
            let mut fields: Vec<_> = head::passed_fields(&answer.head, is_upgraded).collect();
            let via = self.plan.via_value(if is_http10 { "1.0" } else { "1.1" });
            if matches!(self.plan.via, Via::On | Via::Full) {
                fields.push((b"Via", &via));
            }
            let answered = ProxiedAnswer { status: answer.status, backend, fields: &fields };
            let beginning = match aside.answered(&answered) {
                Answering::Passed(passed) => passed,
                Answering::Replied(reply) => return Ok(Some(Ended::Reply(reply))),
                Answering::Elsewhere(plan) => {
                    drop(exchange);
                    self.plan = *plan;
                    return Ok(None);
                }
            };
            self.status = beginning.status;
            let framing_length = match answer.framing {
                response::Framing::Length(length) => Some(length),
                response::Framing::Chunked | response::Framing::UntilClose => None,
            };
            let has_content =
                &method[..] != b"HEAD" && !matches!(beginning.status, 101 | 204 | 304);
            let length = if has_content { framing_length } else { stated_length(&answer.head) };
            exchange.client.begin(&Beginning {
                status: beginning.status,
                // The phrase is that of another status where this is the document of an error.
                reason: if beginning.status == answer.status {
                    response::lines(&answer.head).0
                } else {
                    b""
                },
                fields: &beginning.fields,
                length,
                has_content,
            });
            if is_upgraded {
                exchange.tunnel().await;
                return Ok(Some(Ended::Passed));
            }
            return match exchange.pass(&answer, keep).await {
                Ok(bytes) => {
                    self.count(backend, bytes);
                    Ok(Some(Ended::Passed))
                }
                Err((Fault::ClientGone(_), _)) => Ok(Some(Ended::Cut)),
                Err((fault, _)) => {
                    aside.log(&fault, Failure::Cut(beginning.status), self.url());
                    Ok(Some(Ended::Cut))
                }
            };
        }
    }

    /// How to speak TLS to the backend; `None` if nothing allows it.
    fn secure(&self, address: &Address<'_>) -> Option<Secure> {
        let tls = self.proxies.tls.as_ref()?;
        let config = tls.to_backends(self.plan.server, self.plan.tls)?;
        let sent = head::fields(&self.plan.fields)
            .find(|(name, _)| self.plan.preserve_host && name.eq_ignore_ascii_case(b"host"))
            .and_then(|(_, value)| std::str::from_utf8(value).ok())
            .map(|host| host.rsplit_once(':').map_or(host, |(name, _)| name));
        let name = ServerName::try_from(sent.unwrap_or(address.host).to_owned()).ok()?;
        Some(Secure { config, name })
    }

    fn count(&self, backend: Option<usize>, bytes: u64) {
        let ProxyTo::Balancer(number) = self.plan.to else { return };
        let members = &self.proxies.site.balancers()[number].members;
        if let Some(member) = members.iter().position(|member| Some(member.backend) == backend) {
            self.proxies.balances[number].add_traffic(member, bytes);
        }
    }

    fn method(&self, aside: &Aside) -> Vec<u8> {
        if self.plan.as_get { b"GET".to_vec() } else { aside.method().to_vec() }
    }
}

/// The head of an answer that is passed on.
pub(crate) struct PassedHead {
    pub(crate) status: u16,
    pub(crate) fields: Vec<u8>,
}

/// The plan for a decision that ends at a backend.
pub(crate) fn plan(outcome: &Outcome<'_>, head: &RequestHead<'_>, peer: &Peer) -> Option<Plan> {
    match outcome {
        Outcome::Proxy(proxied) => Some(Plan::new(proxied, head, peer)),
        _ => None,
    }
}

/// Reads all of the content.
async fn hold<C: Client>(client: &mut C, bytes_max: Option<u64>) -> Result<Held, ContentError> {
    let mut held = Held::default();
    let mut piece = Vec::new();
    loop {
        piece.clear();
        let progress = poll_fn(|context| client.poll_content(context, &mut piece)).await?;
        held.append(&piece).map_err(|_| ContentError::NoRoom)?;
        if bytes_max.is_some_and(|max| held.length() > max) {
            return Err(ContentError::TooLarge);
        }
        if progress == Piece::End {
            return Ok(held);
        }
    }
}

/// Waits for the final answer; what comes before it goes to the client.
async fn final_answer<C: Client>(
    exchange: &mut Exchange<'_, C>,
    method: &[u8],
    wants_upgrade: bool,
) -> Result<Answer, Fault> {
    let method = if method == b"HEAD" { RequestMethod::Head } else { RequestMethod::Other };
    for _ in 0..=PROXY_INTERIM_MAX {
        let answer = exchange.answer(method).await?;
        match answer.status {
            101 if wants_upgrade => return Ok(answer),
            101 => return Err(Fault::NotAskedFor),
            // The client has been asked for its content by us.
            100 => {}
            102..200 => {
                let mut fields = Vec::new();
                for (name, value) in head::passed_fields(&answer.head, false) {
                    head::push_line(&mut fields, name, value);
                }
                exchange.client.interim(&head::interim(answer.status, &fields));
            }
            _ => return Ok(answer),
        }
    }
    Err(Fault::TooManyInterim)
}

/// The length that a response without content says it would have.
fn stated_length(head: &[u8]) -> Option<u64> {
    let (_, mut fields) = response::lines(head);
    let length = fields.find(|(name, _)| name.eq_ignore_ascii_case(b"content-length"));
    std::str::from_utf8(length?.1).ok()?.parse().ok()
}
