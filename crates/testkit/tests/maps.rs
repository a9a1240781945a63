//! Maps that need more than a text file answer as in real httpd: DBM files that `httxt2dbm` wrote,
//! programs, an SQLite database, and files that change between two requests.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use milepost_engine::Lookup;
use milepost_testkit::directory::Directory;
use milepost_testkit::httpd::Program;
use milepost_testkit::{
    Answer, Ask, Case, Engine, Exchange, Expected, Judge, Milepost, Scope, Verdict,
};

/// The formats of DBM that Debian's httpd has.
const FORMATS: [&str; 3] = ["SDBM", "GDBM", "DB"];

#[test]
fn dbm_files_of_every_format_and_size() {
    let directory = Directory::new().unwrap();
    // One page or bucket; some; so many that all of them were split several times.
    for (count, length) in [(1, 10), (40, 60), (3000, 20), (500, 700)] {
        let text = directory.path().join(format!("{count}.txt"));
        fs::write(&text, entries(count, length)).unwrap();
        for format in FORMATS {
            let map = directory.path().join(format!("{format}{count}"));
            to_dbm(format, &text, &map);
            let config = map_of(&format!("dbm={}:{}", format.to_lowercase(), map.display()));
            let step = (count / 150).max(1);
            let known = (0..count).step_by(step).map(|number| format!("/{}", key(number)));
            let unknown = ["/", "/key", "/KEY1x", "/key99999x", "/key-1x", "/key0"];
            let targets: Vec<_> = known.chain(unknown.map(str::to_owned)).collect();
            let answers = check(&config, &targets);
            let first = answers[0].location.as_ref().unwrap();
            assert!(first.starts_with(b"http://t/v0."), "{format}, {count} entries");
        }
    }
}

#[test]
fn values_longer_than_a_page() {
    let directory = Directory::new().unwrap();
    let text = directory.path().join("long.txt");
    let longs = [1000, 1500, 1900].map(|length| format!("k{length} {}\n", "v".repeat(length)));
    fs::write(&text, longs.concat()).unwrap();
    for format in ["GDBM", "DB"] {
        let map = directory.path().join(format);
        to_dbm(format, &text, &map);
        let config = map_of(&format!("dbm={format}:{}", map.display()));
        check(&config, &["/k1000", "/k1500", "/k1900", "/k"].map(str::to_owned));
    }
}

#[test]
fn a_dbm_map_without_a_type() {
    let directory = Directory::new().unwrap();
    let text = directory.path().join("map.txt");
    fs::write(&text, entries(10, 5)).unwrap();
    let map = directory.path().join("map");
    let status = Command::new("httxt2dbm").arg("-i").arg(&text).arg("-o").arg(&map).status();
    assert!(status.unwrap().success());
    let config = map_of(&format!("dbm:{}", map.display()));
    check(&config, &[format!("/{}", key(3)), "/none".to_owned()]);
}

#[test]
fn what_httpd_refuses_of_maps() {
    let directory = Directory::new().unwrap();
    let root = directory.path().display();
    for source in [
        format!("dbm=none:{root}/m"),
        format!("dbm=ndbm:{root}/m"),
        format!("dbm=sdbm:{root}/missing"),
        format!("dbm:{root}/missing"),
        "dbm".to_owned(),
        "dbm=sdbm".to_owned(),
        format!("prg:{root}/missing"),
        format!("none:{root}/missing"),
        format!("TXT:{root}/missing"),
        "int:none".to_owned(),
        "int:".to_owned(),
    ] {
        let case = case(&map_of(&source), &[]);
        for verdict in [judge(&case), milepost(&case, Lookup::Index)] {
            assert!(matches!(verdict, Verdict::Refused(_)), "{source}: {verdict:?}");
        }
    }
    // A file of another format is found out at the first lookup only.
    fs::write(directory.path().join("text"), "key value\n").unwrap();
    for kind in ["db", "gdbm"] {
        let config = map_of(&format!("dbm={kind}:{root}/text"));
        let answers = check(&config, &["/key".to_owned()]);
        assert_eq!(answers[0].location.as_deref(), Some(&b"http://t/none"[..]));
    }
    check(&map_of(&format!("RND:{root}/text")), &["/key".to_owned()]);
}

#[test]
fn programs() {
    let directory = Directory::new().unwrap();
    let path = |name: &str, script: &str| program(directory.path(), name, script);
    let echo = path("echo", "while read -r key; do echo \"<$key>\"; done");
    let null = path(
        "null",
        "while read -r key; do case $key in a) echo NULL;; b) echo null;; c) echo;; *) echo x;; esac; done",
    );
    let dies = path("dies", "read -r key; echo one; read -r key; printf two");
    let banner = path("banner", "echo hello; while read -r key; do echo \"$key\"; done");
    let words = path("words", "while read -r key; do echo \"$#:$1:$2\"; done");
    let place = path("place", "while read -r key; do echo \"$PWD:$HOME:$PATH_INFO\"; done");
    let targets = |keys: &[&str]| keys.iter().map(|key| format!("/{key}")).collect::<Vec<_>>();
    let many = targets(&["a", "b", "c", "d", "a%0ab", "%20x", "", "a", "b"]);
    for source in [
        format!("prg:{echo}"),
        format!("prg:{null}"),
        format!("prg:{dies}"),
        format!("prg:{banner}"),
        format!("\"prg:{words} 'one two' three\\ four\""),
        format!("\"prg:{words} \\\"one two\\\"\""),
        format!("PRG:{place}"),
    ] {
        let answers = check(&map_of(&source), &many);
        assert!(answers.iter().all(|answer| answer.status == 302 || answer.status == 403));
    }
    // Nothing is started where rewriting is off, so a rule of a directory finds nothing.
    let off = format!(
        "RewriteMap m prg:{echo}\n<Directory @ROOT@/htdocs>\nRewriteEngine On\n\
         RewriteRule ^(.*)$ http://t/${{m:$1|none}} [R,L]\n</Directory>\n"
    );
    check(&off, &targets(&["a", "b"]));
    fs::set_permissions(&echo, fs::Permissions::from_mode(0o644)).unwrap();
    let case = case(&map_of(&format!("prg:{echo}")), &[]);
    let verdict = milepost(&case, Lookup::Index);
    assert!(matches!(verdict, Verdict::Refused(_)), "{verdict:?}");
}

#[test]
fn a_text_map_that_changes_between_requests() {
    let directory = Directory::new().unwrap();
    let root = directory.path().display();
    // The only thing that can change the file between two requests of a case is a map of the case.
    let write = program(
        directory.path(),
        "write",
        "PATH=/usr/bin:/bin; while read -r action; do case $action in \
         set*) echo \"k ${action#set}\" > new.tmp; mv new.tmp map.txt;; \
         add*) echo \"${action#add} added\" >> map.txt;; \
         lock) chmod 000 map.txt;; open) chmod 644 map.txt;; \
         remove) rm -f map.txt;; esac; chmod 644 map.txt 2> /dev/null; echo done; sleep 0.002; done",
    );
    let config = format!(
        "RewriteEngine On\nRewriteMap w prg:{write}\nRewriteMap m txt:{root}/map.txt\n\
         RewriteMap r rnd:{root}/map.txt\n\
         RewriteRule ^/w/(.*)$ http://t/${{w:$1}} [R,L]\n\
         RewriteRule ^/(.*)$ http://t/${{m:$1|none}}/${{r:$1|none}} [R,L]\n"
    );
    let targets = [
        "/k",
        "/other",
        "/w/set1",
        "/k",
        "/k",
        "/w/set2",
        "/k",
        "/other",
        "/w/addother",
        "/other",
        "/k",
        "/w/remove",
        "/k",
        "/other",
        "/w/set3",
        "/k",
        "/other",
        "/w/addother",
        "/other",
    ];
    let targets = targets.map(str::to_owned);
    let case = case(&config, &targets);
    let run = |engine: &dyn Engine| {
        fs::write(directory.path().join("map.txt"), "k first\n").unwrap();
        answers(engine.run(&[&case]).unwrap().remove(0))
    };
    let expected = run(&Judge::new().unwrap());
    assert_eq!(expected[0].location.as_deref(), Some(&b"http://t/first/first"[..]));
    assert_eq!(expected[15].location.as_deref(), Some(&b"http://t/3/3"[..]));
    for lookup in [Lookup::Scan, Lookup::Index] {
        let got = run(&Milepost::new(lookup, Program::find().unwrap()));
        compare(&targets, &expected, &got);
    }
}

#[test]
fn databases() {
    let directory = Directory::new().unwrap();
    let path = directory.path().join("map.sqlite");
    sqlite(
        &path,
        "CREATE TABLE m (k TEXT, v); INSERT INTO m VALUES ('a', 'one'), ('n', NULL), ('i', 12), \
         ('e', ''), ('r', 1.5), ('big', 1e100), ('same', 'x'), ('same', 'x'), ('blob', x'6162'), \
         ('q', 'a''b');",
    );
    let sql = "SELECT v FROM m WHERE k = %s";
    let modules = Program::find().unwrap().load_modules();
    let rewrite = modules.lines().find_map(|line| line.split('"').nth(1)).unwrap();
    let module = Path::new(rewrite).with_file_name("mod_dbd.so");
    let base = format!(
        "LoadModule dbd_module {}\nDBDriver sqlite3\nDBDParams {}\nDBDPersist On\nDBDMax 4\n",
        module.display(),
        path.display()
    );
    let keys = ["a", "A", "n", "i", "e", "e", "r", "big", "same", "blob", "q", "x'y", "", "a"];
    let targets = keys.map(|key| format!("/{key}"));
    for (source, more) in [
        (format!("\"dbd:{sql}\""), ""),
        (format!("\"fastdbd:{sql}\""), ""),
        (format!("\"DBD:{sql}\""), "DBDPrepareSQL \"SELECT v FROM m\" all\n"),
        ("\"dbd:SELECT v FROM m WHERE k = %s AND '%%' = '%'\"".to_owned(), ""),
        ("\"dbd:SELECT v || '!' FROM m WHERE k LIKE %s || '%%' LIMIT 1\"".to_owned(), ""),
        ("\"dbd:SELECT k, v FROM m WHERE rowid = length(%s)\"".to_owned(), ""),
        // What cannot be prepared spoils all.
        (format!("\"dbd:{sql}\""), "DBDPrepareSQL \"SELECT v FROM none\" bad\n"),
        ("\"dbd:SELECT v FROM none WHERE k = %s\"".to_owned(), ""),
    ] {
        let mut case = case(&format!("{base}{more}{}", map_of(&source)), &targets);
        case.scope = Scope::Server;
        let expected = answers(judge(&case));
        for lookup in [Lookup::Scan, Lookup::Index] {
            let got = answers(milepost(&case, lookup));
            compare(&targets, &expected, &got);
        }
    }
    for line in ["DBDriver odbc", "DBDriver none", "DBDMax many"] {
        let case = Case { scope: Scope::Server, ..case(&format!("{base}{line}\n"), &[]) };
        for verdict in [judge(&case), milepost(&case, Lookup::Index)] {
            assert!(matches!(verdict, Verdict::Refused(_)), "{line}: {verdict:?}");
        }
    }
}

/// `count` lines, with keys of different lengths and values of up to `length` bytes.
fn entries(count: usize, length: usize) -> String {
    let mut text = String::new();
    for number in 0..count {
        let padding = "p".repeat(number * 7 % length);
        writeln!(text, "{} v{number}.{padding}", key(number)).unwrap();
    }
    text
}

fn key(number: usize) -> String {
    format!("key{number}{}", "x".repeat(1 + number % 5))
}

fn map_of(source: &str) -> String {
    format!(
        "RewriteEngine On\nRewriteMap m {source}\nRewriteRule ^/((?s).*)$ http://t/${{m:$1|none}} [R,L]\n"
    )
}

fn to_dbm(format: &str, text: &Path, map: &Path) {
    let mut command = Command::new("httxt2dbm");
    let status = command.args(["-f", format, "-i"]).arg(text).arg("-o").arg(map).status();
    assert!(status.expect("apache2-utils is installed").success(), "{format}");
    for name in ["", ".dir", ".pag"] {
        let file = map.with_file_name(format!("{}{name}", map.file_name().unwrap().display()));
        if file.exists() {
            fs::set_permissions(file, fs::Permissions::from_mode(0o644)).unwrap();
        }
    }
}

fn sqlite(path: &Path, sql: &str) {
    let mut command = Command::new("sqlite3");
    let status = command.arg(path).arg(sql).stdin(Stdio::null()).status();
    assert!(status.expect("sqlite3 is installed").success());
    fs::set_permissions(path, fs::Permissions::from_mode(0o644)).unwrap();
}

fn program(directory: &Path, name: &str, script: &str) -> String {
    let path = directory.join(name);
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.display().to_string()
}

fn case(config: &str, targets: &[String]) -> Case {
    let exchange = |target: &String| {
        let ask = Ask::get(target.as_bytes());
        Exchange { ask, expected: Expected::default() }
    };
    Case {
        area: "maps".to_owned(),
        name: "a map".to_owned(),
        source: "mod_rewrite.c lookup_map".to_owned(),
        scope: Scope::Vhost,
        config: config.to_owned(),
        files: BTreeMap::new(),
        links: BTreeMap::new(),
        refused: None,
        exchanges: targets.iter().map(exchange).collect(),
    }
}

/// Asks httpd and milepost the same, and returns httpd's answers.
#[track_caller]
fn check(config: &str, targets: &[String]) -> Vec<Answer> {
    let case = case(config, targets);
    let expected = answers(judge(&case));
    for lookup in [Lookup::Scan, Lookup::Index] {
        compare(targets, &expected, &answers(milepost(&case, lookup)));
    }
    expected
}

#[track_caller]
fn compare(targets: &[String], expected: &[Answer], got: &[Answer]) {
    assert_eq!(expected.len(), got.len());
    for ((target, expected), got) in targets.iter().zip(expected).zip(got) {
        let location = |answer: &Answer| {
            let location = answer.location.as_deref().unwrap_or_default();
            (answer.status, String::from_utf8_lossy(location).into_owned())
        };
        assert_eq!(location(got), location(expected), "{target}");
    }
}

fn judge(case: &Case) -> Verdict {
    let judge = Judge::new().expect("httpd is installed");
    judge.run(&[case]).expect("httpd runs").remove(0)
}

fn milepost(case: &Case, lookup: Lookup) -> Verdict {
    let engine = Milepost::new(lookup, Program::find().expect("httpd is installed"));
    engine.run(&[case]).expect("the case is laid out").remove(0)
}

#[track_caller]
fn answers(verdict: Verdict) -> Vec<Answer> {
    match verdict {
        Verdict::Answers(answers) => {
            answers.into_iter().map(|answer| answer.expect("there is an answer")).collect()
        }
        Verdict::Refused(message) => panic!("refused: {message}"),
    }
}
