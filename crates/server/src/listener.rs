//! Binds the addresses of all `Listen` directives, once per worker.
//!
//! Each worker has its own socket per address (`SO_REUSEPORT`), so that accepting needs no sharing.
//! That option also lets a second server of the same user bind the same port without any error, and
//! take half of the connections; so a socket without it tries each address first.
//!
//! A Unix socket, and one that was handed over, cannot be there several times: its workers share it, and
//! whoever is awake takes the next connection.
//!
//! A reload binds only what is new: the sockets that stay keep their queues, so nobody is refused.

use std::fs;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::num::NonZeroUsize;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::Path;

use milepost_engine::{Listen, Settings};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use crate::endpoint::{Endpoint, Listener};
use crate::inherited::{Found, Inherited};
use crate::worker::Opened;

/// Who may connect to a Unix socket: everybody who may enter its directory, as with nginx and systemd.
const UNIX_MODE: u32 = 0o666;

/// An address that cannot be listened on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// Somebody else has it, or the system does not let us.
    #[error("cannot listen on {endpoint} ({place}): {reason}", reason = reason(endpoint, error))]
    Address {
        /// The address.
        endpoint: Endpoint,
        /// Where its `Listen` stands.
        place: String,
        /// What the system says.
        error: io::Error,
    },
    /// There is no `Listen`.
    #[error("no Listen directive: there is no address to serve on; write `Listen 8080`")]
    NoListen,
}

/// The listeners of all workers.
#[derive(Debug)]
pub(crate) struct Listeners {
    pub(crate) addresses: Vec<Bound>,
    pub(crate) workers: Vec<Vec<Opened>>,
}

/// An address that is listened on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Bound {
    /// As the configuration has it.
    pub(crate) configured: Endpoint,
    /// As it is: with the port that was chosen where 0 was asked for.
    pub(crate) actual: Endpoint,
    /// Whose socket it is.
    pub(crate) owner: Owner,
}

/// Who has made a socket, and so who ends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    Us,
    /// It was handed over, and is listened on whatever becomes of us.
    Other,
}

/// What a directive asks for: one address of one `Listen`.
struct Wanted<'s> {
    endpoint: Endpoint,
    listen: &'s Listen,
}

/// All addresses of `settings`, in order.
fn wanted(settings: &Settings) -> impl Iterator<Item = Wanted<'_>> {
    settings.listens.iter().flat_map(|listen| {
        let tcp = listen.addresses.iter().copied().map(Endpoint::Tcp);
        let unix = listen.unix.iter().cloned().map(Endpoint::Unix);
        tcp.chain(unix).map(move |endpoint| Wanted { endpoint, listen })
    })
}

/// Whether `settings` ask for this address.
pub(crate) fn is_wanted(settings: &Settings, inherited: &Inherited, endpoint: &Endpoint) -> bool {
    if settings.listens.is_empty() {
        return inherited.endpoints().any(|handed| handed == endpoint);
    }
    wanted(settings).any(|wanted| wanted.endpoint == *endpoint)
}

/// Binds all or nothing; `held` are the addresses that the caller listens on and keeps.
pub(crate) fn bind(
    settings: &Settings,
    held: &[Bound],
    inherited: &Inherited,
    workers: NonZeroUsize,
) -> Result<Listeners, BindError> {
    let mut open: Vec<(Bound, Vec<Listener>)> = Vec::new();
    let mut kept = false;
    if settings.listens.is_empty() {
        for endpoint in inherited.endpoints() {
            if held.iter().any(|bound| bound.configured == *endpoint) {
                kept = true;
            } else if let Some(Found::Own(listener)) = inherited.find(endpoint) {
                let listeners = shares(listener, workers).map_err(|error| {
                    let place = "from the service manager".to_owned();
                    BindError::Address { endpoint: endpoint.clone(), place, error }
                })?;
                open.push((Bound::new(endpoint.clone(), Owner::Other), listeners));
            }
        }
    }
    // Look at all before one is opened: a socket of ours would be taken for somebody else's.
    let mut ours = Vec::new();
    for Wanted { endpoint, listen } in wanted(settings) {
        if held.iter().any(|bound| bound.configured == endpoint) {
            kept = true;
            continue;
        }
        match inherited.find(&endpoint) {
            Some(Found::Covered) => kept = true,
            Some(Found::Own(listener)) => {
                let listeners = shares(listener, workers)
                    .map_err(|error| bind_error(&endpoint, listen, error))?;
                open.push((Bound::new(endpoint, Owner::Other), listeners));
            }
            None => match probe(&endpoint, held) {
                Ok(()) => ours.push(Wanted { endpoint, listen }),
                // A bare port means IPv6 as well, on systems that have it.
                Err(error) if is_without_ipv6(&error, &endpoint, listen) => {}
                Err(error) => return Err(bind_error(&endpoint, listen, error)),
            },
        }
    }
    for Wanted { endpoint, listen } in ours {
        let mut bound = Bound::new(endpoint, Owner::Us);
        let listeners = open_for_all(&mut bound.actual, settings.listen_backlog, workers)
            .map_err(|error| bind_error(&bound.actual, listen, error))?;
        open.push((bound, listeners));
    }
    if open.is_empty() && !kept {
        return Err(BindError::NoListen);
    }
    let mut listeners =
        Listeners { addresses: Vec::new(), workers: (0..workers.get()).map(|_| vec![]).collect() };
    for (bound, sockets) in open {
        for (worker, listener) in listeners.workers.iter_mut().zip(sockets) {
            worker.push(Opened { endpoint: bound.configured.clone(), listener });
        }
        listeners.addresses.push(bound);
    }
    Ok(listeners)
}

impl Bound {
    fn new(endpoint: Endpoint, owner: Owner) -> Bound {
        Bound { actual: endpoint.clone(), configured: endpoint, owner }
    }

    /// Removes what a socket leaves in the file system.
    pub(crate) fn remove(&self) {
        if let (Endpoint::Unix(path), Owner::Us) = (&self.actual, self.owner) {
            // The user of the server need not have the right to; then the next server does it.
            let _ = fs::remove_file(path);
        }
    }
}

/// A handle of the same socket for each worker.
fn shares(listener: &Listener, workers: NonZeroUsize) -> io::Result<Vec<Listener>> {
    (0..workers.get()).map(|_| listener.share()).collect()
}

/// Opens a socket for each worker, or one for all where the kernel cannot spread connections over several.
fn open_for_all(
    endpoint: &mut Endpoint,
    backlog: i32,
    workers: NonZeroUsize,
) -> io::Result<Vec<Listener>> {
    match endpoint {
        Endpoint::Unix(path) => shares(&Listener::Unix(listen_on_path(path, backlog)?), workers),
        Endpoint::Tcp(address) => {
            let mut listeners = Vec::with_capacity(workers.get());
            for _ in 0..workers.get() {
                let listener = listen_on(*address, backlog)?;
                // Port 0 becomes the first worker's choice for all of them.
                *address = listener.local_addr().unwrap_or(*address);
                listeners.push(Listener::Tcp(listener));
            }
            Ok(listeners)
        }
    }
}

/// Finds out whether somebody listens on `endpoint`, without listening.
fn probe(endpoint: &Endpoint, held: &[Bound]) -> io::Result<()> {
    match endpoint {
        Endpoint::Unix(path) => free(path),
        Endpoint::Tcp(address) => {
            // A socket of ours on the same port would be taken for somebody else's.
            let is_ours = |bound: &Bound| matches!(bound.configured, Endpoint::Tcp(held) if held.port() == address.port());
            if held.iter().any(is_ours) { Ok(()) } else { open(*address)?.bind(&(*address).into()) }
        }
    }
}

/// Removes a socket that nobody listens on any more: it was left by a server that was killed.
fn free(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
        Ok(metadata) if !metadata.file_type().is_socket() => {
            Err(io::ErrorKind::AlreadyExists.into())
        }
        Ok(_) => match UnixStream::connect(path) {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path),
            Ok(_) => Err(io::ErrorKind::AddrInUse.into()),
            Err(error) => Err(error),
        },
    }
}

fn listen_on_path(path: &Path, backlog: i32) -> io::Result<std::os::unix::net::UnixListener> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    socket.bind(&SockAddr::unix(path)?)?;
    fs::set_permissions(path, fs::Permissions::from_mode(UNIX_MODE))?;
    socket.listen(backlog)?;
    Ok(socket.into())
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

fn is_without_ipv6(error: &io::Error, endpoint: &Endpoint, listen: &Listen) -> bool {
    let code = error.raw_os_error();
    let absent = [rustix::io::Errno::AFNOSUPPORT, rustix::io::Errno::ADDRNOTAVAIL]
        .iter()
        .any(|errno| code == Some(errno.raw_os_error()));
    absent
        && matches!(endpoint, Endpoint::Tcp(address) if address.is_ipv6())
        && listen.addresses.len() > 1
}

fn bind_error(endpoint: &Endpoint, listen: &Listen, error: io::Error) -> BindError {
    BindError::Address { endpoint: endpoint.clone(), place: listen.place.clone(), error }
}

/// What is wrong, in the words of somebody who knows what was tried.
fn reason(endpoint: &Endpoint, error: &io::Error) -> String {
    match (error.kind(), endpoint) {
        (io::ErrorKind::AddrInUse, Endpoint::Tcp(_)) => "the port is in use".to_owned(),
        (io::ErrorKind::AddrInUse, Endpoint::Unix(_)) => "another server listens there".to_owned(),
        (io::ErrorKind::AlreadyExists, _) => "a file that is no socket is in the way".to_owned(),
        (io::ErrorKind::PermissionDenied, Endpoint::Tcp(_)) => {
            "ports below 1024 are for root (who becomes `User` afterwards) or CAP_NET_BIND_SERVICE"
                .to_owned()
        }
        (io::ErrorKind::AddrNotAvailable, _) => "this machine does not have the address".to_owned(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(addresses: &[SocketAddr]) -> Settings {
        let listen = Listen {
            addresses: addresses.to_vec(),
            place: "a.conf:3".to_owned(),
            ..Listen::default()
        };
        Settings { listens: vec![listen], ..Settings::default() }
    }

    fn tcp(endpoint: &Endpoint) -> SocketAddr {
        match endpoint {
            Endpoint::Tcp(address) => *address,
            Endpoint::Unix(path) => panic!("{}", path.display()),
        }
    }

    const TWO: NonZeroUsize = NonZeroUsize::new(2).unwrap();

    #[test]
    fn all_workers_get_the_same_port() {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let listeners = bind(&settings(&[any]), &[], &Inherited::default(), TWO).unwrap();
        let address = tcp(&listeners.addresses[0].actual);
        assert_ne!(address.port(), 0);
        for sockets in &listeners.workers {
            let Listener::Tcp(listener) = &sockets[0].listener else { panic!("not TCP") };
            assert_eq!(listener.local_addr().unwrap(), address);
        }
    }

    #[test]
    fn a_port_in_use_is_said_with_its_place() {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let first = bind(&settings(&[any]), &[], &Inherited::default(), TWO).unwrap();
        let taken = tcp(&first.addresses[0].actual);
        let error = bind(&settings(&[taken]), &[], &Inherited::default(), TWO).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("cannot listen on {taken} (a.conf:3): the port is in use")
        );
    }

    #[test]
    fn nothing_to_listen_on_is_an_error() {
        let error = bind(&settings(&[]), &[], &Inherited::default(), TWO).unwrap_err();
        assert!(matches!(error, BindError::NoListen));
    }

    #[test]
    fn a_unix_socket_is_shared_and_taken_over_from_the_dead_only() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        let listen = Listen { unix: Some(path.clone()), ..Listen::default() };
        let settings = Settings { listens: vec![listen], ..Settings::default() };
        let bind = || bind(&settings, &[], &Inherited::default(), TWO);

        let first = bind().unwrap();
        assert_eq!(first.workers.len(), 2);
        assert!(first.workers.iter().all(|listeners| listeners.len() == 1));
        let message = bind().unwrap_err().to_string();
        assert!(message.ends_with("another server listens there"), "{message}");

        // Dropped without being removed, as after a kill.
        drop(first);
        assert!(path.exists());
        let second = bind().unwrap();
        second.addresses[0].remove();
        assert!(!path.exists());

        fs::write(&path, "precious").unwrap();
        let message = bind().unwrap_err().to_string();
        assert!(message.ends_with("a file that is no socket is in the way"), "{message}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
    }
}
