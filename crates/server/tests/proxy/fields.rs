//! What of the heads is passed on, and how.

use crate::support::{Backend, Proxy, field};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

#[test]
fn fields_of_the_connection_stay_and_others_are_added() {
    let backend = Backend::answering(OK);
    let address = backend.address;
    let proxy = Proxy::start(&format!(
        "ProxyPass /app http://{address}/back\nProxyVia On\nRequestHeader set X-Set here\n\
         RequestHeader unset X-Unset"
    ));
    let answer = proxy.ask(
        "GET /app/a%20b?c=d HTTP/1.1\r\nHost: www.example\r\nConnection: X-Hop\r\nX-Hop: 1\r\n\
         X-Kept: 2\r\nX-Unset: 3\r\nTE: trailers\r\nKeep-Alive: 4\r\nProxy-Connection: 5\r\n\
         X-Forwarded-For: 192.0.2.1\r\n\r\n",
    );
    assert_eq!((answer.status, &*answer.content), (200, "ok"), "{answer:?}");
    let head = &backend.requests()[0].head;
    assert!(head.starts_with("GET /back/a%20b?c=d HTTP/1.1\r\n"), "{head}");
    for (name, expected) in [
        ("Host", Some(address.to_string().as_str())),
        ("X-Hop", None),
        ("X-Kept", Some("2")),
        ("X-Unset", None),
        ("X-Set", Some("here")),
        ("TE", None),
        ("Keep-Alive", None),
        ("Proxy-Connection", None),
        ("X-Forwarded-For", Some("192.0.2.1, 127.0.0.1")),
        ("X-Forwarded-Host", Some("www.example")),
        ("X-Forwarded-Server", Some("www.example")),
        ("Connection", Some("Keep-Alive")),
    ] {
        assert_eq!(field(head, name), expected, "{name} in {head}");
    }
    assert!(field(head, "Via").unwrap().starts_with("1.1 www.example"), "{head}");
    assert!(answer.field("Via").unwrap().starts_with("1.1 www.example"), "{answer:?}");
}

#[test]
fn the_host_may_be_kept_and_fields_left_out() {
    let backend = Backend::answering(OK);
    let proxy = Proxy::start(&format!(
        "ProxyPass / http://{}/\nProxyPreserveHost On\nProxyAddHeaders Off",
        backend.address
    ));
    proxy.get("/");
    let head = &backend.requests()[0].head;
    assert_eq!(field(head, "Host"), Some("www.example"));
    assert_eq!(field(head, "X-Forwarded-For"), None);
}

#[test]
fn hundreds_of_fields_are_passed_on() {
    let cookies: String = (0..300).map(|n| format!("Set-Cookie: c{n}={n}\r\n")).collect();
    let head = format!("HTTP/1.1 200 OK\r\n{cookies}Content-Length: 2\r\n\r\nok");
    let backend = Backend::answering(head.leak());
    let proxy = Proxy::start(&format!("ProxyPass / http://{}/", backend.address));
    let answer = proxy.get("/");
    assert_eq!((answer.status, &*answer.content), (200, "ok"), "{answer:?}");
    let passed: Vec<&str> =
        answer.head.lines().filter(|line| line.starts_with("Set-Cookie: ")).collect();
    assert_eq!(passed, cookies.lines().collect::<Vec<_>>());
}

#[test]
fn urls_and_cookies_of_the_backend_become_ours() {
    let backend = Backend::answering(
        "HTTP/1.1 302 Found\r\nLocation: http://int.example/back/x?y\r\n\
         Set-Cookie: a=b; Path=/back; Domain=int.example\r\nContent-Length: 0\r\n\
         Server: theirs\r\nDate: Sat, 21 Nov 2026 12:00:00 GMT\r\nConnection: X-Hop\r\nX-Hop: 1\r\n\r\n",
    );
    let proxy = Proxy::start(&format!(
        "ProxyPass /app http://{}/back\nProxyPassReverse /app http://int.example/back\n\
         ProxyPassReverseCookiePath /back /app\n\
         ProxyPassReverseCookieDomain int.example www.example\n\
         Header set X-Edited yes\nHeader edit Set-Cookie ^a= z=",
        backend.address
    ));
    let answer = proxy.get("/app/");
    assert_eq!(answer.status, 302);
    for (name, expected) in [
        ("Location", Some("http://www.example/app/x?y")),
        ("Set-Cookie", Some("z=b; Path=/app; Domain=www.example")),
        ("X-Edited", Some("yes")),
        ("X-Hop", None),
        ("Server", Some("theirs")),
        ("Date", Some("Sat, 21 Nov 2026 12:00:00 GMT")),
    ] {
        let name_and = answer.field(name);
        match (name, name_and, expected) {
            // The port of the test is one of the kernel's.
            ("Location", Some(found), _) => {
                assert!(
                    found.ends_with("/app/x?y") && found.starts_with("http://www.example"),
                    "{found}"
                );
            }
            _ => assert_eq!(name_and, expected, "{name} in {answer:?}"),
        }
    }
    assert_eq!(answer.head.matches("Date:").count(), 1);
}

#[test]
fn answers_are_framed_for_the_client() {
    for (answer, request, status, content) in [
        // Chunks stay chunks, and trailers come along.
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-T: 1\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
            200,
            "abc",
        ),
        // For HTTP/1.0 they end with the connection.
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
            "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
            200,
            "abc",
        ),
        (
            "HTTP/1.1 304 Not Modified\r\nETag: x\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
            304,
            "",
        ),
        ("HTTP/1.1 204 No Content\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\n\r\n", 204, ""),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n",
            "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n",
            200,
            "",
        ),
        (
            "HTTP/1.1 299 Odd Thing\r\nContent-Length: 1\r\n\r\nx",
            "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
            299,
            "x",
        ),
    ] {
        let backend = Backend::answering(answer);
        let proxy = Proxy::start(&format!("ProxyPass / http://{}/", backend.address));
        let answer = proxy.ask(request);
        assert_eq!((answer.status, &*answer.content), (status, content), "{request:?}");
        assert!(answer.whole, "{answer:?}");
        match status {
            299 => assert!(answer.head.starts_with("HTTP/1.1 299 Odd Thing\r\n"), "{answer:?}"),
            200 if request.starts_with("HEAD") => {
                assert_eq!(answer.field("Content-Length"), Some("9"));
            }
            200 if request.contains("1.0") => {
                assert_eq!(answer.field("Connection"), Some("close"));
                assert_eq!(answer.field("Transfer-Encoding"), None);
            }
            200 => assert_eq!(answer.trailers, "X-T: 1\n"),
            _ => {}
        }
    }
}

#[test]
fn an_answer_without_framing_ends_with_its_connection() {
    let backend = Backend::start(|link| {
        link.request();
        link.say("HTTP/1.1 200 OK\r\n\r\nto the end");
    });
    let proxy = Proxy::start(&format!("ProxyPass / http://{}/", backend.address));
    let mut client = proxy.connect();
    for _ in 0..2 {
        client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        let answer = client.answer(false);
        assert_eq!(answer.content, "to the end");
        // The client's connection goes on.
        assert_eq!(answer.field("Transfer-Encoding"), Some("chunked"));
    }
    assert_eq!(backend.connections(), 2);
}

#[test]
fn what_comes_before_the_answer_is_passed_on() {
    let backend = Backend::answering(
        "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n\
         HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
    );
    let proxy = Proxy::start(&format!("ProxyPass / http://{}/", backend.address));
    let mut client = proxy.connect();
    client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    let hints = client.answer(false);
    assert_eq!((hints.status, hints.field("Link")), (103, Some("</a>")));
    assert_eq!(client.answer(false).content, "ok");
    assert_eq!(proxy.ask("GET / HTTP/1.0\r\n\r\n").status, 200);
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let backend = Backend::start(|link| {
        while let Some(request) = link.request() {
            let path = request.head.split(' ').nth(1).unwrap().to_owned();
            link.say(&format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{path}", path.len()));
        }
    });
    let proxy = Proxy::start(&format!(
        "Redirect /r http://other.example/\nProxyPass /p http://{}/p",
        backend.address
    ));
    let mut client = proxy.connect();
    let get = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n");
    client.send([get("/r"), get("/p/1"), get("/p/2"), get("/r")].concat().as_bytes());
    assert_eq!(client.answer(false).status, 302);
    assert_eq!(client.answer(false).content, "/p/1");
    assert_eq!(client.answer(false).content, "/p/2");
    assert_eq!(client.answer(false).status, 302);
    assert_eq!(backend.connections(), 1);
}
