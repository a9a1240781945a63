//! Which target of the list a request is for.
//!
//! Targets with weights stand in a table as often as their weight says, each evenly spread over it, so
//! that choosing costs a look into it and any stretch of the run has about the shares of the whole.

use crate::failure::RunError;
use crate::target::Target;

/// Sum of all weights at most, after dividing by what they have in common: four bytes each.
pub(crate) const WEIGHTS_SUM_MAX: u64 = 1_000_000;

/// The targets in the order in which they are taken.
#[derive(Debug)]
pub(crate) enum Choice {
    /// So many, each once.
    Even(usize),
    /// Indices, each as often as its weight says.
    Weighted(Box<[u32]>),
}

impl Choice {
    /// # Errors
    ///
    /// When a weight is zero or all together are too large.
    pub(crate) fn new(targets: &[Target]) -> Result<Self, RunError> {
        let weights = targets.iter().map(|target| u64::from(target.weight));
        let common = weights.clone().reduce(common_divisor).unwrap_or(1);
        let sum: u64 = weights.clone().sum();
        if weights.clone().any(|weight| weight == 0) || sum / common > WEIGHTS_SUM_MAX {
            return Err(RunError::Weights(WEIGHTS_SUM_MAX));
        }
        if weights.clone().all(|weight| weight == common) {
            return Ok(Self::Even(targets.len()));
        }
        let mut places = Vec::new();
        for (target, weight) in (0_u32..).zip(weights.map(|weight| weight / common)) {
            let place = |number: u64| (number as f64 + 0.5) / weight as f64;
            places.extend((0..weight).map(|number| (place(number), target)));
        }
        places.sort_by(|one, other| one.0.total_cmp(&other.0));
        Ok(Self::Weighted(places.into_iter().map(|(_, target)| target).collect()))
    }

    /// Length of the list.
    #[inline]
    pub(crate) fn places(&self) -> usize {
        match self {
            Self::Even(targets) => *targets,
            Self::Weighted(places) => places.len(),
        }
    }

    /// The target at a place of the list.
    #[inline]
    pub(crate) fn target(&self, place: usize) -> usize {
        match self {
            Self::Even(_) => place,
            Self::Weighted(places) => places[place] as usize,
        }
    }
}

/// Euclid's algorithm.
fn common_divisor(one: u64, other: u64) -> u64 {
    if other == 0 { one } else { common_divisor(other, one % other) }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;

    #[test]
    fn each_target_has_its_share_evenly_spread() {
        check(&[1, 1, 1], &[0, 1, 2]);
        check(&[7, 7], &[0, 1]);
        check(&[3, 1], &[0, 0, 1, 0]);
        check(&[20, 10, 10], &[0, 1, 2, 0]);
        check(&[1, 4], &[1, 1, 0, 1, 1]);
    }

    #[test]
    fn weights_have_bounds() {
        check(&[1_000_000_000, 2_000_000_000], &[1, 0, 1]);
        for weights in [&[1, 0][..], &[1, 1_000_000]] {
            assert!(Choice::new(&targets(weights)).is_err(), "{weights:?}");
        }
        assert_eq!(Choice::new(&targets(&[1, 999_999])).unwrap().places(), 1_000_000);
    }

    #[track_caller]
    fn check(weights: &[u32], expected: &[usize]) {
        let choice = Choice::new(&targets(weights)).unwrap();
        let found: Vec<_> = (0..choice.places()).map(|place| choice.target(place)).collect();
        assert_eq!(found, expected);
    }

    fn targets(weights: &[u32]) -> Vec<Target> {
        let target = Target::new(SocketAddr::from(([127, 0, 0, 1], 80)), "h", "/");
        weights.iter().map(|&weight| Target { weight, ..target.clone() }).collect()
    }
}
