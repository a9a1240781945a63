//! Holds the generator against wrk, h2load and oha: one thread each, the same servers, in one run.
//!
//! Every round measures every generator once, in random order, so that what slows the machine down slows
//! all of them; a comparison is the median of the ratios within rounds, with its bootstrap interval. The
//! servers are one that answers without looking (`null`), which costs as little as any can, and nginx.
//! Each generator is a process of its own, and what it used is what the system charges its parent with.
//!
//! `cargo run --release -p milepost-load --example bench_load -- [--rounds N] [--seconds S] [--connections C]`
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it prints a table")]

mod client;
mod generator;
mod null_server;
mod server;

use std::collections::BTreeMap;
use std::env;
use std::process::ExitCode;

use milepost_stats::compare::paired_ratio;
use milepost_stats::quantile::median_in_place;

use generator::{Fault, Generator, Load, Trial};
use server::Server;

const CONNECTIONS: [usize; 4] = [1, 10, 100, 1000];

/// What everything is compared with.
const REFERENCE: &str = "wrk";

const SEED: u64 = 2026;

fn main() -> ExitCode {
    let arguments: Vec<_> = env::args().skip(1).collect();
    let words: Vec<_> = arguments.iter().map(String::as_str).collect();
    let outcome = match words[..] {
        ["null-server"] => null_server::run(),
        ["client", io, check, connections, seconds, url] => {
            client::run(io, check, connections, seconds, url)
        }
        _ => bench(&words),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench_load: {error}");
            ExitCode::from(2)
        }
    }
}

fn bench(words: &[&str]) -> Result<(), String> {
    let option = |name: &str, default: f64| match words.iter().position(|word| *word == name) {
        None => Ok(default),
        Some(at) => words
            .get(at + 1)
            .and_then(|value| value.parse().ok())
            .ok_or_else(|| format!("{name} needs a number")),
    };
    let rounds = option("--rounds", 6.0)? as usize;
    let only = option("--connections", 0.0)? as usize;
    let seconds = option("--seconds", 1.0)?;
    let generators = Generator::found();
    let servers = Server::all()?;
    println!("{} rounds of {seconds} s, one thread each, seed {SEED}", rounds);
    println!("load of the machine at the start: {}", machine_load());
    for generator in Generator::absent() {
        println!("not here, so not measured: {generator}");
    }
    println!(
        "never measured: gcannon, whose source would have to be fetched from GitHub and built"
    );
    let mut random = fastrand::Rng::with_seed(SEED);
    for server in &servers {
        for (what, url, location) in server.urls() {
            for connections in CONNECTIONS.into_iter().filter(|it| only == 0 || *it == only) {
                let load = Load { url: &url, location: &location, connections, seconds };
                let is_redirect = what.starts_with("redirect");
                let mut here = generators.clone();
                here.retain(|generator| generator.is_of_use(is_redirect, connections));
                let mut trials = Trials::default();
                for round in 0..rounds {
                    let mut order = here.clone();
                    order.retain(|generator| round < generator.rounds(rounds));
                    random.shuffle(&mut order);
                    for generator in order {
                        trials.run(generator, round, &load);
                    }
                }
                println!("\n{}, {what}, {connections} connections", server.name());
                trials.print(&here, &load, is_redirect)?;
            }
        }
    }
    println!("\nload of the machine at the end: {}", machine_load());
    Ok(())
}

/// What became of the runs of one row of rounds.
#[derive(Debug, Default)]
struct Trials {
    /// By generator and round.
    done: BTreeMap<(&'static str, usize), Trial>,
    /// How often a generator ran on after its time.
    endless: BTreeMap<&'static str, usize>,
}

impl Trials {
    fn run(&mut self, generator: Generator, round: usize, load: &Load<'_>) {
        let name = generator.name();
        match generator.run(load) {
            Ok(trial) => drop(self.done.insert((name, round), trial)),
            Err(Fault::DidNotEnd) => *self.endless.entry(name).or_default() += 1,
            Err(Fault::Failed(error)) => eprintln!("{error}"),
        }
    }

    fn print(
        &self,
        generators: &[Generator],
        load: &Load<'_>,
        counts_calls: bool,
    ) -> Result<(), String> {
        println!(
            "  {:<22}{:>12}{:>24}{:>14}{:>24}{:>10}",
            "", "requests/s", "of wrk", "per CPU-s", "of wrk", "calls"
        );
        let was_run = |it: &&Generator| self.of(it.name()).next().is_some();
        for generator in generators.iter().filter(was_run) {
            let mut cells = String::new();
            for (value, width) in
                [(Trial::rate as fn(&Trial) -> f64, 12), (Trial::per_cpu_second, 14)]
            {
                let mut values: Vec<_> =
                    self.of(generator.name()).map(|(_, it)| value(it)).collect();
                let ratio = self.ratio(generator.name(), value);
                cells += &format!("{:>width$.0}{ratio:>24}", median_in_place(&mut values));
            }
            let calls = if counts_calls { generator.calls_a_request(load)? } else { String::new() };
            println!("  {:<22}{cells}{calls:>10}", generator.name());
        }
        for (name, times) in &self.endless {
            println!("  {name:<22} did not end, {times} times");
        }
        Ok(())
    }

    fn of(&self, name: &str) -> impl Iterator<Item = (usize, &Trial)> {
        let own = self.done.iter().filter(move |((other, _), _)| *other == name);
        own.map(|(&(_, round), trial)| (round, trial))
    }

    /// A figure beside that of the reference, over the rounds that both took part in.
    fn ratio(&self, name: &str, value: fn(&Trial) -> f64) -> String {
        if name == REFERENCE {
            return String::new();
        }
        let pair = |(round, own): (usize, &Trial)| {
            Some((value(own), value(self.done.get(&(REFERENCE, round))?)))
        };
        let pairs: Vec<_> = self.of(name).filter_map(pair).collect();
        match paired_ratio(&pairs, SEED) {
            None => "-".to_owned(),
            Some(ratio) => match ratio.interval {
                None => format!("{:.2}", ratio.estimate),
                Some(it) => format!("{:.2} [{:.2}, {:.2}]", ratio.estimate, it.low, it.high),
            },
        }
    }
}

fn machine_load() -> String {
    std::fs::read_to_string("/proc/loadavg")
        .map_or("unknown".to_owned(), |text| text.trim().to_owned())
}
