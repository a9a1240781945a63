//! Wakes a worker when the next request is due, to the microsecond.
//!
//! A poll's own timeout is in milliseconds, too coarse for an open loop. Linux has timers that are
//! files: one for each worker, set once for each sleep. Elsewhere the poll's timeout must do, and the
//! generator's lateness in the report shows it.

#[cfg(target_os = "linux")]
pub(crate) use linux::Pacer;
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
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
        timerfd_settime,
    };

    /// A timer file that is registered with a poll.
    #[derive(Debug)]
    pub(crate) struct Pacer {
        timer: OwnedFd,
        set_for: u64,
    }

    impl Pacer {
        pub(crate) fn new(registry: &Registry, token: Token) -> io::Result<Self> {
            let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
            let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
            registry.register(&mut SourceFd(&timer.as_raw_fd()), token, Interest::READABLE)?;
            Ok(Self { timer, set_for: 0 })
        }

        /// Arranges to be woken at `at`. Returns how long the poll may wait at most.
        ///
        /// # Errors
        ///
        /// When the timer cannot be set.
        pub(crate) fn wake_at(&mut self, at: u64, now: u64) -> io::Result<Option<Duration>> {
            let wait = at.saturating_sub(now);
            if wait == 0 {
                return Ok(Some(Duration::ZERO));
            }
            if self.set_for != at {
                // The timer is never read: setting it again makes it ring again.
                let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
                let value = Timespec {
                    tv_sec: (wait / 1_000_000_000) as _,
                    tv_nsec: (wait % 1_000_000_000) as _,
                };
                let timer = Itimerspec { it_interval: zero, it_value: value };
                timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &timer)?;
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

    /// The timeout of the poll.
    #[derive(Debug)]
    pub(crate) struct Pacer;

    impl Pacer {
        pub(crate) fn new(_: &Registry, _: Token) -> io::Result<Self> {
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
