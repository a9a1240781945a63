//! The command line, and the figures of times that are known.

use std::time::{Duration, SystemTime};

use super::recorder::{Row, Taken};
use super::*;
use crate::plan::Persistence;
use crate::url::HttpUrl;

const URL: &str = "http://h:8080/a?b";

#[test]
fn options_are_those_of_ab() {
    let options =
        parse("-n 20 -c5 -kdSqlr -s 3 -b 4096 -B 127.0.0.2 -v 11 -e c.csv -g g.tsv").unwrap();
    assert_eq!((options.count(), options.concurrency), (20, 5));
    assert_eq!((options.timeout, options.window), (Duration::from_secs(3), Some(4096)));
    assert!(options.keep_alive && options.quiet && options.accepts_any_length);
    assert!(options.hides_percentiles && options.hides_deviation && options.tolerates_errors);
    assert_eq!((options.verbosity, options.persistence), (11, Persistence::KeepAlive));
    assert_eq!(options.bind, Some([127, 0, 0, 2].into()));
    let plain = parse("").unwrap();
    assert_eq!((plain.count(), plain.concurrency, plain.persistence), (1, 1, Persistence::Close));
    let html = parse("-x border=1").unwrap();
    assert_eq!(
        (html.html, html.attributes),
        (true, ["border=1".into(), String::new(), "bgcolor=white".into()])
    );
}

#[test]
fn the_method_and_the_fields_come_from_many_options() {
    let options =
        parse("-p body -T text/x -C a=1 -C b=2 -A u:p -P v:q -H X-A:1 -H Host:other").unwrap();
    let fields: Vec<_> =
        options.fields.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    assert_eq!(options.method, "POST");
    assert_eq!(
        fields,
        [
            "Cookie: a=1; b=2",
            "Authorization: Basic dTpw",
            "Proxy-Authorization: Basic djpx",
            "Content-Type: text/x",
            "X-A: 1",
            "Host: other"
        ]
    );
    assert_eq!(parse("-u body").unwrap().method, "PUT");
    assert_eq!(parse("-i").unwrap().method, "HEAD");
    assert_eq!(parse("-m DELETE").unwrap().method, "DELETE");
    assert_eq!(parse("-H Connection:close").unwrap().persistence, Persistence::Close);
    assert_eq!(parse("-k -H connection:close").unwrap().persistence, Persistence::Close);
    assert_eq!(parse("-H Connection:Keep-Alive").unwrap().persistence, Persistence::KeepAlive);
}

#[test]
fn number_and_time_may_both_be_given() {
    let both = |line: &str| {
        parse(line).map(|it| (it.count(), it.time_limit.map(|it| it.as_secs()))).unwrap()
    };
    assert_eq!(both("-t 5"), (50_000, Some(5)));
    assert_eq!(both("-t 5 -n 100"), (100, Some(5)));
    assert_eq!(both("-n 100 -t 5"), (100, Some(5)));
    // As ab: the number is lost when the time comes after it.
    assert_eq!(both("-n 100 -t 5 --quirks=ab24"), (50_000, Some(5)));
    assert_eq!(both("--quirks=ab24 -t 5 -n 100"), (100, Some(5)));
}

#[test]
fn quirks_leave_the_connection_field_out_and_the_last_cookie_in() {
    let options = parse("--quirks=ab24 -C a=1 -C b=2").unwrap();
    assert_eq!(options.persistence, Persistence::Unsaid);
    assert_eq!(options.fields, [("Cookie".to_owned(), "b=2".to_owned())]);
}

#[test]
fn what_is_wrong_or_not_done_is_named() {
    let usage = |line: &str, message: &str| {
        assert_eq!(parse(line).unwrap_err(), Fault::Usage(message.to_owned()), "{line}");
    };
    usage("-n", "wrong number of arguments");
    usage("-Q", "illegal option -- Q");
    usage("-W 4", "illegal option -- W");
    usage("-n 2 -c 3", "Cannot use concurrency level greater than total number of requests");
    usage("-c 3", "Cannot use concurrency level greater than total number of requests");
    for (line, message) in [
        ("-n 0", "Invalid number of requests\n"),
        ("-n x", "Invalid number of requests\n"),
        ("-n 200000000000", "Invalid number of requests\n"),
        ("-n 9 -c 0", "Invalid concurrency [range 1..20000]\n"),
        ("-i -p body", "Cannot mix POST with other methods\n"),
        ("-m X -i", "Cannot mix HEAD with other methods\n"),
        ("-p body -m X", "Cannot mix POST with other methods\n"),
        ("-H nocolon", "ab: -H \"nocolon\": a field line is a name, a colon and a value"),
        ("-H Connection:x", "ab: -H \"Connection:x\": only close and keep-alive are done"),
        ("-A user", "ab: -A: credentials are a user, a colon and a password"),
        ("-B h", "ab: -B: \"h\" is no IP address"),
        ("--quirks=ab", "ab: --quirks=ab: only ab24 is known"),
        ("--linger-report=x", "ab: --linger-report: \"x\" is no number of seconds"),
    ] {
        assert_eq!(parse(line).unwrap_err(), Fault::Refused(message.to_owned()), "{line}");
    }
    for (url, fault) in [
        ("http://h", "invalid URL"),
        ("h", "invalid URL"),
        ("ftp://h/", "invalid URL: a URL begins with http:// or https://"),
        ("http://h/a b", "invalid URL: ' ' must be percent-encoded"),
    ] {
        let fault = Fault::Usage(fault.to_owned());
        assert_eq!(Options::parse(&[url.to_owned()]).unwrap_err(), fault, "{url}");
    }
    for (line, part) in [("-Z RC4-MD5", "nearest is ECDHE-RSA-AES128"), ("-f SSL3", "1.2 and 1.3")]
    {
        let Err(Fault::Refused(message)) = parse(line) else { panic!("{line}") };
        assert!(message.contains(part), "{message}");
    }
    let tls = parse("-I -Z ECDHE-RSA-AES128-GCM-SHA256 -f TLS1.2 -E me.pem").unwrap();
    assert!(tls.hides_server_name && tls.ciphers.is_some() && tls.identity.is_some());
    assert_eq!(tls.version, Some(crate::tls::TlsVersion::Tls12));
    assert!(matches!(Options::parse(&["https://h/".to_owned()]), Ok(Asked::Run(_))));
    assert!(matches!(Options::parse(&["h/".to_owned()]), Ok(Asked::Run(_))));
}

#[test]
fn the_figures_are_those_of_the_times() {
    let text = figures("-n 4", &[1, 2, 3, 10]);
    assert_eq!(
        text,
        "\nConnection Times (ms)\n              \
         min  mean[+/-sd] median   max\n\
         Connect:        1    1   0.0      1       1\n\
         Processing:     0    3   4.1      2       9\n\
         Waiting:        0    0   0.0      0       0\n\
         Total:          1    4   4.1      3      10\n\
         \nPercentage of the requests served within a certain time (ms)\n  \
         50%      2\n  66%      3\n  75%      3\n  80%     10\n  90%     10\n  95%     10\n  \
         98%     10\n  99%     10\n 100%     10 (longest request)\n"
    );
    // Two of four are served within 2 ms; ab says the third. Its median of four is the third, too.
    let quirks = figures("-n 4 --quirks=ab24", &[1, 2, 3, 10]);
    assert!(quirks.contains("  50%      3\n") && quirks.contains("  75%     10\n"), "{quirks}");
    assert!(quirks.contains("Total:          1    4   4.1      3      10\n"), "{quirks}");
    let quirks = figures("-n 5 --quirks=ab24", &[1, 2, 3, 7, 10]);
    assert!(quirks.contains("Total:          1    5   3.8      5      10\n"), "{quirks}");
}

#[test]
fn columns_go_when_asked() {
    let short = figures("-n 3 -S -d", &[1, 2, 12]);
    assert_eq!(
        short,
        "\nConnection Times (ms)\n              min   avg   max\n\
         Connect:        1     1    1\nProcessing:     0     4   11\n\
         Waiting:        0     0    0\nTotal:          1     5   12\n"
    );
    // A single request has no percentiles.
    assert!(!figures("", &[5]).contains("Percentage"));
    assert_eq!(figures("", &[]), "");
}

#[test]
fn only_rounding_takes_mean_and_median_apart() {
    // Mean 1.51 ms, median 1.45 ms: rounded to 2 and 1, with hardly any deviation.
    let times = [1_450_000, 1_450_000, 1_450_000, 1_700_000];
    let quirks = figures_of("-n 4 --quirks=ab24", &times);
    assert!(quirks.contains("ERROR: The median and mean for the total time"), "{quirks}");
    assert!(!figures_of("-n 4", &times).contains("ERROR"));
}

#[test]
fn the_files_have_a_row_for_each_percent_and_each_request() {
    let options = parse("-n 3 -e c.csv -g g.tsv").unwrap();
    let taken = taken(&[30_000_000, 10_000_000, 20_000_000]);
    let report = crate::dropin::empty_report();
    let began = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    let outcome = Outcome { options: &options, report: &report, taken: &taken, began };
    let files = files::files(&outcome);
    let (csv, tsv) = (&files[0].2, &files[1].2);
    let rows: Vec<_> = csv.lines().collect();
    assert_eq!((rows.len(), rows[0], rows[1]), (102, "Percentage served,Time in ms", "0,10.000"));
    assert_eq!(
        (rows[34], rows[35], rows[100], rows[101]),
        ("33,10.000", "34,20.000", "99,30.000", "100,30.000")
    );
    let rows: Vec<Vec<&str>> = tsv.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!(rows[0], ["starttime", "seconds", "ctime", "dtime", "ttime", "wait"]);
    assert_eq!(rows[1][1..], ["1000000000", "1", "9", "10", "0"]);
    assert_eq!((rows[2][4], rows[3][4], rows.len()), ("20", "30", 4));
}

/// The part of the report about times of as many milliseconds, of which connecting took one.
fn figures(line: &str, millis: &[u64]) -> String {
    let nanos: Vec<_> = millis.iter().map(|it| it * 1_000_000).collect();
    figures_of(line, &nanos)
}

fn figures_of(line: &str, nanos: &[u64]) -> String {
    let options = parse(line).unwrap();
    let taken = taken(nanos);
    let report = crate::dropin::empty_report();
    let began = SystemTime::UNIX_EPOCH;
    let text = text::report(&Outcome { options: &options, report: &report, taken: &taken, began });
    text.split_once("HTML transferred:       0 bytes\n").unwrap().1.to_owned()
}

fn taken(nanos: &[u64]) -> Taken {
    let row = |&total| Row { began: 0, connect: 1_000_000.min(total), waiting: 0, total };
    Taken { rows: nanos.iter().map(row).collect(), ..Taken::default() }
}

/// Reads a line, with a URL after it.
fn parse(line: &str) -> Result<Options, Fault> {
    let words: Vec<_> = line.split_whitespace().chain([URL]).map(str::to_owned).collect();
    match Options::parse(&words)? {
        Asked::Run(options) => {
            assert_eq!(options.url, HttpUrl::parse(URL).unwrap());
            Ok(*options)
        }
        other => panic!("{other:?}"),
    }
}
