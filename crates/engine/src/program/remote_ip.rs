//! Who is believed when it says for whom it asks: mod_remoteip.

use std::net::IpAddr;
use std::sync::Arc;

use super::Network;

/// `RemoteIPHeader` and its relatives.
#[derive(Debug, Clone, Default)]
pub(crate) struct RemoteIp {
    /// `RemoteIPHeader`: the request field with the addresses, the last one next to us.
    pub(crate) field: Option<Box<[u8]>>,
    /// `RemoteIPProxiesHeader`: the request field that gets the addresses of the proxies.
    pub(crate) proxies_field: Option<Box<[u8]>>,
    /// The proxies that are believed; `None`: whoever asks.
    pub(crate) proxies: Option<Arc<[TrustedProxy]>>,
}

/// A network of proxies.
#[derive(Debug, Clone)]
pub(crate) struct TrustedProxy {
    pub(crate) network: Network,
    /// `RemoteIPInternalProxy`: what comes through it may have a private address.
    pub(crate) is_internal: bool,
}

impl RemoteIp {
    /// Takes what the main server says where this says nothing.
    pub(crate) fn inherit(&mut self, main: &RemoteIp) {
        for (own, main) in
            [(&mut self.field, &main.field), (&mut self.proxies_field, &main.proxies_field)]
        {
            if own.is_none() {
                own.clone_from(main);
            }
        }
        if self.proxies.is_none() {
            self.proxies.clone_from(&main.proxies);
        }
    }

    /// Whether `address` is believed, and if so, whether it is an internal proxy.
    pub(crate) fn trusts(&self, address: IpAddr) -> Option<bool> {
        let Some(proxies) = &self.proxies else { return Some(false) };
        let mut proxies = proxies.iter();
        let found = proxies.find(|proxy| proxy.network.contains(address))?;
        Some(found.is_internal)
    }
}
