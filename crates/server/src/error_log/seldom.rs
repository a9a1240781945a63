//! What would be said again and again, as long as it lasts: once a minute at most.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::report_error;

/// Between two of the same message.
const PAUSE: Duration = Duration::from_secs(60);

/// When a message was written last.
pub(crate) struct Seldom(Mutex<Option<Instant>>);

impl Seldom {
    pub(crate) const fn new() -> Seldom {
        Seldom(Mutex::new(None))
    }

    /// Tells whoever runs the server, if it has not just been told.
    pub(crate) fn report_error(&self, message: impl FnOnce() -> String) {
        if self.is_due(Instant::now()) {
            report_error(&message());
        }
    }

    fn is_due(&self, now: Instant) -> bool {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = last.is_none_or(|last| now.saturating_duration_since(last) >= PAUSE);
        if is_due {
            *last = Some(now);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_said_once_a_minute() {
        let (seldom, start) = (Seldom::new(), Instant::now());
        let due =
            [0, 1, 59, 60, 61, 119, 120].map(|s| seldom.is_due(start + Duration::from_secs(s)));
        assert_eq!(due, [true, false, false, true, false, false, true]);
    }
}
