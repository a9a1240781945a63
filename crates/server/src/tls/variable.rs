//! The variables that mod_ssl has for a connection: `SSL_PROTOCOL`, `SSL_CLIENT_S_DN` and the like.
//!
//! Certificates are parsed when a variable asks for them, once a connection.
//!
//! Source: httpd 2.4.71 `modules/ssl/ssl_engine_vars.c`; RFC 4514 for names, as OpenSSL writes them with
//! `XN_FLAG_RFC2253`.

use std::cell::OnceCell;
use std::fmt::{self, Write};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use milepost_engine::{TlsExports, TlsVariables};
use rustls::pki_types::CertificateDer;
use rustls::server::ServerConnection;
use rustls::sign::CertifiedKey;
use rustls::{HandshakeKind, ProtocolVersion};
use x509_cert::Certificate;
use x509_cert::der::asn1::ObjectIdentifier;
use x509_cert::der::pem::{LineEnding, encode_string};
use x509_cert::der::{DateTime, Decode};
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;
use x509_cert::name::Name;

use super::client::Verified;
use super::{Chosen, name};

/// What is known of a TLS connection.
pub struct TlsSession {
    class: u64,
    /// The name that the client asked for.
    name: Option<Box<str>>,
    version: Option<ProtocolVersion>,
    suite: Option<(&'static str, u16)>,
    resumed: bool,
    verified: Verified,
    own: Option<Arc<CertifiedKey>>,
    client: Vec<CertificateDer<'static>>,
    own_parsed: OnceCell<Option<Box<Certificate>>>,
    client_parsed: OnceCell<Option<Box<Certificate>>>,
}

impl TlsSession {
    /// Takes note of a handshake.
    pub(super) fn new(
        connection: &ServerConnection,
        name: Option<Box<str>>,
        chosen: Chosen,
    ) -> TlsSession {
        let chain = connection.peer_certificates();
        let verified = match &chosen.host.client {
            Some(client) => client.verdict(chain),
            None => Verified::None,
        };
        TlsSession {
            class: chosen.class,
            name,
            version: connection.protocol_version(),
            suite: connection
                .negotiated_cipher_suite()
                .and_then(|suite| name::of_suite(suite.suite())),
            resumed: connection.handshake_kind() == Some(HandshakeKind::Resumed),
            verified,
            own: chosen.certificate,
            client: chain.unwrap_or_default().iter().map(|der| der.clone().into_owned()).collect(),
            own_parsed: OnceCell::new(),
            client_parsed: OnceCell::new(),
        }
    }

    /// The name that the client asked for.
    pub(crate) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The connection as the engine sees it.
    pub(crate) fn as_request(&self) -> milepost_engine::Tls<'_> {
        milepost_engine::Tls { class: self.class, name: self.name.as_deref(), variables: self }
    }

    fn own(&self) -> Option<&Certificate> {
        let parse = || self.own.as_ref().and_then(|own| parse(own.cert.first()?));
        self.own_parsed.get_or_init(parse).as_deref()
    }

    fn client(&self) -> Option<&Certificate> {
        self.client_parsed.get_or_init(|| parse(self.client.first()?)).as_deref()
    }

    /// The text of a variable, as far as it is not of fixed words.
    fn text(&self, variable: &str) -> Option<String> {
        if let Some(rest) = variable.strip_prefix("SSL_CLIENT_") {
            if let Some(number) = rest.strip_prefix("CERT_CHAIN_") {
                return self.client.get(number.parse::<usize>().ok()?.checked_add(1)?).map(pem);
            }
            return match rest {
                "CERT" => self.client.first().map(pem),
                "CERT_RFC4523_CEA" => self.client().map(exact_assertion),
                rest => of_certificate(self.client()?, rest),
            };
        }
        let rest = variable.strip_prefix("SSL_SERVER_")?;
        match rest {
            "CERT" => self.own.as_ref().and_then(|own| own.cert.first()).map(pem),
            rest => of_certificate(self.own()?, rest),
        }
    }
}

impl fmt::Debug for TlsSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsSession").field("name", &self.name).finish_non_exhaustive()
    }
}

impl TlsVariables for TlsSession {
    fn write(&self, variable: &str, out: &mut Vec<u8>) -> bool {
        let bits;
        let fixed = match variable {
            "HTTPS" => Some("on"),
            "SSL_TLS_SNI" => self.name.as_deref(),
            "SSL_PROTOCOL" => self.version.and_then(name::of_version),
            "SSL_CIPHER" => self.suite.map(|(name, _)| name),
            "SSL_CIPHER_USEKEYSIZE" | "SSL_CIPHER_ALGKEYSIZE" => {
                bits = self.suite.map_or(0, |(_, bits)| bits).to_string();
                Some(bits.as_str())
            }
            "SSL_CIPHER_EXPORT" => Some("false"),
            "SSL_COMPRESS_METHOD" => Some("NULL"),
            "SSL_SECURE_RENEG" => Some("true"),
            "SSL_SESSION_RESUMED" => Some(if self.resumed { "Resumed" } else { "Initial" }),
            "SSL_CLIENT_VERIFY" => Some(match self.verified {
                Verified::None => "NONE",
                Verified::Success => "SUCCESS",
                Verified::Generous => "GENEROUS",
            }),
            "SSL_VERSION_INTERFACE" => Some(concat!("milepost/", env!("CARGO_PKG_VERSION"))),
            "SSL_VERSION_LIBRARY" => Some("rustls"),
            _ => None,
        };
        if let Some(fixed) = fixed {
            out.extend_from_slice(fixed.as_bytes());
            return true;
        }
        let text = self.text(variable);
        out.extend_from_slice(text.as_deref().unwrap_or_default().as_bytes());
        text.is_some()
    }

    fn export(&self, exports: TlsExports, take: &mut dyn FnMut(&str, &[u8])) {
        let mut missing = Vec::new();
        let mut value = Vec::new();
        let mut named = |name: &str| {
            value.clear();
            let is_known = self.write(name, &mut value) && !value.is_empty();
            if is_known {
                take(name, &value);
            }
            is_known
        };
        if exports.standard {
            for name in CONNECTION_VARIABLES {
                named(name);
            }
            for (whose, certificate) in [("CLIENT", self.client()), ("SERVER", self.own())] {
                let Some(certificate) = certificate else { continue };
                for name in CERTIFICATE_VARIABLES.iter().chain(only_of(whose)) {
                    named(&format!("SSL_{whose}_{name}"));
                }
                let tbs = certificate.tbs_certificate();
                for (whom, name) in [("S", tbs.subject()), ("I", tbs.issuer())] {
                    fields_of(name, |field| named(&format!("SSL_{whose}_{whom}_DN_{field}")));
                }
                for kind in ["Email", "DNS"] {
                    (0..)
                        .take_while(|number| named(&format!("SSL_{whose}_SAN_{kind}_{number}")))
                        .for_each(drop);
                }
            }
        }
        if exports.certificates {
            // These are set even where there is none.
            for name in ["SSL_SERVER_CERT", "SSL_CLIENT_CERT"] {
                if !named(name) {
                    missing.push(name);
                }
            }
            for number in 0..self.client.len().saturating_sub(1) {
                named(&format!("SSL_CLIENT_CERT_CHAIN_{number}"));
            }
        }
        missing.into_iter().for_each(|name| take(name, b""));
    }
}

/// What `StdEnvVars` exports of a connection.
const CONNECTION_VARIABLES: &[&str] = &[
    "SSL_VERSION_INTERFACE",
    "SSL_VERSION_LIBRARY",
    "SSL_PROTOCOL",
    "SSL_SECURE_RENEG",
    "SSL_COMPRESS_METHOD",
    "SSL_CIPHER",
    "SSL_CIPHER_EXPORT",
    "SSL_CIPHER_USEKEYSIZE",
    "SSL_CIPHER_ALGKEYSIZE",
    "SSL_CLIENT_VERIFY",
    "SSL_SESSION_RESUMED",
];

/// What it exports of a certificate, beside the fields of its names.
const CERTIFICATE_VARIABLES: &[&str] =
    &["M_VERSION", "M_SERIAL", "V_START", "V_END", "S_DN", "I_DN", "A_KEY", "A_SIG"];

/// What it exports of a client's certificate alone.
fn only_of(whose: &str) -> &'static [&'static str] {
    if whose == "CLIENT" { &["V_REMAIN", "CERT_RFC4523_CEA"] } else { &[] }
}

pub(super) fn parse(der: &CertificateDer<'_>) -> Option<Box<Certificate>> {
    Certificate::from_der(der).ok().map(Box::new)
}

/// A variable of a certificate, by the end of its name.
pub(super) fn of_certificate(certificate: &Certificate, variable: &str) -> Option<String> {
    let tbs = certificate.tbs_certificate();
    match variable {
        "M_VERSION" => Some((tbs.version() as u8 + 1).to_string()),
        "M_SERIAL" => Some(serial(tbs.serial_number().as_bytes())),
        "S_DN" => Some(tbs.subject().to_string()),
        "I_DN" => Some(tbs.issuer().to_string()),
        "V_START" => Some(date(tbs.validity().not_before.to_date_time())),
        "V_END" => Some(date(tbs.validity().not_after.to_date_time())),
        "V_REMAIN" => {
            let end = tbs.validity().not_after.to_unix_duration().as_secs();
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
            Some((end.saturating_sub(now) / (24 * 60 * 60)).to_string())
        }
        "A_SIG" => Some(algorithm(certificate.signature_algorithm().oid)),
        "A_KEY" => Some(algorithm(tbs.subject_public_key_info().algorithm.oid)),
        _ => {
            if let Some(field) = variable.strip_prefix("S_DN_") {
                return of_name(tbs.subject(), field);
            }
            if let Some(field) = variable.strip_prefix("I_DN_") {
                return of_name(tbs.issuer(), field);
            }
            alternative(certificate, variable.strip_prefix("SAN_")?)
        }
    }
}

/// The fields of names, and what they are called in variables.
const FIELDS: &[(&str, &str)] = &[
    ("C", "2.5.4.6"),
    ("ST", "2.5.4.8"),
    ("SP", "2.5.4.8"),
    ("L", "2.5.4.7"),
    ("O", "2.5.4.10"),
    ("OU", "2.5.4.11"),
    ("CN", "2.5.4.3"),
    ("T", "2.5.4.12"),
    ("I", "2.5.4.43"),
    ("G", "2.5.4.42"),
    ("S", "2.5.4.4"),
    ("D", "2.5.4.13"),
    ("UID", "0.9.2342.19200300.100.1.1"),
    ("Email", "1.2.840.113549.1.9.1"),
    ("DC", "0.9.2342.19200300.100.1.25"),
];

/// A field of a name: `CN`, or `OU_1` for the second one.
fn of_name(name: &Name, field: &str) -> Option<String> {
    let (field, number) = match field.split_once('_') {
        Some((field, number)) => (field, number.parse().ok()?),
        None => (field, 0),
    };
    let (_, oid) = FIELDS.iter().find(|(known, _)| *known == field)?;
    let oid = ObjectIdentifier::new(oid).ok()?;
    let value = name.iter().filter(|pair| pair.oid == oid).nth(number)?;
    // The tag tells one kind of string from another; all that is wanted is its bytes.
    Some(String::from_utf8_lossy(value.value.value()).into_owned())
}

/// Hands on what [`of_name`] knows of a name: `CN`, `OU`, `OU_1`.
fn fields_of(name: &Name, mut take: impl FnMut(&str) -> bool) {
    let of_name = |oid: &str| name.iter().filter(|pair| pair.oid.to_string() == oid).count();
    // `SP` is another word for `ST`, and not exported.
    for (field, oid) in FIELDS.iter().filter(|(field, _)| *field != "SP") {
        for number in 0..of_name(oid) {
            match number {
                0 => take(field),
                number => take(&format!("{field}_{number}")),
            };
        }
    }
}

/// An alternative name: `DNS_0`, `Email_0`.
fn alternative(certificate: &Certificate, variable: &str) -> Option<String> {
    let (kind, number) = variable.split_once('_')?;
    let number: usize = number.parse().ok()?;
    let (_, names) = certificate.tbs_certificate().get_extension::<SubjectAltName>().ok()??;
    let mut of_kind = names.0.iter().filter_map(|name| match (name, kind) {
        (GeneralName::DnsName(name), "DNS") => Some(name.to_string()),
        (GeneralName::Rfc822Name(name), "Email") => Some(name.to_string()),
        _ => None,
    });
    of_kind.nth(number)
}

/// What names a certificate in a directory: number and issuer, as RFC 4523 appendix A.1 writes them.
fn exact_assertion(certificate: &Certificate) -> String {
    let tbs = certificate.tbs_certificate();
    let number = decimal(tbs.serial_number().as_bytes());
    format!("{{ serialNumber {number}, issuer rdnSequence:\"{}\" }}", tbs.issuer())
}

/// A number of any length, the highest byte first, in decimal digits.
fn decimal(bytes: &[u8]) -> String {
    // The lowest digit first.
    let mut digits = vec![0];
    for &byte in bytes {
        let mut carry = u32::from(byte);
        for digit in &mut digits {
            carry += u32::from(*digit) << 8;
            *digit = (carry % 10) as u8;
            carry /= 10;
        }
        while carry > 0 {
            digits.push((carry % 10) as u8);
            carry /= 10;
        }
    }
    digits.iter().rev().map(|digit| char::from(b'0' + digit)).collect()
}

/// Upper-case digits, without leading zeros.
fn serial(bytes: &[u8]) -> String {
    let bytes = match bytes {
        [0, rest @ ..] if !rest.is_empty() => rest,
        bytes => bytes,
    };
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to memory succeeds.
        let _ = write!(text, "{byte:02X}");
        text
    })
}

/// `Nov 21 12:09:18 2026 GMT`
fn date(time: DateTime) -> String {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let month = MONTHS[usize::from(time.month().clamp(1, 12)) - 1];
    format!(
        "{month} {:2} {:02}:{:02}:{:02} {} GMT",
        time.day(),
        time.hour(),
        time.minutes(),
        time.seconds(),
        time.year()
    )
}

/// The name that OpenSSL has for an algorithm.
fn algorithm(oid: ObjectIdentifier) -> String {
    const NAMES: &[(&str, &str)] = &[
        ("1.2.840.113549.1.1.1", "rsaEncryption"),
        ("1.2.840.113549.1.1.5", "sha1WithRSAEncryption"),
        ("1.2.840.113549.1.1.10", "rsassaPss"),
        ("1.2.840.113549.1.1.11", "sha256WithRSAEncryption"),
        ("1.2.840.113549.1.1.12", "sha384WithRSAEncryption"),
        ("1.2.840.113549.1.1.13", "sha512WithRSAEncryption"),
        ("1.2.840.10045.2.1", "id-ecPublicKey"),
        ("1.2.840.10045.4.3.2", "ecdsa-with-SHA256"),
        ("1.2.840.10045.4.3.3", "ecdsa-with-SHA384"),
        ("1.2.840.10045.4.3.4", "ecdsa-with-SHA512"),
        ("1.3.101.112", "ED25519"),
    ];
    let text = oid.to_string();
    NAMES.iter().find(|(known, _)| *known == text).map_or(text, |(_, name)| (*name).to_owned())
}

/// A certificate as text.
fn pem(der: &CertificateDer<'_>) -> String {
    encode_string("CERTIFICATE", LineEnding::LF, der).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_any_length_are_written_in_decimal() {
        for (bytes, expected) in [
            (&[][..], "0"),
            (&[0, 255], "255"),
            (&[1, 0], "256"),
            (&[1, 0, 0, 0, 0, 0, 0, 0, 0], "18446744073709551616"),
        ] {
            assert_eq!(decimal(bytes), expected);
        }
    }

    #[test]
    fn serials_have_no_leading_zero() {
        assert_eq!(serial(&[0, 0x80, 1]), "8001");
        assert_eq!(serial(&[0]), "00");
        assert_eq!(serial(&[0x0a]), "0A");
    }
}
