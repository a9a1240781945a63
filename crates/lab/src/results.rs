//! What a run leaves behind: `result.json`, described field by field in `docs/result-format.md`.
//!
//! Names stay; new ones may come. The file holds the raw trials, so that every number of the report
//! can be made again from it: [`crate::analysis`] reads nothing else.

use std::fs;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::environment::Environment;
use crate::experiment::{Question, Target};
use crate::server::{Missing, ServerKind};
use crate::site::write_file;

/// The file in the result directory.
pub const RESULT_FILE: &str = "result.json";

/// Everything that a run found.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct Results {
    /// The name of the experiment.
    pub experiment: String,
    /// The experiment's headline.
    pub title: String,
    /// What it wants to know.
    pub question: String,
    /// The seed of the order of trials and of the intervals.
    pub seed: u64,
    /// How many rules a method has, unless it says otherwise.
    pub rules: u32,
    /// How often each trial was repeated.
    pub rounds: u32,
    /// How much each trial sent.
    pub volume: Volume,
    /// How long each trial sent beforehand, in milliseconds.
    pub warm_up_ms: u64,
    /// How long the run took, in seconds.
    pub seconds: f64,
    /// The machine, the programs and the command.
    pub environment: Environment,
    /// Server × method.
    pub alternatives: Vec<Alternative>,
    /// Servers that did not take part.
    pub missing_servers: Vec<Missing>,
    /// The samples.
    pub trials: Vec<Trial>,
    /// The first wrong answer of each alternative, target and number of connections.
    pub wrong_answer_examples: Vec<WrongExample>,
    /// The first failure of each alternative, target and number of connections.
    pub error_examples: Vec<ErrorExample>,
    /// Doubts about the measurement.
    pub warnings: Vec<Warning>,
    /// What the report compares.
    pub comparisons: Vec<Question>,
}

/// How much a trial sends.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Volume {
    /// For this many milliseconds.
    Milliseconds(u64),
    /// This many requests.
    Requests(u64),
}

/// One server with one method.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct Alternative {
    /// `server/method`, and `server/method/control` for the control.
    pub name: String,
    /// The server.
    pub server: ServerKind,
    /// What the server says of its version.
    pub server_version: String,
    /// The method.
    pub method: String,
    /// What tables call the method.
    pub method_title: String,
    /// How many rules it has.
    pub rules: u32,
    /// For the control: the alternative that this is a second process of.
    pub control_of: Option<String>,
    /// Targets that the experiment declares to be answered wrongly.
    pub expected_wrong: Vec<Target>,
    /// The command that started it.
    pub command: Vec<String>,
    /// Its configuration, below the result directory.
    pub configuration: String,
    /// Its rules, below the result directory.
    pub rule_files: Vec<String>,
}

/// One sample.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct Trial {
    /// The name of the alternative.
    pub alternative: String,
    /// Which rule was asked for.
    pub target: Target,
    /// Persistent connections, each with one request at a time.
    pub connections: u32,
    /// The round, from 1.
    pub round: u32,
    /// Complete answers, right or wrong.
    pub requests: u64,
    /// Wrong answers among them.
    pub wrong_answers: u64,
    /// Requests without a complete answer.
    pub errors: u64,
    /// Requests that were under way when the time was over.
    pub unanswered: u64,
    /// Length of the measured part, in seconds.
    pub seconds: f64,
    /// Right answers a second.
    pub requests_per_second: f64,
    /// CPU time of the server's processes for each request sent.
    pub server_cpu_us_per_request: UserSystem,
    /// Clock ticks behind the split into user and system.
    pub server_cpu_ticks: Ticks,
    /// CPU time of the load generator for each request.
    pub client_cpu_us_per_request: f64,
    /// Share of one core that the generator's busiest thread used; near 1 it may be the limit.
    pub client_busiest_thread: f64,
    /// From sending a request to the end of its answer; null when no answer was right.
    pub service_ns: Option<ServiceTimes>,
}

/// Microseconds in user mode and in the kernel.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq)]
pub struct UserSystem {
    /// In user mode.
    pub user: f64,
    /// In the kernel.
    pub system: f64,
}

impl UserSystem {
    /// Returns the sum.
    pub fn total(self) -> f64 {
        self.user + self.system
    }
}

/// Clock ticks in user mode and in the kernel.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, PartialEq, Eq)]
pub struct Ticks {
    /// In user mode.
    pub user: u64,
    /// In the kernel.
    pub system: u64,
}

/// Quantiles of service time, in nanoseconds.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq)]
pub struct ServiceTimes {
    /// Median.
    pub p50: u64,
    /// 90th percentile.
    pub p90: u64,
    /// 99th percentile.
    pub p99: u64,
    /// 99.9th percentile.
    pub p999: u64,
    /// The longest.
    pub max: u64,
    /// Arithmetic mean.
    pub mean: f64,
}

/// A wrong answer.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
pub struct WrongExample {
    /// The name of the alternative.
    pub alternative: String,
    /// Which rule was asked for.
    pub target: Target,
    /// Persistent connections.
    pub connections: u32,
    /// The target URI.
    pub url: String,
    /// What should have come.
    pub expected: String,
    /// What came.
    pub got: String,
}

/// A request without a complete answer.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
pub struct ErrorExample {
    /// The name of the alternative.
    pub alternative: String,
    /// Which rule was asked for.
    pub target: Target,
    /// Persistent connections.
    pub connections: u32,
    /// What happened.
    pub message: String,
}

/// A doubt about the measurement.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
pub struct Warning {
    /// What was seen.
    pub message: String,
    /// What to try.
    pub advice: String,
}

/// A result that cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The file cannot be read.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: String,
        /// Why not.
        source: io::Error,
    },
    /// The file is not a result.
    #[error("{path} is not the result of an experiment: {source}")]
    Syntax {
        /// The file.
        path: String,
        /// Why not.
        source: serde_json::Error,
    },
}

impl Results {
    /// Reads [`RESULT_FILE`] from `directory`.
    ///
    /// # Errors
    ///
    /// [`ReadError`], with the path.
    pub fn read(directory: &Path) -> Result<Self, ReadError> {
        let file = directory.join(RESULT_FILE);
        let path = file.display().to_string();
        match fs::read(&file) {
            Err(source) => Err(ReadError::Io { path, source }),
            Ok(bytes) => {
                serde_json::from_slice(&bytes).map_err(|source| ReadError::Syntax { path, source })
            }
        }
    }

    /// Writes [`RESULT_FILE`] into `directory`.
    ///
    /// # Errors
    ///
    /// When the file cannot be written.
    pub fn write(&self, directory: &Path) -> io::Result<()> {
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        write_file(&directory.join(RESULT_FILE), &text)
    }

    /// Returns the alternative called `name`.
    pub fn alternative(&self, name: &str) -> Option<&Alternative> {
        self.alternatives.iter().find(|alternative| alternative.name == name)
    }

    /// Returns the trials of one cell, in the order of their rounds.
    pub fn trials_of<'a>(
        &'a self,
        alternative: &'a str,
        target: Target,
        connections: u32,
    ) -> impl Iterator<Item = &'a Trial> + 'a {
        self.trials.iter().filter(move |trial| {
            trial.alternative == alternative
                && trial.target == target
                && trial.connections == connections
        })
    }

    /// Tells whether an answer was wrong that should be right, or right that should be wrong, or a
    /// request failed: the command then ends with a mismatch.
    pub fn has_mismatch(&self) -> bool {
        self.trials.iter().any(|trial| {
            let expected = self
                .alternative(&trial.alternative)
                .is_some_and(|alternative| alternative.expected_wrong.contains(&trial.target));
            trial.errors > 0 || (trial.wrong_answers > 0) != expected
        })
    }
}
