//! The addresses of the hosts of a run: all of them in turn, and looked up anew while it goes on.
//!
//! Only whoever opens a connection asks, so a request on a connection that is there costs nothing of it.

use std::fmt;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

/// Looks up a host.
type LookUp = dyn Fn(&str, u16) -> io::Result<Vec<SocketAddr>> + Send + Sync;

/// The hosts of a run and their addresses.
pub struct Names {
    hosts: Vec<Host>,
    every: Option<Duration>,
    look_up: Box<LookUp>,
}

/// A host, known by the address that stands in the targets.
#[derive(Debug)]
struct Host {
    known_as: SocketAddr,
    name: String,
    port: u16,
    addresses: RwLock<Vec<SocketAddr>>,
}

impl fmt::Debug for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Names").field("hosts", &self.hosts).finish_non_exhaustive()
    }
}

impl Names {
    /// The hosts, each with the address that targets have for it, its name and its port; they are looked
    /// up `every` so often. Looks them up once.
    #[must_use]
    pub fn new(hosts: Vec<(SocketAddr, String, u16)>, every: Option<Duration>) -> Self {
        let look_up = |name: &str, port: u16| Ok((name, port).to_socket_addrs()?.collect());
        Self::with(hosts, every, look_up)
    }

    /// The same with another way to look up a host.
    #[must_use]
    pub fn with(
        hosts: Vec<(SocketAddr, String, u16)>,
        every: Option<Duration>,
        look_up: impl Fn(&str, u16) -> io::Result<Vec<SocketAddr>> + Send + Sync + 'static,
    ) -> Self {
        let host = |(known_as, name, port)| {
            let addresses = RwLock::new(vec![known_as]);
            Host { known_as, name, port, addresses }
        };
        let hosts = hosts.into_iter().map(host).collect();
        let names = Self { hosts, every, look_up: Box::new(look_up) };
        names.renew();
        names
    }

    /// How often they are looked up, if more than once.
    pub(crate) fn every(&self) -> Option<Duration> {
        self.every
    }

    /// The address for connection number `turn` to what targets know as `known_as`.
    pub(crate) fn address(&self, known_as: SocketAddr, turn: usize) -> SocketAddr {
        let Some(host) = self.hosts.iter().find(|host| host.known_as == known_as) else {
            return known_as;
        };
        let addresses = host.addresses.read().unwrap_or_else(PoisonError::into_inner);
        addresses.get(turn % addresses.len().max(1)).copied().unwrap_or(known_as)
    }

    /// Looks all hosts up. One that has no address now keeps those that it had.
    pub(crate) fn renew(&self) {
        for host in &self.hosts {
            let found = (self.look_up)(&host.name, host.port).unwrap_or_default();
            if !found.is_empty() {
                *host.addresses.write().unwrap_or_else(PoisonError::into_inner) = found;
            }
        }
    }
}
