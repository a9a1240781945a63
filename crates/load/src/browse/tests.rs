//! Chains as a visitor walks them, without a socket.

use super::*;

const REDIRECTS: Browsing = Browsing {
    redirects_max: 3,
    cookies: true,
    page_elements: true,
    skipped_hosts: Vec::new(),
    logins: Vec::new(),
};

#[test]
fn a_redirect_leads_to_its_location() {
    check("GET http://h/a/b", 301, "/c", "GET http://h/c");
    check("GET http://h/a/b", 302, "c?d", "GET http://h/a/c?d");
    check("GET http://h/a/b", 308, "http://other:81/x#y", "GET http://other:81/x");
    check("HEAD http://h/a", 303, "/c", "HEAD http://h/c");
    check("POST http://h/a", 301, "/c", "GET http://h/c");
    check("PUT http://h/a", 302, "/c", "PUT http://h/c");
    check("PUT http://h/a", 303, "/c", "GET http://h/c");
    check("POST http://h/a", 307, "/c", "POST http://h/c");
    check("POST http://h/a", 308, "/c", "POST http://h/c");
}

#[test]
fn a_redirect_that_cannot_be_followed_is_a_failure() {
    for (head, detail) in [
        ("A: b", "redirect without Location"),
        ("Location: /a b", "redirect to /a b: ' ' must be percent-encoded"),
        ("Location: mailto:x", "redirect to mailto:x: a URL begins with http:// or https://"),
    ] {
        let failure = fail(&mut Visit::default(), 301, head);
        assert_eq!((failure.kind, &*failure.detail), (FailureKind::RedirectUnfit, detail));
    }
    let mut visit = Visit::default();
    for hop in 0..3 {
        step(&mut visit, &target("GET http://h/a"), 301, &format!("Location: /{hop}"), "");
    }
    let failure = fail(&mut visit, 301, "Location: /3");
    assert_eq!(failure.kind, FailureKind::RedirectLimit);
    // The next request of the list begins anew.
    visit.begin();
    step(&mut visit, &target("GET http://h/a"), 301, "Location: /3", "").unwrap();
}

#[test]
fn the_same_request_again_is_a_circle_unless_a_cookie_was_set() {
    let mut visit = Visit::default();
    let sent = |visit: &mut Visit, target: &Target| {
        let dressed = visit.dress(target, &REDIRECTS).unwrap_or_else(|| target.clone());
        let fields = dressed.fields.iter().map(|(name, value)| format!("{name}: {value}"));
        visit.send(digest(fields.collect::<String>().as_bytes()))
    };
    let page = target("GET http://h/a");
    sent(&mut visit, &page).unwrap();
    let next = step(&mut visit, &page, 302, "Location: /a\r\nSet-Cookie: seen=1", "").unwrap();
    sent(&mut visit, &next).unwrap();
    let next = step(&mut visit, &page, 302, "Location: /a", "").unwrap();
    assert_eq!(sent(&mut visit, &next).unwrap_err().kind, FailureKind::RedirectLoop);
}

#[test]
fn another_authority_does_not_get_what_was_meant_for_the_first() {
    let mut page = target("GET http://h/a");
    for name in ["Host", "Authorization", "Cookie", "X-Own"] {
        page.fields.push((name.into(), "secret".into()));
    }
    let names = |to: &str| -> Vec<_> {
        let next = step(&mut Visit::default(), &page, 301, &format!("Location: {to}"), "").unwrap();
        next.fields.into_iter().map(|(name, _)| name).collect()
    };
    assert_eq!(names("/b"), ["Host", "Authorization", "Cookie", "X-Own"]);
    assert_eq!(names("http://other/b"), ["X-Own"]);
}

#[test]
fn through_a_proxy_the_whole_uri_is_asked_for() {
    let mut page = target("GET http://h/a");
    page.request_target = "http://h/a".into();
    let next = step(&mut Visit::default(), &page, 301, "Location: http://other/b", "").unwrap();
    assert_eq!((&*next.authority, &*next.request_target), ("other", "http://other/b"));
}

#[test]
fn a_login_answers_the_question_once() {
    let login = |realm: Option<&str>| Browsing {
        logins: vec![Login {
            user: "Aladdin".into(),
            password: "open sesame".into(),
            realm: realm.map(str::to_owned),
        }],
        ..Browsing::default()
    };
    let ask = |visit: &mut Visit, browsing: &Browsing, head: &str| {
        let head = format!("HTTP/1.1 401 ?\r\n{head}\r\n\r\n");
        let page = target("GET http://h/a");
        match visit.step(browsing, &page, 401, head.as_bytes(), b"") {
            Step::Next(next) => visit.dress(&next, browsing).map(|dressed| dressed.fields),
            _ => None,
        }
    };
    let basic = "WWW-Authenticate: Basic realm=\"x\"";
    let authorization =
        vec![("Authorization".to_owned(), "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==".to_owned())];
    let mut visit = Visit::default();
    assert_eq!(ask(&mut visit, &login(None), basic), Some(authorization.clone()));
    assert_eq!(ask(&mut visit, &login(None), basic), None, "refused credentials are final");
    assert_eq!(ask(&mut Visit::default(), &login(Some("x")), basic), Some(authorization));
    assert_eq!(ask(&mut Visit::default(), &login(Some("y")), basic), None);
    let digest = "WWW-Authenticate: Digest realm=\"x\"";
    assert_eq!(ask(&mut Visit::default(), &login(None), digest), None);
}

#[test]
fn the_elements_of_a_page_come_one_after_the_other() {
    let mut visit = Visit::default();
    let page = target("POST http://h/a/b");
    let html = "<img src=i.png><link rel=stylesheet href='https://h/s.css'><script src=//o/s.js>";
    let head = "Content-Type: text/HTML; charset=utf-8";
    let first = step(&mut visit, &page, 200, head, html).unwrap();
    assert_eq!(shown(&first), "GET http://h/a/i.png");
    let moved = step(&mut visit, &first, 301, "Location: /j.png", "").unwrap();
    let second = step(&mut visit, &moved, 404, head, html).unwrap();
    assert_eq!(shown(&second), "GET https://h/s.css");
    let third = step(&mut visit, &second, 200, "Content-Type: text/css", "").unwrap();
    assert_eq!(shown(&third), "GET http://o/s.js");
    assert!(step(&mut visit, &third, 200, "Content-Type: text/javascript", "").is_none());

    let mut browsing = REDIRECTS;
    browsing.skipped_hosts = vec!["h".into()];
    let only_other =
        visit.step(&browsing, &page, 200, b"\r\nContent-Type: text/html\r\n", html.as_bytes());
    assert!(matches!(only_other, Step::Next(next) if shown(&next) == "GET http://o/s.js"));

    let encoded = "Content-Type: text/html\r\nContent-Encoding: gzip";
    assert!(step(&mut Visit::default(), &page, 200, encoded, html).is_none());
}

/// The request that follows from a redirect.
#[track_caller]
fn check(request: &str, status: u16, location: &str, next: &str) {
    let head = format!("Location: {location}");
    let found = step(&mut Visit::default(), &target(request), status, &head, "").unwrap();
    assert_eq!(shown(&found), next);
    assert_eq!(found.content.is_empty(), found.method != target(request).method);
}

#[track_caller]
fn step(visit: &mut Visit, at: &Target, status: u16, head: &str, content: &str) -> Option<Target> {
    let head = format!("HTTP/1.1 {status} ?\r\n{head}\r\n\r\n");
    match visit.step(&REDIRECTS, at, status, head.as_bytes(), content.as_bytes()) {
        Step::Next(next) => Some(*next),
        Step::Done => None,
        Step::Failed(failure) => panic!("{failure:?}"),
    }
}

#[track_caller]
fn fail(visit: &mut Visit, status: u16, head: &str) -> Failure {
    let head = format!("HTTP/1.1 {status} ?\r\n{head}\r\n\r\n");
    match visit.step(&REDIRECTS, &target("GET http://h/a"), status, head.as_bytes(), b"") {
        Step::Failed(failure) => failure,
        step => panic!("{step:?}"),
    }
}

/// A target of a method and a URL, with content.
fn target(request: &str) -> Target {
    let (method, url) = request.split_once(' ').unwrap();
    let mut target =
        HttpUrl::parse(url).unwrap().target(std::net::SocketAddr::from(([127, 0, 0, 1], 80)));
    target.method = method.into();
    target.content = b"content"[..].into();
    target
}

fn shown(target: &Target) -> String {
    format!("{} {}", target.method, target.uri())
}
