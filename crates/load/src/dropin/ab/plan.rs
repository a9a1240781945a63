//! Makes a plan of ab's options.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::options::Options;
use crate::dropin::note;
use crate::endpoint::Endpoint;
use crate::plan::{Persistence, Plan, Refusal, Stop, TimeoutFrom};
use crate::route::{RouteError, Router};
use crate::target::Version;
use crate::tls::Identity;

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

/// The plan, with `body` as the content of each request; the client is `identity` to TLS.
pub(super) fn plan(
    options: &Options,
    body: Vec<u8>,
    identity: Option<Identity>,
) -> Result<Plan, PlanFault> {
    let mut router = Router::default();
    router.proxy.clone_from(&options.proxy);
    let no_host = |RouteError { host, source }| PlanFault::NoHost { host, error: source };
    let mut target = router.target(&options.url).map_err(no_host)?;
    if let (Some(bind), Endpoint::Tcp(address)) = (options.bind, &target.address)
        && bind.is_ipv4() != address.is_ipv4()
    {
        let message = format!("-B: not of the same family as {}", address.ip());
        return Err(PlanFault::Unusable(message));
    }
    target.version = Version::Http10;
    target.method.clone_from(&options.method);
    target.fields.extend_from_slice(&options.fields);
    target.content = body.into();

    let mut plan = Plan::new(vec![target]);
    plan.connections = options.concurrency;
    plan.persistence = options.persistence;
    plan.timeout = options.timeout;
    plan.timeout_from = TimeoutFrom::LastByte;
    plan.refusal = Refusal::Fail;
    plan.sources = options.bind.into_iter().collect();
    plan.socket_buffer = options.window;
    // As ab: whoever answers is taken for the server.
    plan.tls.trusts_any = true;
    plan.tls.hides_server_name = options.hides_server_name;
    plan.tls.ciphers.clone_from(&options.ciphers);
    plan.tls.version_min = options.version.unwrap_or_default();
    plan.tls.version_max = options.version;
    plan.tls.identity = identity.map(Arc::new);
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
