//! How long requests are served, and what arithmetic says of it.

use std::time::Duration;

/// The generator loads for so long before it measures.
pub(crate) const WARM_UP: Duration = Duration::from_secs(1);

/// Multiples of it, without their whole parts, are spread evenly, however many are taken from wherever.
///
/// Source: Kuipers and Niederreiter, "Uniform Distribution of Sequences" (1974), chapter 2, section 3.
const GOLDEN_RATIO: f64 = 0.618_033_988_749_894_9;

/// How long a request is served, in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Service {
    Constant(f64),
    /// With this mean.
    Exponential(f64),
    /// The second for one request in as many.
    Bimodal(f64, f64, u64),
    /// `usual`; but from `after` seconds of what is measured on, for `stall` seconds, nothing is answered. The
    /// whole takes `length` seconds.
    Stall {
        usual: f64,
        after: f64,
        stall: f64,
        length: f64,
    },
}

impl Service {
    /// What arithmetic says of response times at a rate.
    pub(crate) fn quantile(self, q: f64) -> Option<f64> {
        match self {
            Self::Constant(time) => Some(time),
            Self::Exponential(mean) => Some(-(1.0 - q).ln() * mean),
            Self::Bimodal(usual, rare, one_in) => {
                Some(if 1.0 - q < 1.0 / one_in as f64 { rare } else { usual })
            }
            // What comes in the stall waits for its end: all times up to its length are as frequent.
            Self::Stall { usual, stall, length, .. } => {
                Some((stall - (1.0 - q) * length).max(0.0) * 1e9 + usual)
            }
        }
    }

    /// The quantiles that its samples can show.
    pub(crate) fn quantiles(self) -> &'static [f64] {
        match self {
            Self::Constant(_) | Self::Exponential(_) => &[0.5, 0.9, 0.99],
            Self::Bimodal(..) => &[0.5, 0.9, 0.99, 0.998, 0.999_5],
            Self::Stall { .. } => &[0.5, 0.9, 0.95, 0.99],
        }
    }

    /// How long request number `k` is served that came that long after the first.
    pub(crate) fn time(self, k: u64, came: Duration) -> Duration {
        let nanos = match self {
            Self::Constant(time) => time,
            Self::Exponential(mean) => -(1.0 - (k as f64 * GOLDEN_RATIO).fract()).ln() * mean,
            Self::Bimodal(usual, rare, one_in) => {
                if k.is_multiple_of(one_in) {
                    rare
                } else {
                    usual
                }
            }
            Self::Stall { usual, after, stall, .. } => {
                let (came, from) = (came.as_secs_f64(), after + WARM_UP.as_secs_f64());
                let rest =
                    if (from..from + stall).contains(&came) { from + stall - came } else { 0.0 };
                rest * 1e9 + usual
            }
        };
        Duration::from_nanos(nanos as u64)
    }
}
