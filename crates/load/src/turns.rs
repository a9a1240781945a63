//! The loop of a worker that has a driver: gives out what is due, waits for news, sees to it, looks at the clock.
//!
//! What a turn does with its news is the worker's own; that it ends, what it counts and when it sleeps is the
//! same for all.

use std::io;
use std::thread::available_parallelism;
use std::time::Duration;

use crate::clock::thread_cpu;
use crate::driver::{Driver, Ready, Sent};
use crate::idle::{Idle, Pause};
use crate::meter::Meter;
use crate::part::{End, Part, PartResult, Shared};
use crate::plan::{Io, Plan};
use crate::record::Record;
use crate::schedule::Schedule;

/// What every such worker has.
pub(crate) struct Core<'a> {
    pub(crate) shared: &'a Shared<'a>,
    index: usize,
    pub(crate) driver: Driver,
    idle: Idle,
    pub(crate) is_open_loop: bool,
    pub(crate) record: Record,
    /// Places for a request that have not been given up, and how many of them have one.
    pub(crate) alive: usize,
    pub(crate) busy: usize,
    /// The last time that was read from the clock.
    pub(crate) now: u64,
}

/// What a worker does in its turns.
pub(crate) trait Work<'a> {
    fn core(&mut self) -> &mut Core<'a>;

    /// A part begins.
    fn begin(&mut self, part: &Part<'_>);

    /// Gives requests that are due to whoever is free.
    fn fill(&mut self, schedule: &mut Schedule<'_>);

    /// What is queued on a connection counts as sent from now on.
    fn sent(&mut self, at: usize);

    /// Whether every place has sent all that it had to send.
    fn is_finished(&self) -> bool {
        false
    }

    /// When there is something to do even without news, and when a request is due that somebody is free for.
    fn until(&self, part: &Part<'_>) -> (u64, Option<u64>);

    /// Sees to a connection that has news.
    fn handle(&mut self, ready: Ready, schedule: &mut Schedule<'_>);

    /// Sees to what time brings: timeouts, and pauses that are over.
    fn look(&mut self, schedule: &mut Schedule<'_>);

    /// Counts what is outstanding as unanswered, and gives it up.
    fn abandon(&mut self);
}

impl<'a> Core<'a> {
    pub(crate) fn new(shared: &'a Shared<'a>, index: usize, driver: Driver, places: usize) -> Self {
        let is_open_loop = shared.plan.arrival.rate().is_some();
        // To ask costs no system call there, and puts no answers together where there is but one.
        let is_lone = places == 1 && shared.io == Io::Uring && !is_open_loop;
        let is_eager = is_lone && leaves_a_processor(shared.plan);
        Self {
            shared,
            index,
            driver,
            idle: Idle::new(shared.plan.waiting).eager(is_eager),
            is_open_loop,
            record: Record::new(),
            alive: places,
            busy: 0,
            now: 0,
        }
    }

    /// A place takes a request.
    #[inline]
    pub(crate) fn take_place(&mut self) {
        self.busy += 1;
        self.record.sent += 1;
        self.record.busy_max = self.record.busy_max.max(self.busy as u64);
    }

    /// Why the part is over, if it is.
    #[inline]
    fn end(&self, part: &Part<'_>, is_finished: bool) -> Option<End> {
        let is_cut = part.cut_at.is_some_and(|cut_at| self.now >= cut_at);
        if self.shared.control.is_stopped() {
            Some(End::Interrupted)
        } else if is_cut || self.busy == 0 && (is_finished || part.schedule.is_over(self.now)) {
            Some(End::Done)
        } else if self.alive == 0 {
            Some(End::GaveUp)
        } else {
            None
        }
    }

    /// Passes the time until there is news, or until `until`; wakes in time for what is `due`. Returns when
    /// the news came.
    fn pause(&mut self, until: u64, due: Option<u64>) -> io::Result<u64> {
        let began = self.now;
        let pause = self.idle.pause(due, began);
        match pause {
            Pause::Poll => self.driver.poll()?,
            Pause::Sleep(wake_at) => {
                let timeout = Duration::from_nanos(until.saturating_sub(began));
                self.driver.wait(timeout, wake_at, began)?;
            }
        }
        self.now = self.shared.clock.now();
        if pause == Pause::Poll && !self.driver.has_news() {
            self.idle.polled(began, self.now, self.record.sent);
        } else {
            self.idle.found(began, self.now);
        }
        Ok(self.now)
    }

    /// Counts what was due and not sent as unanswered.
    fn abandon_due(&mut self, schedule: &mut Schedule<'_>) {
        while self.is_open_loop
            && let Some(due) = schedule.take(self.now)
        {
            self.record.unanswered += 1;
            self.record.censored(due.intended, None, self.now);
        }
    }
}

/// Loads until the part is over.
///
/// # Errors
///
/// When the driver fails, which it does not unless the process is out of resources.
pub(crate) fn run<'a>(worker: &mut impl Work<'a>, mut part: Part<'_>) -> io::Result<PartResult> {
    let cpu = thread_cpu();
    let core = worker.core();
    let control = core.shared.control;
    core.record = Record::new();
    core.now = core.shared.clock.now();
    core.idle.begin(core.now);
    let mut meter = Meter::new(control, core.index, &part, &mut core.record);
    worker.begin(&part);
    let end = loop {
        worker.fill(&mut part.schedule);
        stamp(worker);
        let is_finished = worker.is_finished();
        if let Some(end) = worker.core().end(&part, is_finished) {
            break end;
        }
        let (until, due) = worker.until(&part);
        let until = until.min(meter.next_at()).min(part.cut_at.unwrap_or(u64::MAX));
        let woken = worker.core().pause(until, due)?;
        while let Some(ready) = worker.core().driver.next() {
            worker.handle(ready, &mut part.schedule);
            if worker.core().driver.is_full() {
                hand_over(worker);
            }
        }
        let core = worker.core();
        if core.driver.sent() == Sent::Later {
            core.now = core.shared.clock.now();
        }
        core.record.longest_turn = core.record.longest_turn.max(core.now - woken);
        worker.look(&mut part.schedule);
        let core = worker.core();
        if core.now >= meter.next_at() {
            meter.tell(&mut core.record, core.now);
        }
    };
    worker.abandon();
    let core = worker.core();
    core.abandon_due(&mut part.schedule);
    meter.end(&mut core.record, core.now);
    let record = std::mem::replace(&mut core.record, Record::new());
    let (ended, polled) = (core.now, core.idle.total());
    Ok(PartResult { record, ended, cpu: thread_cpu() - cpu, polled, end })
}

/// Whether the machine has more processors than the plan has workers, over all processes.
fn leaves_a_processor(plan: &Plan) -> bool {
    let workers = plan.connections.min(plan.threads * plan.share.of);
    available_parallelism().is_ok_and(|processors| processors.get() > workers)
}

/// What is queued is about to be handed over: it counts as sent from now on.
#[inline]
fn stamp<'a>(worker: &mut impl Work<'a>) {
    let core = worker.core();
    if core.driver.sent() == Sent::Now {
        return;
    }
    core.now = core.shared.clock.now();
    while let Some(at) = worker.core().driver.take_queued() {
        worker.sent(at);
    }
}

/// Hands over what is queued.
pub(crate) fn hand_over<'a>(worker: &mut impl Work<'a>) {
    stamp(worker);
    // Fails when the system is out of resources, and then the next wait does so as well.
    let _ = worker.core().driver.hand_over();
}
