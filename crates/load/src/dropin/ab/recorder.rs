//! Keeps the times of every request, as ab does, and counts what ab counts.
//!
//! 32 bytes a request, as in ab itself: its figures are exact and its files have a row for each.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::options::Options;
use crate::control::Control;
use crate::dropin::Outside;
use crate::failure::FailureKind;
use crate::head_fields::field;
use crate::keep::{Keep, KeepContent};
use crate::observer::{Answered, Exchanged, Observer, Outcome};

/// So much of each content is shown with `-v 2`. ab shows what the first reads brought.
const SHOWN_BYTES_MAX: usize = 8 * 1024;

/// Progress is told every tenth of the requests, and not more often than this.
const PROGRESS_EVERY_MIN: u64 = 100;

/// APR's number for a timeout, of which the exit code is the low byte.
const TIMED_OUT: i32 = 70_007;

/// Sees every exchange.
pub(super) struct Recorder<'a> {
    options: &'a Options,
    outside: &'a dyn Outside,
    control: &'a Control,
    progress_every: u64,
    taken: Mutex<Taken>,
}

/// What came of the requests.
#[derive(Debug, Default)]
pub(super) struct Taken {
    /// One for each complete answer.
    pub(super) rows: Vec<Row>,
    /// Value of the first Server field, up to its first blank.
    pub(super) server: String,
    /// Length of the first content.
    pub(super) document_bytes: Option<u64>,
    pub(super) failed: Failed,
    pub(super) not_2xx: u64,
    pub(super) kept_alive: u64,
    /// Requests without a complete answer.
    pub(super) unanswered: u64,
    pub(super) fatal: Option<Fatal>,
}

/// Failed requests by ab's kinds.
#[derive(Debug, Default)]
pub(super) struct Failed {
    pub(super) connect: u64,
    pub(super) receive: u64,
    pub(super) length: u64,
    pub(super) exceptions: u64,
}

/// Times of one answered request in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    /// From the start of the run.
    pub(super) began: u64,
    pub(super) connect: u64,
    /// From the request to the first byte of the answer.
    pub(super) waiting: u64,
    pub(super) total: u64,
}

/// What ends the run before its time.
#[derive(Debug)]
pub(super) struct Fatal {
    pub(super) message: String,
    pub(super) exit: u8,
}

impl Failed {
    pub(super) fn sum(&self) -> u64 {
        self.connect + self.receive + self.length + self.exceptions
    }
}

impl Row {
    /// From the connection to the end of the answer.
    pub(super) fn processing(&self) -> u64 {
        self.total - self.connect
    }
}

impl Taken {
    /// Requests that ended, well or badly.
    pub(super) fn done(&self) -> u64 {
        self.rows.len() as u64 + self.unanswered
    }
}

impl<'a> Recorder<'a> {
    pub(super) fn new(
        options: &'a Options,
        outside: &'a dyn Outside,
        control: &'a Control,
    ) -> Self {
        let progress_every = (options.count() / 10).max(PROGRESS_EVERY_MIN);
        Self { options, outside, control, progress_every, taken: Mutex::default() }
    }

    pub(super) fn into_taken(self) -> Taken {
        self.taken.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows an answer, as much of it as the verbosity asks for.
    fn show(&self, answer: &Answered<'_>) {
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        let (head, content) = (text(answer.head), text(answer.content));
        let mut out = format!("LOG: header received:\n{head}{content}\n");
        if !is_2xx(answer.status) {
            out.push_str(&format!("WARNING: Response code not 2xx ({})\n", answer.status));
        } else if self.options.verbosity >= 3 {
            out.push_str(&format!("LOG: Response code = {}\n", answer.status));
        }
        self.outside.out(&out);
    }

    fn answered(&self, exchange: &Exchanged<'_>, answer: &Answered<'_>) {
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let mut taken = self.taken();
        let is_first = taken.document_bytes.is_none();
        if is_first {
            taken.document_bytes = Some(answer.content_bytes);
            let server = field(answer.head, "Server").unwrap_or_default();
            let end = server.iter().position(|byte| *byte <= b' ').unwrap_or(server.len());
            taken.server = String::from_utf8_lossy(&server[..end]).into_owned();
        }
        if taken.document_bytes != Some(answer.content_bytes) && !self.options.accepts_any_length {
            taken.failed.length += 1;
        }
        taken.not_2xx += u64::from(!is_2xx(answer.status));
        taken.kept_alive += u64::from(self.options.keep_alive && answer.persistent);
        taken.rows.push(Row {
            began: nanos(exchange.began),
            connect: nanos(exchange.connect.unwrap_or_default()),
            waiting: nanos(exchange.first_byte - exchange.sent),
            total: nanos(exchange.ended - exchange.began),
        });
        self.progress(&taken);
        drop(taken);
        if self.options.verbosity >= 2 {
            self.show(answer);
        }
    }

    fn failed(&self, kind: FailureKind, detail: &str, os_error: Option<i32>) {
        let mut taken = self.taken();
        taken.unanswered += 1;
        // A socket's error ends the run unless it is tolerated; a timeout always does.
        let mut fatal = (!self.options.tolerates_errors).then_some("apr_socket_recv");
        let failed = &mut taken.failed;
        let mut number = os_error;
        match kind {
            FailureKind::ConnectRefused | FailureKind::ConnectFailed | FailureKind::NoLocalPort => {
                failed.connect += 1
            }
            FailureKind::Reset | FailureKind::Io => failed.receive += 1,
            FailureKind::ClosedInContent => {
                failed.length += 1;
                fatal = None;
            }
            FailureKind::TimedOut => {
                failed.exceptions += 1;
                number = Some(TIMED_OUT);
                fatal = Some("apr_pollset_poll");
            }
            _ => {
                failed.exceptions += 1;
                fatal = None;
            }
        }
        if let Some(function) = fatal {
            let number = number.unwrap_or(1);
            let words = match number {
                TIMED_OUT => "The timeout specified has expired".to_owned(),
                _ if os_error.is_some() => super::plain(&std::io::Error::from_raw_os_error(number)),
                _ => detail.to_owned(),
            };
            let message = format!("{function}: {words} ({number})");
            // The exit code of a process is the low byte of what it exits with.
            taken.fatal.get_or_insert(Fatal { message, exit: (number & 0xff) as u8 });
            self.control.stop();
        }
        self.progress(&taken);
    }

    fn progress(&self, taken: &Taken) {
        let done = taken.done();
        if self.options.shows_progress() && done.is_multiple_of(self.progress_every) {
            self.outside.err(&format!("Completed {done} requests\n"));
        }
    }
}

impl Observer for Recorder<'_> {
    fn keep(&self) -> Keep {
        let content = match self.options.verbosity >= 2 {
            true => KeepContent::Bytes(SHOWN_BYTES_MAX),
            false => KeepContent::Length,
        };
        Keep { head: true, content }
    }

    fn ended(&self, exchange: &Exchanged<'_>) {
        match exchange.outcome {
            Outcome::Answered(answer) => self.answered(exchange, &answer),
            Outcome::Failed { kind, detail, os_error } => self.failed(kind, detail, os_error),
        }
    }
}

fn is_2xx(status: u16) -> bool {
    (200..300).contains(&status)
}

/// Shows the head of a request.
pub(super) fn request(method: &str, request: &[u8]) -> String {
    let end = request.windows(4).position(|bytes| bytes == b"\r\n\r\n");
    let head = &request[..end.map_or(request.len(), |end| end + 4)];
    format!("INFO: {method} header == \n---\n{}\n---\n", String::from_utf8_lossy(head))
}
