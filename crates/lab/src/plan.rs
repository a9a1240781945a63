//! What a run will do: the alternatives that take part, and the order of their trials.
//!
//! One round measures every cell (alternative, target, connections) once. Within a round the pairs
//! of target and connections come in random order, and for each pair the alternatives in random
//! order one right after the other. So what is compared stands close together in time, and no
//! alternative always comes first.
//!
//! Source: A. Abedi and T. Brecht, "Conducting Repeatable Experiments in Highly Variable Cloud
//! Computing Environments", ICPE 2017 (randomised multiple interleaved trials).

use crate::experiment::{
    Experiment, ExperimentError, Method, ROUNDS_MAX, Schedule, Target, check_limit,
};
use crate::results::Volume;
use crate::server::{Server, ServerKind};

/// Stands at the end of the control's name.
const CONTROL_SUFFIX: &str = "/control";

/// What the user asks for beyond the experiment's text.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Another number of rules.
    pub rules: Option<u32>,
    /// Another number of rounds.
    pub rounds: Option<u32>,
    /// Requests for each trial instead of time.
    pub requests: Option<u64>,
    /// The quick schedule.
    pub quick: bool,
    /// Patterns of `server/method` or `method`; all alternatives when there is none.
    pub only: Vec<String>,
    /// The servers; all when there is none.
    pub servers: Vec<ServerKind>,
    /// The seed of everything random.
    pub seed: u64,
}

impl Options {
    /// Tells whether the user asks for this server.
    pub fn wants(&self, server: ServerKind) -> bool {
        self.servers.is_empty() || self.servers.contains(&server)
    }
}

/// What a run will do.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// How many rules a method has.
    pub rules: u32,
    /// Rounds, warm-up and load.
    pub schedule: Schedule,
    /// How much each trial sends.
    pub volume: Volume,
    /// The seed of everything random.
    pub seed: u64,
    /// What takes part.
    pub alternatives: Vec<Planned>,
}

/// One alternative of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Planned {
    /// `server/method`, and `server/method/control` for the control.
    pub name: String,
    /// The server, as its place in the list of those found.
    pub server: usize,
    /// The method, as its place in the experiment.
    pub method: usize,
    /// For the control: the name of the alternative that it repeats.
    pub control_of: Option<String>,
}

/// One trial to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Cell {
    /// The alternative, as its place in the plan.
    pub alternative: usize,
    /// Which rule is asked for.
    pub target: Target,
    /// Persistent connections.
    pub connections: u32,
}

/// A plan that cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// A number is outside of its limits.
    #[error(transparent)]
    Limit(#[from] ExperimentError),
    /// Nothing is left to do.
    #[error("nothing to run: no method of the experiment fits the servers and patterns asked for")]
    Nothing,
}

impl Plan {
    /// Makes the plan of `experiment` for `servers`, all of which were found.
    ///
    /// # Errors
    ///
    /// When a number is outside of its limits, or nothing is left to do.
    pub(crate) fn new(
        experiment: &Experiment,
        options: &Options,
        servers: &[Server],
    ) -> Result<Self, PlanError> {
        let kinds: Vec<ServerKind> = servers.iter().map(|server| server.kind).collect();
        let mut schedule = if options.quick { &experiment.quick } else { &experiment.run }.clone();
        schedule.rounds = options.rounds.unwrap_or(schedule.rounds);
        check_limit("the number of rounds", schedule.rounds.into(), ROUNDS_MAX.into())?;
        let rules = options.rules.unwrap_or(experiment.rules);
        experiment.check_rules(rules)?;
        let volume = match options.requests {
            Some(requests) => {
                check_limit("the number of requests", requests, u64::MAX)?;
                Volume::Requests(requests)
            }
            None => Volume::Milliseconds(schedule.trial_ms),
        };
        let mut alternatives = select(experiment, &options.only, &kinds);
        let control = control(experiment, &alternatives).ok_or(PlanError::Nothing)?;
        alternatives.push(control);
        Ok(Self { rules, schedule, volume, seed: options.seed, alternatives })
    }

    /// Returns the trials of every round, in the order in which they are done.
    pub(crate) fn order(&self, experiment: &Experiment) -> Vec<Vec<Cell>> {
        let mut random = fastrand::Rng::with_seed(self.seed);
        (0..self.schedule.rounds).map(|_| self.round(experiment, &mut random)).collect()
    }

    /// Returns the most connections of any trial.
    pub(crate) fn connections_max(&self) -> u32 {
        self.schedule.loads.iter().map(|load| load.connections).max().unwrap_or(1)
    }

    fn round(&self, experiment: &Experiment, random: &mut fastrand::Rng) -> Vec<Cell> {
        let loads = self.schedule.loads.iter();
        let mut pairs: Vec<(Target, u32)> = loads
            .flat_map(|load| load.targets.iter().map(|target| (*target, load.connections)))
            .collect();
        random.shuffle(&mut pairs);
        let mut cells = Vec::new();
        for (target, connections) in pairs {
            let takes_part = |alternative: &usize| {
                has_target(&experiment.methods[self.alternatives[*alternative].method], target)
            };
            let mut order: Vec<usize> = (0..self.alternatives.len()).filter(takes_part).collect();
            random.shuffle(&mut order);
            cells.extend(order.into_iter().map(|alternative| Cell {
                alternative,
                target,
                connections,
            }));
        }
        cells
    }
}

/// Tells whether `target` makes sense for `method`.
pub(crate) fn has_target(method: &Method, target: Target) -> bool {
    method.targets.as_ref().is_none_or(|targets| targets.contains(&target))
}

/// Tells whether `name` (`server/method`) or its method is what `pattern` describes; `*` stands for
/// any text.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    let method = name.split_once('/').map_or(name, |(_, method)| method);
    glob(pattern, name) || glob(pattern, method)
}

fn glob(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((start, rest)) => text.strip_prefix(start).is_some_and(|text| {
            // Whatever the star takes, the rest must fit; names are short.
            (0..=text.len()).any(|at| text.is_char_boundary(at) && glob(rest, &text[at..]))
        }),
    }
}

fn select(experiment: &Experiment, only: &[String], servers: &[ServerKind]) -> Vec<Planned> {
    let mut alternatives = Vec::new();
    for (server, kind) in servers.iter().enumerate() {
        for (method, text) in experiment.methods.iter().enumerate() {
            let name = format!("{}/{}", kind.name(), text.name);
            let wanted = only.is_empty() || only.iter().any(|pattern| matches(pattern, &name));
            if kind.can_run(text) && wanted {
                alternatives.push(Planned { name, server, method, control_of: None });
            }
        }
    }
    alternatives
}

/// Repeats the alternative that the experiment names, or else the first one whose answers are right.
fn control(experiment: &Experiment, alternatives: &[Planned]) -> Option<Planned> {
    let named = alternatives.iter().find(|alternative| alternative.name == experiment.control);
    let right = |alternative: &&Planned| experiment.methods[alternative.method].wrong.is_empty();
    let of = named.or_else(|| alternatives.iter().find(right)).or(alternatives.first())?;
    let name = format!("{}{CONTROL_SUFFIX}", of.name);
    Some(Planned { name, control_of: Some(of.name.clone()), ..of.clone() })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::experiment::BUILT_IN;

    #[test]
    fn patterns_describe_names() {
        for (pattern, name, fits) in [
            ("redirect", "apache/redirect", true),
            ("redirect", "apache/redirectmatch", false),
            ("redirect*", "apache/redirectmatch", true),
            ("apache/*", "apache/redirect", true),
            ("apache/re*", "apache/none", false),
            ("*map*", "apache/rewritemap", true),
            ("milepost/*", "milepost-scan/none", false),
            ("*", "nginx/map", true),
            ("", "nginx/map", false),
        ] {
            assert_eq!(matches(pattern, name), fits, "{pattern} {name}");
        }
    }

    #[test]
    fn every_round_holds_every_cell_once_in_another_order() {
        let (experiment, plan) = plan(&[]);
        let rounds = plan.order(&experiment);
        assert_eq!(rounds.len(), 10);
        let cells: HashSet<Cell> = rounds[0].iter().copied().collect();
        for round in &rounds {
            assert_eq!(round.iter().copied().collect::<HashSet<_>>(), cells);
            assert_eq!(round.len(), cells.len());
        }
        assert_ne!(rounds[0], rounds[1]);
        assert_eq!(rounds, plan.order(&experiment), "the seed decides");
    }

    #[test]
    fn what_is_compared_stands_together() {
        let (experiment, plan) = plan(&[]);
        let round = &plan.order(&experiment)[0];
        let changes = round
            .windows(2)
            .filter(|pair| {
                (pair[0].target, pair[0].connections) != (pair[1].target, pair[1].connections)
            })
            .count();
        // Four targets on one and on ten connections are eight groups.
        assert_eq!(changes, 7);
    }

    #[test]
    fn the_control_repeats_something_that_is_right() {
        check_control(&[], "milepost/redirect/control");
        check_control(&["nginx/*"], "nginx/none/control");
        check_control(&["apache/redirectmatch*"], "apache/redirectmatch/control");
        check_control(&["apache/*unanchored"], "apache/redirectmatch-unanchored/control");
    }

    #[test]
    fn nothing_to_do_is_an_error() {
        let (experiment, _) = plan(&[]);
        let options = Options { only: vec!["nothing".to_owned()], ..Options::default() };
        let error = Plan::new(&experiment, &options, &servers()).expect_err("nothing");
        assert!(error.to_string().starts_with("nothing to run"));
        let options = Options { rules: Some(19), ..Options::default() };
        assert!(Plan::new(&experiment, &options, &servers()).is_err());
    }

    #[track_caller]
    fn check_control(only: &[&str], expected: &str) {
        let (_, plan) = plan(only);
        let control: Vec<&Planned> =
            plan.alternatives.iter().filter(|planned| planned.control_of.is_some()).collect();
        assert_eq!(control.len(), 1);
        assert_eq!(control[0].name, expected);
    }

    fn plan(only: &[&str]) -> (Experiment, Plan) {
        let experiment = Experiment::parse(BUILT_IN[0].1).expect("a valid experiment");
        let only = only.iter().map(|pattern| (*pattern).to_owned()).collect();
        let options = Options { only, seed: 1, ..Options::default() };
        let plan = Plan::new(&experiment, &options, &servers()).expect("something to do");
        (experiment, plan)
    }

    fn servers() -> Vec<Server> {
        ServerKind::ALL.map(Server::for_test).into()
    }
}
