//! Real httpd and milepost side by side, on one configuration and one tree of files.
//!
//! milepost runs in this process, with one worker, on a port that the system chooses.

use std::fmt::Write as _;
use std::io::{Read, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use milepost_engine::{Listen, LoadOptions, Site};
use milepost_server::{FileSystem, Logs, Running, Server, SiteResponder};

use crate::directory::Directory;
use crate::httpd::{Httpd, Program, free_port};

/// How long an answer may take on a machine under load.
const ANSWER_MAX: Duration = Duration::from_secs(20);

/// Both servers; stopped when dropped.
#[allow(missing_debug_implementations, reason = "a running server has none")]
pub struct Beside {
    /// Where httpd listens.
    pub httpd: SocketAddr,
    /// Where milepost listens.
    pub milepost: SocketAddr,
    /// Held to be dropped.
    _servers: (Httpd, Running),
    _logs: Arc<Logs>,
    directory: Directory,
}

impl Beside {
    /// Starts both on `configuration`, in which `@ROOT@` is a directory of this test. `prepare` fills it;
    /// its `htdocs` is the document root.
    ///
    /// # Panics
    /// When one of them does not start.
    #[track_caller]
    pub fn start(
        modules: &[&'static str],
        configuration: &str,
        prepare: impl FnOnce(&Path),
    ) -> Beside {
        let directory = Directory::new().expect("makes a directory");
        let root = directory.path();
        std::fs::create_dir_all(root.join("htdocs")).expect("makes the document root");
        std::fs::write(root.join("mime.types"), TYPES).expect("writes the types");
        prepare(root);
        let program = Program::find().unwrap_or_else(|error| panic!("{error}"));
        let program = program.with_modules(modules);
        let root = root.to_str().expect("the path is text");
        let common = format!(
            "{}ServerName www.test\nTypesConfig {root}/mime.types\nDocumentRoot \"{root}/htdocs\"\n\
             <Directory \"{root}/htdocs\">\nRequire all granted\nAllowOverride All\n\
             Options FollowSymLinks\n</Directory>\n{}",
            program.load_modules(),
            configuration.replace("@ROOT@", root)
        );
        let port = free_port().expect("finds a port");
        let own = program.process_directives(directory.path());
        let text = format!("{own}ServerRoot \"{root}\"\nListen 127.0.0.1:{port}\n{common}")
            .replace("@LOGS@", "httpd");
        let conf = PathBuf::from(root).join("httpd.conf");
        std::fs::write(&conf, text).expect("writes the configuration");
        let httpd = program.start(&conf).unwrap_or_else(|error| panic!("{error}"));
        let text = format!("Listen 127.0.0.1:1\n{common}").replace("@LOGS@", "milepost");
        let (milepost, running, logs) = serve(directory.path(), &text);
        let httpd_address = SocketAddr::from(([127, 0, 0, 1], port));
        Beside {
            httpd: httpd_address,
            milepost,
            _servers: (httpd, running),
            _logs: logs,
            directory,
        }
    }

    /// The directory of both.
    pub fn root(&self) -> &Path {
        self.directory.path()
    }

    /// Sends each request to both, with `Host` and `Connection: close` added, and compares what `show`
    /// makes of the answers.
    ///
    /// # Panics
    /// When an answer differs, with all that differ.
    #[track_caller]
    pub fn compare(&self, requests: &[String], show: impl Fn(&str, &str) -> String) {
        let requests: Vec<_> =
            requests.iter().map(|request| (request.clone(), whole(request))).collect();
        self.compare_all(&requests, show);
    }

    /// As [`Beside::compare`], for requests that are sent as they are.
    ///
    /// # Panics
    /// When an answer differs, with all that differ.
    #[track_caller]
    pub fn compare_bytes(&self, requests: &[&[u8]], show: impl Fn(&str, &str) -> String) {
        let name = |request: &[u8]| {
            String::from_utf8_lossy(&request[..request.len().min(60)]).into_owned()
        };
        let requests: Vec<_> =
            requests.iter().map(|request| (name(request), request.to_vec())).collect();
        self.compare_all(&requests, show);
    }

    #[track_caller]
    fn compare_all(&self, requests: &[(String, Vec<u8>)], show: impl Fn(&str, &str) -> String) {
        let mut wrong = String::new();
        for (request, bytes) in requests {
            let shown = |address| {
                let answer = ask(address, bytes);
                let (head, content) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
                // The ports of both differ.
                show(head, content).replace(&format!(":{}", address.port()), "")
            };
            let (expected, found) = (shown(self.httpd), shown(self.milepost));
            if expected != found {
                writeln!(wrong, "{request}\n  httpd:    {expected}\n  milepost: {found}\n")
                    .expect("writes to a String");
            }
        }
        assert!(wrong.is_empty(), "{wrong}");
    }
}

/// A few types.
const TYPES: &str = "text/html html\ntext/plain txt\ntext/css css\nimage/png png\n\
    application/javascript js\napplication/gzip gz\n";

/// Starts milepost in this process on a configuration in `root`.
fn serve(root: &Path, text: &str) -> (SocketAddr, Running, Arc<Logs>) {
    std::fs::write(root.join("milepost.conf"), text).expect("writes the configuration");
    let options = LoadOptions {
        server_root: root.to_owned(),
        file: Some("milepost.conf".into()),
        ..LoadOptions::default()
    };
    let loaded = Site::load(&options, &FileSystem);
    let site = Arc::new(loaded.site.unwrap_or_else(|| panic!("{:?}", loaded.diagnostics)));
    let mut settings = site.settings().clone();
    settings.listens = vec![Listen {
        addresses: vec![([127, 0, 0, 1], 0).into()],
        place: "test:1".to_owned(),
        ..Listen::default()
    }];
    let server = Server::bind(&settings, NonZeroUsize::MIN).expect("binds a port");
    let address = server.addresses()[0];
    let logs = Arc::new(Logs::open(&settings.logs, None).expect("opens the logs"));
    logs.start().expect("starts the logs");
    let shared = Arc::clone(&logs);
    let running = server
        .start(move || SiteResponder::with_logs(Arc::clone(&site), Arc::clone(&shared)))
        .expect("starts");
    (address, running, logs)
}

/// Makes a request of a line with fields. An empty line in it ends the fields.
fn whole(request: &str) -> Vec<u8> {
    let (line, rest) = request.split_once('\n').unwrap_or((request, ""));
    let (fields, content) = rest.split_once("\n\n").unwrap_or((rest, ""));
    let mut text = format!("{line}\r\nHost: www.test\r\nConnection: close\r\n");
    for field in fields.lines() {
        text.push_str(field);
        text.push_str("\r\n");
    }
    text.push_str("\r\n");
    text.push_str(content);
    text.into_bytes()
}

/// Sends a request, and reads the answer to its end.
fn ask(address: SocketAddr, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).expect("connects");
    stream.set_read_timeout(Some(ANSWER_MAX)).expect("sets a timeout");
    // Who has heard enough may close before it has read everything.
    let _ = stream.write_all(request);
    let mut bytes = Vec::new();
    // A reset after the answer is an end too.
    let _ = stream.read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The values of some fields of a head, each after its name.
pub fn fields(head: &str, names: &[&str]) -> String {
    let mut text = String::new();
    for name in names {
        let lines = head.lines().filter_map(|line| line.split_once(':'));
        for (_, value) in lines.filter(|(other, _)| other.eq_ignore_ascii_case(name)) {
            write!(text, " | {name}: {}", value.trim()).expect("writes to a String");
        }
    }
    text
}
