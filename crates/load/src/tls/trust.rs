//! Takes any certificate, for servers that nobody vouches for.
//!
//! That the server has the key of its certificate is checked still, where the certificate can be read.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, Error, SignatureScheme};

/// The verifier that does not verify.
pub(super) fn any(provider: &CryptoProvider) -> Arc<dyn ServerCertVerifier> {
    Arc::new(Any { algorithms: provider.signature_verification_algorithms })
}

#[derive(Debug)]
struct Any {
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for Any {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        lenient(verify_tls12_signature(message, certificate, signed, &self.algorithms))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        lenient(verify_tls13_signature(message, certificate, signed, &self.algorithms))
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

/// A certificate of a form that is too old or too odd to be read is taken as it is.
fn lenient(
    verified: Result<HandshakeSignatureValid, Error>,
) -> Result<HandshakeSignatureValid, Error> {
    match verified {
        Err(Error::InvalidCertificate(error)) if error != CertificateError::BadSignature => {
            Ok(HandshakeSignatureValid::assertion())
        }
        other => other,
    }
}
