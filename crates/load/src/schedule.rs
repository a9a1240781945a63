//! Says which request is due when, in the closed and in the open loop alike.
//!
//! All workers draw on one sequence of requests. In the closed loop they take numbers from it in
//! blocks, so that they meet at a shared counter once in many requests; the blocks shrink towards
//! the end, so that no worker is left with many while another has none. In the open loop number k is
//! due at start + k / rate, and worker i of n has the numbers i, i + n, i + 2n and so on: a closed
//! form, so nothing is shared and nothing drifts.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::plan::Arrival;

/// Requests a worker takes at once when the end is far.
const BLOCK_MAX: u64 = 256;

/// A worker takes one part in this many of its fair share of what is left.
const BLOCKS_PER_SHARE: u64 = 8;

const NANOS_PER_SECOND: f64 = 1e9;

/// One request to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Due {
    /// Number in the sequence of all workers.
    pub(crate) number: u64,
    /// When it is meant to be sent.
    pub(crate) intended: u64,
}

/// The numbers that no worker has taken yet. Shared.
#[derive(Debug)]
pub(crate) struct Sequence {
    next: AtomicU64,
    end: u64,
    workers: u64,
}

impl Sequence {
    pub(crate) fn new(end: u64, workers: usize) -> Self {
        Self { next: AtomicU64::new(0), end, workers: workers as u64 }
    }

    fn take(&self) -> Range<u64> {
        let mut block = 0..0;
        // Fails when nothing is left, and the block stays empty.
        let _ = self.next.fetch_update(Relaxed, Relaxed, |next| {
            let left = self.end - next;
            let share = left / (self.workers * BLOCKS_PER_SHARE);
            let size = share.clamp(1, BLOCK_MAX).min(left);
            block = next..next + size;
            (size > 0).then_some(block.end)
        });
        block
    }
}

/// What one worker has to send.
#[derive(Debug)]
pub(crate) struct Schedule<'a> {
    kind: Kind<'a>,
    /// Nothing is due from then on.
    ends: u64,
}

#[derive(Debug)]
enum Kind<'a> {
    Closed { sequence: &'a Sequence, block: Range<u64> },
    Open(Open),
}

#[derive(Debug)]
struct Open {
    start: u64,
    /// Nanoseconds from one request of all workers to the next. A fraction of one matters: it adds up.
    interval: f64,
    /// How far a due time may be off, either way, in nanoseconds.
    spread: f64,
    seed: u64,
    next: u64,
    step: u64,
    count: u64,
}

impl<'a> Schedule<'a> {
    /// The part of worker `index`. Numbers end with `sequence`, times at `ends`.
    pub(crate) fn new(
        arrival: Arrival,
        sequence: &'a Sequence,
        index: usize,
        seed: u64,
        start: u64,
        ends: u64,
    ) -> Self {
        let (per_second, share) = match arrival {
            Arrival::Closed => {
                return Self { kind: Kind::Closed { sequence, block: 0..0 }, ends };
            }
            Arrival::Uniform { per_second } => (per_second, 0.0),
            Arrival::Jittered { per_second, share } => (per_second, share),
        };
        let interval = NANOS_PER_SECOND / per_second;
        let kind = Kind::Open(Open {
            start,
            interval,
            // Two neighbours, each off by half the share, come that much closer or go that much apart.
            spread: interval * share / 2.0,
            seed,
            next: index as u64,
            step: sequence.workers,
            count: sequence.end,
        });
        Self { kind, ends }
    }

    /// Takes the next request that is due at `now`, if there is one.
    #[inline]
    pub(crate) fn take(&mut self, now: u64) -> Option<Due> {
        match &mut self.kind {
            Kind::Closed { .. } if now >= self.ends => None,
            Kind::Closed { sequence, block } => {
                if block.is_empty() {
                    *block = sequence.take();
                }
                block.next().map(|number| Due { number, intended: now })
            }
            Kind::Open(open) => {
                let intended = open.next_at(self.ends).filter(|&at| at <= now)?;
                let number = open.next;
                open.next += open.step;
                Some(Due { number, intended })
            }
        }
    }

    /// When the next request is due. `None` in the closed loop, where it depends on the answers, and
    /// when nothing more is due.
    #[inline]
    pub(crate) fn next_at(&self) -> Option<u64> {
        match &self.kind {
            Kind::Closed { .. } => None,
            Kind::Open(open) => open.next_at(self.ends),
        }
    }

    /// Whether nothing will be due any more.
    #[inline]
    pub(crate) fn is_over(&self, now: u64) -> bool {
        match &self.kind {
            Kind::Closed { sequence, block } => {
                now >= self.ends
                    || (block.is_empty() && sequence.next.load(Relaxed) >= sequence.end)
            }
            Kind::Open(open) => open.next_at(self.ends).is_none(),
        }
    }
}

impl Open {
    fn next_at(&self, ends: u64) -> Option<u64> {
        let mut offset = self.next as f64 * self.interval;
        if self.spread > 0.0 {
            // From the number alone, so that it is the same whenever it is asked for.
            let random = fastrand::Rng::with_seed(self.seed ^ self.next.rotate_left(32)).f64();
            offset += (2.0 * random - 1.0) * self.spread;
        }
        // The first may fall before the start; it is due then.
        let at = self.start + offset.max(0.0) as u64;
        (self.next < self.count && at < ends).then_some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_take_every_number_once() {
        for (end, workers) in [(0, 1), (1, 4), (1_000, 1), (1_003, 4), (100_000, 3)] {
            let sequence = Sequence::new(end, workers);
            let mut schedules: Vec<_> = (0..workers)
                .map(|index| Schedule::new(Arrival::Closed, &sequence, index, 0, 0, u64::MAX))
                .collect();
            let mut numbers = Vec::new();
            // Worker 0 is three times as fast as the others.
            while schedules.iter().any(|schedule| !schedule.is_over(0)) {
                for (index, schedule) in schedules.iter_mut().enumerate() {
                    let quick = if index == 0 { 3 } else { 1 };
                    numbers
                        .extend((0..quick).filter_map(|_| schedule.take(0)).map(|due| due.number));
                }
            }
            numbers.sort_unstable();
            assert_eq!(numbers, (0..end).collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_closed_loop_is_due_at_once_until_its_end() {
        let sequence = Sequence::new(u64::MAX, 1);
        let mut schedule = Schedule::new(Arrival::Closed, &sequence, 0, 0, 0, 100);
        assert_eq!(schedule.take(99), Some(Due { number: 0, intended: 99 }));
        assert_eq!(schedule.take(100), None);
        assert!(schedule.is_over(100));
    }

    #[test]
    fn the_open_loop_is_due_by_the_clock() {
        let sequence = Sequence::new(4, 2);
        let arrival = Arrival::Uniform { per_second: 1_000_000.0 };
        let mut schedule = Schedule::new(arrival, &sequence, 1, 0, 10_000, u64::MAX);
        assert_eq!(schedule.next_at(), Some(11_000));
        assert_eq!(schedule.take(10_999), None);
        assert_eq!(schedule.take(20_000), Some(Due { number: 1, intended: 11_000 }));
        assert_eq!(schedule.take(20_000), Some(Due { number: 3, intended: 13_000 }));
        assert_eq!(schedule.take(20_000), None);
        assert!(schedule.is_over(20_000));
    }

    #[test]
    fn the_open_loop_ends_at_its_time() {
        let sequence = Sequence::new(u64::MAX, 1);
        let arrival = Arrival::Uniform { per_second: 1_000.0 };
        let mut schedule = Schedule::new(arrival, &sequence, 0, 0, 0, 2_000_000);
        let numbers: Vec<_> = std::iter::from_fn(|| schedule.take(u64::MAX)).collect();
        assert_eq!(numbers.last(), Some(&Due { number: 1, intended: 1_000_000 }));
    }

    #[test]
    fn jitter_moves_each_request_and_keeps_the_rate() {
        let sequence = Sequence::new(10_000, 1);
        let arrival = Arrival::Jittered { per_second: 1_000.0, share: 0.1 };
        let mut schedule = Schedule::new(arrival, &sequence, 0, 7, 0, u64::MAX);
        let times: Vec<_> =
            std::iter::from_fn(|| schedule.take(u64::MAX)).map(|due| due.intended).collect();
        let gaps: Vec<_> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(gaps.iter().all(|gap| (900_000..=1_100_000).contains(gap)), "{gaps:?}");
        assert!(gaps.iter().any(|&gap| gap < 950_000) && gaps.iter().any(|&gap| gap > 1_050_000));
        assert!(times[9_999].abs_diff(9_999_000_000) <= 50_000, "{}", times[9_999]);
    }

    #[test]
    fn a_day_at_a_rate_with_no_finite_interval_does_not_drift() {
        let sequence = Sequence::new(u64::MAX, 1);
        let per_second = 30_000.0;
        let day = 86_400;
        let mut schedule =
            Schedule::new(Arrival::Uniform { per_second }, &sequence, 0, 0, 0, u64::MAX);
        if let Kind::Open(open) = &mut schedule.kind {
            open.next = day * 30_000;
        }
        let exact = day * 1_000_000_000;
        assert!(schedule.next_at().unwrap().abs_diff(exact) < 1_000);
    }
}
