//! A configuration, served: what the engine decides comes out of the socket.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use milepost_engine::{Listen, LoadOptions, Site};
use milepost_server::{FileSystem, Running, Server, SiteResponder};
use tempfile::TempDir;

const CONFIGURATION: &str = "\
ServerName site.example
Listen 127.0.0.1:8080
DocumentRoot \"@ROOT@/htdocs\"
<Directory \"@ROOT@/htdocs\">
    Require all granted
    AllowOverride All
</Directory>
Redirect 301 /old http://new.example/place
Redirect gone /gone
RedirectMatch 302 ^/n/([0-9]+)$ http://new.example/number/$1?x=<y>&z
";

#[test]
fn redirects_have_status_location_and_a_link() {
    let site = TestSite::start();
    let answer = site.get("/old/a?b=c");
    assert_eq!(answer.status, 301);
    assert_eq!(answer.field("Location"), Some("http://new.example/place/a?b=c"));
    assert_eq!(answer.field("Content-Type"), Some("text/html; charset=iso-8859-1"));
    assert!(answer.content.contains("href=\"http://new.example/place/a?b=c\""), "{answer:?}");

    let answer = site.get("/n/12");
    assert_eq!(answer.status, 302);
    assert_eq!(answer.field("Location"), Some("http://new.example/number/12?x=<y>&z"));
    assert!(answer.content.contains("12?x=&lt;y&gt;&amp;z"), "{answer:?}");
}

#[test]
fn statuses_have_a_page() {
    let site = TestSite::start();
    for (target, status, words) in [
        ("/gone", 410, "Gone"),
        ("/none", 404, "Not Found"),
        ("/%2e%2e/%2e%2e/etc/passwd", 400, "Bad Request"),
    ] {
        let answer = site.get(target);
        assert_eq!(answer.status, status, "{target}");
        assert!(answer.content.contains(words), "{answer:?}");
        assert_eq!(answer.field("Location"), None);
    }
}

#[test]
fn files_come_from_the_document_root() {
    let site = TestSite::start();
    let answer = site.get("/a.txt");
    assert_eq!((answer.status, &*answer.content), (200, "success\n"));
    assert_eq!(answer.field("Content-Type"), Some("text/plain"));
    let etag = answer.field("ETag").unwrap();
    let again = site.ask(&format!(
        "GET /a.txt HTTP/1.1\r\nHost: a\r\nIf-None-Match: {etag}\r\nConnection: close\r\n\r\n"
    ));
    assert_eq!((again.status, &*again.content), (304, ""));

    let head = site.ask("HEAD /a.txt HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    assert_eq!((head.status, head.field("Content-Length")), (200, Some("8")));
    assert_eq!(head.content, "");
    let put = site.ask("PUT /a.txt HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    assert_eq!((put.status, put.field("Allow")), (405, Some("GET,POST,OPTIONS,HEAD,TRACE")));
}

#[test]
fn a_change_of_a_file_is_seen_at_once() {
    let site = TestSite::start();
    let path = site.directory.path().join("htdocs/a.txt");
    for round in 0..20 {
        fs::write(&path, format!("{round}")).unwrap();
        assert_eq!(site.get("/a.txt").content, format!("{round}"));
    }
}

#[test]
fn a_large_file_arrives_whole_and_a_connection_goes_on_after_it() {
    let site = TestSite::start();
    let large: String = (0..200_000).map(|number| format!("{number}\n")).collect();
    fs::write(site.directory.path().join("htdocs/large"), &large).unwrap();
    let request = "GET /large HTTP/1.1\r\nHost: a\r\n\r\n\
                   GET /old HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let text = site.exchange(request);
    let (head, rest) = text.split_once("\r\n\r\n").unwrap();
    assert!(head.contains(&format!("\r\nContent-Length: {}", large.len())), "{head}");
    let rest = rest.strip_prefix(&large).expect("the file");
    assert!(rest.starts_with("HTTP/1.1 301 "), "{rest}");
}

#[test]
fn a_change_of_htaccess_is_seen_at_once() {
    let site = TestSite::start();
    let path = site.directory.path().join("htdocs/.htaccess");
    let then = SystemTime::now() - Duration::from_secs(1000);
    // Every text is as long as the others, and by force as old.
    let write = |place: &str| {
        fs::write(&path, format!("Redirect /h http://{place}/\n")).unwrap();
        let file = fs::File::options().write(true).open(&path).unwrap();
        file.set_times(fs::FileTimes::new().set_modified(then)).unwrap();
    };
    let place = || site.get("/h").field("Location").map(str::to_owned);
    assert_eq!(place(), None);
    for age in [Duration::ZERO, Duration::from_millis(3_100)] {
        write("one");
        // Beyond some seconds the time of the last change tells, and the file is not read again.
        std::thread::sleep(age);
        assert_eq!(place().as_deref(), Some("http://one/"));
        write("two");
        assert_eq!(place().as_deref(), Some("http://two/"));
        fs::write(&path, "Nonsense\n").unwrap();
        assert_eq!(site.get("/h").status, 500);
        fs::remove_file(&path).unwrap();
        assert_eq!(place(), None);
    }
}

#[test]
fn nobody_reads_programs() {
    let site = TestSite::start();
    let root = site.directory.path().join("htdocs");
    let rules = "AddHandler cgi-script .cgi\nAddType application/x-httpd-php .php\nDirectoryIndex i.php\n\
        <Files *.pl>\nSetHandler perl-script\n</Files>\n<Files *.inc>\nForceType application/x-httpd-php\n</Files>\n\
        <Files plain.php>\nSetHandler default-handler\n</Files>\n";
    fs::write(root.join(".htaccess"), rules).unwrap();
    for (name, status) in [
        ("a.cgi", 503),
        ("i.php", 503),
        ("b.php.en", 503),
        ("c.pl", 503),
        ("d.inc", 503),
        ("plain.php", 200),
        ("e.html", 200),
    ] {
        fs::write(root.join(name), "the password\n").unwrap();
        let answer = site.get(&format!("/{name}"));
        assert_eq!(answer.status, status, "{name}");
        assert_eq!(answer.content.contains("password"), status == 200, "{name}");
    }
    assert_eq!((site.get("/").status, site.get("/f.php").status), (503, 404));
}

#[test]
fn the_server_itself_has_options() {
    let site = TestSite::start();
    let answer = site.ask("OPTIONS * HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    assert_eq!((answer.status, answer.field("Content-Length")), (200, Some("0")));
}

/// A server of [`CONFIGURATION`] on a free port.
struct TestSite {
    directory: TempDir,
    address: SocketAddr,
    _running: Running,
}

#[derive(Debug)]
struct Answer {
    status: u16,
    head: String,
    content: String,
}

impl Answer {
    fn field(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(other, _)| *other == name).map(|(_, value)| value)
    }
}

impl TestSite {
    fn start() -> TestSite {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        fs::create_dir(root.join("htdocs")).unwrap();
        fs::write(root.join("htdocs/a.txt"), "success\n").unwrap();
        let text = CONFIGURATION.replace("@ROOT@", root.to_str().unwrap());
        fs::write(root.join("httpd.conf"), text).unwrap();
        let options = LoadOptions {
            server_root: root.to_owned(),
            file: Some("httpd.conf".into()),
            ..LoadOptions::default()
        };
        let loaded = Site::load(&options, &FileSystem);
        let site = Arc::new(loaded.site.unwrap_or_else(|| panic!("{:?}", loaded.diagnostics)));

        // `Listen` cannot ask for a free port.
        let mut settings = site.settings().clone();
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        settings.listens =
            vec![Listen { addresses: vec![any], place: "test:1".to_owned(), ..Listen::default() }];
        let server = Server::bind(&settings, NonZeroUsize::MIN).unwrap();
        let address = server.addresses()[0];
        let running = server.start(move || SiteResponder::new(Arc::clone(&site))).unwrap();
        TestSite { directory, address, _running: running }
    }

    fn get(&self, target: &str) -> Answer {
        self.ask(&format!("GET {target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"))
    }

    fn ask(&self, request: &str) -> Answer {
        let text = self.exchange(request);
        let (head, content) = text.split_once("\r\n\r\n").expect("a head");
        let status = head[9..12].parse().unwrap();
        Answer { status, head: head.to_owned(), content: content.to_owned() }
    }

    fn exchange(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }
}
