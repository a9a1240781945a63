//! Access logs, and what error logs have of requests: made by the workers, written by a thread of their own,
//! never waited for.
//!
//! A worker appends each line to the buffer of its log, in memory, and goes on. The writer empties the
//! buffers some times a second. If a disk or a program does not keep up, lines are dropped and counted;
//! the count is reported, and no request is slower for it. Without a log there is no thread, and a
//! request costs one branch more.
//!
//! Logs are opened with the rights that the server starts with, and written by a thread that has those
//! of `User`. Where a reload may not open a file again for that reason, it goes on with the open one; and a
//! program that has other rights goes on reading, as it could not be started again with them.
//!
//! The logs belong to one loaded configuration. A reload opens them anew beside the old ones, so the
//! name of a rotated file is found again, and the old ones are closed when the last line is out.
//!
//! Source: httpd 2.4.71 `modules/loggers/mod_log_config.c`.

mod errors;
mod json;
mod line;
mod rewriting;
mod sink;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;

use milepost_engine::{Log, LogCondition, LogExpression, LogSettings, LogTarget, LogWhat};
use rustix::process::{Uid, geteuid};

use errors::Errors;
use line::Writer;
pub(crate) use line::{Exchange, Lines, escape, escape_unquoted};
pub(crate) use sink::start_reader;
use sink::{Bell, Destination, Sink};

use crate::limits::{LOG_CLOSE_GRACE, LOG_PAUSE};

/// The logs of a configuration, open.
#[derive(Debug, Default)]
pub struct Logs {
    /// The access logs of each server; those of the first also for servers beyond the last.
    servers: Vec<Vec<OpenLog>>,
    bell: Arc<Bell>,
    errors: Errors,
    /// What is open, for a reload that may not open it again.
    kept: Mutex<Vec<(LogTarget, Destination)>>,
    /// Whose rights the programs have.
    owner: Option<Uid>,
    /// What the writer will write to, until it is started.
    waiting: Mutex<Vec<(Arc<Sink>, Destination)>>,
    /// Says that the writer has ended.
    finished: Mutex<Option<mpsc::Receiver<()>>>,
}

/// One log of one server.
#[derive(Debug)]
struct OpenLog {
    log: Log,
    sink: Arc<Sink>,
}

/// A log that cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the log {name}: {error}")]
pub struct LogError {
    name: String,
    error: std::io::Error,
}

impl Logs {
    /// Opens all logs of `settings`. A file that may not be opened any more, but is among those `before`,
    /// goes on being written to.
    ///
    /// # Errors
    /// When a file or a program cannot be opened.
    pub fn open(settings: &LogSettings, before: Option<&Logs>) -> Result<Logs, LogError> {
        let mut opening = Opening::new(before);
        let errors = Errors::open(settings, &mut opening)?;
        let count = if settings.is_empty() { 0 } else { settings.servers().max(1) };
        let mut servers = Vec::with_capacity(count);
        for server in 0..count {
            let logs = settings.of_server(server).into_iter();
            let open = logs.map(|log| Ok(OpenLog { sink: opening.sink(&log.target)?, log }));
            servers.push(open.collect::<Result<_, LogError>>()?);
        }
        let Opening { bell, owner, kept, destinations, .. } = opening;
        Ok(Logs {
            servers,
            errors,
            bell,
            kept: Mutex::new(kept),
            owner: Some(owner),
            waiting: Mutex::new(destinations),
            finished: Mutex::default(),
        })
    }

    /// Starts the writer, with the rights of the calling thread. Lines wait until then.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn start(&self) -> Result<(), LogError> {
        let waiting = &mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let destinations = std::mem::take(waiting);
        if destinations.is_empty() {
            return Ok(());
        }
        let (bell, (finish, finished)) = (Arc::clone(&self.bell), mpsc::channel());
        let body = move || {
            write(&bell, destinations);
            // Nobody waits if the server has gone on without this log.
            let _ = finish.send(());
        };
        let spawned = thread::Builder::new().name("milepost-log".to_owned()).spawn(body);
        spawned.map_err(|error| LogError { name: "writer".to_owned(), error })?;
        *self.finished.lock().unwrap_or_else(PoisonError::into_inner) = Some(finished);
        Ok(())
    }

    /// What is open already for `target`.
    fn again(&self, target: &LogTarget) -> Option<Destination> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().find(|(known, _)| known == target)?.1.share().ok()
    }

    /// Whether no request is logged.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.servers.is_empty()
    }

    /// Writes what has not been written, and ends the writer; waits some seconds for it at most.
    pub fn close(&self) {
        self.bell.close();
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).clear();
        let finished = self.finished.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(finished) = finished {
            // A program that does not read keeps the writer. The server ends without it.
            let _ = finished.recv_timeout(LOG_CLOSE_GRACE);
        }
    }

    /// Whether there is any such expression.
    fn has_expressions(&self) -> bool {
        (0..self.servers.len()).any(|server| self.expressions(server).next().is_some())
    }

    /// The expressions that choose what the logs of a server have, in their order.
    pub(crate) fn expressions(&self, server: usize) -> impl Iterator<Item = &LogExpression> {
        self.of_server(server).iter().filter_map(|open| match &open.log.condition {
            Some(LogCondition::Expression(expression)) => Some(expression),
            _ => None,
        })
    }

    /// The error logs.
    pub(crate) fn errors(&self) -> &Errors {
        &self.errors
    }

    /// Whether a log shows the directive that answered.
    fn wants_rule(&self) -> bool {
        let formats = self.servers.iter().flatten().map(|open| &open.log.format);
        formats
            .flat_map(|format| &format.items)
            .any(|item| matches!(item.what, LogWhat::Rule | LogWhat::Json))
    }

    fn of_server(&self, server: usize) -> &[OpenLog] {
        let logs = self.servers.get(server).or(self.servers.first());
        logs.map(Vec::as_slice).unwrap_or_default()
    }
}

/// Logs while they are being opened: each file or program once, however many servers name it.
struct Opening<'b> {
    before: Option<&'b Logs>,
    bell: Arc<Bell>,
    sinks: HashMap<LogTarget, Arc<Sink>>,
    /// Whose rights programs have.
    owner: Uid,
    kept: Vec<(LogTarget, Destination)>,
    destinations: Vec<(Arc<Sink>, Destination)>,
}

impl<'b> Opening<'b> {
    fn new(before: Option<&'b Logs>) -> Opening<'b> {
        Opening {
            before,
            bell: Arc::default(),
            sinks: HashMap::new(),
            owner: before.and_then(|logs| logs.owner).unwrap_or_else(geteuid),
            kept: Vec::new(),
            destinations: Vec::new(),
        }
    }

    /// What takes the lines for `target`.
    fn sink(&mut self, target: &LogTarget) -> Result<Arc<Sink>, LogError> {
        if let Some(sink) = self.sinks.get(target) {
            return Ok(Arc::clone(sink));
        }
        let destination = destination(target, self.before, self.owner)
            .map_err(|error| LogError { name: name(target), error })?;
        if let Ok(shared) = destination.share() {
            self.kept.push((target.clone(), shared));
        }
        let sink = Arc::new(Sink::new(target.clone(), Arc::clone(&self.bell)));
        self.destinations.push((Arc::clone(&sink), destination));
        self.sinks.insert(target.clone(), Arc::clone(&sink));
        Ok(sink)
    }
}

impl Drop for Logs {
    fn drop(&mut self) {
        self.close();
    }
}

/// Opens what `target` names, or goes on with what is open if that has rights that are gone.
fn destination(target: &LogTarget, before: Option<&Logs>, owner: Uid) -> io::Result<Destination> {
    let again = || before.and_then(|logs| logs.again(target));
    let is_program = matches!(target, LogTarget::Program(_));
    if let Some(running) = again().filter(|_| is_program && owner != geteuid()) {
        return Ok(running);
    }
    Destination::open(target).or_else(|error| {
        let may_not = error.kind() == io::ErrorKind::PermissionDenied;
        again().filter(|_| may_not).ok_or(error)
    })
}

/// Empties the buffers until the logs are closed.
fn write(bell: &Bell, mut destinations: Vec<(Arc<Sink>, Destination)>) {
    let mut spare = Vec::new();
    loop {
        let closed = bell.wait(LOG_PAUSE);
        for (sink, destination) in &mut destinations {
            let (lines, dropped) = sink.take(std::mem::take(&mut spare));
            let failed = destination.write(sink.target(), &lines);
            if dropped > 0 || failed.is_err() {
                let why = failed.err().map(|error| format!(": {error}")).unwrap_or_default();
                let lost = if why.is_empty() { dropped } else { dropped + count_lines(&lines) };
                let name = name(sink.target());
                crate::error_log::report_error(&format!(
                    "{lost} lines of the log {name} are lost{why}"
                ));
            }
            spare = lines;
            spare.clear();
        }
        if closed {
            return;
        }
    }
}

fn count_lines(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}

fn name(target: &LogTarget) -> String {
    match target {
        LogTarget::File(path) => path.display().to_string(),
        LogTarget::Program(program) => format!("|{program}"),
        LogTarget::Errors | LogTarget::Syslog(_) => "of errors".to_owned(),
    }
}

impl Lines {
    /// Logs one answer in all logs that want it.
    pub(crate) fn log(&mut self, exchange: &Exchange<'_>) {
        let server = exchange.logged.map_or(0, |logged| logged.server());
        let logs = Arc::clone(&self.logs);
        let mut unwanted = exchange.unwanted.iter();
        for OpenLog { log, sink } in logs.of_server(server) {
            let wanted = match &log.condition {
                None => true,
                Some(LogCondition::Variable { name, set }) => {
                    exchange.logged.is_some_and(|it| it.variable(name).is_some()) == *set
                }
                // A request that could not be read has not been asked about.
                Some(LogCondition::Expression(_)) => !unwanted.next().is_some_and(|it| *it),
            };
            if wanted {
                self.buffer.clear();
                Writer::new(exchange, &mut self.buffer, &mut self.stamps).write(&log.format);
                sink.push(&self.buffer);
            }
        }
    }
}
