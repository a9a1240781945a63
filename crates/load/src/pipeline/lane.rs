//! One connection with a pipeline: requests that were sent one after the other, and their answers, which
//! come in the same order.

use std::collections::VecDeque;

use crate::answer::{Answer, Failure, Incoming, Judge};
use crate::failure::FailureKind;
use crate::keep::Keep;
use crate::plan::Plan;
use crate::record::{Record, Sample};
use crate::report::WrongAnswer;
use crate::schedule::Due;
use crate::stream::Stream;

/// A request that is not answered yet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pending {
    pub(super) target: usize,
    pub(super) due: Due,
    /// Since when its place was free, and when it was due; 0 if its connection had to be opened for it.
    pub(super) ready: u64,
    /// Bytes of all requests on the connection before it.
    start: u64,
    /// When its first byte was written; 0 before.
    pub(super) sent: u64,
}

/// A place for a connection. It outlives its sockets.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) socket: Option<Stream>,
    /// Whether nothing may be done with the socket before there is news of it.
    pub(super) is_connecting: bool,
    /// Whether requests can be written.
    pub(super) is_open: bool,
    pub(super) opened_at: u64,
    /// When what lies on top of the socket could begin; 0 before, and without such.
    pub(super) connected_at: u64,
    /// Not to be opened before, and failures to open it in a row.
    pub(super) retry_at: u64,
    pub(super) failures: u32,
    pub(super) is_given_up: bool,
    /// Whether it waits to be written to.
    pub(super) is_dirty: bool,
    pub(super) pending: VecDeque<Pending>,
    /// Requests that are not all written, and how much of that is.
    out: Vec<u8>,
    written: usize,
    /// Bytes of all requests so far, those in `out` and those that are gone.
    queued: u64,
    incoming: Incoming,
    first_byte: u64,
    /// Answers that this socket has carried.
    answered: u64,
}

/// What came of some bytes.
#[derive(Debug, Default)]
pub(super) struct Received {
    /// Requests that were answered.
    pub(super) answered: usize,
    /// Whether the socket is used up, and why if that is a failure of the request in front.
    pub(super) end: Option<Option<Failure>>,
}

/// What answers are held against, and where they are counted.
pub(super) struct Desk<'a> {
    pub(super) plan: &'a Plan,
    pub(super) judges: &'a mut [Judge],
    pub(super) record: &'a mut Record,
    pub(super) now: u64,
}

impl Lane {
    pub(super) fn new() -> Self {
        Self {
            socket: None,
            is_connecting: false,
            is_open: false,
            opened_at: 0,
            connected_at: 0,
            retry_at: 0,
            failures: 0,
            is_given_up: false,
            is_dirty: false,
            pending: VecDeque::new(),
            out: Vec::new(),
            written: 0,
            queued: 0,
            incoming: Incoming::keeping(Keep::default()),
            first_byte: 0,
            answered: 0,
        }
    }

    /// Puts a request behind the others.
    pub(super) fn push(&mut self, target: usize, due: Due, ready: u64, bytes: &[u8]) {
        let ready = if self.is_open { ready } else { 0 };
        self.pending.push_back(Pending { target, due, ready, start: self.queued, sent: 0 });
        self.out.extend_from_slice(bytes);
        self.queued += bytes.len() as u64;
    }

    /// What is to be written.
    pub(super) fn unwritten(&mut self) -> (Option<&mut Stream>, &[u8]) {
        (self.socket.as_mut(), &self.out[self.written..])
    }

    /// `length` bytes were written.
    pub(super) fn wrote(&mut self, length: usize) {
        self.written += length;
        if self.written == self.out.len() {
            self.out.clear();
            self.written = 0;
        }
    }

    /// What was written counts as sent at `now`. Returns the requests whose first byte was among it.
    pub(super) fn sent(&mut self, now: u64) -> impl Iterator<Item = Pending> + '_ {
        let gone = self.queued - (self.out.len() - self.written) as u64;
        // Those that were sent before are in front.
        let from = self.pending.partition_point(|pending| pending.sent > 0);
        let sent = self.pending.range_mut(from..).take_while(move |it| it.start < gone);
        sent.map(move |pending| {
            pending.sent = now;
            *pending
        })
    }

    /// Whether the request in front is written and does not count as sent yet.
    pub(super) fn is_unsent(&self) -> bool {
        self.pending.front().is_some_and(|front| front.sent == 0)
    }

    /// Whether the answer to the request in front has begun.
    pub(super) fn is_started(&self) -> bool {
        self.incoming.is_started()
    }

    /// Whether this socket has carried an answer.
    pub(super) fn has_answered(&self) -> bool {
        self.answered > 0
    }

    /// Takes what was read: counts answers until the bytes are used up.
    pub(super) fn receive(&mut self, bytes: &[u8], desk: &mut Desk<'_>) -> Received {
        let (mut rest, mut received) = (bytes, Received::default());
        while !rest.is_empty() {
            let Some(front) = self.pending.front().copied().filter(|it| it.sent > 0) else {
                // Nobody asked for that. A request that is on its way may get no answer now.
                received.end = Some(None);
                break;
            };
            if !self.incoming.is_started() {
                self.first_byte = desk.now;
            }
            let describe = desk.record.wants_example(front.target);
            let judge = &mut desk.judges[front.target];
            match self.incoming.receive_some(rest, judge, describe) {
                Ok(None) => break,
                Ok(Some((_, surplus))) if surplus > 0 && self.pending.len() == 1 => {
                    let detail = format!("{surplus} bytes after the end of the last answer");
                    let failure = Failure::new(FailureKind::SurplusBytes, detail);
                    received.end = Some(Some(failure));
                    break;
                }
                Ok(Some((answer, surplus))) => {
                    rest = &rest[rest.len() - surplus..];
                    self.count(front, answer, desk);
                    received.answered += 1;
                    if !answer.persistent {
                        received.end = Some(None);
                        break;
                    }
                }
                Err(failure) => {
                    received.end = Some(Some(failure));
                    break;
                }
            }
        }
        received
    }

    /// The server has closed the connection, which is how an answer without a length ends.
    pub(super) fn end(&mut self, is_whole: bool, desk: &mut Desk<'_>) -> Received {
        let Some(front) = self.pending.front().copied() else {
            return Received { answered: 0, end: Some(None) };
        };
        let describe = desk.record.wants_example(front.target);
        match self.incoming.close(&desk.judges[front.target], describe) {
            Ok(answer) if is_whole => {
                self.count(front, answer, desk);
                Received { answered: 1, end: Some(None) }
            }
            Ok(_) => Received { answered: 0, end: Some(Some(crate::worker::cut_off())) },
            Err(failure) => Received { answered: 0, end: Some(Some(failure)) },
        }
    }

    /// Counts the answer to the request in front.
    fn count(&mut self, front: Pending, answer: Answer, desk: &mut Desk<'_>) {
        self.pending.pop_front();
        self.answered += 1;
        let got = self.incoming.take_got();
        self.incoming.reset();
        let record = &mut *desk.record;
        record.status(answer.status);
        record.bytes.content += answer.content_bytes;
        if answer.right {
            let Pending { due, sent, .. } = front;
            // In the closed loop a request waits for its connection alone.
            let intended = due.intended.min(sent);
            record.sample(Sample { intended, sent, first_byte: self.first_byte, ended: desk.now });
            return;
        }
        record.wrong += 1;
        if let Some(got) = got {
            let url = desk.plan.targets[front.target].uri();
            let expected = desk.judges[front.target].expected();
            record.examples.push((front.target, WrongAnswer { url, expected, got }));
        }
    }

    /// Closes the socket and returns what was not answered.
    pub(super) fn close(&mut self) -> VecDeque<Pending> {
        self.socket = None;
        self.is_connecting = false;
        self.is_open = false;
        self.connected_at = 0;
        self.out.clear();
        self.written = 0;
        self.queued = 0;
        self.answered = 0;
        self.incoming.reset();
        std::mem::take(&mut self.pending)
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use milepost_http::response::RequestMethod;

    use super::*;
    use crate::target::{Expectation, Target};

    const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

    #[test]
    fn answers_belong_to_requests_in_order_however_they_are_cut() {
        let wrong = "HTTP/1.1 500 ?\r\nContent-Length: 0\r\n\r\n";
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n";
        let stream = [OK, wrong, chunked, OK].concat();
        for size in 1..=stream.len() {
            let (mut lane, mut desk) = (lane(4), Table::new());
            let mut answered = 0;
            for piece in stream.as_bytes().chunks(size) {
                let received = lane.receive(piece, &mut desk.desk());
                assert!(received.end.is_none(), "pieces of {size}: {received:?}");
                answered += received.answered;
            }
            assert_eq!((answered, lane.pending.len()), (4, 0), "pieces of {size}");
            assert_eq!((desk.record.right, desk.record.wrong), (3, 1), "pieces of {size}");
        }
    }

    #[test]
    fn what_nobody_asked_for_ends_the_connection() {
        let (mut lane, mut desk) = (lane(1), Table::new());
        let received = lane.receive(OK.repeat(2).as_bytes(), &mut desk.desk());
        let failure = received.end.unwrap().unwrap();
        assert_eq!((received.answered, failure.kind), (0, FailureKind::SurplusBytes));
        let closing = OK.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n");
        let (mut lane, mut desk) = (self::lane(2), Table::new());
        let received = lane.receive(closing.as_bytes(), &mut desk.desk());
        assert!(received.answered == 1 && received.end == Some(None), "{received:?}");
        assert_eq!(lane.close().len(), 1);
    }

    #[test]
    fn a_request_is_sent_with_its_first_byte() {
        let mut lane = lane(0);
        for number in 0..3 {
            lane.push(0, Due { number, intended: 0 }, 0, b"0123456789");
        }
        let mut wrote = |length, now| {
            lane.wrote(length);
            lane.sent(now).map(|it| it.due.number).collect()
        };
        let none: Vec<u64> = Vec::new();
        let found: [Vec<_>; 4] = [wrote(10, 5), wrote(1, 6), wrote(9, 7), wrote(10, 8)];
        assert_eq!(found, [vec![0], vec![1], none, vec![2]]);
        let sent: Vec<_> = lane.pending.iter().map(|it| it.sent).collect();
        assert_eq!(sent, [5, 6, 8]);
    }

    /// A lane with requests that were sent.
    fn lane(requests: u64) -> Lane {
        let mut lane = Lane::new();
        for number in 0..requests {
            lane.push(0, Due { number, intended: 1 }, 1, b"x");
        }
        lane.wrote(requests as usize);
        assert_eq!(lane.sent(2).count() as u64, requests);
        lane
    }

    struct Table {
        plan: Plan,
        judges: Vec<Judge>,
        record: Record,
    }

    impl Table {
        fn new() -> Self {
            let target = Target::new(SocketAddr::from(([127, 0, 0, 1], 80)), "h", "/");
            let judges = vec![Judge::new(RequestMethod::Other, Expectation::default())];
            Self { plan: Plan::new(vec![target]), judges, record: Record::new() }
        }

        fn desk(&mut self) -> Desk<'_> {
            let Self { plan, judges, record } = self;
            Desk { plan, judges, record, now: 3 }
        }
    }
}
