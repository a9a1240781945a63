//! Loading a configuration anew.

use std::fs;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::support::{Server, ask, directory, free_address, path, until, write};

#[test]
fn programs_of_maps_run_as_long_as_their_configuration() {
    let directory = directory();
    let address = free_address();
    let program = |name: &str, script: &str| {
        write(&directory, name, &format!("#!/bin/sh\n{script}\n"));
        fs::set_permissions(directory.path().join(name), fs::Permissions::from_mode(0o755))
            .unwrap();
    };
    let configure = |name: &str| {
        let text = format!(
            "Listen {address}\nRewriteEngine On\nRewriteMap m prg:{name}\n\
             RewriteRule ^/(.*)$ http://b.example/${{m:$1|none}} [R]\n"
        );
        write(&directory, "httpd.conf", &text);
    };
    program("first", "while read -r key; do echo \"first-$key-$$\"; done");
    program("second", "while read -r key; do echo \"second-$key-$$\"; done");
    configure("first");
    let mut server = Server::start(&["-d", path(&directory), "-f", "httpd.conf", "--workers", "2"]);
    let answered = |expected: &str| {
        let answer = ask(address, "/key");
        let value = answer.split("http://b.example/").nth(1).expect("a redirect");
        let value = value.lines().next().expect("a line").to_owned();
        let id = value.strip_prefix(expected).unwrap_or_else(|| panic!("{value}"));
        Path::new("/proc").join(id)
    };
    let first = answered("first-key-");
    assert!(first.exists());
    assert_eq!(answered("first-key-"), first, "both workers ask one program");
    configure("second");
    server.signal("HUP");
    server.next_line();
    let second = answered("second-key-");
    assert!(second.exists());
    until(|| !first.exists());
    server.signal("TERM");
    assert_eq!(server.end().code(), Some(0));
    assert!(!second.exists(), "the program outlives the server");
}

#[test]
fn a_signal_loads_the_configuration_anew() {
    let directory = directory();
    let (first, second) = (free_address(), free_address());
    let configuration = |address, target| {
        let text = format!("Listen {address}\nRedirect 301 /a http://b.example/{target}\n");
        write(&directory, "httpd.conf", &text);
    };
    configuration(first, "1");
    let mut server = Server::start(&["-d", path(&directory), "-f", "httpd.conf"]);
    assert!(ask(first, "/a").contains("\r\nLocation: http://b.example/1\r\n"));

    configuration(first, "2");
    server.signal("HUP");
    assert_eq!(server.next_line(), format!("milepost: serving httpd.conf anew on {first}"));
    assert!(ask(first, "/a").contains("\r\nLocation: http://b.example/2\r\n"));

    write(&directory, "httpd.conf", &format!("Listen {first}\n\nRedirekt /a http://b.example/\n"));
    server.signal("USR1");
    let text = server.lines_until("milepost: ");
    assert!(text.contains("httpd.conf:3:1: error: unknown directive `Redirekt`"), "{text}");
    assert!(text.ends_with("httpd.conf does not load; what was served before still is"), "{text}");
    assert!(ask(first, "/a").contains("\r\nLocation: http://b.example/2\r\n"));

    configuration(second, "3");
    server.signal("USR1");
    assert_eq!(server.next_line(), format!("milepost: serving httpd.conf anew on {second}"));
    assert!(ask(second, "/a").contains("\r\nLocation: http://b.example/3\r\n"));
    assert!(TcpStream::connect(first).is_err());
    server.signal("TERM");
    assert_eq!(server.end().code(), Some(0));
}

#[test]
fn a_changed_file_is_loaded_when_asked() {
    let directory = directory();
    let address = free_address();
    write(&directory, "httpd.conf", &format!("Listen {address}\nIncludeOptional rules/*.conf\n"));
    fs::create_dir(directory.path().join("rules")).expect("a directory");
    let server = Server::start(&["-d", path(&directory), "-f", "httpd.conf", "--watch"]);
    assert!(ask(address, "/a").starts_with("HTTP/1.1 404 "));
    write(&directory, "rules/a.conf", "Redirect 301 /a http://one/\n");
    until(|| ask(address, "/a").contains("http://one"));
    write(&directory, "rules/a.conf", "Redirect 301 /a\n");
    server.lines_until("milepost: httpd.conf does not load");
    assert!(ask(address, "/a").contains("http://one"));
    write(&directory, "rules/a.conf", "Redirect 301 /a http://two/\n");
    until(|| ask(address, "/a").contains("http://two"));
}
