//! Finds the client behind the proxies that are believed.
//!
//! The addresses in the field of `RemoteIPHeader` are taken from its end, as long as whoever has added one is
//! believed. One that is private counts only if all before it came from internal proxies.
//!
//! Source: httpd 2.4.71 `modules/metadata/mod_remoteip.c`, `remoteip_modify_request`.

use std::net::{IpAddr, SocketAddr};

use super::Run;

impl Run<'_> {
    /// The client: who has connected, or whom that asks for.
    pub(super) fn client(&self) -> SocketAddr {
        self.work.client.unwrap_or(self.request.remote)
    }

    /// Looks for the client, if it is another than who has connected. It has no port, and the fields of the request
    /// say no more of it.
    pub(super) fn find_client(&mut self) -> Option<SocketAddr> {
        let settings = &self.server.remote_ip;
        let field = settings.field.as_deref()?;
        let mut list = Vec::new();
        if !self.write_request_field(field, &mut list) {
            return None;
        }
        let asks = self.request.remote.ip().to_canonical();
        let mut client = asks;
        let mut passed = Vec::new();
        let mut is_inside = true;
        let mut is_found = false;
        let mut left = Some(&list[..]);
        while let Some(addresses) = left {
            let Some(is_internal) = settings.trusts(client) else { break };
            is_inside &= is_internal;
            let (before, last) = match memchr::memrchr(b',', addresses) {
                Some(comma) => (Some(&addresses[..comma]), &addresses[comma + 1..]),
                None => (None, addresses),
            };
            let next = address(last).filter(|next| is_inside || is_public(*next));
            let Some(next) = next else { break };
            if !is_inside {
                passed.push(client.to_string());
            }
            (client, is_found, left) = (next, true, before);
        }
        if !is_found {
            return None;
        }
        match left {
            Some(left) => self.work.request.set(field, left.trim_ascii_end()),
            None => self.work.request.take_out(field),
        }
        if let Some(field) = settings.proxies_field.as_deref().filter(|_| !passed.is_empty()) {
            self.work.request.set(field, passed.join(", ").as_bytes());
        }
        Some(SocketAddr::new(client, 0))
    }
}

fn address(text: &[u8]) -> Option<IpAddr> {
    std::str::from_utf8(text).ok()?.trim_matches(' ').parse().ok()
}

/// Whether an address can be a client's on the Internet, as httpd sees it.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(it) => !(it.is_private() || it.is_loopback() || it.is_link_local()),
        IpAddr::V6(it) => it.segments()[0] & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_addresses_are_known() {
        for (text, expected) in [
            ("7.1.1.1", true),
            ("10.0.0.1", false),
            ("127.1.1.1", false),
            ("169.254.0.1", false),
            ("172.15.0.1", true),
            ("172.31.0.1", false),
            ("192.168.3.4", false),
            ("2a00::1", true),
            ("3fff::1", true),
            ("fe80::1", false),
            ("::1", false),
        ] {
            assert_eq!(is_public(text.parse().unwrap()), expected, "{text}");
        }
    }
}
