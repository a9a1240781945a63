//! Runs cases on real httpd: hundreds of virtual hosts in one process.
//!
//! When httpd does not accept the configuration, its message names the file, and so the case: that
//! case is refused and the rest tried again. Where the message names no file, the cases are halved.

use std::path::Path;

use crate::answer::Answer;
use crate::case::{Ask, Case};
use crate::client::{Client, Response};
use crate::engine::{Engine, EngineError, Verdict};
use crate::httpd::{HttpdError, Program, Refusal, free_port};
use crate::stage::{self, Plot, Stage};

/// Ports tried; more than one only when somebody else takes it at that moment.
const PORTS_MAX: u32 = 5;

/// Real httpd.
#[derive(Debug)]
pub struct Judge {
    program: Program,
    name: String,
}

impl Judge {
    /// Finds the httpd of this machine.
    ///
    /// # Errors
    /// [`HttpdError`] when there is none.
    pub fn new() -> Result<Judge, HttpdError> {
        Judge::with(Program::find()?)
    }

    /// Takes `program` as the judge.
    ///
    /// # Errors
    /// [`HttpdError`] when it does not run.
    pub fn with(program: Program) -> Result<Judge, HttpdError> {
        let name = program.version()?;
        Ok(Judge { program, name })
    }

    /// Runs the cases of one stage.
    fn run_stage(&self, cases: &[&Case]) -> Result<Vec<Verdict>, EngineError> {
        for _ in 1..PORTS_MAX {
            match self.run_on_port(cases, free_port()?) {
                Err(EngineError::Httpd(HttpdError::PortInUse)) => {}
                done => return done,
            }
        }
        self.run_on_port(cases, free_port()?)
    }

    fn run_on_port(&self, cases: &[&Case], port: u16) -> Result<Vec<Verdict>, EngineError> {
        let stage = Stage::new(cases, port)?;
        let mut verdicts: Vec<Option<Verdict>> = vec![None; cases.len()];
        let mut groups: Vec<Vec<usize>> = vec![(0..cases.len()).collect()];
        while let Some(mut group) = groups.pop() {
            let conf = stage.write_httpd_conf(&self.program, &group)?;
            match self.program.start(&conf) {
                Ok(mut httpd) => {
                    while let Some(at) = group.pop() {
                        let answers = ask_all(cases[at], &stage.plots()[at]);
                        verdicts[at] = Some(Verdict::Answers(answers));
                        if !httpd.is_alive() {
                            // This case made it crash, which is no fault of the others.
                            break;
                        }
                    }
                    if !group.is_empty() {
                        groups.push(group);
                    }
                }
                Err(HttpdError::Refused(refusal)) => {
                    let named = named_case(&refusal, &stage);
                    let at = match named.filter(|at| group.contains(at)) {
                        Some(at) => at,
                        None if group.len() == 1 => group[0],
                        None => {
                            groups.push(group.split_off(group.len() / 2));
                            groups.push(group);
                            continue;
                        }
                    };
                    verdicts[at] = Some(Verdict::Refused(say(&refusal, &stage.plots()[at])));
                    group.retain(|&other| other != at);
                    if !group.is_empty() {
                        groups.push(group);
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(verdicts.into_iter().map(|v| v.expect("every case was in one group")).collect())
    }
}

impl Engine for Judge {
    fn name(&self) -> &str {
        &self.name
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

/// Sends the requests of a case, in order, to the server that runs it.
pub fn ask_all(case: &Case, plot: &Plot) -> Vec<Result<Answer, String>> {
    let mut clients: Vec<(Option<&str>, Client)> = Vec::new();
    let mut answers = Vec::with_capacity(case.exchanges.len());
    for ask in case.exchanges.iter().map(|exchange| &exchange.ask) {
        let address = ask.address.as_deref();
        let known = clients.iter().position(|(other, _)| *other == address);
        let at = match (known, plot.socket(address)) {
            (Some(at), _) => at,
            (None, Some(socket)) => {
                clients.push((address, Client::new(socket)));
                clients.len() - 1
            }
            (None, None) => {
                answers.push(Err(format!("{address:?} is no IPv4 address")));
                continue;
            }
        };
        let head = ask.method == "HEAD";
        let sent = filled(ask, plot).head();
        let response = clients[at].1.exchange(&sent, head).map_err(|error| error.to_string());
        answers.push(response.map(|response| answer(&response, case, plot)));
    }
    answers
}

/// Puts the values of the placeholders into a request.
pub fn filled(ask: &Ask, plot: &Plot) -> Ask {
    let fill = |bytes: &[u8]| match std::str::from_utf8(bytes) {
        Ok(text) => plot.fill(text).into_bytes(),
        Err(_) => bytes.to_vec(),
    };
    Ask {
        target: fill(&ask.target),
        fields: ask.fields.iter().map(|(name, value)| (name.clone(), fill(value))).collect(),
        ..ask.clone()
    }
}

/// Returns the file of the case that has this content.
pub fn served(content: &[u8], case: &Case, plot: &Plot) -> Option<String> {
    let mut files = case.files.iter().filter(|(path, _)| !path.ends_with('/'));
    let found = files.find(|(_, text)| !text.is_empty() && plot.fill(text).as_bytes() == content);
    found.map(|(path, _)| path.clone())
}

fn answer(response: &Response, case: &Case, plot: &Plot) -> Answer {
    let others = response.fields.iter().filter(|(name, _)| !name.eq_ignore_ascii_case("Location"));
    Answer {
        status: response.status,
        location: response.value("Location").map(|location| plot.blank(location)),
        served: served(&response.content, case, plot),
        fields: others.map(|(name, value)| (name.clone(), plot.blank(value))).collect(),
        is_undefined: false,
    }
}

/// Finds the case whose directory holds the file that the message names.
fn named_case(refusal: &Refusal, stage: &Stage) -> Option<usize> {
    let (file, _): &(_, u32) = refusal.place.as_ref()?;
    stage.plots().iter().position(|plot| Path::starts_with(file, plot.root()))
}

fn say(refusal: &Refusal, plot: &Plot) -> String {
    let message = String::from_utf8_lossy(&plot.blank(refusal.message.as_bytes())).into_owned();
    match &refusal.place {
        Some((_, line)) => format!("line {line}: {message}"),
        None => message,
    }
}
