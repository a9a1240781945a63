//! Runs cases on the engine of this workspace, without a socket.
//!
//! Each case is loaded from the same text that httpd gets, minus what only a process needs. A panic
//! is an answer like any other, a wrong one, so that one bad case does not hide the rest.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use milepost_engine::{
    Decision, Event, LoadOptions, Lookup, Outcome, Proxied, ProxiedAnswer, ProxyTo, Purpose,
    Request, Scheme, Scratch, Severity, Site, Step, Version,
};
use milepost_server::Helpers;

use crate::answer::Answer;
use crate::backend;
use crate::case::{Ask, Case};
use crate::disk::Disk;
use crate::engine::{Engine, EngineError, Verdict};
use crate::httpd::Program;
use crate::judge::{filled, served};
use crate::stage::{self, Plot, Stage};
use crate::world::World;

/// Nobody listens on it: the engine only hears of it.
const PORT: u16 = 40_080;
/// How often one request asks a backend, at most; more is going around in a circle.
const BACKENDS_MAX: usize = 10;
/// The client's end of the connections that there are not.
const REMOTE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 50_000);

/// The engine, with one way to find rules.
#[derive(Debug)]
pub struct Milepost {
    lookup: Lookup,
    program: Program,
    disk: Disk,
}

impl Milepost {
    /// Makes an engine that finds rules by `lookup`; `program` names the modules to load.
    pub fn new(lookup: Lookup, program: Program) -> Milepost {
        Milepost { lookup, program, disk: Disk::default() }
    }

    /// Returns what was found wrong with `.htaccess` files since the last time.
    pub fn take_reports(&self) -> BTreeSet<String> {
        self.disk.take_reports()
    }

    fn run_case(&self, case: &Case, plot: &Plot) -> Result<Verdict, EngineError> {
        let options = LoadOptions {
            server_root: plot.root().to_owned(),
            file: Some(plot.write_site_conf(&self.program)?),
            lookup: self.lookup,
            purpose: Purpose::Look,
            ..LoadOptions::default()
        };
        let loaded = match catch_unwind(|| Site::load(&options, &self.disk)) {
            Ok(loaded) => loaded,
            Err(_) => return Ok(Verdict::Refused("panicked while loading".to_owned())),
        };
        let Some(site) = loaded.site else {
            let errors =
                loaded.diagnostics.iter().filter(|found| found.severity == Severity::Error);
            let mut text = String::new();
            for error in errors {
                let separator = if text.is_empty() { "" } else { "; " };
                write!(text, "{separator}line {}: {}", error.line, error.message)
                    .expect("writes to a String");
            }
            let text = String::from_utf8_lossy(&plot.blank(text.as_bytes())).into_owned();
            return Ok(Verdict::Refused(text));
        };
        let helpers = match Helpers::start(&site) {
            Ok(helpers) => helpers,
            Err(error) => return Ok(Verdict::Refused(error.to_string())),
        };
        let world = World { disk: &self.disk, helpers };
        let mut scratch = Scratch::default();
        let asks = case.exchanges.iter().map(|exchange| &exchange.ask);
        let answers = asks.map(|ask| {
            let ask = filled(ask, plot);
            let decided = catch_unwind(AssertUnwindSafe(|| {
                decide((&site, &world), &ask, case, plot, &mut scratch)
            }));
            decided.unwrap_or_else(|_| {
                // What a panic left in the buffers is of no use.
                scratch = Scratch::default();
                Err("panicked while deciding".to_owned())
            })
        });
        Ok(Verdict::Answers(answers.collect()))
    }
}

impl Engine for Milepost {
    fn name(&self) -> &str {
        match self.lookup {
            Lookup::Scan => "milepost, by scan",
            Lookup::Index => "milepost, by index",
        }
    }

    fn run(&self, cases: &[&Case]) -> Result<Vec<Verdict>, EngineError> {
        let mut verdicts = vec![Verdict::Answers(Vec::new()); cases.len()];
        for group in stage::groups(cases) {
            let together: Vec<&Case> = group.iter().map(|&at| cases[at]).collect();
            let stage = Stage::new(&together, PORT)?;
            for ((at, case), plot) in group.into_iter().zip(together).zip(stage.plots()) {
                verdicts[at] = self.run_case(case, plot)?;
            }
        }
        Ok(verdicts)
    }
}

fn decide(
    (site, world): (&Site, &World<'_>),
    ask: &Ask,
    case: &Case,
    plot: &Plot,
    scratch: &mut Scratch,
) -> Result<Answer, String> {
    let local = plot
        .socket(ask.address.as_deref())
        .ok_or_else(|| format!("{:?} is no IPv4 address", ask.address))?;
    // As in an answer: blanks around a value do not survive a socket.
    let fields: Vec<(&str, &[u8])> =
        ask.fields.iter().map(|(name, value)| (name.as_str(), value.trim_ascii())).collect();
    let request = Request {
        method: ask.method.as_bytes(),
        target: &ask.target,
        version: if ask.minor == 0 { Version::Http10 } else { Version::Http11 },
        scheme: Scheme::Http,
        tls: None,
        fields: &SentFields(&fields),
        local,
        remote: REMOTE,
    };
    let decision = site.decide(&request, world, scratch);
    let mut answered = (answer(&decision, ask, case, (site, plot)), asked(&decision, site, plot));
    // The document of a backend's error may come from a backend too.
    for _ in 0..BACKENDS_MAX {
        let (_, Some((method, target))) = answered else { break };
        let (status, fields) = backend::answer(method.unwrap_or(&ask.method), &target);
        let fields = fields.iter().map(|(name, value)| (name.as_bytes(), &value[..]));
        let fields: Vec<_> = fields.collect();
        let from_backend = ProxiedAnswer { status, backend: None, fields: &fields };
        let suspended = scratch.suspend();
        scratch.resume(suspended);
        let decision = site.decide_answered(&request, world, scratch, &from_backend);
        answered = (answer(&decision, ask, case, (site, plot)), asked(&decision, site, plot));
    }
    let (answer, _) = answered;
    let may_be_undefined = answer.status / 100 == 3 && has_fallback(case);
    if !may_be_undefined {
        return Ok(answer);
    }
    scratch.start_trace();
    site.decide(&request, world, scratch);
    let is_undefined = ends_in_fallback(&scratch.take_trace(), case, plot);
    Ok(Answer { is_undefined, ..answer })
}

/// What the server behind the case is asked for, if it is asked: the method where it is another than that of
/// the request, and the target.
fn asked(
    decision: &Decision<'_>,
    site: &Site,
    plot: &Plot,
) -> Option<(Option<&'static str>, Vec<u8>)> {
    let Outcome::Proxy(proxied) = &decision.outcome else { return None };
    let mut url = proxied.url.to_vec();
    if let ProxyTo::Balancer(number) = proxied.to {
        // Nobody is busy, so it is the first one's turn.
        let member = site.balancers()[number].members.first()?;
        let path = url.split_off(third_slash(&url));
        url = [site.backends()[member.backend].url.as_bytes(), &path].concat();
    }
    let backend = format!("http://{}", plot.backend()?);
    let target = url.strip_prefix(backend.as_bytes())?;
    let target = if target.is_empty() { b"/" } else { target };
    Some((proxied.as_get.then_some("GET"), target.to_vec()))
}

/// Where the path of a URL begins.
fn third_slash(url: &[u8]) -> usize {
    (0..url.len()).filter(|&at| url[at] == b'/').nth(2).unwrap_or(url.len())
}

/// Whether there is a `FallbackResource` in the case.
fn has_fallback(case: &Case) -> bool {
    fallbacks(case).next().is_some()
}

/// What the lines with `FallbackResource` name.
fn fallbacks(case: &Case) -> impl Iterator<Item = &str> {
    let texts = case.files.values().chain([&case.config]);
    texts.flat_map(|text| text.lines()).filter_map(|line| {
        let mut words = line.split_whitespace();
        let is_fallback = words.next()?.eq_ignore_ascii_case("FallbackResource");
        if is_fallback { words.next() } else { None }
    })
}

/// Whether the last that happened was in a subrequest for a fallback.
fn ends_in_fallback(steps: &[Step], case: &Case, plot: &Plot) -> bool {
    let last = steps.iter().rev().find_map(|step| match &step.event {
        Event::Subrequest { target } => Some((step.depth, target)),
        _ => None,
    });
    let (Some((depth, target)), Some(step)) = (last, steps.last()) else { return false };
    let path = target.split(|&byte| byte == b'?').next().unwrap_or_default();
    let named = || fallbacks(case).any(|name| plot.fill(name).as_bytes() == path);
    step.depth > depth && named()
}

fn answer(decision: &Decision<'_>, ask: &Ask, case: &Case, (site, plot): (&Site, &Plot)) -> Answer {
    let fields = decision.fields.iter().map(|(name, value)| {
        // Blanks around a field value do not survive a socket (RFC 9110 section 5.5).
        (String::from_utf8_lossy(name).into_owned(), plot.blank(value.trim_ascii()))
    });
    let (location, fields): (Vec<_>, Vec<_>) =
        fields.partition(|(name, _)| name.eq_ignore_ascii_case("Location"));
    let location = location.into_iter().next().map(|(_, value)| value);
    let answer = Answer { location, fields, ..Answer::default() };
    match decision.outcome {
        Outcome::Redirect { status, location } => {
            Answer { status, location: Some(plot.blank(location.trim_ascii())), ..answer }
        }
        Outcome::Status(status) | Outcome::Text { status, .. } => Answer { status, ..answer },
        // The servers behind the ones of the cases are never there, and nobody knows the address of a name.
        Outcome::Proxy(proxied) => {
            let status = if has_address(&proxied, site) { 503 } else { 500 };
            Answer { status, ..answer }
        }
        Outcome::Passed(status) => Answer { status, ..answer },
        Outcome::File { path, status, .. } => {
            let content = std::str::from_utf8(path).map(|path| std::fs::read(Path::new(path)));
            let content = match content {
                Ok(Ok(content)) if ask.method != "HEAD" => content,
                _ => Vec::new(),
            };
            Answer { status, served: served(&content, case, plot), ..answer }
        }
    }
}

/// Whether the server that a request is passed to has an address without a look-up: of a balancer, the first.
fn has_address(proxied: &Proxied<'_>, site: &Site) -> bool {
    let url = match proxied.to {
        ProxyTo::Balancer(number) => match site.balancers()[number].members.first() {
            Some(member) => site.backends()[member.backend].url.clone(),
            None => return true,
        },
        _ => String::from_utf8_lossy(proxied.url).into_owned(),
    };
    if url.starts_with("unix:") {
        return true;
    }
    let (_, rest) = url.split_once("://").unwrap_or_default();
    let authority = rest.split('/').next().unwrap_or_default();
    let (_, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    let host = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    host == "localhost" || host.parse::<IpAddr>().is_ok()
}

/// The field lines of a request, as the engine asks for them.
struct SentFields<'a>(&'a [(&'a str, &'a [u8])]);

impl milepost_engine::Fields for SentFields<'_> {
    fn value(&self, name: &str) -> Option<std::borrow::Cow<'_, [u8]>> {
        self.0.value(name)
    }

    fn count(&self, name: &str) -> usize {
        self.0.count(name)
    }

    fn name(&self, number: usize) -> Option<&str> {
        self.0.name(number)
    }
}
