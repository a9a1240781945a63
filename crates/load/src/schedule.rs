//! Says which request is due when, in the closed and in the open loop alike.
//!
//! All workers draw on one sequence of requests. In the closed loop they take numbers from it in
//! blocks, so that they meet at a shared counter once in many requests; the blocks shrink towards
//! the end, so that no worker is left with many while another has none. In the open loop worker i of n
//! has the numbers i, i + n, i + 2n and so on, and number k is due when the rate has made for k
//! requests: a closed form, so nothing is shared and nothing drifts. A Poisson process is the sum of
//! independent ones, so each worker has one of its own, of an n-th of the rate: the counts at which its
//! requests are due lie apart by exponential steps of mean n.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::plan::{Arrival, Spacing};
use crate::rate::Course;

/// Requests a worker takes at once when the end is far.
const BLOCK_MAX: u64 = 256;

/// A worker takes one part in this many of its fair share of what is left.
const BLOCKS_PER_SHARE: u64 = 8;

/// Later than any time of a run.
const NEVER: u64 = u64::MAX;

/// Keeps the times of requests apart from what else is drawn with the seed.
const SEED_OF_TIMES: u64 = 0x7469_6d65_735f_6475;

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
    course: Course,
    spacing: Spacing,
    seed: u64,
    /// Draws the steps of a Poisson process.
    random: fastrand::Rng,
    /// The next request. When nothing more is due, never.
    next: Due,
    /// Requests that the rate has made for when the next one is due.
    count: f64,
    /// From one number of this worker to the next.
    step: u64,
    /// One past the last number.
    end: u64,
}

impl<'a> Schedule<'a> {
    /// The part of worker `index`. Numbers end with `sequence`, times at `ends`.
    pub(crate) fn new(
        arrival: &Arrival,
        sequence: &'a Sequence,
        index: usize,
        seed: u64,
        start: u64,
        ends: u64,
    ) -> Self {
        let (rate, spacing) = match arrival {
            Arrival::Closed => {
                return Self { kind: Kind::Closed { sequence, block: 0..0 }, ends };
            }
            Arrival::Open { rate, spacing } => (rate.clone(), *spacing),
        };
        let mut open = Open {
            start,
            course: Course::new(rate),
            spacing,
            seed,
            random: fastrand::Rng::with_seed(seed ^ SEED_OF_TIMES ^ (index as u64).rotate_left(32)),
            next: Due { number: index as u64, intended: 0 },
            count: 0.0,
            step: sequence.workers,
            end: sequence.end,
        };
        if spacing == Spacing::Poisson {
            open.count = open.exponential();
        }
        open.look();
        Self { kind: Kind::Open(open), ends }
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
                let due = open.next;
                if due.intended > now || due.intended >= self.ends {
                    return None;
                }
                open.advance();
                Some(due)
            }
        }
    }

    /// When the next request is due. `None` in the closed loop, where it depends on the answers, and
    /// when nothing more is due.
    #[inline]
    pub(crate) fn next_at(&self) -> Option<u64> {
        match &self.kind {
            Kind::Closed { .. } => None,
            Kind::Open(open) => Some(open.next.intended).filter(|&at| at < self.ends),
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
            Kind::Open(open) => open.next.intended >= self.ends,
        }
    }
}

impl Open {
    /// Goes on to the next request.
    #[inline]
    fn advance(&mut self) {
        self.next.number += self.step;
        if self.spacing == Spacing::Poisson {
            self.count += self.exponential();
        }
        self.look();
    }

    /// Finds out when the next request is due.
    #[inline]
    fn look(&mut self) {
        let Due { number, .. } = self.next;
        let count = match self.spacing {
            Spacing::Even => number as f64,
            // The first may fall before the start; it is due then.
            Spacing::Jittered { share } => (number as f64 + self.jitter(number, share)).max(0.0),
            Spacing::Poisson => self.count,
        };
        let at = if number < self.end { self.course.at(count) } else { None };
        self.next.intended = at.map_or(NEVER, |at| self.start.saturating_add(at));
    }

    /// The step to the next of this worker's part of a Poisson process.
    fn exponential(&mut self) -> f64 {
        // 1 - u is never zero.
        -(1.0 - self.random.f64()).ln() * self.step as f64
    }

    /// How far a number is moved: two neighbours, each off by half the share, come that much closer or
    /// go that much apart. From the number alone, so that it is the same whichever worker has it.
    fn jitter(&self, number: u64, share: f64) -> f64 {
        let random = fastrand::Rng::with_seed(self.seed ^ number.rotate_left(32)).f64();
        (random - 0.5) * share
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::rate::{Rate, Stage};

    #[test]
    fn workers_take_every_number_once() {
        for (end, workers) in [(0, 1), (1, 4), (1_000, 1), (1_003, 4), (100_000, 3)] {
            let sequence = Sequence::new(end, workers);
            let mut schedules: Vec<_> = (0..workers)
                .map(|index| Schedule::new(&Arrival::Closed, &sequence, index, 0, 0, u64::MAX))
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
        let mut schedule = Schedule::new(&Arrival::Closed, &sequence, 0, 0, 0, 100);
        assert_eq!(schedule.take(99), Some(Due { number: 0, intended: 99 }));
        assert_eq!(schedule.take(100), None);
        assert!(schedule.is_over(100));
    }

    #[test]
    fn the_open_loop_is_due_by_the_clock() {
        let sequence = Sequence::new(4, 2);
        let arrival = Arrival::uniform(1_000_000.0);
        let mut schedule = Schedule::new(&arrival, &sequence, 1, 0, 10_000, u64::MAX);
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
        let arrival = Arrival::uniform(1_000.0);
        let mut schedule = Schedule::new(&arrival, &sequence, 0, 0, 0, 2_000_000);
        let numbers: Vec<_> = std::iter::from_fn(|| schedule.take(u64::MAX)).collect();
        assert_eq!(numbers.last(), Some(&Due { number: 1, intended: 1_000_000 }));
    }

    #[test]
    fn jitter_moves_each_request_and_keeps_the_rate() {
        let sequence = Sequence::new(10_000, 1);
        let arrival = Arrival::open(1_000.0, Spacing::Jittered { share: 0.1 });
        let mut schedule = Schedule::new(&arrival, &sequence, 0, 7, 0, u64::MAX);
        let times: Vec<_> =
            std::iter::from_fn(|| schedule.take(u64::MAX)).map(|due| due.intended).collect();
        let gaps: Vec<_> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(gaps.iter().all(|gap| (900_000..=1_100_000).contains(gap)), "{gaps:?}");
        assert!(gaps.iter().any(|&gap| gap < 950_000) && gaps.iter().any(|&gap| gap > 1_050_000));
        assert!(times[9_999].abs_diff(9_999_000_000) <= 50_000, "{}", times[9_999]);
    }

    #[test]
    fn a_day_of_even_requests_does_not_drift() {
        // 4 h at a rate with no finite interval, a ramp of 8 h, 12 h at another such rate: every
        // request of one worker of 1,000, held against exact arithmetic.
        let (low, high) = (30_000.0, 70_000.0);
        let hours = |hours: u64| Duration::from_secs(hours * 3_600);
        let stages = vec![
            Stage { length: hours(4), from: low, to: low },
            Stage { length: hours(8), from: low, to: high },
            Stage { length: hours(12), from: high, to: high },
        ];
        let arrival = Arrival::Open { rate: Rate::stages(stages), spacing: Spacing::Even };
        let sequence = Sequence::new(u64::MAX, 1_000);
        let mut schedule = Schedule::new(&arrival, &sequence, 7, 0, 0, u64::MAX);
        let mut numbers = 7..;
        let mut last = 0;
        while let Some(due) = schedule.take(u64::MAX - 1) {
            assert_eq!(due.number, numbers.next().unwrap());
            numbers.nth(998);
            last = due.intended;
            // The schedule has rounded to whole nanoseconds, so the count is off by half of one's
            // worth, and by what 64 bits cannot say.
            let seconds = due.intended as f64 / 1e9;
            let count = match seconds {
                0.0..14_400.0 => low * seconds,
                14_400.0..43_200.0 => {
                    let t = seconds - 14_400.0;
                    low * 14_400.0 + low * t + (high - low) / 28_800.0 * t * t / 2.0
                }
                _ => low * 14_400.0 + (low + high) / 2.0 * 28_800.0 + high * (seconds - 43_200.0),
            };
            let off_ns = (count - due.number as f64).abs() / low * 1e9;
            assert!(off_ns < 100.0, "request {} is off by {off_ns} ns", due.number);
        }
        let day = 86_400 * 1_000_000_000;
        assert!((day - 20_000_000..day).contains(&last), "{last}");
    }

    #[test]
    fn a_day_of_poisson_requests_keeps_its_rate() {
        let per_second = 20.0;
        for workers in [1, 3] {
            let arrival = Arrival::open(per_second, Spacing::Poisson);
            let sequence = Sequence::new(u64::MAX, workers);
            let day = 86_400 * 1_000_000_000;
            let mut times = Vec::new();
            for index in 0..workers {
                let mut schedule = Schedule::new(&arrival, &sequence, index, 5, 0, day);
                times.extend(std::iter::from_fn(|| schedule.take(day)).map(|due| due.intended));
            }
            times.sort_unstable();
            // Five standard deviations of a Poisson count.
            let mean = per_second * 86_400.0;
            assert!((times.len() as f64 - mean).abs() < 5.0 * mean.sqrt(), "{}", times.len());
            // The intervals are exponential: the largest distance of their distribution from it
            // (Kolmogorov and Smirnov) stays below the 0.1 % point, 1.95 / √n.
            let mut gaps: Vec<_> =
                times.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 1e9).collect();
            gaps.sort_unstable_by(f64::total_cmp);
            let n = gaps.len() as f64;
            let distance = (0..).zip(&gaps).map(|(at, gap)| {
                let expected = 1.0 - (-gap * per_second).exp();
                (expected - f64::from(at) / n).abs()
            });
            let distance = distance.fold(0.0, f64::max);
            assert!(distance < 1.95 / n.sqrt(), "{distance} with {workers} workers");
            // And independent of each other: counts in seconds vary as much as their mean.
            let mut counts = vec![0.0; 86_400];
            for time in times {
                counts[(time / 1_000_000_000) as usize] += 1.0;
            }
            let variance = counts.iter().map(|count| (count - per_second).powi(2)).sum::<f64>()
                / counts.len() as f64;
            assert!((variance / per_second - 1.0).abs() < 0.05, "{variance}");
        }
    }

    #[test]
    fn the_same_seed_is_the_same_process() {
        let times = |seed| {
            let arrival = Arrival::open(1_000.0, Spacing::Poisson);
            let sequence = Sequence::new(100, 1);
            let mut schedule = Schedule::new(&arrival, &sequence, 0, seed, 0, u64::MAX);
            std::iter::from_fn(|| schedule.take(u64::MAX - 1)).collect::<Vec<_>>()
        };
        assert_eq!(times(1), times(1));
        assert_ne!(times(1), times(2));
        assert_eq!(times(1).len(), 100);
    }
}
