//! The certificates of clients: whether one is good.
//!
//! The verification is webpki's; around it stand what `SSLVerifyDepth` and `optional_no_ca` say.
//!
//! Source: httpd 2.4.71 `modules/ssl/ssl_engine_kernel.c`, `ssl_callback_SSLVerify`; RFC 5280 section 6.

use std::sync::Arc;

use milepost_engine::{TlsFault, TlsPart, TlsRevocation, TlsServer, TlsVerify};
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, RootCertStore,
    SignatureScheme,
};

use super::config::fault;
use super::pem;
use super::signature::Signatures;

/// Verifies certificates as one server wants it.
#[derive(Debug)]
pub(super) struct ClientVerifier {
    /// `None`: nobody is known, and so nobody is good.
    inner: Option<Arc<dyn ClientCertVerifier>>,
    signatures: Signatures,
    /// `None`: those of the authorities.
    shown: Option<Vec<DistinguishedName>>,
    roots: Vec<CertificateDer<'static>>,
    depth: usize,
    verify: TlsVerify,
}

/// What came of looking at a client's certificate: `SSL_CLIENT_VERIFY`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verified {
    /// There was none.
    None,
    Success,
    /// Whose it is does not matter here.
    Generous,
}

/// Makes the verifier of a server; `None` if it asks clients for nothing.
pub(super) fn verifier(
    server: &TlsServer,
    provider: &Arc<CryptoProvider>,
) -> Result<Option<Arc<ClientVerifier>>, Vec<TlsFault>> {
    let client = &server.client;
    if client.verify == TlsVerify::None {
        return Ok(None);
    }
    let mut faults = Vec::new();
    let mut collect = |files: &[std::path::PathBuf], part| {
        let mut all = Vec::new();
        for file in files {
            match pem::certificates(file) {
                Ok(certificates) => all.extend(certificates),
                Err(error) => faults.push(fault(part, error)),
            }
        }
        all
    };
    let roots = collect(&client.authorities, TlsPart::Authorities);
    let shown = collect(&client.shown, TlsPart::Shown);
    let mut lists = Vec::new();
    if client.revocation != TlsRevocation::None {
        for file in &client.revoked {
            match pem::lists(file) {
                Ok(found) => lists.extend(found),
                Err(error) => faults.push(fault(TlsPart::Revoked, error)),
            }
        }
    }
    let mut store = RootCertStore::empty();
    for root in &roots {
        if let Err(error) = store.add(root.clone()) {
            let message = format!("an authority cannot be used: {error}");
            faults.push(complaint(TlsPart::Authorities, message));
        }
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    let shown = (!shown.is_empty()).then(|| {
        let mut names = RootCertStore::empty();
        names.add_parsable_certificates(shown);
        names.subjects()
    });
    let inner = if store.is_empty() {
        // `optional_no_ca` without any authority: nobody is known, and all are let in.
        None
    } else {
        let builder =
            WebPkiClientVerifier::builder_with_provider(Arc::new(store), Arc::clone(provider));
        let builder = match client.verify {
            TlsVerify::Require => builder,
            _ => builder.allow_unauthenticated(),
        };
        let builder = builder.with_crls(lists);
        let builder = match client.revocation {
            TlsRevocation::Leaf { .. } => builder.only_check_end_entity_revocation(),
            _ => builder,
        };
        let builder = match client.revocation {
            TlsRevocation::Leaf { strict: true } | TlsRevocation::Chain { strict: true } => builder,
            _ => builder.allow_unknown_revocation_status(),
        };
        let built = builder.build().map_err(|error| {
            let message = format!("certificates of clients cannot be verified: {error}");
            vec![complaint(TlsPart::Authorities, message)]
        });
        Some(built?)
    };
    let signatures = Signatures::of(provider);
    let (depth, verify) = (client.depth as usize, client.verify);
    Ok(Some(Arc::new(ClientVerifier { inner, signatures, shown, roots, depth, verify })))
}

fn complaint(part: TlsPart, message: String) -> TlsFault {
    TlsFault { part, message, hint: None, is_warning: false }
}

impl ClientVerifier {
    /// Says again what was said of a certificate during the handshake, or of one that was resumed.
    pub(super) fn verdict(&self, chain: Option<&[CertificateDer<'_>]>) -> Verified {
        let Some([first, rest @ ..]) = chain else { return Verified::None };
        if self.verify != TlsVerify::OptionalNoCa
            || self.check(first, rest, UnixTime::now()).is_ok()
        {
            Verified::Success
        } else {
            Verified::Generous
        }
    }

    fn check(
        &self,
        first: &CertificateDer<'_>,
        issuers: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let is_root = |certificate: &CertificateDer<'_>| {
            self.roots.iter().any(|root| root.as_ref() == certificate.as_ref())
        };
        let Some(inner) = self.inner.as_ref().filter(|_| self.depth > 0 || is_root(first)) else {
            return Err(Error::InvalidCertificate(CertificateError::UnknownIssuer));
        };
        // The root is one of the issuers that may be, and need not be sent.
        let between = issuers.iter().take_while(|issuer| !is_root(issuer)).count();
        let allowed = between.min(self.depth.saturating_sub(1));
        inner.verify_client_cert(first, &issuers[..allowed], now)
    }
}

impl ClientCertVerifier for ClientVerifier {
    fn client_auth_mandatory(&self) -> bool {
        self.verify == TlsVerify::Require
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        let known = || self.inner.as_ref().map_or(&[][..], |inner| inner.root_hint_subjects());
        self.shown.as_deref().unwrap_or_else(known)
    }

    fn verify_client_cert(
        &self,
        first: &CertificateDer<'_>,
        issuers: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        match self.check(first, issuers, now) {
            // Whether it is malformed is for the signature to say.
            Err(_) if self.verify == TlsVerify::OptionalNoCa => Ok(ClientCertVerified::assertion()),
            result => result,
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
