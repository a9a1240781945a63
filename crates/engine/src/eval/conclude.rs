//! Takes a request from the end of its first pass to its answer: internal redirects, the documents of
//! errors, the fields of the response.
//!
//! A document that fails gives way to the plain page of the first error, with the fields and variables of
//! the request as it was then. But a `RewriteRule` that ends the request for a document makes it a new
//! request in httpd's eyes, and its answer counts.
//!
//! Source: httpd 2.4.71 `modules/http/http_request.c`, `ap_die_r`, `internal_internal_redirect`;
//! `modules/http/http_protocol.c`, `ap_send_error_response`.

use milepost_http::request::is_token;

use super::edit::{Stage, Target, TooLong};
use super::handler::DIRECTORY;
use super::rewrite::FORCED_TYPE;
use super::spelling::VARIANTS;
use super::target::split_query;
use super::{Config, End, Hop, Run, has_control};
use crate::outside::FileKind;
use crate::program::{Document, DocumentKind, Trace};
use crate::trace::Event;

/// The methods that a file answers to, and last the one that `TraceEnable Off` takes away.
const ALLOWED: &[u8] = b"GET,POST,OPTIONS,HEAD,TRACE";
const TRACED: &[u8] = b"TRACE";

/// Why a request starts over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    /// A rule of a directory sent it to another path, or `DirectoryIndex` did.
    Rewritten,
    /// It failed; what follows is the document of its error.
    Failed,
}

/// How a request is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// To the `Location` in `Work::answer`.
    Redirect(u16),
    /// The plain page of a status.
    Status(u16),
    /// The text in `Work::answer`.
    Text(u16),
    /// The file at `Hop::filename`.
    File(u16),
    /// What the server at the URL in `Hop::filename` says.
    Proxy(u16),
    /// That answer, with its fields.
    Passed(u16),
    /// The page in `Work::answer`, made for this request.
    Page(u16),
    /// The methods of the target.
    Options,
    /// `OPTIONS *`
    Server,
}

impl Run<'_> {
    /// What the server does before anything else: `early` changes, and `SetEnvIf`.
    pub(super) fn read(&mut self, hop: &mut Hop, path: &[u8]) -> Result<(), End> {
        hop.config = None;
        let edits = &self.server.base.edits;
        if !edits.is_empty() {
            let early = Stage::Early;
            self.run_edits(hop, &edits.request, Target::Request, early)
                .and_then(|()| self.run_edits(hop, &edits.always, Target::Always, early))
                .and_then(|()| self.run_edits(hop, &edits.success, Target::Success, early))
                .map_err(|TooLong| End::Status(500))?;
        }
        self.set_env_of_server(hop, path);
        Ok(())
    }

    /// Goes on until there is an answer.
    pub(super) fn conclude(&mut self, hop: &mut Hop, mut end: End) -> Answer {
        loop {
            end = match end {
                End::Internal => self.internal_redirect(hop, Why::Rewritten),
                End::File => return Answer::File(hop.status),
                End::Proxy => return Answer::Proxy(hop.status),
                End::Page => return Answer::Page(hop.status),
                End::Options => return Answer::Options,
                End::Server => return Answer::Server,
                // Most redirects: nobody looks at their fields, nor has a document for them.
                End::Redirect(status) if hop.status == 200 && !self.has_documents(hop) => {
                    hop.status = status;
                    return Answer::Redirect(status);
                }
                End::Redirect(status) => {
                    hop.fields.set(b"Location", &self.work.answer);
                    match self.fail(hop, status) {
                        Some(answer) => return answer,
                        None => self.internal_redirect(hop, Why::Failed),
                    }
                }
                End::Status(status) => match self.fail(hop, status) {
                    Some(answer) => return answer,
                    None => self.internal_redirect(hop, Why::Failed),
                },
            }
        }
    }

    /// Starts over with the URL-path and query in the answer.
    fn internal_redirect(&mut self, hop: &mut Hop, why: Why) -> End {
        self.redirects += 1;
        if self.redirects > self.server.recursion_max.0 {
            return End::Status(500);
        }
        let target = std::mem::take(&mut self.work.answer);
        self.note(None, |_| Event::InternalRedirect { target: target.clone() });
        let (path, args) = split_query(&target);
        // Rules can leave a status behind: what fails from here on is answered as this request.
        if hop.status != 200 && !self.has_first {
            self.settle_env(hop);
            self.has_first = true;
            self.work.first.copy_from(hop);
        }
        hop.set_args(args);
        hop.forget_proxy();
        self.keep_target(hop, &target);
        hop.filename.clear();
        hop.path_info.clear();
        hop.kind = None;
        hop.document_root = None;
        hop.checked = Some(hop.config.take());
        self.keep_fields(hop, why);
        self.rename_env(hop);
        let end = self.pass(hop, path, false);
        if !matches!(end, End::Internal | End::Page | End::Redirect(_)) {
            self.work.answer = target;
            self.work.answer.clear();
        }
        end
    }

    /// Whether the configuration has a document for any status.
    fn has_documents(&self, hop: &Hop) -> bool {
        let config = hop.config.as_deref().unwrap_or(&self.server.base);
        !config.error_documents.is_empty()
    }

    /// An error or a redirect. `None`: its document is at the path in `Work::answer`.
    fn fail(&mut self, hop: &mut Hop, status: u16) -> Option<Answer> {
        // Of the request as it came httpd forgets what status rules left behind.
        if hop.status != 200 && self.redirects > 0 {
            if self.has_first {
                std::mem::swap(hop, &mut self.work.first);
            } else {
                hop.status = status;
            }
            return Some(self.plain(hop));
        }
        hop.status = status;
        let config = hop.config.clone();
        let config = config.as_deref().unwrap_or(&self.server.base);
        let document = config.error_documents.iter().find(|(known, _)| *known == status);
        let Some((_, document)) = document else { return Some(self.plain(hop)) };
        let pool = document.pool(&self.program.pool);
        let kind = &document.value.kind;
        let (DocumentKind::Path(content)
        | DocumentKind::Url(content)
        | DocumentKind::Text(content)) = kind
        else {
            return Some(self.plain(hop));
        };
        let mut answer = std::mem::take(&mut self.work.answer);
        answer.clear();
        let written = match content {
            Document::Plain(text) => {
                answer.extend_from_slice(pool.get(*text));
                Ok(())
            }
            Document::Expanded(template) => self.write_template(template, hop, &mut answer),
        };
        self.work.answer = answer;
        if written.is_err() {
            return Some(self.plain(hop));
        }
        self.rule = Some((document.value.place, document.own_text().cloned()));
        match kind {
            DocumentKind::Path(_) => {
                if !self.has_first {
                    self.settle_env(hop);
                    self.has_first = true;
                    self.work.first.copy_from(hop);
                }
                hop.env.set(b"REQUEST_METHOD", self.method(hop));
                hop.as_get = true;
                None
            }
            DocumentKind::Url(_) => {
                hop.status = 302;
                hop.fields.set(b"Location", &self.work.answer);
                Some(Answer::Redirect(302))
            }
            DocumentKind::Text(_) | DocumentKind::Default => Some(Answer::Text(status)),
        }
    }

    /// The answer without a document.
    fn plain(&mut self, hop: &Hop) -> Answer {
        if let Some(list) = hop.notes.get(VARIANTS).filter(|_| hop.status == 300) {
            self.work.answer.clear();
            self.work.answer.extend_from_slice(list);
            return Answer::Text(hop.status);
        }
        let location =
            hop.fields.get(b"Location").filter(|_| matches!(hop.status, 300..=399 | 500));
        self.work.answer.clear();
        self.work.answer.extend_from_slice(location.unwrap_or_default());
        match location {
            Some(_) => Answer::Redirect(hop.status),
            None => Answer::Status(hop.status),
        }
    }

    /// The response fields that an internal redirect takes along.
    pub(super) fn keep_fields(&mut self, hop: &mut Hop, why: Why) {
        let name: &[u8] = match why {
            Why::Rewritten => b"Vary",
            // The document of a redirect is sent with its status and its `Location`.
            Why::Failed if (300..400).contains(&hop.status) => b"Location",
            Why::Failed => b"",
        };
        let mut value = self.take_buffer();
        let kept = hop.fields.get(name).map(|kept| value.extend_from_slice(kept)).is_some();
        hop.fields.clear();
        hop.notes.clear();
        if kept {
            hop.fields.set(name, &value);
        }
        self.put_buffer(value);
    }

    /// `RequestHeader`, once the file is known.
    pub(super) fn edit_request(&mut self, hop: &mut Hop, config: &Config<'_>) {
        let edits = &config.get().edits;
        // A change that fails ends the changes, and that is all.
        let _ = self.run_edits(hop, &edits.request, Target::Request, Stage::Late);
    }

    /// Makes the fields of the response, and looks whether they can be sent.
    pub(super) fn finish(&mut self, hop: &mut Hop, answer: Answer) -> Answer {
        hop.says_status =
            matches!(answer, Answer::Redirect(_) | Answer::Status(_) | Answer::Text(_));
        if matches!(answer, Answer::Redirect(_)) && self.is_without_fields(hop) {
            return self.check_fields(hop, answer);
        }
        let config = hop.config.clone();
        let config = config.as_deref().unwrap_or(&self.server.base);
        let edits = &config.edits;
        let late = Stage::Late;
        match answer {
            // The fields come with the answer; see `Run::finish_proxied`.
            Answer::Proxy(_) | Answer::Passed(_) => return answer,
            Answer::Server => {}
            // The answer to a `TRACE`, which comes before all that could change it.
            Answer::Page(_) if !hop.is_handled => {}
            Answer::File(_) | Answer::Page(_) | Answer::Options => {
                if answer == Answer::Options {
                    hop.fields.set(b"Allow", self.allowed(hop));
                }
                // What the content is, is known before anything changes it.
                let is_file = matches!(answer, Answer::File(_));
                if answer == Answer::Options && hop.kind == Some(FileKind::Directory) {
                    hop.fields.set(b"Content-Type", DIRECTORY);
                } else if is_file || answer == Answer::Options {
                    self.describe_type(hop, config.mime.as_deref());
                } else if let Some(media_type) = hop.notes.get(FORCED_TYPE) {
                    hop.fields.set(b"Content-Type", media_type);
                }
                self.add_expiry(hop, config.expires.as_deref(), is_file);
                // A change that fails ends the changes of its list, and that is all.
                let _ = self.run_edits(hop, &edits.always, Target::Always, late);
                let _ = self.run_edits(hop, &edits.success, Target::Success, late);
                // A response has one type, and it is the last that was said.
                if hop.fields.get(b"Content-Type").is_some() {
                    self.work.always.remove(b"Content-Type");
                }
                if is_file {
                    self.describe_coding(hop, config.mime.as_deref());
                }
            }
            Answer::Redirect(_) | Answer::Status(_) | Answer::Text(_) => {
                // What was set for any response stays, out of reach; what was set for success goes.
                let with_text = matches!(answer, Answer::Text(300..=399));
                let location =
                    hop.fields.get(b"Location").filter(|_| with_text).map(<[u8]>::to_vec);
                if !(hop.fields.is_empty() && self.work.always.is_empty()) {
                    std::mem::swap(&mut hop.fields, &mut self.work.always);
                    self.work.always.clear();
                }
                if let Some(location) = location {
                    hop.fields.set(b"Location", &location);
                }
                if matches!(answer, Answer::Status(405 | 501) | Answer::Text(405 | 501)) {
                    hop.fields.set(b"Allow", self.allowed(hop));
                }
                self.add_expiry(hop, config.expires.as_deref(), false);
                let _ = self.run_edits(hop, &edits.always, Target::Always, late);
            }
        }
        self.check_fields(hop, answer)
    }

    /// The methods that may be used: what no handler has seen names none but `TRACE`.
    fn allowed(&self, hop: &Hop) -> &'static [u8] {
        let of_handler = if hop.is_handled { ALLOWED } else { TRACED };
        match self.server.trace {
            Some(Trace::Off) => {
                let rest = of_handler.strip_suffix(TRACED).unwrap_or(of_handler);
                rest.strip_suffix(b",").unwrap_or(rest)
            }
            _ => of_handler,
        }
    }

    /// Whether nothing has set a response field, and nothing will for a redirect.
    fn is_without_fields(&self, hop: &Hop) -> bool {
        let config = hop.config.as_deref().unwrap_or(&self.server.base);
        hop.fields.is_empty()
            && self.work.always.is_empty()
            && config.edits.always.is_empty()
            && config.expires.is_none()
    }

    /// Looks whether the fields of the response can be sent.
    pub(super) fn check_fields(&mut self, hop: &mut Hop, answer: Answer) -> Answer {
        let redirect = matches!(answer, Answer::Redirect(_));
        if self.work.always.is_empty() && hop.fields.is_empty() {
            if redirect && has_control(&self.work.answer) {
                return Answer::Status(500);
            }
            return answer;
        }
        self.unify_vary(hop);
        // A `Location` of `Header always` stands before the one of the redirect, and counts.
        if redirect && let Some(location) = self.work.always.get(b"Location") {
            hop.fields.set(b"Location", &self.work.answer);
            self.work.answer.clear();
            self.work.answer.extend_from_slice(location);
            self.work.always.remove(b"Location");
        }
        let location = &self.work.answer[..];
        // Neither a name that is no token leaves httpd (AH02429), nor a value with a control byte (AH02430).
        let is_wrong = (self.work.always.iter().chain(hop.fields.iter()))
            .any(|(name, value)| !is_token(name) || has_control(value));
        if is_wrong || redirect && has_control(location) {
            self.work.always.clear();
            hop.fields.clear();
            // A document for an error that cannot be sent with its fields leaves that error (`ap_die_r`).
            let is_document =
                self.has_first && !matches!(answer, Answer::Status(_) | Answer::Text(_));
            let failed =
                Some(self.work.first.status).filter(|failed| is_document && *failed >= 400);
            return Answer::Status(failed.unwrap_or(500));
        }
        answer
    }
}
