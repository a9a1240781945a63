//! Decides what becomes of one request: what Apache's phases know of it, where they begin, and their answer.
//!
//! An internal redirect goes through all phases again; a subrequest (for `DirectoryIndex`) goes through
//! them beside the request.
//!
//! Source: httpd 2.4.71 `server/request.c`, `ap_process_request_internal`; `modules/http/http_request.c`,
//! `internal_internal_redirect`.

mod access;
mod ahead;
mod alias;
mod canonical;
mod conclude;
mod condition;
mod content;
mod cookie;
mod directory;
mod edit;
mod environment;
mod expand;
mod expression;
mod fields;
mod handler;
mod htaccess;
mod identity;
mod if_walk;
mod listing;
mod logged;
mod map;
mod negotiate;
mod phases;
mod proxy;
mod remote_ip;
mod rewrite;
mod roots;
mod section_alias;
mod spelling;
mod table;
mod target;
mod tls;
mod trace_method;
mod variable;
mod vary;
mod walk;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

use milepost_http::bytes::is_value;
use milepost_pcre::Matcher;

pub(crate) use self::table::Table;
pub(crate) use alias::{covers, is_constant};
pub(crate) use identity::select;
pub use logged::Logged;
pub use proxy::{ProxiedAnswer, Suspended};

use self::conclude::Answer;
use crate::decision::{Decision, Outcome, Place, Rule};
use crate::expr::Capture;
use crate::index::Candidates;
use crate::log::{LogExpression, SectionLevels};
use crate::outside::{FileKind, Outside};
use crate::pool::Pool;
use crate::program::{DirConfig, Naming, Program, Server};
use crate::request::{NoFields, Request};
use crate::response::AddedFields;
use crate::site::Site;
use crate::trace::{Directive, Event, Step};

/// Buffers that deciding uses over and over. One for each thread, for one site.
#[derive(Debug, Default)]
pub struct Scratch {
    work: Work,
    hop: Hop,
    host: target::Host,
    /// The number of the server that the request was for.
    server: usize,
    /// What [`Run`] knew at the end, for a decision that goes on later.
    has_first: bool,
    redirects: u32,
    rule: Option<(Place, Option<Arc<Pool>>)>,
}

/// What all phases share.
#[derive(Debug, Default)]
struct Work {
    matcher: Matcher,
    candidates: Candidates,
    /// The `Location` or the file path of the answer.
    answer: Vec<u8>,
    /// The string that the last condition matched, and where.
    condition: Capture,
    /// The same for an expression while it is evaluated.
    expression: Capture,
    /// The text of the rule that decided, if it is not the program's.
    rule_text: Option<Arc<Pool>>,
    /// The steps of the decision, if they are wanted.
    trace: Option<Vec<Step>>,
    /// The request fields that directives have changed, all values of each.
    request: Table,
    /// The response fields that stay when the response is an error.
    always: Table,
    /// The client, if it is another than who has connected.
    client: Option<SocketAddr>,
    /// The names of the cookies that rules have set, each followed by a zero.
    cookies: Vec<u8>,
    /// The request fields that conditions look at.
    seen: vary::Seen,
    /// The request whose error is being answered by a document, as it was then.
    first: Hop,
    /// The variables of the last request, renamed.
    renamed: Table,
    /// Spare buffers, taken and put back.
    spare: Vec<Vec<u8>>,
    /// Merged configurations by server and sections.
    merged: HashMap<Box<[u32]>, Arc<DirConfig>>,
    /// Sections that apply, while they are collected.
    sections: Vec<u32>,
    htaccess: htaccess::Cache,
    maps: map::Known,
}

/// How many merged configurations a thread remembers.
const MERGED_MAX: usize = 4096;

/// A request on its way: it changes with each internal redirect.
#[derive(Debug, Default)]
struct Hop {
    /// The decoded, normalised path: `r->uri`.
    uri: Vec<u8>,
    /// The query string, as sent; `has_args` tells an empty one from none.
    args: Vec<u8>,
    has_args: bool,
    /// The string being rewritten, then the file's path: `r->filename`.
    filename: Vec<u8>,
    path_info: Vec<u8>,
    /// What stands at `filename`, once it has been looked at.
    kind: Option<FileKind>,
    /// The variables. Whoever reads them asks [`Run::env`].
    env: Table,
    /// `SCRIPT_URL` and `SCRIPT_URI` are set too, and not yet written.
    has_script: bool,
    notes: Table,
    /// The response fields that go when the response is an error.
    fields: Table,
    /// The configuration that applies so far; `None`: the server's own.
    config: Option<Arc<DirConfig>>,
    /// The configuration of the request that this one comes from, if it comes from one.
    checked: Option<Option<Arc<DirConfig>>>,
    /// Its type is known, and so the name of its handler.
    is_typed: bool,
    /// The handler has seen it.
    is_handled: bool,
    /// The answer is a page that says a status.
    says_status: bool,
    /// The status so far: 200, or the error whose document this request is for.
    status: u16,
    subrequest: bool,
    /// A subrequest for the URL-path of the very request that it is made for: it looks no further.
    repeats: bool,
    /// Whatever the method of the request is, this is a `GET`: a subrequest, or an error document.
    as_get: bool,
    /// `END` was met: no more rewriting.
    rewriting_ended: bool,
    /// `filename` is `proxy:` and the URL of another server.
    proxied: bool,
    /// The URL is to be sent as it is.
    raw_url: bool,
    /// The target of a subrequest, or of an internal redirect, where a `ProxyPass` may want it as it is.
    target: Vec<u8>,
    /// Per-directory rewriting sent the request to its own file once; it must not do so again.
    context: Option<Context>,
    /// The document root, if it is not the server's.
    document_root: Option<Vec<u8>>,
    /// What the last walk down the directories found, for requests that come from this one.
    walked: Option<walk::Walked>,
}

/// The prefix of an alias that the path went through.
#[derive(Debug, Clone)]
struct Context {
    prefix: Vec<u8>,
    document_root: Vec<u8>,
}

impl Hop {
    fn reset(&mut self) {
        self.uri.clear();
        self.args.clear();
        self.has_args = false;
        self.filename.clear();
        self.path_info.clear();
        self.kind = None;
        self.env.clear();
        self.has_script = false;
        self.notes.clear();
        self.fields.clear();
        self.config = None;
        self.checked = None;
        self.is_typed = false;
        self.is_handled = false;
        self.says_status = false;
        self.status = 200;
        self.subrequest = false;
        self.repeats = false;
        self.as_get = false;
        self.rewriting_ended = false;
        self.forget_proxy();
        self.target.clear();
        self.context = None;
        self.document_root = None;
        self.walked = None;
    }

    fn forget_proxy(&mut self) {
        (self.proxied, self.raw_url) = (false, false);
    }

    /// Makes this a copy of `other`.
    fn copy_from(&mut self, other: &Hop) {
        self.uri.clone_from(&other.uri);
        self.args.clone_from(&other.args);
        self.has_args = other.has_args;
        self.filename.clone_from(&other.filename);
        self.path_info.clone_from(&other.path_info);
        self.kind = other.kind;
        self.env.copy_from(&other.env);
        self.has_script = other.has_script;
        self.notes.copy_from(&other.notes);
        self.fields.copy_from(&other.fields);
        self.config.clone_from(&other.config);
        self.checked.clone_from(&other.checked);
        self.is_typed = other.is_typed;
        self.is_handled = other.is_handled;
        self.says_status = other.says_status;
        self.status = other.status;
        self.subrequest = other.subrequest;
        self.as_get = other.as_get;
        self.rewriting_ended = other.rewriting_ended;
        self.proxied = other.proxied;
        self.raw_url = other.raw_url;
        self.target.clone_from(&other.target);
        self.context.clone_from(&other.context);
        self.document_root.clone_from(&other.document_root);
        self.walked.clone_from(&other.walked);
    }

    fn set_args(&mut self, args: Option<&[u8]>) {
        self.args.clear();
        self.has_args = args.is_some();
        self.args.extend_from_slice(args.unwrap_or_default());
    }
}

/// How a pass through the phases ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// A redirect to `Work::answer`.
    Redirect(u16),
    Status(u16),
    /// The file at `Hop::filename`.
    File,
    /// The URL at `Hop::filename`, of another server.
    Proxy,
    /// The page in `Work::answer`.
    Page,
    /// The methods of the target.
    Options,
    /// `OPTIONS *`: nothing but that the server is there.
    Server,
    /// Again, with the URL-path and query in `Work::answer`.
    Internal,
}

/// What a translating phase says.
enum Translated {
    /// The next one may try.
    Declined,
    /// `Hop::filename` is the file.
    Done,
    End(End),
}

/// One request being decided.
struct Run<'r> {
    program: &'r Program,
    server: &'r Server,
    server_number: u32,
    request: &'r Request<'r>,
    outside: &'r dyn Outside,
    /// The name in the `Host` field or the target, in lower case; empty if there is none.
    host: &'r [u8],
    host_port: Option<u16>,
    /// What stands for the `Host` field: the authority of an absolute-form target.
    authority: Option<&'r [u8]>,
    /// The value of the `Host` field, if it is known without a search.
    host_field: Option<&'r [u8]>,
    /// What the server calls itself where the request is.
    naming: Naming,
    /// What `LogLevel` says in the sections where the request is.
    levels: SectionLevels,
    work: &'r mut Work,
    /// The directive that decided.
    rule: Option<(Place, Option<Arc<Pool>>)>,
    /// `Work::first` is set.
    has_first: bool,
    /// Internal redirects so far, and how deep in subrequests we are.
    redirects: u32,
    subrequests: u32,
}

/// Decides what Apache would answer.
pub(crate) fn decide<'s>(
    program: &'s Program,
    request: &Request<'_>,
    outside: &dyn Outside,
    scratch: &'s mut Scratch,
) -> Decision<'s> {
    scratch.work.maps.start();
    let Scratch { work, hop, host, server, .. } = scratch;
    hop.reset();
    work.request.clear();
    work.always.clear();
    work.cookies.clear();
    work.seen.start();
    work.seen.stop();
    let parsed = target::parse(program, request, line_bytes_max(program, request), host);
    let mut unread = None;
    let (path, is_bare, args, host_port, authority) = match parsed {
        Ok(target::Target::Path { path, is_bare, args, port, authority }) => {
            (path, is_bare, args, port, authority)
        }
        Ok(target::Target::Asterisk) => (&b"*"[..], false, None, None, None),
        // The host of a request that is refused is not known, nor its fields if that is for its first line.
        Err(_) => {
            host.clear();
            let (path, args, is_line) = target::refused(request);
            hop.uri.extend_from_slice(path);
            unread = is_line.then_some(Request { fields: &NoFields, ..*request });
            (&b""[..], false, args, None, None)
        }
    };
    let request = unread.as_ref().unwrap_or(request);
    let host_field = host.sent();
    let host = &host.name[..];
    let number = identity::select(program, request.local, host, path);
    *server = number;
    work.client = None;
    hop.set_args(args);
    let mut run = Run {
        program,
        server: &program.servers[number],
        server_number: number as u32,
        request,
        outside,
        host,
        host_port,
        authority,
        host_field,
        naming: program.servers[number].base.naming,
        levels: SectionLevels::default(),
        work,
        rule: None,
        has_first: false,
        redirects: 0,
        subrequests: 0,
    };
    run.note(None, |run| {
        let name = run.server.name.map(|name| run.program.pool.get(name.host));
        Event::Server { name: name.map(|name| String::from_utf8_lossy(name).into_owned()) }
    });
    let answer = match parsed.and_then(|_| run.check_tls()) {
        Err(status) => run.conclude(hop, End::Status(status)),
        Ok(()) => {
            run.work.client = run.find_client();
            let end = run.pass(hop, path, is_bare);
            run.conclude(hop, end)
        }
    };
    let answer = run.finish(hop, answer);
    if program.logs_variables {
        run.settle_env(hop);
    }
    let Run { rule, has_first, redirects, .. } = run;
    if let Answer::Proxy(_) = answer {
        scratch.keep(has_first, redirects, rule.as_ref());
    }
    decision(program, number, &mut scratch.work, &scratch.hop, answer, rule)
}

/// How long the line of a request may be: the server says so that its connection is for, since the line is read
/// before the host is known.
fn line_bytes_max(program: &Program, request: &Request<'_>) -> usize {
    let settings = &program.settings;
    if settings.own_connections.is_empty() {
        return settings.request_line_bytes_max;
    }
    let name = request.tls.and_then(|tls| tls.name).unwrap_or_default().to_ascii_lowercase();
    settings.request_line_bytes_max_of(select(program, request.local, name.as_bytes(), b""))
}

/// Goes on with the decision that `scratch` holds.
fn go_on<'s>(
    program: &'s Program,
    request: &Request<'_>,
    outside: &dyn Outside,
    scratch: &'s mut Scratch,
    then: impl FnOnce(&mut Run<'_>, &mut Hop) -> Answer,
) -> Decision<'s> {
    let Scratch { work, hop, host, server, has_first, redirects, rule } = scratch;
    let number = *server;
    work.maps.start();
    work.seen.start();
    work.seen.stop();
    let mut spare = target::Host::default();
    let parsed = target::parse(program, request, line_bytes_max(program, request), &mut spare);
    let (host_port, authority) = match parsed {
        Ok(target::Target::Path { port, authority, .. }) => (port, authority),
        _ => (None, None),
    };
    let host = &host.name[..];
    let config = hop.config.as_deref().unwrap_or(&program.servers[number].base);
    let naming = config.naming;
    let mut run = Run {
        program,
        server: &program.servers[number],
        server_number: number as u32,
        request,
        outside,
        host,
        host_port,
        authority,
        host_field: None,
        naming,
        levels: config.levels,
        work,
        rule: rule.take(),
        has_first: *has_first,
        redirects: *redirects,
        subrequests: 0,
    };
    let answer = then(&mut run, hop);
    let Run { rule, has_first, redirects, .. } = run;
    if let Answer::Proxy(_) = answer {
        scratch.keep(has_first, redirects, rule.as_ref());
    }
    decision(program, number, &mut scratch.work, &scratch.hop, answer, rule)
}

/// Asks an expression about the request that `scratch` has decided.
pub(crate) fn log_wants(
    program: &Program,
    expression: &LogExpression,
    request: &Request<'_>,
    outside: &dyn Outside,
    scratch: &mut Scratch,
    status: u16,
) -> bool {
    let mut holds = false;
    go_on(program, request, outside, scratch, |run, hop| {
        hop.status = status;
        if (300..400).contains(&status) && hop.fields.get(b"Location").is_none() {
            hop.fields.set(b"Location", &run.work.answer);
        }
        holds = run.holds(&expression.0, hop, &mut Capture::default());
        Answer::Status(status)
    });
    holds
}

/// What the answer looks like from outside.
fn decision<'s>(
    program: &'s Program,
    number: usize,
    work: &'s mut Work,
    hop: &'s Hop,
    answer: Answer,
    rule: Option<(Place, Option<Arc<Pool>>)>,
) -> Decision<'s> {
    let (place, text) = rule.map_or((None, None), |(place, text)| (Some(place), text));
    work.rule_text = text;
    let work = &*work;
    let pool = work.rule_text.as_deref().unwrap_or(&program.pool);
    let rule = place.map(|place| Rule { pool, place });
    let outcome = match answer {
        Answer::Redirect(status) => Outcome::Redirect { status, location: &work.answer },
        Answer::Status(status) => Outcome::Status(status),
        Answer::Text(status) => Outcome::Text { status, text: &work.answer },
        Answer::Page(status) => Outcome::Text { status, text: &work.answer },
        Answer::File(status) => {
            let config = hop.config.as_deref().unwrap_or(&program.servers[number].base);
            Outcome::File { status, path: &hop.filename, serving: config.serving.resolve() }
        }
        Answer::Passed(status) => Outcome::Passed(status),
        Answer::Proxy(status) => Outcome::Proxy(proxy::proxied(program, number, work, hop, status)),
        // A rule can leave its status to a request that it then lets go on.
        Answer::Options | Answer::Server => Outcome::Status(hop.status),
    };
    Decision { outcome, rule, fields: AddedFields::new(&work.always, &hop.fields) }
}

/// Whether a field value holds what it must not: control bytes other than a tab.
fn has_control(value: &[u8]) -> bool {
    !is_value(value)
}

impl Site {
    /// Decides what becomes of a request whose head cannot be read: its error, by the first server of the
    /// address. `request` stands for it and says nothing but where it came from.
    pub fn decide_unread<'s>(
        &'s self,
        request: &Request<'_>,
        outside: &dyn Outside,
        scratch: &'s mut Scratch,
        status: u16,
    ) -> Decision<'s> {
        scratch.forget_request(self.program(), request);
        self.decide_refused(request, outside, scratch, status)
    }

    /// As [`Site::decide_unread`], for a request that was read as far as it goes: its target and fields are known.
    pub fn decide_malformed<'s>(
        &'s self,
        request: &Request<'_>,
        outside: &dyn Outside,
        scratch: &'s mut Scratch,
        status: u16,
    ) -> Decision<'s> {
        scratch.forget_request(self.program(), request);
        let (path, args, _) = target::refused(request);
        scratch.hop.uri.extend_from_slice(path);
        scratch.hop.set_args(args);
        self.decide_refused(request, outside, scratch, status)
    }
}

impl Scratch {
    /// Asks for the steps of the next decisions.
    pub fn start_trace(&mut self) {
        self.work.trace = Some(Vec::new());
    }

    /// Takes the steps noted since [`Scratch::start_trace`], and stops noting.
    pub fn take_trace(&mut self) -> Vec<Step> {
        self.work.trace.take().unwrap_or_default()
    }

    /// Forgets the request before, for one that nobody can read.
    fn forget_request(&mut self, program: &Program, request: &Request<'_>) {
        self.hop.reset();
        self.host.clear();
        self.server = identity::select(program, request.local, b"", b"");
        self.work.request.clear();
        self.work.cookies.clear();
        (self.has_first, self.redirects, self.rule) = (false, 0, None);
        self.work.client = None;
    }

    /// Keeps what a run knew at its end, for a decision that goes on later.
    fn keep(&mut self, has_first: bool, redirects: u32, rule: Option<&(Place, Option<Arc<Pool>>)>) {
        self.has_first = has_first;
        self.redirects = redirects;
        self.rule = rule.cloned();
    }
}

impl<'r> Run<'r> {
    /// Notes a step, if steps are wanted.
    fn note(&mut self, directive: Option<(Place, &Pool)>, event: impl FnOnce(&Self) -> Event) {
        if self.work.trace.is_none() {
            return;
        }
        let directive = directive.map(|(place, pool)| {
            let (line, _, text) = pool.tree(place.file).position(place.offset as usize);
            let text = String::from_utf8_lossy(text.trim_ascii()).into_owned();
            Directive { file: pool.path(place.file).to_owned(), line, text }
        });
        let (depth, rewrite_level) = (self.subrequests, self.levels.rewrite());
        let step = Step { depth, directive, event: event(self), rewrite_level };
        self.work.trace.get_or_insert_default().push(step);
    }

    /// A subrequest of `hop`, before it has a path.
    fn new_subrequest(&self, hop: &Hop) -> Hop {
        let mut sub = Hop { subrequest: true, as_get: true, status: 200, ..Hop::default() };
        sub.env.copy_from(&hop.env);
        self.write_script_env(hop, &mut sub.env, &mut Vec::new());
        sub.checked = Some(hop.config.clone());
        sub.walked.clone_from(&hop.walked);
        sub
    }

    fn method(&self, hop: &Hop) -> &'r [u8] {
        if hop.as_get { b"GET" } else { self.request.method }
    }

    fn take_buffer(&mut self) -> Vec<u8> {
        let mut buffer = self.work.spare.pop().unwrap_or_default();
        buffer.clear();
        buffer
    }

    fn put_buffer(&mut self, buffer: Vec<u8>) {
        self.work.spare.push(buffer);
    }
}

/// A configuration: the server's own, or one merged from sections.
enum Config<'p> {
    Base(&'p DirConfig),
    Merged(Arc<DirConfig>),
}

impl Config<'_> {
    /// The configuration, if it is not the server's own.
    fn shared(&self) -> Option<Arc<DirConfig>> {
        match self {
            Config::Base(_) => None,
            Config::Merged(config) => Some(Arc::clone(config)),
        }
    }

    fn get(&self) -> &DirConfig {
        match self {
            Config::Base(config) => config,
            Config::Merged(config) => config,
        }
    }
}
