//! Exact figures of all the times of a run: mean, deviation, median, percentiles.
//!
//! ab and its kind keep every request, so its figures can be exact. Percentiles are nearest-rank: the
//! smallest time that at least that share of the requests did not exceed. It is one of the times
//! measured, and there is one for every share and any number of requests.
//!
//! Source: Hyndman and Fan, "Sample Quantiles in Statistical Packages", 1996, definition 1; Welford,
//! "Note on a Method for Calculating Corrected Sums of Squares and Products", 1962.

/// Times in nanoseconds, in ascending order; at least one.
#[derive(Debug, Clone)]
pub(super) struct Sample {
    ascending: Vec<u64>,
}

impl Sample {
    /// Sorts the times; `None` without any.
    pub(super) fn new(mut times: Vec<u64>) -> Option<Self> {
        times.sort_unstable();
        (!times.is_empty()).then_some(Self { ascending: times })
    }

    pub(super) fn min(&self) -> u64 {
        self.ascending[0]
    }

    pub(super) fn max(&self) -> u64 {
        self.ascending[self.ascending.len() - 1]
    }

    pub(super) fn ascending(&self) -> &[u64] {
        &self.ascending
    }

    /// The arithmetic mean.
    pub(super) fn mean(&self) -> f64 {
        self.moments().0
    }

    /// The standard deviation of a sample; zero of a single time.
    pub(super) fn deviation(&self) -> f64 {
        let (_, squares) = self.moments();
        match self.ascending.len() {
            1 => 0.0,
            count => (squares / (count - 1) as f64).sqrt(),
        }
    }

    /// The middle time, or the mean of the two in the middle.
    pub(super) fn median(&self) -> f64 {
        let middle = self.ascending.len() / 2;
        let upper = self.ascending[middle] as f64;
        if self.ascending.len() % 2 == 1 {
            return upper;
        }
        (self.ascending[middle - 1] as f64 + upper) / 2.0
    }

    /// The smallest time that at least `percent` of 100 of all did not exceed.
    pub(super) fn percentile(&self, percent: u32) -> u64 {
        let count = self.ascending.len() as u128;
        let rank = (count * u128::from(percent.min(100))).div_ceil(100).max(1);
        // At most the number of times, so it fits.
        self.ascending[rank as usize - 1]
    }

    /// Mean, and sum of the squares of the differences from it.
    fn moments(&self) -> (f64, f64) {
        let (mut mean, mut squares) = (0.0, 0.0);
        for (&time, count) in self.ascending.iter().zip(1_u64..) {
            let difference = time as f64 - mean;
            mean += difference / count as f64;
            squares += difference * (time as f64 - mean);
        }
        (mean, squares)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_those_of_r() {
        // R: x <- c(2, 3, 5, 7, 11, 13, 17, 19); mean(x); sd(x); median(x)
        check(&[19, 2, 3, 17, 5, 13, 7, 11], 9.625, 6.390_562_3, 9.0);
        check(&[1, 2, 9], 4.0, 4.358_898_9, 2.0);
        check(&[7], 7.0, 0.0, 7.0);
        // Far from zero, where the difference of two sums of squares would be nothing but noise.
        check(
            &[1_000_000_000_001, 1_000_000_000_002, 1_000_000_000_003],
            1_000_000_000_002.0,
            1.0,
            1_000_000_000_002.0,
        );
    }

    #[test]
    fn percentiles_are_those_of_definition_1() {
        // R: quantile(c(15, 20, 35, 40, 50), c(.05, .3, .4, .5, 1), type = 1)
        let sample = Sample::new(vec![50, 15, 40, 20, 35]).unwrap();
        let found: Vec<_> = [5, 30, 40, 50, 100].map(|percent| sample.percentile(percent)).into();
        assert_eq!(found, [15, 20, 20, 35, 50]);
        assert_eq!((sample.percentile(0), sample.percentile(200)), (15, 50));
        // A single request has every percentile.
        assert_eq!(Sample::new(vec![3]).unwrap().percentile(99), 3);
        assert!(Sample::new(vec![]).is_none());
    }

    #[track_caller]
    fn check(times: &[u64], mean: f64, deviation: f64, median: f64) {
        let sample = Sample::new(times.to_vec()).unwrap();
        assert!((sample.mean() - mean).abs() < 1e-6, "{}", sample.mean());
        assert!((sample.deviation() - deviation).abs() < 1e-6, "{}", sample.deviation());
        assert_eq!(sample.median(), median);
    }
}
