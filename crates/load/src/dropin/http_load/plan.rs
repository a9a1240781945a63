//! Makes a plan of http_load's options and its file of URLs.

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

use rustix::process::{Resource, getrlimit};

use super::options::{End, Options, Start};
use crate::dropin::{Outside, note};
use crate::plan::{Arrival, Order, Persistence, Plan, Refusal, Spacing, Stop, TimeoutFrom};
use crate::route::{Proxy, Router};
use crate::target::{Target, Version};
use crate::tls::CipherList;
use crate::url::HttpUrl;

/// Most fetches that are under way at a time with `-rate`, if the limit of open files allows so many.
/// What becomes due beyond waits for one to end.
const RATE_CONNECTIONS_MAX: u64 = 10_000;

/// Files that the process has open beside connections.
const OTHER_FILES: u64 = 64;

/// How far intervals of `-jitter` go: from 90 % to 110 %.
const JITTER_SHARE: f64 = 0.1;

/// Buffer of a connection that receives slowly: what is in it has come for the server, so it is small.
const THROTTLED_BUFFER_BYTES: usize = 4_096;

const MILLIS_PER_SECOND: f64 = 1_000.0;

/// What http_load says that it is.
const USER_AGENT: &str = "http_load 12mar2006";

/// The plan.
///
/// # Errors
///
/// What is wrong with the files or cannot be done.
pub(super) fn plan(options: &Options, outside: &dyn Outside) -> Result<Plan, String> {
    let text = read(&options.url_file, outside)?;
    let text = String::from_utf8_lossy(&text);
    let proxy = options.proxy.as_deref().map(proxy).transpose()?;
    let mut router = Router::default();
    router.proxy = proxy;
    let mut targets = Vec::new();
    for (line, number) in text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty()) {
        let target = target(line.trim(), options, &mut router);
        targets.push(target.map_err(|why| format!("{}:{number}: {why}", file(&options.url_file)))?);
    }
    if targets.is_empty() {
        return Err(format!("{}: the file has no URL", file(&options.url_file)));
    }
    let mut plan = Plan::new(targets);
    plan.order = Order::Random;
    plan.seed = options.seed;
    (plan.connections, plan.arrival) = match options.start {
        Start::Parallel(connections) => (connections, Arrival::Closed),
        Start::Rate { per_second, jitter } => {
            (connections_for_a_rate(), arrival(per_second, jitter, options.quirks))
        }
    };
    plan.stop = match options.stop {
        End::Fetches(count) => Stop::Requests(count),
        End::Seconds(length) => Stop::Duration(length),
    };
    plan.persistence = if options.quirks { Persistence::Unsaid } else { Persistence::Close };
    plan.timeout = options.timeout;
    plan.timeout_from = TimeoutFrom::LastByte;
    plan.refusal = Refusal::Fail;
    plan.receive_rate = options.throttle;
    plan.socket_buffer = options.throttle.map(|_| THROTTLED_BUFFER_BYTES);
    // As http_load: whoever answers is taken for the server.
    plan.tls.trusts_any = true;
    let ciphers = options.cipher.as_deref().map(CipherList::parse).transpose();
    plan.tls.ciphers = ciphers.map_err(|error| format!("-cipher: {error}"))?;
    plan.linger_max = Some(options.linger_max.unwrap_or(note::GLANCE));
    if let Some(path) = &options.sources {
        plan.sources = sources(path, outside)?;
    }
    Ok(plan)
}

fn connections_for_a_rate() -> usize {
    let files = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
    let connections = files.saturating_sub(OTHER_FILES * 2).clamp(1, RATE_CONNECTIONS_MAX);
    // At most the constant, so it fits.
    connections as usize
}

/// The rate that is asked for, or the one that a timer of whole milliseconds makes of it.
fn arrival(per_second: f64, jitter: bool, quirks: bool) -> Arrival {
    if !quirks {
        return match jitter {
            true => Arrival::open(per_second, Spacing::Jittered { share: JITTER_SHARE }),
            false => Arrival::uniform(per_second),
        };
    }
    let interval = (MILLIS_PER_SECOND / per_second).floor().max(1.0);
    let per_second = MILLIS_PER_SECOND / interval;
    // A tenth of less than ten milliseconds is less than one of them.
    match jitter && interval >= 1.0 / JITTER_SHARE {
        true => Arrival::open(per_second, Spacing::Jittered { share: JITTER_SHARE }),
        false => Arrival::uniform(per_second),
    }
}

fn target(line: &str, options: &Options, router: &mut Router) -> Result<Target, String> {
    let url =
        HttpUrl::parse(line).map_err(|error| format!("unknown protocol - {line}: {error}"))?;
    let target = router.target(&url);
    let mut target =
        target.map_err(|error| format!("unknown host - {}: {}", error.host, error.source))?;
    if options.quirks {
        url.host().clone_into(&mut target.authority);
    }
    target.version = Version::Http10;
    target.fields.push(("User-Agent".to_owned(), USER_AGENT.to_owned()));
    for (name, value) in &options.fields {
        // An own field takes the place of one of the above.
        target.fields.retain(|(other, _)| !other.eq_ignore_ascii_case(name));
        target.fields.push((name.clone(), value.clone()));
    }
    Ok(target)
}

fn proxy(text: &str) -> Result<Proxy, String> {
    Proxy::parse(text).map_err(|error| format!("-proxy {text}: {error}"))
}

/// Reads the list of local addresses, one a line.
fn sources(path: &Path, outside: &dyn Outside) -> Result<Vec<IpAddr>, String> {
    let text = read(path, outside)?;
    let text = String::from_utf8_lossy(&text);
    let mut sources = Vec::new();
    for (line, number) in text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty()) {
        let source: Ipv4Addr = line.trim().parse().map_err(|_| {
            format!("{}:{number}: {:?} is no numeric IPv4 address", file(path), line.trim())
        })?;
        sources.push(source.into());
    }
    if sources.is_empty() {
        return Err(format!("{}: the file has no address", file(path)));
    }
    Ok(sources)
}

/// Reads a file; `-` is stdin.
fn read(path: &Path, outside: &dyn Outside) -> Result<Vec<u8>, String> {
    let from = if path == Path::new("-") { Path::new("/dev/stdin") } else { path };
    outside.read(from).map_err(|error| {
        let reason = error.to_string();
        format!("{}: {}", file(path), reason.split(" (os error").next().unwrap_or_default())
    })
}

fn file(path: &Path) -> std::path::Display<'_> {
    path.display()
}
