//! Finds the way to where a redirect leads: its address and its origin.

use std::collections::HashMap;
use std::net::SocketAddr;

use crate::answer::Failure;
use crate::endpoint::Endpoint;
use crate::failure::FailureKind;
use crate::origin::Origin;
use crate::plan::Plan;
use crate::route::ConnectTo;
use crate::target::Target;
use crate::tls::TlsError;
use crate::url::{HttpUrl, look_up};

/// Addresses that a run connects to, those of the list and those that redirects lead to. Each has a
/// place for a connection in every slot.
const ORIGINS_MAX: usize = 1_000;

/// Addresses of the authorities that redirects led to.
#[derive(Debug, Default)]
pub(crate) struct Elsewhere {
    addresses: HashMap<String, SocketAddr>,
}

impl Elsewhere {
    /// Gives `next` the address of its authority, if that is another than the one of `before`. Blocks
    /// the worker for it, once for each authority.
    ///
    /// # Errors
    ///
    /// When the authority has no address.
    pub(crate) fn find(
        &mut self,
        next: &mut Target,
        before: &Target,
        connect_to: &[ConnectTo],
    ) -> Result<(), Failure> {
        // Through a proxy, or over a Unix socket, every request goes to the same address.
        let is_elsewhere = (next.scheme, &next.authority) != (before.scheme, &before.authority)
            && next.request_target.starts_with('/')
            && next.tunnel.is_none()
            && matches!(next.address, Endpoint::Tcp(_));
        if is_elsewhere {
            next.address = self.look_up(next, connect_to)?.into();
        }
        Ok(())
    }

    fn look_up(&mut self, target: &Target, to: &[ConnectTo]) -> Result<SocketAddr, Failure> {
        let key = format!("{}://{}", target.scheme, target.authority);
        if let Some(address) = self.addresses.get(&key) {
            return Ok(*address);
        }
        let fail = |why: String| unfit(format!("redirect to {}: {why}", target.uri()));
        let url = HttpUrl::parse(&target.uri()).map_err(|error| fail(error.to_string()))?;
        let (host, port) = ConnectTo::apply(to, url.host(), url.port());
        let address = look_up(host, port).map_err(|error| fail(error.to_string()))?;
        if self.addresses.len() < ORIGINS_MAX {
            self.addresses.insert(key, address);
        }
        Ok(address)
    }
}

/// The place of the target's origin in `origins`; one past the end if it is a new one, which is then
/// added.
///
/// # Errors
///
/// When it is to be asked with TLS and that cannot be, or when there are too many.
pub(crate) fn place(
    origins: &mut Vec<Origin>,
    target: &Target,
    plan: &Plan,
    has_tls: bool,
) -> Result<usize, Failure> {
    let origin = Origin::of(target, &plan.tls).map_err(|error| unfit(error.to_string()))?;
    if origin.secure.is_some() && !has_tls {
        return Err(unfit(format!("redirect to {}: {}", target.uri(), TlsError::NobodyTrusted)));
    }
    if let Some(known) = origins.iter().position(|other| *other == origin) {
        return Ok(known);
    }
    if origins.len() >= ORIGINS_MAX {
        return Err(unfit(format!("redirects lead to more than {ORIGINS_MAX} addresses")));
    }
    origins.push(origin);
    Ok(origins.len() - 1)
}

fn unfit(why: String) -> Failure {
    Failure::new(FailureKind::RedirectUnfit, why)
}
