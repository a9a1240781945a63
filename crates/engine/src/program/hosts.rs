//! Finds the virtual hosts that are called by a name, however many there are.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use crate::pool::{Pool, Str};
use crate::program::Server;

/// The names of all virtual hosts. A server's number is its place in the program.
#[derive(Debug, Default)]
pub(crate) struct Hosts {
    /// Plain names, each with the servers that have it, in order.
    names: HashMap<Box<[u8]>, Vec<u32>, RandomState>,
    /// Aliases with `*` or `?`, in order.
    patterns: Vec<(Str, u32)>,
    /// Whether any virtual host is for one address only.
    pub(crate) by_address: bool,
    /// Whether some virtual hosts are for one port only and some for any.
    pub(crate) mixes_ports: bool,
}

impl Hosts {
    /// Files the virtual hosts; the first server is the main one and has none.
    pub(crate) fn new(pool: &Pool, servers: &[Server]) -> Hosts {
        let mut hosts = Hosts::default();
        let addresses = || servers.iter().skip(1).flat_map(|server| &server.addresses);
        hosts.mixes_ports = addresses().any(|address| address.port.is_some())
            && addresses().any(|address| address.port.is_none());
        for (server, number) in servers.iter().zip(0_u32..).skip(1) {
            hosts.by_address |= server.addresses.iter().any(|address| address.ip.is_some());
            let name = server.name.map(|name| name.host);
            for text in name.into_iter().chain(server.aliases.iter().copied()) {
                let bytes = pool.get(text);
                if bytes.iter().any(|byte| b"*?".contains(byte)) {
                    hosts.patterns.push((text, number));
                } else {
                    let known = hosts.names.entry(bytes.into()).or_default();
                    if known.last() != Some(&number) {
                        known.push(number);
                    }
                }
            }
        }
        hosts
    }

    /// The first server called `host`, which is in lower case, that `fits`.
    pub(crate) fn find(&self, pool: &Pool, host: &[u8], fits: impl Fn(u32) -> bool) -> Option<u32> {
        let named =
            self.names.get(host).into_iter().flatten().copied().find(|&number| fits(number));
        let matching = self.patterns.iter().find(|&&(pattern, number)| {
            named.is_none_or(|named| number < named)
                && crate::wildcard::matches_name(pool.get(pattern), host)
                && fits(number)
        });
        matching.map(|&(_, number)| number).or(named)
    }
}
