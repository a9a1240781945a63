//! Searches for the highest rate at which an assertion still holds.
//!
//! A closed loop first says what the server can do at all. Between nothing and that, the rate is halved
//! in on, by ratios: each step is a run of an open loop of its own. Chance lets a step fail that would
//! hold another time, so a failure counts only when it comes twice in three tries. Last, the rate that
//! was found has to hold in a run of twice the length; where it does not, it goes down a little.
//!
//! What comes out is a rate that held and one that did not, and whether the steps contradicted each
//! other: a limit is no sharper than the noise of the machine.

use serde::Serialize;

use crate::assertion::{Assertion, Verdict};
use crate::control::Control;
use crate::plan::{Arrival, Plan, Spacing, Stop};
use crate::rate::RATE_PER_SECOND_MAX;
use crate::report::{AssertionOutcome, Report, WarningKind};

/// The search ends when what held and what did not lie this close, as a factor: runs of some seconds are
/// not more exact.
const CLOSE_ENOUGH: f64 = 1.05;

/// The closed loop may do less than an open one with the same connections, by chance.
const ABOVE_CEILING: f64 = 1.1;

/// Below this share of the ceiling, nothing that is worth a rate holds.
const SHARE_MIN: f64 = 0.001;

/// Rates tried, at most. Halving in on a range of 1,000 takes less.
const RATES_MAX: usize = 20;

/// Tries of one rate; the majority decides.
const TRIES: usize = 3;

/// Confirming runs, each at a lower rate than the one before.
const CONFIRMATIONS_MAX: usize = 4;

/// One run of the search.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SearchStep {
    /// What it is for.
    pub purpose: Purpose,
    /// Requests a second that were asked for; `null` in the closed loop.
    pub rate: Option<f64>,
    /// Right answers a second.
    pub achieved: f64,
    /// What the run says of the assertion.
    pub outcome: AssertionOutcome,
    /// Whether the rate held.
    pub held: bool,
    /// Why it did not.
    pub why: Option<String>,
    /// Whether a thread of the generator was the limit.
    pub generator_saturated: bool,
}

/// What a run of the search is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// A closed loop: no rate above what it does can hold.
    Ceiling,
    /// Does the assertion hold at this rate?
    Try,
    /// Does it hold for longer?
    Confirm,
}

/// What a search has found.
#[derive(Debug, Serialize)]
pub struct Found {
    /// The highest rate that held and was confirmed; `null` if none was.
    pub rate: Option<f64>,
    /// The lowest rate above it that did not hold; `null` if none failed.
    pub failed_at: Option<f64>,
    /// All runs, in order.
    pub steps: Vec<SearchStep>,
    /// Reasons to distrust it, each with what to try.
    pub doubts: Vec<String>,
    /// The report of the confirming run.
    pub confirmation: Option<Report>,
}

/// Searches with runs of `plan` at different rates, each as long as the plan says. `trial` does a run,
/// `watch` sees each step when it is done.
///
/// # Errors
///
/// When a run cannot be done.
pub fn find_max<E>(
    plan: &Plan,
    assertion: &Assertion,
    control: &Control,
    trial: impl FnMut(&Plan) -> Result<Report, E>,
    watch: impl FnMut(&SearchStep),
) -> Result<Found, E> {
    let mut search = Search { plan, assertion, trial, watch, steps: Vec::new(), mixed: Vec::new() };
    let (_, ceiling) = search.step(Purpose::Ceiling, None)?;
    let ceiling = ceiling.requests_per_second;
    let (mut low, mut high) = (0.0, (ceiling * ABOVE_CEILING).min(RATE_PER_SECOND_MAX));
    let mut failed_at = None;
    let mut too_few = false;
    let mut rate = ceiling / 2.0;
    for _ in 0..RATES_MAX {
        if control.is_stopped() || rate < ceiling * SHARE_MIN || rate <= 0.0 {
            break;
        }
        match search.decide(rate, control)? {
            Decision::Holds => low = rate,
            Decision::Fails => {
                high = rate;
                failed_at = Some(rate);
            }
            Decision::ShowsNothing => {
                // Where something has failed, the rates are too low by now to be of interest.
                too_few = failed_at.is_none();
                break;
            }
        }
        if low > 0.0 && high / low <= CLOSE_ENOUGH {
            break;
        }
        rate = if low > 0.0 { (low * high).sqrt() } else { high / 4.0 };
    }
    let mut confirmation = None;
    let mut confirmed = None;
    for _ in 0..CONFIRMATIONS_MAX {
        if low <= 0.0 || control.is_stopped() {
            break;
        }
        let (held, report) = search.step(Purpose::Confirm, Some(low))?;
        confirmation = Some(report);
        if held {
            confirmed = Some(low);
            break;
        }
        failed_at = Some(low);
        low /= CLOSE_ENOUGH;
    }
    let doubts = search.doubts(confirmed, too_few, control.is_stopped());
    Ok(Found { rate: confirmed, failed_at, steps: search.steps, doubts, confirmation })
}

/// What the tries of a rate say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Decision {
    Holds,
    Fails,
    ShowsNothing,
}

struct Search<'a, T, W> {
    plan: &'a Plan,
    assertion: &'a Assertion,
    trial: T,
    watch: W,
    steps: Vec<SearchStep>,
    /// Rates whose tries contradicted each other.
    mixed: Vec<f64>,
}

impl<T, W, E> Search<'_, T, W>
where
    T: FnMut(&Plan) -> Result<Report, E>,
    W: FnMut(&SearchStep),
{
    /// Tries a rate until a majority is certain. One success is believed: the confirming run looks
    /// again.
    fn decide(&mut self, rate: f64, control: &Control) -> Result<Decision, E> {
        let mut failures = 0;
        for number in 0..TRIES {
            let (held, _) = self.step(Purpose::Try, Some(rate))?;
            // Unless the rate was not even reached, and requests that wait for their answers are why.
            let is_open = |step: &SearchStep| {
                step.outcome.verdict == Verdict::Open
                    && step.why.as_ref() == Some(&step.outcome.found)
            };
            if self.steps.last().is_some_and(is_open) {
                return Ok(Decision::ShowsNothing);
            }
            if held && number == 0 {
                return Ok(Decision::Holds);
            }
            failures += usize::from(!held);
            if failures > TRIES / 2 || control.is_stopped() {
                break;
            }
        }
        if failures <= TRIES / 2 {
            self.mixed.push(rate);
            return Ok(Decision::Holds);
        }
        let tries = self.steps.iter().filter(|step| step.rate == Some(rate));
        if tries.clone().any(|step| step.held) {
            self.mixed.push(rate);
        }
        Ok(Decision::Fails)
    }

    fn step(&mut self, purpose: Purpose, rate: Option<f64>) -> Result<(bool, Report), E> {
        let mut plan = self.plan.clone();
        // Each run has chances of its own, and the whole search is the same with the same seed.
        plan.seed = plan.seed.wrapping_add(self.steps.len() as u64);
        plan.arrival = match (rate, &self.plan.arrival) {
            (None, _) => Arrival::Closed,
            (Some(rate), Arrival::Open { spacing, .. }) => Arrival::open(rate, *spacing),
            (Some(rate), Arrival::Closed) => Arrival::open(rate, Spacing::Even),
        };
        if purpose == Purpose::Confirm
            && let Stop::Duration(length) = &mut plan.stop
        {
            *length *= 2;
        }
        let report = (self.trial)(&plan)?;
        let outcome = self.assertion.judge(&report);
        let why = self.why_not(&report, &outcome, purpose);
        let has = |kind| report.warnings.iter().any(|warning| warning.kind == kind);
        let step = SearchStep {
            purpose,
            rate,
            achieved: report.requests_per_second,
            held: why.is_none(),
            why,
            outcome,
            generator_saturated: has(WarningKind::GeneratorSaturated),
        };
        (self.watch)(&step);
        let held = step.held;
        self.steps.push(step);
        Ok((held, report))
    }

    fn why_not(
        &self,
        report: &Report,
        outcome: &AssertionOutcome,
        purpose: Purpose,
    ) -> Option<String> {
        if report.wrong_answers > 0 && !self.assertion.is_about_wrong_answers() {
            return Some(format!("{} wrong answers", report.wrong_answers));
        }
        if report.errors > 0 && !self.assertion.is_about_errors() {
            return Some(format!("{} errors", report.errors));
        }
        let slow = report.warnings.iter().find(|it| it.kind == WarningKind::RateNotReached);
        if let Some(slow) = slow.filter(|_| purpose != Purpose::Ceiling) {
            return Some(slow.message.clone());
        }
        (outcome.verdict != Verdict::Held).then(|| outcome.found.clone())
    }

    fn doubts(&self, confirmed: Option<f64>, too_few: bool, stopped: bool) -> Vec<String> {
        let mut doubts = Vec::new();
        if stopped {
            doubts.push("the search was ended before its time".to_owned());
        }
        if too_few {
            doubts.push(
                "a run had too few requests for the assertion to be shown: run each step longer (-d)"
                    .to_owned(),
            );
        }
        if !self.mixed.is_empty() {
            doubts.push(format!(
                "at {} a second the assertion held in one run and not in another: the limit is no \
                 sharper than that; run longer (-d), on a quiet machine",
                list(&self.mixed)
            ));
        }
        let lost: Vec<_> = self.steps.iter().filter(|step| !step.held).collect();
        if lost.iter().any(|step| step.generator_saturated) {
            doubts.push(
                "the generator was the limit where the assertion did not hold: use more threads (-t) \
                 or a second machine"
                    .to_owned(),
            );
        }
        let confirmations = self.steps.iter().filter(|step| step.purpose == Purpose::Confirm);
        if confirmations.count() > 1 {
            doubts.push(
                "what held in a step did not hold for twice as long: the steps are too short (-d)"
                    .to_owned(),
            );
        }
        if confirmed.is_none() && !too_few && !stopped {
            doubts.push("no rate was found at which the assertion holds".to_owned());
        }
        doubts
    }
}

fn list(rates: &[f64]) -> String {
    rates.iter().map(|rate| format!("{rate:.0}")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Record, Sample};
    use crate::summary::{self, Measured};
    use std::time::Duration;

    /// A server whose response time is 1 ms up to `limit` requests a second and 100 ms above; `noise`
    /// says for each run whether it goes wrong whatever the rate.
    fn search(limit: f64, noise: &[usize]) -> Found {
        let mut plan = Plan::new(vec![crate::Target::new(
            std::net::SocketAddr::from(([127, 0, 0, 1], 80)),
            "localhost",
            "/",
        )]);
        plan.stop = Stop::Duration(Duration::from_secs(5));
        let assertion = "p99<5ms".parse().unwrap();
        let mut runs = 0;
        let trial = |plan: &Plan| {
            let Stop::Duration(length) = plan.stop else { panic!("{:?}", plan.stop) };
            let rate = plan.arrival.rate().and_then(|rate| rate.as_constant());
            let slow = rate.is_some_and(|rate| rate > limit) || noise.contains(&runs);
            runs += 1;
            let mut record = Record::new();
            let count = rate.unwrap_or(limit * 2.0) * length.as_secs_f64();
            record.sent = count as u64;
            for _ in 0..record.sent {
                let ended = if slow { 100_000_000 } else { 1_000_000 };
                record.sample(Sample { intended: 0, sent: 0, first_byte: ended, ended });
            }
            let measured = Measured {
                record,
                length,
                cpu: Duration::from_millis(1),
                cpu_max: Duration::from_millis(1),
                polled: Duration::ZERO,
                steal_percent: None,
            };
            let ended = crate::report::Ended::Duration;
            Ok::<_, std::convert::Infallible>(summary::report(
                plan,
                1,
                crate::Io::Epoll,
                None,
                measured,
                ended,
                None,
            ))
        };
        find_max(&plan, &assertion, &Control::new(), trial, |_| {}).unwrap()
    }

    #[test]
    fn the_limit_is_found_and_confirmed() {
        for limit in [50.0, 300.0, 1_000.0, 4_321.0] {
            let found = search(limit, &[]);
            let (rate, failed_at) = (found.rate.unwrap(), found.failed_at.unwrap());
            assert!(rate <= limit && limit < failed_at, "{rate} {limit} {failed_at}");
            assert!(failed_at / rate <= CLOSE_ENOUGH, "{rate} {limit} {failed_at}");
            assert!(found.doubts.is_empty(), "{:?}", found.doubts);
            assert_eq!(found.steps.first().unwrap().purpose, Purpose::Ceiling);
            let last = found.steps.last().unwrap();
            assert_eq!((last.purpose, last.rate, last.held), (Purpose::Confirm, Some(rate), true));
            assert!(found.confirmation.unwrap().seconds == 10.0);
        }
    }

    #[test]
    fn a_run_that_goes_wrong_by_chance_changes_little_and_is_told() {
        // The first try, at half the ceiling, which is the limit: it holds in the next two.
        let found = search(1_000.0, &[1]);
        assert!(found.rate.unwrap() > 950.0, "{found:?}");
        assert!(found.doubts[0].contains("at 1000 a second the assertion held in one run"));
    }

    #[test]
    fn what_does_not_last_is_lowered() {
        let clean = search(1_000.0, &[]);
        let confirming = clean.steps.len() - 1;
        let found = search(1_000.0, &[confirming]);
        let (rate, before) = (found.rate.unwrap(), clean.rate.unwrap());
        assert!((before / rate - CLOSE_ENOUGH).abs() < 1e-9, "{rate} {before}");
        assert!(found.doubts[0].contains("did not hold for twice as long"), "{:?}", found.doubts);
    }

    #[test]
    fn nothing_holds() {
        let always: Vec<_> = (0..100).collect();
        let found = search(1_000.0, &always);
        assert_eq!(found.rate, None);
        assert!(found.confirmation.is_none());
        assert_eq!(found.doubts, ["no rate was found at which the assertion holds"]);
    }

    #[test]
    fn too_few_requests_show_nothing() {
        let found = search(5.0, &[]);
        assert_eq!(found.rate, None);
        assert!(found.doubts[0].contains("run each step longer (-d)"), "{:?}", found.doubts);
    }
}
