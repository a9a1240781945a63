//! Ports for the servers: free ones that the kernel will not give to anybody in the meantime.
//!
//! A port from the ephemeral range may become the local port of any outgoing connection, the lab's
//! own among them, between the moment it was found free and the start of the server. So ports come
//! from below that range. Who listens on one explicitly can still be faster; the server's own
//! message then says so.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::ops::Range;

/// The first port that is tried: below, too many services have their fixed port.
const PORT_MIN: u16 = 10_000;

/// How many ports are tried for each one needed.
const TRIES: usize = 200;

/// Returns `count` different free addresses on the loopback interface.
///
/// # Errors
///
/// When not enough free ports were found.
pub(crate) fn free(count: usize) -> io::Result<Vec<SocketAddr>> {
    let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let candidates = below_ephemeral(&range);
    // All are held until the last is found, so that no two are the same.
    let mut held = Vec::with_capacity(count);
    for _ in 0..count.saturating_mul(TRIES) {
        if held.len() == count {
            break;
        }
        held.extend(TcpListener::bind((Ipv4Addr::LOCALHOST, fastrand::u16(candidates.clone()))));
    }
    if held.len() < count {
        let message = format!("only {} of {count} ports found free", held.len());
        return Err(io::Error::new(io::ErrorKind::AddrInUse, message));
    }
    held.iter().map(TcpListener::local_addr).collect()
}

/// Returns the ports below the ephemeral range, or nearly all when little is left below.
fn below_ephemeral(range: &str) -> Range<u16> {
    let first = range.split_whitespace().next().and_then(|first| first.parse().ok());
    match first {
        Some(first) if first >= PORT_MIN * 2 => PORT_MIN..first,
        _ => PORT_MIN..u16::MAX,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn ports_are_different_and_free() {
        let addresses = free(50).expect("fifty free ports");
        assert_eq!(addresses.iter().collect::<HashSet<_>>().len(), 50);
        for address in addresses {
            TcpListener::bind(address).unwrap_or_else(|error| panic!("{address}: {error}"));
        }
    }

    #[test]
    fn ports_lie_below_the_ephemeral_range() {
        assert_eq!(below_ephemeral("32768\t60999\n"), 10_000..32_768);
        assert_eq!(below_ephemeral("1024\t65535\n"), 10_000..65_535);
        assert_eq!(below_ephemeral(""), 10_000..65_535);
    }
}
