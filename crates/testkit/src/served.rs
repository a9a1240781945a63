//! Runs cases on `milepost serve`, through its socket: hundreds of virtual hosts in one process.
//!
//! The process gets what httpd gets: the same configuration, environment, user and files. Cases that do not
//! load are found by the engine first, since one of them would keep the server from starting.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use milepost_engine::Lookup;

use crate::case::Case;
use crate::engine::{Engine, EngineError, Verdict};
use crate::httpd::{self, ENVIRONMENT, LOOK_EVERY, Program, START_MAX, free_port};
use crate::judge::ask_all;
use crate::milepost::Milepost;
use crate::stage::{self, Stage};

/// The server of this workspace.
#[derive(Debug)]
pub struct Served {
    binary: PathBuf,
    program: Program,
    engine: Milepost,
}

/// A process that is stopped when dropped.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        httpd::stop(&mut self.0);
    }
}

impl Served {
    /// Takes the `milepost` at `binary`; `program` names the modules to load.
    pub fn new(binary: PathBuf, program: Program) -> Served {
        let engine = Milepost::new(Lookup::Index, program.clone());
        Served { binary, program, engine }
    }

    fn run_stage(&self, cases: &[&Case]) -> Result<Vec<Verdict>, EngineError> {
        // Without their requests, only whether they load is asked.
        let unasked: Vec<Case> =
            cases.iter().map(|&case| Case { exchanges: Vec::new(), ..case.clone() }).collect();
        let mut verdicts = self.engine.run(&unasked.iter().collect::<Vec<_>>())?;
        let loads = |at: &usize| matches!(verdicts[*at], Verdict::Answers(_));
        let which: Vec<usize> = (0..cases.len()).filter(loads).collect();
        if which.is_empty() {
            return Ok(verdicts);
        }
        let stage = Stage::new(cases, free_port()?)?;
        let conf = stage.write_httpd_conf(&self.program, &which)?;
        let process = self.start(&conf)?;
        for at in which {
            verdicts[at] = Verdict::Answers(ask_all(cases[at], &stage.plots()[at]));
        }
        drop(process);
        Ok(verdicts)
    }

    /// Starts the server and waits until it says that it serves.
    fn start(&self, conf: &Path) -> Result<Process, EngineError> {
        let said = conf.with_file_name("milepost.stderr");
        let child = Command::new(&self.binary)
            .args(["serve", "--workers", "1", "-f"])
            .arg(conf)
            .env_clear()
            .envs(ENVIRONMENT)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&said)?)
            .spawn()?;
        let mut process = Process(child);
        let started = Instant::now();
        loop {
            let text = std::fs::read_to_string(&said).unwrap_or_default();
            if text.contains("serving ") {
                return Ok(process);
            }
            let ended = process.0.try_wait()?.is_some();
            if ended || started.elapsed() > START_MAX {
                return Err(EngineError::Served(text));
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }
}

impl Engine for Served {
    fn name(&self) -> &str {
        "milepost, through a socket"
    }

    fn run(&self, cases: &[&Case]) -> Result<Vec<Verdict>, EngineError> {
        let mut verdicts = vec![Verdict::Answers(Vec::new()); cases.len()];
        for group in stage::groups(cases) {
            let together: Vec<&Case> = group.iter().map(|&at| cases[at]).collect();
            for (at, verdict) in group.into_iter().zip(self.run_stage(&together)?) {
                verdicts[at] = verdict;
            }
        }
        Ok(verdicts)
    }
}
