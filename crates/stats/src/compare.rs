//! Compares two alternatives over rounds: a paired ratio, its interval, and what may be said.
//!
//! The trials of one round stand next to each other in time, so what slows the machine down slows
//! both, and the ratio within a round keeps only the difference. The estimate is the median of
//! these ratios on the logarithmic scale: A to B is then exactly the inverse of B to A, and one
//! disturbed round moves nothing. A verdict needs two things: an interval that excludes 1, and an
//! effect larger than the one that the control (a thing compared with itself) shows.

use crate::bootstrap::{self, Interval};
use crate::quantile::median_in_place;

/// The smallest effect worth a verdict, as a factor: below 2 % the layout of a binary decides.
pub const EFFECT_MIN: f64 = 1.02;

/// How one alternative compares with another, over the rounds that both took part in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// The median over rounds of *of* / *against*.
    pub estimate: f64,
    /// Its 95 % interval; `None` when there are fewer than [`bootstrap::TRIALS_MIN`] rounds.
    pub interval: Option<Interval>,
}

/// What the rounds allow to say about a ratio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The ratio is below 1, and by more than noise.
    Lower,
    /// The ratio is above 1, and by more than noise.
    Higher,
    /// The whole interval lies within the margin that was asked for: the same, for that purpose.
    Same,
    /// Neither a difference nor the absence of one is shown.
    Open,
}

/// Returns the ratio of *of* to *against*, given as pairs, one per round.
///
/// `None` when there is no pair or a value is not above zero.
pub fn paired_ratio(pairs: &[(f64, f64)], seed: u64) -> Option<Ratio> {
    let mut logs = Vec::with_capacity(pairs.len());
    for &(of, against) in pairs {
        let log = of.ln() - against.ln();
        if !log.is_finite() {
            return None;
        }
        logs.push(log);
    }
    if logs.is_empty() {
        return None;
    }
    let interval = bootstrap::interval(&logs, median_in_place, seed);
    Some(Ratio {
        estimate: median_in_place(&mut logs).exp(),
        interval: interval.map(|logs| Interval { low: logs.low.exp(), high: logs.high.exp() }),
    })
}

/// Returns the factor that a control shows by chance: how far its interval reaches from 1.
///
/// Never below [`EFFECT_MIN`]; without an interval (too few rounds) `None`, for then the noise is
/// unknown.
pub fn noise(control: &Ratio) -> Option<f64> {
    let Interval { low, high } = control.interval?;
    Some(high.max(1.0 / low).max(EFFECT_MIN))
}

/// Judges `ratio` against the `noise` of the control, both factors above 1.
///
/// `margin` (1.05 for 5 %) asks whether the two are the same but for that much; it is answered
/// first, because a difference inside the margin is one that nobody asked about.
pub fn verdict(ratio: &Ratio, noise: f64, margin: Option<f64>) -> Verdict {
    let Some(Interval { low, high }) = ratio.interval else { return Verdict::Open };
    if margin.is_some_and(|margin| low >= 1.0 / margin && high <= margin) {
        Verdict::Same
    } else if low > 1.0 && ratio.estimate > noise {
        Verdict::Higher
    } else if high < 1.0 && ratio.estimate < 1.0 / noise {
        Verdict::Lower
    } else {
        Verdict::Open
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drift_shared_by_both_cancels() {
        // By hand: both double from round to round, the first always costs three times the second.
        let pairs: Vec<(f64, f64)> = (0..8).map(|round| (3.0, 1.0, round)).map(scaled).collect();
        let ratio = paired_ratio(&pairs, 1).expect("positive values");
        assert!((ratio.estimate - 3.0).abs() < 1e-12);
        let interval = ratio.interval.expect("eight rounds");
        assert!((interval.low - 3.0).abs() < 1e-12 && (interval.high - 3.0).abs() < 1e-12);
    }

    #[test]
    fn swapping_the_sides_inverts_the_ratio() {
        let pairs = [(1.0, 2.0), (3.0, 4.0), (5.0, 4.0), (2.0, 3.0), (7.0, 8.0), (1.0, 1.5)];
        let swapped = pairs.map(|(of, against)| (against, of));
        let one = paired_ratio(&pairs, 1).expect("positive values");
        let other = paired_ratio(&swapped, 1).expect("positive values");
        // By hand: the ratios sorted are 1/2, 2/3, 2/3, 3/4, 7/8, 5/4; the median sqrt(2/3 * 3/4).
        assert!((one.estimate - 0.5_f64.sqrt()).abs() < 1e-12);
        assert!((one.estimate * other.estimate - 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_verdict_needs_an_interval_and_more_than_noise() {
        check(1.5, Some((1.4, 1.6)), 1.02, None, Verdict::Higher);
        check(0.5, Some((0.4, 0.6)), 1.02, None, Verdict::Lower);
        check(1.5, Some((0.9, 2.0)), 1.02, None, Verdict::Open); // The interval holds 1.
        check(1.5, Some((1.4, 1.6)), 1.6, None, Verdict::Open); // The control differs as much.
        check(0.5, Some((0.4, 0.6)), 2.5, None, Verdict::Open);
        check(1.5, None, 1.02, None, Verdict::Open); // Too few rounds.
    }

    #[test]
    fn the_same_needs_the_whole_interval_in_the_margin() {
        check(1.0, Some((0.97, 1.04)), 1.02, Some(1.05), Verdict::Same);
        check(1.03, Some((1.02, 1.04)), 1.02, Some(1.05), Verdict::Same);
        check(1.0, Some((0.9, 1.04)), 1.02, Some(1.05), Verdict::Open);
        check(1.2, Some((1.1, 1.3)), 1.02, Some(1.05), Verdict::Higher);
    }

    #[test]
    fn noise_is_how_far_the_control_reaches() {
        let control = |low, high| Ratio { estimate: 1.0, interval: Some(Interval { low, high }) };
        assert_eq!(noise(&control(0.8, 1.1)), Some(1.25));
        assert_eq!(noise(&control(0.99, 1.1)), Some(1.1));
        assert_eq!(noise(&control(0.999, 1.001)), Some(EFFECT_MIN));
        assert_eq!(noise(&Ratio { estimate: 1.0, interval: None }), None);
    }

    #[test]
    fn what_cannot_be_compared_is_not() {
        assert_eq!(paired_ratio(&[], 1), None);
        assert_eq!(paired_ratio(&[(1.0, 0.0)], 1), None);
        assert_eq!(paired_ratio(&[(f64::NAN, 1.0)], 1), None);
        assert_eq!(paired_ratio(&[(-1.0, 1.0)], 1), None);
    }

    fn scaled((of, against, round): (f64, f64, i32)) -> (f64, f64) {
        let drift = 2.0_f64.powi(round);
        (of * drift, against * drift)
    }

    #[track_caller]
    fn check(
        estimate: f64,
        ends: Option<(f64, f64)>,
        noise: f64,
        margin: Option<f64>,
        expected: Verdict,
    ) {
        let interval = ends.map(|(low, high)| Interval { low, high });
        assert_eq!(verdict(&Ratio { estimate, interval }, noise, margin), expected);
    }
}
