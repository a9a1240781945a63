//! Which backend is asked, and on how many connections.

use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::thread;
use std::time::Duration;

use crate::support::{Backend, NOBODY, Proxy};

fn named(name: &'static str) -> Backend {
    Backend::start(move |link| {
        while link.request().is_some() {
            link.say(&format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{name}", name.len()));
        }
    })
}

#[test]
fn rules_and_directives_lead_to_backends() {
    let (a, b) = (named("a"), named("b"));
    let proxy = Proxy::start(&format!(
        "ProxyPass /no !\nProxyPass /x http://{a}/\nProxyPassMatch ^/(.*)\\.b$ http://{b}/$1\n\
         Redirect /x/late http://never.example/\n\
         <Location /loc>\nProxyPass http://{b}/\n</Location>\n\
         RewriteEngine On\nRewriteRule ^/rule/(.*) http://{b}/$1 [P]\n",
        a = a.address,
        b = b.address
    ));
    for (target, status, content) in [
        ("/x/1", 200, "a"),
        ("/x/late", 200, "a"),
        ("/y.b", 200, "b"),
        ("/loc/1", 200, "b"),
        ("/rule/1?q", 200, "b"),
        ("/no/1", 404, ""),
        ("/none", 404, ""),
    ] {
        let answer = proxy.get(target);
        assert_eq!(answer.status, status, "{target}");
        assert!(content.is_empty() || answer.content == content, "{target} {answer:?}");
    }
    let targets: Vec<_> = b
        .requests()
        .iter()
        .map(|request| request.head.split(' ').nth(1).unwrap().to_owned())
        .collect();
    assert_eq!(targets, ["/y", "//1", "/1?q"]);
}

#[test]
fn a_backend_may_be_behind_a_unix_socket() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("backend.sock");
    let listener = UnixListener::bind(&path).unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut buffer = [0; 4096];
            let _ = stream.read(&mut buffer);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nunix");
        }
    });
    let proxy = Proxy::start(&format!("ProxyPass / unix:{}|http://localhost/", path.display()));
    for _ in 0..3 {
        assert_eq!(proxy.get("/").content, "unix");
    }
}

#[test]
fn members_take_turns_and_sessions_stay() {
    let (a, b) = (named("a"), named("b"));
    let proxy = Proxy::start(&format!(
        "<Proxy balancer://pool>\nBalancerMember http://{} loadfactor=3 route=one\n\
         BalancerMember http://{} route=two\nProxySet stickysession=SESSION\n</Proxy>\n\
         ProxyPass / balancer://pool/",
        a.address, b.address
    ));
    let answers: String = (0..8).map(|_| proxy.get("/x").content).collect();
    assert_eq!(answers.matches('a').count(), 6, "{answers}");
    for _ in 0..4 {
        let answer = proxy.ask("GET / HTTP/1.1\r\nHost: a\r\nCookie: SESSION=1.two\r\n\r\n");
        assert_eq!(answer.content, "b");
        assert_eq!(proxy.get("/;SESSION=1.one").content, "a");
    }
}

#[test]
fn another_member_takes_over_and_a_standby_waits() {
    let (a, b) = (named("a"), named("standby"));
    let proxy = Proxy::start(&format!(
        "<Proxy balancer://pool>\nBalancerMember http://{NOBODY}\nBalancerMember http://{}\n\
         BalancerMember http://{} status=+H\n</Proxy>\n\
         <Proxy balancer://gone>\nBalancerMember http://{NOBODY} retry=0\n\
         BalancerMember http://{} status=+H\n</Proxy>\n\
         ProxyPass /gone balancer://gone\nProxyPass / balancer://pool/",
        a.address, b.address, b.address
    ));
    for _ in 0..6 {
        assert_eq!(proxy.get("/").content, "a");
        assert_eq!(proxy.get("/gone").content, "standby");
    }
}

#[test]
fn no_more_connections_are_open_than_are_allowed() {
    let backend = Backend::start(|link| {
        while link.request().is_some() {
            thread::sleep(Duration::from_millis(300));
            link.say("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        }
    });
    let proxy =
        Proxy::start(&format!("ProxyPass /a http://{0}/ max=1 acquire=10000\n", backend.address));
    let mut clients: Vec<_> = (0..3).map(|_| proxy.connect()).collect();
    for client in &mut clients {
        client.send(b"GET /a HTTP/1.1\r\nHost: a\r\n\r\n");
    }
    for client in &mut clients {
        assert_eq!(client.answer(false).status, 200);
    }
    assert_eq!(backend.connections(), 1);
    // Who does not wait is told so.
    let proxy = Proxy::start(&format!("ProxyPass /a http://{0}/ max=1\n", backend.address));
    let mut clients: Vec<_> = (0..2).map(|_| proxy.connect()).collect();
    for client in &mut clients {
        client.send(b"GET /a HTTP/1.1\r\nHost: a\r\n\r\n");
    }
    let mut statuses: Vec<_> =
        clients.iter_mut().map(|client| client.answer(false).status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 503]);
}

#[test]
fn connections_are_not_kept_where_that_is_said() {
    let backend = named("a");
    let proxy = Proxy::start(&format!(
        "ProxyPass /once http://{0}/once disablereuse=On\nProxyPass /env http://{0}/env\n\
         <Location /env>\nSetEnv proxy-nokeepalive 1\n</Location>",
        backend.address
    ));
    for number in 1..4 {
        proxy.get("/once");
        assert_eq!(backend.connections(), number);
    }
    for number in 4..6 {
        proxy.get("/env");
        assert_eq!(backend.connections(), number);
    }
    assert!(
        backend.requests().iter().all(|request| request.head.contains("Connection: close\r\n"))
    );
}

#[test]
fn an_idle_connection_has_its_time() {
    let backend = named("a");
    let proxy = Proxy::start(&format!("ProxyPass / http://{}/ ttl=1", backend.address));
    proxy.get("/");
    proxy.get("/");
    assert_eq!(backend.connections(), 1);
    thread::sleep(Duration::from_millis(1200));
    proxy.get("/");
    assert_eq!(backend.connections(), 2);
}
