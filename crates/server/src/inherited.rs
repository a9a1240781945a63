//! Sockets that were opened for us before we were started: systemd's socket activation.
//!
//! Whoever starts the server listens already, so nobody is refused while it starts, and it needs no right
//! to ports below 1024. A `Listen` whose address is among these sockets takes it; without any `Listen`,
//! all of them are served.
//!
//! Source: `sd_listen_fds(3)`; httpd 2.4.71 `server/listen.c`, `ap_find_systemd_socket`.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use listenfd::ListenFd;
use socket2::SockRef;

use crate::endpoint::{Endpoint, Listener};

/// Sockets that listen, and their addresses.
#[derive(Debug, Default)]
pub struct Inherited {
    sockets: Vec<Handed>,
}

#[derive(Debug)]
struct Handed {
    endpoint: Endpoint,
    /// An IPv6 wildcard that takes IPv4 too.
    both_families: bool,
    listener: Listener,
}

impl Inherited {
    /// Takes the sockets that `LISTEN_FDS` tells of, if they are for this process.
    ///
    /// Must be called before another thread is started, and once: the variables are removed.
    ///
    /// # Errors
    /// When one of them is not a listening stream socket.
    pub fn from_environment() -> io::Result<Inherited> {
        let mut passed = ListenFd::from_env();
        let mut inherited = Inherited::default();
        for number in 0..passed.len() {
            let listener = match passed.take_unix_listener(number) {
                Ok(found) => found.map(Listener::Unix),
                Err(_) => passed.take_tcp_listener(number)?.map(Listener::Tcp),
            };
            if let Some(listener) = listener {
                inherited.sockets.push(Handed::new(listener)?);
            }
        }
        Ok(inherited)
    }

    /// The addresses.
    pub(crate) fn endpoints(&self) -> impl Iterator<Item = &Endpoint> {
        self.sockets.iter().map(|handed| &handed.endpoint)
    }

    /// The socket for an address. An IPv6 wildcard may stand for the IPv4 one as well.
    pub(crate) fn find(&self, endpoint: &Endpoint) -> Option<Found<'_>> {
        let exact = self.sockets.iter().find(|handed| handed.endpoint == *endpoint);
        if let Some(handed) = exact {
            return Some(Found::Own(&handed.listener));
        }
        let Endpoint::Tcp(address) = endpoint else { return None };
        let wide = SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), address.port());
        let covered = address.ip() == IpAddr::V4(Ipv4Addr::UNSPECIFIED)
            && self
                .sockets
                .iter()
                .any(|handed| handed.both_families && handed.endpoint == Endpoint::Tcp(wide));
        covered.then_some(Found::Covered)
    }
}

/// What there is for an address.
pub(crate) enum Found<'i> {
    /// A socket of its own.
    Own(&'i Listener),
    /// Nothing is to be done: another socket takes its connections too.
    Covered,
}

impl Handed {
    fn new(listener: Listener) -> io::Result<Handed> {
        let mut both_families = false;
        let endpoint = match &listener {
            Listener::Tcp(tcp) => {
                tcp.set_nonblocking(true)?;
                let socket = SockRef::from(tcp);
                socket.set_tcp_nodelay(true)?;
                let address = tcp.local_addr()?;
                both_families = address.ip() == IpAddr::V6(Ipv6Addr::UNSPECIFIED)
                    && !socket.only_v6().unwrap_or(true);
                Endpoint::Tcp(address)
            }
            Listener::Unix(unix) => {
                unix.set_nonblocking(true)?;
                let address = unix.local_addr()?;
                let path = address.as_pathname().map(ToOwned::to_owned);
                Endpoint::Unix(path.unwrap_or_default())
            }
        };
        Ok(Handed { endpoint, both_families, listener })
    }
}
