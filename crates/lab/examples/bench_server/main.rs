//! What a request costs on milepost and on others: `make bench-server`.
//!
//! All servers are started once, with one worker each and the same 10,000 redirects. A round measures every
//! server with every load, in random order; each server's CPU account is read at rest before and after. Every
//! answer is checked. The table has the median over rounds, and ratios of the same round with a bootstrap
//! interval, which the machine's weather disturbs less than either number. A second milepost is the control:
//! what its ratio differs from 1 is noise. At the end: what others notice of a crowd ([`crowd`]).
//!
//! `bench_server MILEPOST NULL_SERVER [ROUNDS]`

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it prints a table")]

mod crowd;
mod drive;
mod servers;

use std::path::PathBuf;

use milepost_stats::compare::paired_ratio;

use drive::{Load, Sample};
use servers::{Kind, Running};

/// Seed of the order and of the intervals; printed.
const SEED: u64 = 4;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let milepost = PathBuf::from(arguments.next().ok_or("which milepost?")?);
    let null = PathBuf::from(arguments.next().ok_or("which null server?")?);
    let rounds: usize = arguments.next().map_or(Ok(15), |text| text.parse())?;

    let directory = tempfile::tempdir()?;
    let mut running = Vec::new();
    for kind in Kind::ALL {
        match Running::start(kind, &milepost, &null, directory.path()) {
            Ok(server) => running.push(server),
            Err(error) => eprintln!("{}: left out: {error}", kind.name()),
        }
    }
    println!(
        "one worker each, 10,000 redirects, the last one asked for; {rounds} rounds, seed {SEED}"
    );
    let mut random = fastrand::Rng::with_seed(SEED);
    for load in Load::ALL {
        let mut samples: Vec<Vec<Sample>> = vec![Vec::new(); running.len()];
        let mut order: Vec<usize> =
            (0..running.len()).filter(|&at| running[at].kind.takes(load)).collect();
        for _ in 0..rounds {
            random.shuffle(&mut order);
            for &at in &order {
                samples[at].push(drive::measure(&running[at], load)?);
            }
        }
        print_table(load, &running, &samples);
    }
    crowd::begin()?;
    for server in running.iter().filter(|server| server.kind.takes_crowds()) {
        crowd::print(server)?;
    }
    Ok(())
}

fn print_table(load: Load, running: &[Running], samples: &[Vec<Sample>]) {
    let of = |kind: Kind| {
        let at = running.iter().position(|server| server.kind == kind)?;
        Some(&samples[at]).filter(|samples| !samples.is_empty())
    };
    println!("\n{}", load.title());
    println!(
        "{:<16} {:>12} {:>12} {:>26} {:>26}",
        "", "CPU us/req", "req/s", "req per CPU-s, x nginx", "x null server"
    );
    for (server, own) in running.iter().zip(samples) {
        if own.is_empty() {
            continue;
        }
        // Requests per CPU-second: the other one's CPU time over ours.
        let against = |kind| {
            let other = of(kind)?;
            let pairs: Vec<_> =
                own.iter().zip(other).map(|(own, other)| (other.cpu_us, own.cpu_us)).collect();
            let ratio = paired_ratio(&pairs, SEED)?;
            Some(match ratio.interval {
                Some(interval) => {
                    format!("{:.2} [{:.2}, {:.2}]", ratio.estimate, interval.low, interval.high)
                }
                None => format!("{:.2}", ratio.estimate),
            })
        };
        println!(
            "{:<16} {:>12.2} {:>12.0} {:>26} {:>26}",
            server.kind.name(),
            median(own.iter().map(|sample| sample.cpu_us)),
            median(own.iter().map(|sample| sample.per_second)),
            against(Kind::Nginx).unwrap_or_default(),
            against(Kind::Null).unwrap_or_default(),
        );
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
