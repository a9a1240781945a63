//! siege against a peer that answers well or badly.

use std::time::{Duration, Instant};

use milepost_load::dropin::Program;

use crate::desk::{Desk, Said};
use crate::peer::{Conversation, OK, Peer};

#[test]
fn a_followed_redirect_is_two_transactions() {
    let peer = site();
    let said = siege(&peer, "-c 1 -r 3 -b", "/r");
    assert_eq!(said.exit, 0, "{}", said.err);
    assert_eq!(figures(&said), [6, 6, 0]);
    assert_eq!(value(&said, "Availability"), "100.00 %");
    let lines: Vec<_> = said.out.lines().map(without_times).collect();
    let both = [
        "HTTP/1.1 301 secs:       0 bytes ==> GET  /r",
        "HTTP/1.1 200 secs:       2 bytes ==> GET  /ok",
    ];
    assert_eq!(lines, [both; 3].concat());
    let said = siege(&peer, "-c 1 -r 3 -b --no-follow", "/r");
    assert_eq!(figures(&said), [3, 3, 0]);
}

#[test]
fn statuses_count_as_in_siege() {
    let peer = site();
    assert_eq!(figures(&siege(&peer, "-c 2 -r 2", "/404")), [4, 0, 0]);
    let failed = siege(&peer, "-c 2 -r 2", "/500");
    assert_eq!(figures(&failed), [0, 0, 4]);
    assert_eq!(value(&failed, "Availability"), "0.00 %");
    // The redirect itself was answered; siege 4.0 takes it back when what it leads to fails.
    assert_eq!(figures(&siege(&peer, "-c 1 -r 3", "/to500")), [3, 3, 3]);
    assert_eq!(figures(&siege(&peer, "-c 1 -r 3 --quirks=siege40", "/to500")), [0, 3, 3]);
}

#[test]
fn a_redirect_that_goes_round_ends_and_is_told() {
    let peer = site();
    let said = siege(&peer, "-c 1 -r 2", "/loop");
    assert_eq!((said.exit, figures(&said)), (0, [0, 0, 2]));
    let told =
        format!("[error] http://{}/loop: the redirects go round in a circle\n", peer.address());
    assert_eq!(said.err.matches(&told).count(), 2, "{}", said.err);
}

#[test]
fn each_user_walks_the_list() {
    let peer = site();
    let list =
        format!("H = http://{}\n$(H)/ok\n$(H)/404 POST a=1\n$(H)/form PUT <file\n", peer.address());
    let desk = Desk::default().with("urls", &list).with("file", "a=1&b=2");
    let said = desk.run(Program::Siege, "-c 2 -r once -f urls");
    assert_eq!((said.exit, figures(&said)), (0, [6, 4, 0]), "{}", said.err);
    let mut lines: Vec<_> = said.out.lines().map(without_times).collect();
    lines.sort();
    let form = format!("HTTP/1.1 200 secs:       7 bytes ==> PUT  http://{}/form", peer.address());
    let missing =
        format!("HTTP/1.1 404 secs:       0 bytes ==> POST http://{}/404", peer.address());
    let ok = "HTTP/1.1 200 secs:       2 bytes ==> GET  /ok".to_owned();
    assert_eq!(lines, [&*ok, &ok, &form, &form, &missing, &missing]);
    // siege 4.2 lets the users share the list.
    let said = desk.run(Program::Siege, "-c 2 -r once -f urls --quirks=siege42");
    assert!(said.err.contains("Transactions:\t\t        3    hits\n"), "{}", said.err);
}

#[test]
fn every_url_is_drawn_as_often_as_any_other() {
    let peer = site();
    let paths = ["/ok", "/404", "/form", "/r"];
    let list: String = paths.map(|path| format!("http://{}{path}\n", peer.address())).concat();
    let desk = Desk::default().with("urls", &list);
    let said = desk.run(Program::Siege, "-i -c 4 -r 500 -b -F -f urls");
    assert_eq!(said.exit, 0, "{}", said.err);
    let requests = peer.requests();
    for path in paths {
        let count =
            requests.iter().filter(|head| head.starts_with(&format!("GET {path} "))).count();
        // 2,000 draws of one in four: 500, with a standard deviation of 19.
        assert!((400..=600).contains(&count), "{path}: {count}");
    }
}

#[test]
fn the_seed_runs_for_the_time_that_it_says() {
    let peer = site();
    let list = format!("http://{0}/r\nhttp://{0}/ok\n", peer.address());
    let desk = Desk::default().with("urllist.txt", &list);
    let began = Instant::now();
    let said = desk.run(Program::Siege, "-d0 -c10 -t1s -i -f urllist.txt");
    let took = began.elapsed();
    assert!(took >= Duration::from_secs(1) && took < Duration::from_secs(3), "{took:?}");
    let elapsed: f64 = value(&said, "Elapsed time").trim_end_matches(" secs").parse().unwrap();
    assert!((1.0..1.3).contains(&elapsed), "{elapsed}");
    assert!(said.err.contains("\nLifting the server siege...\nTransactions:"), "{}", said.err);
    assert!(said.err.starts_with("** milepost "), "{}", said.err);
    assert!(said.err.contains("** Preparing 10 concurrent users for battle.\n"), "{}", said.err);
    assert_eq!(figures(&said)[2], 0);
}

#[test]
fn a_pause_lies_between_the_requests_of_a_user() {
    let peer = site();
    let began = Instant::now();
    let said = siege(&peer, "-c 3 -r 6 -d 0.1", "/ok");
    assert_eq!(figures(&said), [18, 18, 0]);
    // Five pauses of 50 ms in the mean.
    assert!(began.elapsed() > Duration::from_millis(100), "{:?}", began.elapsed());
}

#[test]
fn one_exchange_is_shown_with_its_heads_or_its_content() {
    let peer = site();
    let said = siege(&peer, "-g", "/r");
    assert_eq!(said.exit, 0);
    let heads: Vec<_> = said.out.lines().filter(|line| line.contains("HTTP/1.")).collect();
    assert_eq!(
        heads,
        ["HEAD /r HTTP/1.0", "HTTP/1.1 301 ?", "HEAD /ok HTTP/1.0", "HTTP/1.1 200 OK"]
    );
    assert!(said.out.contains("\r\nConnection: close\r\n\r\n\nHTTP/1.1 301 ?\r\n"), "{}", said.out);
    assert!(!said.err.contains("Preparing"), "{}", said.err);
    let said = siege(&peer, "-p", "/ok");
    assert!(said.out.starts_with("GET /ok HTTP/1.0\r\n") && said.out.ends_with("\r\n\r\n\nok\n"));
}

#[test]
fn cookies_logins_and_pages_are_what_the_resource_file_says() {
    let peer = Peer::start(|it| {
        answer_all(it, |head| match path(head) {
            "/page" => {
                let html = "<img src=i.png>";
                let length = html.len();
                format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nSet-Cookie: id=7\r\nContent-Length: {length}\r\n\r\n{html}"
                )
            }
            _ if !head.contains("Authorization: Basic dTpw") => {
                empty("401", "WWW-Authenticate: Basic realm=\"here\"")
            }
            _ => OK.to_owned(),
        });
    });
    let file = "verbose = true\nparser = true\nlogin = x:y:there\nlogin = u:p:here\n\
                connection = keep-alive\nuser-agent = Test/$V\n";
    let desk = Desk::default().with("rc", file).with_variable("V", "9");
    let url = format!("http://{}/page", peer.address());
    let said = desk.run(Program::Siege, &format!("-R rc -c 1 -r 2 {url}"));
    // Page, 401, image; page, image.
    assert_eq!((said.exit, figures(&said)), (0, [5, 5, 0]), "{}", said.err);
    let requests = peer.requests();
    let shown: Vec<_> = requests
        .iter()
        .map(|head| (path(head), head.contains("Cookie: id=7"), head.contains("Authorization")))
        .collect();
    assert_eq!(
        shown,
        [
            ("/page", false, false),
            ("/i.png", true, false),
            ("/i.png", true, true),
            ("/page", true, true),
            ("/i.png", true, true)
        ]
    );
    assert!(requests.iter().all(|head| head.contains("User-Agent: Test/9\r\n")));
    assert!(
        requests[0].contains("Accept-Encoding: identity\r\n"),
        "an encoded page cannot be searched"
    );
    assert_eq!(peer.connections(), 1);
}

#[test]
fn json_and_quiet_print_nothing_else() {
    let peer = site();
    let said = siege(&peer, "-c 1 -r 2 -j", "/ok");
    assert_eq!(said.err, "\n");
    let keys: Vec<_> = said.out.lines().filter_map(|line| line.split('"').nth(1)).collect();
    assert_eq!(keys.len(), 12);
    assert_eq!((keys[0], keys[11]), ("transactions", "shortest_transaction"));
    let object: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(object["transactions"], 2);
    let said = siege(&peer, "-c 1 -r 2 -q", "/ok");
    assert_eq!((said.exit, &*said.out, &*said.err), (0, "", ""));
}

#[test]
fn lines_have_the_form_that_the_resource_file_asks_for() {
    let peer = site();
    let url = format!("http://{}/ok?a", peer.address());
    let lines = |file: &str| {
        let desk = Desk::default().with("rc", file);
        let said = desk.run(Program::Siege, &format!("-R rc -c 1 -r 1 {url}"));
        without_times(&said.out)
    };
    assert_eq!(lines("verbose = false"), "");
    let full = format!("HTTP/1.1 200 secs:       2 bytes ==> GET  {url}\n");
    assert_eq!(lines("fullurl = true"), full);
    assert_eq!(lines("fullurl = true\ndisplay-id = true"), format!("   0) {full}"));
    let csv = lines("csv = true");
    let cells: Vec<_> = csv.trim_end().split(',').collect();
    assert_eq!(
        (cells[0], cells[1], cells[3], cells[4], cells[5]),
        ("HTTP/1.1", "200", "      2", &*url, "0")
    );
    assert_eq!((cells.len(), cells[6].len()), (7, "2026-11-21 06:57:05".len()));
    let stamped = lines("timestamp = true");
    assert!(stamped.starts_with('[') && stamped.contains("] HTTP/1.1 200"), "{stamped}");
}

#[test]
fn the_log_gets_a_row_and_a_mark() {
    let peer = site();
    let desk = Desk::default();
    let url = format!("http://{}/ok", peer.address());
    for _ in 0..2 {
        desk.run_words(
            Program::Siege,
            &["-c", "1", "-r", "1", "-l/log", "-m", "a mark", &url].map(str::to_owned),
        );
    }
    let log = desk.file("/log");
    let lines: Vec<_> = log.lines().collect();
    assert!(lines.len() == 5 && lines[0].starts_with("      Date & Time,  Trans,"), "{log}");
    assert_eq!((lines[1], lines[3]), ("**** a mark ****", "**** a mark ****"));
    assert_eq!(lines[2].split(',').count(), lines[0].split(',').count());
}

#[test]
fn a_server_that_is_gone_ends_the_siege() {
    let mut peer = site();
    peer.kill();
    let said = siege(&peer, "-c 1 -r 3", "/ok");
    assert_eq!((said.exit, figures(&said)), (0, [0, 0, 3]));
    let desk = Desk::default().with("rc", "failures = 5\n");
    let said = desk.run(Program::Siege, &format!("-R rc -c 2 -t 60s http://{}/", peer.address()));
    assert_eq!(said.exit, 0);
    assert!(
        said.err.contains("siege aborted due to excessive socket failure; you\n"),
        "{}",
        said.err
    );
    assert!((6..=8).contains(&figures(&said)[2]), "{}", said.err);
}

#[test]
fn no_more_users_come_than_the_limit_allows() {
    let peer = site();
    let desk = Desk::default().with("rc", "limit = 3\nverbose = false\n");
    let said = desk.run(Program::Siege, &format!("-R rc -c 5 -r 2 http://{}/ok", peer.address()));
    assert_eq!(figures(&said), [6, 6, 0]);
    assert!(said.out.contains("WARNING: The number of users is capped at 3."), "{}", said.out);
}

#[test]
fn help_is_printed_where_siege_prints_it() {
    for (line, exit, note) in [
        ("-h", 0, ""),
        ("-f none", 0, "[alert] unable to open file: none: No such file or directory\n"),
        ("-Q", 0, "siege: invalid option -- 'Q'\n"),
    ] {
        let said = Desk::default().run(Program::Siege, line);
        assert_eq!((said.exit, &*said.err), (exit, note), "{line}");
        assert!(said.out.starts_with("Usage: siege [options]\n"), "{line}");
    }
    let said = Desk::default().run(Program::Siege, "-H nocolon http://127.0.0.1/");
    assert_eq!((said.exit, &*said.err), (1, "[fatal] no ':' in http-header\n"));
    let said = Desk::default().run(Program::Siege, "-C -c 7");
    assert!(said.out.contains("concurrent users:               7\n"), "{}", said.out);
    assert_eq!(Desk::default().run(Program::Siege, "-V").exit, 0);
}

/// Answers some paths.
fn site() -> Peer {
    Peer::start(|it| {
        while let Some(head) = it.request() {
            let length = head
                .to_ascii_lowercase()
                .split_once("content-length: ")
                .map_or(0, |(_, rest)| rest.split("\r\n").next().unwrap().parse().unwrap());
            let content = String::from_utf8(it.content(length)).unwrap();
            let length = if head.starts_with("HEAD") { "2" } else { "" };
            it.send(match path(&head) {
                "/r" => empty("301", "Location: /ok"),
                "/loop" => empty("302", "Location: /loop"),
                "/to500" => empty("302", "Location: /500"),
                "/404" => empty("404", "A: b"),
                "/500" => empty("500", "A: b"),
                "/form" => {
                    let length = content.len();
                    format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{content}")
                }
                _ if !length.is_empty() => OK.trim_end_matches("ok").to_owned(),
                _ => OK.to_owned(),
            });
        }
    })
}

fn answer_all(conversation: &mut Conversation, answer: impl Fn(&str) -> String) {
    while let Some(head) = conversation.request() {
        conversation.send(answer(&head));
    }
}

fn empty(status: &str, field: &str) -> String {
    format!("HTTP/1.1 {status} ?\r\nContent-Length: 0\r\n{field}\r\n\r\n")
}

fn path(head: &str) -> &str {
    head.split(' ').nth(1).unwrap()
}

fn siege(peer: &Peer, line: &str, path: &str) -> Said {
    Desk::default().run(Program::Siege, &format!("{line} http://{}{path}", peer.address()))
}

/// Transactions, successful and failed ones.
#[track_caller]
fn figures(said: &Said) -> [u64; 3] {
    ["Transactions", "Successful transactions", "Failed transactions"]
        .map(|label| value(said, label).trim_end_matches(" hits").parse().unwrap())
}

#[track_caller]
fn value(said: &Said, label: &str) -> String {
    let mut lines = said.err.lines().filter_map(|line| line.strip_prefix(label)?.strip_prefix(':'));
    lines.next().unwrap_or_else(|| panic!("no {label} in {}", said.err)).trim().to_owned()
}

/// A line without the seconds before `secs:`.
fn without_times(line: &str) -> String {
    let Some((before, after)) = line.split_once(" secs:") else { return line.to_owned() };
    let before = before.trim_end_matches(|it: char| it.is_ascii_digit() || it == '.').trim_end();
    format!("{before} secs:{after}")
}
