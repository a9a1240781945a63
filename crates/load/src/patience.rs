//! How long a connection that cannot be opened is tried before the server counts as gone.

use std::time::Duration;

/// A connection that could not be opened for this long is given up. A restart of a server takes less.
pub(crate) const GIVE_UP_AFTER: Duration = Duration::from_secs(5);

/// The same as long as no connection was ever opened: there is no server.
pub(crate) const GIVE_UP_FIRST: Duration = Duration::from_secs(1);

/// Pause before a connection is tried again, where all pauses are the same.
pub(crate) const PAUSE: Duration = Duration::from_millis(100);

/// Tries with that pause between them; `connected` says whether any connection was ever opened.
pub(crate) fn tries(connected: bool) -> u32 {
    let patience = if connected { GIVE_UP_AFTER } else { GIVE_UP_FIRST };
    patience.as_millis().div_ceil(PAUSE.as_millis()) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tries_last_as_long_as_patience() {
        assert_eq!((tries(false), tries(true)), (10, 50));
    }
}
