//! Access logs: what stands in the lines, which requests have one, and which server's log has it.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use milepost_engine::{Listen, LoadOptions, Settings, Site};
use milepost_server::{FileSystem, Logs, Running, Server, SiteResponder};
use tempfile::TempDir;

#[test]
fn the_combined_format_is_that_of_apache() {
    let lines = logged(
        "LogFormat \"%h %l %u %t \\\"%r\\\" %>s %b \\\"%{Referer}i\\\" \\\"%{User-Agent}i\\\"\" combined\n\
         CustomLog @log combined\n",
        &["GET /a?x=1 HTTP/1.1\r\nHost: a\r\nUser-Agent: x \"y\"é\r\nConnection: close\r\n\r\n"],
    );
    let [line] = &lines[..] else { panic!("{lines:?}") };
    let (before, rest) = line.split_once(" [").unwrap();
    let (time, after) = rest.split_once("] ").unwrap();
    assert_eq!(before, "127.0.0.1 - -");
    assert_eq!(time.len(), "10/Oct/2000:13:55:36 -0700".len());
    let length = after.split(' ').nth(4).unwrap().parse::<usize>().unwrap();
    assert!(length > 100);
    let expected = format!("\"GET /a?x=1 HTTP/1.1\" 301 {length} \"-\" \"x \\\"y\\\"\\xc3\\xa9\"");
    assert_eq!(after, expected);
}

#[test]
fn items_show_what_they_are_for() {
    let get = "GET /a%20b/../a?q HTTP/1.1\r\nHost: H.Example:81\r\nCookie: c=1; d=2\r\n\r\n";
    let head = "HEAD /a HTTP/1.0\r\n\r\n";
    check("%m %U %q %H %>s", get, "GET /a ?q HTTP/1.1 301");
    check("%m %U%q %H %s %b %B", head, "HEAD /a HTTP/1.0 301 - 0");
    check(
        "%a %A %v %V %{Location}o",
        get,
        "127.0.0.1 127.0.0.1 s.example h.example http://b.example/?q",
    );
    check("%{d}C %{e}C %{Host}i %{X}i", get, "2 - H.Example:81 -");
    check("%{via}e %{none}e", get, "yes -");
    check("%k %X", get, "0 +");
    check("%k %X", head, "0 -");
    check("%{milepost-rule}n", get, "@root/httpd.conf:6");
    check("%301{Host}i %!301{Host}i %404s", get, "H.Example:81 - -");
    check("%u%%\\t%l", get, "-%\t-");
    check("%{%Y}t", get, &chrono::Local::now().format("%Y").to_string());
}

#[test]
fn times_and_sizes_are_numbers() {
    let request = "GET /a HTTP/1.1\r\nHost: a\r\n\r\n";
    let lines =
        logged("CustomLog @log \"%D %T %{ms}T %I %O %S %P %p %{remote}p %{sec}t\"\n", &[request]);
    let numbers: Vec<u64> = lines[0].split(' ').map(|number| number.parse().unwrap()).collect();
    assert!(numbers[0] < 5_000_000, "{numbers:?}");
    assert_eq!(numbers[3], request.len() as u64);
    assert_eq!(numbers[5], numbers[3] + numbers[4]);
    assert_eq!(numbers[6], u64::from(std::process::id()));
    assert!(numbers[9] > 1_700_000_000);
}

#[test]
fn a_request_that_cannot_be_read_is_logged() {
    let lines = logged("CustomLog @log \"%a %r %>s %m %v\"\n", &["BAD \x01\r\n\r\n"]);
    assert_eq!(lines, ["127.0.0.1 BAD \\x01 400 - 127.0.0.1"]);
}

#[test]
fn pipelined_requests_are_counted() {
    let request = "GET /a HTTP/1.1\r\nHost: a\r\n\r\n".repeat(3);
    assert_eq!(logged("CustomLog @log %k\n", &[&request]), ["0", "1", "2"]);
}

#[test]
fn a_variable_decides_what_is_logged() {
    let requests = ["GET /a HTTP/1.1\r\nHost: a\r\n\r\nGET /quiet HTTP/1.1\r\nHost: a\r\n\r\n"];
    let quiet = "SetEnvIf Request_URI ^/quiet quiet\n";
    assert_eq!(logged(&format!("{quiet}CustomLog @log %U env=!quiet\n"), &requests), ["/a"]);
    assert_eq!(logged(&format!("{quiet}CustomLog @log %U env=quiet\n"), &requests), ["/quiet"]);
}

#[test]
fn virtual_hosts_have_their_own_logs_or_the_main_servers() {
    let site = Logging::start(
        "LogFormat \"default %U\"\n\
         TransferLog @main\n\
         GlobalLog @all \"%v\"\n\
         <VirtualHost *>\nServerName one.example\nCustomLog @one %U\n</VirtualHost>\n\
         <VirtualHost *>\nServerName two.example\n</VirtualHost>\n",
    );
    for host in ["one", "two"] {
        site.send(&format!("GET /{host} HTTP/1.1\r\nHost: {host}.example\r\n\r\n"));
    }
    let directory = site.stop();
    let read = |name: &str| fs::read_to_string(directory.path().join(name)).unwrap();
    assert_eq!(read("one"), "/one\n");
    assert_eq!(read("main"), "default /two\n");
    assert_eq!(read("all"), "one.example\ntwo.example\n");
}

#[test]
fn a_program_can_read_the_log() {
    let site = Logging::start("CustomLog \"|cat > @log\" %U\n");
    site.send("GET /a HTTP/1.1\r\nHost: a\r\n\r\n");
    let directory = site.stop();
    let path = directory.path().join("log");
    for _ in 0..200 {
        if fs::read_to_string(&path).is_ok_and(|text| text == "/a\n") {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("{:?}", fs::read_to_string(&path));
}

#[track_caller]
fn check(format: &str, request: &str, expected: &str) {
    let text = format!(
        "ServerName s.example\nSetEnvIf Request_Method GET via=yes\n\
         CustomLog @log \"{format}\"\n\n\
         # The rule stands on the sixth line.\n"
    );
    let text = text.replace("# The rule stands on the sixth line.\n", "");
    let site = Logging::start(&text);
    site.send(request);
    let directory = site.stop();
    let root = directory.path().to_str().unwrap();
    let line = fs::read_to_string(directory.path().join("log")).unwrap();
    assert_eq!(line, format!("{}\n", expected.replace("@root", root)), "{format}");
}

/// Serves a configuration, sends each of `requests` on a connection of its own, and returns the lines.
fn logged(configuration: &str, requests: &[&str]) -> Vec<String> {
    let site = Logging::start(configuration);
    for request in requests {
        site.send(request);
    }
    let directory = site.stop();
    let text = fs::read_to_string(directory.path().join("log")).unwrap();
    text.lines().map(str::to_owned).collect()
}

/// A server that logs.
struct Logging {
    directory: TempDir,
    address: SocketAddr,
    running: Running,
    logs: Arc<Logs>,
}

impl Logging {
    /// Starts it with `configuration` and one redirect; `@name` is a file in its directory.
    fn start(configuration: &str) -> Logging {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().to_str().unwrap();
        let mut text = configuration.to_owned();
        for name in ["log", "main", "all", "one"] {
            text = text.replace(&format!("@{name}"), &format!("{root}/{name}"));
        }
        text.push_str("\nRedirectMatch 301 ^/ http://b.example/\n");
        fs::write(directory.path().join("httpd.conf"), text).unwrap();
        let options = LoadOptions {
            server_root: directory.path().to_owned(),
            file: Some(PathBuf::from("httpd.conf")),
            ..LoadOptions::default()
        };
        let loaded = Site::load(&options, &FileSystem);
        let site = Arc::new(loaded.site.unwrap_or_else(|| panic!("{:?}", loaded.diagnostics)));
        let address = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap();
        let listen =
            Listen { addresses: vec![address], place: "test:1".to_owned(), ..Listen::default() };
        let settings = Settings { listens: vec![listen], ..site.settings().clone() };
        let logs = Arc::new(Logs::open(&settings.logs, None).unwrap());
        logs.start().unwrap();
        let server = Server::bind(&settings, NonZeroUsize::MIN).unwrap();
        let worker_logs = Arc::clone(&logs);
        let running = server
            .start(move || SiteResponder::with_logs(Arc::clone(&site), Arc::clone(&worker_logs)))
            .unwrap();
        Logging { directory, address, running, logs }
    }

    /// Sends bytes, and waits until all is answered.
    fn send(&self, bytes: &str) {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        stream.write_all(bytes.as_bytes()).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        stream.read_to_end(&mut Vec::new()).unwrap();
    }

    /// Stops it, and writes the logs to their end.
    fn stop(self) -> TempDir {
        self.running.stopper().stop();
        self.running.join().unwrap();
        self.logs.close();
        self.directory
    }
}
