//! Which server a request is for, and what that server calls itself.
//!
//! Source: httpd 2.4.71 `server/vhost.c` `update_server_from_aliases`, `find_default_server`;
//! `server/core.c` `ap_construct_url`, `ap_get_server_port`.

use std::io::Write;
use std::net::SocketAddr;

use super::Run;
use crate::pool::Pool;
use crate::program::{Address, Program, Server};
use crate::request::Scheme;
use crate::wildcard;

/// Returns the number of the server for a request for `path` that came in at `local` and names `host`.
pub(crate) fn select(program: &Program, local: SocketAddr, host: &[u8], path: &[u8]) -> usize {
    if program.servers.len() == 1 {
        return 0;
    }
    // Virtual hosts of this very address hide those of `*`, and then those of this very port the others.
    let servers = &program.servers;
    let at = |address: &Address, exact: bool| {
        let ip = match address.ip {
            Some(ip) => exact && ip == local.ip().to_canonical(),
            None => !exact,
        };
        ip && address.port.is_none_or(|port| port == local.port())
    };
    let any = |found: &dyn Fn(&Address) -> bool| {
        servers[1..].iter().any(|server| server.addresses.iter().any(found))
    };
    let exact = program.hosts.by_address && any(&|address| at(address, true));
    let hides_others =
        program.hosts.mixes_ports && any(&|address| at(address, exact) && address.port.is_some());
    let fits = |server: &Server, exact: bool| {
        let fits =
            |address: &Address| at(address, exact) && !(hides_others && address.port.is_none());
        server.addresses.iter().any(fits)
    };
    let first = || (1..servers.len()).find(|&number| fits(&servers[number], exact)).unwrap_or(0);
    if host.is_empty() {
        let has_path = |server: &Server| {
            server.path.is_some_and(|own| begins_with(path, program.pool.get(own)))
        };
        let found = (1..servers.len())
            .find(|&number| fits(&servers[number], exact) && has_path(&servers[number]));
        return found.unwrap_or_else(first);
    }
    let named =
        program.hosts.find(&program.pool, host, |number| fits(&servers[number as usize], exact));
    named.map_or_else(first, |number| number as usize)
}

/// Whether `path` begins with whole segments.
pub(super) fn begins_with(path: &[u8], start: &[u8]) -> bool {
    path.strip_prefix(start)
        .is_some_and(|rest| start.ends_with(b"/") || matches!(rest.first(), None | Some(b'/')))
}

/// Whether a server's name or one of its aliases is `host`, which is in lower case.
pub(super) fn is_called(pool: &Pool, server: &Server, host: &[u8]) -> bool {
    server.name.is_some_and(|name| pool.get(name.host) == host)
        || server.aliases.iter().any(|alias| wildcard::matches_name(pool.get(*alias), host))
}

impl Run<'_> {
    /// The name of the server, as URLs to itself have it.
    pub(super) fn write_server_name(&self, out: &mut Vec<u8>) {
        // An address of the configuration, or of the connection, stands as it is.
        let is_v6 = memchr::memchr(b':', self.host).is_some();
        let is_asked = self.naming.canonical != Some(true) || self.server.name.is_none();
        let brackets: [&[u8]; 2] = if is_v6 && is_asked { [b"[", b"]"] } else { [b"", b""] };
        out.extend_from_slice(brackets[0]);
        self.write_bare_name(out);
        out.extend_from_slice(brackets[1]);
    }

    /// The name of the server without brackets around an address.
    pub(super) fn write_bare_name(&self, out: &mut Vec<u8>) {
        let configured = self.server.name.map(|name| self.program.pool.get(name.host));
        match configured {
            Some(name) if self.naming.canonical == Some(true) || self.host.is_empty() => {
                out.extend_from_slice(name)
            }
            _ if !self.host.is_empty() => out.extend_from_slice(self.host),
            _ => write_text(out, format_args!("{}", self.request.local.ip())),
        }
    }

    /// The port of the server, as URLs to itself have it.
    pub(super) fn server_port(&self) -> u16 {
        let configured = self.server.name.and_then(|name| name.port);
        // A subrequest does not know the port of the Host field.
        let asked = self.host_port.filter(|_| self.subrequests == 0);
        let physical = Some(self.request.local.port());
        let physical = physical.filter(|_| self.naming.physical_port == Some(true));
        let port = if self.naming.canonical == Some(true) {
            configured.or(physical)
        } else {
            asked.or(physical).or(configured)
        };
        port.unwrap_or(self.default_port())
    }

    /// `https` if the connection is TLS or `ServerName` says so.
    pub(super) fn is_https(&self) -> bool {
        self.request.scheme == Scheme::Https || self.server.name.is_some_and(|name| name.https)
    }

    fn default_port(&self) -> u16 {
        if self.is_https() { 443 } else { 80 }
    }

    /// Appends `scheme://name[:port]`.
    pub(super) fn write_self_url(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(if self.is_https() { b"https://" } else { b"http://" });
        self.write_server_name(out);
        let port = self.server_port();
        if port != self.default_port() {
            write_text(out, format_args!(":{port}"));
        }
    }
}

/// Writes formatted text.
pub(super) fn write_text(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("writing to memory succeeds");
}
