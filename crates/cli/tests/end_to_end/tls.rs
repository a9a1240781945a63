//! TLS with programs that are not ours: Apache beside us, curl, OpenSSL and ab as clients.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use milepost_testkit::directory::Directory;
use milepost_testkit::httpd::{Httpd, Program, free_port};

use crate::certificates::{authority, client, self_signed};
use crate::support::{Finished, Server, milepost, run, write};

/// Names that a client asks for in the handshake, and hosts that it asks for then.
const NAMES: [&str; 4] = ["a.example", "c.example", "plain.example", "nobody.example"];
const HOSTS: [&str; 5] = ["a.example", "b.example", "c.example", "v.example", "plain.example"];

/// What tells virtual hosts, and variables, apart: each redirects to itself.
const REDIRECT: &str =
    "RewriteEngine on\nRewriteRule ^/who http://who.example/%{SERVER_NAME} [R,L]\n";

#[test]
fn hosts_share_a_connection_as_in_apache() {
    let directory = Directory::new().expect("a directory");
    let hosts = hosts(directory.path());
    let ours = Server::start_with(directory.path(), &format!("Listen 127.0.0.1:0\n{hosts}"));
    let (_apache, port) = apache(directory.path(), &hosts);
    for name in NAMES {
        for host in HOSTS {
            let ask = |port| curl(&[], port, name, host, "/who").stdout;
            assert_eq!(ask(ours.address.port()), ask(port), "{name} for {host}");
        }
    }
    // Without a name in the handshake.
    let ask = |port: u16| {
        let url = format!("https://127.0.0.1:{port}/who");
        let host = "Host: b.example";
        ok("curl", &["-sk", "-o", "/dev/null", "-w", "%{http_code}", "-H", host, &url]).stdout
    };
    assert_eq!(ask(ours.address.port()), ask(port));
    ours.stop();
}

/// Variables that both must have alike, whatever there is of them.
const VARIABLES: [&str; 44] = [
    "HTTPS",
    "SSL_TLS_SNI",
    "SSL_PROTOCOL",
    "SSL_CIPHER",
    "SSL_CIPHER_EXPORT",
    "SSL_CIPHER_USEKEYSIZE",
    "SSL_CIPHER_ALGKEYSIZE",
    "SSL_COMPRESS_METHOD",
    "SSL_SECURE_RENEG",
    "SSL_SESSION_RESUMED",
    "SSL_CLIENT_VERIFY",
    "SSL_CLIENT_M_VERSION",
    "SSL_CLIENT_M_SERIAL",
    "SSL_CLIENT_V_START",
    "SSL_CLIENT_V_END",
    "SSL_CLIENT_V_REMAIN",
    "SSL_CLIENT_S_DN",
    "SSL_CLIENT_S_DN_CN",
    "SSL_CLIENT_S_DN_CN_0",
    "SSL_CLIENT_S_DN_O",
    "SSL_CLIENT_S_DN_OU",
    "SSL_CLIENT_I_DN",
    "SSL_CLIENT_I_DN_CN",
    "SSL_CLIENT_A_KEY",
    "SSL_CLIENT_A_SIG",
    "SSL_CLIENT_CERT",
    "SSL_CLIENT_CERT_CHAIN_0",
    "SSL_CLIENT_CERT_RFC4523_CEA",
    "SSL_CLIENT_SAN_DNS_0",
    "SSL_SERVER_M_VERSION",
    "SSL_SERVER_M_SERIAL",
    "SSL_SERVER_V_START",
    "SSL_SERVER_V_END",
    "SSL_SERVER_V_REMAIN",
    "SSL_SERVER_S_DN",
    "SSL_SERVER_S_DN_CN",
    "SSL_SERVER_I_DN",
    "SSL_SERVER_A_KEY",
    "SSL_SERVER_A_SIG",
    "SSL_SERVER_CERT",
    "SSL_SERVER_SAN_DNS_0",
    "SSL_SERVER_SAN_DNS_1",
    "SSL_SERVER_SAN_DNS_2",
    "SSL_SERVER_SAN_Email_0",
];

/// Sections of all kinds of `SSLOptions`.
const OPTIONS: [(&str, &str); 6] = [
    ("none", ""),
    ("std", "SSLOptions +StdEnvVars"),
    ("cert", "SSLOptions +ExportCertData"),
    ("both", "SSLOptions +StdEnvVars +ExportCertData"),
    ("last", "SSLOptions StdEnvVars ExportCertData"),
    ("less", "SSLOptions +StdEnvVars -StdEnvVars"),
];

#[test]
fn requests_have_the_variables_that_they_have_in_apache() {
    let directory = Directory::new().expect("a directory");
    let path = directory.path();
    let authority = authority(path);
    let (certificate, key) = client(path, "alice", true);
    let pair = self_signed(path, "one", "ec");
    write(path, "index.html", "hello\n");
    let mut text = format!(
        "DocumentRoot {0}\n<Directory {0}>\nRequire all granted\n</Directory>\n\
         <VirtualHost *:*>\nServerName a.example\nSSLEngine on\n{pair}SSLVerifyClient optional\n\
         SSLCACertificateFile {authority}\nRedirect /away http://away.example/\n\
         Header always set Strict-Transport-Security max-age=1 env=HTTPS\n",
        path.display()
    );
    for (number, name) in VARIABLES.iter().enumerate() {
        text.push_str(&format!(
            "Header always set X-{number} \"{name} %{{{name}}}e %{{{name}}}s\"\n"
        ));
    }
    for (name, options) in OPTIONS {
        text.push_str(&format!(
            "Alias /{name} {}/index.html\n<Location /{name}>\n{options}\n</Location>\n",
            path.display()
        ));
    }
    let format: Vec<_> = VARIABLES.iter().map(|name| format!("%{{{name}}}x")).collect();
    text.push_str(&format!(
        "LogFormat \"%U {} %{{version}}c %{{cipher}}c %{{subjectdn}}c %{{issuerdn}}c %{{errcode}}c\" all\n\
         CustomLog {}/WHO.log all\n</VirtualHost>\n",
        format.join(" "),
        path.display()
    ));
    let ours = Server::start_with(
        path,
        &format!("Listen 127.0.0.1:0\n{}", text.replace("WHO", "milepost")),
    );
    let (_apache, port) = apache(path, &text.replace("WHO", "apache"));
    // A certificate of two days has one left after its first second, and both must see the same one.
    std::thread::sleep(Duration::from_millis(1100));
    let shown = ["--cert", &certificate, "--key", &key];
    let mut asked = 0;
    for options in [&[][..], &shown[..], &["--tls-max", "1.2"][..]] {
        for name in OPTIONS.map(|(name, _)| name).into_iter().chain(["away", "missing"]) {
            let ask = |port| {
                let path = format!("/{name}");
                let more = ["-D", "-"];
                let said =
                    ask(&[options, &more].concat(), "", port, "a.example", "a.example", &path);
                let wanted = |line: &&str| line.starts_with("X-") || line.starts_with("Strict");
                let mut lines: Vec<_> =
                    said.stdout.lines().filter(wanted).map(str::to_owned).collect();
                lines.sort();
                lines
            };
            let (expected, found) = (ask(port), ask(ours.address.port()));
            for (expected, found) in expected.iter().zip(&found) {
                assert_eq!(found, expected, "{name} {options:?}");
            }
            assert_eq!(found.len(), expected.len(), "{name} {options:?}");
            assert!(found.len() >= VARIABLES.len());
            asked += 1;
        }
    }
    ours.stop();
    let log = |who: &str| fs::read_to_string(path.join(format!("{who}.log"))).expect("a log");
    let (expected, found) = (log("apache"), log("milepost"));
    for (expected, found) in expected.lines().zip(found.lines()) {
        assert_eq!(found, expected);
    }
    assert_eq!((found.lines().count(), expected.lines().count()), (asked, asked));
}

/// Starts Apache with virtual hosts; returns its port.
#[track_caller]
fn apache(directory: &Path, hosts: &str) -> (Httpd, u16) {
    let program = Program::find().expect("this test needs Apache; `make test` installs it");
    let program = program.with_modules(&["ssl"]);
    let port = free_port().expect("a port");
    let text = format!(
        "{}{}Listen 127.0.0.1:{port}\nServerName main.example\n{hosts}",
        program.load_modules(),
        program.process_directives(directory)
    );
    write(directory, "mime.types", "");
    let conf = write(directory, "apache.conf", &text);
    let httpd = program.start(Path::new(&conf)).unwrap_or_else(|error| panic!("{error}"));
    (httpd, port)
}

/// Virtual hosts: `b` has the certificate of `a`, `c` another, `v` wants clients to show one.
fn hosts(directory: &Path) -> String {
    let (one, two) = (self_signed(directory, "one", "ec"), self_signed(directory, "two", "ec"));
    let authority = authority(directory);
    let host = |name: &str, more: &str| {
        format!("<VirtualHost *:*>\nServerName {name}.example\n{more}{REDIRECT}</VirtualHost>\n")
    };
    let on = |pair: &str| format!("SSLEngine on\n{pair}");
    [
        host("a", &on(&one)),
        host("b", &on(&one)),
        host("c", &on(&two)),
        host(
            "v",
            &on(&format!("{one}SSLVerifyClient require\nSSLCACertificateFile {authority}\n")),
        ),
        host("plain", ""),
    ]
    .concat()
}

#[test]
fn versions_and_variables_are_those_that_were_agreed_on() {
    with("SSLProtocol -all +TLSv1.2 +TLSv1.3\nSSLCipherSuite ECDHE+AES256", |server| {
        let port = server.address.port();
        let asked = |options: &[&str]| {
            let form = "%{http_code} %{redirect_url}";
            ask(options, form, port, "a.example", "a.example", "/tls")
        };
        let (old, new) = (asked(&["--tls-max", "1.2"]), asked(&[]));
        let to = |rest: &str| format!("302 http://x.example/{rest}");
        assert_eq!(old.stdout, to("TLSv1.2/ECDHE-ECDSA-AES256-GCM-SHA384/on/a.example"));
        assert_eq!(new.stdout, to("TLSv1.3/TLS_AES_256_GCM_SHA384/on/a.example"));
        assert_ne!(asked(&["--tls-max", "1.1"]).code, Some(0));
    });
    with("SSLProtocol TLSv1.3", |server| {
        let port = server.address.port();
        let refused = curl(&["--tls-max", "1.2"], port, "a.example", "a.example", "/who");
        assert_ne!(refused.code, Some(0));
    });
}

#[test]
fn redirects_of_directories_keep_the_scheme() {
    with("", |server| {
        let port = server.address.port();
        let form = "%{http_code} %{redirect_url}";
        let finished = ask(&[], form, port, "a.example", "a.example", "/sub");
        assert_eq!(finished.stdout, format!("301 https://a.example:{port}/sub/"));
    });
}

#[test]
fn clients_show_certificates() {
    let directory = Directory::new().expect("a directory");
    let authority = authority(directory.path());
    let (good, stranger) =
        (client(directory.path(), "alice", true), client(directory.path(), "eve", false));
    let show = |pair: &(String, String)| {
        ["--cert".to_owned(), pair.0.clone(), "--key".to_owned(), pair.1.clone()]
    };
    let asked = |server: &Server, options: &[String], path: &str| {
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        let form = "%{http_code} %{redirect_url}";
        ask(&options, form, server.address.port(), "a.example", "a.example", path)
    };
    let verify = |how: &str| format!("SSLVerifyClient {how}\nSSLCACertificateFile {authority}\n");
    with(&verify("require"), |server| {
        assert_eq!(
            asked(server, &show(&good), "/dn").stdout,
            "302 http://x.example/SUCCESS/alice/CN=alice,O=Milepost"
        );
        assert_ne!(asked(server, &show(&stranger), "/dn").code, Some(0));
        assert_ne!(asked(server, &[], "/dn").code, Some(0));
    });
    for asks in ["Require ssl-verify-client", "SSLVerifyClient require"] {
        let section = format!("<Location /sub>\n{asks}\n</Location>\n");
        with(&(verify("optional") + &section), |server| {
            assert_eq!(asked(server, &show(&good), "/sub/").stdout, "200 ", "{asks}");
            assert_eq!(asked(server, &[], "/sub/").stdout, "403 ", "{asks}");
            assert_eq!(asked(server, &[], "/dn").stdout, "302 http://x.example/NONE//");
            assert_ne!(asked(server, &show(&stranger), "/dn").code, Some(0));
        });
        // Nobody is asked for a certificate, and so nobody passes.
        with(&section, |server| {
            assert_eq!(asked(server, &show(&good), "/sub/").stdout, "403 ", "{asks}");
            assert_eq!(asked(server, &[], "/dn").stdout, "302 http://x.example/NONE//");
        });
    }
    with(&verify("optional_no_ca"), |server| {
        assert_eq!(
            asked(server, &show(&stranger), "/dn").stdout,
            "302 http://x.example/GENEROUS/eve/CN=eve,O=Milepost"
        );
    });
}

#[test]
fn sessions_are_resumed_from_tickets_and_from_the_cache() {
    for (directives, version, expected) in [
        ("", "-tls1_3", true),
        ("", "-tls1_2", true),
        ("SSLSessionTickets off", "-tls1_2", false),
        ("SSLSessionTickets off", "-tls1_3", false),
        ("SSLSessionTickets off\nSSLSessionCache shmcb:/x(100000)", "-tls1_2", true),
        ("SSLSessionTickets off\nSSLSessionCache shmcb:/x(100000)", "-tls1_3", true),
    ] {
        with(directives, |server| {
            let directory = Directory::new().expect("a directory");
            let session = directory.path().join("session").to_str().expect("UTF-8").to_owned();
            let first = s_client(server, &[version, "-sess_out", &session]);
            assert!(first.contains("New, TLSv1"), "{first}");
            let resumes = |what: &str| {
                let again = if Path::new(&session).exists() {
                    s_client(server, &[version, "-sess_in", &session])
                } else {
                    String::new()
                };
                assert_eq!(
                    again.contains("Reused, TLSv1"),
                    expected,
                    "{what} {directives} {version}: {again}"
                );
            };
            resumes("at once");
            if directives.is_empty() && version == "-tls1_2" {
                server.reload();
                resumes("after a reload");
            }
        });
    }
}

#[test]
fn clients_get_the_certificate_that_they_can_verify() {
    let directory = Directory::new().expect("a directory");
    let rsa = self_signed(directory.path(), "rsa", "rsa");
    with(&rsa, |server| {
        let ecdsa = s_client(server, &["-tls1_2"]);
        assert!(ecdsa.contains("Peer signature type: ECDSA"), "{ecdsa}");
        let rsa = s_client(server, &["-tls1_2", "-cipher", "ECDHE-RSA-AES128-GCM-SHA256"]);
        assert!(rsa.contains("Peer signature type: RSA-PSS"), "{rsa}");
        let rsa = s_client(server, &["-tls1_3", "-sigalgs", "RSA-PSS+SHA256"]);
        assert!(rsa.contains("Peer signature type: RSA-PSS"), "{rsa}");
    });
}

#[test]
fn a_reload_takes_new_certificates_and_refuses_bad_ones() {
    let directory = Directory::new().expect("a directory");
    let path = directory.path();
    let pair = self_signed(path, "first", "ec");
    let server = Server::start_with(path, &format!("Listen 127.0.0.1:0\nSSLEngine on\n{pair}"));
    assert!(s_client(&server, &[]).contains("CN = first"));
    self_signed(path, "second", "ec");
    fs::copy(path.join("second.key"), path.join("first.key")).expect("a key");
    // The key is new and the certificate is not.
    server.reload();
    assert!(s_client(&server, &[]).contains("CN = first"));
    fs::copy(path.join("second.pem"), path.join("first.pem")).expect("a certificate");
    server.reload();
    let deadline = Instant::now() + Duration::from_secs(60);
    while !s_client(&server, &[]).contains("CN = second") {
        assert!(Instant::now() < deadline, "the new certificate is not served");
        std::thread::sleep(Duration::from_millis(20));
    }
    server.stop();
}

#[test]
fn responses_of_a_responder_are_stapled() {
    let directory = Directory::new().expect("a directory");
    let path = directory.path();
    let authority = authority(path);
    let (certificate, key) = client(path, "stapled", true);
    let index = write(path, "index.txt", "");
    let file = |name: &str| path.join(name).to_str().expect("UTF-8").to_owned();
    let authority_key = file("ca.key");
    let request = file("request.der");
    ok(
        "openssl",
        &["ocsp", "-issuer", &authority, "-cert", &certificate, "-reqout", &request, "-no_nonce"],
    );
    let out = format!("{certificate}.ocsp");
    ok(
        "openssl",
        &[
            "ocsp",
            "-index",
            &index,
            "-rsigner",
            &authority,
            "-rkey",
            &authority_key,
            "-CA",
            &authority,
            "-reqin",
            &request,
            "-respout",
            &out,
            "-ndays",
            "1",
        ],
    );
    let text = format!(
        "Listen 127.0.0.1:0\nSSLEngine on\nSSLUseStapling on\n\
         SSLCertificateFile {certificate}\nSSLCertificateKeyFile {key}\n"
    );
    let server = Server::start_with(path, &text);
    let said = s_client(&server, &["-status"]);
    assert!(said.contains("OCSP Response Status: successful"), "{said}");
    server.stop();
}

#[test]
fn plain_http_is_answered_400() {
    with("", |server| {
        let finished = ok("curl", &["-s", "-w", "%{http_code}", &server.url("/")]);
        assert!(
            finished.stdout.ends_with("400") && finished.stdout.contains("https"),
            "{finished:?}"
        );
    });
}

#[test]
fn a_handshake_that_does_not_come_is_not_waited_for() {
    with("RequestReadTimeout handshake=1", |server| {
        for first in [&b""[..], b"\x16\x03\x01"] {
            let mut stream = TcpStream::connect(server.address).expect("a connection");
            stream.write_all(first).expect("open");
            stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a timeout");
            // Whether with an alert or without one, it ends.
            let mut rest = Vec::new();
            let end = stream.read_to_end(&mut rest);
            assert!(end.is_ok_and(|count| count < 10), "{rest:?}");
        }
    });
}

#[test]
fn ab_measures_over_tls() {
    with("", |server| {
        let url = format!("https://{}/sub/", server.address);
        let finished = ok("ab", &["-n", "100", "-c", "4", &url]);
        let lines: Vec<&str> =
            finished.stdout.lines().filter(|line| line.contains("requests:")).collect();
        assert!(lines.iter().any(|line| line.ends_with(" 100")), "{}", finished.stdout);
        assert!(
            lines.iter().any(|line| line.starts_with("Failed") && line.ends_with(" 0")),
            "{}",
            finished.stdout
        );
        assert!(!finished.stdout.contains("Non-2xx"), "{}", finished.stdout);
    });
}

#[test]
fn check_says_what_is_wrong_with_files() {
    let directory = Directory::new().expect("a directory");
    let path = directory.path();
    let one = self_signed(path, "one", "ec");
    self_signed(path, "two", "ec");
    write(path, "empty.pem", "nothing\n");
    let file = |name: &str| path.join(name).to_str().expect("UTF-8").to_owned();
    let encrypted = file("encrypted.key");
    ok(
        "openssl",
        &["pkey", "-in", &file("one.key"), "-aes128", "-passout", "pass:x", "-out", &encrypted],
    );
    for (directives, line, message) in [
        (String::new(), 2, "there is no certificate"),
        (format!("SSLCertificateFile {}", file("none.pem")), 3, "does not exist or is empty"),
        (format!("SSLCertificateFile {}", file("empty.pem")), 3, "holds no certificate"),
        (format!("SSLCertificateFile {}", file("one.pem")), 3, "holds no private key"),
        (
            format!(
                "SSLCertificateFile {}\nSSLCertificateKeyFile {}",
                file("one.pem"),
                file("two.key")
            ),
            4,
            "is not for the key",
        ),
        (
            format!("SSLCertificateFile {}\nSSLCertificateKeyFile {encrypted}", file("one.pem")),
            4,
            "is encrypted",
        ),
        (format!("{one}SSLCARevocationCheck leaf"), 5, "no lists to look clients up in"),
        (
            format!("{one}SSLSessionTicketKeyFile {}", file("empty.pem")),
            5,
            "does not have 48 bytes",
        ),
        (format!("{one}SSLOpenSSLConfCmd DHParameters {}", file("none.pem")), 5, "does not exist"),
        (format!("{one}SSLOpenSSLConfCmd Magic on"), 5, "OpenSSL has no command"),
        (
            format!("{one}SSLCipherSuite ECDHE-RSA-AES128-GCM-SHA256\nSSLProtocol TLSv1.2"),
            5,
            "goes with the certificate",
        ),
    ] {
        let conf =
            write(path, "httpd.conf", &format!("Listen 127.0.0.1:0\nSSLEngine on\n{directives}\n"));
        let finished = milepost(&["check", "-f", &conf]);
        assert_eq!(finished.code, Some(2), "{directives}: {finished:?}");
        let found = finished.stdout.lines().find(|line| line.contains(message));
        let found =
            found.unwrap_or_else(|| panic!("{directives}: no {message:?} in {}", finished.stdout));
        assert!(found.starts_with(&format!("{conf}:{line}:")), "{found}");
    }
    for (directives, code, message) in [
        (String::new(), 0, "nothing found"),
        ("SSLProtocol TLSv1\n".to_owned(), 1, "TLSv1.2 and TLSv1.3 are offered instead"),
        (
            "<Location /a>\nSSLVerifyClient require\n</Location>\n".to_owned(),
            1,
            "refuses here who has not shown a certificate",
        ),
    ] {
        let directives = format!("Listen 127.0.0.1:0\nSSLEngine on\n{one}{directives}");
        let conf = write(path, "httpd.conf", &directives);
        let finished = milepost(&["check", "-f", &conf]);
        assert_eq!(finished.code, Some(code), "{finished:?}");
        assert!(finished.stdout.contains(message), "{finished:?}");
    }
}

#[test]
fn what_cannot_be_served_can_be_looked_at() {
    let directory = Directory::new().expect("a directory");
    let path = directory.path();
    let one = self_signed(path, "one", "ec");
    for (directives, line, message) in [
        ("SSLVerifyClient require", 2, "no authority is known"),
        ("SSLProtocol -all", 5, "leaves no version"),
        ("SSLCipherSuite AES128-SHA", 5, "leaves no cipher suite"),
        ("SSLOpenSSLConfCmd MinProtocol TLSv1.3", 5, "the command `MinProtocol` is not done"),
        ("SSLOCSPEnable on", 5, "no responder is asked"),
        ("SSLOptions +LegacyDNStringFormat", 5, "names are written as RFC 2253 says"),
        ("ProxyRequests On", 5, "a forward proxy is not supported"),
        ("ProxyRemote * http://127.0.0.1:1", 5, "`ProxyRemote` is not supported"),
        ("ProxyPass /p http://127.0.0.1:1/ mapping=servlet", 5, "`mapping=` is not supported"),
        ("LuaHookAccessChecker a.lua b", 5, "would be let in"),
    ] {
        let text = format!(
            "Listen 127.0.0.1:0\nSSLEngine on\n{one}{directives}\nRedirect /a http://x.example/\n"
        );
        let conf = write(path, "httpd.conf", &text);
        let found = milepost(&["check", "-f", &conf]);
        assert_eq!(found.code, Some(1), "{directives}: {found:?}");
        let begin = format!("{conf}:{line}:");
        let mut lines = found.stdout.lines().filter(|said| said.starts_with(&begin));
        let said = lines.find(|said| said.ends_with("; `milepost serve` refuses it"));
        assert!(said.is_some_and(|said| said.contains(message)), "{directives}: {}", found.stdout);
        let explained = milepost(&["explain", "-f", &conf, "https://h.example/a"]);
        assert_eq!(explained.code, Some(0), "{directives}: {explained:?}");
        assert!(explained.stdout.contains("http://x.example/"), "{directives}: {explained:?}");
        let served = milepost(&["serve", "-f", &conf]);
        assert_eq!(served.code, Some(2), "{directives}: {served:?}");
        assert!(served.stderr.contains(message), "{directives}: {served:?}");
    }
}

/// Serves one host over TLS with more directives, and sees that it ends in order.
#[track_caller]
pub(crate) fn with(directives: &str, body: impl FnOnce(&Server)) {
    let directory = Directory::new().expect("a directory");
    let path = directory.path();
    let pair = self_signed(path, "own", "ec");
    let root = path.join("root");
    fs::create_dir_all(root.join("sub")).expect("a directory");
    write(&root.join("sub"), "index.html", "<title>hello</title>\n");
    let text = format!(
        "Listen 127.0.0.1:0\nSSLEngine on\n{pair}DocumentRoot {}\n{directives}\n\
         <Directory />\nRequire all granted\n</Directory>\nRewriteEngine on\n\
         RewriteRule ^/tls http://x.example/%{{SSL:SSL_PROTOCOL}}/%{{SSL:SSL_CIPHER}}/%{{HTTPS}}/%{{SSL:SSL_TLS_SNI}} [R,L]\n\
         RewriteRule ^/dn http://x.example/%{{SSL:SSL_CLIENT_VERIFY}}/%{{SSL:SSL_CLIENT_S_DN_CN}}/%{{SSL:SSL_CLIENT_S_DN}} [R,L]\n",
        root.display()
    );
    let server = Server::start_with(path, &text);
    body(&server);
    server.stop();
}

/// Asks for a path; prints the status and where it leads.
fn curl(options: &[&str], port: u16, name: &str, host: &str, path: &str) -> Finished {
    ask(options, "%{http_code} %{redirect_url}", port, name, host, path)
}

fn ask(options: &[&str], form: &str, port: u16, name: &str, host: &str, path: &str) -> Finished {
    let resolve = format!("{name}:{port}:127.0.0.1");
    let host = if host == name { format!("Host: {host}:{port}") } else { format!("Host: {host}") };
    let url = format!("https://{name}:{port}{path}");
    let fixed = ["-sk", "-o", "/dev/null", "-w", form, "--resolve", &resolve, "-H", &host, &url];
    run("curl", &[options, &fixed].concat(), &[])
}

/// What `openssl s_client` says of a connection on which it asks for something.
fn s_client(server: &Server, options: &[&str]) -> String {
    let address = server.address.to_string();
    let fixed = ["s_client", "-connect", &address, "-servername", "a.example", "-ign_eof"];
    let mut child = Command::new("openssl")
        .args([&fixed, options].concat())
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("openssl runs");
    let request = b"GET /tls HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n";
    child.stdin.take().expect("a pipe").write_all(request).expect("s_client reads");
    let output = child.wait_with_output().expect("s_client ends");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[track_caller]
pub(crate) fn ok(program: &str, arguments: &[&str]) -> Finished {
    let finished = run(program, arguments, &[]);
    assert_eq!(finished.code, Some(0), "{program} {arguments:?}: {finished:?}");
    finished
}
