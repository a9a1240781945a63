//! Real servers on free loopback ports, with the same few resources.
//!
//! | path | answer |
//! |---|---|
//! | `/ok` | 200 with 8 bytes |
//! | `/r` | 301 to `/ok` |
//! | `/chain` | 302 to `/r` |
//! | `/private` | Apache: 7 bytes for Mufasa, whose digest is asked for |
//! | anything else | 404 |

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use milepost_testkit::directory::Directory;
use milepost_testkit::httpd::{Httpd, HttpdError, Program, free_port};

/// Of Mufasa, realm lions, password Circle of Life, as htdigest writes it.
const USERS: &str = "Mufasa:lions:bf5295ae357df6b59139c9a092cfe06b\n";

/// Ports tried; more than one only when somebody else takes it at that moment.
const PORTS_MAX: u32 = 5;

/// For a machine under load; a start takes milliseconds.
const START_MAX: Duration = Duration::from_secs(30);

/// A running server, stopped when dropped.
pub(crate) struct Server {
    pub(crate) name: &'static str,
    pub(crate) address: SocketAddr,
    /// Where TLS is spoken, with the certificate `cert.pem` for `localhost` and 127.0.0.1.
    pub(crate) secure: SocketAddr,
    _process: Process,
    directory: Directory,
}

/// What is stopped when dropped.
enum Process {
    Apache(#[expect(dead_code, reason = "held until it is dropped")] Httpd),
    Child(Child),
}

impl Server {
    /// Each kind once.
    pub(crate) fn both() -> [Self; 2] {
        [Self::apache(), Self::nginx()]
    }

    /// Each kind that there is, milepost itself among them.
    pub(crate) fn all() -> [Self; 4] {
        [Self::apache(), Self::nginx(), Self::haproxy(), Self::milepost()]
    }

    fn haproxy() -> Self {
        Self::child("haproxy", "haproxy.cfg", &["-db", "-f"], |root, address, secure| {
            let pem =
                ["cert.pem", "key.pem"].map(|name| fs::read(root.join(name)).expect("a file"));
            fs::write(root.join("both.pem"), pem.concat()).expect("a new file");
            format!(
                "global\n  maxconn 512\ndefaults\n  mode http\n  timeout client 30s\n\
                 \x20 timeout server 30s\n  timeout connect 5s\nfrontend all\n  bind {address}\n\
                 \x20 bind {secure} ssl crt {}/both.pem alpn h2,http/1.1\n\
                 \x20 http-request redirect code 301 location /ok if {{ path /r }}\n\
                 \x20 http-request redirect code 302 location /r if {{ path /chain }}\n\
                 \x20 http-request return status 200 content-type text/plain string \"success\\n\" if {{ path /ok }}\n\
                 \x20 http-request return status 404\n",
                root.display()
            )
        })
    }

    fn milepost() -> Self {
        let program = env!("CARGO_BIN_EXE_milepost");
        Self::child(program, "httpd.conf", &["serve", "-f"], |root, address, secure| {
            let root = root.display();
            let site = format!(
                "DocumentRoot \"{root}/htdocs\"\nRedirectMatch 301 ^/r$ /ok\nRedirectMatch 302 ^/chain$ /r\n"
            );
            format!(
                "Listen {address}\nListen {secure} https\nServerName localhost\nMaxKeepAliveRequests 0\n\
                 Protocols h2 h2c http/1.1\n<Directory \"{root}/htdocs\">\nRequire all granted\n</Directory>\n\
                 {site}<VirtualHost {secure}>\nSSLEngine on\nSSLCertificateFile \"{root}/cert.pem\"\n\
                 SSLCertificateKeyFile \"{root}/key.pem\"\n{site}</VirtualHost>\n"
            )
        })
    }

    /// A server that is one process and stays in the foreground.
    fn child(
        program: &str,
        name: &str,
        options: &[&str],
        configure: impl Fn(&Path, SocketAddr, SocketAddr) -> String,
    ) -> Self {
        let directory = site();
        let root = directory.path();
        let file = root.join(name);
        for _ in 0..PORTS_MAX {
            let (address, secure) = (free_address(), free_address());
            fs::write(&file, configure(root, address, secure)).expect("a directory to write in");
            let mut command = Command::new(program);
            command.args(options).arg(&file);
            if let Some(child) = start_child(command, program, address) {
                let name = if program == "haproxy" { "haproxy" } else { "milepost" };
                let process = Process::Child(child);
                return Self { name, address, secure, _process: process, directory };
            }
        }
        panic!("{program} did not start with {:?}", fs::read_to_string(&file));
    }

    fn apache() -> Self {
        let program = Program::find().unwrap_or_else(|error| panic!("{error}"));
        let program = program.with_modules(&[
            "socache_shmcb",
            "ssl",
            "http2",
            "auth_digest",
            "authn_core",
            "authn_file",
            "authz_user",
        ]);
        let directory = site();
        let root = directory.path();
        let file = root.join("httpd.conf");
        for _ in 0..PORTS_MAX {
            let (address, secure) = (free_address(), free_address());
            let text = format!(
                "{}{}ServerName localhost\nServerRoot \"{root}\"\nListen {address}\n\
                 DocumentRoot \"{root}/htdocs\"\nUseCanonicalName Off\n\
                 <Directory \"{root}/htdocs\">\nRequire all granted\n</Directory>\n\
                 RedirectMatch 301 ^/r$ /ok\nRedirectMatch 302 ^/chain$ /r\n\
                 <Location /private>\nAuthType Digest\nAuthName lions\nAuthUserFile \"{root}/users\"\n\
                 Require valid-user\n</Location>\n\
                 Protocols h2 h2c http/1.1\nListen {secure}\n<VirtualHost {secure}>\nSSLEngine on\n\
                 SSLCertificateFile \"{root}/cert.pem\"\nSSLCertificateKeyFile \"{root}/key.pem\"\n\
                 DocumentRoot \"{root}/htdocs\"\n\
                 RedirectMatch 301 ^/r$ /ok\nRedirectMatch 302 ^/chain$ /r\n</VirtualHost>\n",
                program.load_modules(),
                program.process_directives(root),
                root = root.display()
            );
            fs::write(&file, text).expect("a directory that can be written");
            match program.start(&file) {
                Ok(httpd) => {
                    return Self {
                        name: "apache",
                        address,
                        secure,
                        _process: Process::Apache(httpd),
                        directory,
                    };
                }
                Err(HttpdError::PortInUse) => {}
                Err(error) => panic!("{error}"),
            }
        }
        panic!("no free port for Apache in {PORTS_MAX} tries");
    }

    fn nginx() -> Self {
        let directory = site();
        let root = directory.path();
        let file = root.join("nginx.conf");
        for _ in 0..PORTS_MAX {
            let (address, secure) = (free_address(), free_address());
            let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
                .map(|name| format!("{name}_temp_path \"{}/{name}\";\n", root.display()))
                .concat();
            let text = format!(
                "daemon off;\nmaster_process off;\npid \"{root}/pid\";\nerror_log \"{root}/error.log\";\n\
                 events {{ worker_connections 512; }}\n\
                 http {{\naccess_log off;\ndefault_type text/plain;\nkeepalive_requests 1000000;\n\
                 {temporary}server {{\nlisten {address};\nlisten {secure} ssl http2;\n\
                 ssl_certificate \"{root}/cert.pem\";\nssl_certificate_key \"{root}/key.pem\";\n\
                 ssl_protocols TLSv1.2 TLSv1.3;\nssl_session_cache builtin:1000;\nroot \"{root}/htdocs\";\n\
                 location = /r {{ return 301 /ok; }}\nlocation = /chain {{ return 302 /r; }}\n}}\n}}\n",
                root = root.display()
            );
            fs::write(&file, text).expect("a directory that can be written");
            if let Some(child) = start_nginx(root, &file, address) {
                return Self {
                    name: "nginx",
                    address,
                    secure,
                    _process: Process::Child(child),
                    directory,
                };
            }
        }
        panic!("nginx did not start: {:?}", fs::read_to_string(root.join("error.log")));
    }

    /// A directory for files of the test.
    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn secure_url(&self, path: &str) -> String {
        format!("https://{}{path}", self.secure)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Self::Child(child) = self {
            // It may have ended already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn site() -> Directory {
    let directory = Directory::new().expect("a directory");
    fs::create_dir(directory.path().join("htdocs")).expect("a new directory");
    let file = directory.path().join("htdocs/ok");
    fs::write(&file, "success\n").expect("a new file");
    // Apache's ETag of a file that has just changed is weak, and two bytes longer.
    let file = fs::File::open(file).expect("the new file");
    file.set_modified(SystemTime::now() - Duration::from_secs(3_600)).expect("our own file");
    fs::write(directory.path().join("htdocs/private"), "secret\n").expect("a new file");
    fs::write(directory.path().join("users"), USERS).expect("a new file");
    fs::write(directory.path().join("mime.types"), "").expect("a new file");
    let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
    let made = rcgen::generate_simple_self_signed(names).expect("a certificate");
    fs::write(directory.path().join("cert.pem"), made.cert.pem()).expect("a new file");
    let key = made.signing_key.serialize_pem();
    fs::write(directory.path().join("key.pem"), key).expect("a new file");
    directory
}

fn free_address() -> SocketAddr {
    ([127, 0, 0, 1], free_port().expect("a free port")).into()
}

/// `None` when it ended at once, such as for want of the port.
fn start_nginx(root: &Path, file: &Path, address: SocketAddr) -> Option<Child> {
    let mut command = Command::new("nginx");
    command.arg("-p").arg(root).arg("-c").arg(file);
    start_child(command, "nginx", address)
}

/// `None` when it ended at once, such as for want of the port.
fn start_child(mut command: Command, program: &str, address: SocketAddr) -> Option<Child> {
    let path = std::env::var("PATH").unwrap_or_default();
    let mut child = command
        .env("PATH", format!("{path}:/usr/sbin"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap_or_else(|error| {
            panic!("this test needs {program}; `make test` installs it: {error}")
        });
    let began = Instant::now();
    while began.elapsed() < START_MAX {
        if child.try_wait().expect("a child").is_some() {
            return None;
        }
        if TcpStream::connect(address).is_ok() {
            return Some(child);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    let _ = child.kill();
    let _ = child.wait();
    panic!("{program} does not serve");
}
