//! The request as expressions see it.
//!
//! Source: httpd 2.4.71 `server/util_expr_eval.c`, `request_var_fn`, `conn_var_fn`, `misc_var_fn`,
//! `req_table_func`, `env_func`, `op_url_subr`, `op_file_subr`.

use std::borrow::Cow;
use std::net::IpAddr;

use milepost_http::path;
use milepost_pcre::Matcher;

use super::ahead;
use super::identity::write_text;
use super::{Hop, Run};
use crate::expr::{Ahead, Capture, Condition, Context, EvalError, Table, Template};
use crate::outside::Outside;
use crate::request::Version;

/// A request on its way, for the evaluator.
struct InRequest<'a, 'r> {
    run: &'a mut Run<'r>,
    hop: &'a Hop,
}

impl Run<'_> {
    /// Whether a condition holds. One that cannot be evaluated does not.
    pub(super) fn holds(
        &mut self,
        condition: &Condition,
        hop: &Hop,
        capture: &mut Capture,
    ) -> bool {
        let before = self.work.seen.is_wanted();
        self.work.seen.resume(true);
        let holds = condition.holds(&mut InRequest { run: self, hop }, capture).unwrap_or(false);
        self.work.seen.resume(before);
        holds
    }

    /// Appends a text, its variables replaced.
    ///
    /// # Errors
    /// [`EvalError`]; a request that needs the text ends in a 500.
    pub(super) fn write_template(
        &mut self,
        template: &Template,
        hop: &Hop,
        out: &mut Vec<u8>,
    ) -> Result<(), EvalError> {
        template.write(&mut InRequest { run: self, hop }, out)
    }

    /// As [`Run::write_template`], where `$0` to `$9` are the groups of a match.
    ///
    /// # Errors
    /// [`EvalError`]
    pub(super) fn write_template_with(
        &mut self,
        template: &Template,
        hop: &Hop,
        capture: &mut Capture,
        out: &mut Vec<u8>,
    ) -> Result<(), EvalError> {
        template.write_with(&mut InRequest { run: self, hop }, capture, out)
    }
}

impl Context for InRequest<'_, '_> {
    fn variable(&mut self, name: &'static str, out: &mut Vec<u8>) {
        let InRequest { run, hop } = self;
        match name {
            "API_VERSION" => out.extend_from_slice(b"20120211"),
            // It is known when the answer is made, to what changes the fields of that.
            "CONTENT_TYPE" => out.extend_from_slice(run.content_type(hop)),
            "HANDLER" => out.extend_from_slice(run.handler_name(hop)),
            "DOCUMENT_URI" => match hop.env.get(b"DOCUMENT_URI") {
                Some(uri) => out.extend_from_slice(uri),
                None => out.extend_from_slice(&hop.uri),
            },
            "HTTP2" => {
                let on = run.request.version == Version::Http2;
                out.extend_from_slice(if on { b"on" } else { b"off" });
            }
            // No file has been looked at yet by whoever sets it.
            "LAST_MODIFIED" => out.extend_from_slice(b"19700101000000"),
            "REQUEST_STATUS" => write_text(out, format_args!("{}", hop.status)),
            // The owner of the file is not known here.
            "SCRIPT_GROUP" | "SCRIPT_USER" => {}
            name => {
                // Whether it was sent or not, the answer depends on it.
                if let Some(field) = field_of(name) {
                    run.work.seen.add(field);
                }
                run.variable(hop, name.as_bytes(), out);
            }
        }
    }

    fn look_up(&mut self, table: Table, name: &[u8], out: &mut Vec<u8>) {
        let InRequest { run, hop } = self;
        let value = match table {
            Table::Request | Table::RequestUnseen => {
                if table == Table::Request {
                    run.work.seen.add(name);
                }
                run.write_request_field(name, out);
                return;
            }
            Table::Response => {
                hop.fields.get(name).or_else(|| run.work.always.get(name)).map(Cow::Borrowed)
            }
            Table::Notes => hop.notes.get(name).map(Cow::Borrowed),
            Table::Environment => run.env(hop, name),
            Table::AnyEnvironment => {
                hop.notes.get(name).map(Cow::Borrowed).or_else(|| run.env(hop, name))
            }
            Table::Process => None,
            Table::Tls => {
                run.tls_variable(hop, name, out);
                return;
            }
        };
        if let Some(value) = value {
            return out.extend_from_slice(&value);
        }
        if matches!(table, Table::AnyEnvironment | Table::Process)
            && let Ok(name) = std::str::from_utf8(name)
            && let Some(value) = run.outside.environment(name)
        {
            out.extend_from_slice(value.as_bytes());
        }
    }

    fn is_reachable(&mut self, ahead: Ahead, target: &[u8]) -> bool {
        let InRequest { run, hop } = self;
        match ahead {
            Ahead::File => run.is_reachable(hop, ahead::Ahead::File, target),
            Ahead::Url if target.first() == Some(&b'/') => {
                run.is_reachable(hop, ahead::Ahead::Url, target)
            }
            Ahead::Url => {
                // Relative to the directory of the path.
                let mut url = run.take_buffer();
                let directory = memchr::memrchr(b'/', &hop.uri).map_or(0, |slash| slash + 1);
                path::escape(&hop.uri[..directory], &mut url);
                url.extend_from_slice(target);
                let reachable = run.is_reachable(hop, ahead::Ahead::Url, &url);
                run.put_buffer(url);
                reachable
            }
        }
    }

    fn client(&self) -> IpAddr {
        self.run.client().ip()
    }

    fn outside(&self) -> &dyn Outside {
        self.run.outside
    }

    fn matcher(&mut self) -> &mut Matcher {
        &mut self.run.work.matcher
    }

    fn take_buffer(&mut self) -> Vec<u8> {
        self.run.take_buffer()
    }

    fn put_buffer(&mut self, buffer: Vec<u8>) {
        self.run.put_buffer(buffer);
    }
}

/// The request field that a variable stands for.
fn field_of(variable: &str) -> Option<&'static [u8]> {
    Some(match variable {
        "HTTP_ACCEPT" => b"Accept",
        "HTTP_COOKIE" => b"Cookie",
        "HTTP_FORWARDED" => b"Forwarded",
        "HTTP_PROXY_CONNECTION" => b"Proxy-Connection",
        "HTTP_REFERER" => b"Referer",
        "HTTP_USER_AGENT" => b"User-Agent",
        _ => return None,
    })
}
