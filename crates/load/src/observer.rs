//! Shows every exchange to whoever wants to see it, when it ends.
//!
//! The report adds up; an observer sees the single request: its times, its head, what the drop-in
//! front ends print line by line. A run without one pays a comparison a request for it.

use std::time::Duration;

use crate::failure::FailureKind;
use crate::keep::Keep;
use crate::target::Target;

/// Sees every exchange of the measured part and of the warm-up, on the thread that had it. What takes
/// long in here delays the next answer of that thread, and shows as the generator's lateness.
pub trait Observer: Sync {
    /// What is to be kept of each answer. Asked once, before the run.
    fn keep(&self) -> Keep {
        Keep::default()
    }

    /// An exchange has ended, well or badly. What was outstanding when the run was cut is not shown.
    fn ended(&self, exchange: &Exchanged<'_>);
}

/// One request and what became of it.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Exchanged<'a> {
    /// Which of the connections of the plan it had, from 0.
    pub connection: usize,
    /// What was requested.
    pub target: &'a Target,
    /// Place in the plan's list of what this request, or the first of its chain, is.
    pub listed: usize,
    /// Which request of a chain it was, from 0: a redirect that is followed makes a chain.
    pub hop: u32,
    /// Whether another request of the same chain follows at once.
    pub goes_on: bool,
    /// The request as it went over the wire.
    pub request: &'a [u8],
    /// What became of it.
    pub outcome: Outcome<'a>,
    /// Opening the connection, if this request had to open it, until it could be written to.
    pub connect: Option<Duration>,
    /// From the start of the run to when the exchange began: with opening the connection if it had to.
    pub began: Duration,
    /// From the start of the run to when the request was written. As [`Exchanged::began`] if it never
    /// was.
    pub sent: Duration,
    /// From the start of the run to the first byte of the answer; the end if none came.
    pub first_byte: Duration,
    /// From the start of the run to the end.
    pub ended: Duration,
}

/// What became of a request.
#[derive(Debug, Clone, Copy)]
pub enum Outcome<'a> {
    /// A complete answer came.
    Answered(Answered<'a>),
    /// No complete answer came, or a redirect that could not be followed.
    Failed {
        /// Why.
        kind: FailureKind,
        /// Why, in words.
        detail: &'a str,
        /// The system's number for it, if it came from there.
        os_error: Option<i32>,
    },
}

/// A complete answer.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Answered<'a> {
    /// Minor version of HTTP/1: 0 or 1.
    pub version_minor: u8,
    /// Status.
    pub status: u16,
    /// Whether it is the expected one.
    pub right: bool,
    /// Whether the connection may carry another request.
    pub persistent: bool,
    /// Length of the content without framing.
    pub content_bytes: u64,
    /// The head, if it was to be kept; empty otherwise.
    pub head: &'a [u8],
    /// The content, if it was to be kept, up to the limit; empty otherwise.
    pub content: &'a [u8],
    /// The digest of the content, if it was to be made; one and the same number otherwise.
    pub digest: u64,
}
