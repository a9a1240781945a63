//! The proxy between parts that are real: Apache and nginx behind it, and Apache in front of it.

use std::fmt::Write as _;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use milepost_testkit::directory::Directory;
use milepost_testkit::httpd::{Httpd, Program, free_port};

use crate::certificates::self_signed;
use crate::support::{Server, run, write};
use crate::tls::ok;

/// More than any buffer on the way.
const FILE_BYTES: usize = 3_000_000;

/// Both backends give up idle connections after a second.
const IDLE_GONE: Duration = Duration::from_millis(2500);

/// For a server to start, on a machine that is busy.
const START_MAX: Duration = Duration::from_secs(60);

#[test]
fn apache_and_nginx_are_backends() {
    let directory = Directory::new().expect("a directory");
    let root = directory.path();
    let content: Vec<u8> = (0..FILE_BYTES).map(|number| (number % 251) as u8).collect();
    let text = "a line that is worth compressing\n".repeat(1000);
    for name in ["files", "locks"] {
        fs::create_dir(root.join(name)).expect("a directory");
        // Apache writes there, under another name than ours if we are root.
        let all = fs::Permissions::from_mode(0o777);
        fs::set_permissions(root.join(name), all).expect("permissions");
    }
    fs::write(root.join("files/big.bin"), &content).expect("a file");
    fs::write(root.join("files/text.txt"), &text).expect("a file");
    let apache_log = root.join("apache.log");
    let (_apache, apache) = apache(
        root,
        &["dav", "dav_fs", "deflate", "filter", "log_config"],
        &format!(
            "DocumentRoot {0}/files\nDavLockDB {0}/locks/lock\nKeepAliveTimeout 1\n\
             LogFormat \"%m %U %>s %k\" kept\nCustomLog {1} kept\n\
             <Directory {0}/files>\nRequire all granted\nDav On\nSetOutputFilter DEFLATE\n</Directory>\n",
            root.display(),
            apache_log.display(),
        ),
    );
    let nginx = Nginx::start(
        root,
        &format!(
            "root {}/files; keepalive_timeout 1s; gzip on; gzip_types *; gzip_min_length 1;
             location /moved {{ return 301 /text.txt; }}",
            root.display()
        ),
    );
    let nginx_port = nginx.port;
    let front = Server::start_with(
        root,
        &format!(
            "Listen 127.0.0.1:0\nProtocols h2c http/1.1\n\
             ProxyPass /apache/ http://127.0.0.1:{apache}/ ping=10\n\
             ProxyPass /nginx/ http://127.0.0.1:{nginx_port}/\n\
             ProxyPassReverse /nginx/ http://127.0.0.1:{nginx_port}/\n"
        ),
    );
    let out = root.join("out").to_str().expect("UTF-8").to_owned();
    let form = "%{http_code} %header{etag} %header{content-length} %header{transfer-encoding} %{redirect_url}";
    for version in ["--http1.0", "--http1.1", "--http2-prior-knowledge"] {
        let curl = |more: &[&str], path: &str| {
            let fixed = ["-s", version, "--max-time", "60", "-o", &out, "-w", form];
            ok("curl", &[&fixed[..], more, &[&front.url(path)]].concat()).stdout
        };
        for backend in ["apache", "nginx"] {
            let what = format!("{version} {backend}");
            let got = curl(&[], &format!("/{backend}/big.bin"));
            assert!(got.starts_with("200 "), "{what}: {got}");
            assert!(fs::read(&out).expect("a file") == content, "{what}: another file");
            let etag = got.split(' ').nth(1).expect("an entity tag").to_owned();
            let known = format!("If-None-Match: {etag}");
            assert!(
                curl(&["-H", &known], &format!("/{backend}/big.bin")).starts_with("304 "),
                "{what}"
            );
            let head =
                ok("curl", &["-sI", version, &front.url(&format!("/{backend}/big.bin"))]).stdout;
            let length = format!("content-length: {FILE_BYTES}\r\n");
            assert!(head.to_ascii_lowercase().contains(&length), "{what}: {head}");
            assert!(
                curl(&["-r", "5-6"], &format!("/{backend}/big.bin")).starts_with("206 "),
                "{what}"
            );
            assert_eq!(fs::read(&out).expect("a file"), &content[5..=6], "{what}");
            // Compressed on the way, so of unknown length.
            let got = curl(&["--compressed"], &format!("/{backend}/text.txt"));
            assert!(got.starts_with("200 "), "{what}: {got}");
            assert_eq!(fs::read_to_string(&out).expect("a file"), text, "{what}");
            assert!(curl(&[], &format!("/{backend}/none")).starts_with("404 "), "{what}");
        }
        let got = curl(&[], "/nginx/moved");
        assert!(got.ends_with(&front.url("/nginx/text.txt")), "{got}");
        // The other way: with a length, and in chunks where there are any.
        let big = root.join("files/big.bin").to_str().expect("UTF-8").to_owned();
        let sent = ["-X", "PUT", "--data-binary"];
        let at_big = format!("@{big}");
        let put = curl(&[&sent[..], &[&at_big]].concat(), "/apache/put.bin");
        assert!(put.starts_with("201 ") || put.starts_with("204 "), "{version}: {put}");
        assert!(fs::read(root.join("files/put.bin")).expect("a file") == content, "{version}");
        if version != "--http1.0" {
            let chunked = format!(
                "curl -s {version} -T - --max-time 60 -o {out} -w '%{{http_code}}' {} <{big}",
                front.url("/apache/chunks.bin")
            );
            let put = run("sh", &["-c", &chunked], &[]).stdout;
            assert!(matches!(&*put, "201" | "204"), "{version}: {put}");
            assert!(
                fs::read(root.join("files/chunks.bin")).expect("a file") == content,
                "{version}"
            );
        }
    }
    // Connections are used again, and one that the backend has given up does no harm.
    for _ in 0..2 {
        thread::sleep(IDLE_GONE);
        for backend in ["apache", "nginx"] {
            let url = front.url(&format!("/{backend}/text.txt"));
            assert_eq!(ok("curl", &["-s", &url, &url]).stdout, text.repeat(2), "{backend}");
        }
    }
    front.stop();
    let log = fs::read_to_string(&apache_log).expect("a log");
    assert!(log.lines().any(|line| !line.ends_with(" 0")), "no connection was used again: {log}");
}

#[test]
fn apache_in_front_asks_milepost() {
    let directory = Directory::new().expect("a directory");
    let root = directory.path();
    write(root, "index.html", "hello\n");
    let log = root.join("milepost.log");
    let own = Server::start_with(
        root,
        &format!(
            "Listen 127.0.0.1:0\nDocumentRoot {0}\n<Directory {0}>\nRequire all granted\n</Directory>\n\
             MaxKeepAliveRequests 0\nLogFormat \"%m %U %>s %k\" kept\nCustomLog {1} kept\n\
             Redirect 301 /test/1 /new/1\n",
            root.display(),
            log.display(),
        ),
    );
    let front_root = root.join("front");
    fs::create_dir(&front_root).expect("a directory");
    let (_apache, port) = apache(
        &front_root,
        &["proxy", "proxy_http"],
        &format!(
            "ProxyPass / http://{0}/\nProxyPassReverse / http://{0}/\nMaxKeepAliveRequests 0\n",
            own.address
        ),
    );
    let url = |path: &str| format!("http://127.0.0.1:{port}{path}");
    let curl = |more: &[&str], path: &str| {
        let form = "%{http_code} %{redirect_url}";
        let fixed = ["-s", "--max-time", "60", "-o", "/dev/null", "-w", form];
        ok("curl", &[&fixed[..], more, &[&url(path)]].concat()).stdout
    };
    assert_eq!(ok("curl", &["-s", &url("/index.html")]).stdout, "hello\n");
    let moved = format!("301 {}", url("/new/1"));
    assert_eq!(curl(&[], "/test/1"), moved);
    assert_eq!(curl(&["-I"], "/test/1"), moved);
    let large = "x".repeat(200_000);
    let file = write(root, "large", &large);
    assert_eq!(curl(&["--data-binary", &format!("@{file}")], "/test/1"), moved);
    let chunked = ["-H", "Transfer-Encoding: chunked", "--data-binary", "abc"];
    assert_eq!(curl(&chunked, "/test/1"), moved);
    assert_eq!(curl(&["-H", "If-None-Match: *"], "/index.html"), "304 ");
    for more in [&["-k"][..], &[]] {
        let fixed = ["-n", "200", "-c", "4"];
        let said = ok("ab", &[&fixed[..], more, &[&url("/test/1")]].concat()).stdout;
        assert!(said.contains("Complete requests:      200"), "{said}");
        assert!(said.contains("Failed requests:        0"), "{said}");
        assert!(said.contains("Non-2xx responses:      200"), "{said}");
    }
    own.stop();
    let log = fs::read_to_string(&log).expect("a log");
    assert!(
        log.lines().any(|line| line == "GET /test/1 301 20"),
        "connections are not kept: {log}"
    );
}

#[test]
fn handshakes_and_backends_are_counted() {
    let directory = Directory::new().expect("a directory");
    let root = directory.path();
    let backend = Server::start_with(root, "Listen 127.0.0.1:0\nRedirect /app http://b.example/\n");
    let pair = self_signed(root, "own", "ec");
    let metrics = format!("127.0.0.1:{}", free_port().expect("a port"));
    let text = format!(
        "Listen 127.0.0.1:0\nSSLEngine on\n{pair}SSLSessionCache shmcb:/unused(512000)\n\
         ProxyPass /app http://{}/app\nProxyPass /none unix:{}/none.sock|http://localhost/ retry=0\n",
        backend.address,
        root.display(),
    );
    let conf = write(root, "front.conf", &text);
    let front = Server::start(&["-f", &conf, "--workers", "1", "--metrics", &metrics]);
    let url = |path: &str| format!("https://{}{path}", front.address);
    let form = ["-sk", "-o", "/dev/null", "-w", "%{http_code} "];
    let codes = ok("curl", &[&form[..], &[&url("/app"), "-o", "/dev/null", &url("/app")]].concat());
    assert_eq!(codes.stdout, "302 302 ");
    assert_eq!(ok("curl", &[&form[..], &[&url("/none")]].concat()).stdout, "503 ");
    let address = front.address.to_string();
    // Once from the beginning, and five times with its session.
    ok("openssl", &["s_client", "-tls1_2", "-reconnect", "-connect", &address]);
    let mut stream = TcpStream::connect(front.address).expect("a connection");
    // A record of a version that there is not.
    stream.write_all(&[22, 9, 9, 0, 4, 1, 2, 3, 4]).expect("open");
    let mut alert = Vec::new();
    let _ = stream.read_to_end(&mut alert);
    let said = ok("curl", &["-s", &format!("http://{metrics}/metrics")]).stdout;
    let app = format!("backend=\"http://{}/app\"", backend.address);
    for line in [
        "tls_handshakes_total{version=\"TLSv1.3\",resumed=\"no\"} 2".to_owned(),
        "tls_handshakes_total{version=\"TLSv1.2\",resumed=\"no\"} 1".to_owned(),
        "tls_handshakes_total{version=\"TLSv1.2\",resumed=\"yes\"} 5".to_owned(),
        "tls_handshakes_failed_total 1".to_owned(),
        format!("proxy_requests_total{{{app},outcome=\"answered\"}} 2"),
        format!("proxy_requests_total{{{app},outcome=\"failed\"}} 0"),
        format!("proxy_connections_total{{{app},kind=\"opened\"}} 1"),
        format!("proxy_connections_total{{{app},kind=\"reused\"}} 1"),
        format!("proxy_retries_total{{{app}}} 0"),
    ] {
        assert!(said.contains(&format!("\nmilepost_{line}\n")), "{line}: {said}");
    }
    let failed = said.lines().find(|line| line.contains("none.sock") && line.contains("failed"));
    assert!(failed.is_some_and(|line| line.ends_with(" 1")), "{said}");
    front.stop();
    backend.stop();
}

/// Starts Apache in `root`; returns it and its port.
#[track_caller]
fn apache(root: &Path, modules: &[&'static str], directives: &str) -> (Httpd, u16) {
    let program = Program::find().expect("httpd").with_modules(modules);
    let port = free_port().expect("a port");
    let mut text = program.process_directives(root);
    let modules = program.load_modules();
    write!(
        text,
        "ServerName localhost\nServerRoot {}\nListen 127.0.0.1:{port}\n{modules}{directives}",
        root.display()
    )
    .expect("memory");
    write(root, "mime.types", "text/plain txt\n");
    let conf = write(root, "apache.conf", &text);
    let httpd = program.start(conf.as_ref()).unwrap_or_else(|error| panic!("{error}"));
    (httpd, port)
}

/// A running nginx; stopped when dropped.
struct Nginx {
    child: Child,
    port: u16,
}

impl Nginx {
    /// Starts it in `root`, with one server that `directives` describe.
    #[track_caller]
    fn start(root: &Path, directives: &str) -> Nginx {
        let port = free_port().expect("a port");
        let own = root.join("nginx");
        fs::create_dir(&own).expect("a directory");
        let kinds = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
        let paths: String = kinds
            .iter()
            .map(|kind| format!("{kind}_temp_path {}/{kind};\n", own.display()))
            .collect();
        let text = format!(
            "daemon off;\nmaster_process off;\npid {0}/pid;\nerror_log {0}/error.log;\n\
             events {{ worker_connections 64; }}\n\
             http {{\naccess_log off;\n{paths}server {{\nlisten 127.0.0.1:{port};\n{directives}\n}}\n}}\n",
            own.display()
        );
        let conf = write(&own, "nginx.conf", &text);
        let error_log = own.join("error.log").to_str().expect("UTF-8").to_owned();
        let child = Command::new("nginx")
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .args(["-e", &error_log, "-c", &conf])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("this test needs nginx; `make test` installs it");
        let mut nginx = Nginx { child, port };
        let began = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            let ended = nginx.child.try_wait().expect("a child");
            assert!(
                ended.is_none(),
                "nginx: {}",
                fs::read_to_string(&error_log).unwrap_or_default()
            );
            assert!(began.elapsed() < START_MAX, "nginx does not start");
            thread::sleep(Duration::from_millis(5));
        }
        nginx
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
