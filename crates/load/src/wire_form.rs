//! How histograms and the counts of statuses go from one process to another: what was counted, and
//! nothing else.

/// For `#[serde(with = ...)]`.
pub(crate) mod histogram {
    use milepost_stats::histogram::{Histogram, Parts};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    /// The counts, the censored ones, sum, longest time, greatest age.
    type Form = (Vec<(u64, u64)>, Vec<(u64, u64)>, u64, u64, u64);

    pub(crate) fn serialize<S: Serializer>(
        times: &Histogram,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let Parts { samples, censored, sum, max, censored_max } = times.to_parts();
        // 584 years of requests fit into 64 bits; a JSON number of 128 is none that others read.
        let sum = u64::try_from(sum).unwrap_or(u64::MAX);
        let form: Form = (samples, censored, sum, max, censored_max);
        form.serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Histogram, D::Error> {
        let (samples, censored, sum, max, censored_max) = Form::deserialize(deserializer)?;
        let parts = Parts { samples, censored, sum: u128::from(sum), max, censored_max };
        Ok(Histogram::from_parts(&parts))
    }
}

/// The same for the counts of statuses.
pub(crate) mod counts {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    use crate::record::STATUSES;

    pub(crate) fn serialize<S: Serializer>(
        counts: &[u64; STATUSES],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(counts.iter().enumerate().filter(|(_, count)| **count > 0))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Box<[u64; STATUSES]>, D::Error> {
        let mut counts = Box::new([0; STATUSES]);
        for (status, count) in Vec::<(usize, u64)>::deserialize(deserializer)? {
            let slot = counts.get_mut(status);
            *slot.ok_or_else(|| D::Error::custom("a status has three digits"))? = count;
        }
        Ok(counts)
    }
}
