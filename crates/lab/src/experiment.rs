//! An experiment as its TOML file states it: methods, targets, load, and what a right answer is.
//!
//! The rules of a method are text in the language of the server that reads them, with [`NUMBER`]
//! for the number of the rule. So a new method, or a whole new experiment, is a file and no code;
//! the code knows servers. What is read here is checked once: every pattern names something, and
//! every name is fit to be a file name.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Stands for the number of a rule, in paths, rules and expectations.
pub const NUMBER: &str = "@N@";

/// Stands for the directory of a method's generated files, in rules.
pub const DIRECTORY: &str = "@DIR@";

/// The most rules: a hundred times the experiment's, and some 60 MB of configuration a method.
pub const RULES_MAX: u32 = 1_000_000;

/// The most rounds: beyond, an interval gains nothing and the machine has changed.
pub const ROUNDS_MAX: u32 = 1_000;

/// The most connections of one trial: above, one generator thread measures itself.
pub const CONNECTIONS_MAX: u32 = 1_000;

/// The longest trial or warm-up: an interruption waits for nothing longer than its own check.
pub const TRIAL_MS_MAX: u64 = 600_000;

/// The experiments that milepost carries with it, as name and text.
pub const BUILT_IN: &[(&str, &str)] =
    &[("redirect-methods", include_str!("../../../lab/experiments/redirect-methods.toml"))];

/// Alternatives (server × method), load, and the expectation of every answer.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// The name, fit for a file name.
    pub name: String,
    /// The headline of the report.
    pub title: String,
    /// What the experiment wants to know, in one sentence.
    pub question: String,
    /// How many rules a method has, unless the run says otherwise.
    pub rules: u32,
    /// The fewest rules with which the expectations hold.
    #[serde(default = "one")]
    pub rules_min: u32,
    /// The alternative (`server/method`) that is compared with itself.
    pub control: String,
    /// The paths that are requested.
    pub paths: Paths,
    /// What a right answer is, unless the method says otherwise.
    pub expect: Expectations,
    /// Rounds and load of the full run.
    pub run: Schedule,
    /// Rounds and load of the quick run.
    pub quick: Schedule,
    /// The ways to answer.
    pub methods: Vec<Method>,
    /// What the report compares.
    #[serde(default)]
    pub comparisons: Vec<Question>,
}

/// The paths that are requested.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paths {
    /// The path of a rule, with [`NUMBER`].
    pub rule: String,
    /// A path that no rule matches.
    pub miss: String,
}

/// Right answers.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expectations {
    /// For the path of a rule.
    pub rule: Answer,
    /// For the path that no rule matches.
    pub miss: Answer,
}

/// What an answer must be; a field that is absent is not looked at.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// The value of the Location field, with [`NUMBER`].
    pub location: Option<String>,
    /// The length of the content in bytes.
    pub length: Option<u64>,
}

/// How often and how long.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    /// How often each trial is repeated; one round gives one sample of each.
    pub rounds: u32,
    /// How long a trial sends, in milliseconds.
    pub trial_ms: u64,
    /// How long each trial sends beforehand without measuring, in milliseconds.
    pub warm_up_ms: u64,
    /// Connections, and the targets asked for on them.
    pub loads: Vec<Load>,
}

impl Schedule {
    /// Returns how long a trial sends without measuring.
    pub fn warm_up(&self) -> Duration {
        Duration::from_millis(self.warm_up_ms)
    }
}

/// One kind of trial, for several targets.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Load {
    /// The number of persistent connections, each with one request at a time.
    pub connections: u32,
    /// What is asked for.
    pub targets: Vec<Target>,
}

/// Which rule a request is for.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[serde(rename_all = "lowercase")]
pub enum Target {
    /// Rule 1.
    First,
    /// Rule N/2.
    Middle,
    /// Rule N.
    Last,
    /// None: a path that no rule matches.
    Miss,
}

impl Target {
    /// Returns the number of the rule among `rules`; `None` for [`Target::Miss`].
    pub fn rule(self, rules: u32) -> Option<u32> {
        match self {
            Self::First => Some(1),
            Self::Middle => Some((rules / 2).max(1)),
            Self::Last => Some(rules),
            Self::Miss => None,
        }
    }

    /// Returns the word that files and reports use.
    pub fn name(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Middle => "middle",
            Self::Last => "last",
            Self::Miss => "miss",
        }
    }
}

/// One way to answer.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Method {
    /// The name, fit for a file name.
    pub name: String,
    /// What a table calls it.
    pub title: String,
    /// For which rules there is a text; all, unless stated.
    #[serde(default)]
    pub rules: RuleSet,
    /// The targets that make sense; all, unless stated.
    pub targets: Option<Vec<Target>>,
    /// The targets that this method is known to answer wrongly: its finding, not a failure.
    #[serde(default)]
    pub wrong: Vec<Target>,
    /// The content of a file at the path of the first, the middle and the last rule.
    pub document: Option<String>,
    /// The right answer for the path of a rule, where it differs from the experiment's.
    pub expect: Option<Answer>,
    /// The rules in Apache's language, read by Apache and milepost.
    pub apache: Option<Text>,
    /// The rules in nginx's language.
    pub nginx: Option<NginxText>,
    /// Other files that the rules refer to.
    #[serde(default)]
    pub files: Vec<DataFile>,
}

impl Method {
    /// Returns how many rules the method has when the run has `rules`.
    pub fn rule_count(&self, rules: u32) -> u32 {
        match self.rules {
            RuleSet::All => rules,
            RuleSet::Last => 1,
            RuleSet::None => 0,
        }
    }
}

/// For which rules a method has a text.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum RuleSet {
    /// For every rule from 1 to N.
    #[default]
    All,
    /// Only for rule N.
    Last,
    /// For none.
    None,
}

/// Text of a configuration: once before, once for each rule, once after.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Text {
    /// Stands once, before the rules.
    pub before: Option<String>,
    /// Stands once for each rule, with [`NUMBER`].
    pub each: Option<String>,
    /// Stands once, after the rules.
    pub after: Option<String>,
}

/// Text of nginx's configuration, which has two places for it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NginxText {
    /// Inside `http`, before the server.
    #[serde(default)]
    pub http: Text,
    /// Stands once inside `server`, before the rules.
    pub before: Option<String>,
    /// Stands inside `server` once for each rule, with [`NUMBER`].
    pub each: Option<String>,
    /// Stands once inside `server`, after the rules.
    pub after: Option<String>,
}

impl NginxText {
    /// Returns the text inside `server`.
    pub fn server(&self) -> Text {
        Text { before: self.before.clone(), each: self.each.clone(), after: self.after.clone() }
    }
}

/// A file that rules refer to.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataFile {
    /// Its name in the directory of the method.
    pub name: String,
    /// Its line for each rule, with [`NUMBER`].
    pub each: String,
}

/// A question that the report answers: how do these compare with that one?
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// The headline.
    pub title: String,
    /// Patterns of `server/method`.
    pub of: Vec<String>,
    /// One `server/method`.
    pub against: String,
    /// The target of the trials compared.
    pub target: Target,
    /// The connections of the trials compared.
    pub connections: u32,
    /// What is compared.
    pub metric: Metric,
    /// Asks whether the two are the same within this many per cent.
    pub same_percent: Option<f64>,
}

/// One number of a trial.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq, Hash)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Requests answered per second.
    RequestsPerSecond,
    /// Microseconds from the begin of one request to that of the next, per connection.
    TimePerRequestUs,
    /// Microseconds of CPU that the server's processes spend on a request.
    ServerCpuUsPerRequest,
}

/// An experiment that cannot be run as it is written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExperimentError {
    /// The text is not an experiment.
    #[error("not an experiment: {0}")]
    Syntax(#[source] toml::de::Error),
    /// A name cannot be a file name.
    #[error("the name \"{0}\" is not made of lower-case letters, digits and `-`")]
    Name(String),
    /// Two methods have one name.
    #[error("two methods have the name \"{0}\"")]
    NameTwice(String),
    /// A number is outside of its limits.
    #[error("{what} is {value}, not within {min} to {max}")]
    Limit {
        /// What the number counts.
        what: &'static str,
        /// The number.
        value: u64,
        /// Its smallest value.
        min: u64,
        /// Its largest value.
        max: u64,
    },
    /// There is nothing to do.
    #[error("no {0}")]
    Nothing(&'static str),
    /// A reference names no method.
    #[error("{what} names \"{name}\", which is no server/method of the experiment")]
    Unknown {
        /// Where the reference stands.
        what: &'static str,
        /// What it says.
        name: String,
    },
    /// A path is not one.
    #[error("the path \"{0}\" does not begin with `/`")]
    Path(String),
}

impl Experiment {
    /// Reads and checks the text of an experiment.
    ///
    /// # Errors
    ///
    /// [`ExperimentError`], for the first thing that is wrong.
    pub fn parse(text: &str) -> Result<Self, ExperimentError> {
        let experiment: Self = toml::from_str(text).map_err(ExperimentError::Syntax)?;
        experiment.check()?;
        Ok(experiment)
    }

    /// Returns the method called `name`.
    pub fn method(&self, name: &str) -> Option<&Method> {
        self.methods.iter().find(|method| method.name == name)
    }

    /// Returns the path to ask for.
    pub fn path(&self, target: Target, rules: u32) -> String {
        match target.rule(rules) {
            Some(rule) => numbered(&self.paths.rule, rule),
            None => self.paths.miss.clone(),
        }
    }

    /// Returns the right answer of `method` for `target`.
    pub fn answer(&self, method: &Method, target: Target, rules: u32) -> Answer {
        let Some(rule) = target.rule(rules) else { return self.expect.miss.clone() };
        let stated = method.expect.as_ref().unwrap_or(&self.expect.rule);
        Answer {
            location: stated.location.as_ref().map(|location| numbered(location, rule)),
            ..stated.clone()
        }
    }

    /// Checks a number of rules against the limits of this experiment.
    pub(crate) fn check_rules(&self, rules: u32) -> Result<(), ExperimentError> {
        let min = self.rules_min.into();
        check_range("the number of rules", rules.into(), min, RULES_MAX.into())
    }

    fn check(&self) -> Result<(), ExperimentError> {
        check_name(&self.name)?;
        check_limit("rules_min", self.rules_min.into(), RULES_MAX.into())?;
        self.check_rules(self.rules)?;
        for path in [&self.paths.rule, &self.paths.miss] {
            if !path.starts_with('/') {
                return Err(ExperimentError::Path(path.clone()));
            }
        }
        self.run.check()?;
        self.quick.check()?;
        if self.methods.is_empty() {
            return Err(ExperimentError::Nothing("methods"));
        }
        for (at, method) in self.methods.iter().enumerate() {
            check_name(&method.name)?;
            if self.methods[..at].iter().any(|earlier| earlier.name == method.name) {
                return Err(ExperimentError::NameTwice(method.name.clone()));
            }
            method.files.iter().try_for_each(|file| check_file_name(&file.name))?;
        }
        self.check_reference("control", &self.control)?;
        self.comparisons
            .iter()
            .try_for_each(|question| self.check_reference("a comparison", &question.against))
    }

    fn check_reference(&self, what: &'static str, name: &str) -> Result<(), ExperimentError> {
        let known = name.split_once('/').is_some_and(|(_, method)| self.method(method).is_some());
        if known { Ok(()) } else { Err(ExperimentError::Unknown { what, name: name.to_owned() }) }
    }
}

impl Schedule {
    /// Checks the numbers against their limits.
    pub(crate) fn check(&self) -> Result<(), ExperimentError> {
        check_limit("the number of rounds", self.rounds.into(), ROUNDS_MAX.into())?;
        check_limit("trial_ms", self.trial_ms, TRIAL_MS_MAX)?;
        check_limit("warm_up_ms", self.warm_up_ms, TRIAL_MS_MAX)?;
        if self.loads.iter().all(|load| load.targets.is_empty()) {
            return Err(ExperimentError::Nothing("loads"));
        }
        let connections = |load: &Load| {
            check_limit("connections", load.connections.into(), CONNECTIONS_MAX.into())
        };
        self.loads.iter().try_for_each(connections)
    }
}

/// Checks a number that must be at least 1.
pub(crate) fn check_limit(what: &'static str, value: u64, max: u64) -> Result<(), ExperimentError> {
    check_range(what, value, 1, max)
}

fn check_range(what: &'static str, value: u64, min: u64, max: u64) -> Result<(), ExperimentError> {
    if (min..=max).contains(&value) {
        Ok(())
    } else {
        Err(ExperimentError::Limit { what, value, min, max })
    }
}

fn one() -> u32 {
    1
}

/// Puts the number of a rule into `text`.
pub(crate) fn numbered(text: &str, rule: u32) -> String {
    text.replace(NUMBER, &rule.to_string())
}

fn check_name(name: &str) -> Result<(), ExperimentError> {
    let fit = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if !name.is_empty() && name.bytes().all(fit) {
        Ok(())
    } else {
        Err(ExperimentError::Name(name.to_owned()))
    }
}

/// A data file stands in the method's directory and cannot leave it: no `/`, no leading dot.
fn check_file_name(name: &str) -> Result<(), ExperimentError> {
    if name.starts_with('.') {
        return Err(ExperimentError::Name(name.to_owned()));
    }
    check_name(&name.replace('.', "-")).map_err(|_| ExperimentError::Name(name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The smallest experiment.
    const SMALL: &str = r#"
        name = "small"
        title = "Small"
        question = "Is it small?"
        rules = 20
        control = "apache/redirect"
        paths = { rule = "/test/@N@", miss = "/none" }
        expect.rule = { status = 301, location = "http://h/new/@N@" }
        expect.miss = { status = 404 }
        run = { rounds = 1, trial_ms = 1, warm_up_ms = 1, loads = [{ connections = 1, targets = ["last"] }] }
        quick = { rounds = 1, trial_ms = 1, warm_up_ms = 1, loads = [{ connections = 1, targets = ["last"] }] }
        [[methods]]
        name = "redirect"
        title = "Redirect"
        apache.each = "Redirect 301 /test/@N@ http://h/new/@N@"
    "#;

    #[test]
    fn what_is_built_in_can_be_read() {
        for (name, text) in BUILT_IN {
            let experiment = Experiment::parse(text).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(experiment.name, *name);
        }
    }

    #[test]
    fn targets_are_rules() {
        let rules = |n| {
            [Target::First, Target::Middle, Target::Last, Target::Miss].map(|target| target.rule(n))
        };
        assert_eq!(rules(10_000), [Some(1), Some(5_000), Some(10_000), None]);
        assert_eq!(rules(1), [Some(1), Some(1), Some(1), None]);
    }

    #[test]
    fn answers_carry_the_number_of_the_rule() {
        let experiment = Experiment::parse(SMALL).expect("a valid experiment");
        let method = &experiment.methods[0];
        let answer = experiment.answer(method, Target::Last, 20);
        assert_eq!(answer.location.as_deref(), Some("http://h/new/20"));
        assert_eq!(experiment.path(Target::Last, 20), "/test/20");
        assert_eq!(experiment.answer(method, Target::Miss, 20).status, 404);
        assert_eq!(experiment.path(Target::Miss, 20), "/none");
    }

    #[test]
    fn what_is_wrong_is_named() {
        check("rules = 20", "rules = 0", "the number of rules is 0, not within 1 to 1000000");
        check(
            "rounds = 1,",
            "rounds = 1001,",
            "the number of rounds is 1001, not within 1 to 1000",
        );
        check("connections = 1,", "connections = 0,", "connections is 0, not within 1 to 1000");
        check("trial_ms = 1,", "trial_ms = 0,", "trial_ms is 0, not within 1 to 600000");
        check(r#"targets = ["last"]"#, "targets = []", "no loads");
        check(r#"name = "small""#, r#"name = "../x""#, "the name \"../x\" is not made of");
        check("apache/redirect", "apache/other", "control names \"apache/other\"");
        check(r#""/none""#, r#""none""#, "the path \"none\" does not begin with `/`");
        check("apache.each", "apache.every", "not an experiment: TOML parse error at line 15");
    }

    #[track_caller]
    fn check(from: &str, to: &str, message: &str) {
        let text = SMALL.replace(from, to);
        assert_ne!(text, SMALL, "nothing was changed");
        let error = Experiment::parse(&text).expect_err("a faulty experiment").to_string();
        assert!(error.starts_with(message), "{error}");
    }
}
