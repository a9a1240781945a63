//! Shows on stderr how far a run is: a view that renews itself on a terminal, a plain line every few
//! seconds elsewhere. The same thread takes the intervals to where they are written.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use milepost_load::{Control, Interval, Progress};
use milepost_stats::histogram::{Bound, Histogram};

use super::outputs::Outputs;
use super::text;

/// How often the view on a terminal is renewed, and intervals are taken: the control is no fresher.
const LIVE_EVERY: Duration = Duration::from_millis(200);

/// How often a line is printed to a file or pipe.
const PLAIN_EVERY: Duration = Duration::from_secs(5);

/// Back to the start of the line, and clear from there to the end of the screen.
const CLEAR: &str = "\r\x1b[J";

/// A terminal that is too narrow cuts lines off instead of breaking them: a view takes as many lines as it has.
const NO_WRAP: &str = "\x1b[?7l";
const WRAP: &str = "\x1b[?7h";

/// Seconds that the sparkline shows: what fits beside the rest on a line of 80 characters.
const SPARKS_MAX: usize = 30;

/// From nothing to most.
const SPARKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Percentiles of the view.
const PERCENTILES: [(&str, f64); 3] = [("50 %", 0.5), ("99 %", 0.99), ("99.9 %", 0.999)];

/// How progress is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Display {
    None,
    Live,
    PlainLines,
}

/// What the measured part runs towards.
#[derive(Debug, Clone, Copy)]
pub(super) enum Limit {
    Length(Duration),
    Requests(u64),
}

/// Runs `work`, shows meanwhile what `control` knows, and takes its intervals to `outputs`.
pub(super) fn show<T: Send>(
    display: Display,
    limit: Limit,
    control: &Control,
    outputs: &mut Outputs,
    work: impl FnOnce() -> T + Send,
) -> T {
    if display == Display::None && outputs.is_empty() {
        return work();
    }
    thread::scope(|scope| {
        let (done, is_done) = channel::<()>();
        scope.spawn(move || {
            let mut view = View::new(limit);
            let mut lines = 0;
            let mut said = Instant::now();
            while is_done.recv_timeout(LIVE_EVERY) == Err(RecvTimeoutError::Timeout) {
                take(control, outputs, &mut view);
                let now = Instant::now();
                view.begin(control.progress(), now);
                match display {
                    Display::Live => {
                        let text = view.lines(control.progress(), now);
                        say(&format!("{}{NO_WRAP}{text}{WRAP}", clear(lines)));
                        lines = text.lines().count();
                    }
                    Display::PlainLines if now - said >= PLAIN_EVERY => {
                        said = now;
                        say(&format!("{}\n", view.line(control.progress(), now)));
                    }
                    _ => {}
                }
            }
            take(control, outputs, &mut view);
            if display == Display::Live {
                say(&clear(lines));
            }
        });
        let result = work();
        drop(done);
        result
    })
}

/// Takes what is complete.
fn take(control: &Control, outputs: &mut Outputs, view: &mut View) {
    for interval in control.take_intervals() {
        outputs.interval(&interval, control.measuring_since().unwrap_or_else(SystemTime::now));
        view.interval(&interval);
    }
}

/// Clears as many lines, the cursor at the end of the last.
fn clear(lines: usize) -> String {
    match lines {
        0 | 1 => CLEAR.to_owned(),
        more => format!("\x1b[{}A{CLEAR}", more - 1),
    }
}

/// Makes what is shown.
#[derive(Debug)]
struct View {
    limit: Limit,
    began: Option<Instant>,
    last: Option<(Instant, Progress)>,
    /// Right answers a second in the last seconds.
    rates: VecDeque<f64>,
    response: Histogram,
}

impl View {
    fn new(limit: Limit) -> Self {
        let (rates, response) = (VecDeque::new(), Histogram::new());
        Self { limit, began: None, last: None, rates, response }
    }

    /// Looks whether the measured part has begun.
    fn begin(&mut self, progress: Progress, now: Instant) {
        if progress.measuring && self.began.is_none() {
            self.began = Some(now);
            self.last = Some((now, Progress::default()));
        }
    }

    fn interval(&mut self, interval: &Interval) {
        self.response.merge(&interval.response);
        let right = interval.counts.requests - interval.counts.wrong_answers;
        let seconds = interval.length.as_secs_f64();
        if seconds > 0.0 {
            self.rates.push_back(right as f64 / seconds);
        }
        while self.rates.len() > SPARKS_MAX {
            self.rates.pop_front();
        }
    }

    /// The line of a moment; rates are those since the last one.
    fn line(&mut self, progress: Progress, now: Instant) -> String {
        if !progress.measuring {
            return "warming up".to_owned();
        }
        let Progress { answered, wrong, errors, .. } = progress;
        let so_far = self.so_far(answered, now);
        let rate = self.last.replace((now, progress)).map(|(then, before)| {
            let seconds = (now - then).as_secs_f64().max(f64::MIN_POSITIVE);
            let rate = (answered - before.answered) as f64 / seconds;
            format!(", {} a second", text::grouped(rate.round() as u64))
        });
        let rate = rate.unwrap_or_default();
        format!("{so_far}{rate}, {} wrong, {} errors", text::grouped(wrong), text::grouped(errors))
    }

    /// The view on a terminal.
    fn lines(&self, progress: Progress, now: Instant) -> String {
        if !progress.measuring {
            return "warming up".to_owned();
        }
        let Progress { sent, answered, wrong, errors, .. } = progress;
        let mut text = self.so_far(answered, now);
        let under_way = sent.saturating_sub(answered + errors);
        let counts = [(wrong, "wrong"), (errors, "errors"), (under_way, "under way")];
        for (count, name) in counts {
            text.push_str(&format!("   {} {name}", text::grouped(count)));
        }
        if let Some(rate) = self.rates.back() {
            let rate = text::grouped(rate.round() as u64);
            text.push_str(&format!("\n{rate:>11} a second   {}", sparkline(&self.rates)));
        }
        let times = PERCENTILES.iter().filter_map(|(label, q)| {
            let estimate = self.response.quantile(*q).filter(|_| self.response.beyond(*q) > 0)?;
            let bound = if estimate.bound == Bound::AtLeast { text::AT_LEAST } else { "" };
            Some(format!("   {label} {bound}{}", text::time(estimate.ns)))
        });
        let times: String = times.collect();
        if !times.is_empty() {
            text.push_str(&format!("\nresponse time{times}"));
        }
        text
    }

    fn so_far(&self, answered: u64, now: Instant) -> String {
        let answered = text::grouped(answered);
        match self.limit {
            Limit::Length(length) => {
                let seconds = self.began.map_or(0.0, |began| (now - began).as_secs_f64());
                format!("{seconds:.1} of {:.1} s, {answered} answers", length.as_secs_f64())
            }
            Limit::Requests(count) => format!("{answered} of {} answers", text::grouped(count)),
        }
    }
}

/// Heights from zero to the most.
fn sparkline(rates: &VecDeque<f64>) -> String {
    let most = rates.iter().copied().fold(0.0, f64::max);
    let top = SPARKS.len() - 1;
    let height =
        |rate: f64| if most > 0.0 { (rate / most * top as f64).round() as usize } else { 0 };
    rates.iter().map(|rate| SPARKS[height(*rate).min(top)]).collect()
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
        let mut view = View::new(Limit::Length(Duration::from_secs(10)));
        view.begin(Progress::default(), began);
        assert_eq!(view.line(Progress::default(), began), "warming up");
        view.begin(progress(0), began);
        view.begin(progress(7), began + Duration::from_secs(1));
        assert_eq!(
            view.line(progress(50_000), began + Duration::from_secs(5)),
            "5.0 of 10.0 s, 50,000 answers, 10,000 a second, 1 wrong, 2 errors"
        );
        assert_eq!(
            view.line(progress(50_500), began + Duration::from_secs(7)),
            "7.0 of 10.0 s, 50,500 answers, 250 a second, 1 wrong, 2 errors"
        );
        let mut view = View::new(Limit::Requests(20_000));
        assert_eq!(view.line(progress(5), began), "5 of 20,000 answers, 1 wrong, 2 errors");
    }

    #[test]
    fn the_view_has_rates_and_percentiles_as_soon_as_there_are_some() {
        let began = Instant::now();
        let mut view = View::new(Limit::Length(Duration::from_secs(10)));
        assert_eq!(view.lines(Progress::default(), began), "warming up");
        let first = "0.0 of 10.0 s, 10 answers   1 wrong   2 errors   3 under way";
        assert_eq!(view.lines(progress(10), began), first);
        view.rates = [0.0, 500.0, 1_234.4].into();
        (1..=100).for_each(|millis| view.response.record(millis * 1_000_000));
        assert_eq!(
            view.lines(progress(10), began),
            format!(
                "{first}\n      1,234 a second   ▁▄█\nresponse time   50 % 50.0 ms   99 % 99.0 ms"
            )
        );
        let longest = 1 + view
            .lines(progress(10), began)
            .lines()
            .map(|line| line.chars().count())
            .max()
            .unwrap();
        assert!(longest < 80);
    }

    #[test]
    fn a_sparkline_is_as_high_as_the_most() {
        assert_eq!(sparkline(&[0.0, 0.0].into()), "▁▁");
        assert_eq!(sparkline(&[7.0, 0.0, 3.5, 7.0].into()), "█▁▅█");
        assert_eq!(sparkline(&VecDeque::new()), "");
    }

    #[test]
    fn what_is_cleared_is_what_was_printed() {
        assert_eq!(clear(0), "\r\x1b[J");
        assert_eq!(clear(1), "\r\x1b[J");
        assert_eq!(clear(3), "\x1b[2A\r\x1b[J");
    }

    fn progress(answered: u64) -> Progress {
        Progress { measuring: true, sent: answered + 5, answered, wrong: 1, errors: 2 }
    }
}
