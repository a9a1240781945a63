//! Wakes a worker when the next request is due, to the microsecond.
//!
//! A poll's own timeout is in milliseconds, too coarse for an open loop. Linux has timers that are
//! files: one for each worker, set once for each sleep. Elsewhere the poll's timeout must do, and the
//! generator's lateness in the report shows it.

#[cfg(target_os = "linux")]
pub(crate) use linux::{Pacer, Timer};
#[cfg(not(target_os = "linux"))]
pub(crate) use portable::Pacer;

#[cfg(target_os = "linux")]
mod linux {
    use std::io;
    use std::os::fd::{AsRawFd, OwnedFd};
    use std::time::Duration;

    use mio::unix::SourceFd;
    use mio::{Interest, Registry, Token};
    use rustix::time::{
        ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec,
        clock_gettime, timerfd_create, timerfd_settime,
    };

    use crate::clock::Clock;

    const NANOS_PER_SECOND: u64 = 1_000_000_000;

    /// A timer file: readable each time that it rings. Setting it makes it ring again, read or not.
    #[derive(Debug)]
    pub(crate) struct Timer {
        file: OwnedFd,
        /// The system's time at which the clock of the run began.
        origin: u64,
    }

    impl Timer {
        pub(crate) fn new(clock: Clock) -> io::Result<Self> {
            let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
            let file = timerfd_create(TimerfdClockId::Monotonic, flags)?;
            // Read in this order, the timer rings some nanoseconds late and never early: woken
            // early, a worker would find nothing due and the timer set already.
            let now = clock.now();
            let time = clock_gettime(ClockId::Monotonic);
            let system =
                time.tv_sec.unsigned_abs() * NANOS_PER_SECOND + time.tv_nsec.unsigned_abs();
            Ok(Self { file, origin: system.saturating_sub(now) })
        }

        /// Has it ring at `at`, and not at the time that it was set for before.
        ///
        /// # Errors
        ///
        /// When the timer cannot be set.
        pub(crate) fn set(&self, at: u64) -> io::Result<()> {
            // To a time and not to a wait, so what passes until it is set does not count.
            let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
            let system = self.origin + at;
            let value = Timespec {
                tv_sec: (system / NANOS_PER_SECOND) as _,
                tv_nsec: (system % NANOS_PER_SECOND) as _,
            };
            let timer = Itimerspec { it_interval: zero, it_value: value };
            timerfd_settime(&self.file, TimerfdTimerFlags::ABSTIME, &timer)?;
            Ok(())
        }

        /// The file once more, for who waits for it.
        ///
        /// # Errors
        ///
        /// When the process has too many files.
        pub(crate) fn file(&self) -> io::Result<OwnedFd> {
            self.file.try_clone()
        }
    }

    /// A timer that is registered with a poll.
    #[derive(Debug)]
    pub(crate) struct Pacer {
        timer: Timer,
        set_for: u64,
    }

    impl Pacer {
        pub(crate) fn new(registry: &Registry, token: Token, clock: Clock) -> io::Result<Self> {
            let timer = Timer::new(clock)?;
            registry.register(&mut SourceFd(&timer.file.as_raw_fd()), token, Interest::READABLE)?;
            Ok(Self { timer, set_for: 0 })
        }

        /// Arranges to be woken at `at`. Returns how long the poll may wait at most.
        ///
        /// # Errors
        ///
        /// When the timer cannot be set.
        pub(crate) fn wake_at(&mut self, at: u64, now: u64) -> io::Result<Option<Duration>> {
            if at <= now {
                return Ok(Some(Duration::ZERO));
            }
            if self.set_for != at {
                self.timer.set(at)?;
                self.set_for = at;
            }
            Ok(None)
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod portable {
    use std::io;
    use std::time::Duration;

    use mio::{Registry, Token};

    use crate::clock::Clock;

    /// The timeout of the poll.
    #[derive(Debug)]
    pub(crate) struct Pacer;

    impl Pacer {
        pub(crate) fn new(_: &Registry, _: Token, _: Clock) -> io::Result<Self> {
            Ok(Self)
        }

        /// Returns how long the poll may wait at most.
        ///
        /// # Errors
        ///
        /// Never.
        pub(crate) fn wake_at(&mut self, at: u64, now: u64) -> io::Result<Option<Duration>> {
            Ok(Some(Duration::from_nanos(at.saturating_sub(now))))
        }
    }
}
