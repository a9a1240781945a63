//! Intervals of a statistic over a few trials, by resampling them.
//!
//! The interval is the percentile interval with its two ends moved outwards as far as Student's t
//! lies outside the normal distribution (the "expanded percentile" interval). A lab has six to
//! thirty rounds, and there the plain percentile interval is too short: it promises 95 % and keeps
//! less. BCa is not used: its acceleration comes from a jackknife, which fails for a median.
//! Everything is a function of the sample and the seed, so a report can be made again.
//!
//! Source: T. Hesterberg, "What Teachers Should Know about the Bootstrap", The American
//! Statistician 69 (2015), section 4.2; B. Efron and R. Tibshirani, "An Introduction to the
//! Bootstrap" (1993), chapters 2 and 11.

use crate::normal;
use crate::quantile::Sample;

/// The share of intervals that hold the true value.
pub const CONFIDENCE: f64 = 0.95;

/// The fewest trials that can carry an interval.
///
/// Even the whole range of five values misses the true median with probability `2 * 0.5^5`, which
/// is more than 5 %.
pub const TRIALS_MIN: usize = 6;

/// How often a sample is drawn again: enough for the 0.2 % quantile that six trials need.
pub const RESAMPLES: usize = 10_000;

/// A 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Interval {
    /// Tells whether `value` lies in the interval, its ends included.
    pub fn contains(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }
}

/// Returns the interval of `statistic` over `trials`; `None` below [`TRIALS_MIN`] of them.
///
/// The statistic is given each resample in a buffer, which it may reorder.
pub fn interval(
    trials: &[f64],
    statistic: impl Fn(&mut [f64]) -> f64,
    seed: u64,
) -> Option<Interval> {
    if trials.len() < TRIALS_MIN {
        return None;
    }
    let replicates = replicates(trials, statistic, RESAMPLES, seed)?;
    let tail = tail(trials.len());
    Some(Interval { low: replicates.quantile(tail), high: replicates.quantile(1.0 - tail) })
}

/// Returns `statistic` of each of `resamples` samples drawn from `trials` with replacement.
///
/// `None` when there is no trial or the statistic is not finite.
pub fn replicates(
    trials: &[f64],
    statistic: impl Fn(&mut [f64]) -> f64,
    resamples: usize,
    seed: u64,
) -> Option<Sample> {
    if trials.is_empty() {
        return None;
    }
    let mut random = fastrand::Rng::with_seed(seed);
    let mut drawn = vec![0.0; trials.len()];
    let mut draw = |_| {
        drawn.fill_with(|| trials[random.usize(..trials.len())]);
        statistic(&mut drawn)
    };
    Sample::new((0..resamples).map(&mut draw).collect())
}

/// Returns the share of replicates to leave out at each end for a sample of `n`.
fn tail(n: usize) -> f64 {
    let n = n as f64;
    normal::cumulative(-(n / (n - 1.0)).sqrt() * normal::t_975(n - 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quantile::median_in_place;

    /// Survival times of seven treated mice: Efron and Tibshirani (1993), table 2.1.
    const MICE: [f64; 7] = [94.0, 197.0, 16.0, 38.0, 99.0, 141.0, 23.0];

    #[test]
    fn standard_errors_are_those_of_the_book() {
        // Efron and Tibshirani (1993), table 2.2, column "infinite resamples".
        check_error(mean, 23.36);
        check_error(median_in_place, 37.83);
    }

    #[test]
    fn tails_follow_students_t() {
        // By hand from the tables: for n = 10, t = 2.262, times sqrt(10 / 9) is 2.384, and 0.86 %
        // of the normal distribution lies beyond; for n = 20, t = 2.093 gives 2.147 and 1.59 %.
        assert!((tail(10) - 0.0086).abs() < 1e-4, "{}", tail(10));
        assert!((tail(20) - 0.0159).abs() < 1e-4, "{}", tail(20));
        assert!((tail(100_000) - 0.025).abs() < 1e-4);
    }

    #[test]
    fn six_trials_give_their_range_and_five_give_nothing() {
        let six = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        // One bootstrap median in 115 is the smallest value: more than the 0.24 % cut off.
        assert_eq!(interval(&six, median_in_place, 1), Some(Interval { low: 1.0, high: 6.0 }));
        assert_eq!(interval(&six[..5], median_in_place, 1), None);
    }

    #[test]
    fn the_same_seed_gives_the_same_interval() {
        let once = interval(&MICE, mean, 7);
        assert_eq!(once, interval(&MICE, mean, 7));
        assert_ne!(once, interval(&MICE, mean, 8));
    }

    /// 95 % means 95 %: of many samples of a known, skewed distribution, few miss its median.
    #[test]
    fn intervals_hold_what_they_promise() {
        let mut random = fastrand::Rng::with_seed(20_261_121);
        for (n, at_least) in [(6, 0.95), (10, 0.94), (20, 0.93)] {
            let samples = 400;
            let covered = (0..samples).filter(|&seed| {
                let exponential: Vec<f64> = (0..n).map(|_| -(1.0 - random.f64()).ln()).collect();
                interval(&exponential, median_in_place, seed)
                    .expect("enough trials")
                    .contains(std::f64::consts::LN_2)
            });
            let share = covered.count() as f64 / samples as f64;
            assert!(share >= at_least, "{n} trials: {share}");
        }
    }

    fn mean(values: &mut [f64]) -> f64 {
        values.iter().sum::<f64>() / values.len() as f64
    }

    #[track_caller]
    fn check_error(statistic: fn(&mut [f64]) -> f64, published: f64) {
        let replicates = replicates(&MICE, statistic, 100_000, 1).expect("finite values");
        let values = replicates.ascending();
        let centre = values.iter().sum::<f64>() / values.len() as f64;
        let variance = values.iter().map(|value| (value - centre).powi(2)).sum::<f64>();
        let error = (variance / values.len() as f64).sqrt();
        assert!((error / published - 1.0).abs() < 0.01, "{error} for {published}");
    }
}
