//! Time as the workers see it: nanoseconds since the run began, and CPU time of the own thread.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// One for all workers of a run, so that their times compare.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    origin: Instant,
}

impl Clock {
    pub(crate) fn start() -> Self {
        Self { origin: Instant::now() }
    }

    /// Nanoseconds since [`Clock::start`]. About 25 ns where the kernel lets user space read the
    /// clock. 64 bits last for 584 years.
    #[inline]
    pub(crate) fn now(self) -> u64 {
        nanos(self.origin.elapsed())
    }
}

/// CPU time, user and system, that the calling thread has used.
pub(crate) fn thread_cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or_default(),
        u32::try_from(time.tv_nsec).unwrap_or_default(),
    )
}

/// Whole nanoseconds; as long as can be said when it is longer than 584 years.
#[inline]
pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
