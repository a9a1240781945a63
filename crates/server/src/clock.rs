//! The time as one worker sees it, read from the system a few times a second instead of per request.
//!
//! Deadlines and the `Date` field need no finer clock than [`TICK`]; reading the system's for every
//! request would cost more than finding the redirect. The sweep of the worker moves the clock while
//! there are connections, and each accepted connection does when there were none.
//!
//! Source: RFC 9110 section 6.6.1 (`Date`), 10.2.4 (`Server`).

use std::cell::{Cell, RefCell};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::HeaderValue;
use httpdate::HttpDate;
use tokio::time::Instant;

/// How often the clock moves. Apache's event MPM looks at its timeouts as often.
pub(crate) const TICK: Duration = Duration::from_millis(100);

/// A clock that stands still between two ticks.
pub(crate) struct Clock {
    now: Cell<Instant>,
    /// Seconds since the epoch that `fields` were made for.
    second: Cell<u64>,
    /// The field lines that every response has: `Date` and `Server`.
    fields: RefCell<Vec<u8>>,
    /// The value of `Date`, for HTTP/2.
    date: RefCell<HeaderValue>,
}

impl Clock {
    pub(crate) fn new() -> Clock {
        let clock = Clock {
            now: Cell::new(Instant::now()),
            second: Cell::new(u64::MAX),
            fields: RefCell::new(Vec::new()),
            date: RefCell::new(HeaderValue::from_static("")),
        };
        clock.tick();
        clock
    }

    /// Reads the system's clocks.
    pub(crate) fn tick(&self) {
        self.now.set(Instant::now());
        let wall = SystemTime::now();
        let second = wall.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        if self.second.replace(second) != second {
            let date = HttpDate::from(wall).to_string();
            if let Ok(value) = HeaderValue::from_str(&date) {
                self.date.replace(value);
            }
            *self.fields.borrow_mut() =
                format!("Date: {date}\r\nServer: milepost\r\n").into_bytes();
        }
    }

    /// The time of the last tick.
    pub(crate) fn now(&self) -> Instant {
        self.now.get()
    }

    /// Returns the moment at which `timeout` has surely passed, whenever in the tick it began.
    pub(crate) fn after(&self, timeout: Duration) -> Instant {
        Clock::since(self.now(), timeout)
    }

    /// As [`Clock::after`], for something that began some time ago.
    pub(crate) fn since(began: Instant, timeout: Duration) -> Instant {
        // A timeout that no clock can count to is as good as a year.
        const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);
        began + timeout.min(YEAR) + TICK
    }

    /// Returns the values of `Date` and `Server`.
    pub(crate) fn values(&self) -> (HeaderValue, HeaderValue) {
        (self.date.borrow().clone(), HeaderValue::from_static("milepost"))
    }

    /// Appends those of the two lines whose fields are not among `lines`.
    pub(crate) fn write_missing_fields(&self, lines: &[u8], output: &mut Vec<u8>) {
        for line in self.fields.borrow().split_inclusive(|&byte| byte == b'\n') {
            let name = line.split(|&byte| byte == b':').next().unwrap_or_default();
            let mut known = lines.split(|&byte| byte == b'\n');
            let is_there = known.any(|other| {
                other.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name))
                    && other.get(name.len()) == Some(&b':')
            });
            if !is_there {
                output.extend_from_slice(line);
            }
        }
    }

    /// Appends the `Date` and `Server` field lines.
    pub(crate) fn write_fields(&self, output: &mut Vec<u8>) {
        output.extend_from_slice(&self.fields.borrow());
    }
}
