//! A request that cannot be answered at once: its content must be read first, or a backend be asked.
//!
//! The worker's own scratch decides other requests meanwhile. So the decision is put aside
//! ([`milepost_engine::Suspended`]), and goes on in a responder that is there for this: an `ErrorDocument`
//! is found, and fields are edited, by the configuration that decided first, whatever has been loaded since.
//!
//! httpd reads all content of a request before it answers, also if nobody wants it, and says 413 or 400 of
//! content that is too large or malformed in place of what it had to say. So do we, up to a bound.
//!
//! Source: httpd 2.4.71 `modules/http/http_filters.c`, `ap_discard_request_body`, `ap_http_filter`.

use std::borrow::Cow;
use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::time::Instant;

use milepost_engine::{ProxiedAnswer, Suspended};
use milepost_http::request::{HeadLimits, HeadRoom, RequestHead, Version, parse};

use crate::error_log::{Message, Severity};
use crate::limits::{CONTENT_DISCARDED_BYTES_MAX, PROXY_DOCUMENTS_MAX};
use crate::proxy::client::{Client, ContentError, Incoming, Piece};
use crate::proxy::{Fault, Forward, PassedHead, Plan};
use crate::reply::Reply;
use crate::respond::{Answered, Peer};
use crate::site::{Noted, SiteResponder};

/// The request, and what is still to be done for it.
pub(crate) struct Deferred {
    aside: Aside,
    work: Work,
}

/// What is to be done.
pub(crate) enum Work {
    /// The content is read, and the reply is there.
    Content(Made),
    /// A backend is asked.
    Backend(Forward),
}

/// A reply that is made already.
pub(crate) struct Made {
    pub(crate) reply: Box<Reply>,
    /// `LimitRequestBody`
    pub(crate) content_bytes_max: Option<u64>,
    /// A client that waits to be asked for its content is not.
    pub(crate) unasked: bool,
}

/// What is to be answered in place of it.
#[derive(Clone, Copy)]
pub(crate) struct Failed<'a> {
    pub(crate) status: u16,
    /// What the page says, if no directive has another one.
    pub(crate) why: Option<&'a str>,
}

/// How it ended.
pub(crate) enum Ended {
    /// The answer has been handed to the client, to its end.
    Passed,
    /// Nothing has been sent yet: this is the answer.
    Reply(Box<Reply>),
    /// The answer has begun and cannot be ended: the connection must show that.
    Cut,
}

/// What becomes of a request that failed.
pub(crate) enum Failure {
    /// It has an answer with this status.
    Answered(u16),
    /// Its answer, of this status, had begun.
    Cut(u16),
}

/// A request whose decision waits.
pub(crate) struct Aside {
    /// Ends what was begun by the responder of the worker, which may be another one by then.
    ending: Rc<RefCell<SiteResponder>>,
    /// The head of the client's request, to be parsed again where it is needed.
    head: Vec<u8>,
    pub(crate) version: Version,
    pub(crate) peer: Peer,
    suspended: Suspended,
    /// For the log.
    noted: Noted,
    begun: Instant,
}

/// What a responder made of the answer of a backend.
pub(crate) enum Answering {
    Passed(PassedHead),
    Replied(Box<Reply>),
    Elsewhere(Box<Plan>),
}

impl std::fmt::Debug for Deferred {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Deferred({})", String::from_utf8_lossy(&self.aside.request_line()))
    }
}

impl Deferred {
    /// Puts a decision aside; `ending` is a responder of the same site.
    pub(crate) fn new(
        ending: Rc<RefCell<SiteResponder>>,
        head: &RequestHead<'_>,
        peer: &Peer,
        (suspended, noted): (Suspended, Noted),
        work: Work,
    ) -> Deferred {
        let aside = Aside {
            ending,
            head: head.bytes.to_vec(),
            version: head.version,
            peer: peer.clone(),
            suspended,
            noted,
            begun: Instant::now(),
        };
        Deferred { aside, work }
    }

    /// Does what is to be done.
    pub(crate) async fn run<C: Client>(&mut self, client: &mut C) -> Ended {
        for _ in 0..=PROXY_DOCUMENTS_MAX {
            let result = match &mut self.work {
                Work::Content(made) => take_content(made, client).await.map(Some),
                Work::Backend(forward) => forward.attempt(&mut self.aside, client).await,
            };
            match result {
                Ok(Some(ended)) => return ended,
                // The document of an error comes from a backend as well.
                Ok(None) => {}
                Err(fault) => match self.fail(&fault) {
                    Ok(reply) => return Ended::Reply(reply),
                    Err(plan) => self.go_to(*plan),
                },
            }
        }
        let mut reply = Box::<Reply>::default();
        reply.error(500);
        Ended::Reply(reply)
    }

    /// Takes note of the answer in the logs. `answered` is as for a request that is answered at once.
    pub(crate) fn note(&mut self, answered: &Answered<'_>) {
        let aside = &mut self.aside;
        let line = aside.request_line().into_owned();
        let begun = Some(aside.begun);
        aside.go_on(|ending, head, peer| {
            let answered = Answered { head: Some(head), line: &line, begun, ..*answered };
            ending.note_ended(&answered, peer);
        });
    }

    /// When the request had been read.
    pub(crate) fn begun(&self) -> Instant {
        self.aside.begun
    }

    /// The status of the answer, as far as it came from a backend.
    pub(crate) fn status(&self) -> u16 {
        match &self.work {
            Work::Content(_) => 0,
            Work::Backend(forward) => forward.status,
        }
    }

    /// Answers in place of what was to be done; or the plan for a backend that has the document of the error.
    fn fail(&mut self, fault: &Fault) -> Result<Box<Reply>, Box<Plan>> {
        let (status, why) = (fault.status(), fault.sentence());
        let failed = Failed { status, why: why.as_deref() };
        match &self.work {
            Work::Content(_) => self
                .aside
                .replace(|ending, head, peer, reply| ending.refuse(head, peer, reply, failed)),
            Work::Backend(forward) => {
                self.aside.log(fault, Failure::Answered(status), forward.url());
                self.aside
                    .replace(|ending, head, peer, reply| ending.fail(head, peer, reply, failed))
            }
        }
    }

    fn go_to(&mut self, plan: Plan) {
        match &mut self.work {
            Work::Backend(forward) => forward.go_elsewhere(plan),
            Work::Content(_) => {
                let proxies = self.aside.ending.borrow_mut().proxies();
                self.work = Work::Backend(Forward::new(&proxies, plan));
            }
        }
    }
}

impl Aside {
    /// Lets the decision go on. The head was parsed before, so it can be again; `None` if it cannot.
    fn go_on<T>(
        &mut self,
        then: impl FnOnce(&mut SiteResponder, &RequestHead<'_>, &Peer) -> T,
    ) -> Option<T> {
        let unlimited = HeadLimits {
            request_line_bytes_max: usize::MAX / 2,
            field_bytes_max: usize::MAX / 2,
            fields_max: 0,
        };
        let mut room = HeadRoom::default();
        let mut head = parse(&self.head, &unlimited, &mut room).ok().flatten()?;
        head.version = self.version;
        let mut ending = self.ending.borrow_mut();
        ending.resume(std::mem::take(&mut self.suspended), &mut self.noted);
        let result = then(&mut ending, &head, &self.peer);
        self.suspended = ending.suspend(&mut self.noted);
        Some(result)
    }

    /// Makes another reply, or the plan for another backend.
    fn replace(
        &mut self,
        then: impl FnOnce(&mut SiteResponder, &RequestHead<'_>, &Peer, &mut Reply) -> Option<Plan>,
    ) -> Result<Box<Reply>, Box<Plan>> {
        let mut reply = Box::<Reply>::default();
        match self.go_on(|ending, head, peer| then(ending, head, peer, &mut reply)).flatten() {
            Some(plan) => Err(Box::new(plan)),
            None => Ok(reply),
        }
    }

    /// Goes on with what a backend has answered.
    pub(crate) fn answered(&mut self, answer: &ProxiedAnswer<'_>) -> Answering {
        self.go_on(|ending, head, peer| ending.answered(head, peer, answer)).unwrap_or_else(|| {
            let mut reply = Box::<Reply>::default();
            reply.error(500);
            Answering::Replied(reply)
        })
    }

    pub(crate) fn method(&self) -> &[u8] {
        &self.head[..memchr::memchr(b' ', &self.head).unwrap_or_default()]
    }

    /// The request line as the client has sent it, or would have.
    fn request_line(&self) -> Cow<'_, [u8]> {
        let end = memchr::memmem::find(&self.head, b"\r\n").unwrap_or(self.head.len());
        let line = &self.head[..end];
        match line.strip_suffix(b"1.1").filter(|_| self.version == Version::Http2) {
            Some(start) => Cow::Owned([start, b"2.0"].concat()),
            None => Cow::Borrowed(line),
        }
    }

    /// Tells the error log of the virtual host whose fault it was, which, and what became of the request.
    pub(crate) fn log(&mut self, fault: &Fault, failure: Failure, url: &[u8]) {
        let (whose, severity) = match fault.is_of_backend() {
            true => ("backend", Severity::ERROR),
            false => ("client of backend", Severity::WARN),
        };
        let outcome = match failure {
            Failure::Answered(status) => format!("is answered with {status}"),
            Failure::Cut(status) => format!("has its answer cut off, of status {status},"),
        };
        let text = format!(
            "{whose} {}: {fault}; \"{}\" {outcome} after {:.3} s",
            String::from_utf8_lossy(url),
            String::from_utf8_lossy(&self.request_line()),
            self.begun.elapsed().as_secs_f64(),
        );
        self.say(severity, &text, fault.system_error());
    }

    /// Tells the error log of the virtual host about something that went wrong with a backend.
    pub(crate) fn say(&mut self, severity: Severity, text: &str, error: Option<i32>) {
        let message =
            Message { module: "proxy", severity, text: text.as_bytes(), place: None, error };
        self.go_on(|ending, head, peer| ending.say(head, peer, &message));
    }
}

/// Reads content that nobody wants. Beyond a bound the reply does not wait for it any more.
async fn take_content<C: Client>(made: &mut Made, client: &mut C) -> Result<Ended, Fault> {
    let max = made.content_bytes_max.unwrap_or(u64::MAX);
    let is_wanted = match client.content() {
        Incoming::None => false,
        Incoming::Length(length) if length > max => return Err(ContentError::TooLarge.into()),
        Incoming::Length(length) => length <= CONTENT_DISCARDED_BYTES_MAX,
        Incoming::Unknown => true,
    };
    let mut taken = 0;
    let mut piece = Vec::new();
    while is_wanted && !made.unasked && taken <= CONTENT_DISCARDED_BYTES_MAX {
        piece.clear();
        let progress = poll_fn(|context| client.poll_content(context, &mut piece)).await?;
        taken += piece.len() as u64;
        if taken > max {
            return Err(ContentError::TooLarge.into());
        }
        if progress == Piece::End {
            break;
        }
    }
    Ok(Ended::Reply(std::mem::take(&mut made.reply)))
}
