//! `PidFile`, `User`, `Group`, `RequestReadTimeout`, and what bounds the process as a whole.
//!
//! Source: httpd 2.4.71 `modules/arch/unix/mod_unixd.c`, `server/mpm/event/event.c`, `server/mpm_common.c` `ap_mpm_set_pidfile`,
//! `modules/filters/mod_reqtimeout.c` `set_reqtimeouts`.

use std::time::Duration;

use milepost_syntax::Words;

use super::report::{Finding, show};
use super::{Builder, Context, Directive};
use crate::settings::ReadTimeout;

impl Builder<'_> {
    pub(super) fn pid_file(&mut self, directive: &Directive<'_>, context: &Context<'_>) {
        if self.main_only(directive, context)
            && let Some(words) = self.words(directive, 1, 1, "PidFile file")
        {
            self.settings.pid_file = Some(self.resolve(&words[0].text));
        }
    }

    pub(super) fn user(&mut self, directive: &Directive<'_>, context: &Context<'_>) {
        if self.main_only(directive, context)
            && let Some(words) = self.words(directive, 1, 1, "User name|#number")
        {
            self.settings.user = Some(String::from_utf8_lossy(&words[0].text).into_owned());
        }
    }

    pub(super) fn group(&mut self, directive: &Directive<'_>, context: &Context<'_>) {
        if self.main_only(directive, context)
            && let Some(words) = self.words(directive, 1, 1, "Group name|#number")
        {
            self.settings.group = Some(String::from_utf8_lossy(&words[0].text).into_owned());
        }
    }

    /// `MaxRequestWorkers number`
    pub(super) fn max_request_workers(&mut self, directive: &Directive<'_>, context: &Context<'_>) {
        if !self.main_only(directive, context) {
            return;
        }
        let Some(words) = self.words(directive, 1, 1, "MaxRequestWorkers number") else { return };
        match self.number(directive, &words[0]) {
            Some(number) if number > 0 => self.settings.requests_max = Some(number),
            // httpd takes one, and says so.
            _ => {
                let finding = Finding::warning(format!(
                    "{} is no number of requests above 0, and taken for 1",
                    show(&words[0].text)
                ));
                self.report_at(directive, words[0].at, words[0].len, finding);
                self.settings.requests_max = Some(1);
            }
        }
    }

    /// `AsyncRequestWorkerFactor factor`
    pub(super) fn async_factor(&mut self, directive: &Directive<'_>, context: &Context<'_>) {
        if !self.main_only(directive, context) {
            return;
        }
        let Some(words) = self.words(directive, 1, 1, "AsyncRequestWorkerFactor factor") else {
            return;
        };
        let factor: Option<f64> =
            std::str::from_utf8(&words[0].text).ok().and_then(|text| text.parse().ok());
        match factor {
            // A factor beyond a million bounds nothing any more.
            Some(factor) if factor > 0.0 && factor <= 1e6 => {
                self.settings.async_factor_percent = (factor * 100.0).round() as u32;
            }
            _ => {
                let finding =
                    Finding::error("`AsyncRequestWorkerFactor` is a positive number, as in `2`");
                self.report_at(directive, words[0].at, words[0].len, finding);
            }
        }
    }

    /// `GracefulShutdownTimeout seconds`
    pub(super) fn graceful_timeout(&mut self, directive: &Directive<'_>, context: &Context<'_>) {
        if self.main_only(directive, context)
            && let Some(words) = self.words(directive, 1, 1, "GracefulShutdownTimeout seconds")
        {
            match self.number(directive, &words[0]) {
                Some(seconds) => {
                    let time = Duration::from_secs(seconds.into());
                    self.settings.graceful_timeout = (seconds > 0).then_some(time);
                }
                // Below 0: no limit.
                None => self.settings.graceful_timeout = None,
            }
        }
    }

    /// `header=20-40,MinRate=500 body=20,MinRate=500`; each stage by itself.
    pub(super) fn request_read_timeout(
        &mut self,
        directive: &Directive<'_>,
        context: &Context<'_>,
    ) {
        if !self.server_only(directive, context) {
            return;
        }
        if context.server != 0 {
            let finding = Finding::warning(
                "`RequestReadTimeout` counts in the main server only: which virtual host a request is \
                 for is known when its head has been read",
            );
            self.report(directive, finding);
        }
        let mut unused = (None, None, None);
        let (head, content, handshake) = match context.server {
            0 => (
                &mut self.settings.head_timeout,
                &mut self.settings.content_timeout,
                &mut self.settings.tls.handshake_timeout,
            ),
            _ => (&mut unused.0, &mut unused.1, &mut unused.2),
        };
        let mut wrong = None;
        for word in Words::new(directive.args) {
            let text = String::from_utf8_lossy(&word.text).to_ascii_lowercase();
            let stage = text.split_once('=').and_then(|(stage, value)| {
                let timeout = ReadTimeout::parse(value)?;
                match stage {
                    "header" => *head = timeout,
                    "body" => *content = timeout,
                    "handshake" => *handshake = timeout,
                    _ => return None,
                }
                Some(())
            });
            if stage.is_none() {
                wrong = Some(word);
                break;
            }
        }
        if let Some(word) = wrong {
            let finding = Finding::error(format!("{} is not a timeout", show(&word.text)))
                .hint("write `header=20-40,MinRate=500 body=20,MinRate=500`, or 0 for no limit");
            self.report_at(directive, word.at, word.len, finding);
        }
    }
}

impl ReadTimeout {
    /// Reads `20`, `20-40`, `20,minrate=500` and `20-40,minrate=500`. `Some(None)`: no limit.
    fn parse(text: &str) -> Option<Option<ReadTimeout>> {
        let (times, rate) = match text.split_once(',') {
            None => (text, None),
            Some((times, rate)) => {
                let rate = rate.strip_prefix("minrate=")?.parse().ok().filter(|&rate| rate > 0)?;
                (times, Some(rate))
            }
        };
        let (first, last) = match times.split_once('-') {
            None => (times, None),
            Some((first, last)) => (first, Some(last.parse().ok()?)),
        };
        let first: u32 = first.parse().ok()?;
        // Without a rate nothing would ever move the limit towards the second time.
        if last.is_some_and(|last: u32| last < first || rate.is_none()) {
            return None;
        }
        let seconds = |seconds: u32| Duration::from_secs(seconds.into());
        Some((first > 0).then(|| ReadTimeout {
            first: seconds(first),
            last: last.map(seconds),
            bytes_per_second_min: rate,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_are_read_as_in_apache() {
        let limit = |first, last: Option<u64>, rate| {
            let last = last.map(Duration::from_secs);
            let first = Duration::from_secs(first);
            Some(Some(ReadTimeout { first, last, bytes_per_second_min: rate }))
        };
        for (text, expected) in [
            ("20", limit(20, None, None)),
            ("20,minrate=500", limit(20, None, Some(500))),
            ("20-40,minrate=500", limit(20, Some(40), Some(500))),
            ("0", Some(None)),
            ("20-40", None),
            ("40-20,minrate=1", None),
            ("20,minrate=0", None),
            ("20,rate=1", None),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(ReadTimeout::parse(text), expected, "{text}");
        }
    }

    #[test]
    fn bytes_buy_time_up_to_the_second_limit() {
        let limit = ReadTimeout::parse("20-40,minrate=500").flatten().unwrap();
        for (bytes, seconds) in [(0, 20), (499, 20), (500, 21), (9_999, 39), (1 << 40, 40)] {
            assert_eq!(limit.after(bytes), Duration::from_secs(seconds), "{bytes}");
        }
    }
}
