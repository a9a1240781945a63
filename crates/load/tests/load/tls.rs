//! TLS: what is negotiated, who is trusted, what is resumed, and every way in which it fails.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use milepost_load::{
    CipherList, FailureKind, Identity, Order, Persistence, Plan, Refusal, Resumption, RunError,
    Scheme, Stop, Target, TlsVersion, run,
};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};

use crate::peer::{OK, Peer};
use crate::{kinds, load};

/// A server with a certificate of its own authority, in a thread for each connection.
struct Server {
    address: SocketAddr,
    authority: String,
    /// Authority and certificate of a client.
    client: (String, String),
    state: Arc<ServerState>,
}

#[derive(Default)]
struct ServerState {
    connections: AtomicU64,
    /// Whether connections end without the word of TLS.
    cuts_off: AtomicBool,
}

impl Server {
    fn start() -> Self {
        Self::with(|_| {}, false, OK)
    }

    fn with(change: impl FnOnce(&mut ServerConfig), asks: bool, answer: &'static str) -> Self {
        let (authority, key) = authority();
        let issuer = rcgen::Issuer::from_params(&authority.0, &key);
        let (certificate, server_key) = certificate(&issuer, "server.example");
        let (client, client_key) = certificate_pem(&issuer);
        let builder =
            ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
                .with_protocol_versions(&[&rustls::version::TLS12, &rustls::version::TLS13])
                .unwrap();
        let builder = if asks {
            let mut roots = RootCertStore::empty();
            roots.add(authority.1.der().clone()).unwrap();
            let provider = Arc::new(rustls::crypto::ring::default_provider());
            let verifier =
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
            builder.with_client_cert_verifier(verifier.unwrap())
        } else {
            builder.with_no_client_auth()
        };
        let mut configuration =
            builder.with_single_cert(vec![certificate.der().clone()], server_key).unwrap();
        change(&mut configuration);
        let state = Arc::new(ServerState::default());
        let address = serve(Arc::new(configuration), state.clone(), answer);
        let pem = authority.1.pem();
        Self { address, authority: pem, client: (client, client_key), state }
    }

    /// Requests on one connection, with trust in the authority.
    fn plan(&self, requests: u64) -> Plan {
        let mut target = Target::new(self.address, "server.example", "/a");
        target.scheme = Scheme::Https;
        let mut plan = Plan::new(vec![target]);
        plan.io = crate::IO;
        plan.connections = 1;
        plan.stop = Stop::Requests(requests);
        plan.tls.trust_pem(self.authority.as_bytes()).unwrap();
        plan
    }
}

fn authority() -> ((rcgen::CertificateParams, rcgen::Certificate), rcgen::KeyPair) {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut parameters = rcgen::CertificateParams::new(vec![]).unwrap();
    // Two authorities of one name are one and the same.
    let name = format!("authority {:x?}", &rcgen::PublicKeyData::der_bytes(&key)[1..9]);
    parameters.distinguished_name.push(rcgen::DnType::CommonName, name);
    parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let certificate = parameters.self_signed(&key).unwrap();
    ((parameters, certificate), key)
}

fn certificate(
    issuer: &rcgen::Issuer<'_, &rcgen::KeyPair>,
    name: &str,
) -> (rcgen::Certificate, PrivateKeyDer<'static>) {
    let key = rcgen::KeyPair::generate().unwrap();
    let parameters = rcgen::CertificateParams::new(vec![name.to_owned()]).unwrap();
    let certificate = parameters.signed_by(&key, issuer).unwrap();
    (certificate, PrivatePkcs8KeyDer::from(key.serialize_der()).into())
}

fn certificate_pem(issuer: &rcgen::Issuer<'_, &rcgen::KeyPair>) -> (String, String) {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut parameters = rcgen::CertificateParams::new(vec!["client".to_owned()]).unwrap();
    parameters.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ClientAuth];
    (parameters.signed_by(&key, issuer).unwrap().pem(), key.serialize_pem())
}

fn serve(
    configuration: Arc<ServerConfig>,
    state: Arc<ServerState>,
    answer: &'static str,
) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for socket in listener.incoming() {
            let (configuration, state) = (configuration.clone(), state.clone());
            state.connections.fetch_add(1, SeqCst);
            thread::spawn(move || converse(socket.unwrap(), configuration, &state, answer));
        }
    });
    address
}

/// Answers until the client closes; after each answer that says `close`, closes.
fn converse(socket: TcpStream, tls: Arc<ServerConfig>, state: &ServerState, answer: &str) {
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut stream = StreamOwned::new(ServerConnection::new(tls).unwrap(), socket);
    let mut buffer = [0; 4096];
    while let Ok(length) = stream.read(&mut buffer) {
        if length == 0 {
            return;
        }
        let request = String::from_utf8_lossy(&buffer[..length]).into_owned();
        if stream.write_all(answer.as_bytes()).is_err() {
            return;
        }
        let _ = stream.flush();
        if request.contains("Connection: close") || !answer.contains("Content-Length") {
            if !state.cuts_off.load(SeqCst) {
                stream.conn.send_close_notify();
                let _ = stream.flush();
            }
            return;
        }
    }
}

#[test]
fn requests_go_over_tls_and_handshakes_are_counted_apart() {
    let server = Server::start();
    let report = load(&server.plan(100));
    assert_eq!((report.requests, report.errors, report.wrong_answers), (100, 0, 0), "{report:?}");
    let tls = report.tls.unwrap();
    assert_eq!((tls.full_handshakes, tls.resumed_handshakes), (1, 0));
    assert_eq!(tls.session.version, "TLSv1.3");
    assert_eq!(tls.session.server_key_bits, Some(256));
    assert_eq!((report.connect_ns.samples, report.tls_ns.samples), (1, 1));
    assert_eq!(server.state.connections.load(SeqCst), 1);
}

#[test]
fn sessions_are_resumed_unless_told_not_to() {
    for version in [TlsVersion::Tls12, TlsVersion::Tls13] {
        for (resumption, full) in [(Resumption::Tickets, 1), (Resumption::Off, 20)] {
            let server = Server::with(
                |it| it.ticketer = rustls::crypto::ring::Ticketer::new().unwrap(),
                false,
                OK,
            );
            let mut plan = server.plan(20);
            plan.persistence = Persistence::Close;
            plan.tls.resumption = resumption;
            (plan.tls.version_min, plan.tls.version_max) = (version, Some(version));
            let report = load(&plan);
            assert_eq!((report.requests, report.errors), (20, 0), "{report:?}");
            let tls = report.tls.unwrap();
            assert_eq!((tls.full_handshakes, tls.resumed_handshakes), (full, 20 - full));
            assert_eq!(report.tls_ns.samples, 20);
        }
    }
}

#[test]
fn version_and_cipher_are_those_asked_for() {
    let server = Server::start();
    let mut plan = server.plan(3);
    plan.tls.version_max = Some(TlsVersion::Tls12);
    plan.tls.ciphers = Some(CipherList::parse("ECDHE-ECDSA-AES128-GCM-SHA256").unwrap());
    let session = load(&plan).tls.unwrap().session;
    assert_eq!(session.version, "TLSv1.2");
    assert_eq!(session.cipher, "ECDHE-ECDSA-AES128-GCM-SHA256");
    plan.tls.ciphers = Some(CipherList::parse("ECDHE-RSA-AES128-GCM-SHA256").unwrap());
    let error = run(&plan, &milepost_load::Control::new()).unwrap_err();
    assert!(chain(&error).contains("TLS handshake failed: received fatal alert"), "{error:?}");
}

#[test]
fn a_certificate_must_be_trusted_and_of_the_server() {
    let (server, other) = (Server::start(), Server::start());
    let refused = |change: &dyn Fn(&mut Plan), why: &str| {
        let mut plan = server.plan(3);
        change(&mut plan);
        let error = run(&plan, &milepost_load::Control::new()).unwrap_err();
        assert!(matches!(error, RunError::Connect { .. } | RunError::Tls(_)), "{error:?}");
        assert!(chain(&error).contains(why), "{}", chain(&error));
    };
    let distrust = |plan: &mut Plan| {
        plan.tls.trusted.clear();
        plan.tls.trust_pem(other.authority.as_bytes()).unwrap();
    };
    refused(&distrust, "UnknownIssuer; trust its authority with --cacert");
    refused(&|plan| plan.targets[0].authority = "other.example".to_owned(), "not valid for name");
    refused(&|plan| plan.tls.trusted.clear(), "no authority is trusted");
    let mut plan = server.plan(3);
    distrust(&mut plan);
    plan.targets[0].authority = "other.example".to_owned();
    plan.tls.trusts_any = true;
    assert_eq!(load(&plan).requests, 3);
    let mut plan = server.plan(3);
    plan.targets[0].authority = "other.example".to_owned();
    plan.tls.server_name = Some("server.example".to_owned());
    assert_eq!(load(&plan).requests, 3);
}

#[test]
fn a_client_shows_its_certificate_when_asked() {
    let server = Server::with(|_| {}, true, OK);
    let mut plan = server.plan(3);
    let without = load_or_fail(&mut plan);
    assert!(without.is_none_or(|requests| requests == 0));
    let (certificate, key) = &server.client;
    let identity = Identity::from_pem(certificate.as_bytes(), key.as_bytes()).unwrap();
    let mut plan = server.plan(3);
    plan.tls.identity = Some(Arc::new(identity));
    assert_eq!(load(&plan).requests, 3);
}

fn load_or_fail(plan: &mut Plan) -> Option<u64> {
    run(plan, &milepost_load::Control::new()).ok().map(|report| report.requests)
}

#[test]
fn large_content_comes_whole() {
    let body = "x".repeat(300_000);
    let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    let server = Server::with(|_| {}, false, answer.leak());
    let mut plan = server.plan(20);
    plan.connections = 2;
    plan.targets[0].expectation.content_bytes = Some(300_000);
    // So does what goes the other way.
    plan.targets[0].method = "POST".to_owned();
    let report = load(&plan);
    assert_eq!((report.requests, report.errors, report.wrong_answers), (20, 0, 0), "{report:?}");
}

#[test]
fn content_without_length_must_be_ended_by_tls() {
    let server = Server::with(|_| {}, false, "HTTP/1.1 200 OK\r\n\r\nsome content");
    let mut plan = server.plan(5);
    let report = load(&plan);
    assert_eq!((report.requests, report.errors), (5, 0), "{report:?}");
    server.state.cuts_off.store(true, SeqCst);
    plan.targets[0].method = "POST".to_owned();
    assert_eq!(kinds(&load(&plan)), [(FailureKind::ClosedInContent, 5)]);
}

#[test]
fn what_is_no_tls_is_an_error_and_the_run_ends() {
    let peers = [
        ("SSH-2.0-OpenSSH_9.2\r\n", "is it a TLS port at all?"),
        ("HTTP/1.1 400 Bad Request\r\n\r\n", "is it a TLS port at all?"),
        ("", "closed in the TLS handshake"),
    ];
    for (says, why) in peers {
        let peer = Peer::start(move |it| it.send(says));
        let mut target = Target::new(peer.address(), "server.example", "/a");
        target.scheme = Scheme::Https;
        let mut plan = Plan::new(vec![target]);
        plan.io = crate::IO;
        plan.tls.trusts_any = true;
        plan.stop = Stop::Requests(50);
        let error = run(&plan, &milepost_load::Control::new()).unwrap_err();
        assert!(chain(&error).contains(why) || chain(&error).contains("reset"), "{error:?}");
        plan.refusal = Refusal::Fail;
        let report = load(&plan);
        assert_eq!((report.requests, report.errors), (0, 50));
        let kinds: Vec<_> = kinds(&report).into_iter().map(|(kind, _)| kind).collect();
        assert!(kinds.contains(&FailureKind::TlsFailed), "{kinds:?}");
    }
}

#[test]
fn a_handshake_that_never_ends_is_timed_out() {
    let peer = Peer::start(|it| {
        it.content(1_000_000);
    });
    let mut target = Target::new(peer.address(), "server.example", "/a");
    target.scheme = Scheme::Https;
    let mut plan = Plan::new(vec![target]);
    plan.io = crate::IO;
    plan.tls.trusts_any = true;
    plan.timeout = Duration::from_millis(200);
    plan.refusal = Refusal::Fail;
    plan.connections = 2;
    plan.stop = Stop::Requests(4);
    assert_eq!(kinds(&load(&plan)), [(FailureKind::TimedOut, 4)]);
}

#[test]
fn plain_and_tls_go_side_by_side() {
    let (server, peer) = (Server::start(), Peer::answering(OK));
    let mut plan = server.plan(40);
    plan.targets.push(Target::new(peer.address(), "localhost", "/b"));
    plan.connections = 4;
    plan.threads = 2;
    plan.order = Order::Random;
    let report = load(&plan);
    assert_eq!((report.requests, report.errors), (40, 0), "{report:?}");
    assert!(!peer.requests().is_empty());
}

#[test]
fn a_proxy_makes_tunnels_or_says_why_not() {
    let server = Server::start();
    let address = server.address;
    let proxy = Peer::start(move |it| {
        let head = it.request().unwrap_or_default();
        if it.number == 0 {
            assert!(head.starts_with("CONNECT server.example:443 HTTP/1.1\r\n"), "{head}");
            assert!(head.contains("\r\nProxy-Authorization: Basic eA==\r\n"), "{head}");
        }
        if head.contains("refused.example") {
            it.send("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n");
            return;
        }
        let upstream = TcpStream::connect(address).unwrap();
        it.send("HTTP/1.1 200 Connection established\r\n\r\n");
        it.forward(upstream);
    });
    let mut plan = server.plan(10);
    plan.targets[0].address = proxy.address().into();
    plan.targets[0].tunnel =
        Some(milepost_load::Tunnel { authorization: Some("Basic eA==".to_owned()) });
    let report = load(&plan);
    assert_eq!((report.requests, report.errors), (10, 0), "{report:?}");
    assert_eq!(report.tls.unwrap().full_handshakes, 1);
    plan.targets[0].authority = "refused.example".to_owned();
    plan.refusal = Refusal::Fail;
    let report = load(&plan);
    assert_eq!(kinds(&report), [(FailureKind::TunnelRefused, 10)]);
    let example = &report.errors_by_kind[0].example;
    assert!(example.contains("HTTP/1.1 403 Forbidden"), "{example}");
}

/// An error with its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut error = error;
    while let Some(source) = error.source() {
        text.push_str(&format!(": {source}"));
        error = source;
    }
    text
}
