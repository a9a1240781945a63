//! Times in nanoseconds, counted in constant memory, with quantiles that respect what is unknown.
//!
//! A request that was given up (a timeout, the end of the run) has a time that is not known, only
//! that it is longer than its age: it is right-censored. Leaving it out makes a stalling server look
//! fast; counting its age as its time does too. The quantiles here are those of the Kaplan-Meier
//! estimator: the weight of a censored sample is shared out to everything longer than it. A quantile
//! that too many censored samples leave open is a lower bound, and says so.
//!
//! Values are kept to three significant digits, the longest and the sum exactly.
//!
//! Source: E. L. Kaplan, P. Meier, "Nonparametric Estimation from Incomplete Observations", 1958;
//! B. Efron, "The Two Sample Problem with Censored Data", 1967 (redistribution to the right).

use hdrhistogram::Histogram as Counts;
use hdrhistogram::iterators::IterationValue;

/// Significant decimal digits that are kept of a value.
const DIGITS: u8 = 3;

/// One hour. Longer times are counted as this long; no timeout in use is near it.
pub const VALUE_NS_MAX: u64 = 3_600_000_000_000;

/// Room for error in comparing sums of weights: far below the weight of one sample in any run.
const WEIGHT_TOLERANCE: f64 = 1e-12;

/// A distribution of times. About 270 KB, whatever the number of samples.
///
/// ```
/// use milepost_stats::histogram::{Bound, Histogram};
///
/// let mut times = Histogram::new();
/// times.record(1_000);
/// times.record(2_000);
/// times.record_censored(5_000);
/// assert_eq!(times.quantile(0.5).unwrap().ns, 2_000);
/// let longest = times.max().unwrap();
/// assert_eq!((longest.ns, longest.bound), (5_000, Bound::AtLeast));
/// ```
#[derive(Debug, Clone)]
pub struct Histogram {
    samples: Counts<u64>,
    sum: u128,
    max: u64,
    /// Absent until something is censored, which in most runs nothing is.
    censored: Option<Box<Censored>>,
}

#[derive(Debug, Clone)]
struct Censored {
    ages: Counts<u64>,
    max: u64,
}

/// A value read from a [`Histogram`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Estimate {
    /// The value in nanoseconds.
    pub ns: u64,
    /// What it says about the true value.
    pub bound: Bound,
}

/// What a [`Histogram`] counts, to be taken elsewhere and put together again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parts {
    /// Values and how often each was counted, ascending.
    pub samples: Vec<(u64, u64)>,
    /// The same of what was given up.
    pub censored: Vec<(u64, u64)>,
    /// Sum of the samples.
    pub sum: u128,
    /// The longest sample.
    pub max: u64,
    /// The greatest age.
    pub censored_max: u64,
}

/// How an estimate relates to the true value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// It is that value, to the precision kept.
    Exact,
    /// The true value is at least that: the rest is censored.
    AtLeast,
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl Histogram {
    /// An empty distribution.
    #[must_use]
    pub fn new() -> Self {
        Self { samples: counts(), sum: 0, max: 0, censored: None }
    }

    /// Counts one time. Does not allocate.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.samples.saturating_record(ns);
        self.sum += u128::from(ns);
        self.max = self.max.max(ns);
    }

    /// Counts one time of which only is known that it is longer than `age_ns`.
    pub fn record_censored(&mut self, age_ns: u64) {
        let censored =
            self.censored.get_or_insert_with(|| Box::new(Censored { ages: counts(), max: 0 }));
        censored.ages.saturating_record(age_ns);
        censored.max = censored.max.max(age_ns);
    }

    /// Adds everything that `other` counted. The result is that of recording it all here.
    pub fn merge(&mut self, other: &Histogram) {
        add(&mut self.samples, &other.samples);
        self.sum += other.sum;
        self.max = self.max.max(other.max);
        if let Some(theirs) = &other.censored {
            match &mut self.censored {
                None => self.censored = Some(theirs.clone()),
                Some(ours) => {
                    add(&mut ours.ages, &theirs.ages);
                    ours.max = ours.max.max(theirs.max);
                }
            }
        }
    }

    /// Forgets everything. Does not allocate.
    pub fn clear(&mut self) {
        self.samples.reset();
        (self.sum, self.max, self.censored) = (0, 0, None);
    }

    /// What it counts.
    #[must_use]
    pub fn to_parts(&self) -> Parts {
        let recorded = |counts: &Counts<u64>| {
            let steps = counts.iter_recorded();
            steps.map(|step| (step.value_iterated_to(), step.count_at_value())).collect()
        };
        let censored = self.censored.as_deref();
        Parts {
            samples: recorded(&self.samples),
            censored: censored.map(|censored| recorded(&censored.ages)).unwrap_or_default(),
            sum: self.sum,
            max: self.max,
            censored_max: censored.map_or(0, |censored| censored.max),
        }
    }

    /// The histogram that counts that.
    #[must_use]
    pub fn from_parts(parts: &Parts) -> Self {
        let mut histogram = Self::new();
        for &(ns, count) in &parts.samples {
            histogram.samples.saturating_record_n(ns, count);
        }
        (histogram.sum, histogram.max) = (parts.sum, parts.max);
        if !parts.censored.is_empty() {
            let mut ages = counts();
            for &(ns, count) in &parts.censored {
                ages.saturating_record_n(ns, count);
            }
            histogram.censored = Some(Box::new(Censored { ages, max: parts.censored_max }));
        }
        histogram
    }

    /// Sum of the samples, exact.
    #[must_use]
    pub fn sum(&self) -> u128 {
        self.sum
    }

    /// How many samples do not exceed each of `bounds`, which ascend; to the precision kept.
    #[must_use]
    pub fn counts_within(&self, bounds: &[u64]) -> Vec<u64> {
        let mut within = vec![0; bounds.len()];
        for step in self.samples.iter_recorded() {
            let at = bounds.partition_point(|&bound| bound < step.value_iterated_to());
            if let Some(count) = within.get_mut(at) {
                *count += step.count_at_value();
            }
        }
        let mut sum = 0;
        for count in &mut within {
            sum += *count;
            *count = sum;
        }
        within
    }

    /// The samples as the library counts them, for [`crate::hdr_log`].
    pub(crate) fn counts(&self) -> &Counts<u64> {
        &self.samples
    }

    /// Number of samples, without the censored ones.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.samples.len()
    }

    /// Whether there is no sample; there may be censored ones.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    /// Number of censored samples.
    #[must_use]
    pub fn censored_len(&self) -> u64 {
        self.censored.as_ref().map_or(0, |censored| censored.ages.len())
    }

    /// Mean of the samples, exact, without the censored ones.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        (!self.is_empty()).then(|| self.sum as f64 / self.len() as f64)
    }

    /// The longest time.
    #[must_use]
    pub fn max(&self) -> Option<Estimate> {
        match &self.censored {
            Some(censored) if self.is_empty() || censored.max > self.max => {
                Some(Estimate { ns: censored.max, bound: Bound::AtLeast })
            }
            _ if self.is_empty() => None,
            _ => Some(Estimate { ns: self.max, bound: Bound::Exact }),
        }
    }

    /// The smallest time that at least the share `q` of all times does not exceed; `q` from 0 to 1.
    /// `None` without any sample, censored or not.
    ///
    /// When more than the share 1 - `q` is censored, nothing but an assumption about the censored
    /// ones could tell the quantile. Then the answer is a lower bound: the quantile if every one of
    /// them had ended when it was given up.
    #[must_use]
    pub fn quantile(&self, q: f64) -> Option<Estimate> {
        let longest = self.max()?;
        let total = self.len() + self.censored_len();
        // In units of one sample. Without censored samples every sum below is a whole number.
        let wanted = (q.clamp(0.0, 1.0) - WEIGHT_TOLERANCE) * total as f64;
        let is_known = wanted <= self.len() as f64;
        let (mut at_risk, mut weight, mut reached) = (total, 1.0, 0.0);
        for step in self.steps() {
            reached += step.samples as f64 * weight;
            if is_known {
                // What ended at some age comes before what was given up at that age.
                at_risk -= step.samples + step.censored;
                if step.censored > 0 && at_risk > 0 {
                    weight *= (at_risk + step.censored) as f64 / at_risk as f64;
                }
            } else {
                reached += step.censored as f64;
            }
            if reached >= wanted && (step.samples > 0 || !is_known) {
                let bound = if is_known { Bound::Exact } else { Bound::AtLeast };
                return Some(Estimate { ns: step.ns.min(longest.ns), bound });
            }
        }
        Some(longest)
    }

    /// Number of samples, censored ones too, that rank above the quantile `q`. A quantile beyond which
    /// nothing lies is the longest time under another name.
    #[must_use]
    pub fn beyond(&self, q: f64) -> u64 {
        let total = self.len() + self.censored_len();
        let within = ((q.clamp(0.0, 1.0) - WEIGHT_TOLERANCE) * total as f64).ceil().max(0.0);
        // Not more than the total, so it fits.
        total.saturating_sub(within as u64)
    }

    /// Samples and censored samples by value, ascending.
    fn steps(&self) -> impl Iterator<Item = Step> {
        let mut samples = self.samples.iter_recorded().peekable();
        let ages = self.censored.as_ref().map(|censored| censored.ages.iter_recorded());
        let mut ages = ages.into_iter().flatten().peekable();
        std::iter::from_fn(move || {
            let sample = samples.peek().map(IterationValue::value_iterated_to);
            let age = ages.peek().map(IterationValue::value_iterated_to);
            let ns = sample.into_iter().chain(age).min()?;
            let samples = samples.next_if(|step| step.value_iterated_to() == ns);
            let censored = ages.next_if(|step| step.value_iterated_to() == ns);
            Some(Step {
                ns,
                samples: samples.map_or(0, |step| step.count_at_value()),
                censored: censored.map_or(0, |step| step.count_at_value()),
            })
        })
    }
}

struct Step {
    ns: u64,
    samples: u64,
    censored: u64,
}

fn counts() -> Counts<u64> {
    Counts::new_with_bounds(1, VALUE_NS_MAX, DIGITS).expect("the bounds are valid constants")
}

fn add(to: &mut Counts<u64>, from: &Counts<u64>) {
    to.add(from).expect("both have the same bounds");
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn without_censoring_a_quantile_is_the_order_statistic() {
        let values: Vec<u64> = (1..=1_000).collect();
        for (q, expected) in
            [(0.0, 1), (0.5, 500), (0.9, 900), (0.99, 990), (0.999, 999), (1.0, 1_000)]
        {
            check(&values, &[], q, expected, Bound::Exact);
        }
    }

    /// Remission in weeks under 6-mercaptopurine, the textbook example of censored data: of 21
    /// patients 9 relapsed, and the survival function is 0.857 after week 6, 0.807 after 7, 0.753
    /// after 10, 0.690 after 13 and 0.627 after 16. Beyond 9/21 we give bounds only.
    ///
    /// Source: Freireich et al., Blood 21, 1963; Kalbfleisch, Prentice, "The Statistical Analysis of
    /// Failure Time Data", section 1.1.1.
    #[test]
    fn censored_quantiles_are_those_of_kaplan_and_meier() {
        let seen = [6, 6, 6, 7, 10, 13, 16, 22, 23];
        let censored = [6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35];
        for (survival, week, next_week) in
            [(0.857, 6, 7), (0.807, 7, 10), (0.753, 10, 13), (0.690, 13, 16), (0.627, 16, 22)]
        {
            // Just on both sides of the step that the table gives to three digits.
            check(&seen, &censored, 1.0 - survival - 0.001, week, Bound::Exact);
            check(&seen, &censored, 1.0 - survival + 0.001, next_week, Bound::Exact);
        }
        // The 11th and the 21st of all ages.
        check(&seen, &censored, 0.5, 16, Bound::AtLeast);
        check(&seen, &censored, 1.0, 35, Bound::AtLeast);
    }

    #[test]
    fn a_stalled_server_shows_as_a_lower_bound() {
        let quick = [1_000; 98];
        check(&quick, &[5_000_000, 5_000_000], 0.98, 1_000, Bound::Exact);
        check(&quick, &[5_000_000, 5_000_000], 0.99, 5_000_000, Bound::AtLeast);
        check(&[], &[7], 0.5, 7, Bound::AtLeast);
    }

    #[test]
    fn requests_in_flight_at_the_end_do_not_disturb() {
        check(&[1_000, 1_000, 1_000, 9_000], &[10, 20], 0.5, 1_000, Bound::Exact);
        let times = filled(&[1_000, 1_000, 1_000, 9_000], &[10, 20]);
        assert_eq!(times.max(), Some(Estimate { ns: 9_000, bound: Bound::Exact }));
    }

    #[test]
    fn beyond_a_quantile_lie_those_that_rank_above_it() {
        let times = filled(&(1..=1_000).collect::<Vec<_>>(), &[]);
        for (q, beyond) in [(0.0, 1_000), (0.5, 500), (0.99, 10), (0.999, 1), (0.9991, 0), (1.0, 0)]
        {
            assert_eq!(times.beyond(q), beyond, "{q}");
        }
        assert_eq!(filled(&[1, 2, 3], &[4]).beyond(0.5), 2);
        assert_eq!(Histogram::new().beyond(0.5), 0);
    }

    #[test]
    fn samples_within_bounds_are_counted() {
        let times = filled(&[1, 5, 5, 7, 1_000], &[6]);
        assert_eq!(times.counts_within(&[0, 1, 5, 6, 999, 2_000]), [0, 1, 3, 3, 4, 5]);
        assert_eq!(Histogram::new().counts_within(&[1]), [0]);
    }

    #[test]
    fn a_cleared_histogram_is_empty() {
        let mut times = filled(&[1, 2], &[3]);
        times.clear();
        assert_eq!(times.to_parts(), Parts::default());
        times.record(5);
        assert_eq!(times.to_parts(), filled(&[5], &[]).to_parts());
    }

    #[test]
    fn an_empty_histogram_has_no_values() {
        let empty = Histogram::new();
        assert_eq!((empty.quantile(0.5), empty.max(), empty.mean()), (None, None, None));
    }

    #[test]
    fn longest_and_mean_are_exact() {
        let times = filled(&[1_234_567, 7_654_321], &[]);
        assert_eq!(times.max(), Some(Estimate { ns: 7_654_321, bound: Bound::Exact }));
        assert_eq!(times.mean(), Some(4_444_444.0));
        assert_eq!(times.quantile(1.0).map(|estimate| estimate.ns), Some(7_654_321));
    }

    #[test]
    fn a_time_beyond_the_range_is_counted_at_its_end() {
        let times = filled(&[u64::MAX], &[]);
        assert_eq!(times.len(), 1);
        assert!(times.quantile(0.5).is_some_and(|estimate| estimate.ns >= VALUE_NS_MAX));
    }

    proptest! {
        #[test]
        fn merged_is_the_histogram_of_the_merged(
            (ours, theirs) in (samples(), samples()),
            (our_ages, their_ages) in (samples(), samples()),
            q in 0.0..=1.0_f64,
        ) {
            let mut merged = filled(&ours, &our_ages);
            merged.merge(&filled(&theirs, &their_ages));
            let whole = filled(&[ours, theirs].concat(), &[our_ages, their_ages].concat());
            prop_assert_eq!(merged.quantile(q), whole.quantile(q));
            prop_assert_eq!(merged.max(), whole.max());
            prop_assert_eq!(merged.mean(), whole.mean());
            prop_assert_eq!(merged.len(), whole.len());
            prop_assert_eq!(merged.censored_len(), whole.censored_len());
            let again = Histogram::from_parts(&whole.to_parts());
            prop_assert_eq!(again.quantile(q), whole.quantile(q));
            prop_assert_eq!(again.to_parts(), whole.to_parts());
        }

        #[test]
        fn a_quantile_is_within_a_thousandth(mut values in samples(), q in 0.0..=1.0_f64) {
            prop_assume!(!values.is_empty());
            values.sort_unstable();
            let rank = ((q * values.len() as f64).ceil() as usize).clamp(1, values.len());
            let exact = values[rank - 1];
            let estimate = filled(&values, &[]).quantile(q).expect("there are samples");
            prop_assert_eq!(estimate.bound, Bound::Exact);
            prop_assert!(estimate.ns.abs_diff(exact) <= exact / 1_000 + 1, "{estimate:?} for {exact}");
        }

        #[test]
        fn quantiles_of_one_kind_never_fall(
            values in samples(),
            ages in samples(),
            (a, b) in (0.0..=1.0_f64, 0.0..=1.0_f64),
        ) {
            let times = filled(&values, &ages);
            let (low, high) = (times.quantile(a.min(b)), times.quantile(a.max(b)));
            if low.map(|it| it.bound) == high.map(|it| it.bound) {
                prop_assert!(low.map(|it| it.ns) <= high.map(|it| it.ns));
            } else {
                prop_assert_eq!(high.map(|it| it.bound), Some(Bound::AtLeast));
            }
        }

        #[test]
        fn censoring_never_makes_times_shorter(
            (values, ages) in (samples(), samples()),
            q in 0.0..=1.0_f64,
        ) {
            prop_assume!(!values.is_empty());
            let with = filled(&values, &ages).quantile(q).expect("there are samples");
            let ended = filled(&[values, ages].concat(), &[]).quantile(q).expect("there are samples");
            prop_assert!(with.ns >= ended.ns, "{with:?} {ended:?}");
        }
    }

    fn samples() -> impl Strategy<Value = Vec<u64>> {
        proptest::collection::vec(0_u64..10_000_000_000, 0..50)
    }

    fn filled(samples: &[u64], censored: &[u64]) -> Histogram {
        let mut histogram = Histogram::new();
        samples.iter().for_each(|&ns| histogram.record(ns));
        censored.iter().for_each(|&ns| histogram.record_censored(ns));
        histogram
    }

    #[track_caller]
    fn check(samples: &[u64], censored: &[u64], q: f64, ns: u64, bound: Bound) {
        let estimate = filled(samples, censored).quantile(q).expect("there are samples");
        assert_eq!(estimate.bound, bound, "{estimate:?}");
        assert!(estimate.ns.abs_diff(ns) <= ns / 1_000, "{estimate:?} for {ns}");
    }
}
