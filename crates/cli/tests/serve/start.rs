//! What the server says at the start, what it serves then, and what keeps it from starting.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::support::{
    MILEPOST, SOON, Server, ask, directory, fails, free_address, is_root, path, write,
};

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
fn the_configuration_of_another_machine_is_explained_and_not_served() {
    let directory = directory();
    write(&directory, "httpd.conf", "DocumentRoot none\nRedirect /a http://b.example/\n");
    let run = |arguments: &[&str]| {
        let output = Command::new(MILEPOST).args(arguments).args(["-d", path(&directory)]).output();
        let output = output.expect("runs");
        let said = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8_lossy(&said).into_owned())
    };
    let (code, said) = run(&["explain", "-f", "httpd.conf", "/a"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("answer 302 http://b.example/"), "{said}");
    for command in ["check", "serve"] {
        let (code, said) = run(&[command, "-f", "httpd.conf"]);
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains("httpd.conf:1:14: error: document root"), "{said}");
    }
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
