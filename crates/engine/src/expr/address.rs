//! Networks as `-R` and `-ipmatch` write them, and addresses in them.
//!
//! Source: apr 1.7 `network_io/unix/sockaddr.c`, `apr_ipsubnet_create`, `parse_network`,
//! `apr_ipsubnet_test`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A network: the bits that count and their values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Network {
    V4 { bits: u32, mask: u32 },
    V6 { bits: u128, mask: u128 },
}

impl Network {
    /// Reads `address`, `address/bits`, `address/mask`, or the first numbers of an IPv4 address.
    pub(super) fn parse(text: &[u8]) -> Option<Network> {
        let text = std::str::from_utf8(text).ok()?;
        let (address, mask) = match text.split_once('/') {
            Some((address, mask)) => (address, Some(mask)),
            None => (text, None),
        };
        match (address.parse().ok(), mask) {
            (Some(IpAddr::V4(address)), mask) => {
                let mask = mask.map_or(Some(u32::MAX), v4_mask)?;
                Some(Network::V4 { bits: address.to_bits() & mask, mask })
            }
            // An IPv4 address in the form of an IPv6 address is refused.
            (Some(IpAddr::V6(address)), _) if address.to_ipv4_mapped().is_some() => None,
            (Some(IpAddr::V6(address)), mask) => {
                let mask = mask.map_or(Some(u128::MAX), v6_mask)?;
                Some(Network::V6 { bits: address.to_bits() & mask, mask })
            }
            (None, None) => first_numbers(address),
            (None, Some(_)) => None,
        }
    }

    /// Whether an address is in it. An IPv4 address may come in the form of an IPv6 address.
    pub(super) fn contains(self, address: IpAddr) -> bool {
        match (self, address.to_canonical()) {
            (Network::V4 { bits, mask }, IpAddr::V4(address)) => address.to_bits() & mask == bits,
            (Network::V6 { bits, mask }, IpAddr::V6(address)) => address.to_bits() & mask == bits,
            _ => false,
        }
    }
}

/// Reads the address that a value is, for `-ipmatch`. Names are not looked up.
pub(super) fn parse_address(text: &[u8]) -> Option<IpAddr> {
    match text {
        b"localhost" => Some(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        text => std::str::from_utf8(text).ok()?.parse().ok(),
    }
}

fn v4_mask(text: &str) -> Option<u32> {
    match count(text, u32::BITS) {
        Some(count) => Some(u32::MAX << (u32::BITS - count)),
        None => text.parse().ok().map(Ipv4Addr::to_bits),
    }
}

fn v6_mask(text: &str) -> Option<u128> {
    count(text, Ipv6Addr::BITS).map(|count| u128::MAX << (Ipv6Addr::BITS - count))
}

/// How many bits count; 0 is refused.
fn count(text: &str, most: u32) -> Option<u32> {
    text.trim_ascii_start().parse().ok().filter(|count| (1..=most).contains(count))
}

/// `10.1` and `10.1.` are all addresses that begin so.
fn first_numbers(text: &str) -> Option<Network> {
    let text = text.strip_suffix('.').unwrap_or(text);
    let (mut bits, mut mask) = (0_u32, 0_u32);
    for (number, part) in text.split('.').enumerate() {
        let shift = 24_u32.checked_sub(8 * u32::try_from(number).ok()?)?;
        let digits = part.bytes().all(|byte| byte.is_ascii_digit());
        let octet = part.parse::<u8>().ok().filter(|_| digits)?;
        bits |= u32::from(octet) << shift;
        mask |= 0xff << shift;
    }
    Some(Network::V4 { bits, mask })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks() {
        check("127.0.0.0/8", "127.9.9.9", Some(true));
        check("127.0.0.9/255.0.0.0", "127.9.9.9", Some(true));
        check("127.0.0.0/ 8", "127.9.9.9", Some(true));
        check("127", "127.9.9.9", Some(true));
        check("127.0.", "127.0.9.9", Some(true));
        check("0127", "127.0.0.1", Some(true));
        check("127.0.0.1.", "127.0.0.2", Some(false));
        check("128", "127.9.9.9", Some(false));
        check("127.0.0.1", "::ffff:127.0.0.1", Some(true));
        check("2001:db8::/32", "2001:db8:1::1", Some(true));
        check("2001:db8::/32", "127.0.0.1", Some(false));
        for wrong in [
            "",
            ".",
            "x",
            "127..0",
            "127.0.0.1.5",
            "256",
            "127/8",
            "127.0.0.1/",
            "127.0.0.1/0",
            "::/0",
            "127.0.0.1/33",
            "127.0.0.1/8x",
            "::ffff:127.0.0.1",
            "localhost",
            "1/2/3",
            "+1",
        ] {
            check(wrong, "127.0.0.1", None);
        }
    }

    #[track_caller]
    fn check(network: &str, address: &str, expected: Option<bool>) {
        let found = Network::parse(network.as_bytes())
            .map(|network| network.contains(address.parse().unwrap()));
        assert_eq!(found, expected, "{network}");
    }
}
