//! `milepost lab`: runs an experiment on real servers and shows what came of it.
//!
//! Tables go to stdout, progress to stderr. SIGINT, SIGTERM and SIGHUP end a run in order, so that
//! no server stays behind.

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;

use anyhow::{Context, anyhow};
use clap::Subcommand;
use milepost_lab::experiment::{BUILT_IN, Experiment};
use milepost_lab::results::{RESULT_FILE, Results};
use milepost_lab::{Event, Options, Request, ServerKind, report, table};
use milepost_load::Control;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// An answer was wrong that should be right, or the other way round.
const EXIT_MISMATCH: u8 = 1;

/// Where results go when nothing else is asked for.
const RESULTS_DIRECTORY: &str = "lab-results";

/// How many results of one experiment and day get a number of their own.
const RESULTS_OF_A_DAY_MAX: u32 = 10_000;

/// The arguments of `milepost lab`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run an experiment and write its result.
    ///
    /// Starts each server that is found on this machine with a configuration of its own, checks
    /// every answer, measures in rounds of random order, and stops what it started.
    #[command(
        after_help = "Exit status: 0 done, 1 an answer was not what the experiment expects, \
                            2 could not do it."
    )]
    Run(RunArgs),
    /// List the experiments that milepost carries with it.
    List {
        /// Print a JSON array.
        #[arg(long)]
        json: bool,
    },
    /// Make report.html and the tables again from a result.
    Report {
        /// The directory of the result.
        #[arg(value_name = "DIR")]
        directory: PathBuf,
        /// Print result.json instead of the tables.
        #[arg(long)]
        json: bool,
    },
}

/// The arguments of `milepost lab run`.
#[derive(Debug, clap::Args)]
struct RunArgs {
    /// Name of a built-in experiment, or a TOML file.
    #[arg(value_name = "NAME|FILE.toml")]
    experiment: String,

    /// Finish within a minute: fewer, shorter rounds.
    #[arg(long)]
    quick: bool,

    /// Number of rules of each method.
    #[arg(long, value_name = "N")]
    rules: Option<u32>,

    /// Number of rounds; at least 6 carry an interval.
    #[arg(long, value_name = "N")]
    rounds: Option<u32>,

    /// Requests of each trial, instead of a time.
    #[arg(long, value_name = "N")]
    requests: Option<u64>,

    /// Only these alternatives: a method or server/method, with * for any text.
    #[arg(long, value_name = "PATTERN", value_delimiter = ',')]
    only: Vec<String>,

    /// Only these servers: milepost, milepost-scan, apache, nginx.
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = server)]
    servers: Vec<ServerKind>,

    /// Directory of the result [default: lab-results/<date>-<experiment>].
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Seed of the order of trials and of the intervals [default: a random one].
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Print result.json instead of the tables.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.command {
        Command::Run(args) => run_experiment(args),
        Command::List { json } => list(json),
        Command::Report { directory, json } => {
            let results = Results::read(&directory)?;
            show(&results, &directory, json)
        }
    }
}

fn run_experiment(args: RunArgs) -> anyhow::Result<ExitCode> {
    let json = args.json;
    let (experiment, request) = prepare(args)?;
    let control = Arc::new(Control::new());
    stop_on_signals(&control)?;
    let mut progress = Progress::new();
    let results =
        milepost_lab::run(&experiment, &request, &control, &mut |event| progress.show(event));
    progress.end();
    let results = results?;
    results
        .write(&request.directory)
        .with_context(|| request.directory.join(RESULT_FILE).display().to_string())?;
    show(&results, &request.directory, json)
}

/// Turns what was typed into what it means.
fn prepare(args: RunArgs) -> anyhow::Result<(Experiment, Request)> {
    let text = experiment_text(&args.experiment)?;
    let experiment = Experiment::parse(&text).with_context(|| args.experiment.clone())?;
    let directory = match args.out {
        Some(directory) => directory,
        None => default_directory(&experiment.name)?,
    };
    let options = Options {
        rules: args.rules,
        rounds: args.rounds,
        requests: args.requests,
        quick: args.quick,
        only: args.only,
        servers: args.servers,
        seed: args.seed.unwrap_or_else(milepost_lab::random_seed),
    };
    let milepost = std::env::current_exe().context("the path of this program is not known")?;
    let command = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    let request = Request { options, experiment_text: text, directory, milepost, command };
    Ok((experiment, request))
}

/// Reads a built-in experiment or a file; what looks like a path is one.
fn experiment_text(name: &str) -> anyhow::Result<String> {
    if let Some((_, text)) = BUILT_IN.iter().find(|(built_in, _)| *built_in == name) {
        return Ok((*text).to_owned());
    }
    if name.contains('/') || name.ends_with(".toml") {
        return fs::read_to_string(name).with_context(|| name.to_owned());
    }
    let known: Vec<&str> = BUILT_IN.iter().map(|(name, _)| *name).collect();
    Err(anyhow!("no experiment {name:?}; there is {}, or name a .toml file", known.join(", ")))
}

/// Returns a directory that does not exist yet, named after the day and the experiment.
fn default_directory(experiment: &str) -> anyhow::Result<PathBuf> {
    let day = milepost_lab::environment::today();
    let name = |number: u32| match number {
        1 => format!("{day}-{experiment}"),
        _ => format!("{day}-{experiment}-{number}"),
    };
    (1..=RESULTS_OF_A_DAY_MAX)
        .map(|number| Path::new(RESULTS_DIRECTORY).join(name(number)))
        .find(|directory| !directory.exists())
        .ok_or_else(|| anyhow!("{RESULTS_DIRECTORY} is full of results of {day}; choose --out"))
}

/// Writes the report and prints the tables, or the result as JSON.
fn show(results: &Results, directory: &Path, json: bool) -> anyhow::Result<ExitCode> {
    let page = directory.join(report::REPORT_FILE);
    report::write(results, directory).with_context(|| page.display().to_string())?;
    let mut out = io::stdout().lock();
    let written = if json {
        let file = directory.join(RESULT_FILE);
        let text = fs::read(&file).with_context(|| file.display().to_string())?;
        out.write_all(&text)
    } else {
        write!(out, "{}\nreport: {}\n", table::render(results), page.display())
    };
    written.context("stdout")?;
    let mismatch = results.has_mismatch();
    Ok(if mismatch { ExitCode::from(EXIT_MISMATCH) } else { ExitCode::SUCCESS })
}

fn list(json: bool) -> anyhow::Result<ExitCode> {
    let mut out = io::stdout().lock();
    let mut objects = Vec::new();
    for (name, text) in BUILT_IN {
        let experiment = Experiment::parse(text).with_context(|| (*name).to_owned())?;
        if json {
            let methods: Vec<&str> =
                experiment.methods.iter().map(|method| method.name.as_str()).collect();
            objects.push(serde_json::json!({
                "name": name,
                "title": experiment.title,
                "question": experiment.question,
                "methods": methods,
            }));
        } else {
            writeln!(out, "{name}\n    {}\n    {}", experiment.title, experiment.question)?;
            for method in &experiment.methods {
                writeln!(out, "        {:<26}{}", method.name, method.title)?;
            }
        }
    }
    if json {
        writeln!(out, "{}", serde_json::Value::from(objects))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn server(name: &str) -> Result<ServerKind, String> {
    ServerKind::by_name(name).ok_or_else(|| {
        let known: Vec<&str> = ServerKind::ALL.iter().map(|kind| kind.name()).collect();
        format!("the servers are {}", known.join(", "))
    })
}

/// Ends the run in order on the signals that ask a program to end.
fn stop_on_signals(control: &Arc<Control>) -> anyhow::Result<()> {
    let mut signals =
        Signals::new([SIGINT, SIGTERM, SIGHUP]).context("cannot watch for signals")?;
    let control = Arc::clone(control);
    thread::spawn(move || signals.forever().for_each(|_| control.stop()));
    Ok(())
}

/// Tells on stderr how far the run is: on a terminal in one line that changes, else line by line.
struct Progress {
    terminal: bool,
    round: u32,
    line_open: bool,
}

impl Progress {
    fn new() -> Self {
        Self { terminal: io::stderr().is_terminal(), round: 0, line_open: false }
    }

    fn show(&mut self, event: Event<'_>) {
        match event {
            Event::Found(server) => self.line(&format!(
                "{} {} ({})",
                server.kind.title(),
                server.version,
                server.program.display()
            )),
            Event::Missing(missing) => self.line(&format!(
                "{} does not take part: {}",
                missing.server.title(),
                missing.reason
            )),
            Event::Elsewhere(root) => self.line(&format!(
                "the servers' files stand in {}, for their account may not enter the result's",
                root.display()
            )),
            Event::Starting { servers, seed } => {
                self.line(&format!("seed {seed}, starting {servers} servers"));
            }
            Event::Wrong { example, expected: false } => self.line(&format!(
                "WRONG ANSWER: {} {}: expected {}, got {}",
                example.alternative, example.url, example.expected, example.got
            )),
            Event::Trial { done, of, round } => self.trial(done, of, round),
            _ => {}
        }
    }

    fn trial(&mut self, done: usize, of: usize, round: u32) {
        if self.terminal {
            self.line_open = true;
            self.write(&format!("\rround {round}, trial {done} of {of} "));
        } else if round != self.round {
            self.line(&format!("round {round}, {} of {of} trials done", done - 1));
        }
        self.round = round;
    }

    fn end(&mut self) {
        if self.line_open {
            self.line_open = false;
            self.write("\n");
        }
    }

    fn line(&mut self, text: &str) {
        self.end();
        self.write(&format!("{text}\n"));
    }

    /// Progress that nobody can read is not worth an end.
    fn write(&self, text: &str) {
        let mut err = io::stderr().lock();
        let _ = err.write_all(text.as_bytes()).and_then(|()| err.flush());
    }
}
