//! The process: signals, pid files, users, who starts it and how it ends.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{
    Background, Killed, MILEPOST, SOON, Server, ask, directory, fails, free_address, is_root, path,
    serve, until, wait, write,
};

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
fn a_server_that_lets_nobody_else_in_says_so() {
    let directory = directory();
    let address = free_address();
    let text = format!("Listen {address}\nMaxRequestWorkers 1\nAsyncRequestWorkerFactor 1\n");
    write(&directory, "httpd.conf", &text);
    let server = Server::start(&["-d", path(&directory), "-f", "httpd.conf", "--workers", "1"]);
    let connect = || {
        let mut stream = TcpStream::connect(address).expect("a connection");
        stream.write_all(b"GET / HTTP/1.1\r\n").expect("sent");
        stream
    };
    let _waiting = [connect(), connect(), connect()];
    let said = server.next_line();
    assert!(said.ends_with("as MaxRequestWorkers allows: new ones wait"), "{said}");
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
