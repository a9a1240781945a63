//! Backends over TLS: whom mod_ssl accepts, and what they see of whoever asks.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use milepost_testkit::directory::Directory;
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, CertifiedIssuer, DnType,
    IsCa, KeyIdMethod, KeyPair, RevokedCertParams, SanType, date_time_ymd,
};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};

use crate::support::{Both, load};

/// Certificates of backends: what they are called, and by which directives one is to be accepted.
const CERTIFICATES: [(&str, &str, &[&str]); 9] = [
    ("common", "localhost", &[]),
    ("common-address", "127.0.0.1", &[]),
    ("common-beside", "localhost", &["other.test"]),
    ("alternative", "other.test", &["localhost"]),
    ("alternative-upper", "other.test", &["LOCALHOST"]),
    ("address", "other.test", &["127.0.0.1"]),
    ("star", "other.test", &["*.test"]),
    ("other", "other.test", &[]),
    ("expired", "localhost", &["localhost"]),
];

/// The directives of each virtual host.
const SETTINGS: [(&str, &str); 35] = [
    ("off", ""),
    ("on", "SSLProxyEngine on"),
    ("require", "SSLProxyEngine on\nSSLProxyVerify require\n@CA@"),
    ("optional", "SSLProxyEngine on\nSSLProxyVerify optional\n@CA@"),
    ("optional-no-ca", "SSLProxyEngine on\nSSLProxyVerify optional_no_ca\n@CA@"),
    ("stranger", "SSLProxyEngine on\nSSLProxyVerify require\n@STRANGER@"),
    ("depth", "SSLProxyEngine on\nSSLProxyVerify require\nSSLProxyVerifyDepth 0\n@CA@"),
    ("no-name", "SSLProxyEngine on\nSSLProxyCheckPeerName off"),
    ("no-name-but-common", "SSLProxyEngine on\nSSLProxyCheckPeerName off\nSSLProxyCheckPeerCN on"),
    ("no-common", "SSLProxyEngine on\nSSLProxyCheckPeerCN off"),
    ("name-no-common", "SSLProxyEngine on\nSSLProxyCheckPeerName on\nSSLProxyCheckPeerCN off"),
    ("no-expiry", "SSLProxyEngine on\nSSLProxyCheckPeerExpire off"),
    ("preserve.test", "SSLProxyEngine on\nProxyPreserveHost on"),
    ("old", "SSLProxyEngine on\nSSLProxyProtocol -all +TLSv1.2"),
    ("shown", "SSLProxyEngine on\n@SHOWN@"),
    ("unchecked", "SSLProxyEngine on\nSSLProxyVerify require\n@CA@\n@LIST@"),
    ("leaf", "SSLProxyEngine on\nSSLProxyVerify require\n@CA@\n@LIST@\n@CHECK@ leaf"),
    ("chain", "SSLProxyEngine on\nSSLProxyVerify require\n@CA@\n@LIST@\n@CHECK@ chain"),
    ("no-verify", "SSLProxyEngine on\n@CA@\n@LIST@\n@CHECK@ leaf"),
    ("no-list", "SSLProxyEngine on\nSSLProxyVerify require\n@CA@\n@OTHER@\n@CHECK@ leaf"),
    (
        "no-list-is-well",
        "SSLProxyEngine on\nSSLProxyVerify require\n@CA@\n@OTHER@\n@CHECK@ leaf no_crl_for_cert_ok",
    ),
    ("suites", "SSLProxyEngine on\nSSLProxyProtocol TLSv1.2\nSSLProxyCipherSuite ECDHE+CHACHA20"),
    ("suites-13", "SSLProxyEngine on\nSSLProxyCipherSuite TLSv1.3 TLS_CHACHA20_POLY1305_SHA256"),
    ("section", "SSLProxyEngine on\n<Proxy @URL@ retry=0>\n@FAILS@\n</Proxy>"),
    ("section-engine", "<Proxy @URL@ retry=0>\nSSLProxyEngine on\n</Proxy>"),
    (
        "section-later",
        "SSLProxyEngine on\nProxyPass /more/ @URL@/ retry=0\n<Proxy @URL@>\n@FAILS@\n</Proxy>",
    ),
    ("section-path", "SSLProxyEngine on\n<Proxy @URL@/sub retry=0>\n@FAILS@\n</Proxy>"),
    ("section-wild", "SSLProxyEngine on\n<Proxy *>\n@FAILS@\n</Proxy>"),
    ("section-match", "SSLProxyEngine on\n<ProxyMatch localhost>\n@FAILS@\n</ProxyMatch>"),
    (
        "section-merged",
        "SSLProxyEngine on\nSSLProxyProtocol -all +TLSv1.2\n@FAILS@\n\
         <Proxy @URL@ retry=0>\nSSLProxyVerify none\n</Proxy>",
    ),
    (
        "section-around",
        "SSLProxyEngine on\n<Proxy *>\n@FAILS@\n</Proxy>\n\
         <Proxy @URL@ retry=0>\nSSLProxyProtocol -all +TLSv1.2\n</Proxy>",
    ),
    (
        "section-around-engine",
        "<Proxy *>\nSSLProxyEngine on\n</Proxy>\n\
         <Proxy @URL@ retry=0>\nSSLProxyProtocol -all +TLSv1.2\n</Proxy>",
    ),
    (
        "section-overlaps",
        "SSLProxyEngine on\n<ProxyMatch localhost>\n@FAILS@\n</ProxyMatch>\n\
         <ProxyMatch https>\nSSLProxyProtocol -all +TLSv1.2\n</ProxyMatch>",
    ),
    (
        "section-overlaps-later",
        "SSLProxyEngine on\n<ProxyMatch https>\nSSLProxyProtocol -all +TLSv1.2\n</ProxyMatch>\n\
         <ProxyMatch localhost>\n@FAILS@\n</ProxyMatch>",
    ),
    (
        "section-balancer",
        "SSLProxyEngine on\n<Proxy balancer://b>\nBalancerMember @URL@ retry=0\n@FAILS@\n</Proxy>\n\
         ProxyPass /common/localhost balancer://b",
    ),
];

/// What no backend passes.
const FAILS: &str = "SSLProxyVerify require\n@STRANGER@";

/// The number of the certificate `alternative-upper`, which its authority has taken back.
const REVOKED: u64 = 4711;

#[test]
fn backends_over_tls_are_accepted_alike() {
    let directory = Directory::new().unwrap();
    let root = directory.path();
    revoke(root, &authority(root, "stranger"), "other-list");
    let authority = authority(root, "ca");
    revoke(root, &authority, "list");
    let mut passes = String::new();
    let mut targets = Vec::new();
    let mut url = String::new();
    for (name, common, alternatives) in CERTIFICATES {
        let port = backend(config(root, &authority, name, common, alternatives)).port();
        if name == "alternative" {
            url = format!("https://localhost:{port}");
        }
        for host in ["localhost", "127.0.0.1"] {
            writeln!(passes, "ProxyPass /{name}/{host} https://{host}:{port}/ retry=0").unwrap();
            targets.push(format!("/{name}/{host}"));
        }
    }
    certificate(root, &authority, "client", "milepost", &[]);
    let own: Vec<u8> = ["client.pem", "client.key"]
        .iter()
        .flat_map(|file| std::fs::read(root.join(file)).unwrap())
        .collect();
    std::fs::write(root.join("shown.pem"), own).unwrap();
    let mut configuration = String::new();
    for (name, directives) in SETTINGS {
        writeln!(
            configuration,
            "<VirtualHost *>\nServerName {name}\n{directives}\n{passes}</VirtualHost>"
        )
        .unwrap();
    }
    let configuration = configuration
        .replace("@FAILS@", FAILS)
        .replace("@URL@", &url)
        .replace("@CA@", "SSLProxyCACertificateFile @ROOT@/ca.pem")
        .replace("@STRANGER@", "SSLProxyCACertificateFile @ROOT@/stranger.pem")
        .replace("@LIST@", "SSLProxyCARevocationFile @ROOT@/list.pem")
        .replace("@OTHER@", "SSLProxyCARevocationFile @ROOT@/other-list.pem")
        .replace("@CHECK@", "SSLProxyCARevocationCheck")
        .replace("@SHOWN@", "SSLProxyMachineCertificateFile @ROOT@/shown.pem");
    let both = Both::start_with(&directory, &configuration, &["ssl", "socache_shmcb"]);
    let mut wrong = String::new();
    for (name, _) in SETTINGS {
        for target in &targets {
            // Twice on the same connection: the second may find one to the backend that is kept.
            let expected = ask(both.httpd, name, target);
            let found = ask(both.milepost, name, target);
            if expected != found {
                writeln!(wrong, "{name} {target}\n  httpd:    {expected}\n  milepost: {found}")
                    .unwrap();
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    for (name, target, expected) in [
        ("off", "/alternative/localhost", "500"),
        ("on", "/alternative/localhost", " asked for Some(\"localhost\") with Some(TLSv1_3) and "),
        ("on", "/common-address/127.0.0.1", " asked for None with Some(TLSv1_3) and "),
        ("preserve.test", "/star/localhost", " asked for Some(\"preserve.test\") with "),
        ("old", "/alternative/localhost", " asked for Some(\"localhost\") with Some(TLSv1_2) and "),
        ("leaf", "/alternative-upper/localhost", "500"),
        ("leaf", "/alternative/localhost", " asked for "),
        ("no-list", "/alternative/localhost", "500"),
        ("suites", "/alternative/localhost", "CHACHA20"),
        ("section", "/alternative/localhost", "500"),
        ("section-engine", "/alternative/localhost", " asked for "),
        ("section-later", "/alternative/localhost", "500"),
        ("section-merged", "/alternative/localhost", " with Some(TLSv1_2) and "),
        ("section-balancer", "/common/localhost", "500"),
        ("shown", "/alternative/localhost", ", shown 1 certificates;200 asked for "),
    ] {
        let found = ask(both.milepost, name, target);
        assert!(found.contains(expected), "{name} {target}: {found}");
    }
}

#[test]
fn what_is_wrong_with_files_is_said_where_they_are_named() {
    let directory = Directory::new().unwrap();
    let root = directory.path();
    authority(root, "ca");
    std::fs::write(root.join("nothing.pem"), "nothing\n").unwrap();
    for (directive, message) in [
        ("SSLProxyMachineCertificateFile ca.pem", "holds no private key"),
        ("SSLProxyCACertificateFile nothing.pem", "holds no certificate"),
        (
            "SSLProxyCACertificateFile absent.pem",
            "the file `absent.pem` does not exist or is empty",
        ),
        ("SSLProxyVerify perhaps", "`SSLProxyVerify` is `none`, `optional`, `require`"),
        ("SSLProxyProtocol TLSv1.4", "is no version of TLS"),
        ("SSLProxyCipherSuite RC4", "leaves no cipher suite"),
        ("SSLProxyCARevocationCheck leaf", "there are no lists to look backends up in"),
        ("SSLProxyCARevocationCheck never", "`SSLProxyCARevocationCheck` is `chain`, `leaf`"),
    ] {
        let text = format!("ServerName a\nSSLProxyEngine on\n{directive}\n");
        let loaded = load(root, &text);
        let all = loaded.diagnostics.iter();
        let found = all.map(|found| found.to_string()).find(|found| found.contains(message));
        let found = found.unwrap_or_else(|| panic!("{directive}: {:?}", loaded.diagnostics));
        assert!(found.contains("milepost.conf:3"), "{found}");
    }
}

/// Statuses and contents of two requests.
fn ask(address: SocketAddr, host: &str, target: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut said = String::new();
    for ending in ["keep-alive", "close"] {
        write!(stream, "GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: {ending}\r\n\r\n")
            .unwrap();
        let mut bytes = Vec::new();
        let mut part = [0; 4096];
        // Answers of backends end with a semicolon, those of errors with their connection or HTML.
        while !bytes.ends_with(b";") && !bytes.ends_with(b"</html>\n") {
            match stream.read(&mut part) {
                Ok(count @ 1..) => bytes.extend_from_slice(&part[..count]),
                _ => break,
            }
        }
        let answer = String::from_utf8_lossy(&bytes);
        said.push_str(answer.get(9..12).unwrap_or("nothing"));
        if let Some((_, content)) =
            answer.split_once("\r\n\r\n").filter(|(_, text)| text.ends_with(';'))
        {
            said.push_str(content);
        }
        if !said.starts_with("200") {
            break;
        }
    }
    said
}

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority(root: &Path, name: &str) -> Authority {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    std::fs::write(root.join(format!("{name}.pem")), authority.pem()).unwrap();
    authority
}

/// Writes a list of what an authority has taken back.
fn revoke(root: &Path, authority: &Authority, name: &str) {
    let revoked = RevokedCertParams {
        serial_number: REVOKED.into(),
        revocation_time: date_time_ymd(2026, 1, 1),
        reason_code: None,
        invalidity_date: None,
    };
    let list = CertificateRevocationListParams {
        this_update: date_time_ymd(2026, 1, 1),
        next_update: date_time_ymd(2096, 1, 1),
        crl_number: 1.into(),
        issuing_distribution_point: None,
        revoked_certs: vec![revoked],
        key_identifier_method: KeyIdMethod::Sha256,
    };
    let list = list.signed_by(authority).unwrap();
    std::fs::write(root.join(format!("{name}.pem")), list.pem().unwrap()).unwrap();
}

/// Makes a certificate and its key, and writes both.
fn certificate(
    root: &Path,
    authority: &Authority,
    name: &str,
    common: &str,
    alternatives: &[&str],
) {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, common);
    params.subject_alt_names = alternatives
        .iter()
        .map(|name| match name.parse() {
            Ok(address) => SanType::IpAddress(address),
            Err(_) => SanType::DnsName((*name).try_into().unwrap()),
        })
        .collect();
    if name == "expired" {
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(2021, 1, 1);
    }
    if name == "alternative-upper" {
        params.serial_number = Some(REVOKED.into());
    }
    let key = KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, authority).unwrap();
    std::fs::write(root.join(format!("{name}.pem")), certificate.pem()).unwrap();
    std::fs::write(root.join(format!("{name}.key")), key.serialize_pem()).unwrap();
}

fn config(
    root: &Path,
    authority: &Authority,
    name: &str,
    common: &str,
    alternatives: &[&str],
) -> ServerConfig {
    certificate(root, authority, name, common, alternatives);
    let certificate = CertificateDer::from_pem_file(root.join(format!("{name}.pem"))).unwrap();
    let key = PrivateKeyDer::from_pem_file(root.join(format!("{name}.key"))).unwrap();
    let provider = Arc::new(ring::default_provider());
    let mut store = RootCertStore::empty();
    store.add(authority.der().clone()).unwrap();
    let clients = WebPkiClientVerifier::builder_with_provider(store.into(), Arc::clone(&provider));
    let clients = clients.allow_unauthenticated().build().unwrap();
    ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(clients)
        .with_single_cert(vec![certificate], key)
        .unwrap()
}

/// Starts a backend that answers with what it knows of the connection.
fn backend(config: ServerConfig) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let config = Arc::new(config);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(stream) = stream else { return };
            let config = Arc::clone(&config);
            thread::spawn(move || serve(stream, config));
        }
    });
    address
}

fn serve(stream: TcpStream, config: Arc<ServerConfig>) {
    let mut stream = StreamOwned::new(ServerConnection::new(config).unwrap(), stream);
    let mut ahead = Vec::new();
    let mut part = [0; 4096];
    loop {
        while !ahead.ends_with(b"\r\n\r\n") {
            match stream.read(&mut part) {
                Ok(count @ 1..) => ahead.extend_from_slice(&part[..count]),
                _ => return,
            }
        }
        ahead.clear();
        let tls = &stream.conn;
        let content = format!(
            " asked for {:?} with {:?} and {:?}, shown {} certificates;",
            tls.server_name(),
            tls.protocol_version(),
            tls.negotiated_cipher_suite().map(|suite| suite.suite()),
            tls.peer_certificates().map_or(0, <[_]>::len),
        );
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", content.len());
        if stream.write_all(format!("{head}{content}").as_bytes()).is_err() {
            return;
        }
    }
}
