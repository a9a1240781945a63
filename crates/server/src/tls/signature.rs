//! Whether who shows a certificate has its key: the same for clients and for backends.

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::CertificateDer;
use rustls::{DigitallySignedStruct, Error};

/// Verifies signatures by the algorithms of a provider.
#[derive(Debug)]
pub(super) struct Signatures(WebPkiSupportedAlgorithms);

impl Signatures {
    pub(super) fn of(provider: &CryptoProvider) -> Signatures {
        Signatures(provider.signature_verification_algorithms)
    }

    pub(super) fn algorithms(&self) -> &WebPkiSupportedAlgorithms {
        &self.0
    }

    pub(super) fn verify_tls12(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.0)
    }

    pub(super) fn verify_tls13(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.0)
    }
}
