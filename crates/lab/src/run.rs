//! Runs an experiment: writes the configurations, starts the servers, asks each of them every
//! question once, measures round after round, and stops what it started.
//!
//! All servers run at the same time and wait; one at a time is asked. Each trial opens connections
//! of its own, warms them up with others beforehand, and reads the server's CPU account before and
//! after, at rest.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use milepost_load as load;

use crate::account::Account;
use crate::cpu::{CpuTime, Reading};
use crate::environment::Environment;
use crate::experiment::{Answer, Experiment, Target};
use crate::plan::{Cell, Options, Plan, PlanError, Planned, has_target};
use crate::port;
use crate::process::{Fleet, Process, StartError};
use crate::results::{
    Alternative, ErrorExample, Results, ServiceTimes, Ticks, Trial, UserSystem, Volume,
    WrongExample,
};
use crate::server::{Missing, Server, ServerKind, Setup, Syntax};
use crate::site::{Site, make_directory, write_file};
use crate::workspace::{Workspace, WorkspaceError};

/// How often ports are looked for, when somebody takes one before its server does.
const START_TRIES: usize = 3;

/// What a run needs to know beyond the experiment.
#[derive(Clone, Debug)]
pub struct Request {
    /// What the user asks for.
    pub options: Options,
    /// The text of the experiment, which is kept beside the result.
    pub experiment_text: String,
    /// Where the result goes.
    pub directory: PathBuf,
    /// The program that serves as milepost.
    pub milepost: PathBuf,
    /// The command line, for the record.
    pub command: Vec<String>,
}

/// What happens during a run.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A server takes part.
    Found(&'a Server),
    /// A server does not take part.
    Missing(&'a Missing),
    /// The files of the servers stand elsewhere, because their account may not enter the result
    /// directory.
    Elsewhere(&'a Path),
    /// The servers are being started.
    Starting {
        /// How many.
        servers: usize,
        /// The seed of the run.
        seed: u64,
    },
    /// An answer before the measurement was not the right one.
    Wrong {
        /// The answer.
        example: &'a WrongExample,
        /// Whether the experiment says that it will be wrong.
        expected: bool,
    },
    /// A trial is done.
    Trial {
        /// Trials done.
        done: usize,
        /// Trials of the run.
        of: usize,
        /// The round of the last one, from 1.
        round: u32,
    },
}

/// A run that did not come to its end. Every server that it started is stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// There is no plan.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The directories cannot be made.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// A file cannot be written.
    #[error("{path}: {source}")]
    Write {
        /// The file.
        path: String,
        /// Why not.
        source: io::Error,
    },
    /// There are no free ports.
    #[error("no ports for the servers: {0}")]
    Ports(#[source] io::Error),
    /// A server does not run.
    #[error(transparent)]
    Start(StartError),
    /// The load could not be put on a server.
    #[error("{name}: {source}")]
    Load {
        /// The alternative.
        name: String,
        /// Why not.
        source: load::RunError,
    },
    /// The server gives no complete answer.
    #[error("{name} does not answer: {message}")]
    Silent {
        /// The alternative.
        name: String,
        /// What happened.
        message: String,
    },
    /// The CPU account cannot be read.
    #[error("{name}: no CPU account of process {process}: {source}")]
    Cpu {
        /// The alternative.
        name: String,
        /// Its process.
        process: u32,
        /// Why not.
        source: io::Error,
    },
    /// The run was told to stop.
    #[error("interrupted")]
    Interrupted,
}

impl From<StartError> for RunError {
    fn from(error: StartError) -> Self {
        match error {
            StartError::Interrupted => Self::Interrupted,
            error => Self::Start(error),
        }
    }
}

/// Runs `experiment` and returns what it found; nothing but configurations is written yet.
///
/// [`load::Control::stop`] ends it within a fraction of a second.
///
/// # Errors
///
/// [`RunError`], with every server stopped.
pub fn run(
    experiment: &Experiment,
    request: &Request,
    control: &load::Control,
    observe: &mut dyn FnMut(Event<'_>),
) -> Result<Results, RunError> {
    let started = Instant::now();
    let mut environment = Environment::observe(request.command.clone());
    let machine_time = load::MachineTime::now();

    let (servers, missing) = find_servers(request);
    servers.iter().for_each(|server| observe(Event::Found(server)));
    missing.iter().for_each(|missing| observe(Event::Missing(missing)));
    let plan = Plan::new(experiment, &request.options, &servers)?;

    let account = Account::for_workers();
    let workspace = Workspace::prepare(&request.directory, account.is_some())?;
    write(&request.directory.join("experiment.toml"), &request.experiment_text)?;
    if workspace.is_elsewhere() {
        observe(Event::Elsewhere(workspace.root()));
    }

    let bench =
        Bench { experiment, plan: &plan, servers: &servers, workspace: &workspace, control };
    let mut stands = bench.build(account.as_ref())?;
    workspace.keep().map_err(RunError::Workspace)?;
    observe(Event::Starting { servers: stands.len(), seed: plan.seed });
    let mut fleet = bench.start(&stands);
    for _ in 1..START_TRIES {
        // Somebody was faster: other ports may be had.
        if !matches!(fleet, Err(RunError::Start(StartError::AddressInUse { .. }))) {
            break;
        }
        stands = bench.build(account.as_ref())?;
        fleet = bench.start(&stands);
    }
    let mut fleet = fleet?;
    bench.ask_all(&stands, observe)?;
    let mut notes = Notes::default();
    let trials = bench.measure_all(&stands, &mut fleet, &mut notes, observe)?;
    drop(fleet);

    environment.steal_percent =
        machine_time.and_then(|before| load::MachineTime::now()?.steal_percent(before));
    let mut results = Results {
        experiment: experiment.name.clone(),
        title: experiment.title.clone(),
        question: experiment.question.clone(),
        seed: plan.seed,
        rules: plan.rules,
        rounds: plan.schedule.rounds,
        volume: plan.volume,
        warm_up_ms: plan.schedule.warm_up_ms,
        seconds: started.elapsed().as_secs_f64(),
        environment,
        alternatives: stands.into_iter().map(|stand| stand.alternative).collect(),
        missing_servers: missing,
        trials,
        wrong_answer_examples: notes.wrong,
        error_examples: notes.errors,
        warnings: Vec::new(),
        comparisons: experiment.comparisons.clone(),
    };
    results.warnings = crate::doubt::doubts(&results);
    Ok(results)
}

fn find_servers(request: &Request) -> (Vec<Server>, Vec<Missing>) {
    let wanted = ServerKind::ALL.into_iter().filter(|kind| request.options.wants(*kind));
    let (mut servers, mut missing) = (Vec::new(), Vec::new());
    for kind in wanted {
        match Server::find(kind, &request.milepost) {
            Ok(server) => servers.push(server),
            Err(reason) => missing.push(reason),
        }
    }
    (servers, missing)
}

/// What stays the same during a run.
struct Bench<'a> {
    experiment: &'a Experiment,
    plan: &'a Plan,
    servers: &'a [Server],
    workspace: &'a Workspace,
    control: &'a load::Control,
}

/// One alternative with its files and its address.
struct Stand {
    alternative: Alternative,
    address: SocketAddr,
    directory: PathBuf,
    configuration: PathBuf,
}

/// What is worth an example.
#[derive(Default)]
struct Notes {
    wrong: Vec<WrongExample>,
    errors: Vec<ErrorExample>,
}

impl Bench<'_> {
    /// Writes the files of every alternative.
    fn build(&self, account: Option<&Account>) -> Result<Vec<Stand>, RunError> {
        let root = self.workspace.root();
        for (at, method) in self.experiment.methods.iter().enumerate() {
            if self.plan.alternatives.iter().any(|alternative| alternative.method == at) {
                let site = Site::new(root, method);
                site.write(self.experiment, method, self.plan.rules).map_err(|source| {
                    RunError::Write { path: site.documents().display().to_string(), source }
                })?;
            }
        }
        let addresses = port::free(self.plan.alternatives.len()).map_err(RunError::Ports)?;
        let stand = |(planned, address)| self.stand(planned, address, account);
        self.plan.alternatives.iter().zip(addresses).map(stand).collect()
    }

    fn stand(
        &self,
        planned: &Planned,
        address: SocketAddr,
        account: Option<&Account>,
    ) -> Result<Stand, RunError> {
        let server = &self.servers[planned.server];
        let method = &self.experiment.methods[planned.method];
        let site = Site::new(self.workspace.root(), method);
        let directory = self.workspace.root().join("servers").join(planned.name.replace('/', "-"));
        make_directory(&directory)
            .map_err(|source| RunError::Write { path: directory.display().to_string(), source })?;
        let connections_max = self.plan.connections_max();
        let setup = Setup { directory: &directory, address, site: &site, account, connections_max };
        let configuration = directory.join(server.configuration_name());
        write(&configuration, &server.configuration(&setup))?;

        let rule_files = match server.kind.syntax() {
            Syntax::Apache => vec![site.apache_rules()],
            Syntax::Nginx => vec![site.nginx_http(), site.nginx_server()],
        };
        let command = server.command(&configuration);
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        let alternative = Alternative {
            name: planned.name.clone(),
            server: server.kind,
            server_version: server.version.clone(),
            method: method.name.clone(),
            method_title: method.title.clone(),
            rules: method.rule_count(self.plan.rules),
            control_of: planned.control_of.clone(),
            expected_wrong: method.wrong.clone(),
            command: words.map(|word| word.to_string_lossy().into_owned()).collect(),
            configuration: self.workspace.relative(&configuration),
            rule_files: rule_files.iter().map(|file| self.workspace.relative(file)).collect(),
        };
        Ok(Stand { alternative, address, directory, configuration })
    }

    /// Starts every server and waits until all of them take connections.
    fn start(&self, stands: &[Stand]) -> Result<Fleet, RunError> {
        let mut fleet = Fleet::default();
        for (stand, planned) in stands.iter().zip(&self.plan.alternatives) {
            if self.control.is_stopped() {
                return Err(RunError::Interrupted);
            }
            let command = self.servers[planned.server].command(&stand.configuration);
            let name = &stand.alternative.name;
            let process = Process::start(name, command, stand.address, &stand.directory)?;
            fleet.processes.push(process);
        }
        for process in &mut fleet.processes {
            process.wait_ready(&|| self.control.is_stopped())?;
        }
        Ok(fleet)
    }

    /// Asks every server for every target once, before anything is measured.
    fn ask_all(
        &self,
        stands: &[Stand],
        observe: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), RunError> {
        let mut targets: Vec<Target> =
            self.plan.schedule.loads.iter().flat_map(|load| load.targets.clone()).collect();
        targets.sort_unstable();
        targets.dedup();
        for (at, planned) in self.plan.alternatives.iter().enumerate() {
            let method = &self.experiment.methods[planned.method];
            for &target in targets.iter().filter(|target| has_target(method, **target)) {
                let cell = Cell { alternative: at, target, connections: 1 };
                let report = self.send(&stands[at], cell, load::Stop::Requests(1))?;
                if let Some(error) = report.errors_by_kind.first() {
                    let name = planned.name.clone();
                    return Err(RunError::Silent { name, message: error.example.clone() });
                }
                let expected = method.wrong.contains(&target);
                if let Some(example) = wrong_example(&planned.name, cell, &report) {
                    observe(Event::Wrong { example: &example, expected });
                }
            }
        }
        Ok(())
    }

    /// Does all trials of all rounds.
    fn measure_all(
        &self,
        stands: &[Stand],
        fleet: &mut Fleet,
        notes: &mut Notes,
        observe: &mut dyn FnMut(Event<'_>),
    ) -> Result<Vec<Trial>, RunError> {
        let order = self.plan.order(self.experiment);
        let of = order.iter().map(Vec::len).sum();
        let mut samples = Vec::with_capacity(of);
        for (cells, round) in order.into_iter().zip(1..) {
            for cell in cells {
                let process = &mut fleet.processes[cell.alternative];
                let sample =
                    self.measure(&stands[cell.alternative], process, cell, round, notes)?;
                samples.push(sample);
                observe(Event::Trial { done: samples.len(), of, round });
            }
        }
        Ok(split_cpu(samples))
    }

    /// Does one trial.
    fn measure(
        &self,
        stand: &Stand,
        process: &mut Process,
        cell: Cell,
        round: u32,
        notes: &mut Notes,
    ) -> Result<(Trial, CpuTime), RunError> {
        let name = &stand.alternative.name;
        let read = |process: u32| {
            Reading::at_rest(process).map_err(|source| RunError::Cpu {
                name: name.clone(),
                process,
                source,
            })
        };
        self.send(stand, cell, load::Stop::Duration(self.plan.schedule.warm_up()))?;
        process.check_alive()?;
        let before = read(process.id())?;
        let report = self.send(stand, cell, stop(self.plan.volume))?;
        process.check_alive()?;
        let used = read(process.id())?.since(&before);

        let known = |(alternative, target, connections): (&String, Target, u32)| {
            alternative == name && target == cell.target && connections == cell.connections
        };
        if let Some(example) = wrong_example(name, cell, &report)
            && !notes.wrong.iter().any(|w| known((&w.alternative, w.target, w.connections)))
        {
            notes.wrong.push(example);
        }
        if let Some(error) = report.errors_by_kind.first()
            && !notes.errors.iter().any(|e| known((&e.alternative, e.target, e.connections)))
        {
            notes.errors.push(ErrorExample {
                alternative: name.clone(),
                target: cell.target,
                connections: cell.connections,
                message: error.example.clone(),
            });
        }
        Ok((trial(name, cell, round, &report, used), used))
    }

    /// Puts load on one server.
    fn send(&self, stand: &Stand, cell: Cell, stop: load::Stop) -> Result<load::Report, RunError> {
        let method = &self.experiment.methods[self.plan.alternatives[cell.alternative].method];
        let path = self.experiment.path(cell.target, self.plan.rules);
        let answer = self.experiment.answer(method, cell.target, self.plan.rules);
        let target = load::Target::new(stand.address, stand.address.to_string(), path)
            .expect(expectation(&answer));
        let mut plan = load::Plan::new(vec![target]);
        plan.connections = cell.connections as usize;
        plan.stop = stop;
        let report = load::run(&plan, self.control);
        if self.control.is_stopped() {
            return Err(RunError::Interrupted);
        }
        let name = stand.alternative.name.clone();
        report.map_err(|source| RunError::Load { name, source })
    }
}

fn stop(volume: Volume) -> load::Stop {
    match volume {
        Volume::Milliseconds(time) => load::Stop::Duration(Duration::from_millis(time)),
        Volume::Requests(requests) => load::Stop::Requests(requests),
    }
}

fn expectation(answer: &Answer) -> load::Expectation {
    let mut expectation = load::Expectation::status(answer.status);
    expectation.location = answer.location.clone().map(String::into_bytes);
    expectation.content_bytes = answer.length;
    expectation
}

fn wrong_example(name: &str, cell: Cell, report: &load::Report) -> Option<WrongExample> {
    report.wrong_answer_examples.first().map(|wrong| WrongExample {
        alternative: name.to_owned(),
        target: cell.target,
        connections: cell.connections,
        url: wrong.url.clone(),
        expected: wrong.expected.clone(),
        got: wrong.got.clone(),
    })
}

fn trial(name: &str, cell: Cell, round: u32, report: &load::Report, used: CpuTime) -> Trial {
    Trial {
        alternative: name.to_owned(),
        target: cell.target,
        connections: cell.connections,
        round,
        requests: report.requests,
        wrong_answers: report.wrong_answers,
        errors: report.errors,
        unanswered: report.unanswered,
        seconds: report.seconds,
        requests_per_second: report.requests_per_second,
        // Known when the ticks of all rounds are: see `split_cpu`.
        server_cpu_us_per_request: UserSystem { user: 0.0, system: 0.0 },
        server_cpu_ticks: Ticks { user: used.user_ticks, system: used.system_ticks },
        client_cpu_us_per_request: report.client_cpu_us_per_request,
        client_busiest_thread: report.generator.busiest_thread,
        service_ns: service_times(&report.service_ns),
    }
}

fn service_times(times: &load::Times) -> Option<ServiceTimes> {
    Some(ServiceTimes {
        p50: times.p50?,
        p90: times.p90?,
        p99: times.p99?,
        p999: times.p999?,
        max: times.max?,
        mean: times.mean?,
    })
}

/// Splits the CPU time of each trial into user and system.
///
/// A trial sees a handful of clock ticks, too few for a share. All rounds of a cell do the same
/// work, so their ticks are counted together.
fn split_cpu(samples: Vec<(Trial, CpuTime)>) -> Vec<Trial> {
    let cell = |trial: &Trial| (trial.alternative.clone(), trial.target, trial.connections);
    let mut ticks: HashMap<_, Ticks> = HashMap::new();
    for (trial, used) in &samples {
        let ticks = ticks.entry(cell(trial)).or_default();
        ticks.user += used.user_ticks;
        ticks.system += used.system_ticks;
    }
    let split = |(mut trial, used): (Trial, CpuTime)| {
        let Ticks { user, system } = ticks[&cell(&trial)];
        let user_share =
            if user + system == 0 { 0.5 } else { user as f64 / (user + system) as f64 };
        // What was under way at the end has used the server's time too.
        let sent = (trial.requests + trial.errors + trial.unanswered).max(1);
        let total = used.nanoseconds as f64 / 1_000.0 / sent as f64;
        trial.server_cpu_us_per_request =
            UserSystem { user: total * user_share, system: total * (1.0 - user_share) };
        trial
    };
    samples.into_iter().map(split).collect()
}

fn write(path: &Path, text: &str) -> Result<(), RunError> {
    write_file(path, text)
        .map_err(|source| RunError::Write { path: path.display().to_string(), source })
}
