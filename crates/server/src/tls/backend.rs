//! TLS to the servers behind this one: who they must be, and what they are shown.
//!
//! httpd's checks are two. Whether an authority vouches for a backend is asked only with `SSLProxyVerify`.
//! Whether its certificate has the name that was asked for, and is of today, is asked always, unless
//! `SSLProxyCheckPeerName` and `SSLProxyCheckPeerExpire` are off; addresses count as names there, and so
//! does the common name beside others.
//!
//! Source: httpd 2.4.71 `modules/ssl/ssl_engine_io.c`, `ssl_io_filter_handshake`; `ssl_util_ssl.c`,
//! `modssl_X509_match_name`; `ssl_engine_kernel.c`, `ssl_callback_SSLVerify`.

use std::sync::Arc;

use milepost_engine::{TlsBackend, TlsFault, TlsPart, TlsRevocation, TlsVerify};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};
use x509_cert::Certificate;

use super::config::{self, fault};
use super::signature::Signatures;
use super::variable::{of_certificate, parse};
use super::{name, pem};

/// Tells what is wrong with the files.
pub(crate) fn examine(backend: &TlsBackend) -> Vec<TlsFault> {
    build(backend).err().unwrap_or_default()
}

/// Reads the files and makes the configuration, or says all that is wrong.
pub(super) fn build(backend: &TlsBackend) -> Result<Arc<ClientConfig>, Vec<TlsFault>> {
    let mut faults = Vec::new();
    let mut complain = |part, message: String| {
        faults.push(TlsFault { part, message, hint: None, is_warning: false });
    };
    let mut roots = Vec::new();
    let mut store = RootCertStore::empty();
    for file in &backend.authorities {
        match pem::certificates(file) {
            Ok(certificates) => roots.extend(certificates),
            Err(error) => complain(TlsPart::Authorities, error.message),
        }
    }
    for root in &roots {
        if let Err(error) = store.add(root.clone()) {
            complain(TlsPart::Authorities, format!("an authority cannot be used: {error}"));
        }
    }
    let mut lists = Vec::new();
    if backend.revocation != TlsRevocation::None {
        for file in &backend.revoked {
            match pem::lists(file) {
                Ok(found) => lists.extend(found),
                Err(error) => complain(TlsPart::Revoked, error.message),
            }
        }
    }
    let own = match &backend.own {
        None => None,
        Some(file) => match (pem::certificates(file), pem::key(file)) {
            (Ok(certificates), Ok(key)) => Some((certificates, key)),
            (Err(error), _) => {
                faults.push(fault(TlsPart::Certificate(0), error));
                None
            }
            (_, Err(error)) => {
                faults.push(fault(TlsPart::Key(0), error));
                None
            }
        },
    };
    if !faults.is_empty() {
        return Err(faults);
    }
    let mut provider = ring::default_provider();
    provider.cipher_suites = backend.suites.iter().filter_map(|name| name::suite(name)).collect();
    let provider = Arc::new(provider);
    let chains = chains(backend, store, lists, &provider)?;
    let signatures = Signatures::of(&provider);
    let verifier = Verifier { signatures, settings: backend.clone(), chains, roots };
    let unusable = |error: Error| {
        let message = format!("the certificate for backends cannot be used: {error}");
        vec![TlsFault { part: TlsPart::Certificate(0), message, hint: None, is_warning: false }]
    };
    let builder = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&config::versions(backend.versions))
        .map_err(unusable)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier));
    let config = match own {
        Some((certificates, key)) => {
            builder.with_client_auth_cert(certificates, key).map_err(unusable)?
        }
        None => builder.with_no_client_auth(),
    };
    Ok(Arc::new(config))
}

/// Makes what says whether an authority vouches for a backend; `None` if none is known.
fn chains(
    backend: &TlsBackend,
    authorities: RootCertStore,
    lists: Vec<CertificateRevocationListDer<'static>>,
    provider: &Arc<CryptoProvider>,
) -> Result<Option<Arc<WebPkiServerVerifier>>, Vec<TlsFault>> {
    if authorities.is_empty() {
        return Ok(None);
    }
    let builder =
        WebPkiServerVerifier::builder_with_provider(Arc::new(authorities), Arc::clone(provider))
            .with_crls(lists);
    let builder = match backend.revocation {
        TlsRevocation::Leaf { .. } => builder.only_check_end_entity_revocation(),
        _ => builder,
    };
    let builder = match backend.revocation {
        TlsRevocation::Leaf { strict: true } | TlsRevocation::Chain { strict: true } => builder,
        _ => builder.allow_unknown_revocation_status(),
    };
    builder.build().map(Some).map_err(|error| {
        let message = format!("certificates of backends cannot be verified: {error}");
        vec![TlsFault { part: TlsPart::Revoked, message, hint: None, is_warning: false }]
    })
}

/// Verifies backends as one server wants it.
#[derive(Debug)]
struct Verifier {
    signatures: Signatures,
    settings: TlsBackend,
    chains: Option<Arc<WebPkiServerVerifier>>,
    roots: Vec<CertificateDer<'static>>,
}

impl Verifier {
    /// Whether an authority vouches for it.
    fn check_chain(
        &self,
        certificate: &CertificateDer<'_>,
        issuers: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        now: UnixTime,
    ) -> Result<(), Error> {
        let is_root = |certificate: &CertificateDer<'_>| {
            self.roots.iter().any(|root| root.as_ref() == certificate.as_ref())
        };
        if is_root(certificate) {
            return Ok(());
        }
        let depth = self.settings.depth as usize;
        let Some(chains) = self.chains.as_ref().filter(|_| depth > 0) else {
            return Err(Error::InvalidCertificate(CertificateError::UnknownIssuer));
        };
        // The root is one of the issuers that may be, and need not be sent.
        let between = issuers.iter().take_while(|issuer| !is_root(issuer)).count();
        let issuers = &issuers[..between.min(depth - 1)];
        match chains.verify_server_cert(certificate, issuers, name, &[], now) {
            // The name is looked at last, and is not for the authorities to say.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(()),
            result => result.map(|_| ()),
        }
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        issuers: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        _ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let invalid = |error| Err(Error::InvalidCertificate(error));
        if self.settings.verify != TlsVerify::None {
            match self.check_chain(certificate, issuers, name, now) {
                Err(Error::InvalidCertificate(CertificateError::UnknownIssuer))
                    if self.settings.verify == TlsVerify::OptionalNoCa => {}
                result => result?,
            }
        }
        let Some(parsed) = parse(certificate) else {
            return invalid(CertificateError::BadEncoding);
        };
        if self.settings.checks_expiry {
            let validity = &parsed.tbs_certificate().validity();
            let seconds = |time: x509_cert::time::Time| time.to_unix_duration().as_secs();
            if now.as_secs() < seconds(validity.not_before) {
                return invalid(CertificateError::NotValidYet);
            }
            if now.as_secs() > seconds(validity.not_after) {
                return invalid(CertificateError::Expired);
            }
        }
        let TlsBackend { checks_name, checks_common_name, .. } = self.settings;
        let all_names =
            checks_name == Some(true) || checks_name.is_none() && checks_common_name != Some(false);
        let only_common = !all_names && checks_common_name == Some(true);
        let name = name.to_str();
        let fits = match (all_names, only_common) {
            (true, _) => names(&parsed).any(|own| is_name(&own, &name)),
            (_, true) => of_certificate(&parsed, "S_DN_CN")
                .is_some_and(|common| common.eq_ignore_ascii_case(&name)),
            _ => true,
        };
        if fits {
            Ok(ServerCertVerified::assertion())
        } else {
            invalid(CertificateError::NotValidForName)
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.signatures.verify_tls12(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.signatures.verify_tls13(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.signatures.algorithms().supported_schemes()
    }
}

/// The DNS names of a certificate, and its common names.
fn names(certificate: &Certificate) -> impl Iterator<Item = String> {
    let all = |variable: &'static str| {
        (0..).map_while(move |number| of_certificate(certificate, &format!("{variable}_{number}")))
    };
    all("SAN_DNS").chain(all("S_DN_CN"))
}

/// Whether a name of a certificate is that of a backend; `*.` stands for one label.
fn is_name(own: &str, name: &str) -> bool {
    own.eq_ignore_ascii_case(name)
        || own.strip_prefix('*').filter(|rest| rest.starts_with('.')).is_some_and(|rest| {
            name.find('.').is_some_and(|dot| name[dot..].eq_ignore_ascii_case(rest))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_is_one_label() {
        for (own, name, expected) in [
            ("a.example", "A.EXAMPLE", true),
            ("*.example", "a.example", true),
            ("*.example", "example", false),
            ("*.example", "a.b.example", false),
            ("*example", "a.example", false),
            ("*", "a", false),
        ] {
            assert_eq!(is_name(own, name), expected, "{own} {name}");
        }
    }
}
