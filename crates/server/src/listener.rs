//! Binds the addresses of all `Listen` directives, once per worker.
//!
//! Each worker has its own socket per address (`SO_REUSEPORT`), so that accepting needs no sharing.
//! That option also lets a second server of the same user bind the same port without any error, and
//! take half of the connections; so a socket without it tries each address first.
//!
//! A reload binds only what is new: the sockets that stay keep their queues, so nobody is refused.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::num::NonZeroUsize;

use milepost_engine::{Listen, Settings};
use socket2::{Domain, Protocol, Socket, Type};

use crate::worker::Opened;

/// An address that cannot be listened on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// Somebody else has it, or the system does not let us.
    #[error("cannot listen on {address} ({place}): {reason}", reason = reason(error))]
    Address {
        /// The address.
        address: SocketAddr,
        /// Where its `Listen` stands.
        place: String,
        /// What the system says.
        error: io::Error,
    },
    /// There is no `Listen`.
    #[error("no Listen directive: there is no address to serve on")]
    NoListen,
}

/// The listeners of all workers.
#[derive(Debug)]
pub(crate) struct Listeners {
    pub(crate) addresses: Vec<Bound>,
    pub(crate) workers: Vec<Vec<Opened>>,
}

/// An address that is listened on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bound {
    /// As the configuration has it.
    pub(crate) configured: SocketAddr,
    /// As it is: with the port that was chosen where 0 was asked for.
    pub(crate) actual: SocketAddr,
}

/// Binds all or nothing; `held` are the addresses that the caller listens on and keeps.
pub(crate) fn bind(
    settings: &Settings,
    held: &[Bound],
    workers: NonZeroUsize,
) -> Result<Listeners, BindError> {
    let mut addresses: Vec<(SocketAddr, &Listen)> = Vec::new();
    let mut kept = false;
    for listen in &settings.listens {
        for &address in &listen.addresses {
            if held.iter().any(|bound| bound.configured == address) {
                kept = true;
                continue;
            }
            // A socket of ours on the same port would be taken for somebody else's.
            let ours = held.iter().any(|bound| bound.configured.port() == address.port());
            match if ours { Ok(()) } else { probe(address) } {
                Ok(()) => addresses.push((address, listen)),
                // A bare port means IPv6 as well, on systems that have it.
                Err(error) if is_without_ipv6(&error, address, listen) => {}
                Err(error) => return Err(bind_error(address, listen, error)),
            }
        }
    }
    if addresses.is_empty() && !kept {
        return Err(BindError::NoListen);
    }
    let bound = |&(configured, _): &(SocketAddr, _)| Bound { configured, actual: configured };
    let mut listeners = Listeners {
        addresses: addresses.iter().map(bound).collect(),
        workers: Vec::with_capacity(workers.get()),
    };
    for _ in 0..workers.get() {
        let mut opened = Vec::with_capacity(addresses.len());
        for (bound, (_, listen)) in listeners.addresses.iter_mut().zip(&addresses) {
            let listener = listen_on(bound.actual, settings.listen_backlog)
                .map_err(|error| bind_error(bound.actual, listen, error))?;
            // Port 0 becomes the first worker's choice for all of them.
            bound.actual = listener.local_addr().unwrap_or(bound.actual);
            opened.push(Opened { address: bound.configured, listener });
        }
        listeners.workers.push(opened);
    }
    Ok(listeners)
}

/// Finds out whether somebody listens on `address`, without listening.
fn probe(address: SocketAddr) -> io::Result<()> {
    let socket = open(address)?;
    socket.bind(&address.into())
}

fn listen_on(address: SocketAddr, backlog: i32) -> io::Result<TcpListener> {
    let socket = open(address)?;
    socket.set_reuse_port(true)?;
    // Accepted connections inherit it, which saves a call for each.
    socket.set_tcp_nodelay(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(backlog)?;
    Ok(socket.into())
}

fn open(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    // Connections of a server before us that wait for their end do not keep the port.
    socket.set_reuse_address(true)?;
    if address.is_ipv6() {
        // The IPv4 wildcard has a socket of its own.
        socket.set_only_v6(true)?;
    }
    Ok(socket)
}

fn is_without_ipv6(error: &io::Error, address: SocketAddr, listen: &Listen) -> bool {
    let code = error.raw_os_error();
    let absent = [rustix::io::Errno::AFNOSUPPORT, rustix::io::Errno::ADDRNOTAVAIL]
        .iter()
        .any(|errno| code == Some(errno.raw_os_error()));
    absent && address.is_ipv6() && listen.addresses.len() > 1
}

fn bind_error(address: SocketAddr, listen: &Listen, error: io::Error) -> BindError {
    BindError::Address { address, place: listen.place.clone(), error }
}

/// What is wrong, in the words of somebody who knows what was tried.
fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => "the port is in use".to_owned(),
        io::ErrorKind::PermissionDenied => "ports below 1024 need more rights".to_owned(),
        io::ErrorKind::AddrNotAvailable => "this machine does not have the address".to_owned(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(addresses: &[SocketAddr]) -> Settings {
        let listen = Listen { addresses: addresses.to_vec(), place: "a.conf:3".to_owned() };
        Settings { listens: vec![listen], ..Settings::default() }
    }

    const TWO: NonZeroUsize = NonZeroUsize::new(2).unwrap();

    #[test]
    fn all_workers_get_the_same_port() {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let listeners = bind(&settings(&[any]), &[], TWO).unwrap();
        let address = listeners.addresses[0].actual;
        assert_ne!(address.port(), 0);
        for sockets in &listeners.workers {
            assert_eq!(sockets[0].listener.local_addr().unwrap(), address);
        }
    }

    #[test]
    fn a_port_in_use_is_said_with_its_place() {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let first = bind(&settings(&[any]), &[], TWO).unwrap();
        let taken = first.addresses[0].actual;
        let error = bind(&settings(&[taken]), &[], TWO).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("cannot listen on {taken} (a.conf:3): the port is in use")
        );
    }

    #[test]
    fn nothing_to_listen_on_is_an_error() {
        let error = bind(&settings(&[]), &[], TWO).unwrap_err();
        assert!(matches!(error, BindError::NoListen));
    }
}
