//! Maps cost one look at their file a request, however often they are asked and however long they are.

mod support;

use std::cell::Cell;
use std::fmt::Write;
use std::io;
use std::path::Path;

use milepost_engine::{Database, Lookup, Outside, Scratch, Severity, Stamp};

use support::{Table, ask, load};

#[test]
fn a_request_looks_once_at_a_file_that_it_asks_often() {
    let world = Counting {
        table: Table::with(&[("/srv/map", "a 1\nb 2\n"), ("/srv/other", "a 3\n")]),
        looks: Cell::new(0),
    };
    let text = "RewriteEngine On\nRewriteMap m txt:map\nRewriteMap o rnd:other\n\
                RewriteCond ${m:none} x [OR]\nRewriteCond ${m:a}${m:b} 12\n\
                RewriteRule ^/(.*)$ http://t/${m:$1}/${m:a}/${o:$1|none} [R]\nRewriteRule x ${m:z}";
    let site = load(text, &world, Lookup::Index).site.unwrap();
    let mut scratch = Scratch::default();
    for (target, location) in [("/a", "/1/1/3"), ("/b", "/2/1/none"), ("/a", "/1/1/3")] {
        world.looks.set(0);
        let answer = ask(&site, &world, "t", target, &mut scratch);
        assert_eq!(answer, format!("302 http://t{location}"));
        assert_eq!(world.looks.get(), 2, "{target}");
    }
}

#[test]
fn a_map_of_a_million_entries() {
    const ENTRIES: usize = 1_000_000;
    let mut text = String::new();
    for number in 0..ENTRIES {
        writeln!(text, "key{number} http://t/new/{number}").unwrap();
    }
    let table = Table::with(&[("/srv/map", &text)]);
    let rules = "RewriteEngine On\nRewriteMap m txt:map\nRewriteRule ^/(.*)$ ${m:$1|http://t/} [R]";
    let site = load(rules, &table, Lookup::Index).site.unwrap();
    let mut scratch = Scratch::default();
    for number in [0, 1, ENTRIES / 2, ENTRIES - 1] {
        let answer = ask(&site, &table, "t", &format!("/key{number}"), &mut scratch);
        assert_eq!(answer, format!("302 http://t/new/{number}"));
    }
    assert_eq!(ask(&site, &table, "t", "/key", &mut scratch), "302 http://t/");
}

#[test]
fn fast_queries_are_remembered_and_others_asked_again() {
    let world = Counting { table: Table::with(&[]), looks: Cell::new(0) };
    let text = |kind: &str| {
        format!(
            "DBDriver sqlite3\nRewriteEngine On\nRewriteMap m \"{kind}:SELECT %s\"\n\
             RewriteRule ^/(.*)$ http://t/${{m:$1|none}} [R]"
        )
    };
    // What is empty counts as found at first, and as not found once it is remembered: as in httpd.
    for (kind, asked, empty_again) in [("dbd", 8, ""), ("fastdbd", 4, "none")] {
        let site = load(&text(kind), &world, Lookup::Index).site.unwrap();
        let mut scratch = Scratch::default();
        world.looks.set(0);
        for (target, location) in [
            ("/a", "a.1"),
            ("/a", "a.1"),
            ("/b", "b.1"),
            ("/b", "b.1"),
            ("/missing", "none"),
            ("/missing", "none"),
            ("/empty", ""),
            ("/empty", empty_again),
        ] {
            let answer = ask(&site, &world, "t", target, &mut scratch);
            assert_eq!(answer, format!("302 http://t/{location}"), "{kind} {target}");
        }
        assert_eq!(world.looks.get(), asked, "{kind}");
    }
}

#[test]
fn programs_are_listed_with_their_arguments_and_whether_they_start() {
    let world = Table::with(&[("/srv/bin/a", ""), ("/b", "")]);
    let text = "RewriteMap m 'prg:bin/a one \"two three\"'\nRewriteMap n prg:/b web:others\n\
                <VirtualHost *:80>\nRewriteEngine On\nRewriteMap v prg:/b web\n</VirtualHost>";
    let site = load(text, &world, Lookup::Index).site.unwrap();
    let argv =
        |words: &[&str]| words.iter().map(|word| word.as_bytes().to_vec()).collect::<Vec<_>>();
    let programs = site.map_programs();
    assert_eq!(programs[0].argv, argv(&["/srv/bin/a", "one", "two three"]));
    let owner =
        |number: usize| (programs[number].user.as_deref(), programs[number].group.as_deref());
    assert_eq!(owner(0), (None, None));
    assert_eq!(owner(1), (Some(&b"web"[..]), Some(&b"others"[..])));
    assert_eq!(owner(2), (Some(&b"web"[..]), None));
    let starts: Vec<_> = programs.iter().map(|program| program.starts).collect();
    assert_eq!(starts, [false, false, true]);
}

#[test]
fn what_is_wrong_with_a_map_is_said() {
    let world = Table::with(&[("/srv/text", "plain text of some length, and no more than that\n")]);
    let check = |text: &str, severity: Severity, message: &str| {
        let found = load(text, &world, Lookup::Index).diagnostics;
        let found: Vec<_> = found.iter().map(|it| (it.severity, it.message.as_str())).collect();
        assert_eq!(found, [(severity, message)], "{text}");
    };
    let error = |text: &str, message: &str| check(text, Severity::Error, message);
    error("RewriteMap m dbm", "`dbm` is no map");
    error("RewriteMap m dbm=sdbm", "`dbm=sdbm` is no map");
    error("RewriteMap m dbm=ndbm:x", "no dbm type is called `ndbm`");
    error("RewriteMap m dbm=sdbm:x", "file for map `m` not found: /srv/x.dir");
    error("RewriteMap m dbm:x", "file for map `m` not found: /srv/x");
    error("RewriteMap m prg:x", "file for map `m` not found: /srv/x");
    error("RewriteMap m foo:x", "file for map `m` not found: /srv/foo:x");
    error("RewriteMap m int:x", "no internal function is called `x`");
    error("DBDriver oracle", "databases of type `oracle` are not done yet");
    error("DBDriver x", "no driver for `x`");
    error("DBDMax x", "argument must be numeric");
    let warning = |text: &str, message: &str| check(text, Severity::Warning, message);
    warning("RewriteMap m dbm=db:text", "/srv/text: not a Berkeley DB file");
    warning("RewriteMap m dbm=gdbm:text", "/srv/text: not a GDBM file");
    warning("RewriteMap m dbm:text", "/srv/text: not a Berkeley DB or GDBM file");
}

/// Counts looks at stamps, and queries.
struct Counting {
    table: Table,
    looks: Cell<u32>,
}

impl Outside for Counting {
    fn below(&self) -> Option<&dyn Outside> {
        Some(&self.table)
    }

    fn stamp(&self, path: &Path) -> io::Result<Option<Stamp>> {
        self.looks.set(self.looks.get() + 1);
        self.table.stamp(path)
    }

    fn random(&self) -> u64 {
        self.table.random()
    }

    fn query(&self, database: &Database, sql: &str, key: &[u8]) -> Option<Vec<u8>> {
        assert_eq!(database.statements, [sql]);
        self.looks.set(self.looks.get() + 1);
        match key {
            b"missing" => None,
            b"empty" => Some(Vec::new()),
            key => Some([key, b".1"].concat()),
        }
    }

    fn now(&self) -> (i64, i32) {
        self.table.now()
    }
}
