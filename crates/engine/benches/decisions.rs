//! What a decision costs as the number of rules grows: nanoseconds and allocations, for the first, the
//! middle and the last rule and for a path that no rule matches.
//!
//! `cargo bench -p milepost-engine --bench decisions` prints the table; `-- --rules 1000000` goes that
//! far (the default is 100,000). Beside the engine stand the floors of the same run: a bare hash-map
//! lookup of the same path, and one PCRE2 match of the same pattern. Without `--bench`, as `cargo test`
//! runs it, it goes through the same motions once with few rules, so that it stays alive.
#![allow(clippy::print_stdout, reason = "a benchmark prints its table")]
#![allow(clippy::disallowed_methods, reason = "a bench reads the clock")]

#[allow(dead_code, reason = "the tests use more of it")]
#[path = "../tests/support/mod.rs"]
mod support;

use std::alloc::System;
use std::collections::HashMap;
use std::hint::black_box;
use std::time::{Duration, Instant};

use milepost_engine::{Lookup, Scratch, Site};
use milepost_pcre::{Case, Matcher, Regex};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

use support::{Ask, Table, load};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// How long one cell is measured, and how often; the fastest round counts, being the least disturbed.
const ROUND: Duration = Duration::from_millis(20);
const ROUNDS: usize = 5;

/// A kind of rule set: its name, its text for N rules, and the path and host that rule `i` answers.
struct Kind {
    name: &'static str,
    text: fn(usize) -> String,
    path: fn(usize) -> String,
    host: fn(usize) -> String,
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let bench = arguments.iter().any(|argument| argument == "--bench");
    let most = arguments
        .iter()
        .position(|argument| argument == "--rules")
        .and_then(|at| arguments.get(at + 1))
        .map_or(100_000, |number| number.parse().expect("--rules is a number"));
    let sizes: Vec<usize> = if bench {
        [1, 10, 1_000, 10_000, 100_000, 1_000_000]
            .into_iter()
            .filter(|&size| size <= most)
            .collect()
    } else {
        vec![1, 10]
    };
    let round = if bench { ROUND } else { Duration::ZERO };
    println!(
        "nanoseconds a decision (fastest of {ROUNDS} rounds); allocations a decision in brackets"
    );
    for kind in KINDS {
        println!("\n{}", kind.name);
        println!("{:>12} {:>14} {:>14} {:>14} {:>14}", "rules", "first", "middle", "last", "miss");
        for &size in &sizes {
            row(kind, size, round);
        }
    }
    floors(sizes.last().copied().unwrap_or(1), round);
}

const KINDS: &[Kind] = &[
    Kind {
        name: "Redirect",
        text: |n| lines(n, |i| format!("Redirect 301 /test/{i} http://new.example/{i}\n")),
        path: |i| format!("/test/{i}"),
        host: any_host,
    },
    Kind {
        name: "RedirectMatch ^/test/N$",
        text: |n| lines(n, |i| format!("RedirectMatch 301 ^/test/{i}$ http://new.example/{i}\n")),
        path: |i| format!("/test/{i}"),
        host: any_host,
    },
    Kind {
        name: "RewriteRule ^/test/N/([^/]+)/(.*)$, two captures",
        text: |n| {
            let rule = |i| {
                format!("RewriteRule ^/test/{i}/([^/]+)/(.*)$ http://new.example/$2/$1 [R=301,L]\n")
            };
            format!("RewriteEngine On\n{}", lines(n, rule))
        },
        path: |i| format!("/test/{i}/abc/def"),
        host: any_host,
    },
    Kind {
        name: "RewriteRule behind RewriteCond %{HTTP_HOST} =hostN",
        text: |n| {
            let rule = |i| {
                format!(
                    "RewriteCond %{{HTTP_HOST}} =host{i}.example\n\
                     RewriteRule ^/(.*)$ http://new.example/{i}/$1 [R=301,L]\n"
                )
            };
            format!("RewriteEngine On\n{}", lines(n, rule))
        },
        path: |_| "/a/b".to_owned(),
        host: |i| format!("host{i}.example"),
    },
    Kind {
        name: "RewriteMap txt: and one rule",
        text: |_| {
            "RewriteEngine On\nRewriteMap m txt:/map.txt\nRewriteCond ${m:$1} (.+)\n\
             RewriteRule ^/test/(.*)$ %1 [R=301,L]\n"
                .to_owned()
        },
        path: |i| format!("/test/{i}"),
        host: any_host,
    },
    Kind {
        name: "a mix of all, 5 % without a literal",
        text: |n| {
            let rule = |i: usize| match i % 20 {
                0 => format!("RewriteRule \\d{{9}}x{}[0-9]$ http://new.example/d [R,L]\n", i % 7),
                1..=9 => format!("Redirect 301 /test/{i} http://new.example/{i}\n"),
                10..=14 => format!("RedirectMatch 301 ^/test/{i}$ http://new.example/{i}\n"),
                _ => format!("RewriteRule ^/test/{i}$ http://new.example/{i} [R=301,L]\n"),
            };
            format!("RewriteEngine On\n{}", lines(n, rule))
        },
        // A multiple of 20 has no rule of its own path.
        path: |i| format!("/test/{}", if i % 20 == 0 { i - 1 } else { i }),
        host: any_host,
    },
];

fn any_host(_: usize) -> String {
    "www.example".to_owned()
}

fn lines(n: usize, line: impl Fn(usize) -> String) -> String {
    (1..=n).map(line).collect()
}

fn row(kind: &Kind, size: usize, round: Duration) {
    let map = lines(size, |i| format!("{i} http://new.example/{i}\n"));
    let files = Table::with(&[("/map.txt", &map)]);
    let loaded = load(&(kind.text)(size), &files, Lookup::Index);
    let site = loaded.site.unwrap_or_else(|| panic!("{:?}", loaded.diagnostics.first()));
    let cells = [1, size.div_ceil(2), size].map(|i| ((kind.path)(i), (kind.host)(i)));
    let miss = ("/missing/path".to_owned(), "nobody.example".to_owned());
    print!("{size:>12}");
    for (path, host) in cells.iter().chain([&miss]) {
        let cell = decide(&site, &files, host, path, round);
        print!(" {cell:>14}");
    }
    println!();
}

/// Nanoseconds, and allocations once the scratch is warm.
fn decide(site: &Site, files: &Table, host: &str, path: &str, round: Duration) -> String {
    let mut scratch = Scratch::default();
    let ask = Ask { host, target: path };
    for _ in 0..8 {
        ask.decide(site, files, &mut scratch);
    }
    let region = Region::new(ALLOCATOR);
    ask.decide(site, files, &mut scratch);
    let allocations = region.change().allocations;
    let ns = time(round, || {
        black_box(ask.decide(site, files, &mut scratch));
    });
    format!("{ns:.0} [{allocations}]")
}

/// The floors of the same run.
fn floors(size: usize, round: Duration) {
    let paths = (1..=size).map(|i| (format!("/test/{i}").into_bytes(), i));
    let map: HashMap<Vec<u8>, usize, foldhash::fast::RandomState> = paths.collect();
    let key = format!("/test/{size}").into_bytes();
    let lookup = time(round, || {
        black_box(map.get(black_box(&key)));
    });
    let pattern = format!("^/test/{size}/([^/]+)/(.*)$");
    let regex = Regex::new(pattern.as_bytes(), Case::Sensitive).expect("a valid pattern");
    let subject = format!("/test/{size}/abc/def").into_bytes();
    let mut matcher = Matcher::new();
    let matching = time(round, || {
        black_box(matcher.find(&regex, black_box(&subject)).is_ok());
    });
    println!("\nfloors of this run\n{lookup:>12.0} ns  bare hash-map lookup among {size} paths");
    println!("{matching:>12.0} ns  one PCRE2 match of {pattern}");
}

/// The fastest round's nanoseconds a call.
fn time(round: Duration, mut call: impl FnMut()) -> f64 {
    let mut fastest = f64::INFINITY;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let mut calls = 0_u32;
        loop {
            for _ in 0..64 {
                call();
            }
            calls += 64;
            if start.elapsed() >= round {
                break;
            }
        }
        fastest = fastest.min(start.elapsed().as_nanos() as f64 / f64::from(calls));
    }
    fastest
}
