//! TLS of a site: which server shakes hands with whom, with which certificate, and what is known then.
//!
//! A connection to an address is TLS if it is so for the first server of the address. The handshake is
//! that of the virtual host that the client names in it (SNI), or else of the first one; each has a
//! configuration of its own, so that versions, suites and what clients must show can differ. The engine
//! then sees to it that no request slips through a connection that was made for another host.
//!
//! All workers share one [`Tls`]; a reload makes a new one and hands over the sessions of the old one, so
//! that clients go on resuming. Cryptography is *ring*'s.
//!
//! Source: httpd 2.4.71 `modules/ssl/ssl_engine_kernel.c`, `init_vhost`, `ssl_find_vhost`;
//! `mod_ssl.c`, `ssl_init_ssl_connection`.

mod backend;
mod certificate;
mod client;
mod config;
mod handshake;
mod name;
mod pem;
mod session;
mod signature;
mod ticket;
mod variable;

use std::net::SocketAddr;
use std::sync::Arc;

use milepost_engine::{Protocol, Site, TlsBackend, TlsFault, TlsServer};
use rustls::server::ClientHello;
use rustls::{ClientConfig, ServerConfig};

use certificate::Certificates;
use session::Sessions;

pub(crate) use backend::examine as examine_backend;
pub(crate) use handshake::serve;
pub use variable::TlsSession;

/// The TLS of a site.
pub struct Tls {
    site: Arc<Site>,
    /// By the number of the server.
    hosts: Vec<Option<Arc<Host>>>,
    /// To backends, by the number of the server.
    backends: Vec<Option<Arc<ClientConfig>>>,
    /// The same for `<Proxy>` sections, by their numbers.
    sections: Vec<Option<Arc<ClientConfig>>>,
    sessions: Sessions,
}

/// The TLS of one server.
struct Host {
    /// Preferring HTTP/1.1, and preferring HTTP/2; the same if only one of them is spoken.
    http1_first: Arc<ServerConfig>,
    h2_first: Arc<ServerConfig>,
    certificates: Arc<Certificates>,
    client: Option<Arc<client::ClientVerifier>>,
}

/// Why a site cannot speak TLS.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct TlsError {
    message: String,
}

impl TlsError {
    fn new(faults: Vec<TlsFault>) -> TlsError {
        let messages: Vec<_> = faults.into_iter().map(|fault| fault.message).collect();
        TlsError { message: messages.join("; ") }
    }
}

/// Makes each configuration once, however many servers or sections have it.
fn to_backends(
    settings: &[Option<TlsBackend>],
) -> Result<Vec<Option<Arc<ClientConfig>>>, TlsError> {
    let mut made: Vec<Option<Arc<ClientConfig>>> = Vec::with_capacity(settings.len());
    for (number, backend) in settings.iter().enumerate() {
        let same = settings[..number].iter().position(|other| other == backend);
        made.push(match same {
            Some(same) => made[same].clone(),
            None => backend.as_ref().map(backend::build).transpose().map_err(TlsError::new)?,
        });
    }
    Ok(made)
}

/// What was decided at a client's first words.
struct Chosen {
    config: Arc<ServerConfig>,
    host: Arc<Host>,
    /// What the engine compares requests with.
    class: u64,
    certificate: Option<Arc<rustls::sign::CertifiedKey>>,
}

/// Tells what is wrong with the files of a server.
pub(crate) fn examine(server: &TlsServer) -> Vec<TlsFault> {
    let sessions = Sessions::default();
    config::build(server, &sessions).err().unwrap_or_default()
}

impl Tls {
    /// Reads the certificates and keys of `site`; `None` if no server of it speaks TLS, to
    /// clients or to backends. Sessions of
    /// `before` can be resumed with servers that ask the same of their clients.
    ///
    /// # Errors
    /// When a file has become unusable since the site was loaded.
    pub fn new(site: &Arc<Site>, before: Option<&Tls>) -> Result<Option<Tls>, TlsError> {
        let settings = site.settings();
        let is_off = settings.tls.servers.iter().all(Option::is_none);
        let mut to_backends = settings.tls.backends.iter().chain(&settings.tls.sections);
        if is_off && to_backends.all(Option::is_none) {
            return Ok(None);
        }
        let sessions = Sessions::new(&settings.tls, before.map(|before| &before.sessions));
        let mut hosts: Vec<Option<Arc<Host>>> = Vec::with_capacity(settings.tls.servers.len());
        for (number, server) in settings.tls.servers.iter().enumerate() {
            let Some(server) = server else {
                hosts.push(None);
                continue;
            };
            let protocols = &settings.protocols[number];
            // Thousands of virtual hosts may share one certificate.
            let same = settings.tls.servers[..number]
                .iter()
                .position(|other| other.as_ref() == Some(server));
            if let Some(same) = same.filter(|&same| settings.protocols[same] == *protocols) {
                hosts.push(hosts[same].clone());
                continue;
            }
            let built = config::build(server, &sessions).map_err(TlsError::new)?;
            hosts.push(Some(Arc::new(built.into_host(protocols.has(Protocol::H2)))));
        }
        let backends = self::to_backends(&settings.tls.backends)?;
        let sections = self::to_backends(&settings.tls.sections)?;
        Ok(Some(Tls { site: Arc::clone(site), hosts, backends, sections, sessions }))
    }

    /// How a server speaks TLS to backends, or a `<Proxy>` section of it; `None` if it does not.
    pub(crate) fn to_backends(
        &self,
        server: usize,
        section: Option<usize>,
    ) -> Option<Arc<ClientConfig>> {
        match section {
            Some(section) => self.sections.get(section).cloned().flatten(),
            None => self.backends.get(server).cloned().flatten(),
        }
    }

    /// Whether connections to `local` are TLS.
    pub(crate) fn is_at(&self, local: SocketAddr) -> bool {
        self.hosts[self.site.server_at(local, None)].is_some()
    }

    /// Chooses by what a client says first.
    fn choose(&self, local: SocketAddr, hello: &ClientHello<'_>) -> Option<Chosen> {
        let settings = self.site.settings();
        let base = self.site.server_at(local, None);
        let named = hello.server_name().map_or(base, |name| self.site.server_at(local, Some(name)));
        // A virtual host without TLS of its own is reached with that of the address.
        let host = self.hosts[named].as_ref().or(self.hosts[base].as_ref())?;
        let class = settings.tls.servers[named].as_ref().map_or(0, |server| server.class);
        let h2_first = match &settings.protocols[named] {
            protocols if protocols.own_order => {
                let tls = |protocol: &&Protocol| **protocol != Protocol::H2c;
                protocols.order.iter().find(tls) == Some(&Protocol::H2)
            }
            _ => {
                let mut offered = hello.alpn().into_iter().flatten();
                offered.find(|name| matches!(*name, b"h2" | b"http/1.1")) == Some(b"h2")
            }
        };
        let config = if h2_first { &host.h2_first } else { &host.http1_first };
        Some(Chosen {
            config: Arc::clone(config),
            certificate: host.certificates.choose(hello),
            host: Arc::clone(host),
            class,
        })
    }
}
