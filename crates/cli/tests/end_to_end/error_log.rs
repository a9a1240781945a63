//! The error log beside Apache's: which requests are traced, by the sections that they are in, and how
//! `ErrorLogFormat` has their lines.
//!
//! What both say of mod_rewrite differs in words and in the number of lines, so lines are compared without
//! the message, and each of them once.

use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use milepost_testkit::client::Client;
use milepost_testkit::directory::Directory;
use milepost_testkit::httpd::{Program, free_port};

use crate::support::{Server, write};

/// Sections, and what they ask for.
const LEVELS: &str = "LogLevel warn\nSetEnvIf Host . seen=yes\n\
    RewriteEngine On\nRewriteRule ^/server$ /a.txt\nRewriteRule ^/loc/x$ /a.txt\n\
    RewriteRule ^/loc/quiet/x$ /a.txt\n\
    <Location /loc>\nLogLevel rewrite:trace1\n</Location>\n\
    <Location /loc/quiet>\nLogLevel crit\n</Location>\n\
    <Directory \"@ROOT@/htdocs\">\nRewriteEngine On\nRewriteRule ^(one/|)x$ /a.txt\n\
    <If \"%{QUERY_STRING} == 'if'\">\nLogLevel rewrite:trace1\n</If>\n</Directory>\n\
    <Directory \"@ROOT@/htdocs/one\">\nLogLevel info rewrite:trace1\nRewriteEngine On\n\
    RewriteRule ^x$ /a.txt\nRewriteRule ^quiet$ /a.txt\n<Files quiet>\nLogLevel alias:trace2 info\n\
    </Files>\n</Directory>\n\
    <VirtualHost *>\nServerName main.test\nRewriteEngine On\nRewriteOptions Inherit\n</VirtualHost>\n\
    <VirtualHost *>\nServerName loud.test\nLogLevel rewrite:trace1\nRewriteEngine On\n\
    RewriteOptions Inherit\n</VirtualHost>\n";

/// Paths, and hosts.
const REQUESTS: [(&str, &str); 11] = [
    ("/server", "main.test"),
    ("/server", "loud.test"),
    ("/loc/x", "main.test"),
    ("/loc/quiet/x", "loud.test"),
    ("/x", "main.test"),
    ("/x", "loud.test"),
    ("/x?if", "main.test"),
    ("/one/x", "main.test"),
    ("/one/quiet", "loud.test"),
    ("/one/", "main.test"),
    ("/none", "main.test"),
];

#[test]
fn lines_and_levels_are_those_of_apache() {
    let formats = [
        "%{X-Id}i [%-m:%l]",
        "%{X-Id}i %v|%V [client\\ %a] [none\\ %{none}e] %{seen}e x%{X-None}i% ,%-{X-None}i %%",
        "%{X-Id}i % %l %9P%m %8l %{X-Odd}i\\ x %E: end",
    ];
    for format in formats {
        let (apache, milepost) = logs(&format!("{LEVELS}ErrorLogFormat \"{format} ## %M\"\n"));
        assert!(apache.len() >= 3, "{apache:?}");
        assert_eq!(milepost, apache, "{format}");
    }
}

#[test]
fn a_line_before_the_first_of_a_request() {
    let formats = "ErrorLogFormat request \"%{X-Id}i first %l\"\nErrorLogFormat request \"[%+{X-Odd}i]\"\n\
                   ErrorLogFormat \"%{X-Id}i %V ## %M\"\n";
    let (apache, milepost) = logs(&format!("{LEVELS}{formats}"));
    // The number of the request stands in the first and in the last of these formats.
    assert!(milepost.iter().any(|line| line.contains("first")), "{milepost:?}");
    assert_eq!(milepost, apache);
}

/// What the error logs of both have of requests.
fn logs(configuration: &str) -> (BTreeSet<String>, BTreeSet<String>) {
    let program = Program::find().expect("this test needs Apache; `make test` installs it");
    let directory = Directory::new().expect("a directory");
    let root = directory.path();
    for name in ["htdocs/one", "htdocs/loc"] {
        fs::create_dir_all(root.join(name)).expect("a directory");
    }
    write(root, "htdocs/a.txt", "a\n");
    write(root, "htdocs/one/index.html", "index\n");
    write(root, "mime.types", "text/plain txt\n");
    let port = free_port().expect("a port");
    let text = |listen: &str, log: &str| {
        let own = program.process_directives(root).replace("/error.log", log);
        let here = root.display();
        format!(
            "ServerRoot \"{here}\"\nListen {listen}\nServerName www.test\n{}{own}\
             DocumentRoot \"{here}/htdocs\"\n\
             <Directory \"{here}/htdocs\">\nRequire all granted\n</Directory>\n{}",
            program.load_modules(),
            configuration.replace("@ROOT@", &here.to_string())
        )
    };
    let file = write(root, "httpd.conf", &text(&format!("127.0.0.1:{port}"), "/apache.log"));
    {
        let _httpd = program.start(Path::new(&file)).unwrap_or_else(|error| panic!("{error}"));
        ask_all(SocketAddr::from(([127, 0, 0, 1], port)));
    }
    // The same port is free again; httpd's files are not touched.
    let listen = format!("127.0.0.1:{port}");
    let mine = text(&listen, "/milepost.log").replace("httpd.pid", "milepost.pid");
    let server = Server::start_with(root, &mine);
    ask_all(server.address);
    server.stop();
    (of_requests(&root.join("apache.log")), of_requests(&root.join("milepost.log")))
}

/// Asks for everything, with a number that the log shows.
fn ask_all(address: SocketAddr) {
    for (number, (target, host)) in REQUESTS.iter().enumerate() {
        let odd = if number % 2 == 1 { "X-Odd: yes\r\n" } else { "" };
        let request =
            format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nX-Id: number-{number}\r\n{odd}\r\n");
        Client::new(address).exchange(request.as_bytes(), false).expect("an answer");
    }
}

/// The lines with the number of a request, without what nobody knows before: the port of the client.
fn of_requests(log: &Path) -> BTreeSet<String> {
    let text = fs::read_to_string(log).expect("a log");
    let lines = text.lines().filter(|line| line.contains("number-") || *line == "[yes]");
    let without_port = |line: &str| match line.split_once("[client 127.0.0.1:") {
        None => line.to_owned(),
        Some((before, after)) => {
            format!("{before}[client{}", after.trim_start_matches(|c: char| c.is_ascii_digit()))
        }
    };
    let without_message = |line: &str| line.split(" ## ").next().map(without_port);
    lines.filter_map(without_message).collect()
}
