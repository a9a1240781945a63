//! What cannot be done ends with 2 and one clear message, and nothing is left running.
//!
//! `support::run` fails when a process of the ended program's session is still there.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use milepost_testkit::directory::Directory;

use crate::support::{Finished, Server, milepost, run, write};

#[test]
fn an_unknown_directive_is_named_with_its_place() {
    check_configuration(
        "Listen 127.0.0.1:0\n\n  Redirekt /a http://b.example/\n",
        "httpd.conf:3:3: error: unknown directive `Redirekt`",
    );
}

#[test]
fn the_files_of_a_directory_are_checked_with_those_below() {
    let directory = Directory::new().expect("a directory");
    let root = directory.path();
    fs::create_dir_all(root.join("below")).expect("a directory");
    fs::create_dir_all(root.join("empty")).expect("a directory");
    let file = write(
        root,
        ".htaccess",
        "RewriteEngine on\nRewriteRule ^/a$ /b [R]\nRewriteRule ^/?c /d [R]\n",
    );
    write(&root.join("below"), ".htaccess", "Redirect /e /f\nphp_flag engine off\n");
    let check = |path: &Path, arguments: &[&str]| {
        let arguments =
            [&["check"], arguments, &[path.to_str().expect("a path in UTF-8")]].concat();
        let finished = milepost(&arguments);
        (finished.code, finished.stdout)
    };
    let (code, text) = check(root, &[]);
    let (slash, php) =
        ("2:13: warning: the pattern never matches", "2:1: error: unknown directive `php_flag`");
    let root_path = root.canonicalize().expect("a path");
    let places =
        [format!("{}/.htaccess:{slash}", root_path.display()), format!("below/.htaccess:{php}")];
    assert!(code == Some(2) && places.iter().all(|place| text.contains(place)), "{text}");
    assert!(text.ends_with("1 error, 1 warning in 2 .htaccess files\n"), "{text}");
    assert!(text.contains("`<IfModule mod_php.c>`"), "{text}");
    let (code, text) = check(Path::new(&file), &["--format", "json"]);
    assert!(code == Some(1) && text.matches("\"line\"").count() == 1, "{text}");
    let (code, text) = check(&root.join("empty"), &[]);
    assert_eq!((code, text.as_str()), (Some(0), "nothing found: there is no .htaccess file\n"));
}

/// The place is that of the included file, not of the `Include`.
#[test]
fn a_mistake_in_an_included_file_is_found_there() {
    let directory = Directory::new().expect("a directory");
    write(directory.path(), "rules.conf", "Redirect 301 /a http://b.example/\nRedirekt /c /d\n");
    let file = write(directory.path(), "httpd.conf", "Listen 127.0.0.1:0\nInclude rules.conf\n");
    let root = directory.path().to_str().expect("a path in UTF-8");
    let finished = refused(milepost(&["serve", "-d", root, "-f", &file]));
    let place = format!("{root}/rules.conf:2:1: error: unknown directive `Redirekt`");
    assert!(finished.starts_with(&place), "{finished}");
}

#[test]
fn every_mistake_is_told_at_once() {
    let text = check_configuration(
        "Listen 127.0.0.1:0\nRedirekt /a /b\nRedirectMatch 301 ( /c\nRewriteRule ^/d$ /e [Q]\n",
        "httpd.conf:2:1: error: ",
    );
    for place in ["httpd.conf:3:", "httpd.conf:4:"] {
        assert!(text.contains(place), "no {place}: {text}");
    }
}

#[test]
fn a_missing_file_is_named() {
    check_configuration(
        "Listen 127.0.0.1:0\nInclude /nonexistent/rules.conf\n",
        "httpd.conf:2:9: error: /nonexistent/rules.conf: no such file",
    );
    let message = refused(milepost(&["serve", "-f", "/nonexistent/httpd.conf"]));
    assert!(message.starts_with("/nonexistent/httpd.conf: error: "), "{message}");
    let message = refused(milepost(&["serve", "/nonexistent"]));
    assert!(message.starts_with("milepost: cannot serve /nonexistent: "), "{message}");
}

#[test]
fn a_port_in_use_is_named_with_its_listen() {
    let taken = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let address = taken.local_addr().expect("an address");
    let message = check_configuration(
        &format!("ServerName a\nListen {address}\n"),
        &format!("milepost: cannot listen on {address} ("),
    );
    assert!(message.ends_with("httpd.conf:2): the port is in use\n"), "{message}");
    assert_eq!(message.lines().count(), 1, "{message}");
}

/// One of two addresses is taken: the other is given back, and the first server keeps its own.
#[test]
fn the_server_that_was_there_stays() {
    let directory = Directory::new().expect("a directory");
    let first = Server::start_with(directory.path(), "Listen 127.0.0.1:0\n");
    let text = format!("Listen 127.0.0.1:0\nListen {}\n", first.address);
    check_configuration(&text, &format!("milepost: cannot listen on {} (", first.address));
    first.stop();
}

/// A program called nginx that says its version and then ends, with a child that would stay.
#[test]
fn a_server_that_does_not_start_ends_the_experiment() {
    let directory = Directory::new().expect("a directory");
    let script = "#!/bin/sh\n\
                  if [ \"$1\" = -v ]; then echo nginx version: nginx/9.9.9; exit; fi\n\
                  sleep 600 &\necho no licence today >&2\nexit 3\n";
    let program = write(directory.path(), "nginx", script);
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("our own file");
    let own = directory.path().display();
    let path = format!("{own}:{}", std::env::var("PATH").unwrap_or_default());
    let out = format!("{own}/out");
    let arguments = [
        "lab",
        "run",
        "redirect-methods",
        "--quick",
        "--rules",
        "20",
        "--servers",
        "milepost,nginx",
        "--out",
        &out,
    ];
    let message = refused(run(crate::support::MILEPOST, &arguments, &[("PATH", &path)]));
    let end = "ended (exit status: 3) and said:\n    no licence today\n";
    assert!(message.contains("\nmilepost: nginx/") && message.ends_with(end), "{message}");
}

/// The lab's own configuration with a mistake in it: the server's message is the lab's.
#[test]
fn a_configuration_that_a_server_refuses_ends_the_experiment() {
    let directory = Directory::new().expect("a directory");
    let built_in = fs::read_to_string("../../lab/experiments/redirect-methods.toml");
    let text = built_in.expect("the experiment").replace("\"Redirect 301 ", "\"Redirekt 301 ");
    let file = write(directory.path(), "mine.toml", &text);
    let out = format!("{}/out", directory.path().display());
    for (server, said) in [
        ("milepost", "methods/one/rules.conf:1:1: error: unknown directive `Redirekt`"),
        ("apache", "Invalid command 'Redirekt'"),
    ] {
        let servers = ["--servers", server, "--rules", "20", "--out", &out];
        let message =
            refused(milepost(&[&["lab", "run", &file, "--quick"], &servers[..]].concat()));
        let start = format!("\nmilepost: {server}/one ended (exit status: ");
        assert!(message.contains(&start) && message.contains(said), "{message}");
    }
}

/// Serves a configuration that cannot be served; returns what is said, which begins as stated after
/// the name of the directory.
#[track_caller]
fn check_configuration(text: &str, beginning: &str) -> String {
    let directory = Directory::new().expect("a directory");
    let file = write(directory.path(), "httpd.conf", text);
    let message = refused(milepost(&["serve", "-f", &file]));
    let own = format!("{}/", directory.path().display());
    let shown = message.strip_prefix(&own).unwrap_or(&message);
    assert!(shown.starts_with(beginning), "{message}");
    message
}

/// Exit status 2, nothing on stdout; returns what is on stderr.
#[track_caller]
fn refused(finished: Finished) -> String {
    assert_eq!((finished.code, &*finished.stdout), (Some(2), ""), "{}", finished.stderr);
    finished.stderr
}
