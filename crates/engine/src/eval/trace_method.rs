//! `TRACE`: the request comes back as the answer, unless `TraceEnable Off` forbids it.
//!
//! Source: httpd 2.4.71 `modules/http/http_filters.c`, `ap_send_http_trace`.

use super::variable::protocol;
use super::{End, Hop, Run};
use crate::program::Trace;

impl Run<'_> {
    /// Makes the head of the request the answer. Content is not part of it, and is allowed with
    /// `TraceEnable Extended` alone.
    pub(super) fn send_back(&mut self, hop: &mut Hop) -> End {
        let trace = self.server.trace.unwrap_or(Trace::On);
        if trace == Trace::Off {
            return End::Status(405);
        }
        if trace == Trace::On && self.has_content() {
            return End::Status(413);
        }
        let mut answer = std::mem::take(&mut self.work.answer);
        answer.clear();
        let request = self.request;
        let line = [request.method, request.target, protocol(request.version)];
        answer.extend_from_slice(&line.join(&b' '));
        answer.extend_from_slice(b"\r\n");
        self.for_each_request_field(|_, name, value| {
            for part in [name, b": ", value, b"\r\n"] {
                answer.extend_from_slice(part);
            }
        });
        answer.extend_from_slice(b"\r\n");
        self.work.answer = answer;
        hop.fields.set(b"Content-Type", b"message/http");
        End::Page
    }

    /// Whether content comes with the request.
    fn has_content(&self) -> bool {
        let length = self.request.fields.value("Content-Length");
        length.is_some_and(|length| length.iter().any(|digit| *digit != b'0'))
            || self.request.fields.count("Transfer-Encoding") > 0
    }
}
