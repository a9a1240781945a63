//! `milepost serve` from the outside: what it says, what it answers, and how it ends.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use tempfile::TempDir;

const MILEPOST: &str = env!("CARGO_BIN_EXE_milepost");

/// Long enough for anything that should happen at once, on a machine that is busy.
const SOON: Duration = Duration::from_secs(10);

#[test]
fn a_configuration_is_served_until_the_server_is_told_to_stop() {
    let directory = directory();
    let address = free_address();
    write(
        &directory,
        "httpd.conf",
        &format!("Listen {address}\nRedirect 301 /a http://b.example/\n"),
    );
    let mut server = Server::start(&["-d", path(&directory), "-f", "httpd.conf", "--workers", "2"]);
    assert_eq!(server.announcement, format!("milepost: serving httpd.conf on {address}"));
    let answer = ask(address, "/a/c");
    assert!(answer.starts_with("HTTP/1.1 301 "), "{answer}");
    assert!(answer.contains("\r\nLocation: http://b.example//c\r\n"), "{answer}");
    server.signal("TERM");
    assert_eq!(server.end().code(), Some(0));
    assert!(TcpStream::connect(address).is_err());
}

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
    let deadline = Instant::now() + SOON;
    while first.exists() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(!first.exists(), "the old program runs on");
    server.signal("TERM");
    assert_eq!(server.end().code(), Some(0));
    assert!(!second.exists(), "the program outlives the server");
}

#[test]
fn a_program_that_cannot_start_keeps_the_server_from_starting() {
    let directory = directory();
    write(&directory, "program", "no program");
    let output = Command::new(MILEPOST)
        .args(["serve", "-d", path(&directory), "-f", "/dev/null", "-c", "RewriteEngine On"])
        .args(["-c", "RewriteMap m prg:program", "-C"])
        .arg(format!("Listen {}", free_address()))
        .output()
        .expect("runs");
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("cannot start") && said.contains("the program of map m"), "{said}");
}

#[test]
fn explain_asks_programs_too() {
    let output = Command::new(MILEPOST)
        .args(["explain", "-f", "/dev/null", "-c", "RewriteEngine On", "-c"])
        .args([
            "RewriteMap m prg:/bin/cat",
            "-c",
            "RewriteRule ^/(.*)$ http://b.example/${m:$1} [R]",
        ])
        .args(["--json", "http://a.example/key"])
        .output()
        .expect("runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("\"http://b.example/key\""), "{said}");
}

#[test]
fn the_scan_gives_the_same_answer() {
    let address = free_address();
    let listen = format!("Listen {address}");
    let mut server = Server::start(&[
        "--scan",
        "-C",
        &listen,
        "-c",
        "Redirect 301 /a http://b.example/c",
        "-c",
        "<IfDefine X>\nRedirect 302 /d http://b.example/e\n</IfDefine>",
        "-D",
        "X",
        "-f",
        "/dev/null",
    ]);
    assert!(ask(address, "/a").contains("\r\nLocation: http://b.example/c\r\n"));
    assert!(ask(address, "/d").contains("\r\nLocation: http://b.example/e\r\n"));
    server.signal("INT");
    assert_eq!(server.end().code(), Some(0));
}

#[test]
fn a_directory_is_served_with_its_htaccess() {
    let directory = directory();
    write(&directory, "a.txt", "success\n");
    write(&directory, ".htaccess", "Redirect 301 /old http://b.example/new\n");
    let address = free_address();
    let mut server = Server::start(&["-c", &format!("Listen {address}"), path(&directory)]);
    assert!(server.announcement.ends_with(&format!(" on {address}")), "{}", server.announcement);
    assert!(ask(address, "/a.txt").ends_with("\r\n\r\nsuccess\n"));
    assert!(ask(address, "/old").contains("\r\nLocation: http://b.example/new\r\n"));
    server.signal("TERM");
    assert_eq!(server.end().code(), Some(0));
}

#[test]
fn several_addresses_of_both_families_are_served() {
    let (first, second) = (free_address(), free_address());
    let six = TcpListener::bind(("::1", 0)).and_then(|listener| listener.local_addr());
    let listens = format!("Listen {first}\nListen {second}");
    let redirect = "Redirect 301 /a http://b.example/";
    match six {
        Ok(six) => {
            let listens = format!("{listens}\nListen {six}");
            let server = Server::start(&["-C", &listens, "-c", redirect, "-f", "/dev/null"]);
            let all = format!("milepost: serving /dev/null on {first}, {second}, {six}");
            assert_eq!(server.announcement, all);
            for address in [first, second, six] {
                assert!(ask(address, "/a").starts_with("HTTP/1.1 301 "), "{address}");
            }
        }
        // Without IPv6 the address is refused by name, and the others are not served alone.
        Err(_) => {
            let listens = format!("{listens}\nListen [::1]:8080");
            let (status, text) = fails(&["-C", &listens, "-f", "/dev/null"]);
            assert_eq!(status.code(), Some(2));
            assert!(text.contains("[::1]:8080"), "{text}");
        }
    }
}

#[test]
fn a_second_server_does_not_share_the_port() {
    let address = free_address();
    let listen = format!("Listen {address}");
    let _first = Server::start(&["-C", &listen, "-f", "/dev/null"]);
    let (status, text) = fails(&["-C", &listen, "-f", "/dev/null"]);
    assert_eq!(status.code(), Some(2));
    assert!(text.contains("the port is in use"), "{text}");
}

#[test]
fn a_second_signal_ends_the_server_at_once() {
    let address = free_address();
    let mut server = Server::start(&["-C", &format!("Listen {address}"), "-f", "/dev/null"]);
    // A request that is never finished is waited for, so the first signal alone takes seconds.
    let mut waiting = TcpStream::connect(address).expect("a connection");
    waiting.write_all(b"GET / HTTP/1.1\r\n").expect("sent");
    let _ = ask(address, "/");
    server.signal("TERM");
    std::thread::sleep(Duration::from_millis(300));
    assert!(server.child.try_wait().expect("a child").is_none(), "it did not wait");
    server.signal("TERM");
    let start = Instant::now();
    assert_eq!(server.end().code(), Some(128 + 15));
    assert!(start.elapsed() < Duration::from_secs(2));
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
fn logs_are_opened_anew_by_a_signal() {
    let directory = directory();
    let address = free_address();
    let file = |name: &str| Path::join(directory.path(), name);
    let configuration = format!(
        "Listen {address}\nErrorLog errors\nCustomLog access \"%U %{{milepost-rule}}n\"\n\
         Redirect 301 /a http://b.example/\n"
    );
    write(&directory, "httpd.conf", &configuration);
    let mut server = Server::start(&["-d", path(&directory), "-f", "httpd.conf"]);
    ask(address, "/a/1");
    fs::rename(file("access"), file("access.1")).expect("renamed");
    fs::rename(file("errors"), file("errors.1")).expect("renamed");
    ask(address, "/a/2");
    server.signal("USR1");
    let said = |name: &str, what: &str| {
        let end = Instant::now() + SOON;
        while !fs::read_to_string(file(name)).is_ok_and(|text| text.contains(what)) {
            assert!(Instant::now() < end, "{what} is not in {name}");
            std::thread::sleep(Duration::from_millis(10));
        }
    };
    said("errors", "] serving httpd.conf anew on ");
    ask(address, "/a/3");
    write(&directory, "httpd.conf", "CustomLog access %j\n");
    server.signal("HUP");
    // One line, with its time and level.
    let conf = file("httpd.conf");
    let conf = conf.display();
    let error = format!("] {conf}:1:18: error: unknown item `%j` in the log format");
    said("errors", &error);
    let errors = fs::read_to_string(file("errors")).expect("a log");
    let line = errors.lines().find(|line| line.contains(&error)).expect("a line");
    assert!(line.starts_with('[') && line.contains(" [core:error] [pid "), "{line}");
    server.signal("TERM");
    assert_eq!(server.end().code(), Some(0));
    let rule = format!("{}:4", file("httpd.conf").display());
    let read = |name: &str| fs::read_to_string(file(name)).expect("a log");
    assert_eq!(read("access.1"), format!("/a/1 {rule}\n/a/2 {rule}\n"));
    assert_eq!(read("access"), format!("/a/3 {rule}\n"));
}

#[test]
fn the_error_log_has_what_mod_rewrite_does_and_json_is_a_format() {
    let directory = directory();
    let address = free_address();
    let file = |name: &str| Path::join(directory.path(), name);
    let configuration = format!(
        "Listen {address}\nErrorLog errors\nCustomLog access.json json\nLogLevel warn rewrite:trace4\n\
         RewriteEngine On\nRewriteCond %{{HTTP_USER_AGENT}} \"old (.*)\" [NC]\n\
         RewriteRule ^/a/(.*)$ http://b.example/$1 [R=301,L]\n\
         <VirtualHost *>\nServerName quiet.example\nLogLevel warn\nRewriteEngine On\n\
         RewriteRule ^ - [G]\n</VirtualHost>\n\
         <VirtualHost *>\nServerName loud.example\nRewriteEngine On\nRewriteOptions Inherit\n</VirtualHost>\n"
    );
    write(&directory, "httpd.conf", &configuration);
    let mut server = Server::start(&["-d", path(&directory), "-f", "httpd.conf"]);
    for (host, agent) in [("loud", "Old \\\"x"), ("loud", "new"), ("quiet", "x")] {
        let mut stream = TcpStream::connect(address).expect("connects");
        let head =
            format!("GET /a/b?c HTTP/1.1\r\nHost: {host}.example\r\nUser-Agent: {agent}\r\n");
        stream.write_all(format!("{head}Connection: close\r\n\r\n").as_bytes()).expect("sent");
        stream.read_to_string(&mut String::new()).expect("answered");
    }
    server.signal("TERM");
    assert_eq!(server.end().code(), Some(0));
    let errors = fs::read_to_string(file("errors")).expect("a log");
    let rewriting: Vec<&str> =
        errors.lines().filter_map(|line| line.split_once("[rewrite:")).map(|it| it.1).collect();
    let conf = file("httpd.conf").display().to_string();
    // Without process and port, which nobody knows before.
    let told: Vec<String> = rewriting
        .iter()
        .map(|line| {
            let (level, rest) = line.split_once(']').expect("a level");
            let (_, what) = rest.split_once("[loud.example] ").expect("a host");
            format!("{level} {}", what.replace(&conf, "CONF"))
        })
        .collect();
    assert_eq!(
        told,
        [
            "trace2 init rewrite engine with requested uri /a/b",
            "trace3 applying pattern '^/a/(.*)$' to uri '/a/b' (CONF:7)",
            "trace4 RewriteCond: input='Old \\\\\"x' pattern='old (.*)' => matched (CONF:6)",
            "trace2 rewrite '/a/b' -> 'http://b.example/b' (CONF:7)",
            "trace1 redirect to http://b.example/b?c [REDIRECT/301] (CONF:7)",
            "trace2 init rewrite engine with requested uri /a/b",
            "trace3 applying pattern '^/a/(.*)$' to uri '/a/b' (CONF:7)",
            "trace4 RewriteCond: input='new' pattern='old (.*)' => not-matched (CONF:6)",
            "trace1 pass through /a/b",
        ]
    );
    let access = fs::read_to_string(file("access.json")).expect("a log");
    let lines: Vec<serde_json::Value> =
        access.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let statuses: Vec<_> = lines.iter().map(|line| line["status"].as_u64()).collect();
    assert_eq!(statuses, [Some(301), Some(404), Some(410)]);
    assert_eq!(lines[0]["location"], "http://b.example/b?c");
    assert_eq!(lines[0]["rule"], format!("{conf}:7"));
    assert_eq!(lines[0]["user_agent"], "Old \\\"x");
    assert_eq!(lines[2]["target"], "/a/b?c");
    assert_eq!(lines[2]["server"], "quiet.example");
    assert_eq!(lines[2]["location"], serde_json::Value::Null);
}

#[test]
fn the_pid_file_holds_the_process_while_it_serves() {
    let directory = directory();
    let address = free_address();
    write(&directory, "httpd.conf", &format!("Listen {address}\nPidFile milepost.pid\n"));
    write(&directory, "milepost.pid", "1\n");
    let mut server = Server::start(&["-d", path(&directory), "-f", "httpd.conf"]);
    let file = Path::join(directory.path(), "milepost.pid");
    assert_eq!(fs::read_to_string(&file).expect("a file"), format!("{}\n", server.child.id()));
    server.signal("TERM");
    assert_eq!(server.end().code(), Some(0));
    assert!(!file.exists());
}

#[test]
fn the_pid_file_of_a_running_server_is_not_another_ones() {
    let directory = directory();
    let (first, second) = (free_address(), free_address());
    let configure = |address: SocketAddr, name: &str| {
        let text = format!("Listen {address}\nPidFile {name}\n");
        write(&directory, "httpd.conf", &text);
    };
    let arguments = ["-d", path(&directory), "-f", "httpd.conf"];
    let file = |name: &str| fs::read_to_string(Path::join(directory.path(), name)).ok();
    configure(first, "pid");
    let mut server = Server::start(&arguments);
    let own = Some(format!("{}\n", server.child.id()));
    configure(second, "pid");
    let (status, text) = fails(&arguments);
    assert_eq!(status.code(), Some(2));
    assert!(text.contains(&format!("already running as process {}", server.child.id())), "{text}");
    assert_eq!(file("pid"), own);
    // A reload moves it, so that the next `-k` finds the server.
    configure(first, "other");
    server.signal("HUP");
    server.next_line();
    assert_eq!((file("pid"), file("other")), (None, own));
    // Whoever has taken it over keeps it.
    write(&directory, "other", "1\n");
    server.signal("TERM");
    assert_eq!(server.end().code(), Some(0));
    assert_eq!(file("other").as_deref(), Some("1\n"));
}

#[test]
fn what_cannot_be_had_is_named() {
    let listen = format!("Listen {}", free_address());
    for (directive, expected) in [
        ("PidFile /nonexistent/pid", "cannot write the pid file /nonexistent/pid: "),
        ("ErrorLog /nonexistent/log", "cannot write the error log /nonexistent/log: "),
        ("CustomLog /nonexistent/log json", "cannot write the log /nonexistent/log: "),
        ("User nosuch", "cannot take the rights of `User nosuch`: "),
    ] {
        // Whoever is not root stays who they are.
        if directive.starts_with("User") && !is_root() {
            continue;
        }
        let (status, text) = fails(&["-f", "/dev/null", "-c", &listen, "-c", directive]);
        assert_eq!(status.code(), Some(2));
        assert!(text.contains(expected), "{text}");
    }
}

#[test]
fn a_file_in_the_place_of_the_directory_is_the_configuration() {
    let directory = directory();
    let address = free_address();
    write(&directory, "a.conf", &format!("Listen {address}\nRedirect 301 /a http://b.example/\n"));
    let file = directory.path().join("a.conf");
    let file = file.to_str().expect("UTF-8");
    let _server = Server::start(&[file]);
    assert!(ask(address, "/a").starts_with("HTTP/1.1 301 "));
    let output = Command::new(MILEPOST).args(["check", file]).output().expect("runs");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn all_threads_have_the_rights_of_the_user() {
    let directory = directory();
    let address = free_address();
    let text = format!("Listen {address}\nUser #12345\nGroup #12346\nCustomLog /dev/null %r\n");
    write(&directory, "httpd.conf", &text);
    let server = Server::start(&["-d", path(&directory), "-f", "httpd.conf", "--workers", "2"]);
    // The directory belongs to who runs the test, and nobody else may look into it.
    assert!(ask(address, "/").starts_with("HTTP/1.1 40"));
    let numbers = |status: &str, name: &str| -> Vec<u32> {
        let line = status.lines().find(|line| line.starts_with(name)).expect("a line");
        line.split_whitespace().skip(1).map(|number| number.parse().expect("a number")).collect()
    };
    let own = fs::read_to_string("/proc/self/status").expect("a status");
    // Whoever is not root cannot become somebody else, and Apache does not try either.
    let root = is_root();
    let tasks = fs::read_dir(format!("/proc/{}/task", server.child.id())).expect("threads");
    let mut count = 0;
    for task in tasks {
        let path = task.expect("a thread").path().join("status");
        let status = fs::read_to_string(path).expect("a status");
        if root {
            assert_eq!(numbers(&status, "Uid:"), [12345; 4]);
            assert_eq!(numbers(&status, "Gid:"), [12346; 4]);
            assert_eq!(numbers(&status, "Groups:"), [12346]);
        } else {
            assert_eq!(numbers(&status, "Uid:"), numbers(&own, "Uid:"));
        }
        count += 1;
    }
    assert!(count >= 5, "{count} threads");
}

#[test]
fn a_log_program_keeps_its_rights_over_a_reload() {
    let directory = directory();
    let address = free_address();
    let log = directory.path().join("log");
    let script = "#!/bin/sh\ncd \"$(dirname \"$0\")\"\n\
                  while read -r line; do echo \"$line\" >> log; done\n";
    write(&directory, "reader", script);
    let reader = directory.path().join("reader");
    fs::set_permissions(&reader, fs::Permissions::from_mode(0o755)).expect("changed");
    // That user may start the program, and write nothing here.
    let text = format!(
        "Listen {address}\nUser #12345\nGroup #12346\nCustomLog \"|{}\" %U\n",
        reader.display()
    );
    write(&directory, "httpd.conf", &text);
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).expect("changed");
    let mut server = Server::start(&["-d", path(&directory), "-f", "httpd.conf"]);
    for count in 1..=3 {
        ask(address, "/a");
        until(|| fs::read_to_string(&log).is_ok_and(|text| text == "/a\n".repeat(count)));
        server.signal("HUP");
        assert!(server.next_line().contains(" anew on "));
    }
    server.signal("TERM");
    assert_eq!(server.end().code(), Some(0));
}

#[test]
fn a_server_in_the_background_is_acted_on_by_its_pid_file() {
    let directory = directory();
    let address = free_address();
    let configure = |target: &str| {
        let text = format!(
            "Listen {address}\nPidFile pid\nErrorLog errors\nRedirect 301 /a http://{target}/\n"
        );
        write(&directory, "httpd.conf", &text);
    };
    configure("one");
    let act = |action: &str| {
        let arguments = ["-d", path(&directory), "-f", "httpd.conf", "-k", action];
        let mut child = serve(&arguments);
        let status = wait(&mut child);
        (status.code(), directory.path().join("pid").exists())
    };
    assert_eq!(act("stop"), (Some(0), false));
    assert_eq!(act("start"), (Some(0), true));
    let _guard = Background(directory.path().join("pid"));
    assert!(ask(address, "/a").contains("http://one"));
    // A second one would be in the way of the first.
    assert_eq!(act("start"), (Some(0), true));
    configure("two");
    assert_eq!(act("graceful"), (Some(0), true));
    until(|| ask(address, "/a").contains("http://two"));
    configure("three");
    assert_eq!(act("restart"), (Some(0), true));
    until(|| ask(address, "/a").contains("http://three"));
    // Nothing is done to a server whose next configuration does not load.
    write(&directory, "httpd.conf", "Nonsense\n");
    assert_eq!(act("restart"), (Some(2), true));
    configure("three");
    // It has ended when the command has.
    assert_eq!(act("stop"), (Some(0), false));
    assert!(TcpStream::connect(address).is_err());
    assert_eq!(act("graceful"), (Some(0), true));
    assert!(ask(address, "/a").contains("http://three"));
    assert_eq!(act("graceful-stop").0, Some(0));
    until(|| !directory.path().join("pid").exists());
    // What cannot start says so by its status.
    write(&directory, "httpd.conf", "PidFile pid\nListen 192.0.2.1:1\n");
    assert_eq!(act("start"), (Some(2), false));
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

#[test]
fn sigwinch_waits_for_as_long_as_an_answer_takes() {
    let directory = directory();
    let address = free_address();
    write(&directory, "large", &"x".repeat(32 << 20));
    let mut server = Server::start(&["-c", &format!("Listen {address}"), path(&directory)]);
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.write_all(b"GET /large HTTP/1.0\r\n\r\n").expect("sent");
    let mut bytes = vec![0; 1000];
    stream.read_exact(&mut bytes).expect("a beginning");
    server.signal("WINCH");
    until(|| TcpStream::connect(address).is_err());
    assert!(server.child.try_wait().expect("a child").is_none());
    stream.read_to_end(&mut bytes).expect("the rest");
    assert!(bytes.len() > 32 << 20);
    assert_eq!(server.end().code(), Some(0));
}

#[test]
fn a_killed_server_can_be_started_again_at_once() {
    let directory = directory();
    let address = free_address();
    let listen = format!("Listen {address}\nListen unix:{}/socket", path(&directory));
    let arguments = ["-c", &listen, path(&directory)];
    for _ in 0..3 {
        let mut server = Server::start(&arguments);
        // Connections that are open when it dies keep the port in no way.
        let _open = TcpStream::connect(address).expect("a connection");
        assert!(ask(address, "/").starts_with("HTTP/1.1 "));
        server.signal("KILL");
        server.end();
    }
}

#[test]
fn a_service_manager_hands_over_sockets_and_hears_of_the_server() {
    let directory = directory();
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let address = listener.local_addr().expect("an address");
    let notified = directory.path().join("notify");
    let manager = UnixDatagram::bind(&notified).expect("a socket");
    manager.set_read_timeout(Some(SOON)).expect("a timeout");
    let hear = || {
        let mut message = [0; 1024];
        let count = manager.recv(&mut message).expect("a message");
        String::from_utf8_lossy(&message[..count]).into_owned()
    };
    write(&directory, "httpd.conf", "Redirect 301 /a http://b.example/\n");
    // No Listen: the sockets that are handed over say where. The shell puts the first one in its place.
    let child = Command::new("/bin/sh")
        .args(["-c", "LISTEN_FDS=1 LISTEN_PID=$$ exec \"$0\" \"$@\" 3<&0 </dev/null", MILEPOST])
        .args(["serve", "-d", path(&directory), "-f", "httpd.conf"])
        .env("NOTIFY_SOCKET", &notified)
        .env("WATCHDOG_USEC", "300000")
        .stdin(OwnedFd::from(listener.try_clone().expect("a socket")))
        .stderr(Stdio::null())
        .spawn()
        .expect("milepost starts");
    let mut child = Killed(child);
    let ready = hear();
    let pid = child.0.id();
    assert_eq!(ready, format!("READY=1\nMAINPID={pid}\nSTATUS=serving httpd.conf on {address}"));
    assert!(ask(address, "/a").starts_with("HTTP/1.1 301 "));
    assert_eq!(hear(), "WATCHDOG=1");
    let hear_other = || std::iter::repeat_with(hear).find(|text| text != "WATCHDOG=1");
    let signal = |name: &str| {
        let id = pid.to_string();
        assert!(Command::new("kill").args(["-s", name, &id]).status().expect("kill").success());
    };
    signal("HUP");
    let reloading = hear_other().expect("a message");
    assert!(reloading.starts_with("RELOADING=1\nMONOTONIC_USEC="), "{reloading}");
    assert!(hear_other().expect("a message").starts_with("READY=1\n"));
    assert!(ask(address, "/a").starts_with("HTTP/1.1 301 "));
    signal("TERM");
    assert_eq!(hear_other().expect("a message"), "STOPPING=1");
    assert_eq!(wait(&mut child.0).code(), Some(0));
    // Whoever comes now waits for the next server: the socket is still there.
    assert!(TcpStream::connect(address).is_ok());
}

#[test]
fn the_idle_and_the_slow_are_in_nobodys_way_and_are_ended() {
    const IDLE: usize = 9_000;
    const SLOW: usize = 1_000;
    milepost_server::raise_descriptor_limit();
    let directory = directory();
    let address = free_address();
    let text = format!(
        "Listen {address}\nRequestReadTimeout header=4\nMaxKeepAliveRequests 0\n\
         Redirect 301 /a http://b.example/\n"
    );
    write(&directory, "a.conf", &text);
    let server = Server::start(&["-d", path(&directory), "-f", "a.conf", "--workers", "1"]);
    let resident = || -> usize {
        let status = fs::read_to_string(format!("/proc/{}/status", server.child.id()));
        let status = status.expect("a status");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a line");
        line.split_whitespace().next().and_then(|number| number.parse().ok()).expect("a number")
    };
    let connect = || {
        let stream = TcpStream::connect(address).expect("a connection");
        stream.set_nonblocking(true).expect("an option");
        stream
    };
    assert!(ask(address, "/a").starts_with("HTTP/1.1 301 "));
    let before = resident();
    let mut idle: Vec<_> = (0..IDLE).map(|_| connect()).collect();
    // The last of them has been accepted when a later one has been answered.
    assert!(ask(address, "/a").starts_with("HTTP/1.1 301 "));
    let bytes = resident().saturating_sub(before) * 1024 / IDLE;
    assert!(bytes < 4096, "{bytes} bytes for an idle connection");

    let mut slow: Vec<_> = (0..SLOW).map(|_| connect()).collect();
    let begun = Instant::now();
    for second in 0..3 {
        for stream in &mut slow {
            stream.write_all(&b"GET"[second..=second]).expect("sent");
        }
        for _ in 0..20 {
            let asked = Instant::now();
            assert!(ask(address, "/a").starts_with("HTTP/1.1 301 "));
            // Far above what an answer takes, far below what anybody here waits for.
            assert!(asked.elapsed() < Duration::from_secs(2), "{:?}", asked.elapsed());
        }
        std::thread::sleep(Duration::from_secs(1));
    }
    let has_ended = |stream: &mut TcpStream| {
        let mut bytes = [0; 4096];
        loop {
            match stream.read(&mut bytes) {
                Ok(0) => return true,
                Ok(_) => {}
                Err(error) => return error.kind() != std::io::ErrorKind::WouldBlock,
            }
        }
    };
    for stream in idle.iter_mut().chain(&mut slow) {
        while !has_ended(stream) {
            assert!(begun.elapsed() < 2 * SOON, "it is not ended");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    assert!(ask(address, "/a").starts_with("HTTP/1.1 301 "));
}

#[test]
fn metrics_have_an_address_of_their_own() {
    let directory = directory();
    let address = free_address();
    write(&directory, "a.conf", &format!("Listen {address}\nRedirect 301 /a http://b.example/\n"));
    let metrics = "127.0.0.1:0";
    let server = Server::start(&[
        "-d",
        path(&directory),
        "-f",
        "a.conf",
        "--metrics",
        metrics,
        "--workers",
        "2",
    ]);
    let (_, rest) = server.announcement.split_once("metrics on http://").expect("an address");
    let metrics = rest.strip_suffix("/metrics").expect("a path").parse().expect("an address");
    for _ in 0..5 {
        assert!(ask(address, "/a").starts_with("HTTP/1.1 301 "));
    }
    assert!(ask(address, "/metrics").starts_with("HTTP/1.1 404 "));
    let hit = format!(
        "\nmilepost_rule_hits_total{{file=\"{}\",line=\"2\"}} 5\n",
        directory.path().join("a.conf").display()
    );
    let text = ask(metrics, "/metrics");
    assert!(text.contains("\nContent-Type: text/plain; version=0.0.4"), "{text}");
    assert!(text.contains("\nmilepost_requests_total{status=\"301\"} 5\n"), "{text}");
    assert!(text.contains("\nmilepost_requests_total{status=\"404\"} 1\n"), "{text}");
    assert!(text.contains(&hit), "{text}");
    // Hits outlive the reload that rotates the logs.
    server.signal("USR1");
    server.next_line();
    let text = ask(metrics, "/metrics");
    assert!(text.contains(&hit), "{text}");
    assert!(text.contains("\nmilepost_reloads_total{result=\"done\"} 1\n"), "{text}");
    assert!(ask(metrics, "/").starts_with("HTTP/1.1 404 "));
}

/// A process that is killed when a test ends.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A server in the background, that is killed when a test fails.
struct Background(PathBuf);

impl Drop for Background {
    fn drop(&mut self) {
        if let Ok(pid) = fs::read_to_string(&self.0) {
            let _ = Command::new("kill").args(["-s", "KILL", pid.trim()]).status();
        }
    }
}

/// Waits until something is true.
#[track_caller]
fn until(is_true: impl Fn() -> bool) {
    let end = Instant::now() + SOON;
    while !is_true() {
        assert!(Instant::now() < end, "it does not happen");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A running `milepost serve`; killed when dropped.
struct Server {
    child: Child,
    announcement: String,
    /// What it says after the announcement.
    lines: mpsc::Receiver<String>,
}

impl Server {
    /// Starts it and waits until it says that it serves.
    fn start(arguments: &[&str]) -> Server {
        let mut child = serve(arguments);
        let mut lines = BufReader::new(child.stderr.take().expect("stderr")).lines();
        let announcement = lines
            .by_ref()
            .map(|line| line.expect("text"))
            .find(|line| line.starts_with("milepost: "))
            .unwrap_or_default();
        let (sender, receiver) = mpsc::channel();
        // It must not wait for a test to read what it says.
        std::thread::spawn(move || {
            lines.map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        let server = Server { child, announcement, lines: receiver };
        assert!(server.announcement.starts_with("milepost: serving "), "{}", server.announcement);
        server
    }

    /// The next line that it says.
    fn next_line(&self) -> String {
        self.lines.recv_timeout(SOON).expect("a line")
    }

    /// What it says, up to a line that begins so.
    fn lines_until(&self, beginning: &str) -> String {
        let mut text = self.next_line();
        while !text.lines().last().is_some_and(|line| line.starts_with(beginning)) {
            text = text + "\n" + &self.next_line();
        }
        text
    }

    fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let status = Command::new("kill").args(["-s", name, &id]).status().expect("kill");
        assert!(status.success());
    }

    fn end(&mut self) -> ExitStatus {
        wait(&mut self.child)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs it when it must end by itself; returns how, and what it said.
fn fails(arguments: &[&str]) -> (ExitStatus, String) {
    let mut child = serve(arguments);
    let status = wait(&mut child);
    let mut text = String::new();
    child.stderr.take().expect("stderr").read_to_string(&mut text).expect("text");
    (status, text)
}

fn serve(arguments: &[&str]) -> Child {
    Command::new(MILEPOST)
        .arg("serve")
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("milepost starts")
}

#[track_caller]
fn wait(child: &mut Child) -> ExitStatus {
    let end = Instant::now() + SOON;
    loop {
        if let Some(status) = child.try_wait().expect("a child") {
            return status;
        }
        if Instant::now() > end {
            child.kill().expect("killed");
            panic!("it does not end");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Whether the owner of this process is root.
fn is_root() -> bool {
    fs::metadata("/proc/self").expect("a process").uid() == 0
}

fn ask(address: SocketAddr, target: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(SOON)).expect("a timeout");
    stream.write_all(format!("GET {target} HTTP/1.0\r\n\r\n").as_bytes()).expect("sent");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("an answer");
    text
}

/// A loopback address whose port nobody uses at the moment.
fn free_address() -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    listener.local_addr().expect("an address")
}

fn directory() -> TempDir {
    tempfile::tempdir().expect("a directory")
}

fn path(directory: &TempDir) -> &str {
    directory.path().to_str().expect("UTF-8")
}

fn write(directory: &TempDir, name: &str, text: &str) {
    fs::write(Path::join(directory.path(), name), text).expect("written");
}
