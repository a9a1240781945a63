//! The names that OpenSSL has for what rustls names otherwise.

use rustls::crypto::ring::cipher_suite as ring;
use rustls::{CipherSuite, ProtocolVersion, SupportedCipherSuite};

/// Suites, the names that OpenSSL has for them, and the bits of their keys.
const SUITES: &[(&str, SupportedCipherSuite, u16)] = &[
    ("TLS_AES_256_GCM_SHA384", ring::TLS13_AES_256_GCM_SHA384, 256),
    ("TLS_CHACHA20_POLY1305_SHA256", ring::TLS13_CHACHA20_POLY1305_SHA256, 256),
    ("TLS_AES_128_GCM_SHA256", ring::TLS13_AES_128_GCM_SHA256, 128),
    ("ECDHE-ECDSA-AES256-GCM-SHA384", ring::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, 256),
    ("ECDHE-RSA-AES256-GCM-SHA384", ring::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384, 256),
    ("ECDHE-ECDSA-CHACHA20-POLY1305", ring::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, 256),
    ("ECDHE-RSA-CHACHA20-POLY1305", ring::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256, 256),
    ("ECDHE-ECDSA-AES128-GCM-SHA256", ring::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, 128),
    ("ECDHE-RSA-AES128-GCM-SHA256", ring::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, 128),
];

/// The suite of a name.
pub(super) fn suite(name: &str) -> Option<SupportedCipherSuite> {
    SUITES.iter().find(|(known, ..)| *known == name).map(|(_, suite, _)| *suite)
}

/// The name of a suite, and the bits of its key.
pub(super) fn of_suite(suite: CipherSuite) -> Option<(&'static str, u16)> {
    let known = SUITES.iter().find(|(_, known, _)| known.suite() == suite);
    known.map(|(name, _, bits)| (*name, *bits))
}

/// The name of a version.
pub(super) fn of_version(version: ProtocolVersion) -> Option<&'static str> {
    match version {
        ProtocolVersion::TLSv1_2 => Some("TLSv1.2"),
        ProtocolVersion::TLSv1_3 => Some("TLSv1.3"),
        _ => None,
    }
}
