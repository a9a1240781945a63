//! The command line, the resource file, and the figures of exchanges that are known.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::time::Duration;

use super::settings::{Quirks, Reps};
use super::*;
use crate::target::Version;

/// Files and variables in memory; nothing is printed.
#[derive(Default)]
struct Shelf {
    files: BTreeMap<&'static str, &'static str>,
    variables: BTreeMap<&'static str, &'static str>,
}

impl Outside for Shelf {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let file = path.to_str().and_then(|path| self.files.get(path));
        file.map(|text| text.as_bytes().to_vec()).ok_or_else(|| io::Error::from_raw_os_error(2))
    }

    fn write(&self, _: &Path, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn append(&self, _: &Path, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn variable(&self, name: &str) -> Option<String> {
        self.variables.get(name).map(|value| (*value).to_owned())
    }

    fn out(&self, _: &str) {}

    fn err(&self, _: &str) {}
}

#[test]
fn the_seed_is_understood_word_for_word() {
    let settings = parse("-d0 -c10 -t120s -i -f urllist.txt", &Shelf::default()).unwrap();
    assert_eq!((settings.delay, settings.concurrent), (Duration::ZERO, 10));
    assert_eq!((settings.time, settings.reps), (Some(Duration::from_secs(120)), Reps::Endless));
    assert!(settings.internet);
    assert_eq!(settings.file.unwrap().to_str(), Some("urllist.txt"));
}

#[test]
fn options_are_those_of_siege() {
    let line = "-v -q -g --concurrent=3 -r once --delay 1.5 -b -l/tmp/log -m mark -H A:b --header=C:d \
                -A agent -T text/x -j --no-parser --no-follow http://h/";
    let settings = parse(line, &Shelf::default()).unwrap();
    assert!(settings.verbose && settings.quiet && settings.json && settings.benchmark);
    assert!(!settings.follow && !settings.parser && !settings.logging, "-g writes no log");
    assert_eq!((settings.mode, settings.concurrent, settings.reps), (Mode::Get, 1, Reps::Count(1)));
    assert_eq!(settings.delay, Duration::from_millis(1500));
    let fields = [("A", "b"), ("C", "d")].map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(settings.fields, fields);
    assert_eq!(settings.user_agent.as_deref(), Some("agent"));
    assert_eq!(settings.url.as_deref(), Some("http://h/"));
    for (text, seconds) in
        [("90s", 90.0), ("2", 120.0), ("2M", 120.0), ("1H", 3600.0), ("0.5S", 0.5)]
    {
        let settings = parse(&format!("-t {text} h"), &Shelf::default()).unwrap();
        assert_eq!(settings.time, Some(Duration::from_secs_f64(seconds)), "{text}");
    }
}

#[test]
fn the_resource_file_is_found_and_the_command_line_counts_more() {
    let mut shelf = Shelf::default();
    shelf.variables.insert("HOME", "/home/me");
    shelf.files.insert(
        "/home/me/.siege/siege.conf",
        "concurrent = 7\nreps = 3\nprotocol = HTTP/1.0\nconnection = keep-alive\nU = h.example\n\
         url = $(U)/a\nparser = true\nlogin = u:p:realm\nlogin = v:q\nheader = A: b\nssl-timeout = 300\n",
    );
    shelf.files.insert("/other", "concurrent = 8\n");
    let settings = parse("", &shelf).unwrap();
    assert_eq!(
        (settings.concurrent, settings.reps, settings.version),
        (7, Reps::Count(3), Version::Http10)
    );
    assert!(settings.keep_alive && settings.parser);
    assert_eq!(settings.url.as_deref(), Some("h.example/a"));
    let realms: Vec<_> = settings.logins.iter().map(|login| login.realm.as_deref()).collect();
    assert_eq!(realms, [Some("realm"), None]);
    assert_eq!(parse("-c 2", &shelf).unwrap().concurrent, 2);
    assert_eq!(parse("-R /other", &shelf).unwrap().concurrent, 8);
    let timed = parse("-t 1s", &shelf).unwrap();
    assert_eq!((timed.reps, timed.time), (Reps::Endless, Some(Duration::from_secs(1))));
    shelf.variables.insert("SIEGERC", "/other");
    assert_eq!(parse("", &shelf).unwrap().concurrent, 8);
}

#[test]
fn what_is_wrong_or_not_done_is_named() {
    let mut shelf = Shelf::default();
    for (file, message) in [
        ("x\ncache = true", "/rc:2: cache = true: not done in milepost siege"),
        ("login-url = http://h/", "/rc:1: login-url = http://h/: not done in milepost siege"),
        ("url-escaping = false", "/rc:1: url-escaping = false: not done in milepost siege"),
        ("verbose = maybe", "/rc:1: verbose needs true or false, not \"maybe\""),
        ("protocol = HTTP/2", "/rc:1: protocol needs HTTP/1.1 or HTTP/1.0, not \"HTTP/2\""),
        ("header = nocolon", "/rc:1: no ':' in http-header"),
    ] {
        shelf.files.insert("/rc", file);
        assert_eq!(parse("-R /rc", &shelf).unwrap_err(), Fault::Fatal(message.to_owned()));
    }
    for (line, fault) in [
        ("-Q", Fault::Usage("siege: invalid option -- 'Q'".to_owned())),
        ("--bogus", Fault::Usage("siege: unrecognized option '--bogus'".to_owned())),
        ("-c", Fault::Usage("siege: option requires an argument -- 'c'".to_owned())),
        (
            "-D",
            Fault::Fatal(
                "-D: not done in milepost siege; -g shows the heads of an exchange".to_owned(),
            ),
        ),
        ("-H nocolon", Fault::Fatal("no ':' in http-header".to_owned())),
        ("-r 0", Fault::Fatal("reps needs at least 1, or once, not \"0\"".to_owned())),
        ("-t x", Fault::Fatal("time needs a number with S, M or H, not \"x\"".to_owned())),
        ("-c x", Fault::Fatal("concurrent needs a number, not \"x\"".to_owned())),
        ("--quirks=ab24", Fault::Fatal("quirks needs siege40 or siege42, not \"ab24\"".to_owned())),
        (
            "-R /none",
            Fault::Fatal(
                "unable to open resource file /none: No such file or directory (os error 2)"
                    .to_owned(),
            ),
        ),
    ] {
        assert_eq!(parse(line, &Shelf::default()).unwrap_err(), fault, "{line}");
    }
}

#[test]
fn every_line_of_a_list_becomes_a_request() {
    let mut shelf = Shelf::default();
    shelf.files.insert(
        "/urls",
        "H=127.0.0.1:81\n$(H)/a b\nhttp://$(H)/p POST a=1\n$(H)/f PUT <./file\n$(H)/j POST -T text/json; {}\n",
    );
    shelf.files.insert("./file", "content");
    let settings = parse("-f /urls -r once -c 3 -H Accept:text/x", &shelf).unwrap();
    let plan = plan::plan(&settings, &shelf).unwrap();
    let shown: Vec<_> = plan
        .targets
        .iter()
        .map(|it| {
            let kind = it.fields.iter().find(|(name, _)| name == "Content-Type");
            let kind = kind.map_or("", |(_, value)| value);
            (it.method.as_str(), it.uri(), String::from_utf8(it.content.to_vec()).unwrap(), kind)
        })
        .collect();
    let uri = |path: &str| format!("http://127.0.0.1:81/{path}");
    let form = "application/x-www-form-urlencoded";
    assert_eq!(
        shown,
        [
            ("GET", uri("a%20b"), String::new(), ""),
            ("POST", uri("p"), "a=1".to_owned(), form),
            ("PUT", uri("f"), "content".to_owned(), form),
            ("POST", uri("j"), "{}".to_owned(), "text/json"),
        ]
    );
    assert_eq!((plan.connections, plan.stop), (3, crate::plan::Stop::RequestsEach(4)));
    let settings = parse("ftp://h/", &shelf).unwrap();
    let fault = Fault::Fatal("ftp://h/: a URL begins with http:// or https://".to_owned());
    assert_eq!(plan::plan(&settings, &shelf).unwrap_err(), fault);
    shelf.files.insert("/urls", "# nothing\n");
    let settings = parse("-f /urls", &shelf).unwrap();
    let fault = Fault::Fatal("/urls: the list has no URL".to_owned());
    assert_eq!(plan::plan(&settings, &shelf).unwrap_err(), fault);
    shelf.files.insert("/etc/siege/urls.txt", "# nothing\n");
    let fault = Fault::Usage("[alert] /etc/siege/urls.txt: the list has no URL".to_owned());
    assert_eq!(plan::plan(&parse("", &shelf).unwrap(), &shelf).unwrap_err(), fault);
    shelf.files.insert("/urls", "\n127.0.0.1/a POST <nofile\n");
    let Err(Fault::Fatal(message)) = plan::plan(&settings, &shelf) else { panic!() };
    assert!(message.starts_with("/urls:2: nofile: "), "{message}");
}

#[test]
fn shares_of_urls_are_equal_unless_siege_is_asked_for() {
    let mut shelf = Shelf::default();
    shelf.files.insert("/urls", "127.0.0.1/a\n127.0.0.1/b\n127.0.0.1/c\n127.0.0.1/d\n");
    let shares = |line: &str| {
        let plan = plan::plan(&parse(line, &shelf).unwrap(), &shelf).unwrap();
        ["/a", "/b", "/c", "/d"]
            .map(|path| plan.targets.iter().filter(|it| it.request_target == path).count())
    };
    assert_eq!(shares("-i -f /urls"), [1, 1, 1, 1]);
    assert_eq!(shares("-i -f /urls --quirks=siege40"), [1, 2, 2, 3]);
}

#[test]
fn the_report_has_sieges_form_and_width() {
    let taken = recorder::Taken {
        transactions: 3,
        successful: 2,
        failed: 1,
        time: Duration::from_millis(1_500),
        longest: Duration::from_millis(1_000),
        shortest: Some(Duration::from_millis(200)),
        content_bytes: 3 * 1024 * 1024,
        ..recorder::Taken::default()
    };
    let settings = Settings::default();
    let mut report = crate::dropin::empty_report();
    report.seconds = 2.0;
    let figures = text::Figures::new(&settings, &report, &taken);
    assert_eq!(
        figures.report(Quirks::None),
        "Transactions:\t\t           3 hits\n\
         Availability:\t\t       75.00 %\n\
         Elapsed time:\t\t        2.00 secs\n\
         Data transferred:\t        3.00 MB\n\
         Response time:\t\t        0.50 secs\n\
         Transaction rate:\t        1.50 trans/sec\n\
         Throughput:\t\t        1.50 MB/sec\n\
         Concurrency:\t\t        0.75\n\
         Successful transactions:           2\n\
         Failed transactions:\t           1\n\
         Longest transaction:\t        1.00\n\
         Shortest transaction:\t        0.20\n \n"
    );
    let of_42 = figures.report(Quirks::Siege42);
    assert!(of_42.starts_with("Transactions:\t\t        3    hits\n"), "{of_42}");
    assert!(of_42.contains("Response time:\t\t      500.00 ms\n"), "{of_42}");
    assert!(of_42.contains("Longest transaction:\t     1000.00 ms\n"), "{of_42}");
    let json = figures.json();
    assert!(json.starts_with("{\t\"transactions\":\t\t\t           3,\n"), "{json}");
    assert!(json.ends_with("\t\"shortest_transaction\":\t\t        0.20\n}\n"), "{json}");
    let row = figures.log_row();
    let cells: Vec<_> = row.split(',').skip(1).map(str::trim).collect();
    assert_eq!(cells, ["3", "2.00", "3", "0.50", "1.50", "1.50", "0.75", "2", "1"]);
}

fn parse(line: &str, outside: &Shelf) -> Result<Settings, Fault> {
    let words: Vec<_> = line.split_whitespace().map(str::to_owned).collect();
    match options::parse(&words, outside)? {
        Asked::Run(settings) => Ok(*settings),
        other => panic!("{other:?}"),
    }
}
