//! Certificates for tests, made by OpenSSL.

use std::path::Path;

use crate::tls::ok;

/// How a key is made: on a curve, or with RSA.
fn key(kind: &str) -> Vec<&'static str> {
    match kind {
        "rsa" => vec!["-newkey", "rsa:2048"],
        _ => vec!["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"],
    }
}

fn file(directory: &Path, name: &str) -> String {
    directory.join(name).to_str().expect("UTF-8").to_owned()
}

/// Makes `NAME.pem` and `NAME.key`, and the directives that name them.
#[track_caller]
pub(crate) fn self_signed(directory: &Path, name: &str, kind: &str) -> String {
    let (certificate, key_file) =
        (file(directory, &format!("{name}.pem")), file(directory, &format!("{name}.key")));
    let subject = format!("/CN={name}");
    let fixed = request(&subject, &certificate, &key_file);
    let names = ["-addext", "subjectAltName=DNS:a.example,DNS:localhost,IP:127.0.0.1"];
    ok("openssl", &[&fixed[..], &names, &key(kind)].concat());
    format!("SSLCertificateFile {certificate}\nSSLCertificateKeyFile {key_file}\n")
}

/// Makes an authority, `ca.pem` and `ca.key`; returns the former.
#[track_caller]
pub(crate) fn authority(directory: &Path) -> String {
    let (certificate, key_file) = (file(directory, "ca.pem"), file(directory, "ca.key"));
    let fixed = request("/CN=authority", &certificate, &key_file);
    ok("openssl", &[&fixed[..], &key("ec")].concat());
    certificate
}

/// Makes a certificate by the authority of the directory, or by nobody that anybody knows; returns its
/// file and that of its key.
#[track_caller]
pub(crate) fn client(directory: &Path, name: &str, known: bool) -> (String, String) {
    let (certificate, key_file) =
        (file(directory, &format!("{name}.pem")), file(directory, &format!("{name}.key")));
    let subject = format!("/O=Milepost/CN={name}");
    let (issuer, issuer_key) = (file(directory, "ca.pem"), file(directory, "ca.key"));
    let fixed = request(&subject, &certificate, &key_file);
    let by: &[&str] = if known { &["-CA", &issuer, "-CAkey", &issuer_key] } else { &[] };
    let end = ["-addext", "basicConstraints=critical,CA:FALSE"];
    ok("openssl", &[&fixed[..], by, &end, &key("ec")].concat());
    (certificate, key_file)
}

/// The words of `openssl` that all these certificates have in common.
fn request<'a>(subject: &'a str, certificate: &'a str, key_file: &'a str) -> [&'a str; 11] {
    [
        "req",
        "-x509",
        "-nodes",
        "-days",
        "2",
        "-subj",
        subject,
        "-out",
        certificate,
        "-keyout",
        key_file,
    ]
}
