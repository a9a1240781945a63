//! Reads PEM files: certificates, keys, revocation lists.
//!
//! Source: RFC 7468.

use std::fs;
use std::path::Path;

use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};

/// Why a file does not give what it should. The words name the file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PemError {
    pub(super) message: String,
    pub(super) hint: Option<&'static str>,
}

/// Files longer than this are not certificates: a bundle of all authorities has some 200 KB.
const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Reads a file.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, PemError> {
    let error = |what: String, hint| PemError {
        message: format!("cannot read {}: {what}", path.display()),
        hint,
    };
    match fs::metadata(path) {
        Ok(metadata) if metadata.len() > FILE_BYTES_MAX => {
            return Err(error("it is too long".to_owned(), None));
        }
        _ => {}
    }
    fs::read(path).map_err(|reason| {
        let hint = (reason.kind() == std::io::ErrorKind::PermissionDenied).then_some(
            "whoever loads the configuration must be able to read it: at a reload that is `User`",
        );
        error(reason.to_string(), hint)
    })
}

/// All certificates of a file, at least one.
pub(super) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, PemError> {
    let bytes = read(path)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    let found = found.map_err(|error| malformed(path, &error))?;
    if found.is_empty() {
        return Err(PemError {
            message: format!("{} holds no certificate", path.display()),
            hint: Some(
                "a PEM file has `-----BEGIN CERTIFICATE-----`; `openssl x509 -inform der` makes one",
            ),
        });
    }
    Ok(found)
}

/// All revocation lists of a file, at least one.
pub(super) fn lists(path: &Path) -> Result<Vec<CertificateRevocationListDer<'static>>, PemError> {
    let bytes = read(path)?;
    let found: Result<Vec<_>, _> = CertificateRevocationListDer::pem_slice_iter(&bytes).collect();
    let found = found.map_err(|error| malformed(path, &error))?;
    if found.is_empty() {
        let message = format!("{} holds no revocation list", path.display());
        return Err(PemError { message, hint: None });
    }
    Ok(found)
}

/// The first private key of a file.
pub(super) fn key(path: &Path) -> Result<PrivateKeyDer<'static>, PemError> {
    let bytes = read(path)?;
    match PrivateKeyDer::from_pem_slice(&bytes) {
        Ok(key) if !is_encrypted(&bytes) => Ok(key),
        Err(pem::Error::NoItemsFound) | Ok(_) => Err(if is_encrypted(&bytes) {
            PemError {
                message: format!("the key in {} is encrypted", path.display()),
                hint: Some(
                    "nobody is asked for a pass phrase: `openssl pkey -in KEY -out PLAIN`, and keep it to yourself",
                ),
            }
        } else {
            PemError {
                message: format!("{} holds no private key", path.display()),
                hint: Some("name its file with `SSLCertificateKeyFile`"),
            }
        }),
        Err(error) => Err(malformed(path, &error)),
    }
}

fn is_encrypted(bytes: &[u8]) -> bool {
    ["BEGIN ENCRYPTED PRIVATE KEY", "Proc-Type: 4,ENCRYPTED"]
        .iter()
        .any(|mark| memchr::memmem::find(bytes, mark.as_bytes()).is_some())
}

fn malformed(path: &Path, error: &pem::Error) -> PemError {
    PemError { message: format!("{} is malformed: {error}", path.display()), hint: None }
}
