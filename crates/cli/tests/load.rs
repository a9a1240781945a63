//! `milepost load` as it is used: exit codes, what is on stdout and stderr, and Ctrl-C.

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// No run in here takes as long.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often a rate is searched for on a machine that others use too.
const SEARCHES: usize = 5;

/// Nobody listens here: no system gives this port to a program that asks for any.
const NOBODY: &str = "127.0.0.1:1";

#[test]
fn right_answers_are_measured() {
    let server = serve();
    let url = format!("http://{server}/test/7");
    let location = format!("http://{server}/new/7");
    let args = [
        &*url,
        "-n",
        "500",
        "-c",
        "5",
        "-t",
        "2",
        "--expect-status",
        "301",
        "--expect-location",
        &location,
    ];
    let output = load(&args);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let text = out(&output);
    assert!(
        text.starts_with(&format!(
            "{url}\n5 connections, keep-alive, 2 threads, closed loop, 500 "
        ))
    );
    assert!(text.contains("\nright answers   500 "), "{text}");
    assert!(text.contains("\n99 % "), "{text}");
    // Progress has its place on stderr, and a short run has none.
    assert_eq!(err(&output), "");
}

#[test]
fn wrong_answers_are_shown_and_exit_with_1() {
    let server = serve();
    let url = format!("http://{server}/test/7");
    let location = format!("http://{server}/new/8");
    let output = load(&[&url, "-n", "50", "--expect-location", &location]);
    assert_eq!(output.status.code(), Some(1));
    let text = out(&output);
    assert!(text.contains("\nwrong answers   50\n"), "{text}");
    assert!(
        text.contains(&format!("got      status 301, Location http://{server}/new/7\n")),
        "{text}"
    );
    assert!(text.contains("\nno answer was right, so there are no times\n"), "{text}");
}

#[test]
fn the_json_object_has_the_promised_names() {
    let server = serve();
    let url = format!("http://{server}/test/7");
    let output = load(&[&url, "-n", "2000", "--json", "--expect-status", "301"]);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&report["requests"], &report["wrong_answers"], &report["errors"]),
        (&2000.into(), &0.into(), &0.into())
    );
    for name in ["requests_per_second", "client_cpu_us_per_request"] {
        assert!(report[name].as_f64().is_some_and(|value| value > 0.0), "{name} in {report}");
    }
    for times in ["service_ns", "response_ns"] {
        for name in ["p50", "p90", "p99", "p999", "max", "mean"] {
            let value = &report[times][name];
            assert!(value.as_f64().is_some_and(|value| value > 0.0), "{times}.{name} in {report}");
        }
    }
}

#[test]
fn each_url_of_a_list_has_its_own_expectation() {
    let server = serve();
    let list = file(
        "own.urls",
        &format!(
            "# A comment.\nhttp://{server}/test/1 status=301 location=http://{server}/new/1\n\
             http://{server}/test/2 location=http://{server}/new/1\nhttp://{server}/other status=404\n"
        ),
    );
    let output = load(&["--urls", list.to_str().unwrap(), "-n", "300", "--json"]);
    assert_eq!(output.status.code(), Some(1), "{}", err(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&report["requests"], &report["wrong_answers"]), (&300.into(), &100.into()));
    let examples = report["wrong_answer_examples"].as_array().unwrap();
    assert_eq!(examples.len(), 1);
    assert_eq!(examples[0]["url"], format!("http://{server}/test/2"));
}

#[test]
fn stages_make_their_requests_and_end_the_run() {
    let server = serve();
    let url = format!("http://{server}/test/7");
    let args = ["--stages", "200ms:500,400ms:..0,100ms:200", "--json", "--expect-status", "301"];
    let output = load(&[&[&*url], &args[..]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    // 100 + 100 + 20; what is due in the last instant may stay unanswered.
    let made = report["requests"].as_u64().unwrap() + report["unanswered"].as_u64().unwrap();
    assert_eq!((made, &report["ended"]), (220, &"duration".into()), "{report}");
    assert_eq!(report["plan"]["stages"][1], json!({ "seconds": 0.4, "from": 500.0, "to": 0.0 }));
    assert_eq!(
        (&report["plan"]["rate"], &report["plan"]["arrival"]),
        (&Value::Null, &"uniform".into())
    );

    let args = ["--rate", "2000", "--arrival", "poisson", "-n", "600", "--seed", "3"];
    let output = load(&[&[&*url], &args[..]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let text = out(&output);
    assert!(text.contains("open loop at 2000 requests a second, Poisson, 600 requests"), "{text}");
}

#[test]
fn the_highest_rate_is_searched_for_and_confirmed() {
    let server = serve();
    let url = format!("http://{server}/test/7");
    // Any rate that the server keeps up with holds, on a busy machine a low one.
    let search = ["-d", "200ms", "--expect-status", "301", "--json", "--find-max"];
    let output = search_for_a_rate(&[&[&*url], &search[..], &["wrong==0"]].concat());
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let steps = found["steps"].as_array().unwrap();
    let purposes: Vec<_> = steps.iter().map(|step| step["purpose"].as_str().unwrap()).collect();
    assert_eq!((purposes[0], purposes[1]), ("ceiling", "try"));
    let last = steps.last().unwrap();
    assert_eq!((&last["purpose"], &last["held"]), (&"confirm".into(), &true.into()));
    assert_eq!(
        (&last["rate"], &found["confirmation"]["plan"]["rate"]),
        (&found["rate"], &found["rate"])
    );
    assert!(err(&output).contains("milepost: closed loop: "), "{}", err(&output));

    // Several processes search together.
    let arguments = [&[&*url, "--processes", "2"], &search[..], &["wrong==0"]].concat();
    let output = search_for_a_rate(&arguments);
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let confirmation = &found["confirmation"]["plan"];
    assert_eq!((&confirmation["processes"], &confirmation["rate"]), (&2.into(), &found["rate"]));
    let achieved = found["confirmation"]["requests_per_second"].as_f64().unwrap();
    assert!(achieved > 0.8 * found["rate"].as_f64().unwrap(), "{found}");

    let output = search_for_a_rate(&[&[&*url], &search[..4], &["--find-max", "wrong==0"]].concat());
    let text = out(&output);
    let held = text.split("held at ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap();
    let held = held.strip_suffix(".0").unwrap_or(held);
    assert!(text.contains(&format!("open loop at {held} requests a second")), "{text}");

    let output = load(&[&[&*url], &search[..4], &["--find-max", "max<1ns"]].concat());
    assert_eq!(output.status.code(), Some(1), "{}", err(&output));
    let text = out(&output);
    assert!(text.starts_with("no rate at which max<1ns holds was found and confirmed\n"), "{text}");
    assert!(text.contains("\ndoubt: no rate was found"), "{text}");
}

/// A search that finds a rate. One that others disturb may find none, as it should.
#[track_caller]
fn search_for_a_rate(arguments: &[&str]) -> Output {
    let mut outputs = (0..SEARCHES).map(|_| load(arguments));
    outputs.find(|output| output.status.success()).expect("a rate that is found and confirmed")
}

#[test]
fn what_cannot_be_done_is_one_line_and_exits_with_2() {
    let server = serve();
    let list = file("bad.urls", &format!("\nhttp://{server}/a status=3xx\n"));
    let list = list.to_str().unwrap();
    let refuse = |args: &[&str], message: &str| {
        let output = load(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert_eq!(out(&output), "");
        let text = err(&output);
        assert!(text.contains(message), "{text}");
        text.to_owned()
    };
    let url = format!("http://{server}/a");
    let message = format!("milepost: {list}:2:{}: status= needs", url.len() + 2);
    let text = refuse(&["--urls", list], &message);
    assert_eq!(text.lines().count(), 1, "{text}");
    refuse(&["--urls", "/nowhere/urls"], "milepost: cannot read /nowhere/urls: ");
    let tls = |options: &[&str], message: &str| {
        refuse(&[&["https://localhost/"], options].concat(), message);
    };
    tls(&["--tls-max", "1.1"], "rustls has 1.2 and 1.3");
    tls(&["--ciphers", "RC4-MD5"], "the nearest is ECDHE-RSA-AES128-GCM-SHA256; there are TLS_AES");
    tls(&["--cacert", "/nowhere/ca"], "milepost: cannot read /nowhere/ca: ");
    tls(&["-k", "--tls-min", "1.3", "--tls-max", "1.2"], "newest version of TLS is older");
    refuse(&[&url, "--source", "127.0.0.0/8"], "no range of 1 to 65536 addresses");
    refuse(&[&url, "--connect-to", "a:80"], "HOST:PORT:TO_HOST:TO_PORT is needed");
    refuse(&["localhost:80"], "a URL begins with http:// or https://");
    refuse(&[&url, "-H", "Connection: close"], "\"Connection\"");
    refuse(&[&url, "-c", "0"], "connections must be at least 1");
    refuse(&[&url, "-n", "1", "-d", "1s"], "cannot be used with");
    refuse(&[&url, "-d", "soon"], "a duration is a positive number");
    refuse(&[&url, "--rate", "0"], "the rate must be a positive number");
    refuse(&[&url, "--rate", "-5"], "the rate must be a positive number");
    refuse(&[&url, "-n", "0"], "'0' for '--requests <N>': a whole number of 1 or more is needed");
    let latin = file("latin.urls", "");
    std::fs::write(&latin, b"# caf\xe9\n").unwrap();
    let latin = latin.to_str().unwrap();
    refuse(&["--urls", latin], &format!("milepost: {latin}:1:6: not UTF-8"));
    refuse(&[&url, "--stages", "1s:5,2s"], "stage 2, \"2s\": a stage is TIME:RATE");
    refuse(&[&url, "--arrival", "poisson"], "--arrival poisson needs a rate");
    refuse(&[], "required");

    let text =
        refuse(&[&format!("http://{NOBODY}/")], &format!("milepost: cannot connect to {NOBODY}: "));
    assert_eq!(text.lines().count(), 1, "{text}");
}

#[test]
fn an_error_that_nobody_can_read_is_an_error_still() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = Command::new(env!("CARGO_BIN_EXE_milepost"));
    command.args(["load", "--urls", "/nowhere/urls"]).stdin(Stdio::null()).stderr(writer);
    assert_eq!(command.status().unwrap().code(), Some(2));
}

#[test]
fn what_a_connection_carries_is_asked_for() {
    let heads = Arc::new(Mutex::new(Vec::new()));
    let server = serve_heads(&heads);
    let url = format!("http://{server}/");
    let run = |options: &[&str]| -> Value {
        heads.lock().unwrap().clear();
        let output = load(&[&[&*url, "-c", "1", "-n", "10", "--json"], options].concat());
        assert_eq!(output.status.code(), Some(0), "{}", err(&output));
        serde_json::from_str(out(&output)).unwrap()
    };
    let report = run(&["--http1.0"]);
    assert_eq!(report["connections"]["opened"], 1, "{report}");
    assert!(heads.lock().unwrap().iter().all(|(_, head)| {
        head.starts_with("GET / HTTP/1.0\r\n") && head.contains("\r\nConnection: keep-alive\r\n")
    }));
    for io in ["auto", "epoll"] {
        let report = run(&["--requests-per-connection", "4", "--io", io]);
        let connections = &report["connections"];
        assert_eq!(
            (&connections["opened"], &connections["closed_by_server"]),
            (&3.into(), &0.into())
        );
        let carried: Vec<_> = heads.lock().unwrap().iter().map(|(number, _)| *number).collect();
        let first = carried[0];
        assert_eq!(carried.iter().filter(|it| **it == first).count(), 4, "{carried:?}");
        assert_eq!(report["plan"]["requests_per_connection"], 4);
    }
    let report = run(&["--pause", "20ms", "--seed", "1"]);
    assert_eq!(report["plan"]["pause_max_seconds"], 0.02);
    // Nine pauses of ten milliseconds in the mean; those of this seed are no shorter than half of that.
    assert!(report["seconds"].as_f64() > Some(0.045), "{report}");
}

#[test]
fn assertions_decide_the_exit_status() {
    let server = serve();
    let url = format!("http://{server}/test/7");
    let run = |arguments: &[&str]| {
        let output = load(&[&[&*url, "-n", "2000"], arguments].concat());
        (output.status.code(), out(&output).to_owned())
    };
    let (code, text) = run(&["--assert", "p99<1h", "--assert", "wrong==0"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("\nassertion       wrong==0: holds: 0\n"), "{text}");
    let (code, text) = run(&["--assert", "p50 < 1ns"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("\nassertion       p50 < 1ns: FAILS: "), "{text}");
    // Not shown is not held.
    let (code, text) = run(&["--assert", "p99.99<1h"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(
        text.contains("\nassertion       p99.99<1h: FAILS, not shown: 2000 samples, "),
        "{text}"
    );
    assert!(text.contains("\n99.9 % ") && !text.contains("\n99.99 % "), "{text}");
    // Wrong answers fail a run unless an assertion allows them.
    let (code, _) = run(&["--expect-status", "200", "--assert", "errors==0"]);
    assert_eq!(code, Some(1));
    let (code, text) = run(&["--expect-status", "200", "--assert", "wrong==100%"]);
    assert_eq!(code, Some(0), "{text}");
    let output = load(&[&url, "--json", "-n", "10", "--assert", "rate>0"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let outcome = &report["assertions"][0];
    assert_eq!((&outcome["assertion"], &outcome["verdict"]), (&"rate>0".into(), &"held".into()));
    let output = load(&[&url, "--assert", "p99<5"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        err(&output)
            .contains("'p99<5' for '--assert <ASSERTION>': column 5: a time needs its unit"),
        "{}",
        err(&output)
    );
}

#[test]
fn each_second_is_written_and_served() {
    let server = serve();
    let url = format!("http://{server}/test/7");
    let names = ["seconds.csv", "seconds.ndjson", "seconds.hdr"];
    let files = names.map(|name| file(name, ""));
    let [csv, ndjson, hdr] = files.each_ref().map(|path| path.to_str().unwrap());
    let child = start(&[
        &url,
        "--rate",
        "200",
        "-d",
        "2300ms",
        "--json",
        "--csv",
        csv,
        "--ndjson",
        ndjson,
        "--hdr",
        hdr,
        "--prometheus",
        "127.0.0.1:0",
    ]);
    // It says where, on stderr, before it begins.
    let mut child = child;
    let mut lines = BufReader::new(child.stderr.take().unwrap());
    let mut said = String::new();
    lines.read_line(&mut said).unwrap();
    let address = said.trim().strip_prefix("milepost: metrics at http://").unwrap();
    let address: SocketAddr = address.strip_suffix("/metrics").unwrap().parse().unwrap();
    // Until the first second is over there is nothing.
    let began = Instant::now();
    let scraped = loop {
        let text = scrape(address);
        if !text.contains("\nmilepost_load_sent_total 0\n") {
            break text;
        }
        assert!(began.elapsed() < PATIENCE, "{text}");
        thread::sleep(Duration::from_millis(20));
    };
    assert!(scraped.contains("\nmilepost_load_requests_total{result=\"right\"} "), "{scraped}");
    assert!(scraped.contains("\nmilepost_load_response_seconds_bucket{le=\"+Inf\"} "), "{scraped}");
    child.stderr = Some(lines.into_inner());
    let output = wait(child);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let sent = report["requests"].as_u64().unwrap() + report["unanswered"].as_u64().unwrap();

    let rows: Vec<_> =
        std::fs::read_to_string(&files[0]).unwrap().lines().map(str::to_owned).collect();
    let header: Vec<_> = rows[0].split(',').collect();
    let column = |name| header.iter().position(|found| *found == name).unwrap();
    let numbers = |name| {
        let cells = rows[1..].iter().map(|row| row.split(',').nth(column(name)).unwrap());
        cells.map(|cell| cell.parse::<f64>().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(numbers("start"), [0.0, 1.0, 2.0]);
    assert_eq!(numbers("sent").iter().sum::<f64>(), sent as f64);
    assert_eq!(numbers("requests").iter().sum::<f64>(), report["requests"].as_f64().unwrap());
    assert!(numbers("response_ns_p99").iter().all(|ns| *ns > 0.0), "{rows:?}");

    let text = std::fs::read_to_string(&files[1]).unwrap();
    let objects: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(objects.len(), 3);
    let samples = objects.iter().map(|object| object["service_ns"]["samples"].as_u64().unwrap());
    assert_eq!(samples.sum::<u64>(), report["service_ns"]["samples"].as_u64().unwrap());

    let text = std::fs::read_to_string(&files[2]).unwrap();
    assert_eq!(text.lines().filter(|line| line.starts_with('#')).count(), 4, "{text}");
    assert_eq!(text.lines().filter(|line| line.starts_with("Tag=service,")).count(), 3, "{text}");
    assert_eq!(text.matches(",HISTFAAA").count(), 6, "{text}");
}

#[test]
fn what_cannot_be_written_is_known_before_the_run() {
    let server = serve();
    let url = format!("http://{server}/test/7");
    let taken = server.to_string();
    for (option, value, message) in [
        ("--csv", "/nowhere/x", "milepost: cannot write /nowhere/x: No such file"),
        ("--hdr", "/nowhere/y", "milepost: cannot write /nowhere/y: No such file"),
        ("--prometheus", &taken, "milepost: cannot serve metrics at 127.0.0.1:"),
        ("--prometheus", "here", "invalid value 'here'"),
    ] {
        let output = load(&[&url, option, value]);
        assert_eq!((output.status.code(), out(&output)), (Some(2), ""), "{option}");
        assert!(err(&output).contains(message), "{}", err(&output));
    }
}

#[test]
fn several_processes_make_one_report() {
    let server = serve();
    let url = format!("http://{server}/test/7");
    let csv = file("processes.csv", "");
    let arguments = [&*url, "--processes", "3", "-c", "7", "-n", "2000", "--expect-status", "301"];
    let output = load(&[&arguments[..], &["--json", "--csv", csv.to_str().unwrap()]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&report["requests"], &report["errors"]), (&2000.into(), &0.into()));
    assert_eq!(report["service_ns"]["samples"], 2000);
    assert_eq!(report["statuses"]["301"], 2000);
    assert_eq!(report["connections"]["opened"], 7);
    assert_eq!((&report["plan"]["processes"], &report["plan"]["threads"]), (&3.into(), &3.into()));
    let rows = std::fs::read_to_string(&csv).unwrap();
    let sent =
        rows.lines().skip(1).map(|row| row.split(',').nth(3).unwrap().parse::<u64>().unwrap());
    assert_eq!(sent.sum::<u64>(), 2000, "{rows}");

    let output =
        load(&[&arguments[..], &["--rate", "2000", "--expect-location", "/wrong"]].concat());
    assert_eq!(output.status.code(), Some(1), "{}", err(&output));
    let text = out(&output);
    assert!(
        text.contains("\n7 connections, keep-alive, 3 threads in 3 processes, open loop"),
        "{text}"
    );
    assert!(text.contains("\nwrong answers   2,000\n"), "{text}");

    // One process that cannot do it is reason enough, and is told once.
    let output = load(&[&format!("http://{NOBODY}/"), "--processes", "2", "-n", "10"]);
    assert_eq!((output.status.code(), out(&output)), (Some(2), ""));
    assert!(
        err(&output).starts_with(&format!("milepost: cannot connect to {NOBODY}: ")),
        "{}",
        err(&output)
    );
    assert_eq!(err(&output).lines().count(), 1, "{}", err(&output));
    let output = load(&[&url, "--processes", "5", "-c", "2"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(err(&output).contains("5 processes need as many connections, and there are 2"));
}

#[test]
fn a_signal_to_one_process_ends_all_with_a_report() {
    let answered = Arc::new(AtomicU64::new(0));
    let server = serve_counting(&answered);
    let url = format!("http://{server}/test/7");
    let child = start(&[&url, "-d", "10m", "--json", "--processes", "2"]);
    let began = Instant::now();
    while answered.load(SeqCst) < 100 && began.elapsed() < PATIENCE {
        thread::sleep(Duration::from_millis(5));
    }
    interrupt(&child);
    let output = wait(child);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["ended"], "interrupted");
    assert!(report["requests"].as_u64().is_some_and(|requests| requests >= 100), "{report}");
}

#[test]
fn several_processes_may_be_interrupted_at_any_moment() {
    let server = serve();
    let url = format!("http://{server}/test/7");
    for millis in [2, 5, 10, 20, 40, 80] {
        let run = start(&[&url, "--processes", "3", "-d", "50s", "--json"]);
        thread::sleep(Duration::from_millis(millis));
        interrupt(&run);
        let output = wait(run);
        let Some(code) = output.status.code() else {
            // It came before anybody could take it.
            continue;
        };
        assert_eq!(code, 0, "after {millis} ms: {}", err(&output));
        let report: Value = serde_json::from_str(out(&output)).unwrap();
        assert_eq!(report["ended"], "interrupted", "after {millis} ms");
    }
}

#[test]
fn reports_are_compared() {
    let server = serve();
    let url = format!("http://{server}/test/7");
    let runs = |arguments: &[&str]| {
        let output = load(&[&[&*url, "-n", "300", "--json", "-c", "1"], arguments].concat());
        out(&output).repeat(6)
    };
    let quick = file("quick.json", &runs(&[]));
    let slow = file("slow.json", &runs(&["--rate", "1000"]));
    let [quick, slow] = [&quick, &slow].map(|path| path.to_str().unwrap());
    let output = load(&["compare", quick, slow]);
    let text = out(&output);
    assert!(text.starts_with(&format!("A  {quick}, 6 runs\nB  {slow}, 6 runs\n")), "{text}");
    assert!(
        text.contains("\ndoubt: the runs were not made alike: arrival is \"closed\" and "),
        "{text}"
    );
    let output = load(&["compare", quick, quick, "--margin", "1", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let comparison: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(comparison["metrics"][0]["metric"], "requests_per_second");
    assert_eq!(
        (&comparison["metrics"][0]["ratio"], &comparison["metrics"][0]["verdict"]),
        (&1.0.into(), &"same".into())
    );
    let output = load(&["compare", quick, "/nowhere"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(err(&output).starts_with("milepost: cannot read /nowhere: "), "{}", err(&output));
}

/// Asks for metrics.
fn scrape(address: SocketAddr) -> String {
    let mut socket = TcpStream::connect(address).unwrap();
    socket.write_all(b"GET /metrics HTTP/1.1\r\nHost: h\r\n\r\n").unwrap();
    let mut text = String::new();
    socket.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn ctrl_c_ends_the_run_and_prints_the_report() {
    let answered = Arc::new(AtomicU64::new(0));
    let server = serve_counting(&answered);
    let url = format!("http://{server}/test/7");
    let child = start(&[&url, "-d", "10m", "--json"]);
    let began = Instant::now();
    while answered.load(SeqCst) < 100 && began.elapsed() < PATIENCE {
        thread::sleep(Duration::from_millis(5));
    }
    interrupt(&child);
    let output = wait(child);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["ended"], "interrupted");
    assert!(report["requests"].as_u64().is_some_and(|requests| requests > 0), "{report}");
}

#[test]
fn a_host_is_looked_up_anew_and_all_its_addresses_are_used() {
    let first = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = first.local_addr().unwrap().port();
    let addresses: HashSet<_> = ("localhost", port).to_socket_addrs().unwrap().collect();
    let listeners =
        addresses.into_iter().map(|address| match address.ip() == Ipv4Addr::LOCALHOST {
            true => first.try_clone().unwrap(),
            false => TcpListener::bind(address).unwrap(),
        });
    let counts: Vec<_> = listeners.map(|listener| serve_on(listener, &Arc::default())).collect();
    let url = format!("http://localhost:{port}/test/1");
    let args = ["-d", "500ms", "--no-keep-alive", "--resolve-every", "50ms", "--json", &url];
    let output = load(&args);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let report: Value = serde_json::from_str(out(&output)).unwrap();
    let answered: Vec<_> = counts.iter().map(|count| count.load(SeqCst)).collect();
    assert!(answered.iter().all(|&count| count > 0), "{answered:?}");
    assert!(answered.iter().sum::<u64>() >= report["requests"].as_u64().unwrap(), "{report}");
    let never = load(&[&url, "--resolve-every", "0"]);
    assert_eq!(never.status.code(), Some(2));
    assert!(err(&never).contains("a duration is a positive number"), "{}", err(&never));
}

/// Answers `/test/N` with a redirect to `/new/N`, anything else with 404, for as long as the test
/// process lives.
fn serve() -> SocketAddr {
    serve_counting(&Arc::default())
}

/// The same, and counts the answers.
fn serve_counting(answered: &Arc<AtomicU64>) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    serve_on(listener, answered);
    address
}

fn serve_on(listener: TcpListener, answered: &Arc<AtomicU64>) -> Arc<AtomicU64> {
    let counted = Arc::clone(answered);
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for socket in listener.incoming() {
            let socket = socket.unwrap();
            let counted = Arc::clone(&counted);
            thread::spawn(move || answer(&socket, address, &counted));
        }
    });
    Arc::clone(answered)
}

/// Answers everything, and keeps the heads of requests with the number of their connection.
fn serve_heads(heads: &Arc<Mutex<Vec<(usize, String)>>>) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let (address, heads) = (listener.local_addr().unwrap(), Arc::clone(heads));
    thread::spawn(move || {
        for (number, socket) in listener.incoming().enumerate() {
            let (mut socket, heads) = (socket.unwrap(), Arc::clone(&heads));
            thread::spawn(move || {
                let mut lines = BufReader::new(socket.try_clone().unwrap());
                let mut head = String::new();
                while lines.read_line(&mut head).is_ok_and(|length| length > 0) {
                    if head.ends_with("\r\n\r\n") {
                        heads.lock().unwrap().push((number, std::mem::take(&mut head)));
                        let answer = "HTTP/1.0 204 None\r\nConnection: keep-alive\r\n\r\n";
                        socket.write_all(answer.as_bytes()).unwrap();
                    }
                }
            });
        }
    });
    address
}

fn answer(mut socket: &TcpStream, address: SocketAddr, answered: &AtomicU64) {
    let mut lines = BufReader::new(socket);
    loop {
        let (mut first, mut line) = (String::new(), String::new());
        if !lines.read_line(&mut first).is_ok_and(|length| length > 0) {
            return;
        }
        while line != "\r\n" {
            line.clear();
            if !lines.read_line(&mut line).is_ok_and(|length| length > 0) {
                return;
            }
        }
        let number = first.strip_prefix("GET /test/").and_then(|rest| rest.split(' ').next());
        let head = match number {
            Some(number) => {
                format!("HTTP/1.1 301 Moved\r\nLocation: http://{address}/new/{number}\r\n")
            }
            None => "HTTP/1.1 404 Not Found\r\n".to_owned(),
        };
        if socket.write_all(format!("{head}Content-Length: 0\r\n\r\n").as_bytes()).is_err() {
            return;
        }
        answered.fetch_add(1, SeqCst);
    }
}

fn load(args: &[&str]) -> Output {
    wait(start(args))
}

fn start(args: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_milepost"))
        .arg("load")
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Waits until the process has ended, which it must.
fn wait(mut child: Child) -> Output {
    let began = Instant::now();
    let (mut stdout, mut stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let out = thread::spawn(move || {
        let mut bytes = Vec::new();
        stdout.read_to_end(&mut bytes).map(|_| bytes)
    });
    let err = thread::spawn(move || {
        let mut bytes = Vec::new();
        stderr.read_to_end(&mut bytes).map(|_| bytes)
    });
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if began.elapsed() > PATIENCE {
            child.kill().unwrap();
            panic!("milepost load does not end");
        }
        thread::sleep(Duration::from_millis(5));
    };
    Output { status, stdout: out.join().unwrap().unwrap(), stderr: err.join().unwrap().unwrap() }
}

/// Sends SIGINT, as the terminal does.
fn interrupt(child: &Child) {
    let status = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(status.success());
}

fn file(name: &str, text: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).unwrap();
    path
}

fn out(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

fn err(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).unwrap()
}
