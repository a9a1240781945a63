//! Runs a plan: checks it, starts the workers, merges what they recorded.

use std::io;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::choice::Choice;
use crate::clock::{Clock, nanos};
use crate::control::Control;
use crate::driver;
use crate::failure::RunError;
use crate::http2::{self, Http2Worker};
use crate::machine_time::MachineTime;
use crate::observer::Observer;
use crate::origin::Origin;
use crate::part::{End, Part, PartResult, Shared};
use crate::pin;
use crate::pipeline::{self, PipelineWorker};
use crate::plan::{Arrival, Io, Plan, Refusal, Spacing, Stop, WarmUp};
use crate::report::{Ended, Linger, Report};
use crate::schedule::{Schedule, Sequence};
use crate::share::ShareResult;
use crate::summary::Measured;
use crate::turns;
use crate::wire::Requests;
use crate::worker::Worker;

/// Files that the process may have open beside the connections: standard streams, a poll and a timer
/// for each thread, and what the caller has.
const OTHER_FILES: u64 = 64;

/// Runs `plan` and returns when its stop is reached, `control` says so, or the server is gone.
///
/// ```no_run
/// use milepost_load::{Control, Expectation, Plan, Stop, Target, run};
///
/// let address: std::net::SocketAddr = "127.0.0.1:8080".parse().unwrap();
/// let target = Target::new(address, "localhost:8080", "/test/1")
///     .expect(Expectation::redirect(301, "http://localhost:8080/new/1"));
/// let mut plan = Plan::new(vec![target]);
/// plan.stop = Stop::Requests(20_000);
/// let report = run(&plan, &Control::new()).unwrap();
/// assert_eq!(report.wrong_answers, 0);
/// ```
///
/// # Errors
///
/// When the plan makes no sense, the process lacks files or threads, or not one connection could be
/// opened. What goes wrong with single requests is in the report.
pub fn run(plan: &Plan, control: &Control) -> Result<Report, RunError> {
    start_run(plan, control, None)
}

/// The same, and shows `observer` every exchange when it ends.
///
/// # Errors
///
/// As [`run`].
pub fn run_observed(
    plan: &Plan,
    control: &Control,
    observer: &dyn Observer,
) -> Result<Report, RunError> {
    start_run(plan, control, Some(observer))
}

/// Runs the share of `plan` that [`Plan::share`] says.
///
/// # Errors
///
/// As [`run`].
pub fn run_share(plan: &Plan, control: &Control) -> Result<ShareResult, RunError> {
    start_share(plan, control, None)
}

fn start_run(
    plan: &Plan,
    control: &Control,
    observer: Option<&dyn Observer>,
) -> Result<Report, RunError> {
    let share = start_share(plan, control, observer)?;
    ShareResult::report(plan, vec![share]).ok_or(RunError::Zero("shares"))
}

fn start_share(
    plan: &Plan,
    control: &Control,
    observer: Option<&dyn Observer>,
) -> Result<ShareResult, RunError> {
    check(plan)?;
    let requests = Requests::render(plan)?;
    let choice = Choice::new(&plan.targets)?;
    let share = plan.share;
    let (connections, before) = share.of_total(plan.connections as u64);
    // At most the number of connections, so it fits. The same in every process, so that they agree
    // on the numbers that each has of an open loop.
    let threads = plan.threads.min(plan.connections / share.of);
    allow_files(connections * requests.origins().len() as u64 + threads as u64 * 2)?;

    let keep = plan.browsing.keep(observer.map(Observer::keep).unwrap_or_default());
    let clock = Clock::start();
    let io = driver::settle(plan, &requests)?;
    let shared = Shared { plan, requests: &requests, choice, control, observer, keep, clock, io };
    let is_open_loop = plan.arrival.rate().is_some();
    let own = |count| if is_open_loop { count } else { share.of_total(count).0 };
    let sequence = |count| Sequence::new(count, threads * share.of);
    let parts = Parts {
        warm_up: match plan.warm_up {
            WarmUp::None => None,
            WarmUp::Duration(length) => Some((sequence(u64::MAX), Some(length))),
            WarmUp::Requests(count) => Some((sequence(own(count)), None)),
        },
        measured: match plan.stop {
            Stop::Duration(length) => (sequence(u64::MAX), Some(length)),
            Stop::Requests(count) => (sequence(own(count)), None),
            Stop::Either(count, length) => (sequence(own(count)), Some(length)),
            Stop::RequestsEach(_) => (sequence(u64::MAX), None),
        },
        gate: Gate { workers: threads, barrier: Barrier::new(threads), opened: AtomicU64::new(0) },
    };
    if let Some(intervals) = control.intervals() {
        intervals.expect(threads);
    }
    let (connections, before) = (connections as usize, before as usize);
    // A redirect may lead to TLS.
    let speaks_tls = requests.origins().iter().any(|origin| origin.secure.is_some())
        || (plan.browsing.is_active() && plan.tls.configuration(None).is_ok());
    let workers = (0..threads)
        .map(|index| {
            // The first connections go to the first workers, one more each if it does not come out
            // even.
            let slots = connections / threads;
            let rest = connections % threads;
            let more = usize::from(index < rest);
            let first = before + index * slots + index.min(rest);
            // Each has its own store of sessions.
            let protocol = plan.http2.is_some().then_some(&b"h2"[..]);
            let tls = speaks_tls.then(|| plan.tls.configuration(protocol)).transpose()?;
            let slots = slots + more;
            match plan.http2 {
                None if let Some(depth) = plan.pipeline => {
                    PipelineWorker::new(&shared, index, first, slots, depth, tls)
                        .map(|worker| AnyWorker::Pipeline(Box::new(worker)))
                        .map_err(RunError::Worker)
                }
                None => Worker::new(&shared, index, first, slots, tls)
                    .map(|worker| AnyWorker::Http1(Box::new(worker)))
                    .map_err(RunError::Worker),
                Some(streams) => Http2Worker::new(&shared, index, first, slots, streams, tls)
                    .map(|worker| AnyWorker::Http2(Box::new(worker))),
            }
        })
        .collect::<Result<Vec<_>, RunError>>()?;
    let machine_time = MachineTime::now();
    let results = thread::scope(|scope| {
        let (run_ends, ended) = channel::<()>();
        if let Some((names, every)) = plan.names.as_ref().and_then(|it| it.every().map(|e| (it, e)))
        {
            scope.spawn(move || {
                while ended.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                    names.renew();
                }
            });
        }
        let results = start(workers, &shared, &parts);
        drop(run_ends);
        results
    });
    let results = results.map_err(RunError::Worker)?;
    let mut share = merge(plan, threads, io, results)?;
    share.measured.steal_percent =
        machine_time.and_then(|before| MachineTime::now()?.steal_percent(before));
    Ok(share)
}

/// A worker, whatever it speaks.
enum AnyWorker<'a> {
    Http1(Box<Worker<'a>>),
    Http2(Box<Http2Worker<'a>>),
    Pipeline(Box<PipelineWorker<'a>>),
}

impl AnyWorker<'_> {
    fn run(&mut self, part: Part<'_>) -> io::Result<PartResult> {
        match self {
            Self::Http1(worker) => turns::run(&mut **worker, part),
            Self::Http2(worker) => Ok(worker.run(part)),
            Self::Pipeline(worker) => turns::run(&mut **worker, part),
        }
    }

    fn wait_for_lingering(&mut self) -> io::Result<Option<Linger>> {
        match self {
            Self::Http1(worker) => worker.wait_for_lingering(),
            Self::Http2(_) | Self::Pipeline(_) => Ok(None),
        }
    }

    fn into_refusal(self) -> Option<(Origin, io::Error)> {
        match self {
            Self::Http1(worker) => worker.into_refusal(),
            Self::Http2(worker) => worker.into_refusal(),
            Self::Pipeline(worker) => worker.into_refusal(),
        }
    }
}

/// What the workers do one after the other, all together.
#[derive(Debug)]
struct Parts {
    warm_up: Option<(Sequence, Option<Duration>)>,
    measured: (Sequence, Option<Duration>),
    gate: Gate,
}

/// Lets all workers through at the same time.
#[derive(Debug)]
struct Gate {
    workers: usize,
    barrier: Barrier,
    opened: AtomicU64,
}

impl Gate {
    /// Waits for the others and returns when the gate was opened.
    fn pass(&self, clock: Clock) -> u64 {
        if self.barrier.wait().is_leader() {
            self.opened.store(clock.now(), Relaxed);
        }
        // The second barrier orders the store before the loads.
        self.barrier.wait();
        self.opened.load(Relaxed)
    }
}

/// What one worker brings back.
struct WorkerResult {
    warm_up: Option<(u64, PartResult)>,
    measured: (u64, PartResult),
    linger: Option<Linger>,
    refusal: Option<(Origin, io::Error)>,
}

fn start(
    workers: Vec<AnyWorker<'_>>,
    shared: &Shared<'_>,
    parts: &Parts,
) -> io::Result<Vec<WorkerResult>> {
    thread::scope(|scope| {
        let mut threads = Vec::new();
        for (index, worker) in workers.into_iter().enumerate() {
            // A worker waits for the others only when all are there: a thread that cannot be started
            // must not leave the rest waiting.
            let (go, may_go) = channel::<()>();
            let name = format!("load-{index}");
            let thread = thread::Builder::new()
                .name(name)
                .spawn_scoped(scope, move || drive(worker, index, &may_go, shared, parts))?;
            threads.push((go, thread));
        }
        let threads: Vec<_> = threads
            .into_iter()
            .map(|(go, thread)| {
                // Only fails when the thread is gone, and then joining says so.
                let _ = go.send(());
                thread
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err(died()))).collect()
    })
}

/// The life of a worker thread.
fn drive(
    mut worker: AnyWorker<'_>,
    index: usize,
    may_go: &Receiver<()>,
    shared: &Shared<'_>,
    parts: &Parts,
) -> io::Result<WorkerResult> {
    may_go.recv().map_err(|_| died())?;
    // Number among those of all processes.
    let index = shared.plan.share.index * parts.gate.workers + index;
    let pinned = pin::pin(&shared.plan.cpus, index);
    let seed = shared.plan.seed;
    let end = |start: u64, length: Option<Duration>| {
        length.map_or(u64::MAX, |length| start.saturating_add(nanos(length)))
    };
    let warm_up = parts.warm_up.as_ref().map(|(sequence, length)| {
        let arrival = match shared.plan.arrival.clone() {
            Arrival::Open { rate, spacing } => Arrival::Open { rate: rate.initial(), spacing },
            Arrival::Closed => Arrival::Closed,
        };
        let start = parts.gate.pass(shared.clock);
        let ends = end(start, *length);
        let schedule = Schedule::new(&arrival, sequence, index, seed, start, ends);
        // What is outstanding at the end is waited for: it must not disturb what is measured.
        let part =
            Part { schedule, start, cut_at: None, requests_each: u64::MAX, is_measured: false };
        (start, worker.run(part))
    });
    // Whatever happened, the others wait at the gate.
    let start = parts.gate.pass(shared.clock);
    let warm_up =
        warm_up.map(|(start, result)| result.map(|result| (start, result))).transpose()?;
    shared.control.start_measuring();
    let (sequence, length) = &parts.measured;
    let arrival = &shared.plan.arrival;
    let schedule = Schedule::new(arrival, sequence, index, seed, start, end(start, *length));
    let cut_at = length.map(|_| end(start, *length));
    let requests_each = match shared.plan.stop {
        Stop::RequestsEach(count) => count,
        _ => u64::MAX,
    };
    pinned?;
    let measured =
        worker.run(Part { schedule, start, cut_at, requests_each, is_measured: true })?;
    let linger = worker.wait_for_lingering()?;
    let refusal = worker.into_refusal();
    Ok(WorkerResult { warm_up, measured: (start, measured), linger, refusal })
}

fn merge(
    plan: &Plan,
    threads: usize,
    io: Io,
    results: Vec<WorkerResult>,
) -> Result<ShareResult, RunError> {
    let end = results.iter().map(|result| result.measured.1.end).max().unwrap_or(End::Done);
    let (mut warm_ups, mut measured, mut refusals) = (Vec::new(), Vec::new(), Vec::new());
    let mut linger = None;
    for result in results {
        linger = linger.or(result.linger);
        warm_ups.extend(result.warm_up);
        measured.push(result.measured);
        refusals.extend(result.refusal);
    }
    if plan.refusal == Refusal::Retry
        && refusals.len() == threads
        && let Some((address, source)) = refusals.pop()
    {
        return Err(RunError::Connect { address: address.endpoint, source });
    }
    let ended = match (end, plan.stop) {
        (End::Interrupted, _) => Ended::Interrupted,
        (End::GaveUp, _) => Ended::GaveUp,
        (End::Done, Stop::Requests(_) | Stop::RequestsEach(_)) => Ended::Requests,
        (End::Done, Stop::Duration(_)) => Ended::Duration,
        (End::Done, Stop::Either(count, _)) => {
            let sent: u64 = measured.iter().map(|(_, result)| result.record.sent).sum();
            let (count, _) = plan.share.of_total(count);
            if sent < count { Ended::Duration } else { Ended::Requests }
        }
    };
    let Some(measured) = part(measured) else { return Err(RunError::Zero("threads")) };
    Ok(ShareResult { threads, io, warm_up: part(warm_ups), measured, ended, linger })
}

/// Merges what the workers recorded in one part. `None` when there was no such part.
fn part(results: Vec<(u64, PartResult)>) -> Option<Measured> {
    results
        .into_iter()
        .map(|(start, result)| Measured {
            record: result.record,
            length: Duration::from_nanos(result.ended.saturating_sub(start)),
            cpu: result.cpu,
            cpu_max: result.cpu.saturating_sub(result.polled),
            polled: result.polled,
            steal_percent: None,
        })
        .reduce(Measured::merge)
}

fn check(plan: &Plan) -> Result<(), RunError> {
    if plan.targets.is_empty() {
        return Err(RunError::NoTarget);
    }
    for (name, value) in [("connections", plan.connections), ("threads", plan.threads)] {
        if value == 0 {
            return Err(RunError::Zero(name));
        }
    }
    if plan.share.index >= plan.share.of || plan.share.of > plan.connections {
        let (processes, connections) = (plan.share.of, plan.connections);
        return Err(RunError::Share { processes, connections });
    }
    if plan.http2 == Some(0) {
        return Err(RunError::Zero("streams"));
    }
    pin::check(&plan.cpus)?;
    pipeline::check(plan)?;
    http2::check(plan)?;
    if plan.stop == Stop::RequestsEach(0) {
        return Err(RunError::Zero("requests"));
    }
    let Arrival::Open { rate, spacing } = &plan.arrival else { return Ok(()) };
    rate.check()?;
    match *spacing {
        Spacing::Jittered { share } if !(0.0..=1.0).contains(&share) => {
            Err(RunError::Jitter(share))
        }
        _ => Ok(()),
    }
}

/// Raises the limit of open files if `needed` more than usual are.
fn allow_files(needed: u64) -> Result<(), RunError> {
    let needed = needed + OTHER_FILES;
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    let limit = maximum.unwrap_or(u64::MAX);
    let raised = Rlimit { current: Some(needed), maximum };
    if needed > limit || setrlimit(Resource::Nofile, raised).is_err() {
        return Err(RunError::FileLimit { needed, limit });
    }
    Ok(())
}

fn died() -> io::Error {
    io::Error::other("a worker thread died")
}
