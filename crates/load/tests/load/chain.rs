//! What follows from an answer: redirects, cookies, logins, the elements of a page.

use milepost_load::{FailureKind, Login, Order, Persistence, Stop};

use crate::peer::{Conversation, OK, Peer};
use crate::{kinds, load, plan, target};

#[test]
fn a_redirect_is_followed_on_the_same_connection() {
    let peer = Peer::start(|it| {
        answer_all(it, |path| match path {
            "/a" => found("301", "Location: /b?c"),
            _ => OK.to_owned(),
        })
    });
    let mut plan = plan(&peer, 3);
    plan.browsing.redirects_max = 5;
    let report = load(&plan);
    assert_eq!((report.requests, report.errors), (6, 0));
    assert_eq!(report.statuses.into_iter().collect::<Vec<_>>(), [(200, 3), (301, 3)]);
    assert_eq!(paths(&peer), ["/a", "/b?c", "/a", "/b?c", "/a", "/b?c"]);
    assert_eq!(peer.connections(), 1);
}

#[test]
fn a_redirect_may_lead_to_another_server() {
    let second = Peer::answering(OK);
    let location = format!("Location: http://{}/there", second.address());
    let first = Peer::answering(found("302", &location));
    let mut plan = plan(&first, 4);
    plan.targets.push(target(&first, "/b"));
    plan.connections = 2;
    plan.browsing.redirects_max = 1;
    let report = load(&plan);
    assert_eq!((report.requests, report.errors), (8, 0));
    assert_eq!(paths(&second), ["/there"; 4]);
    assert!(second.requests()[0].contains(&format!("\r\nHost: {}\r\n", second.address())));
    // Each connection of the plan has one to each server.
    assert!(first.connections() <= 2 && second.connections() <= 2);
}

#[test]
fn redirects_that_lead_nowhere_are_errors_and_the_run_goes_on() {
    for (answer, kind) in [
        (found("301", "Location: /a"), FailureKind::RedirectLoop),
        (found("301", "A: b"), FailureKind::RedirectUnfit),
        (found("307", "Location: https://localhost/"), FailureKind::RedirectUnfit),
    ] {
        let peer = Peer::answering(answer);
        let mut plan = plan(&peer, 3);
        plan.browsing.redirects_max = 5;
        let report = load(&plan);
        assert_eq!((report.requests, kinds(&report)), (0, vec![(kind, 3)]), "{report:?}");
    }
    let peer = Peer::start(|it| answer_all(it, |path| found("301", &format!("Location: {path}x"))));
    let mut plan = plan(&peer, 2);
    plan.browsing.redirects_max = 4;
    let report = load(&plan);
    assert_eq!((report.requests, kinds(&report)), (8, vec![(FailureKind::RedirectLimit, 2)]));
    assert!(report.errors_by_kind[0].example.starts_with("http://localhost/axxxx: more than 4"));
}

#[test]
fn each_connection_has_its_own_cookies() {
    let peer = Peer::start(|it| {
        let number = it.number;
        answer_all(it, |_| {
            OK.replace("\r\n\r\n", &format!("\r\nSet-Cookie: id={number}; Path=/\r\n\r\n"))
        });
    });
    let mut plan = plan(&peer, 0);
    plan.connections = 2;
    plan.stop = Stop::RequestsEach(3);
    plan.browsing.cookies = true;
    let report = load(&plan);
    assert_eq!((report.requests, report.errors), (6, 0));
    let mut cookies: Vec<_> = peer.requests().iter().map(|head| value(head, "Cookie")).collect();
    cookies.sort();
    let id = |number: &str| Some(format!("id={number}"));
    assert_eq!(cookies, [None, None, id("0"), id("0"), id("1"), id("1")]);
}

#[test]
fn a_login_is_sent_when_it_is_asked_for_and_from_then_on() {
    let peer = Peer::start(|it| {
        while let Some(head) = it.request() {
            match value(&head, "Authorization") {
                Some(_) => it.send(OK),
                None => it.send(found("401", "WWW-Authenticate: Basic realm=\"x\"")),
            }
        }
    });
    let mut plan = plan(&peer, 3);
    let login = Login { user: "Aladdin".into(), password: "open sesame".into(), realm: None };
    plan.browsing.logins = vec![login];
    let report = load(&plan);
    assert_eq!(report.statuses.into_iter().collect::<Vec<_>>(), [(200, 3), (401, 1)]);
    let sent: Vec<_> = peer.requests().iter().map(|head| value(head, "Authorization")).collect();
    let credentials = Some("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==".to_owned());
    assert_eq!(sent, [None, credentials.clone(), credentials.clone(), credentials]);
}

#[test]
fn the_elements_of_a_page_are_requested_after_it() {
    let peer = Peer::start(|it| {
        answer_all(it, |path| match path {
            "/a" => {
                let html = "<img src=i.png><script src='/s.js'></script>";
                format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\r\n{html}",
                    html.len()
                )
            }
            _ => OK.to_owned(),
        })
    });
    let mut plan = plan(&peer, 2);
    plan.browsing.page_elements = true;
    let report = load(&plan);
    assert_eq!((report.requests, report.errors), (6, 0));
    assert_eq!(paths(&peer), ["/a", "/i.png", "/s.js", "/a", "/i.png", "/s.js"]);
}

#[test]
fn a_server_that_closes_each_time_is_followed_all_the_same() {
    let peer = Peer::start(|it| {
        let Some(head) = it.request() else { return };
        match head.starts_with("GET /b") {
            true => it.send("HTTP/1.0 200 OK\r\n\r\nuntil the end"),
            false => it.send("HTTP/1.0 302 Found\r\nLocation: /b\r\n\r\n"),
        }
    });
    for persistence in [Persistence::KeepAlive, Persistence::Close, Persistence::Unsaid] {
        let mut plan = plan(&peer, 5);
        plan.browsing.redirects_max = 1;
        plan.persistence = persistence;
        plan.order = Order::Random;
        let report = load(&plan);
        assert_eq!((report.requests, report.errors), (10, 0), "{report:?}");
    }
}

/// An answer without content and with one more field.
fn found(status: &str, field: &str) -> String {
    format!("HTTP/1.1 {status} ?\r\nContent-Length: 0\r\n{field}\r\n\r\n")
}

fn answer_all(conversation: &mut Conversation, answer: impl Fn(&str) -> String) {
    while let Some(head) = conversation.request() {
        conversation.send(answer(head.split(' ').nth(1).unwrap()));
    }
}

/// Paths that were asked for, in order.
fn paths(peer: &Peer) -> Vec<String> {
    peer.requests().iter().map(|head| head.split(' ').nth(1).unwrap().to_owned()).collect()
}

fn value(head: &str, name: &str) -> Option<String> {
    let mut fields = head.lines().filter_map(|line| line.split_once(": "));
    fields.find(|(found, _)| *found == name).map(|(_, value)| value.to_owned())
}
