//! How a worker passes the time until there is news or a request is due: asleep, or asking.
//!
//! Whoever sleeps is woken late: by the time that the system takes to run a thread again, some ten
//! microseconds, many more on a virtual machine. So a worker that sleeps wakes a little before a request is
//! due, and asks from then on; and one that waits for a single answer, and has a processor to spare, asks for
//! as long as it would take to be woken. With [`Waiting::BusyPoll`] it never sleeps, and notices all answers at
//! once.

use std::time::Duration;

use crate::clock::nanos;
use crate::plan::Waiting;

/// A worker that sleeps wakes so long before a request is due: what a wake-up takes, and some more.
const EARLY: Duration = Duration::from_micros(60);

/// It may ask in vain for one part in as many of its time: at high rates it would never sleep otherwise.
const POLLED_ONE_IN: u64 = 10;

/// An answer that comes so soon is waited for awake: falling asleep and being woken takes as long.
const SOON: Duration = Duration::from_micros(100);

/// What to do until there is news.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pause {
    /// Ask whether there is any, and return.
    Poll,
    /// Wait for some, until this time at most if there is one.
    Sleep(Option<u64>),
}

/// Decides it.
#[derive(Debug)]
pub(crate) struct Idle {
    waiting: Waiting,
    /// It may stay awake for an answer.
    is_eager: bool,
    /// The last wait was a short one.
    was_soon: bool,
    /// When the wait under way began, if it is one.
    wait_began: Option<u64>,
    began: u64,
    polled: u64,
    /// When it was last asked in vain, and how many requests had been sent by then; nothing if there has been
    /// something to do since.
    in_vain: Option<(u64, u64)>,
}

impl Idle {
    pub(crate) fn new(waiting: Waiting) -> Self {
        Self {
            waiting,
            is_eager: false,
            was_soon: false,
            wait_began: None,
            began: 0,
            polled: 0,
            in_vain: None,
        }
    }

    /// Waits awake for single answers that come soon.
    pub(crate) fn eager(self, is_eager: bool) -> Self {
        Self { is_eager, ..self }
    }

    /// A part begins.
    pub(crate) fn begin(&mut self, now: u64) {
        (self.began, self.polled, self.in_vain) = (now, 0, None);
    }

    /// What to do when the next request is due at `due`, if any is that a connection waits for.
    #[inline]
    pub(crate) fn pause(&self, due: Option<u64>, now: u64) -> Pause {
        if self.waiting == Waiting::BusyPoll {
            return Pause::Poll;
        }
        let Some(due) = due else {
            let waited = self.wait_began.map_or(0, |began| now - began);
            let is_awake = self.is_eager && self.was_soon && waited < nanos(SOON);
            return if is_awake { Pause::Poll } else { Pause::Sleep(None) };
        };
        if self.polled > (now - self.began) / POLLED_ONE_IN {
            return Pause::Sleep(Some(due));
        }
        match due.saturating_sub(nanos(EARLY)) {
            at if at <= now => Pause::Poll,
            at => Pause::Sleep(Some(at)),
        }
    }

    /// It was asked in vain from `from` to `now`, when `sent` requests had been sent. The whole turn before that
    /// was in vain if nothing was sent in it.
    #[inline]
    pub(crate) fn polled(&mut self, from: u64, now: u64, sent: u64) {
        let before = self.in_vain.filter(|(_, count)| *count == sent).map(|(at, _)| at);
        self.polled += now - before.unwrap_or(from);
        self.in_vain = Some((now, sent));
        self.wait_began.get_or_insert(from);
        std::hint::spin_loop();
    }

    /// There is something to do, `now`; it was last waited for since `from`.
    #[inline]
    pub(crate) fn found(&mut self, from: u64, now: u64) {
        self.in_vain = None;
        self.was_soon = now - self.wait_began.take().unwrap_or(from) < nanos(SOON);
    }

    /// How long it was asked in vain since the part began.
    pub(crate) fn total(&self) -> Duration {
        Duration::from_nanos(self.polled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_that_is_due_soon_is_not_slept_through() {
        let mut idle = Idle::new(Waiting::Sleep);
        idle.begin(1_000_000);
        let early = nanos(EARLY);
        let due = 3_000_000;
        assert_eq!(idle.pause(None, 2_000_000), Pause::Sleep(None));
        assert_eq!(idle.pause(Some(due), 2_000_000), Pause::Sleep(Some(due - early)));
        assert_eq!(idle.pause(Some(due), due - early), Pause::Poll);
        assert_eq!(idle.pause(Some(due), due + 1), Pause::Poll);
    }

    #[test]
    fn who_sleeps_asks_for_a_tenth_of_the_time_at_most() {
        let mut idle = Idle::new(Waiting::Sleep);
        idle.begin(0);
        idle.polled(0, 100_001, 0);
        assert_eq!(idle.total(), Duration::from_nanos(100_001));
        assert_eq!(idle.pause(Some(1_000_010), 1_000_000), Pause::Sleep(Some(1_000_010)));
        assert_eq!(idle.pause(Some(1_000_020), 1_000_010), Pause::Poll);
        idle.begin(2_000_000);
        assert_eq!(idle.pause(Some(2_000_010), 2_000_000), Pause::Poll);
    }

    #[test]
    fn turns_without_anything_to_do_count_as_a_whole() {
        let mut idle = Idle::new(Waiting::BusyPoll);
        idle.begin(0);
        idle.polled(10, 11, 0);
        idle.polled(14, 15, 0);
        assert_eq!(idle.total(), Duration::from_nanos(5));
        // Something was sent in between, then something came.
        idle.polled(20, 21, 1);
        idle.found(20, 21);
        idle.polled(30, 31, 1);
        assert_eq!(idle.total(), Duration::from_nanos(7));
    }

    #[test]
    fn who_is_eager_waits_awake_for_what_came_soon_the_last_time() {
        let mut idle = Idle::new(Waiting::Sleep).eager(true);
        let soon = nanos(SOON);
        idle.begin(0);
        assert_eq!(idle.pause(None, 0), Pause::Sleep(None));
        idle.found(0, soon - 1);
        assert_eq!(idle.pause(None, soon), Pause::Poll);
        idle.polled(soon, soon + 1, 1);
        assert_eq!(idle.pause(None, 2 * soon - 1), Pause::Poll);
        // It does not come: now it sleeps, and the next time at once.
        assert_eq!(idle.pause(None, 2 * soon), Pause::Sleep(None));
        idle.found(2 * soon, 2 * soon + 1);
        assert_eq!(idle.pause(None, 3 * soon), Pause::Sleep(None));
    }

    #[test]
    fn who_polls_never_sleeps() {
        let mut idle = Idle::new(Waiting::BusyPoll);
        idle.begin(0);
        idle.polled(0, 1_000_000, 0);
        assert_eq!(idle.pause(None, 1_000_000), Pause::Poll);
        assert_eq!(idle.pause(Some(u64::MAX), 1_000_000), Pause::Poll);
    }
}
