//! The command line, the plan and the report of figures that are known.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::time::Duration;

use super::options::{End, Start};
use super::recorder::Taken;
use super::*;
use crate::dropin::empty_report;
use crate::plan::{Arrival, Order, Persistence, Plan, Spacing, Stop, TimeoutFrom};

#[test]
fn flags_may_be_cut_short_and_the_first_that_fits_counts() {
    let options = parse("-cipher RC4-MD5 -parallel 20 -fetch 500 sslurl.txt").unwrap();
    assert_eq!((options.start, options.stop), (Start::Parallel(20), End::Fetches(500)));
    assert_eq!(options.cipher.as_deref(), Some("RC4-MD5"));
    assert_eq!(options.url_file, Path::new("sslurl.txt"));

    let short = parse("-r 5 -j -s 2 -c -v -ti 3 -pr proxy:81 -si ips -ci highsec u").unwrap();
    assert_eq!(short.start, Start::Rate { per_second: 5.0, jitter: true });
    assert_eq!(short.stop, End::Seconds(Duration::from_secs(2)));
    assert!(short.checksum && short.progress_every.is_some());
    assert_eq!(short.timeout, Duration::from_secs(3));
    assert_eq!(short.proxy.as_deref(), Some("proxy:81"));
    assert_eq!(short.sources.as_deref(), Some(Path::new("ips")));
    assert_eq!(short.cipher.as_deref(), Some("DES-CBC3-SHA"));

    assert_eq!(parse("-p 1 -f 1 -t u").unwrap().throttle, Some(3360.0));
    assert_eq!(parse("-p 1 -f 1 -T 56000 u").unwrap().throttle, Some(5600.0));
    assert_eq!(
        parse("-p 1 -f 1 -se 2 u"),
        Err("exactly one of -fetches and -seconds says when to end".into())
    );
    assert_eq!(parse("-p 1 -f 1 -seed 7 -header A:b -").unwrap().seed, 7);
    assert_eq!(
        parse("-rate 0.5 -sec 1 u").unwrap().start,
        Start::Rate { per_second: 0.5, jitter: false }
    );
}

#[test]
fn a_wrong_command_line_is_told_in_one_line() {
    for (line, message) in [
        ("", "the file of URLs is missing"),
        ("-p 1 -f 1", "the file of URLs is missing"),
        ("-p 1 -f 1 u more", "one file of URLs is the last word, not \"more\""),
        ("-p 1 -f 1 u -v", "one file of URLs is the last word, not \"-v\""),
        ("-f 1 u", "exactly one of -parallel and -rate says when to start"),
        ("-p 1 -r 1 -f 1 u", "exactly one of -parallel and -rate says when to start"),
        ("-p 1 u", "exactly one of -fetches and -seconds says when to end"),
        ("-p 1 -f 1 -s 1 u", "exactly one of -fetches and -seconds says when to end"),
        ("-p 1 -j -f 1 u", "-jitter goes with -rate only"),
        ("-p 0 -f 1 u", "-parallel is from 1 to 65536, not 0"),
        ("-p x -f 1 u", "-parallel needs a number of connections, not \"x\""),
        ("-r nan -f 1 u", "-rate is above zero, not nan"),
        ("-p 1 -f 0 u", "-fetches is at least 1, not 0"),
        ("-p 1 -s -1 u", "-seconds is above zero and a year at most, not -1"),
        ("-p", "-parallel needs a value"),
        ("-x u", "unknown flag -x"),
        ("-host f u", "-hostaliases: not done in milepost http_load"),
        ("-r 2000 -s 1 --quirks=http_load u", "rate may be at most 1000"),
        ("-p 1 -f 1 --quirks=ab24 u", "the quirks are --quirks=http_load"),
        ("--other u", "unknown option --other"),
        ("-p 1 -f 1 -head x u", "-header needs a name, a colon and a value: \"x\""),
    ] {
        assert_eq!(parse(line).unwrap_err(), message, "{line}");
    }
    assert_eq!(
        parse("-r 2000 -s 1 u").unwrap().start,
        Start::Rate { per_second: 2000.0, jitter: false }
    );
}

#[test]
fn the_plan_is_what_http_load_does_or_should_do() {
    let ours =
        plan("-p 3 -f 9 -ti 5 u", "http://127.0.0.1:8080/a?b\n\nhttp://127.0.0.1/c\n").unwrap();
    assert_eq!((ours.connections, ours.stop), (3, Stop::Requests(9)));
    assert_eq!((ours.order, ours.persistence), (Order::Random, Persistence::Close));
    assert_eq!((ours.timeout, ours.timeout_from), (Duration::from_secs(5), TimeoutFrom::LastByte));
    let hosts: Vec<_> = ours.targets.iter().map(|target| &*target.authority).collect();
    assert_eq!(hosts, ["127.0.0.1:8080", "127.0.0.1"]);

    let quirks = plan("-p 3 -f 9 --quirks=http_load u", "http://127.0.0.1:8080/").unwrap();
    assert_eq!(quirks.persistence, Persistence::Unsaid);
    assert_eq!(quirks.targets[0].authority, "127.0.0.1");

    let proxied = plan("-p 1 -f 1 -proxy 127.0.0.1:3128 u", "http://nowhere.invalid/x").unwrap();
    assert_eq!(proxied.targets[0].request_target, "http://nowhere.invalid/x");
    let proxy = crate::endpoint::Endpoint::Tcp("127.0.0.1:3128".parse().unwrap());
    assert_eq!(proxied.targets[0].address, proxy);

    let sourced = plan("-p 1 -f 1 -sip ips u", "http://127.0.0.1/").unwrap();
    assert_eq!(sourced.sources.len(), 2);
}

#[test]
fn the_rate_is_the_one_that_is_asked_for_unless_quirks_are() {
    let arrival =
        |line: &str| plan(&format!("{line} -s 1 u"), "http://127.0.0.1/").unwrap().arrival;
    let uniform = Arrival::uniform;
    let jittered = |per_second| Arrival::open(per_second, Spacing::Jittered { share: 0.1 });
    assert_eq!(arrival("-r 600"), uniform(600.0));
    assert_eq!(arrival("-r 600 -j"), jittered(600.0));
    // 1000 / 600 ms is one, 1000 / 400 two, 1000 / 300 three.
    assert_eq!(arrival("-r 600 --quirks=http_load"), uniform(1000.0));
    assert_eq!(arrival("-r 400 --quirks=http_load -j"), uniform(500.0));
    assert_eq!(arrival("-r 300 --quirks=http_load"), uniform(1000.0 / 3.0));
    assert_eq!(arrival("-r 50 --quirks=http_load -j"), jittered(50.0));
}

#[test]
fn mistakes_in_files_have_a_place() {
    let fault = |line: &str, urls: &str| plan(line, urls).unwrap_err();
    assert_eq!(fault("-p 1 -f 1 u", "\n\n"), "u: the file has no URL");
    assert_eq!(
        fault("-p 1 -f 1 u", "http://127.0.0.1/\nftp://h/"),
        "u:2: unknown protocol - ftp://h/: a URL begins with http:// or https://"
    );
    assert_eq!(fault("-p 1 -f 1 nofile", ""), "nofile: No such file or directory");
    assert_eq!(
        fault("-p 1 -f 1 -sip u u", "x"),
        "u:1: unknown protocol - x: a URL begins with http:// or https://"
    );
    let sip = fault("-p 1 -f 1 -sip u u", "http://127.0.0.1/");
    assert_eq!(sip, "u:1: \"http://127.0.0.1/\" is no numeric IPv4 address");
}

#[test]
fn the_report_has_the_lines_of_http_load() {
    let options = parse("-p 5 -s 10 -checksum u").unwrap();
    let mut report = empty_report();
    report.seconds = 10.0;
    report.connections.busy_max = 5;
    report.statuses = BTreeMap::from([(200, 1), (301, 2)]);
    let mut taken = Taken::default();
    (taken.completed, taken.content_bytes) = (3, 1_234_567);
    (taken.timeouts, taken.bad) = (1, 2);
    taken.connect.add(Duration::from_micros(100));
    taken.connect.add(Duration::from_micros(300));
    assert_eq!(
        text::report(&options, &report, &taken),
        "3 fetches, 5 max parallel, 1.23457e+06 bytes, in 10 seconds\n\
         411522 mean bytes/connection\n\
         0.3 fetches/sec, 123457 bytes/sec\n\
         msecs/connect: 0.2 mean, 0.3 max, 0.1 min\n\
         1 timeouts\n\
         2 bad checksums\n\
         HTTP response codes:\n  code 200 -- 1\n  code 301 -- 2\n"
    );
    report.seconds = 0.001;
    assert_eq!(
        text::report(&options, &report, &Taken::default()),
        "0 fetches, 5 max parallel, 0 bytes, in 0.001 seconds\nHTTP response codes:\n  code 200 -- 1\n  code 301 -- 2\n"
    );
    assert_eq!(
        text::progress(Duration::from_millis(60_001), 7, 10),
        "--- 60.001 secs, 10 fetches started, 7 completed, 3 current\n"
    );
}

/// One file of URLs called `u`, and one of addresses.
struct Files<'a>(&'a str);

impl Outside for Files<'_> {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        match path.to_str() {
            Some("u") => Ok(self.0.into()),
            Some("ips") => Ok("127.0.0.2\n127.0.0.3\n".into()),
            _ => Err(io::Error::from_raw_os_error(2)),
        }
    }

    fn write(&self, _: &Path, _: &str) -> io::Result<()> {
        unreachable!("http_load writes no file")
    }

    fn append(&self, _: &Path, _: &str) -> io::Result<()> {
        unreachable!("http_load writes no file")
    }

    fn variable(&self, _: &str) -> Option<String> {
        None
    }

    fn out(&self, _: &str) {}

    fn err(&self, _: &str) {}
}

fn parse(line: &str) -> Result<Options, String> {
    let words: Vec<_> = line.split_whitespace().map(str::to_owned).collect();
    match Options::parse(&words)? {
        Asked::Run(options) => Ok(*options),
        Asked::Help => panic!("{line} asks for help"),
    }
}

fn plan(line: &str, urls: &str) -> Result<Plan, String> {
    plan::plan(&parse(line).unwrap(), &Files(urls))
}
