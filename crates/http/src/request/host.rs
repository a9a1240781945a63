//! What may stand in `Host`: a name or an address, and a port.
//!
//! Names are Apache's strict ones: letters, digits, `-`, `.`, `_`, no empty label inside. A host that
//! passes can go into a `Location` as it is.
//!
//! Source: RFC 9110 section 7.2; httpd 2.4.71 `server/vhost.c`, `fix_hostname` and
//! `strict_hostname_check`, and what it answers to the rows below.

use std::net::Ipv6Addr;

use super::class::{LABEL, count};

/// Whether `value` is a host with an optional port.
pub(super) fn is_valid(value: &[u8]) -> bool {
    if let Some(literal) = value.strip_prefix(b"[") {
        let Some(end) = memchr::memchr(b']', literal) else { return false };
        return is_ipv6(&literal[..end]) && is_port_part(&literal[end + 1..]);
    }
    let mut rest = value;
    loop {
        rest = &rest[count::<LABEL>(rest)..];
        match rest {
            [b'.', b'.', ..] => return false,
            [b'.', next @ ..] => rest = next,
            port => return port.len() < value.len() && is_port_part(port),
        }
    }
}

fn is_ipv6(literal: &[u8]) -> bool {
    std::str::from_utf8(literal).is_ok_and(|text| text.parse::<Ipv6Addr>().is_ok())
}

/// Nothing, or a colon and a port that one can connect to.
fn is_port_part(part: &[u8]) -> bool {
    match part {
        [] => true,
        [b':', digits @ ..] => {
            const BEYOND: u32 = 1 << 16;
            let mut port = 0;
            for byte in digits {
                let digit = byte.wrapping_sub(b'0');
                if digit > 9 {
                    return false;
                }
                // What is beyond stays there.
                port = (10 * port + u32::from(digit)).min(BEYOND);
            }
            0 < port && port < BEYOND
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_what_apache_accepts() {
        for host in ["a", "A-1.b_c", "a.", ".a", "a:80", "a:65535", "127.0.0.1:8080", "[::1]:80"] {
            assert!(is_valid(host.as_bytes()), "{host}");
        }
    }

    #[test]
    fn refuses_what_apache_refuses() {
        for host in [
            "", ":80", "a b", "a/b", "a:b", "a:", "a:0", "a:-1", "a:65536", "a:99999", "a:80:80",
            "a..b", "a,b", "a%20b", "u@a", "a!b", "[::1", "[::1]x", "[]", "[::g]", "ä",
        ] {
            assert!(!is_valid(host.as_bytes()), "{host}");
        }
    }
}
