//! What a run says about TLS: versions, ciphers, whom it trusts, who it is, whether it resumes.
//!
//! The settings are of the whole run and checked before it; a worker makes a configuration of its own
//! from them, so that workers share no store of sessions.
//!
//! Source: RFC 8446 (TLS 1.3), RFC 5246 (TLS 1.2), RFC 5077 and RFC 8446 section 2.2 (resumption).

pub(crate) mod certificate;
mod cipher;
mod trust;

use std::sync::Arc;

use rustls::client::{Resumption as Sessions, Tls12Resumption};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion};

pub(crate) use cipher::name as cipher_name;
pub use cipher::{CipherError, CipherList};

/// Servers whose sessions are remembered for each worker.
const SESSIONS_MAX: usize = 256;

/// Everything about TLS in a [`crate::Plan`]. By default the server must show a certificate of one of
/// [`TlsSettings::trusted`], anything that rustls has may be negotiated, and sessions are resumed.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct TlsSettings {
    /// Oldest version.
    pub version_min: TlsVersion,
    /// Newest version; the newest there is without.
    pub version_max: Option<TlsVersion>,
    /// Ciphers, in order of preference; all there are without.
    pub ciphers: Option<CipherList>,
    /// Whether a new connection takes up the session of an earlier one.
    pub resumption: Resumption,
    /// Name that the server is asked for, instead of the host of the URL.
    pub server_name: Option<String>,
    /// Whether the server is told the name that it is asked for.
    pub hides_server_name: bool,
    /// Whether any certificate will do.
    pub trusts_any: bool,
    /// Authorities that a server's certificate must be from.
    pub trusted: Vec<CertificateDer<'static>>,
    /// Certificate of the client with its chain, and its key.
    pub identity: Option<Arc<Identity>>,
}

/// Version of TLS.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum TlsVersion {
    /// TLS 1.2, the oldest that rustls has.
    #[default]
    Tls12,
    /// TLS 1.3.
    Tls13,
}

/// Whether sessions are taken up again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Resumption {
    /// With tickets, or in TLS 1.2 with whatever the server offers.
    #[default]
    Tickets,
    /// In TLS 1.2 with session ids only; in TLS 1.3 there are only tickets.
    SessionIds,
    /// Every handshake is a full one.
    Off,
}

/// A certificate of the client with its key.
#[derive(Debug)]
pub struct Identity {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

/// Why TLS cannot be done as asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// The text has no such thing in PEM.
    #[error("no {0} in PEM form")]
    NoPem(&'static str),
    /// The PEM text is broken.
    #[error("the PEM form is broken: {0}")]
    Pem(String),
    /// The newest version is older than the oldest.
    #[error("the newest version of TLS is older than the oldest")]
    Versions,
    /// A certificate cannot be an authority.
    #[error("a trusted certificate is of no use: {0}")]
    Trusted(rustls::Error),
    /// There is nobody to trust.
    #[error(
        "no authority is trusted: name one with --cacert, or take any certificate with --insecure"
    )]
    NobodyTrusted,
    /// The certificate and the key of the client.
    #[error("the client's certificate cannot be used: {0}")]
    Identity(rustls::Error),
    /// Versions and ciphers leave nothing over.
    #[error("the versions and ciphers of TLS exclude each other: {0}")]
    Nothing(rustls::Error),
    /// The name of a server.
    #[error("{0:?} is no name that a server can be asked for")]
    ServerName(String),
}

impl TlsVersion {
    /// Reads a version as `1.2`, `TLS1.2` or `TLSv1.2`.
    ///
    /// # Errors
    ///
    /// A version that rustls does not have, with those that it has.
    pub fn parse(text: &str) -> Result<Self, String> {
        let upper = text.to_ascii_uppercase();
        let number = upper.strip_prefix("TLS").unwrap_or(&upper);
        let number = number.strip_prefix('V').unwrap_or(number);
        match number {
            "1.2" => Ok(Self::Tls12),
            "1.3" => Ok(Self::Tls13),
            _ => Err(format!(
                "{text} is not there: old versions of TLS are broken, and rustls has 1.2 and 1.3"
            )),
        }
    }

    fn protocol(self) -> &'static SupportedProtocolVersion {
        match self {
            Self::Tls12 => &rustls::version::TLS12,
            Self::Tls13 => &rustls::version::TLS13,
        }
    }
}

impl Identity {
    /// Reads certificate and key from PEM, which may be one and the same text.
    ///
    /// # Errors
    ///
    /// When one of them is not there or broken.
    pub fn from_pem(certificate: &[u8], key: &[u8]) -> Result<Self, TlsError> {
        let chain = certificates(certificate)?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| match error {
            rustls::pki_types::pem::Error::NoItemsFound => TlsError::NoPem("private key"),
            other => TlsError::Pem(other.to_string()),
        })?;
        Ok(Self { chain, key })
    }
}

impl TlsSettings {
    /// Trusts the certificates in a PEM text too.
    ///
    /// # Errors
    ///
    /// When there is none or one is broken.
    pub fn trust_pem(&mut self, pem: &[u8]) -> Result<(), TlsError> {
        self.trusted.extend(certificates(pem)?);
        Ok(())
    }

    /// Makes the configuration of one worker that speaks `protocol`, if that has to be agreed upon.
    ///
    /// # Errors
    ///
    /// When the settings contradict each other.
    pub(crate) fn configuration(
        &self,
        protocol: Option<&[u8]>,
    ) -> Result<Arc<ClientConfig>, TlsError> {
        let version_max = self.version_max.unwrap_or(TlsVersion::Tls13);
        let versions: Vec<_> = [TlsVersion::Tls13, TlsVersion::Tls12]
            .into_iter()
            .filter(|version| (self.version_min..=version_max).contains(version))
            .map(TlsVersion::protocol)
            .collect();
        if versions.is_empty() {
            return Err(TlsError::Versions);
        }
        let mut provider = ring::default_provider();
        if let Some(ciphers) = &self.ciphers {
            provider.cipher_suites = ciphers.suites().to_vec();
        }
        let provider = Arc::new(provider);
        let builder = ClientConfig::builder_with_provider(provider.clone());
        let builder = builder.with_protocol_versions(&versions).map_err(TlsError::Nothing)?;
        let builder = if self.trusts_any {
            builder.dangerous().with_custom_certificate_verifier(trust::any(&provider))
        } else {
            builder.with_root_certificates(self.roots()?)
        };
        let mut configuration = match &self.identity {
            None => builder.with_no_client_auth(),
            Some(identity) => builder
                .with_client_auth_cert(identity.chain.clone(), identity.key.clone_key())
                .map_err(TlsError::Identity)?,
        };
        configuration.enable_sni = !self.hides_server_name;
        configuration.alpn_protocols = protocol.map(<[u8]>::to_vec).into_iter().collect();
        configuration.resumption = match self.resumption {
            Resumption::Off => Sessions::disabled(),
            Resumption::Tickets => Sessions::in_memory_sessions(SESSIONS_MAX),
            Resumption::SessionIds => Sessions::in_memory_sessions(SESSIONS_MAX)
                .tls12_resumption(Tls12Resumption::SessionIdOnly),
        };
        Ok(Arc::new(configuration))
    }

    /// The name that a server is asked for whose host is this in URLs.
    ///
    /// # Errors
    ///
    /// When that is no name.
    pub(crate) fn server_name(&self, host: &str) -> Result<ServerName<'static>, TlsError> {
        let name = self.server_name.as_deref().unwrap_or(host);
        let name = name.strip_suffix('.').unwrap_or(name);
        ServerName::try_from(name.to_owned()).map_err(|_| TlsError::ServerName(name.to_owned()))
    }

    fn roots(&self) -> Result<RootCertStore, TlsError> {
        if self.trusted.is_empty() {
            return Err(TlsError::NobodyTrusted);
        }
        let mut roots = RootCertStore::empty();
        let mut fault = None;
        for certificate in &self.trusted {
            if let Err(error) = roots.add(certificate.clone()) {
                fault = Some(error);
            }
        }
        // The authorities of a system may have one that is too old to be understood.
        match fault {
            Some(fault) if roots.is_empty() => Err(TlsError::Trusted(fault)),
            _ => Ok(roots),
        }
    }
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let certificates = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>();
    let certificates = certificates.map_err(|error| TlsError::Pem(error.to_string()))?;
    if certificates.is_empty() {
        return Err(TlsError::NoPem("certificate"));
    }
    Ok(certificates)
}

/// Every suite that there is.
fn suites() -> Vec<rustls::SupportedCipherSuite> {
    let CryptoProvider { cipher_suites, .. } = ring::default_provider();
    cipher_suites
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_have_several_spellings_and_old_ones_none() {
        for text in ["1.2", "TLS1.2", "TLSv1.2", "tls1.2"] {
            assert_eq!(TlsVersion::parse(text), Ok(TlsVersion::Tls12), "{text}");
        }
        for text in ["1.1", "SSL3", "TLS1", "", "1.4"] {
            assert!(TlsVersion::parse(text).unwrap_err().contains("1.2 and 1.3"), "{text}");
        }
    }

    #[test]
    fn settings_that_contradict_each_other_are_refused() {
        let mut settings = TlsSettings::default();
        assert!(matches!(settings.configuration(None), Err(TlsError::NobodyTrusted)));
        settings.trusts_any = true;
        assert!(settings.configuration(None).is_ok());
        settings.ciphers = Some(CipherList::parse("ECDHE-RSA-AES128-GCM-SHA256").unwrap());
        assert!(settings.configuration(None).is_ok());
        settings.version_min = TlsVersion::Tls13;
        assert!(matches!(settings.configuration(None), Err(TlsError::Nothing(_))));
        settings.version_max = Some(TlsVersion::Tls12);
        assert!(matches!(settings.configuration(None), Err(TlsError::Versions)));
        assert!(matches!(settings.trust_pem(b"nothing"), Err(TlsError::NoPem("certificate"))));
        assert!(settings.server_name("a b").is_err());
        assert!(settings.server_name("::1").is_ok());
    }
}
