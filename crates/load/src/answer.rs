//! Reads one answer as it arrives: finds its end, and whether it is the right one.
//!
//! No socket and no clock in here: bytes in, verdict out. A server answers the same request with
//! the same head nearly every time but for the date, so a head is first compared with the last one
//! that came for the target. Equal bytes mean an equal verdict: the check of status, Location and
//! length costs one `memcmp`. Anything else is parsed in full. Content is counted, not kept, and only
//! a head that comes in pieces is copied, so a run needs constant memory.

use std::ops::Range;

use milepost_http::chunked::{Chunked, Step};
use milepost_http::response::{
    Framing, HEAD_BYTES_MAX, HeadError, RequestMethod, ResponseHead, head_end,
};

use crate::check::{describe_head, push_content, push_sha256};
use crate::failure::FailureKind;
use crate::keep::{Keep, Kept};
use crate::target::Expectation;

/// Status of a response that hands the connection over to another protocol: nothing follows that
/// we could read.
const SWITCHING_PROTOCOLS: u16 = 101;

/// What is known about the answers to one target.
#[derive(Debug)]
pub(crate) struct Judge {
    method: RequestMethod,
    expectation: Expectation,
    last: Option<LastHead>,
}

/// A head that was parsed, and what came of it.
#[derive(Debug)]
struct LastHead {
    bytes: Vec<u8>,
    /// Values of Date and Keep-Alive, in order: they change from answer to answer and change
    /// nothing. Empty when absent.
    varying: [Range<usize>; 2],
    facts: Facts,
}

/// What a head says about the rest of the exchange.
#[derive(Debug, Clone, Copy)]
struct Facts {
    version_minor: u8,
    status: u16,
    framing: Framing,
    persistent: bool,
    right: bool,
}

/// One complete answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Answer {
    /// Minor version: 0 or 1.
    pub(crate) version_minor: u8,
    pub(crate) status: u16,
    /// The connection may carry another request.
    pub(crate) persistent: bool,
    /// It is the expected one.
    pub(crate) right: bool,
    pub(crate) content_bytes: u64,
}

/// Why there is no complete answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) kind: FailureKind,
    pub(crate) detail: String,
    /// The system's number for it, if it came from there.
    pub(crate) os_error: Option<i32>,
}

impl Failure {
    /// One that is not the system's.
    pub(crate) fn new(kind: FailureKind, detail: impl Into<String>) -> Self {
        Self { kind, detail: detail.into(), os_error: None }
    }
}

/// An answer on its way. One for each connection, used again for the next answer.
#[derive(Debug, Default)]
pub(crate) struct Incoming {
    state: State,
    /// Bytes of a head that is not complete yet.
    head: Vec<u8>,
    content_bytes: u64,
    facts: Option<Facts>,
    /// Whether anything at all has come.
    started: bool,
    /// The answer in words; only of a wrong one, and only if examples are wanted.
    got: Option<String>,
    kept: Kept,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Head,
    /// This many bytes of content are to come.
    Length(u64),
    Chunked(Chunked),
    UntilClose,
}

impl Judge {
    pub(crate) fn new(method: RequestMethod, expectation: Expectation) -> Self {
        Self { method, expectation, last: None }
    }

    /// What was expected, in words.
    pub(crate) fn expected(&self) -> String {
        self.expectation.describe()
    }

    /// Returns the length and the facts of the head that `bytes` begins with, if it is like the last.
    #[inline]
    fn recognise(&self, bytes: &[u8]) -> Option<(usize, Facts)> {
        let last = self.last.as_ref()?;
        let head = bytes.get(..last.bytes.len())?;
        let [first, second] = &last.varying;
        let equal = |range: Range<usize>| head[range.clone()] == last.bytes[range];
        let same = equal(0..first.start)
            && equal(first.end..second.start)
            && equal(second.end..head.len())
            && is_one_line(&head[first.clone()])
            && is_one_line(&head[second.clone()]);
        same.then_some((head.len(), last.facts))
    }

    /// Parses `head` in full and remembers it, unless another head follows it.
    fn parse(&mut self, head: &[u8]) -> Result<Facts, HeadError> {
        let parsed = ResponseHead::parse(head, self.method)?;
        let facts = Facts {
            version_minor: parsed.version_minor,
            status: parsed.status,
            framing: parsed.framing,
            persistent: parsed.persistent && parsed.status != SWITCHING_PROTOCOLS,
            right: self.expectation.accepts_head(&parsed),
        };
        if is_interim(facts.status) {
            return Ok(facts);
        }
        let mut varying = [parsed.date, parsed.keep_alive].map(|range| range.unwrap_or(0..0));
        varying.sort_by_key(|range| range.start);
        let last = self.last.get_or_insert_with(|| LastHead {
            bytes: Vec::new(),
            varying: [0..0, 0..0],
            facts,
        });
        last.bytes.clear();
        last.bytes.extend_from_slice(head);
        last.varying = varying;
        last.facts = facts;
        Ok(facts)
    }
}

impl Incoming {
    /// A place for answers of which this is kept.
    pub(crate) fn keeping(keep: Keep) -> Self {
        Self { kept: Kept::new(keep), ..Self::default() }
    }

    /// What was kept of the answer.
    pub(crate) fn kept(&self) -> &Kept {
        &self.kept
    }

    /// Makes ready for the next answer. Keeps its memory.
    #[inline]
    pub(crate) fn reset(&mut self) {
        self.state = State::Head;
        self.head.clear();
        self.content_bytes = 0;
        self.facts = None;
        self.started = false;
        self.got = None;
        self.kept.clear();
    }

    /// Whether any byte of the answer has come.
    pub(crate) fn is_started(&self) -> bool {
        self.started
    }

    /// The wrong answer in words, if it was asked for.
    pub(crate) fn take_got(&mut self) -> Option<String> {
        self.got.take()
    }

    /// Takes what was read. `Some` when the answer is complete; `describe` asks for words about it
    /// if it is wrong.
    ///
    /// # Errors
    ///
    /// When this is no answer, or more than one. The connection is of no use afterwards.
    #[inline]
    pub(crate) fn receive(
        &mut self,
        bytes: &[u8],
        judge: &mut Judge,
        describe: bool,
    ) -> Result<Option<Answer>, Failure> {
        match self.receive_some(bytes, judge, describe)? {
            Some((_, surplus)) if surplus > 0 => {
                let detail = format!("{surplus} bytes after the end of the answer");
                Err(Failure::new(FailureKind::SurplusBytes, detail))
            }
            answered => Ok(answered.map(|(answer, _)| answer)),
        }
    }

    /// The same where another answer may follow: returns how many bytes are left behind the end of this
    /// one. They are the last of `bytes`.
    ///
    /// # Errors
    ///
    /// When this is no answer. The connection is of no use afterwards.
    #[inline]
    pub(crate) fn receive_some(
        &mut self,
        bytes: &[u8],
        judge: &mut Judge,
        describe: bool,
    ) -> Result<Option<(Answer, usize)>, Failure> {
        self.started |= !bytes.is_empty();
        let rest = match self.state {
            State::Head if self.head.is_empty() => match judge.recognise(bytes) {
                // A wrong answer that has to be described takes the long way.
                Some((length, facts)) if facts.right || !describe => {
                    self.kept.head(&bytes[..length]);
                    self.begin_content(facts, judge);
                    &bytes[length..]
                }
                _ => return self.receive_head(bytes, judge, describe),
            },
            State::Head => return self.receive_head(bytes, judge, describe),
            _ => bytes,
        };
        self.receive_content(rest, judge, describe)
    }

    /// The server has closed the connection, which is how an answer without a length ends.
    ///
    /// # Errors
    ///
    /// When the answer is not complete.
    pub(crate) fn close(&mut self, judge: &Judge, describe: bool) -> Result<Answer, Failure> {
        let (kind, detail) = match &self.state {
            State::UntilClose => return Ok(self.complete(judge, describe)),
            State::Head if !self.started => {
                (FailureKind::ClosedBeforeAnswer, "closed without an answer".to_owned())
            }
            State::Head => (
                FailureKind::ClosedInHead,
                format!("closed after {} bytes of the head", self.head.len()),
            ),
            State::Length(left) => {
                let (got, all) = (self.content_bytes, self.content_bytes + left);
                (
                    FailureKind::ClosedInContent,
                    format!("closed after {got} of {all} bytes of content"),
                )
            }
            State::Chunked(_) => {
                let got = self.content_bytes;
                (
                    FailureKind::ClosedInContent,
                    format!("closed after {got} bytes of chunked content"),
                )
            }
        };
        Err(Failure::new(kind, detail))
    }

    /// The long way: collects a head, parses it, goes on to the content.
    #[cold]
    fn receive_head(
        &mut self,
        bytes: &[u8],
        judge: &mut Judge,
        describe: bool,
    ) -> Result<Option<(Answer, usize)>, Failure> {
        if self.head.is_empty() {
            let (used, facts) = self.take_heads(bytes, 0, judge, describe)?;
            if facts.is_some() {
                return self.receive_content(&bytes[used..], judge, describe);
            }
            self.head.extend_from_slice(&bytes[used..]);
            return Ok(None);
        }
        let seen = self.head.len();
        let mut head = std::mem::take(&mut self.head);
        head.extend_from_slice(bytes);
        let (used, facts) = self.take_heads(&head, seen, judge, describe)?;
        let answer = match facts {
            Some(_) => self.receive_content(&head[used..], judge, describe)?,
            None => None,
        };
        // Hands the memory back, with what is still incomplete in it.
        head.drain(..if facts.is_some() { head.len() } else { used });
        self.head = head;
        Ok(answer)
    }

    /// Takes heads from the front of `bytes`, interim ones (1xx) and the final one, and returns how
    /// many bytes they had. The first `seen` bytes were searched before.
    fn take_heads(
        &mut self,
        bytes: &[u8],
        seen: usize,
        judge: &mut Judge,
        describe: bool,
    ) -> Result<(usize, Option<Facts>), Failure> {
        let (mut used, mut seen) = (0, seen);
        while let Some(length) = head_end(&bytes[used..], seen) {
            let head = &bytes[used..used + length];
            if length > HEAD_BYTES_MAX {
                return Err(head_too_large());
            }
            let facts = judge.parse(head).map_err(|error| bad_head(&error, head))?;
            used += length;
            seen = 0;
            if !is_interim(facts.status) {
                if !facts.right && describe {
                    let parsed = ResponseHead::parse(head, judge.method);
                    self.got = parsed.ok().map(|parsed| describe_head(&parsed));
                }
                self.kept.head(head);
                self.begin_content(facts, judge);
                return Ok((used, Some(facts)));
            }
        }
        if bytes.len() - used > HEAD_BYTES_MAX {
            return Err(head_too_large());
        }
        Ok((used, None))
    }

    #[inline]
    fn begin_content(&mut self, facts: Facts, judge: &Judge) {
        if judge.expectation.content_sha256.is_some() {
            self.kept.begin_sha256();
        }
        self.facts = Some(facts);
        self.state = match facts.framing {
            Framing::Length(length) => State::Length(length),
            Framing::Chunked => State::Chunked(Chunked::default()),
            Framing::UntilClose => State::UntilClose,
        };
    }

    #[inline]
    fn receive_content(
        &mut self,
        bytes: &[u8],
        judge: &Judge,
        describe: bool,
    ) -> Result<Option<(Answer, usize)>, Failure> {
        let surplus = match &mut self.state {
            State::Length(left) => {
                let taken = (*left).min(bytes.len() as u64);
                *left -= taken;
                self.content_bytes += taken;
                self.kept.content(&bytes[..taken as usize]);
                if *left > 0 {
                    return Ok(None);
                }
                bytes.len() - taken as usize
            }
            State::Chunked(chunked) => {
                match advance(chunked, bytes, &mut self.content_bytes, &mut self.kept)? {
                    None => return Ok(None),
                    Some(end) => bytes.len() - end,
                }
            }
            State::UntilClose => {
                self.content_bytes += bytes.len() as u64;
                self.kept.content(bytes);
                return Ok(None);
            }
            State::Head => return Ok(None),
        };
        Ok(Some((self.complete(judge, describe), surplus)))
    }

    #[inline]
    fn complete(&mut self, judge: &Judge, describe: bool) -> Answer {
        let facts = self.facts.expect("content follows a head");
        let content_right =
            judge.expectation.accepts_content(self.content_bytes, self.kept.sha256());
        if !content_right && describe {
            let got = self.got.get_or_insert_with(|| format!("status {}", facts.status));
            push_content(got, self.content_bytes);
            if let Some(sha256) = self.kept.sha256() {
                push_sha256(got, &sha256);
            }
        }
        Answer {
            version_minor: facts.version_minor,
            status: facts.status,
            persistent: facts.persistent,
            right: facts.right && content_right,
            content_bytes: self.content_bytes,
        }
    }
}

/// Reads chunked content and returns where in `bytes` it ends, if it does.
fn advance(
    chunked: &mut Chunked,
    bytes: &[u8],
    content_bytes: &mut u64,
    kept: &mut Kept,
) -> Result<Option<usize>, Failure> {
    let mut at = 0;
    loop {
        match chunked.step(bytes, at) {
            Ok(Step::Content(range)) => {
                *content_bytes += range.len() as u64;
                at = range.end;
                kept.content(&bytes[range]);
            }
            Ok(Step::More) => return Ok(None),
            Ok(Step::End(end)) => return Ok(Some(end)),
            Err(error) => {
                return Err(Failure::new(FailureKind::MalformedChunk, error.to_string()));
            }
        }
    }
}

/// Whether another head follows on the same answer.
fn is_interim(status: u16) -> bool {
    (100..200).contains(&status) && status != SWITCHING_PROTOCOLS
}

/// A changed value that holds a line end would be another field.
#[inline]
fn is_one_line(value: &[u8]) -> bool {
    memchr::memchr2(b'\r', b'\n', value).is_none()
}

fn head_too_large() -> Failure {
    let detail = format!("message head of more than {HEAD_BYTES_MAX} bytes");
    Failure::new(FailureKind::HeadTooLarge, detail)
}

fn bad_head(error: &HeadError, head: &[u8]) -> Failure {
    /// Enough to recognise what came instead.
    const SHOWN_BYTES_MAX: usize = 60;
    let kind = match error {
        HeadError::TooManyFields => FailureKind::HeadTooLarge,
        _ => FailureKind::MalformedHead,
    };
    let shown = head[..head.len().min(SHOWN_BYTES_MAX)].escape_ascii();
    Failure::new(kind, format!("{error}, in \"{shown}\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    const REDIRECT: &str = "HTTP/1.1 301 Moved\r\nDate: Sat, 21 Nov 2026 05:00:00 GMT\r\n\
                            Location: http://h/new/1\r\nKeep-Alive: timeout=5, max=99\r\n\
                            Content-Length: 5\r\n\r\nmoved";

    #[test]
    fn an_answer_is_complete_where_its_framing_says() {
        check("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nsuccess\n", Ok((200, 8, true)));
        check("HTTP/1.1 204 No Content\r\n\r\n", Ok((204, 0, true)));
        check(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
            Ok((200, 3, true)),
        );
        check(
            "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n\
             HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx",
            Ok((200, 1, true)),
        );
        check("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", Ok((200, 0, false)));
        let fields = "A: b\r\n".repeat(101);
        check(
            &format!("HTTP/1.0 200 OK\r\n{fields}Content-Length: 0\r\n\r\n"),
            Ok((200, 0, false)),
        );
        check("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", Ok((101, 0, false)));
    }

    #[test]
    fn what_is_no_answer_is_a_failure_by_kind() {
        check("SSH-2.0-OpenSSH\r\n\r\n", Err(FailureKind::MalformedHead));
        check(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
            Err(FailureKind::MalformedChunk),
        );
    }

    #[test]
    fn surplus_bytes_are_a_failure() {
        let mut incoming = Incoming::default();
        let answer = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nxy";
        let failure = incoming.receive(answer.as_bytes(), &mut judge(), false).unwrap_err();
        assert_eq!(failure.kind, FailureKind::SurplusBytes);
    }

    #[test]
    fn a_head_is_limited_with_and_without_end() {
        let head = |bytes: usize| {
            let empty = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nA: \r\n\r\n";
            empty.replace("A: ", &format!("A: {}", "x".repeat(bytes - empty.len())))
        };
        let receive = |text: &str| {
            let mut incoming = Incoming::default();
            let mut judge = judge();
            // In two pieces, so that the collected head is what is limited.
            let (first, second) = text.split_at(100);
            assert_eq!(incoming.receive(first.as_bytes(), &mut judge, false), Ok(None));
            incoming.receive(second.as_bytes(), &mut judge, false).map(|answer| answer.is_some())
        };
        assert_eq!(receive(&head(HEAD_BYTES_MAX)), Ok(true));
        let too_large = Err(FailureKind::HeadTooLarge);
        assert_eq!(receive(&head(HEAD_BYTES_MAX + 1)).map_err(|failure| failure.kind), too_large);
        let endless = "x".repeat(HEAD_BYTES_MAX + 1);
        assert_eq!(receive(&endless).map_err(|failure| failure.kind), too_large);
        assert_eq!(receive(&"x".repeat(HEAD_BYTES_MAX)), Ok(false));
    }

    #[test]
    fn closing_ends_only_content_without_length() {
        for (text, result) in [
            ("HTTP/1.1 200 OK\r\n\r\nabc", Ok(3)),
            ("", Err(FailureKind::ClosedBeforeAnswer)),
            ("HTTP/1.1 200", Err(FailureKind::ClosedInHead)),
            ("HTTP/1.1 100 Continue\r\n\r\n", Err(FailureKind::ClosedInHead)),
            ("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nabc", Err(FailureKind::ClosedInContent)),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
                Err(FailureKind::ClosedInContent),
            ),
        ] {
            let (mut incoming, mut judge) = (Incoming::default(), judge());
            assert_eq!(incoming.receive(text.as_bytes(), &mut judge, false), Ok(None), "{text:?}");
            let answer = incoming.close(&judge, false).map(|answer| answer.content_bytes);
            assert_eq!(answer.map_err(|failure| failure.kind), result, "{text:?}");
        }
    }

    #[test]
    fn a_head_like_the_last_is_recognised_but_for_date_and_keep_alive() {
        let mut judge = Judge::new(
            RequestMethod::Other,
            Expectation::redirect(301, "http://h/new/1").content_bytes(5),
        );
        let mut incoming = Incoming::default();
        assert!(incoming.receive(REDIRECT.as_bytes(), &mut judge, true).unwrap().unwrap().right);
        for (from, to, recognised, right) in [
            ("05:00:00", "05:00:01", true, true),
            ("max=99", "max=98", true, true),
            ("max=99", "max=100", false, true),
            ("new/1", "new/2", false, false),
            ("301", "302", false, false),
            ("moved", "MOVED", true, true),
            // Fields smuggled into the values that may change are seen.
            ("max=99", "x\r\nA: ", false, true),
        ] {
            let changed = REDIRECT.replace(from, to);
            assert_eq!(judge.recognise(changed.as_bytes()).is_some(), recognised, "{to}");
            incoming.reset();
            let answer = incoming.receive(changed.as_bytes(), &mut judge, false).unwrap().unwrap();
            assert_eq!(answer.right, right, "{to}");
            incoming.reset();
            incoming.receive(REDIRECT.as_bytes(), &mut judge, false).unwrap();
        }
    }

    #[test]
    fn a_wrong_answer_is_wrong_every_time_and_described_when_asked() {
        let mut judge =
            Judge::new(RequestMethod::Other, Expectation::redirect(301, "http://h/new/2"));
        let mut incoming = Incoming::default();
        for describe in [false, true, false, true] {
            incoming.reset();
            let answer = incoming.receive(REDIRECT.as_bytes(), &mut judge, describe).unwrap();
            assert!(!answer.unwrap().right);
            let got = "status 301, Location http://h/new/1".to_owned();
            assert_eq!(incoming.take_got(), describe.then_some(got));
        }
    }

    #[test]
    fn content_of_another_length_is_wrong() {
        let mut judge = Judge::new(RequestMethod::Other, Expectation::status(200).content_bytes(8));
        let mut incoming = Incoming::default();
        let text = "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nsuccess";
        let answer = incoming.receive(text.as_bytes(), &mut judge, true).unwrap().unwrap();
        assert!(!answer.right);
        assert_eq!(incoming.take_got().as_deref(), Some("status 200, 7 bytes of content"));
    }

    fn judge() -> Judge {
        Judge::new(RequestMethod::Other, Expectation::default())
    }

    /// Status, content length and persistence, whatever the pieces, also when recognised.
    #[track_caller]
    fn check(text: &str, expected: Result<(u16, u64, bool), FailureKind>) {
        let mut judge = judge();
        for piece in (1..=text.len()).chain([text.len()]) {
            let mut incoming = Incoming::default();
            let mut result = Ok(None);
            for bytes in text.as_bytes().chunks(piece) {
                result = incoming.receive(bytes, &mut judge, false);
                if result.is_err() {
                    break;
                }
            }
            let result = result
                .map(|answer| answer.map(|it| (it.status, it.content_bytes, it.persistent)))
                .map_err(|failure| failure.kind);
            assert_eq!(result, expected.map(Some), "in pieces of {piece}");
        }
    }
}
