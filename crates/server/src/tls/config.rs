//! Makes what rustls needs of what the configuration says about one server.
//!
//! Source: httpd 2.4.71 `modules/ssl/ssl_engine_init.c`, `ssl_init_ctx`, `ssl_init_server_certs`.

use std::sync::Arc;

use milepost_engine::{TlsFault, TlsPart, TlsServer, TlsVersions};
use rustls::crypto::{CryptoProvider, SupportedKxGroup, ring};
use rustls::server::NoServerSessionStorage;
use rustls::{
    ServerConfig, SignatureAlgorithm, SupportedCipherSuite, SupportedProtocolVersion, version,
};

use super::Host;
use super::certificate::Certificates;
use super::client::{self, ClientVerifier};
use super::name;
use super::pem::PemError;
use super::session::Sessions;

/// A configuration that lacks nothing but the protocols.
pub(super) struct Built {
    config: ServerConfig,
    certificates: Arc<Certificates>,
    client: Option<Arc<ClientVerifier>>,
}

impl Built {
    /// Adds the protocols. HTTP/1.1 is always there, as a last resort.
    pub(super) fn into_host(self, h2: bool) -> Host {
        let with = |protocols: &[&str]| {
            let mut config = self.config.clone();
            config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
            Arc::new(config)
        };
        let (http1_first, h2_first) = if h2 {
            (with(&["http/1.1", "h2"]), with(&["h2", "http/1.1"]))
        } else {
            let only = with(&["http/1.1"]);
            (Arc::clone(&only), only)
        };
        Host { http1_first, h2_first, certificates: self.certificates, client: self.client }
    }
}

/// Reads the files of a server and makes its configuration, or says all that is wrong.
pub(super) fn build(server: &TlsServer, sessions: &Sessions) -> Result<Built, Vec<TlsFault>> {
    let mut faults = Vec::new();
    let mut provider = ring::default_provider();
    provider.cipher_suites = server.suites.iter().filter_map(|name| name::suite(name)).collect();
    if !server.groups.is_empty() {
        provider.kx_groups = server.groups.iter().filter_map(|name| group(name)).collect();
    }
    let provider = Arc::new(provider);
    let certificates =
        Certificates::read(server, &provider).map_err(|found| faults.extend(found)).ok();
    let client =
        client::verifier(server, &provider).map_err(|found| faults.extend(found)).ok().flatten();
    let context = sessions.context(server).map_err(|error| faults.push(error)).ok();
    if let Some(certificates) = &certificates {
        faults.extend(unusable(server, certificates, &provider));
    }
    let (Some(certificates), Some(context), true) = (certificates, context, faults.is_empty())
    else {
        return Err(faults);
    };
    let certificates = Arc::new(certificates);
    let other = |error: rustls::Error| {
        vec![TlsFault {
            part: TlsPart::Suites,
            message: format!("versions and cipher suites do not go together: {error}"),
            hint: None,
            is_warning: false,
        }]
    };
    let builder = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&versions(server.versions))
        .map_err(other)?;
    let builder = match &client {
        Some(client) => builder.with_client_cert_verifier(Arc::clone(client) as _),
        None => builder.with_no_client_auth(),
    };
    let resolver = Arc::clone(&certificates);
    let mut config = builder.with_cert_resolver(resolver);
    config.ignore_client_order = server.own_order;
    match context.cache {
        Some(cache) => config.session_storage = cache,
        None => config.session_storage = Arc::new(NoServerSessionStorage {}),
    }
    if let Some(tickets) = context.tickets {
        config.ticketer = tickets;
    } else if !config.session_storage.can_cache() {
        config.send_tls13_tickets = 0;
    }
    Ok(Built { config, certificates, client })
}

/// Complains about TLS 1.2 alone with suites that none of the keys can sign for.
fn unusable(
    server: &TlsServer,
    certificates: &Certificates,
    provider: &CryptoProvider,
) -> Option<TlsFault> {
    if server.versions.v13 {
        return None;
    }
    let fits = |suite: &SupportedCipherSuite| {
        certificates.algorithms().any(|algorithm| suite.usable_for_signature_algorithm(algorithm))
    };
    if provider.cipher_suites.iter().any(fits) {
        return None;
    }
    let rsa = certificates.algorithms().any(|algorithm| algorithm == SignatureAlgorithm::RSA);
    let kind = if rsa { "ECDHE-RSA" } else { "ECDHE-ECDSA" };
    Some(TlsFault {
        part: TlsPart::Suites,
        message: "no cipher suite goes with the certificate".to_owned(),
        hint: Some(format!("its key needs suites that begin with `{kind}`")),
        is_warning: false,
    })
}

pub(super) fn versions(wanted: TlsVersions) -> Vec<&'static SupportedProtocolVersion> {
    let all = [(wanted.v13, &version::TLS13), (wanted.v12, &version::TLS12)];
    all.into_iter().filter_map(|(on, version)| on.then_some(version)).collect()
}

fn group(name: &str) -> Option<&'static dyn SupportedKxGroup> {
    Some(match name {
        "X25519" => ring::kx_group::X25519,
        "P-256" => ring::kx_group::SECP256R1,
        "P-384" => ring::kx_group::SECP384R1,
        _ => return None,
    })
}

/// What is wrong with a file, at the directive that names it.
pub(super) fn fault(part: TlsPart, error: PemError) -> TlsFault {
    let PemError { message, hint } = error;
    TlsFault { part, message, hint: hint.map(str::to_owned), is_warning: false }
}
