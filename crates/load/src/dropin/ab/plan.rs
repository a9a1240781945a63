//! Makes a plan of ab's options.

use std::io;
use std::time::Duration;

use super::options::Options;
use crate::dropin::note;
use crate::plan::{Persistence, Plan, Refusal, Stop, TimeoutFrom};
use crate::target::Version;
use crate::url::HttpUrl;

/// Requests of a run that has a time and no number.
pub(super) const REQUESTS_TIMED: u64 = 50_000;

/// Why there is no plan.
#[derive(Debug)]
pub(super) enum PlanFault {
    /// The host has no address.
    NoHost { host: String, error: io::Error },
    /// Something does not fit.
    Unusable(String),
}

/// The plan, with `body` as the content of each request.
pub(super) fn plan(options: &Options, body: Vec<u8>) -> Result<Plan, PlanFault> {
    let connected: &HttpUrl = options.proxy.as_ref().unwrap_or(&options.url);
    let address = connected
        .resolve()
        .map_err(|error| PlanFault::NoHost { host: connected.host().to_owned(), error })?;
    if options.bind.is_some_and(|bind| bind.is_ipv4() != address.is_ipv4()) {
        let message = format!("-B: not of the same family as {}", address.ip());
        return Err(PlanFault::Unusable(message));
    }
    let mut target = options.url.target(address);
    if options.proxy.is_some() {
        target.request_target = target.uri();
    }
    target.version = Version::Http10;
    target.method.clone_from(&options.method);
    target.fields.clone_from(&options.fields);
    target.content = body.into();

    let mut plan = Plan::new(vec![target]);
    plan.connections = options.concurrency;
    plan.persistence = options.persistence;
    plan.timeout = options.timeout;
    plan.timeout_from = TimeoutFrom::LastByte;
    plan.refusal = Refusal::Fail;
    plan.sources = options.bind.into_iter().collect();
    plan.socket_buffer = options.window;
    plan.stop = match options.time_limit {
        None => Stop::Requests(options.count()),
        Some(length) => Stop::Either(options.count(), length),
    };
    if options.persistence != Persistence::KeepAlive {
        let glance: Duration = note::GLANCE;
        plan.linger_max = Some(options.linger_max.unwrap_or(glance));
    }
    Ok(plan)
}
