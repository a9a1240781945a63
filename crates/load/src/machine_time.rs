//! The time of the machine's processors, and how much of it the host of a virtual machine kept.
//!
//! What is kept is time in which nothing ran, neither server nor generator: it is in the tails of every
//! distribution, and no program's fault.
//!
//! Source: `proc_stat(5)`.

use std::fs;

/// The processors' time so far: in all, and what the host kept from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MachineTime {
    total: u64,
    stolen: u64,
}

impl MachineTime {
    /// Reads it; `None` where the kernel does not tell.
    #[must_use]
    pub fn now() -> Option<Self> {
        Self::parse(&fs::read_to_string("/proc/stat").ok()?)
    }

    /// Returns the share that was stolen since `earlier`, in per cent. A hundredth of a second for each
    /// processor is the least that is counted.
    #[must_use]
    pub fn steal_percent(self, earlier: Self) -> Option<f64> {
        let total = self.total.checked_sub(earlier.total).filter(|total| *total > 0)?;
        let stolen = self.stolen.saturating_sub(earlier.stolen);
        Some(100.0 * stolen as f64 / total as f64)
    }

    /// The line `cpu`: user, nice, system, idle, iowait, irq, softirq, steal; guest time is in user.
    fn parse(text: &str) -> Option<Self> {
        let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let fields: Vec<u64> =
            line.split_whitespace().take(8).map_while(|field| field.parse().ok()).collect();
        Some(Self { total: fields.iter().sum(), stolen: *fields.get(7)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stolen_time_is_a_share() {
        let before = MachineTime::parse("cpu  100 0 100 700 0 0 0 100 0 0\ncpu0 1\n");
        let after = MachineTime::parse("cpu  150 0 150 750 0 0 0 150 50 0\n");
        let (before, after) = (before.unwrap(), after.unwrap());
        assert_eq!(after.steal_percent(before), Some(25.0));
        assert_eq!(before.steal_percent(before), None);
        assert_eq!(MachineTime::parse("cpu 1 2 3\n"), None);
    }
}
