//! `milepost load --find-max`: the highest rate at which an assertion holds.

use std::fmt::{self, Write as _};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use milepost_load::{
    Arrival, Assertion, Control, Found, Plan, Purpose, Rate, Report, SearchStep, Share, Stop,
    find_max,
};

use super::{EXIT_WRONG, note, print, processes, stop_on_signal, text};

/// Rates are shown to a tenth.
const RATE_PARTS: f64 = 10.0;

/// What is shown of the search beside its result.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shown {
    pub(super) json: bool,
    pub(super) quiet: bool,
}

/// Searches, tells each step on stderr, prints what was found.
pub(super) fn run(plan: &Plan, assertion: &Assertion, shown: Shown) -> anyhow::Result<ExitCode> {
    let stopped = stop_on_signal().context("cannot listen to signals")?;
    let control = Control::stopped_by(Arc::clone(&stopped));
    let trial = |plan: &Plan| -> anyhow::Result<Report> {
        match plan.share {
            Share::WHOLE => Ok(milepost_load::run(plan, &control)?),
            _ => {
                let more = ["--trial".to_owned(), Trial::of(plan).to_string()];
                // Each run is told of by itself.
                processes::run(plan, &Control::stopped_by(Arc::clone(&stopped)), &more)
            }
        }
    };
    let watch = |done: &SearchStep| {
        if !shown.quiet {
            note(&step(done));
        }
    };
    let found = find_max(plan, assertion, &control, trial, watch)?;
    let output = if shown.json {
        let mut text = serde_json::to_string_pretty(&found).context("the result is no JSON")?;
        text.push('\n');
        text
    } else {
        describe(plan, assertion, &found)
    };
    print(&output).context("cannot write to stdout")?;
    Ok(if found.rate.is_some() { ExitCode::SUCCESS } else { ExitCode::from(EXIT_WRONG) })
}

/// What a run of the search does otherwise than the plan says. Travels to the processes that share it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Trial {
    seed: u64,
    /// Requests a second; none in the closed loop.
    rate: Option<f64>,
    length: Duration,
}

impl Trial {
    fn of(plan: &Plan) -> Self {
        let rate = plan.arrival.rate().and_then(Rate::as_constant);
        let length = match plan.stop {
            Stop::Duration(length) => length,
            // A search has no other stop.
            _ => Duration::ZERO,
        };
        Self { seed: plan.seed, rate, length }
    }

    /// Makes the plan that of the run.
    pub(super) fn complete(self, plan: &mut Plan) {
        let Self { seed, rate, length } = self;
        plan.seed = seed;
        plan.stop = Stop::Duration(length);
        plan.arrival = match (rate, &plan.arrival) {
            (Some(rate), Arrival::Open { spacing, .. }) => Arrival::open(rate, *spacing),
            (Some(rate), _) => Arrival::uniform(rate),
            (None, _) => Arrival::Closed,
        };
    }
}

impl fmt::Display for Trial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The rate as its bits: all processes must have the same.
        let rate = self.rate.map_or("closed".to_owned(), |rate| rate.to_bits().to_string());
        write!(f, "{}/{rate}/{}", self.seed, self.length.as_nanos())
    }
}

/// Reads what another process wrote.
pub(super) fn trial(text: &str) -> Result<Trial, String> {
    let parts: Vec<_> = text.split('/').collect();
    let read = |parts: &[&str]| {
        let [seed, rate, length] = parts else { return None };
        let rate = match *rate {
            "closed" => None,
            bits => Some(f64::from_bits(bits.parse().ok()?)),
        };
        let length = Duration::from_nanos(length.parse().ok()?);
        Some(Trial { seed: seed.parse().ok()?, rate, length })
    };
    read(&parts).ok_or_else(|| "a trial is SEED/RATE/LENGTH".to_owned())
}

/// One run of the search on one line.
fn step(step: &SearchStep) -> String {
    let name = match (step.purpose, step.rate) {
        (Purpose::Confirm, Some(rate)) => format!("confirm {rate:.1} a second"),
        (_, Some(rate)) => format!("try {rate:.1} a second"),
        (_, None) => "closed loop".to_owned(),
    };
    let achieved = format!("{:.1} right answers a second", step.achieved);
    let outcome = match (&step.why, step.purpose) {
        (_, Purpose::Ceiling) => "no rate above can hold".to_owned(),
        (None, _) => format!("held, {}", step.outcome.found),
        (Some(why), _) => format!("did not hold, {why}"),
    };
    format!("{name}: {achieved}, {outcome}")
}

fn describe(plan: &Plan, assertion: &Assertion, found: &Found) -> String {
    let mut out = String::new();
    let mut line = |text: String| writeln!(out, "{text}").expect("a string takes it");
    match found.rate {
        Some(rate) => {
            line(format!("{assertion} held at {rate:.1} requests a second, confirmed"));
        }
        None => line(format!("no rate at which {assertion} holds was found and confirmed")),
    }
    match found.failed_at {
        Some(rate) => line(format!("it did not hold at {rate:.1}")),
        None => line("no rate was tried at which it did not hold".to_owned()),
    }
    line(String::new());
    for done in &found.steps {
        line(format!("  {}", step(done)));
    }
    for doubt in &found.doubts {
        line(String::new());
        line(format!("doubt: {doubt}"));
    }
    if let Some(report) = &found.confirmation {
        line(String::new());
        line("The last confirming run:".to_owned());
        line(String::new());
        // A rate that was found has digits that nobody needs.
        let rate = report.plan.rate.map(|rate| (rate * RATE_PARTS).round() / RATE_PARTS);
        let mut plan = plan.clone();
        Trial { rate, ..Trial::of(&plan) }.complete(&mut plan);
        out += &text::report(&plan, report);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trial_comes_back_as_it_went() {
        for rate in [None, Some(0.1 + 0.2), Some(1e6)] {
            let one = Trial { seed: u64::MAX, rate, length: Duration::from_millis(1_500) };
            assert_eq!(trial(&one.to_string()), Ok(one));
        }
        for wrong in ["", "1/2", "1/x/2", "1/closed/2/3"] {
            assert!(trial(wrong).is_err(), "{wrong}");
        }
    }
}
