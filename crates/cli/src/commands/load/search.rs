//! `milepost load --find-max`: the highest rate at which an assertion holds.

use std::fmt::Write as _;
use std::process::ExitCode;

use anyhow::Context;
use milepost_load::{Assertion, Control, Found, Plan, Purpose, SearchStep, find_max};

use super::{EXIT_WRONG, note, print, stop_on_signal, text};

/// What is shown of the search beside its result.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shown {
    pub(super) json: bool,
    pub(super) quiet: bool,
}

/// Searches, tells each step on stderr, prints what was found.
pub(super) fn run(plan: &Plan, assertion: &Assertion, shown: Shown) -> anyhow::Result<ExitCode> {
    let control = Control::stopped_by(stop_on_signal().context("cannot listen to signals")?);
    let trial = |plan: &Plan| milepost_load::run(plan, &control);
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
        out += &text::report(plan, report);
    }
    out
}
