//! The rate of an open loop over time: constant, in steps, or in ramps.
//!
//! What a schedule needs is the inverse: when has the rate made for so many requests? Within a stage
//! the rate is a straight line, so the requests due are a parabola and the answer is one square root:
//! a closed form, so nothing is added up and nothing drifts.

use std::time::Duration;

use serde::Serialize;

/// Highest rate that can be asked for. Beyond what one machine's network carries, and low enough for
/// what was due and not sent to be counted at the end.
pub const RATE_PER_SECOND_MAX: f64 = 10_000_000.0;

/// Requests a second, as a function of the time since the start. Zero after the last stage.
#[derive(Debug, Clone, PartialEq)]
pub struct Rate {
    stages: Vec<Stage>,
}

/// A stretch of time in which the rate goes evenly from one value to another.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Stage {
    /// Length.
    #[serde(rename = "seconds", serialize_with = "seconds")]
    pub length: Duration,
    /// Requests a second at its beginning.
    pub from: f64,
    /// Requests a second at its end.
    pub to: f64,
}

/// What is wrong with a rate.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RateError {
    /// A rate that no schedule can keep.
    #[error(
        "the rate must be a positive number of {max} at most, not {0}",
        max = RATE_PER_SECOND_MAX
    )]
    Unfit(f64),
    /// There is no stage.
    #[error("there is no stage")]
    NoStage,
    /// A stage that takes no time.
    #[error("stage {0} takes no time")]
    Empty(usize),
    /// Nothing would ever be sent.
    #[error("the rate is zero in all stages")]
    Zero,
}

impl Rate {
    /// The same rate for as long as the run takes.
    #[must_use]
    pub fn constant(per_second: f64) -> Self {
        Self::stages(vec![Stage { length: Duration::MAX, from: per_second, to: per_second }])
    }

    /// One stage after the other.
    #[must_use]
    pub fn stages(stages: Vec<Stage>) -> Self {
        Self { stages }
    }

    /// The rate, if it is the same all the time.
    #[must_use]
    pub fn as_constant(&self) -> Option<f64> {
        match self.stages[..] {
            [Stage { length: Duration::MAX, from, .. }] => Some(from),
            _ => None,
        }
    }

    /// The stages; one that does not end if the rate is constant.
    #[must_use]
    pub fn as_stages(&self) -> &[Stage] {
        &self.stages
    }

    /// From the start to the end of the last stage. `None` if the rate is constant.
    #[must_use]
    pub fn length(&self) -> Option<Duration> {
        self.stages
            .iter()
            .try_fold(Duration::ZERO, |sum, stage| sum.checked_add(stage.length))
            .filter(|&length| length < Duration::MAX)
    }

    /// Requests that are due within `length` from the start.
    #[must_use]
    pub fn count_within(&self, length: Duration) -> f64 {
        let mut left = length;
        let mut count = 0.0;
        for stage in &self.stages {
            count += stage.count_within(left.min(stage.length));
            left = left.saturating_sub(stage.length);
        }
        count
    }

    /// A constant rate to begin with: the one at the start, or of the first stage that has any.
    pub(crate) fn initial(&self) -> Self {
        let rate = self.stages.iter().find_map(|stage| {
            if stage.from > 0.0 { Some(stage.from) } else { (stage.to > 0.0).then_some(stage.to) }
        });
        Self::constant(rate.unwrap_or(1.0))
    }

    /// # Errors
    ///
    /// When no schedule can be made of it.
    pub(crate) fn check(&self) -> Result<(), RateError> {
        if self.stages.is_empty() {
            return Err(RateError::NoStage);
        }
        for (number, Stage { length, from, to }) in (1..).zip(&self.stages) {
            for rate in [*from, *to] {
                if !(0.0..=RATE_PER_SECOND_MAX).contains(&rate) {
                    return Err(RateError::Unfit(rate));
                }
            }
            if length.is_zero() {
                return Err(RateError::Empty(number));
            }
        }
        if self.stages.iter().all(|stage| stage.from == 0.0 && stage.to == 0.0) {
            return Err(match self.as_constant() {
                Some(rate) => RateError::Unfit(rate),
                None => RateError::Zero,
            });
        }
        Ok(())
    }
}

impl Stage {
    /// Requests that are due in the first `length` of the stage.
    fn count_within(&self, length: Duration) -> f64 {
        let seconds = length.as_secs_f64();
        let share = seconds / self.length.as_secs_f64();
        seconds * (self.from + (self.to - self.from) * share / 2.0)
    }

    /// How long it takes until `count` requests are due, in seconds.
    fn seconds_until(&self, count: f64) -> f64 {
        let slope = (self.to - self.from) / self.length.as_secs_f64();
        // The stable one of the two forms of the root: no difference of nearly equal numbers, and
        // right where the slope or the first rate is zero.
        let root = (self.from * self.from + 2.0 * slope * count).max(0.0).sqrt();
        2.0 * count / (self.from + root)
    }
}

/// Goes along a rate and says when which request is due.
#[derive(Debug, Clone)]
pub(crate) struct Course {
    rate: Rate,
    stage: usize,
    /// What was due, and how much time had passed, when the stage began.
    count: f64,
    began: Duration,
}

impl Course {
    pub(crate) fn new(rate: Rate) -> Self {
        Self { rate, stage: 0, count: 0.0, began: Duration::ZERO }
    }

    /// When `count` requests have become due, in nanoseconds from the start; `None` if they never
    /// will. `count` must not be less than the last time.
    pub(crate) fn at(&mut self, count: f64) -> Option<u64> {
        loop {
            let stage = self.rate.stages.get(self.stage)?;
            let in_stage = count - self.count;
            let all = stage.count_within(stage.length);
            if in_stage < all {
                let nanos = (stage.seconds_until(in_stage.max(0.0)) * 1e9).round();
                return Some(super::clock::nanos(self.began).saturating_add(nanos as u64));
            }
            self.count += all;
            self.began = self.began.saturating_add(stage.length);
            self.stage += 1;
        }
    }
}

fn seconds<S: serde::Serializer>(length: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(length.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stage(seconds: u64, from: f64, to: f64) -> Stage {
        Stage { length: Duration::from_secs(seconds), from, to }
    }

    #[test]
    fn a_ramp_is_due_by_its_parabola() {
        // 0 to 100 a second in 10 s: t seconds make for 5 t² requests.
        let mut course = Course::new(Rate::stages(vec![stage(10, 0.0, 100.0)]));
        for (count, seconds) in [(0.0, 0.0), (5.0, 1.0), (20.0, 2.0), (125.0, 5.0), (405.0, 9.0)] {
            assert_eq!(course.at(count), Some((seconds * 1e9) as u64), "{count}");
        }
        assert_eq!(course.at(500.0), None);
        // Downwards: 100 to 0, 100 t - 5 t².
        let mut course = Course::new(Rate::stages(vec![stage(10, 100.0, 0.0)]));
        for (count, seconds) in [(95.0, 1.0), (375.0, 5.0), (495.0, 9.0)] {
            assert_eq!(course.at(count), Some((seconds * 1e9) as u64), "{count}");
        }
    }

    #[test]
    fn stages_follow_each_other_and_may_rest() {
        let stages = vec![stage(2, 10.0, 10.0), stage(3, 0.0, 0.0), stage(1, 100.0, 100.0)];
        let rate = Rate::stages(stages);
        assert_eq!(rate.length(), Some(Duration::from_secs(6)));
        assert_eq!(rate.count_within(Duration::from_secs(4)), 20.0);
        assert_eq!(rate.count_within(Duration::from_secs(60)), 120.0);
        let mut course = Course::new(rate);
        assert_eq!(course.at(19.0), Some(1_900_000_000));
        assert_eq!(course.at(20.0), Some(5_000_000_000));
        assert_eq!(course.at(119.0), Some(5_990_000_000));
        assert_eq!(course.at(120.0), None);
    }

    #[test]
    fn what_no_schedule_can_keep_is_refused() {
        let check = |rate: Rate| rate.check().map_err(|error| error.to_string());
        assert_eq!(check(Rate::constant(RATE_PER_SECOND_MAX)), Ok(()));
        for rate in [0.0, -1.0, f64::NAN, f64::INFINITY, RATE_PER_SECOND_MAX * 1.01] {
            assert!(check(Rate::constant(rate)).unwrap_err().contains("of 10000000 at most"));
        }
        let stages = |stages: &[Stage]| check(Rate::stages(stages.to_vec())).unwrap_err();
        assert_eq!(stages(&[]), "there is no stage");
        assert_eq!(stages(&[stage(1, 1.0, 1.0), stage(0, 1.0, 1.0)]), "stage 2 takes no time");
        assert_eq!(stages(&[stage(1, 0.0, 0.0)]), "the rate is zero in all stages");
    }

    #[test]
    fn the_warm_up_has_the_first_rate_there_is() {
        for (stages, rate) in [
            (vec![stage(1, 5.0, 9.0)], 5.0),
            (vec![stage(1, 0.0, 9.0)], 9.0),
            (vec![stage(1, 0.0, 0.0), stage(1, 7.0, 7.0)], 7.0),
        ] {
            assert_eq!(Rate::stages(stages).initial().as_constant(), Some(rate));
        }
    }
}
