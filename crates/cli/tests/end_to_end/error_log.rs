//! The error log beside Apache's: which requests are traced, by the sections that they are in, how
//! `ErrorLogFormat` has their lines, and in whose log they stand.
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
        let (apache, milepost) =
            logs(&format!("{LEVELS}ErrorLogFormat \"{format} ## %M\"\n"), &REQUESTS);
        assert!(apache.len() >= 3, "{apache:?}");
        assert_eq!(milepost, apache, "{format}");
    }
}

#[test]
fn a_line_before_the_first_of_a_request() {
    let formats = "ErrorLogFormat request \"%{X-Id}i first %l\"\nErrorLogFormat request \"[%+{X-Odd}i]\"\n\
                   ErrorLogFormat \"%{X-Id}i %V ## %M\"\n";
    let (apache, milepost) = logs(&format!("{LEVELS}{formats}"), &REQUESTS);
    // The number of the request stands in the first and in the last of these formats.
    assert!(milepost.iter().any(|line| line.contains("first")), "{milepost:?}");
    assert_eq!(milepost, apache);
}

#[test]
fn a_line_before_the_first_of_a_connection() {
    let formats = "ErrorLogFormat connection \"number- from %v %l %-L %-V %{X-Id}i\"\n\
                   ErrorLogFormat connection \"number- never %+{X-Odd}i\"\n\
                   ErrorLogFormat request \"%{X-Id}i asks\"\nErrorLogFormat \"%{X-Id}i ## %M\"\n";
    let (apache, milepost) = logs(&format!("{LEVELS}{formats}"), &REQUESTS);
    assert!(milepost.iter().any(|line| line.contains("from loud.test")), "{milepost:?}");
    assert_eq!(milepost, apache);
}

/// Virtual hosts with logs of their own, in formats of their own; the second of one name shares its file.
const OWN_LOGS: &str = "ErrorLogFormat \"%{X-Id}i main ## %M\"\nRewriteEngine On\nRewriteRule ^/x$ /a.txt\n\
    <VirtualHost *>\nServerName own.test\nErrorLog @ROOT@/own.@LOGS@\nLogLevel rewrite:trace1\n\
    RewriteEngine On\nRewriteOptions Inherit\nErrorLogFormat \"%{X-Id}i own ## %M\"\n\
    ProxyPass /away http://127.0.0.1:1/\n</VirtualHost>\n\
    <VirtualHost *>\nServerName shared.test\nErrorLog @ROOT@/own.@LOGS@\nLogLevel rewrite:trace1\n\
    RewriteEngine On\nRewriteOptions Inherit\n</VirtualHost>\n\
    <VirtualHost *>\nServerName main.test\nLogLevel rewrite:trace1\nRewriteEngine On\n\
    RewriteOptions Inherit\nProxyPass /away http://127.0.0.1:1/\n</VirtualHost>\n\
    <VirtualHost *>\nServerName quiet.test\nErrorLog @ROOT@/quiet.@LOGS@\nLogLevel crit\n\
    ProxyPass /away http://127.0.0.1:1/\n</VirtualHost>\n";

#[test]
fn a_virtual_host_has_its_own_log() {
    let requests: Vec<(&str, &str)> = ["own.test", "shared.test", "main.test", "quiet.test"]
        .into_iter()
        .flat_map(|host| [("/x", host), ("/away", host)])
        .collect();
    let directory = asked(OWN_LOGS, &requests);
    let read = |name: &str| of_requests(&directory.path().join(name));
    for log in ["error", "own", "quiet"] {
        let apache = read(&format!("{log}.apache"));
        assert_eq!(read(&format!("{log}.milepost")), apache, "{log}");
        assert_eq!(apache.is_empty(), log == "quiet", "{log}");
    }
}

#[test]
fn sections_choose_what_the_proxy_says() {
    let configuration = "LogLevel warn\nErrorLogFormat \"%{X-Id}i ## %M\"\nProxyPass / http://127.0.0.1:1/ retry=0\n\
        <Location /quiet>\nLogLevel crit\n</Location>\n\
        <Location /quiet/but>\nLogLevel proxy:error proxy_http:error\n</Location>\n\
        <Location /other>\nLogLevel rewrite:crit\n</Location>\n\
        <Proxy http://127.0.0.1:1/alone>\nLogLevel crit\n</Proxy>\n\
        <If \"%{QUERY_STRING} == 'if'\">\nLogLevel crit\n</If>\n\
        <VirtualHost *>\nServerName main.test\nProxyPass / http://127.0.0.1:1/ retry=0\n</VirtualHost>\n\
        <VirtualHost *>\nServerName crit.test\nLogLevel crit\nProxyPass / http://127.0.0.1:1/ retry=0\n\
        <LocationMatch ^/loud>\nLogLevel debug\n</LocationMatch>\n</VirtualHost>\n";
    let requests = [
        ("/a", "main.test"),
        ("/a?if", "main.test"),
        ("/quiet/a", "main.test"),
        ("/quiet/but", "main.test"),
        ("/other", "main.test"),
        ("/alone", "main.test"),
        ("/loud", "crit.test"),
        ("/a", "crit.test"),
    ];
    let (apache, milepost) = logs(configuration, &requests);
    assert_eq!(milepost, apache);
    let said: Vec<&str> = apache.iter().map(String::as_str).collect();
    assert_eq!(said, ["number-0", "number-3", "number-4", "number-6"]);
}

#[test]
fn a_failing_backend_is_told_with_the_number_of_the_error() {
    let format = "ErrorLogFormat request \"%{X-Id}i %L\"\nErrorLogFormat \"%E [%m:%l] %a %L: %M\"\n\
        CustomLog @ROOT@/access.@LOGS@ \"%>s %L %{c}L\"\nErrorLogFormat connection \"new %{c}L\"\n\
        ProxyPass /away http://127.0.0.1:1/\n";
    let directory = asked(format, &[("/away", "main.test")]);
    let log = fs::read_to_string(directory.path().join("error.milepost")).expect("a log");
    let lines: Vec<&str> = log.lines().collect();
    let [.., connection, request, message, _stopped] = &lines[..] else { panic!("{log}") };
    let connection = connection.strip_prefix("new ").unwrap_or_else(|| panic!("{log}"));
    let request = request.strip_prefix("number-0 ").unwrap_or_else(|| panic!("{log}"));
    assert!(message.starts_with("(111)Connection refused [proxy:error] 127.0.0.1:"), "{log}");
    let told = format!(
        " {request}: backend http://127.0.0.1:1/: cannot connect to 127.0.0.1:1: Connection refused \
         (os error 111); \"GET /away HTTP/1.1\" is answered with 503 after 0."
    );
    assert!(message.contains(&told), "{log}");
    let access = fs::read_to_string(directory.path().join("access.milepost")).expect("a log");
    assert_eq!(access, format!("503 {request} {connection}\n"));
}

/// What the error logs of both have of requests.
fn logs(configuration: &str, requests: &[(&str, &str)]) -> (BTreeSet<String>, BTreeSet<String>) {
    let directory = asked(configuration, requests);
    let of = |who| of_requests(&directory.path().join(format!("error.{who}")));
    (of("apache"), of("milepost"))
}

/// Asks both; `@LOGS@` in the configuration is who logs. Returns the directory of their logs.
fn asked(configuration: &str, requests: &[(&str, &str)]) -> Directory {
    let program = Program::find().expect("this test needs Apache; `make test` installs it");
    let program = program.with_modules(&["proxy", "proxy_http"]);
    let directory = Directory::new().expect("a directory");
    let root = directory.path();
    for name in ["htdocs/one", "htdocs/loc"] {
        fs::create_dir_all(root.join(name)).expect("a directory");
    }
    write(root, "htdocs/a.txt", "a\n");
    write(root, "htdocs/one/index.html", "index\n");
    write(root, "mime.types", "text/plain txt\n");
    let port = free_port().expect("a port");
    let text = |listen: &str, who: &str| {
        let own = program.process_directives(root).replace("/error.log", &format!("/error.{who}"));
        let here = root.display();
        let configuration =
            configuration.replace("@ROOT@", &here.to_string()).replace("@LOGS@", who);
        format!(
            "ServerRoot \"{here}\"\nListen {listen}\nServerName www.test\n{}{own}\
             DocumentRoot \"{here}/htdocs\"\n\
             <Directory \"{here}/htdocs\">\nRequire all granted\n</Directory>\n{configuration}",
            program.load_modules(),
        )
    };
    let listen = format!("127.0.0.1:{port}");
    let file = write(root, "httpd.conf", &text(&listen, "apache"));
    {
        let _httpd = program.start(Path::new(&file)).unwrap_or_else(|error| panic!("{error}"));
        ask_all(SocketAddr::from(([127, 0, 0, 1], port)), requests);
    }
    // The same port is free again; httpd's files are not touched.
    let mine = text(&listen, "milepost").replace("httpd.pid", "milepost.pid");
    let server = Server::start_with(root, &mine);
    ask_all(server.address, requests);
    server.stop();
    directory
}

/// Asks for everything, with a number that the log shows.
fn ask_all(address: SocketAddr, requests: &[(&str, &str)]) {
    for (number, (target, host)) in requests.iter().enumerate() {
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
