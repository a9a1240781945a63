//! Shows on stderr how far a run is: one line that renews itself on a terminal, a plain line every
//! few seconds elsewhere.

use std::io::{self, Write};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use milepost_load::{Control, Progress};

/// How often a line on a terminal is renewed: the control is no fresher.
const LIVE_EVERY: Duration = Duration::from_millis(200);

/// How often a line is printed to a file or pipe.
const PLAIN_EVERY: Duration = Duration::from_secs(5);

/// Back to the start of the line, and clear it.
const CLEAR_LINE: &str = "\r\x1b[K";

/// How progress is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Display {
    None,
    LiveLine,
    PlainLines,
}

/// What the measured part runs towards.
#[derive(Debug, Clone, Copy)]
pub(super) enum Limit {
    Length(Duration),
    Requests(u64),
}

/// Runs `work` and shows meanwhile what `control` knows.
pub(super) fn show<T: Send>(
    display: Display,
    limit: Limit,
    control: &Control,
    work: impl FnOnce() -> T + Send,
) -> T {
    if display == Display::None {
        return work();
    }
    thread::scope(|scope| {
        let (done, is_done) = channel::<()>();
        scope.spawn(move || {
            let every = if display == Display::LiveLine { LIVE_EVERY } else { PLAIN_EVERY };
            let mut line = Line::new(limit);
            while is_done.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                let text = line.next(control.progress(), Instant::now());
                match display {
                    Display::LiveLine => say(&format!("{CLEAR_LINE}{text}")),
                    _ => say(&format!("{text}\n")),
                }
            }
            if display == Display::LiveLine {
                say(CLEAR_LINE);
            }
        });
        let result = work();
        drop(done);
        result
    })
}

/// Makes the lines: rates are those since the last one.
#[derive(Debug)]
struct Line {
    limit: Limit,
    began: Option<Instant>,
    last: Option<(Instant, Progress)>,
}

impl Line {
    fn new(limit: Limit) -> Self {
        Self { limit, began: None, last: None }
    }

    fn next(&mut self, progress: Progress, now: Instant) -> String {
        if !progress.measuring {
            return "warming up".to_owned();
        }
        let began = *self.began.get_or_insert(now);
        let Progress { answered, wrong, errors, .. } = progress;
        let so_far = match self.limit {
            Limit::Length(length) => {
                let seconds = (now - began).as_secs_f64();
                format!("{seconds:.1} of {:.1} s, {answered} answers", length.as_secs_f64())
            }
            Limit::Requests(count) => format!("{answered} of {count} answers"),
        };
        let rate = self.last.replace((now, progress)).map(|(then, before)| {
            let seconds = (now - then).as_secs_f64().max(f64::MIN_POSITIVE);
            format!(", {:.0} a second", (answered - before.answered) as f64 / seconds)
        });
        format!("{so_far}{}, {wrong} wrong, {errors} errors", rate.unwrap_or_default())
    }
}

/// Progress that nobody can see is no reason to stop.
fn say(text: &str) {
    let mut stderr = io::stderr().lock();
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_tell_the_rate_since_the_last() {
        let began = Instant::now();
        let progress = |answered| Progress {
            measuring: true,
            answered,
            wrong: 1,
            errors: 2,
            ..Progress::default()
        };
        let mut line = Line::new(Limit::Length(Duration::from_secs(10)));
        assert_eq!(line.next(Progress::default(), began), "warming up");
        assert_eq!(line.next(progress(0), began), "0.0 of 10.0 s, 0 answers, 1 wrong, 2 errors");
        assert_eq!(
            line.next(progress(500), began + Duration::from_secs(2)),
            "2.0 of 10.0 s, 500 answers, 250 a second, 1 wrong, 2 errors"
        );
        let mut line = Line::new(Limit::Requests(20));
        assert_eq!(line.next(progress(5), began), "5 of 20 answers, 1 wrong, 2 errors");
    }
}
