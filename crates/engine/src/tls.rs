//! What the configuration says about TLS, server by server, and what a request says of its connection.
//!
//! The engine knows files, names and switches. Whether a file is a certificate, and what is in it, knows
//! whoever implements [`crate::Outside::examine_tls`]; the variables of a connection come in through
//! [`TlsVariables`].
//!
//! Source: httpd 2.4.71 `modules/ssl/ssl_private.h`, `SSLSrvConfigRec`, `modssl_ctx_t`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::settings::ReadTimeout;

/// TLS of a whole site.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsSettings {
    /// By the number of the server; `None` where TLS is off.
    pub servers: Vec<Option<TlsServer>>,
    /// By the number of the server: how it speaks TLS to backends; `None` where `SSLProxyEngine` is off.
    pub backends: Vec<Option<TlsBackend>>,
    /// The same for `<Proxy>` sections; [`crate::Proxied::tls`] is the number of one.
    pub sections: Vec<Option<TlsBackend>>,
    /// `SSLSessionCache`: the most bytes that sessions may take; `None`: no cache, only tickets.
    pub session_cache_bytes: Option<usize>,
    /// `SSLSessionCacheTimeout`: how long a session can be resumed; default 300 s.
    pub session_timeout: Duration,
    /// `RequestReadTimeout handshake=`; default none.
    pub handshake_timeout: Option<ReadTimeout>,
}

impl Default for TlsSettings {
    fn default() -> Self {
        TlsSettings {
            servers: Vec::new(),
            backends: Vec::new(),
            sections: Vec::new(),
            session_cache_bytes: None,
            session_timeout: Duration::from_secs(300),
            handshake_timeout: None,
        }
    }
}

/// TLS of one server.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TlsServer {
    /// `SSLCertificateFile`, each with its `SSLCertificateKeyFile`.
    pub certificates: Vec<TlsCertificate>,
    /// `SSLCertificateChainFile`
    pub chain: Option<PathBuf>,
    /// `SSLProtocol`
    pub versions: TlsVersions,
    /// `SSLCipherSuite`: the names that OpenSSL has for them, the preferred first.
    pub suites: Vec<&'static str>,
    /// `SSLHonorCipherOrder`: whether our order counts and not the client's.
    pub own_order: bool,
    /// `SSLOpenSSLConfCmd Groups`, by the names of OpenSSL; empty for the usual ones.
    pub groups: Vec<&'static str>,
    /// `SSLVerifyClient` and what belongs to it.
    pub client: TlsClient,
    /// `SSLSessionTickets`
    pub tickets: bool,
    /// `SSLSessionTicketKeyFile`
    pub ticket_key: Option<PathBuf>,
    /// `SSLUseStapling`: what the responder has said is beside the certificate, in `FILE.ocsp`.
    pub stapling: bool,
    /// What connections to one server and requests for another must have in common.
    pub class: u64,
}

impl TlsServer {
    /// All files that it is made of.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        let pairs = self.certificates.iter().flat_map(|pair| [&pair.certificate, &pair.key]);
        let client = &self.client;
        let lists = [&client.authorities, &client.shown, &client.revoked];
        let more = self.chain.iter().chain(&self.ticket_key);
        pairs.chain(lists.into_iter().flatten()).chain(more).map(PathBuf::as_path)
    }
}

/// TLS to the servers behind a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsBackend {
    /// `SSLProxyProtocol`
    pub versions: TlsVersions,
    /// `SSLProxyCipherSuite`: the names that OpenSSL has for them, the preferred first.
    pub suites: Vec<&'static str>,
    /// `SSLProxyVerify`: whether an authority must vouch for a backend.
    pub verify: TlsVerify,
    /// `SSLProxyVerifyDepth`: how many issuers there may be; 1 is a root alone.
    pub depth: u32,
    /// `SSLProxyCACertificateFile`, and the files of `SSLProxyCACertificatePath`.
    pub authorities: Vec<PathBuf>,
    /// `SSLProxyCARevocationFile` and `SSLProxyCARevocationPath`
    pub revoked: Vec<PathBuf>,
    /// `SSLProxyCARevocationCheck`
    pub revocation: TlsRevocation,
    /// `SSLProxyMachineCertificateFile`: the certificate that backends are shown, and its key.
    pub own: Option<PathBuf>,
    /// `SSLProxyCheckPeerName`, where it is said.
    pub checks_name: Option<bool>,
    /// `SSLProxyCheckPeerCN`, where it is said.
    pub checks_common_name: Option<bool>,
    /// `SSLProxyCheckPeerExpire`
    pub checks_expiry: bool,
}

impl TlsBackend {
    /// All files that it is made of.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.authorities.iter().chain(&self.revoked).chain(&self.own).map(PathBuf::as_path)
    }
}

/// A certificate and its key.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TlsCertificate {
    /// The server's certificate, and those that lead to its root.
    pub certificate: PathBuf,
    /// The private key.
    pub key: PathBuf,
}

/// Versions of TLS, of those that there are here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TlsVersions {
    /// TLS 1.2.
    pub v12: bool,
    /// TLS 1.3.
    pub v13: bool,
}

/// What a server asks of a client's certificate.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TlsClient {
    /// `SSLVerifyClient`
    pub verify: TlsVerify,
    /// `SSLVerifyDepth`: how many issuers there may be; 1 is a root alone.
    pub depth: u32,
    /// `SSLCACertificateFile`, and the files of `SSLCACertificatePath`.
    pub authorities: Vec<PathBuf>,
    /// `SSLCADNRequestFile` and `SSLCADNRequestPath`: the names that clients are shown, where they are
    /// not those of the authorities.
    pub shown: Vec<PathBuf>,
    /// `SSLCARevocationFile` and `SSLCARevocationPath`
    pub revoked: Vec<PathBuf>,
    /// `SSLCARevocationCheck`
    pub revocation: TlsRevocation,
}

/// `SSLVerifyClient`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TlsVerify {
    /// No certificate is asked for.
    None,
    /// A certificate is asked for; one that is sent must be good.
    Optional,
    /// A good certificate must be sent.
    Require,
    /// A certificate is asked for, and may be anybody's.
    OptionalNoCa,
}

/// `SSLCARevocationCheck`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TlsRevocation {
    /// Nothing is looked up.
    None,
    /// The client's own certificate is. `strict`: its issuer must have a list.
    Leaf {
        /// Not `no_crl_for_cert_ok`.
        strict: bool,
    },
    /// Those of its issuers are too.
    Chain {
        /// Not `no_crl_for_cert_ok`.
        strict: bool,
    },
}

/// What is wrong with the files of a [`TlsServer`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFault {
    /// What is to be mended.
    pub part: TlsPart,
    /// What is wrong: lower case, no full stop.
    pub message: String,
    /// What to do, when we know.
    pub hint: Option<String>,
    /// Whether it serves all the same.
    pub is_warning: bool,
}

/// A part of a [`TlsServer`] that a directive of its own has set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlsPart {
    /// `SSLCertificateFile`, by number.
    Certificate(usize),
    /// `SSLCertificateKeyFile`, by number.
    Key(usize),
    /// `SSLCertificateChainFile`
    Chain,
    /// `SSLCipherSuite`
    Suites,
    /// `SSLCACertificateFile`
    Authorities,
    /// `SSLCADNRequestFile`
    Shown,
    /// `SSLCARevocationFile`
    Revoked,
    /// `SSLSessionTicketKeyFile`
    TicketKey,
    /// `SSLUseStapling`
    Stapling,
}

/// The connection of a request that came over TLS.
#[derive(Clone, Copy)]
pub struct Tls<'a> {
    /// [`TlsServer::class`] of the server that the handshake was for; 0 if TLS is off there.
    pub class: u64,
    /// The name that the client has asked for in the handshake (SNI).
    pub name: Option<&'a str>,
    /// The variables of mod_ssl.
    pub variables: &'a dyn TlsVariables,
}

/// Which variables of mod_ssl become variables of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TlsExports {
    /// `SSLOptions StdEnvVars`
    pub standard: bool,
    /// `SSLOptions ExportCertData`
    pub certificates: bool,
}

/// The variables that mod_ssl has for a connection.
pub trait TlsVariables {
    /// Appends the value of `name` (`SSL_PROTOCOL`); false if it has none.
    fn write(&self, name: &str, out: &mut Vec<u8>) -> bool;

    /// Hands on all that `SSLOptions` makes variables of requests, each with its value.
    fn export(&self, exports: TlsExports, take: &mut dyn FnMut(&str, &[u8]));
}
