//! The responder of a compiled site: asks the engine, and turns its decision into a reply.

use std::borrow::Cow;
use std::sync::Arc;

use milepost_engine::{Decision, Fields, Outcome, Request, Scheme, Scratch, Site, Version};
use milepost_http::request::{self, FieldLines, RequestHead};

use crate::files::{ALLOWED, Files};
use crate::outside::LastLook;
use crate::reply::Reply;
use crate::respond::{Peer, Respond};

/// Answers as a site decides. The site is shared by all workers; the rest is one worker's own.
pub struct SiteResponder {
    site: Arc<Site>,
    scratch: Scratch,
    files: Files,
    outside: LastLook,
}

impl SiteResponder {
    /// Makes a responder for one worker.
    #[must_use]
    pub fn new(site: Arc<Site>) -> SiteResponder {
        SiteResponder {
            site,
            scratch: Scratch::default(),
            files: Files::default(),
            outside: LastLook::default(),
        }
    }
}

impl Respond for SiteResponder {
    fn respond(&mut self, head: &RequestHead<'_>, peer: &Peer, reply: &mut Reply) {
        self.outside.forget();
        let request = Request {
            method: head.method,
            target: head.target,
            version: match head.version {
                request::Version::Http10 => Version::Http10,
                request::Version::Http11 => Version::Http11,
            },
            scheme: Scheme::Http,
            fields: &HeadFields(head.fields),
            local: peer.local,
            remote: peer.remote,
        };
        let Decision { outcome, .. } = self.site.decide(&request, &self.outside, &mut self.scratch);
        match outcome {
            Outcome::Redirect { status, location } => reply.redirect(status, location),
            Outcome::File { path } => {
                let seen = self.outside.take(path);
                self.files.answer(head, path, seen, reply);
            }
            Outcome::Status(status @ 200..=299) => reply.set_status(status),
            Outcome::Status(status) => {
                if status == 405 {
                    reply.add_field("Allow", ALLOWED);
                }
                reply.error(status);
            }
        }
    }
}

/// The fields of a head, as the engine looks them up.
struct HeadFields<'a>(FieldLines<'a>);

impl Fields for HeadFields<'_> {
    fn value(&self, name: &str) -> Option<Cow<'_, [u8]>> {
        let mut values = self.0.all(name);
        let first = values.next()?;
        let Some(second) = values.next() else { return Some(Cow::Borrowed(first)) };
        let mut joined = [first, second].join(&b", "[..]);
        for value in values {
            joined.extend_from_slice(b", ");
            joined.extend_from_slice(value);
        }
        Some(Cow::Owned(joined))
    }

    fn count(&self, name: &str) -> usize {
        self.0.count(name)
    }

    fn name(&self, number: usize) -> Option<&str> {
        self.0.iter().nth(number).and_then(|(name, _)| std::str::from_utf8(name).ok())
    }
}

#[cfg(test)]
mod tests {
    use milepost_http::request::{HeadLimits, parse};

    use super::*;

    #[test]
    fn field_lines_of_one_name_are_joined() {
        let head = b"GET / HTTP/1.1\r\nHost: a\r\nX: 1\r\nY: 0\r\nx: 2\r\nX: 3\r\n\r\n";
        let mut lines = Vec::new();
        let head = parse(head, &HeadLimits::default(), &mut lines).unwrap().unwrap();
        let fields = HeadFields(head.fields);
        assert_eq!(fields.value("X").as_deref(), Some(&b"1, 2, 3"[..]));
        assert_eq!(fields.value("y").as_deref(), Some(&b"0"[..]));
        assert_eq!(fields.value("z"), None);
        assert_eq!((fields.count("X"), fields.count("z")), (3, 0));
    }
}
