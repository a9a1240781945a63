//! The responder of a compiled site: asks the engine, and turns its decision into a reply.

use std::borrow::Cow;
use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use milepost_engine::{
    Decision, Fields, Outcome, Protocol, ProxiedAnswer, Request, Rule, Scheme, Scratch, Site,
    Suspended, Version,
};
use milepost_http::request::{self, Content, RequestHead};

use crate::deferred::{Answering, Deferred, Failed, Made, Work};
use crate::error_log::{About, Message};
use crate::files::{Files, Wanted};
use crate::helpers::Helpers;
use crate::http2::Http2Limits;
use crate::limits::RULE_PLACES_MAX;
use crate::log::{Exchange, Lines, Logs};
use crate::metrics::{Hits, Metrics};
use crate::outside::LastLook;
use crate::proxy::{self, Forward, PassedHead, Plan, Proxies};
use crate::reply::Reply;
use crate::respond::{Answered, Peer, Respond};
use crate::tls::Tls;

/// Answers as a site decides. The site is shared by all workers; the rest is one worker's own.
pub struct SiteResponder {
    site: Arc<Site>,
    scratch: Scratch,
    files: Files,
    outside: LastLook,
    lines: Lines,
    noted: Noted,
    tls: Option<Arc<Tls>>,
    /// Any server of the site takes HTTP/2 without TLS.
    has_direct_http2: bool,
    /// What [`Noted::rule`] has been, by the id of the directive.
    rules: HashMap<(u32, u32), String>,
    /// Where the hits of directives are counted.
    hits: Option<Hits>,
    /// The backends, once one has been asked.
    proxies: Option<Rc<Proxies>>,
    /// Ends what has been put aside, once anything has been.
    ending: Option<Rc<RefCell<SiteResponder>>>,
}

/// What logs show of the request that was answered last.
#[derive(Debug, Default)]
pub(crate) struct Noted {
    /// Where the directive stands that answered.
    rule: String,
    /// What the error log calls the request.
    id: OnceCell<Box<str>>,
}

impl SiteResponder {
    /// Makes a responder for one worker.
    #[must_use]
    pub fn new(site: Arc<Site>) -> SiteResponder {
        SiteResponder::with_logs(site, Arc::default())
    }

    /// Makes a responder for one worker that logs what it answers.
    #[must_use]
    pub fn with_logs(site: Arc<Site>, logs: Arc<Logs>) -> SiteResponder {
        let mut protocols = site.settings().protocols.iter();
        SiteResponder {
            has_direct_http2: protocols.any(|protocols| protocols.has(Protocol::H2c)),
            site,
            scratch: Scratch::default(),
            files: Files::default(),
            outside: LastLook::default(),
            lines: Lines::new(logs),
            noted: Noted::default(),
            rules: HashMap::new(),
            hits: None,
            tls: None,
            proxies: None,
            ending: None,
        }
    }

    /// Counts the hits of directives, if anybody asks for them.
    #[must_use]
    pub fn with_metrics(self, metrics: &Metrics) -> SiteResponder {
        SiteResponder { hits: metrics.hits(&self.site), ..self }
    }

    /// Lets connections speak TLS where the site says so.
    #[must_use]
    pub fn with_tls(self, tls: Option<Arc<Tls>>) -> SiteResponder {
        SiteResponder { tls, ..self }
    }

    /// Lets the maps of the site ask their programs and databases.
    #[must_use]
    pub fn with_helpers(self, helpers: Helpers) -> SiteResponder {
        SiteResponder { outside: LastLook::with_helpers(helpers), ..self }
    }
}

impl Respond for SiteResponder {
    fn respond(&mut self, head: &RequestHead<'_>, peer: &Peer, reply: &mut Reply) {
        self.outside.forget();
        let is_traced = self.lines.traces_rewriting();
        if is_traced {
            self.scratch.start_trace();
        }
        let fields = HeadFields(head);
        let decision =
            self.site.decide(&request(head, &fields, peer), &self.outside, &mut self.scratch);
        if self.lines.wants_rule() {
            write_rule(decision.rule, &mut self.noted.rule, &mut self.rules);
        }
        if let (Some(hits), Some(rule)) = (&mut self.hits, &decision.rule) {
            hits.hit(rule);
        }
        if let Some(plan) = proxy::plan(&decision.outcome, head, peer) {
            let forward = Forward::new(&self.proxies(), plan);
            if is_traced {
                self.log_rewriting(None, head, peer);
            }
            return reply.defer(self.put_aside(head, peer, Work::Backend(forward)));
        }
        let is_error = is_decided_error(&decision);
        fill(&decision, head, &mut self.files, &self.outside, reply);
        if is_traced {
            let redirect = match decision.outcome {
                Outcome::Redirect { status, location } => Some((status, location.to_vec())),
                _ => None,
            };
            self.log_rewriting(redirect, head, peer);
        }
        if head.content != Content::None {
            let content_bytes_max = self.site.logged(&self.scratch).content_bytes_max();
            let unasked = head.expects_continue && is_error;
            let reply_made = Box::new(std::mem::take(reply));
            let made = Made { reply: reply_made, content_bytes_max, unasked };
            reply.defer(self.put_aside(head, peer, Work::Content(made)));
        }
    }

    fn respond_unread(&mut self, status: u16, unread: &[u8], peer: &Peer, reply: &mut Reply) {
        let limits = request::HeadLimits::default();
        let (mut room, mut other) = Default::default();
        let malformed = request::parse_refused(unread, &limits, &mut room);
        let head =
            malformed.or_else(|| request::parse_refused(STANDS_FOR_UNREAD, &limits, &mut other));
        let Some(head) = head else { return reply.error(status) };
        let plan =
            self.end(&head, peer, reply, None, |site, request, outside, scratch| match malformed {
                Some(_) => site.decide_malformed(request, outside, scratch, status),
                None => site.decide_unread(request, outside, scratch, status),
            });
        // The connection ends with this answer: no backend is asked, and no large file is read for it.
        if plan.is_some() || !reply.is_in_memory() {
            reply.clear();
            reply.error(status);
        }
    }

    fn tls(&self, local: SocketAddr) -> Option<Arc<Tls>> {
        self.tls.clone().filter(|tls| tls.is_at(local))
    }

    fn takes_direct_http2(&self, local: SocketAddr) -> bool {
        self.has_direct_http2 && {
            let protocols = &self.site.settings().protocols[self.site.server_at(local, None)];
            protocols.h2_direct && protocols.has(Protocol::H2c)
        }
    }

    fn server_at(&self, peer: &Peer) -> usize {
        let name = peer.tls.as_ref().and_then(|tls| tls.name());
        self.site.server_at(peer.local, name)
    }

    fn server(&self) -> usize {
        self.site.logged(&self.scratch).server()
    }

    fn http2(&self, peer: &Peer) -> Http2Limits {
        let protocols = &self.site.settings().protocols[self.server_at(peer)];
        Http2Limits {
            streams_max: protocols.h2_streams_max,
            window_bytes: protocols.h2_window_bytes,
        }
    }

    fn takes_notes(&self) -> bool {
        !self.lines.is_empty()
    }

    fn note(&mut self, answered: &Answered<'_>, peer: &Peer) {
        // A request that could not be read has been decided by nobody.
        let unwanted = answered
            .head
            .map(|head| self.unwanted(head, peer, answered.status))
            .unwrap_or_default();
        let logged = answered.head.map(|_| self.site.logged(&self.scratch));
        let rule = if logged.is_some() { &self.noted.rule } else { "" };
        let id = self.noted.id.get().map(|id| &**id).filter(|_| logged.is_some());
        self.lines.log(&Exchange { answered, peer, logged, rule, id, unwanted: &unwanted });
    }
}

/// What comes after something has been put aside.
impl SiteResponder {
    /// Puts the decision aside that has just been made.
    fn put_aside(&mut self, head: &RequestHead<'_>, peer: &Peer, work: Work) -> Box<Deferred> {
        let ending = self.ending.get_or_insert_with(|| {
            let ending = SiteResponder::with_logs(Arc::clone(&self.site), self.lines.logs());
            let outside = self.outside.again();
            let ending = SiteResponder { outside, tls: self.tls.clone(), ..ending };
            Rc::new(RefCell::new(ending))
        });
        let ending = Rc::clone(ending);
        let decided = (self.scratch.suspend(), std::mem::take(&mut self.noted));
        Box::new(Deferred::new(ending, head, peer, decided, work))
    }

    /// Asks the expressions of the logs; nothing is asked, nor allocated, where there are none.
    fn unwanted(&mut self, head: &RequestHead<'_>, peer: &Peer, status: u16) -> Vec<bool> {
        if !self.lines.has_expressions() {
            return Vec::new();
        }
        let server = self.site.logged(&self.scratch).server();
        let fields = HeadFields(head);
        let request = request(head, &fields, peer);
        let logs = self.lines.logs();
        let (outside, scratch) = (&self.outside, &mut self.scratch);
        let wants = |it| self.site.log_wants(it, &request, outside, scratch, status);
        logs.expressions(server).map(wants).map(|wants| !wants).collect()
    }

    /// Tells the error log what mod_rewrite has done.
    fn log_rewriting(
        &mut self,
        redirect: Option<(u16, Vec<u8>)>,
        head: &RequestHead<'_>,
        peer: &Peer,
    ) {
        let steps = self.scratch.take_trace();
        let logs = self.lines.logs();
        let redirect = redirect.as_ref().map(|(status, location)| (*status, &location[..]));
        // The one that was answered before has had another name.
        self.noted.id = OnceCell::new();
        logs.errors().write_rewriting(&steps, redirect, self.about(head, peer));
    }

    /// Tells the error log something about the request.
    pub(crate) fn say(&self, head: &RequestHead<'_>, peer: &Peer, message: &Message<'_>) {
        self.lines.logs().errors().say(self.about(head, peer), message);
    }

    fn about<'a>(&'a self, head: &'a RequestHead<'a>, peer: &'a Peer) -> About<'a> {
        About { peer, logged: self.site.logged(&self.scratch), head, id: &self.noted.id }
    }

    /// The backends.
    pub(crate) fn proxies(&mut self) -> Rc<Proxies> {
        let tls = &self.tls;
        let proxies =
            self.proxies.get_or_insert_with(|| Rc::new(Proxies::new(&self.site, tls.clone())));
        Rc::clone(proxies)
    }

    /// Takes a decision up again that was put aside.
    pub(crate) fn resume(&mut self, suspended: Suspended, noted: &mut Noted) {
        self.scratch.resume(suspended);
        std::mem::swap(&mut self.noted, noted);
    }

    pub(crate) fn suspend(&mut self, noted: &mut Noted) -> Suspended {
        std::mem::swap(&mut self.noted, noted);
        self.scratch.suspend()
    }

    /// Makes the reply to a request whose content is not accepted; or the plan for a backend that has the
    /// document of the error.
    pub(crate) fn refuse(
        &mut self,
        head: &RequestHead<'_>,
        peer: &Peer,
        reply: &mut Reply,
        failed: Failed<'_>,
    ) -> Option<Plan> {
        self.end(head, peer, reply, failed.why, |site, request, outside, scratch| {
            site.decide_refused(request, outside, scratch, failed.status)
        })
    }

    /// Makes the reply to a request that the backend has not answered; or the plan for another one, which
    /// has the document of the error.
    pub(crate) fn fail(
        &mut self,
        head: &RequestHead<'_>,
        peer: &Peer,
        reply: &mut Reply,
        failed: Failed<'_>,
    ) -> Option<Plan> {
        self.end(head, peer, reply, failed.why, |site, request, outside, scratch| {
            site.decide_failed(request, outside, scratch, failed.status)
        })
    }

    fn end(
        &mut self,
        head: &RequestHead<'_>,
        peer: &Peer,
        reply: &mut Reply,
        why: Option<&str>,
        decide: impl for<'s> FnOnce(&'s Site, &Request<'_>, &LastLook, &'s mut Scratch) -> Decision<'s>,
    ) -> Option<Plan> {
        self.outside.forget();
        let fields = HeadFields(head);
        let decision =
            decide(&self.site, &request(head, &fields, peer), &self.outside, &mut self.scratch);
        if self.lines.wants_rule() {
            write_rule(decision.rule, &mut self.noted.rule, &mut self.rules);
        }
        let plan = proxy::plan(&decision.outcome, head, peer);
        if plan.is_none() {
            fill(&decision, head, &mut self.files, &self.outside, reply);
            if let (Outcome::Status(400..), Some(why)) = (decision.outcome, why) {
                reply.explain(why);
            }
        }
        plan
    }

    /// Goes on with what the backend has answered.
    pub(crate) fn answered(
        &mut self,
        head: &RequestHead<'_>,
        peer: &Peer,
        answer: &ProxiedAnswer<'_>,
    ) -> Answering {
        let mut reply = Box::<Reply>::default();
        self.outside.forget();
        let fields = HeadFields(head);
        let request = request(head, &fields, peer);
        let decision =
            self.site.decide_answered(&request, &self.outside, &mut self.scratch, answer);
        if self.lines.wants_rule() {
            write_rule(decision.rule, &mut self.noted.rule, &mut self.rules);
        }
        if let Outcome::Passed(status) = decision.outcome {
            for (name, value) in decision.fields.iter() {
                if status == 101 || !is_in(OF_PASSED_CONNECTION, name) {
                    reply.add_field(name, value);
                }
            }
            return Answering::Passed(PassedHead { status, fields: reply.fields().to_vec() });
        }
        match proxy::plan(&decision.outcome, head, peer) {
            Some(plan) => Answering::Elsewhere(Box::new(plan)),
            None => {
                fill(&decision, head, &mut self.files, &self.outside, &mut reply);
                Answering::Replied(reply)
            }
        }
    }

    /// Logs an answer that came from a backend, or in place of one.
    pub(crate) fn note_ended(&mut self, answered: &Answered<'_>, peer: &Peer) {
        if self.takes_notes() {
            self.note(answered, peer);
        }
    }
}

/// A request as the engine sees it.
fn request<'a>(head: &RequestHead<'a>, fields: &'a HeadFields<'_>, peer: &'a Peer) -> Request<'a> {
    Request {
        method: head.method,
        target: head.target,
        version: match head.version {
            request::Version::Http10 => Version::Http10,
            request::Version::Http11 => Version::Http11,
            request::Version::Http2 => Version::Http2,
        },
        scheme: if peer.tls.is_some() { Scheme::Https } else { Scheme::Http },
        tls: peer.tls.as_ref().map(|tls| tls.as_request()),
        fields,
        local: peer.local,
        remote: peer.remote,
    }
}

/// Whether httpd decides this before it looks for who could make the content: it asks no client then to send
/// content that waits.
fn is_decided_error(decision: &Decision<'_>) -> bool {
    let (Outcome::Redirect { status, .. }
    | Outcome::Text { status, .. }
    | Outcome::File { status, .. }
    | Outcome::Status(status)
    | Outcome::Passed(status)) = decision.outcome
    else {
        return false;
    };
    !matches!(status, 200..=299 | 404 | 405)
}

/// What stands for a head that could not be read, where one is asked for.
const STANDS_FOR_UNREAD: &[u8] = b"GET / HTTP/1.0\r\n\r\n";

/// Makes a reply of a decision that ends here.
fn fill(
    decision: &Decision<'_>,
    head: &RequestHead<'_>,
    files: &mut Files,
    outside: &LastLook,
    reply: &mut Reply,
) {
    match decision.outcome {
        Outcome::Redirect { status, location } => reply.redirect(status, location),
        Outcome::Text { status, text } => reply.text(status, text),
        Outcome::File { status, path, serving } => {
            let seen = outside.take(path);
            let media_type = decision.fields.last("Content-Type");
            let wanted = Wanted { path, serving, media_type };
            match status {
                200 => files.answer(head, wanted, seen, reply),
                status => files.answer_whole(status, wanted, seen, reply),
            }
        }
        Outcome::Status(status @ 200..=299) => reply.set_status(status),
        Outcome::Status(status) => reply.error(status),
        // Who asks goes on with these.
        Outcome::Proxy(_) | Outcome::Passed(_) => reply.error(500),
    }
    if !decision.fields.is_empty() {
        add_fields(decision, reply);
    }
}

/// What the connection says of a passed answer.
const OF_PASSED_CONNECTION: &[&str] =
    &["Connection", "Content-Length", "Keep-Alive", "Transfer-Encoding", "Upgrade"];

fn is_in(names: &[&str], name: &[u8]) -> bool {
    names.iter().any(|known| known.as_bytes().eq_ignore_ascii_case(name))
}

/// Writes file and line of a directive into `text`; nothing if there is none.
fn write_rule(rule: Option<Rule<'_>>, text: &mut String, known: &mut HashMap<(u32, u32), String>) {
    text.clear();
    let Some(rule) = rule else { return };
    let describe = || format!("{}:{}", rule.file().display(), rule.line());
    if !rule.is_lasting() {
        // The number may be that of another directive by the next request.
        *text = describe();
        return;
    }
    if known.len() >= RULE_PLACES_MAX {
        known.clear();
    }
    text.push_str(known.entry(rule.id()).or_insert_with(describe));
}

/// Adds the fields that directives ask for, in place of the server's own of the same names.
fn add_fields(decision: &Decision<'_>, reply: &mut Reply) {
    /// What the connection alone decides: a directive could break the framing.
    const OF_CONNECTION: &[&str] = &[
        "Connection",
        "Content-Length",
        "Date",
        "Keep-Alive",
        "Server",
        "Trailer",
        "Transfer-Encoding",
        "Upgrade",
    ];
    /// What a 304, which has no content, does not say.
    const OF_CONTENT: &[&str] =
        &["Content-Encoding", "Content-Language", "Content-Range", "Content-Type"];
    let fields = decision.fields;
    // The decision has already chosen among what directives say of the `Location` of a redirect.
    let redirects = matches!(decision.outcome, Outcome::Redirect { .. });
    let status = reply.status();
    let has_parts = reply.is_multipart();
    let failed = matches!(decision.outcome, Outcome::File { status: 200, .. })
        && status >= 400
        && status != 412;
    let is_ours = |name: &[u8]| {
        is_in(OF_CONNECTION, name)
            || (redirects && name.eq_ignore_ascii_case(b"Location"))
            || ((has_parts || failed) && name.eq_ignore_ascii_case(b"Content-Type"))
    };
    reply.remove_fields(|name| fields.decides(name) && !is_ours(name));
    let mut add = |(name, value): (&[u8], &[u8])| {
        let fits = status != 304 || !is_in(OF_CONTENT, name);
        if fits && !is_ours(name) {
            reply.add_field(name, value);
        }
    };
    if failed {
        fields.for_error().for_each(&mut add);
    } else {
        fields.iter().for_each(&mut add);
    }
}

/// The fields of a head, as the engine looks them up.
struct HeadFields<'a>(&'a RequestHead<'a>);

impl Fields for HeadFields<'_> {
    fn value(&self, name: &str) -> Option<Cow<'_, [u8]>> {
        let mut values = self.0.fields.all(name);
        let first = values.next()?;
        let Some(second) = values.next() else { return Some(Cow::Borrowed(first)) };
        let mut joined = [first, second].join(&b", "[..]);
        for value in values {
            joined.extend_from_slice(b", ");
            joined.extend_from_slice(value);
        }
        Some(Cow::Owned(joined))
    }

    fn count(&self, name: &str) -> usize {
        self.0.fields.count(name)
    }

    fn counted(&self, name: &str) -> (usize, Option<Cow<'_, [u8]>>) {
        if name.eq_ignore_ascii_case("host") {
            // Of each request it is asked for this one.
            return (usize::from(self.0.host.is_some()), self.0.host.map(Cow::Borrowed));
        }
        let mut values = self.0.fields.all(name);
        let first = values.next().map(Cow::Borrowed);
        match values.count() {
            0 => (usize::from(first.is_some()), first),
            more => (1 + more, self.value(name)),
        }
    }

    fn name(&self, number: usize) -> Option<&str> {
        self.0.fields.iter().nth(number).and_then(|(name, _)| std::str::from_utf8(name).ok())
    }
}

#[cfg(test)]
mod tests {
    use milepost_http::request::{HeadLimits, HeadRoom, parse};

    use super::*;

    #[test]
    fn field_lines_of_one_name_are_joined() {
        let head = b"GET / HTTP/1.1\r\nHost: a\r\nX: 1\r\nY: 0\r\nx: 2\r\nX: 3\r\n\r\n";
        let mut room = HeadRoom::default();
        let head = parse(head, &HeadLimits::default(), &mut room).unwrap().unwrap();
        let fields = HeadFields(&head);
        assert_eq!(fields.value("X").as_deref(), Some(&b"1, 2, 3"[..]));
        assert_eq!(fields.value("y").as_deref(), Some(&b"0"[..]));
        assert_eq!(fields.value("z"), None);
        assert_eq!((fields.count("X"), fields.count("z")), (3, 0));
    }
}
