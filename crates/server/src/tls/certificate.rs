//! The certificates of one server, and which of them a client gets.
//!
//! Several make sense with several kinds of keys. A client that can verify ECDSA gets such a certificate,
//! as signing with it costs a tenth of what RSA costs; all others get RSA.

use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{CipherSuite, Error, InconsistentKeys, SignatureAlgorithm};

use milepost_engine::{TlsFault, TlsPart, TlsServer};

use super::config::fault;
use super::pem;

/// The certificates of one server, the preferred first.
#[derive(Debug)]
pub(super) struct Certificates {
    keys: Vec<Arc<CertifiedKey>>,
}

impl Certificates {
    /// Reads the files of a server.
    pub(super) fn read(
        server: &TlsServer,
        provider: &CryptoProvider,
    ) -> Result<Certificates, Vec<TlsFault>> {
        let mut faults = Vec::new();
        let chain = match server.chain.as_deref().map(pem::certificates).transpose() {
            Ok(chain) => chain.unwrap_or_default(),
            Err(error) => {
                faults.push(fault(TlsPart::Chain, error));
                Vec::new()
            }
        };
        let mut keys = Vec::new();
        for (number, pair) in server.certificates.iter().enumerate() {
            let certificates = pem::certificates(&pair.certificate)
                .map_err(|error| faults.push(fault(TlsPart::Certificate(number), error)));
            let key = pem::key(&pair.key)
                .map_err(|error| faults.push(fault(TlsPart::Key(number), error)));
            let (Ok(mut certificates), Ok(key)) = (certificates, key) else { continue };
            certificates.extend(chain.iter().cloned());
            let signing = match provider.key_provider.load_private_key(key) {
                Ok(signing) => signing,
                Err(error) => {
                    let message =
                        format!("the key in {} cannot be used: {error}", pair.key.display());
                    let hint = "RSA from 2048 bits, ECDSA with P-256 or P-384, and Ed25519 can";
                    faults.push(TlsFault {
                        part: TlsPart::Key(number),
                        message,
                        hint: Some(hint.to_owned()),
                        is_warning: false,
                    });
                    continue;
                }
            };
            let mut certified = CertifiedKey::new(certificates, signing);
            match certified.keys_match() {
                Ok(()) | Err(Error::InconsistentKeys(InconsistentKeys::Unknown)) => {}
                Err(Error::InconsistentKeys(_)) => {
                    let message = format!(
                        "the certificate in {} is not for the key in {}",
                        pair.certificate.display(),
                        pair.key.display()
                    );
                    let hint = "`openssl pkey -in KEY -pubout` and `openssl x509 -in CERTIFICATE -noout -pubkey` must print the same";
                    faults.push(TlsFault {
                        part: TlsPart::Key(number),
                        message,
                        hint: Some(hint.to_owned()),
                        is_warning: false,
                    });
                    continue;
                }
                Err(error) => {
                    let message = format!(
                        "the certificate in {} is malformed: {error}",
                        pair.certificate.display()
                    );
                    faults.push(TlsFault {
                        part: TlsPart::Certificate(number),
                        message,
                        hint: None,
                        is_warning: false,
                    });
                    continue;
                }
            }
            if server.stapling {
                // A response that is not there is not stapled; it is fetched by whoever renews it.
                let mut name = pair.certificate.clone().into_os_string();
                name.push(".ocsp");
                certified.ocsp = std::fs::read(name).ok().filter(|response| !response.is_empty());
            }
            keys.push(Arc::new(certified));
        }
        // Stable: of two of a kind the first counts.
        keys.sort_by_key(|key| key.key.algorithm() == SignatureAlgorithm::RSA);
        if faults.is_empty() { Ok(Certificates { keys }) } else { Err(faults) }
    }

    /// The kinds of keys there are.
    pub(super) fn algorithms(&self) -> impl Iterator<Item = SignatureAlgorithm> {
        self.keys.iter().map(|key| key.key.algorithm())
    }

    /// Returns the first certificate that the client can verify.
    pub(super) fn choose(&self, hello: &ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let fits = |key: &&Arc<CertifiedKey>| {
            key.key.choose_scheme(hello.signature_schemes()).is_some()
                && hello.cipher_suites().iter().any(|&suite| is_for(suite, key.key.algorithm()))
        };
        self.keys.iter().find(fits).cloned()
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.choose(&hello)
    }
}

/// Whether a suite goes with a kind of key: all those of TLS 1.3 do.
fn is_for(suite: CipherSuite, algorithm: SignatureAlgorithm) -> bool {
    use CipherSuite as Suite;
    match suite {
        Suite::TLS13_AES_128_GCM_SHA256
        | Suite::TLS13_AES_256_GCM_SHA384
        | Suite::TLS13_CHACHA20_POLY1305_SHA256 => true,
        Suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256
        | Suite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384
        | Suite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256 => {
            algorithm == SignatureAlgorithm::RSA
        }
        Suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256
        | Suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384
        | Suite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256 => {
            algorithm != SignatureAlgorithm::RSA
        }
        _ => false,
    }
}
