//! ab against a peer that answers well or badly.

use std::time::{Duration, Instant};

use milepost_load::dropin::Program;

use crate::desk::{Desk, Said};
use crate::peer::{OK, Peer};

const REDIRECT: &str = "HTTP/1.1 301 Moved\r\nServer: peer/1 (test)\r\nLocation: /b\r\n\
                        Content-Length: 5\r\nConnection: close\r\n\r\nmoved";

#[test]
fn labels_come_in_the_order_of_ab() {
    let peer = Peer::answering(REDIRECT.replace("Connection: close\r\n", ""));
    let said = ab(&peer, "-k -c 1 -n 2000", "/a?b");
    assert_eq!(said.exit, 0, "{}", said.err);
    assert_eq!(
        labels(&said.out),
        [
            "Server Software",
            "Server Hostname",
            "Server Port",
            "Document Path",
            "Document Length",
            "Concurrency Level",
            "Time taken for tests",
            "Complete requests",
            "Failed requests",
            "Non-2xx responses",
            "Keep-Alive requests",
            "Total transferred",
            "HTML transferred",
            "Requests per second",
            "Time per request",
            "Time per request",
            "Transfer rate",
            "Connect",
            "Processing",
            "Waiting",
            "Total"
        ]
    );
    for (label, value) in [
        ("Server Software", "peer/1"),
        ("Document Path", "/a?b"),
        ("Document Length", "5 bytes"),
        ("Complete requests", "2000"),
        ("Failed requests", "0"),
        ("Non-2xx responses", "2000"),
        ("Keep-Alive requests", "2000"),
        ("HTML transferred", "10000 bytes"),
    ] {
        assert_eq!(value_of(&said.out, label), value);
    }
    assert!(said.out.contains("\n 100%  ") && said.out.ends_with("(longest request)\n"));
    let progress: String =
        (1..=10).map(|tenth| format!("Completed {} requests\n", tenth * 200)).collect();
    assert!(said.err.starts_with(&format!("{progress}Finished 2000 requests\n")), "{}", said.err);
    assert_eq!(peer.connections(), 1);
}

#[test]
fn requests_speak_1_0_and_say_whether_the_connection_persists() {
    let peer = Peer::answering(OK);
    ab(&peer, "-n 1", "/");
    ab(&peer, "-n 1 -k", "/");
    ab(&peer, "-n1 -c1 --quirks=ab24", "/");
    let said = Desk::default().run_words(
        Program::Ab,
        &["-H", "Connection: close", "-n1", "-c1", &format!("http://{}/", peer.address())]
            .map(str::to_owned),
    );
    assert_eq!((said.exit, value_of(&said.out, "Complete requests")), (0, "1".to_owned()));
    let lines: Vec<_> = peer
        .requests()
        .iter()
        .map(|head| {
            assert!(head.starts_with("GET / HTTP/1.0\r\n"), "{head}");
            let lines = head.lines().filter(|line| line.starts_with("Connection"));
            lines.collect::<Vec<_>>().join("|")
        })
        .collect();
    assert_eq!(lines, ["Connection: close", "Connection: keep-alive", "", "Connection: close"]);
}

#[test]
fn a_server_that_keeps_the_connection_makes_nobody_wait() {
    // As an HTTP/1.0 client meets it that waits for the end of the connection.
    let kept = Duration::from_millis(1500);
    let peer = Peer::start(move |it| {
        it.request();
        it.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
        std::thread::sleep(kept);
    });
    for line in ["-n 1 -c 1", "-n 20 -c 2 --quirks=ab24"] {
        let began = Instant::now();
        let said = ab(&peer, line, "/");
        assert!(began.elapsed() < kept, "{line}: {:?}", began.elapsed());
        assert_eq!(value_of(&said.out, "Failed requests"), "0");
        assert!(
            said.err.contains("kept the first connection open for at least 0.1"),
            "{}",
            said.err
        );
    }
    let said = ab(&peer, "-n 1 --linger-report=30", "/");
    let seconds: f64 =
        said.err.split("open for ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    assert!((1.3..20.0).contains(&seconds), "{}", said.err);
    assert!(said.err.contains("ab would wait for that after every answer"), "{}", said.err);

    let closing = Peer::start(|it| {
        it.request();
        it.send(REDIRECT);
    });
    assert_eq!(ab(&closing, "-n 3", "/").err, "", "a server that closes is nothing to talk about");
}

#[test]
fn verbosity_shows_heads_and_status() {
    let peer = Peer::answering(REDIRECT);
    let said = ab(&peer, "-v 11 -n 1 -c 1", "/a");
    let shown = said.out.split_once("(be patient)...").unwrap().1;
    let (request, answer) = shown.split_once("\n---\nLOG").unwrap();
    assert!(
        request.starts_with("INFO: GET header == \n---\nGET /a HTTP/1.0\r\nHost: "),
        "{request}"
    );
    assert!(request.ends_with("Connection: close\r\n\r\n"), "{request}");
    assert!(answer.starts_with(&format!(
        ": header received:\n{REDIRECT}\nWARNING: Response code not 2xx (301)\n..done\n"
    )));
    let ok = ab(&Peer::answering(OK), "-v 3 -n 1", "/a").out;
    assert!(ok.contains(&format!("LOG: header received:\n{OK}\nLOG: Response code = 200\n..done")));
    let twice = ab(&peer, "-v 2 -n 2", "/a").out;
    assert_eq!(twice.matches("INFO: GET header ==").count(), 1);
    assert_eq!(twice.matches("LOG: header received:").count(), 2);
    assert!(!twice.contains("Response code ="));
}

#[test]
fn another_length_is_a_failed_request_unless_accepted() {
    let peer = Peer::start(|it| {
        while it.request().is_some() {
            let content = "x".repeat(1 + it.number as usize % 2);
            let length = content.len();
            it.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{content}"));
        }
    });
    let said = ab(&peer, "-n 10", "/");
    assert_eq!(value_of(&said.out, "Failed requests"), "5");
    assert!(said.out.contains("\n   (Connect: 0, Receive: 0, Length: 5, Exceptions: 0)\n"));
    assert_eq!(said.exit, 0);
    let said = ab(&peer, "-n 10 -l", "/");
    assert_eq!(value_of(&said.out, "Failed requests"), "0");
    assert_eq!(value_of(&said.out, "Document Length"), "Variable");
}

#[test]
fn errors_of_a_socket_end_the_run_unless_tolerated() {
    let peer = Peer::start(|it| {
        if it.request().is_some() {
            match it.number % 4 {
                3 => it.reset(),
                _ => it.send(REDIRECT),
            }
        }
    });
    let said = ab(&peer, "-n 8", "/");
    assert_eq!(said.exit, 104);
    assert!(
        said.err.starts_with("apr_socket_recv: Connection reset by peer (104)\n"),
        "{}",
        said.err
    );
    assert!(said.out.ends_with("Total of 3 requests completed\n"), "{}", said.out);
    let said = ab(&peer, "-n 8 -r", "/");
    assert_eq!((said.exit, value_of(&said.out, "Complete requests")), (0, "8".to_owned()));
    assert!(
        said.out.contains("(Connect: 0, Receive: 2, Length: 0, Exceptions: 0)"),
        "{}",
        said.out
    );
}

#[test]
fn without_a_server_the_exit_code_is_the_errno() {
    let mut peer = Peer::answering(OK);
    peer.kill();
    let said = ab(&peer, "-n 1", "/");
    assert_eq!(said.exit, 111);
    assert_eq!(said.err, "apr_socket_recv: Connection refused (111)\n");
    assert!(said.out.ends_with("(be patient)..."), "{}", said.out);
    let said = ab(&peer, "-n 200 -q -r", "/");
    assert_eq!((said.exit, value_of(&said.out, "Failed requests")), (0, "200".to_owned()));
}

#[test]
fn silence_ends_the_run_with_a_timeout() {
    let peer = Peer::start(|it| it.wait());
    let said = ab(&peer, "-n 5 -s 1", "/");
    assert_eq!(said.exit, 119);
    assert_eq!(said.err, "apr_pollset_poll: The timeout specified has expired (70007)\n");
}

#[test]
fn a_server_that_closes_too_early_is_counted() {
    let peer = Peer::start(|it| {
        it.request();
        match it.number % 3 {
            0 => it.send(REDIRECT),
            1 => it.send("HTTP/1.1 301 Moved\r\nContent-Length: 5\r\n\r\nmo"),
            _ => {}
        }
    });
    let said = ab(&peer, "-n 9", "/");
    assert_eq!((said.exit, value_of(&said.out, "Complete requests")), (0, "9".to_owned()));
    assert!(
        said.out.contains("(Connect: 0, Receive: 0, Length: 3, Exceptions: 3)"),
        "{}",
        said.out
    );
}

#[test]
fn a_body_is_sent_and_counted() {
    let peer = Peer::start(|it| {
        while let Some(head) = it.request() {
            assert!(head.contains("Content-Length: 5\r\n"), "{head}");
            assert_eq!(it.content(5), b"a=1&b");
            it.send(OK);
        }
    });
    let desk = Desk::default().with("body", "a=1&b");
    let said =
        desk.run(Program::Ab, &format!("-k -n 4 -p body -T text/x http://{}/", peer.address()));
    assert_eq!(
        (said.exit, value_of(&said.out, "Complete requests")),
        (0, "4".to_owned()),
        "{}",
        said.err
    );
    let requests = peer.requests();
    assert!(requests[0].starts_with("POST / HTTP/1.0\r\n"));
    assert!(requests[0].contains("Content-Type: text/x\r\n"));
    let sent: usize = requests.iter().map(|head| head.len() + 5).sum();
    assert_eq!(value_of(&said.out, "Total body sent"), sent.to_string());
    let rates = said.out.split_once("Transfer rate:").unwrap().1;
    let units: Vec<_> =
        rates.lines().take(3).map(|line| line.rsplit(' ').next().unwrap()).collect();
    assert_eq!(units, ["received", "sent", "total"]);

    let said = Desk::default().run(Program::Ab, "-u none http://127.0.0.1:1/");
    assert_eq!(
        (said.exit, &*said.err),
        (1, "ab: Could not open PUT data file (none): No such file or directory\n")
    );
}

#[test]
fn files_are_written_or_said_to_be_not() {
    let peer = Peer::answering(REDIRECT);
    let desk = Desk::default();
    let url = format!("http://{}/", peer.address());
    let said = desk.run(Program::Ab, &format!("-n 50 -e c.csv -g g.tsv {url}"));
    assert_eq!(said.exit, 0);
    assert_eq!(desk.file("c.csv").lines().count(), 102);
    let rows = desk.file("g.tsv");
    let totals: Vec<u64> =
        rows.lines().skip(1).map(|row| row.split('\t').nth(4).unwrap().parse().unwrap()).collect();
    assert!(totals.len() == 50 && totals.is_sorted());
    let said = desk.run(Program::Ab, &format!("-n 1 -e /nowhere/c.csv {url}"));
    assert_eq!(said.exit, 1);
    assert!(said.err.contains("Cannot open CSV output file: No such file or directory\n"));
    assert!(said.out.contains("Complete requests:      1\n"), "the report is printed all the same");
}

#[test]
fn a_proxy_is_asked_for_the_whole_uri() {
    let proxy = Peer::answering(REDIRECT);
    let said = Desk::default()
        .run(Program::Ab, &format!("-X {} -P u:p http://h.example/a", proxy.address()));
    assert_eq!(said.exit, 0, "{}", said.err);
    let head = &proxy.requests()[0];
    assert!(head.starts_with("GET http://h.example/a HTTP/1.0\r\nHost: h.example\r\n"), "{head}");
    assert!(head.contains("Proxy-Authorization: Basic dTpw\r\n"), "{head}");
    let through = format!("Benchmarking h.example [through {}] (be patient)...", proxy.address());
    assert!(said.out.contains(&through), "{}", said.out);
    assert_eq!(value_of(&said.out, "Server Hostname"), "h.example");
}

#[test]
fn a_time_limit_ends_the_run() {
    let peer = Peer::start(|it| {
        while it.request().is_some() {
            std::thread::sleep(Duration::from_millis(20));
            it.send(OK);
        }
    });
    let said = ab(&peer, "-k -t 1", "/");
    let done: u64 = value_of(&said.out, "Complete requests").parse().unwrap();
    assert!((5..=50).contains(&done), "{done}");
    assert!(value_of(&said.out, "Time taken for tests").starts_with("1.0"), "{}", said.out);
    assert!(said.err.ends_with(&format!("Finished {done} requests\n")), "{}", said.err);
}

#[test]
fn the_table_is_html_when_asked_for() {
    let peer = Peer::answering(REDIRECT.replace("peer/1", "<b>&"));
    let said = ab(&peer, "-n 2 -w -y align=left", "/a");
    assert!(said.out.starts_with("<p>\n This is milepost"), "{}", said.out);
    let row = |label: &str, value: &str| {
        format!(
            "<tr align=left><th colspan=2 bgcolor=white>{label}:</th><td colspan=2 bgcolor=white>{value}</td></tr>\n"
        )
    };
    assert!(said.out.contains(&row("Server Software", "&lt;b&gt;&amp;")));
    assert!(said.out.contains(&row("Complete requests", "2")));
    assert!(said.out.ends_with("</table>\n"));
}

fn ab(peer: &Peer, line: &str, path: &str) -> Said {
    Desk::default().run(Program::Ab, &format!("{line} http://{}{path}", peer.address()))
}

/// Labels of the report in order.
fn labels(out: &str) -> Vec<&str> {
    let report = out.split_once("\n\n\n").map_or(out, |(_, report)| report);
    report.lines().filter_map(|line| Some(line.split_once(':')?.0)).collect()
}

#[track_caller]
fn value_of(out: &str, label: &str) -> String {
    let mut lines = out.lines().filter_map(|line| line.strip_prefix(label)?.strip_prefix(':'));
    lines.next().unwrap_or_else(|| panic!("no {label} in {out}")).trim().to_owned()
}
