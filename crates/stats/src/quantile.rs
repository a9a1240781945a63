//! Quantiles of a small sample of trials.
//!
//! The estimator is R's default (type 7): linear between the two order statistics that enclose
//! `(n - 1) p`. It is exact for the median, which is what the lab reports. Many requests go into a
//! histogram, not here: a sample is kept whole and sorted once.
//!
//! Source: R. J. Hyndman and Y. Fan, "Sample Quantiles in Statistical Packages", The American
//! Statistician 50 (1996), definition 7.

/// A sorted sample of at least one finite number.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    ascending: Vec<f64>,
}

impl Sample {
    /// Sorts `values`; `None` when there are none, or one of them is infinite or not a number.
    pub fn new(mut values: Vec<f64>) -> Option<Self> {
        if values.is_empty() || values.iter().any(|value| !value.is_finite()) {
            return None;
        }
        values.sort_by(f64::total_cmp);
        Some(Self { ascending: values })
    }

    /// Returns the value below which the share `p` of the sample lies; `p` is held to 0..=1.
    pub fn quantile(&self, p: f64) -> f64 {
        let last = self.ascending.len() - 1;
        let position = p.clamp(0.0, 1.0) * last as f64;
        let below = (position.floor() as usize).min(last);
        let above = (below + 1).min(last);
        let share = position - below as f64;
        let (low, high) = (self.ascending[below], self.ascending[above]);
        low + share * (high - low)
    }

    /// Returns the middle value, or the mean of the two middle ones.
    pub fn median(&self) -> f64 {
        self.quantile(0.5)
    }

    /// Returns the smallest value.
    pub fn min(&self) -> f64 {
        self.ascending[0]
    }

    /// Returns the largest value.
    pub fn max(&self) -> f64 {
        self.ascending[self.ascending.len() - 1]
    }

    /// Returns the sorted values.
    pub fn ascending(&self) -> &[f64] {
        &self.ascending
    }
}

/// Returns the median of `values` and leaves them in another order; does not allocate.
///
/// # Panics
///
/// When `values` is empty.
pub fn median_in_place(values: &mut [f64]) -> f64 {
    let middle = values.len() / 2;
    let odd = values.len() % 2 == 1;
    let (below, &mut upper, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    if odd {
        return upper;
    }
    let lower = below.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    lower + (upper - lower) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_r_type_7() {
        // R: quantile(c(2, 3, 5, 7, 11, 13, 17, 19), c(0, .25, .5, .9, 1))
        let primes = [19.0, 2.0, 3.0, 17.0, 5.0, 13.0, 7.0, 11.0];
        check(&primes, 0.0, 2.0);
        check(&primes, 0.25, 4.5);
        check(&primes, 0.5, 9.0);
        check(&primes, 0.9, 17.6);
        check(&primes, 1.0, 19.0);
        // The example in numpy's manual of `percentile`, whose default method is the same one.
        check(&[10.0, 7.0, 4.0, 3.0, 2.0, 1.0], 0.5, 3.5);
        check(&[42.0], 0.99, 42.0);
    }

    #[test]
    fn a_sample_is_finite_and_has_a_value() {
        assert_eq!(Sample::new(vec![]), None);
        assert_eq!(Sample::new(vec![1.0, f64::NAN]), None);
        assert_eq!(Sample::new(vec![f64::INFINITY]), None);
    }

    #[test]
    fn both_medians_agree() {
        for values in [&[3.0][..], &[1.0, 4.0], &[9.0, 1.0, 5.0], &[8.0, 1.0, 4.0, 2.0]] {
            let sorted = Sample::new(values.to_vec()).expect("finite values");
            assert_eq!(median_in_place(&mut values.to_vec()), sorted.median(), "{values:?}");
        }
    }

    #[track_caller]
    fn check(values: &[f64], p: f64, expected: f64) {
        let sample = Sample::new(values.to_vec()).expect("finite values");
        assert!((sample.quantile(p) - expected).abs() < 1e-12, "{}", sample.quantile(p));
    }
}
