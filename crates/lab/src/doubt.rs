//! Reasons to doubt a run, each with what to try: they are part of the result.

use milepost_stats::bootstrap::TRIALS_MIN;

use crate::layout::{connections, count};
use crate::results::{Results, Trial, Warning};

/// Processes that wanted to run before the start, as a share of the cores.
const LOAD_SHARE_MAX: f64 = 0.5;

/// Time that the host kept from the machine, in per cent.
const STEAL_PERCENT_MAX: f64 = 2.0;

/// From this share of a core on, the generator may have been the limit.
const GENERATOR_SHARE_MAX: f64 = 0.9;

/// Returns what speaks against the numbers of `results`.
pub(crate) fn doubts(results: &Results) -> Vec<Warning> {
    let environment = &results.environment;
    let mut doubts = Vec::new();
    let mut doubt = |message: String, advice: &str| {
        doubts.push(Warning { message, advice: advice.to_owned() });
    };
    if !environment.optimised_build {
        doubt("milepost is a debug build".to_owned(), "build it with cargo build --release");
    }
    if results.rounds < u32::try_from(TRIALS_MIN).unwrap_or(u32::MAX) {
        doubt(
            format!(
                "{} cannot carry an interval, and so no verdict",
                count(results.rounds, "round")
            ),
            "ask for at least --rounds 6",
        );
    }
    if environment.load_average > LOAD_SHARE_MAX * environment.cores as f64 {
        let (load, cores) = (environment.load_average, environment.cores);
        doubt(
            format!("the machine was busy before the run: load average {load:.2} on {cores} cores"),
            "wait until nothing else runs",
        );
    }
    if let Some(steal) = environment.steal_percent.filter(|steal| *steal > STEAL_PERCENT_MAX) {
        doubt(
            format!("the host kept {steal:.1} % of the time from this virtual machine"),
            "trust CPU per request and ratios more than times, or take a quieter machine",
        );
    }
    if environment.cores < 2 {
        doubt(
            "server and load generator share one core".to_owned(),
            "take a machine with two cores at least",
        );
    }
    let busy = busy_alternatives(results);
    if !busy.is_empty() {
        doubt(
            format!("the load generator was at its limit in most trials of {}", busy.join(", ")),
            "requests per second of these are a lower bound; compare CPU per request",
        );
    }
    doubts
}

/// Returns alternatives, with connections, in most of whose trials the generator was busy.
fn busy_alternatives(results: &Results) -> Vec<String> {
    let mut busy = Vec::new();
    for connections in connections(results) {
        for alternative in &results.alternatives {
            let trials: Vec<&Trial> = results
                .trials
                .iter()
                .filter(|t| t.alternative == alternative.name && t.connections == connections)
                .collect();
            let limited =
                trials.iter().filter(|trial| trial.client_busiest_thread > GENERATOR_SHARE_MAX);
            if limited.count() * 2 > trials.len() {
                busy.push(format!("{} ({})", alternative.name, count(connections, "connection")));
            }
        }
    }
    busy
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn a_clean_run_leaves_no_doubt() {
        assert_eq!(doubts(&sample::results()), []);
    }

    #[test]
    fn each_doubt_is_told() {
        check(|r| r.environment.optimised_build = false, "milepost is a debug build");
        check(|r| r.rounds = 5, "5 rounds cannot carry an interval");
        check(|r| r.environment.load_average = 1.1, "the machine was busy before the run");
        check(|r| r.environment.steal_percent = Some(3.0), "the host kept 3.0 %");
        check(
            |r| {
                r.environment.cores = 1;
                r.environment.load_average = 0.0;
            },
            "server and load generator share one core",
        );
        check(
            |r| {
                let trials = r.trials.iter_mut().filter(|t| t.alternative == "apache/redirect");
                trials.for_each(|trial| trial.client_busiest_thread = 0.95);
            },
            "the load generator was at its limit in most trials of apache/redirect (1 connection)",
        );
    }

    #[track_caller]
    fn check(change: fn(&mut Results), message: &str) {
        let mut results = sample::results();
        change(&mut results);
        let doubts = doubts(&results);
        assert_eq!(doubts.len(), 1, "{doubts:?}");
        assert!(doubts[0].message.starts_with(message), "{}", doubts[0].message);
    }
}
