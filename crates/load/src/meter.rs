//! Tells the outside how far a worker is: counts ten times a second, and each interval when it is over.

use std::time::Duration;

use milepost_stats::histogram::Histogram;

use crate::clock::nanos;
use crate::control::Control;
use crate::interval::Counts;
use crate::part::Part;
use crate::record::Record;

/// How often a worker looks whether it is to stop, and says how far it is. Short enough for a person
/// who pressed Ctrl-C, long enough to cost nothing.
pub(crate) const TICK: Duration = Duration::from_millis(100);

/// Times since they were told last.
#[derive(Debug)]
pub(crate) struct Recent {
    pub(crate) response: Histogram,
    pub(crate) service: Histogram,
}

/// What one worker tells in one part of a run.
#[derive(Debug)]
pub(crate) struct Meter<'a> {
    control: &'a Control,
    worker: usize,
    /// When the part began, for all workers.
    start: u64,
    /// When it is over at last: no interval begins then.
    cut_at: u64,
    is_measured: bool,
    told: Counts,
    told_in_interval: Counts,
    next_tick: u64,
    /// The interval that it is in.
    interval: u64,
}

impl<'a> Meter<'a> {
    /// For worker number `worker` in a part that began at `start`.
    pub(crate) fn new(
        control: &'a Control,
        worker: usize,
        part: &Part<'_>,
        record: &mut Record,
    ) -> Self {
        let Part { start, is_measured, .. } = *part;
        if is_measured && control.intervals().is_some() {
            let recent = Recent { response: Histogram::new(), service: Histogram::new() };
            record.recent = Some(Box::new(recent));
        }
        Self {
            control,
            worker,
            start,
            cut_at: part.cut_at.unwrap_or(u64::MAX),
            is_measured,
            told: Counts::default(),
            told_in_interval: Counts::default(),
            next_tick: start,
            interval: 0,
        }
    }

    /// When there is something to be told next.
    #[inline]
    pub(crate) fn next_at(&self) -> u64 {
        self.next_tick
    }

    /// Tells what is due by `now`.
    pub(crate) fn tell(&mut self, record: &mut Record, now: u64) {
        // At even times, so that intervals end where they should.
        let ticks = now.saturating_sub(self.start) / nanos(TICK) + 1;
        self.next_tick = self.start.saturating_add(ticks.saturating_mul(nanos(TICK)));
        self.count(record);
        let Some(intervals) = self.control.intervals().filter(|_| self.is_measured) else { return };
        loop {
            let end = self.start.saturating_add((self.interval + 1) * intervals.every_ns());
            if now < end || end >= self.cut_at {
                break;
            }
            self.add(record, None);
            self.interval += 1;
        }
    }

    /// Tells the rest, at the end.
    pub(crate) fn end(&mut self, record: &mut Record, now: u64) {
        self.tell(record, now);
        self.add(record, Some(Duration::from_nanos(now.saturating_sub(self.start))));
    }

    fn count(&mut self, record: &Record) {
        if self.is_measured {
            let counts = record.counts();
            self.control.add(counts.since(self.told));
            self.told = counts;
        }
    }

    fn add(&mut self, record: &mut Record, last: Option<Duration>) {
        let counts = record.counts();
        let (Some(intervals), Some(recent)) = (self.control.intervals(), &mut record.recent) else {
            return;
        };
        let since = counts.since(self.told_in_interval);
        self.told_in_interval = counts;
        intervals.add(self.worker, self.interval, last, |interval| {
            interval.counts.add(since);
            interval.response.merge(&recent.response);
            interval.service.merge(&recent.service);
        });
        recent.response.clear();
        recent.service.clear();
    }
}
