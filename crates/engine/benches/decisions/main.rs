//! What a decision costs as the number of rules grows: nanoseconds, instructions and allocations, for the
//! first, the middle and the last rule, for a path that no rule matches, and for another rule each time.
//!
//! `cargo bench -p milepost-engine --bench decisions` prints the tables; `-- --rules 10000` stops there, and
//! `-- --kind RewriteMap` prints those whose title has this word.
//! Beside the engine stands the floor of the same run: a bare hash-map lookup of the same path, or one
//! PCRE2 match of the same pattern. The column *any* asks for rules in random order, so that nothing is in
//! the processor's cache, as on a real site; the others ask for the same one again and again. Each call
//! waits for the one before it, on both sides: what is compared is how long one answer takes.
//!
//! Without `--bench`, as `cargo test` runs it, it goes through the same motions once with few rules, so
//! that it stays alive.
#![allow(clippy::print_stdout, reason = "a benchmark prints its table")]
#![allow(clippy::disallowed_methods, reason = "a bench reads the clock")]

mod counter;
mod kinds;
#[allow(dead_code, reason = "the tests use more of it")]
#[path = "../../tests/support/mod.rs"]
mod support;

use std::alloc::System;
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::hint::black_box;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use milepost_engine::{Diagnostic, FileKind, Lookup, Outside, Scratch, Site, Stamp};
use milepost_pcre::{Case, Matcher, Regex};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

use counter::Counter;
use kinds::{Floor, KINDS, Kind, lines};
use support::{Ask, load};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// How long one cell is measured, and how often; the fastest round counts, being the least disturbed.
const ROUND: Duration = Duration::from_millis(20);
const ROUNDS: usize = 5;

/// How many different rules the column *any* asks for. Even the floor touches some 200 bytes for each, so that what
/// it touches for all is larger than a cache of 32 MiB; with a quarter of them the floor would stand in the cache alone.
const ANY: usize = 1 << 18;

/// The same where each has a pattern of its own, which is a kilobyte of machine code.
const ANY_PATTERNS: usize = 1 << 16;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let bench = arguments.iter().any(|argument| argument == "--bench");
    let value = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.get(at + 1)
    };
    let wanted = value("--kind").map_or("", String::as_str);
    let most =
        value("--rules").map_or(1_000_000, |number| number.parse().expect("--rules is a number"));
    let sizes: Vec<usize> = if bench {
        let sizes = [0, 10, 1_000, 10_000, 100_000, 1_000_000].into_iter();
        sizes.filter(|&size| size <= most).collect()
    } else {
        vec![0, 10]
    };
    counter::run(|counter| {
        let meter = Meter { counter, round: if bench { ROUND } else { Duration::ZERO } };
        println!("nanoseconds / instructions / allocations of a decision, and of its floor");
        println!("(ns: fastest of {ROUNDS} rounds; a ratio is decision to floor)");
        if counter.count(|| {}).is_none() {
            println!("no counter of instructions: this process may not be traced");
        }
        for kind in KINDS.iter().filter(|kind| kind.name.contains(wanted)) {
            table(kind, &sizes, &meter);
            if !bench {
                // One is enough to see that it counts; each instruction is a switch of processes.
                return;
            }
        }
    });
}

fn table(kind: &Kind, sizes: &[usize], meter: &Meter<'_>) {
    let floor = match kind.floor {
        Floor::Lookup => "path lookup",
        Floor::HostLookup => "host lookup",
        Floor::Match(_) => "PCRE2 match",
    };
    println!("\n{}", kind.name);
    println!(
        "{:>9} {:>15} {:>15} {:>15} {:>15} {:>15} {:>18} {:>10} {:>18} {:>10}",
        "rules",
        "first",
        "middle",
        "last",
        "miss",
        "any",
        format!("{floor}: last"),
        "ratio",
        format!("{floor}: any"),
        "ratio",
    );
    for &size in sizes {
        row(kind, size, meter);
    }
}

fn row(kind: &Kind, size: usize, meter: &Meter<'_>) {
    let request = |i: usize| Wanted { rule: i, path: (kind.path)(i), host: (kind.host)(i) };
    // Numbers in no order, the same in every run.
    let random = |i: usize| 1 + i.wrapping_mul(0x9e37_79b9_7f4a_7c15) % size.max(1);
    let most = if let Floor::Match(_) = kind.floor { ANY_PATTERNS } else { ANY };
    let any: Vec<_> = (0..most.min(4 * size.max(1))).map(|i| request(random(i))).collect();
    let fixed = [1, size.div_ceil(2).max(1), size.max(1)].map(request);
    let miss = Wanted { rule: 0, path: "/missing/path".into(), host: "nobody.example".into() };

    let world = World { map: lines(size, |i| format!("{i} http://new.example/{i}\n")) };
    let loaded = load(&(kind.text)(size), &world, Lookup::Index);
    let site = loaded.site.unwrap_or_else(|| panic!("{:?}", loaded.diagnostics.first()));
    print!("{size:>9}");
    let mut cells = Vec::new();
    for wanted in fixed.iter().chain([&miss]).map(std::slice::from_ref).chain([&any[..]]) {
        let cell = decide(&site, &world, wanted, meter);
        print!(" {:>15}", cell.to_string());
        cells.push(cell);
    }
    drop(site);
    let floors: Measure<'_> = match kind.floor {
        Floor::Lookup => lookups(meter, (1..=size).map(kind.path), |wanted| &wanted.path),
        Floor::HostLookup => {
            let hosts = (1..=size).map(|i| (kind.host)(i).into_owned());
            lookups(meter, hosts, |wanted| &wanted.host)
        }
        Floor::Match(pattern) => Box::new(move |wanted| matches(meter, pattern, wanted)),
    };
    for (wanted, cell) in [(std::slice::from_ref(&fixed[2]), &cells[2]), (&any[..], &cells[4])] {
        let floor = floors(wanted);
        print!(" {:>18} {:>10}", floor.to_string(), cell.ratio(&floor));
    }
    println!();
}

/// Measures something for requests, one after the other.
type Measure<'m> = Box<dyn Fn(&[Wanted]) -> Cell + 'm>;

/// A request, and the rule that answers it.
struct Wanted {
    rule: usize,
    path: String,
    host: Cow<'static, str>,
}

/// Measures the decisions for requests, one after the other.
fn decide(site: &Site, world: &World, wanted: &[Wanted], meter: &Meter<'_>) -> Cell {
    let scratch = RefCell::new(Scratch::default());
    meter.measure(wanted, |Wanted { path, host, .. }| {
        let ask = Ask { host, target: path };
        let mut scratch = scratch.borrow_mut();
        let decision = ask.decide(site, world, &mut scratch);
        usize::from(black_box(decision).rule.is_some())
    })
}

/// Makes the floor that is a lookup in a hash map of all keys.
fn lookups<'m>(
    meter: &'m Meter<'_>,
    keys: impl Iterator<Item = String>,
    key_of: fn(&Wanted) -> &str,
) -> Measure<'m> {
    let keys = keys.zip(1..).map(|(key, i)| (key.into_bytes(), i));
    let map: HashMap<Vec<u8>, usize, foldhash::fast::RandomState> = keys.collect();
    Box::new(move |wanted| {
        meter.measure(wanted, |wanted| {
            map.get(black_box(key_of(wanted).as_bytes())).copied().unwrap_or_default()
        })
    })
}

/// Measures the floor that is a match of the rule's own pattern.
fn matches(meter: &Meter<'_>, pattern: fn(usize) -> String, wanted: &[Wanted]) -> Cell {
    let compile = |wanted: &Wanted| {
        let pattern = pattern(wanted.rule);
        Regex::new(pattern.as_bytes(), Case::Sensitive).expect("a valid pattern")
    };
    let mut regexes = HashMap::new();
    for wanted in wanted {
        regexes.entry(wanted.rule).or_insert_with(|| compile(wanted));
    }
    let inputs: Vec<_> = wanted.iter().map(|wanted| (&regexes[&wanted.rule], wanted)).collect();
    let matcher = RefCell::new(Matcher::new());
    meter.measure(&inputs, |(regex, wanted)| {
        let found = matcher.borrow_mut().find(regex, black_box(wanted.path.as_bytes()));
        usize::from(black_box(found).is_ok())
    })
}

/// How a cell is measured.
struct Meter<'c> {
    counter: &'c Counter,
    round: Duration,
}

/// 0, and neither compiler nor processor knows that it is.
fn never() -> usize {
    black_box(0)
}

/// What one call costs.
struct Cell {
    nanoseconds: f64,
    instructions: Option<u64>,
    allocations: usize,
}

impl Meter<'_> {
    /// Measures `call` on each of `inputs` in turn. What comes once for each input (a pattern that is
    /// compiled) is done before.
    ///
    /// No call begins before the one before it has its result, as with one request after the other: else
    /// the processor would wait for the memory of many calls at once, and only short ones would gain.
    fn measure<T>(&self, inputs: &[T], call: impl Fn(&T) -> usize) -> Cell {
        inputs.iter().for_each(|input| {
            call(input);
        });
        // The middle of the list is as good as any other.
        let input = &inputs[inputs.len() / 2];
        (0..8).for_each(|_| {
            call(input);
        });
        let region = Region::new(ALLOCATOR);
        call(input);
        let allocations = region.change().allocations;
        let instructions = self.counter.count(|| {
            call(input);
        });
        let mut nanoseconds = f64::INFINITY;
        for _ in 0..ROUNDS {
            let start = Instant::now();
            let (mut calls, mut at) = (0, 0);
            while calls < 64 || start.elapsed() < self.round {
                for _ in 0..inputs.len().max(64) {
                    // Nothing is added, which the processor cannot know.
                    at += 1 + (black_box(call(&inputs[at])) & never());
                    at = if at < inputs.len() { at } else { 0 };
                }
                calls += inputs.len().max(64);
            }
            nanoseconds = nanoseconds.min(start.elapsed().as_nanos() as f64 / calls as f64);
        }
        Cell { nanoseconds, instructions, allocations }
    }
}

impl Cell {
    /// The ratios of time and of instructions to those of `floor`.
    fn ratio(&self, floor: &Cell) -> String {
        let time = self.nanoseconds / floor.nanoseconds;
        let instructions = match (self.instructions, floor.instructions) {
            (Some(ours), Some(floor)) => format!("{:.1}", ours as f64 / floor as f64),
            _ => "-".to_owned(),
        };
        format!("{time:.1}/{instructions}")
    }
}

impl std::fmt::Display for Cell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let instructions = self.instructions.map_or("-".to_owned(), |count| count.to_string());
        write!(f, "{:.0}/{instructions}/{}", self.nanoseconds, self.allocations)
    }
}

/// A world with a map in it and nothing else, which costs next to nothing to ask.
struct World {
    map: String,
}

impl Outside for World {
    fn read(&self, _path: &Path) -> io::Result<Vec<u8>> {
        Ok(self.map.clone().into_bytes())
    }

    fn stamp(&self, _path: &Path) -> io::Result<Option<Stamp>> {
        Ok(Some(Stamp { inode: (0, 0), len: self.map.len() as u64, modified_ns: 0, changed_ns: 0 }))
    }

    fn report(&self, diagnostics: &[Diagnostic]) {
        panic!("the map cannot be read: {diagnostics:?}");
    }

    fn kind(&self, path: &Path) -> FileKind {
        let is_map = path.as_os_str() == "/map.txt";
        if is_map { FileKind::File(self.map.len() as u64) } else { FileKind::Missing }
    }

    fn random(&self) -> u64 {
        4
    }

    fn now(&self) -> (i64, i32) {
        (1_795_246_205, 0)
    }
}
