//! Where a connection goes: an address of the network, or a socket in the file system.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::names::Names;

/// What is connected to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// Address and port.
    Tcp(SocketAddr),
    /// Path of a Unix socket.
    Unix(Arc<Path>),
}

impl From<SocketAddr> for Endpoint {
    fn from(address: SocketAddr) -> Self {
        Self::Tcp(address)
    }
}

impl From<PathBuf> for Endpoint {
    fn from(path: PathBuf) -> Self {
        Self::Unix(path.into())
    }
}

impl Endpoint {
    /// The address for connection number `turn`, where there are several to choose from.
    pub(crate) fn in_turn(&self, names: Option<&Names>, turn: usize) -> Option<SocketAddr> {
        match self {
            Self::Tcp(address) => names.map(|names| names.address(*address, turn)),
            Self::Unix(_) => None,
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}
