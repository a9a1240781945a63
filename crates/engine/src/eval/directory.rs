//! mod_dir: the slash after a directory, its index, and what answers for a file that is not there.
//!
//! Source: httpd 2.4.71 `modules/mappers/mod_dir.c`, `fixup_dir`, `fixup_dflt`; `modules/http/http_request.c`,
//! `ap_internal_fast_redirect`; `server/request.c`, `ap_sub_req_method_uri`.

use milepost_http::path;

use super::handler::{DIRECTORY, handler};
use super::{Config, End, Hop, Run, target};
use crate::outside::FileKind;
use crate::trace::Event;

/// The names that are tried where `DirectoryIndex` says nothing.
const INDEX: &[u8] = b"index.html";

/// What a subrequest for another path shows.
pub(super) enum Found {
    /// A file: the request may become the subrequest.
    File(Box<Hop>),
    /// As `File`, and a rule sent the subrequest on.
    Rewritten(Box<Hop>),
    /// No file.
    Nothing,
    /// A redirect or an error.
    End(End, Box<Hop>),
}

impl Run<'_> {
    /// Answers a directory: 301 to its slash, or its index. A path where nothing is has its fallback.
    pub(super) fn fixup_directory(&mut self, hop: &mut Hop, config: &Config<'_>) -> Option<End> {
        match hop.kind {
            Some(FileKind::Directory) if hop.uri.last() != Some(&b'/') => {
                self.redirect_to_slash(hop, config)
            }
            Some(FileKind::Directory)
                if config.get().check_handler == Some(true) && is_handled_by_other(hop, config) =>
            {
                None
            }
            Some(FileKind::Directory) => self.find_index(hop, config),
            Some(FileKind::Missing) => {
                // Whoever handles such files will know what to do without one.
                let mime = config.get().mime.as_deref();
                if mime.is_some_and(|mime| handler(mime, hop).is_some()) {
                    return None;
                }
                let fallback = config.get().fallback.as_deref().filter(|name| !name.is_empty())?;
                match self.look_at(hop, fallback) {
                    Found::End(End::Status(404), _) | Found::Nothing => None,
                    found => self.take_over(hop, found, None),
                }
            }
            _ => None,
        }
    }

    /// 301 for a directory that is asked for without its slash, even if rules lead elsewhere.
    pub(super) fn redirect_to_slash(&mut self, hop: &Hop, config: &Config<'_>) -> Option<End> {
        let is_directory = hop.kind == Some(FileKind::Directory);
        if !is_directory || hop.uri.last() == Some(&b'/') || config.get().slash == Some(false) {
            return None;
        }
        // Set for clients that cannot be redirected but by a GET.
        let is_get = matches!(self.method(hop), b"GET" | b"HEAD");
        if !is_get && hop.env.get(b"redirect-carefully").is_some() {
            return None;
        }
        let mut answer = std::mem::take(&mut self.work.answer);
        answer.clear();
        self.write_self_url(&mut answer);
        path::escape(&hop.uri, &mut answer);
        answer.push(b'/');
        if hop.has_args {
            answer.push(b'?');
            answer.extend_from_slice(&hop.args);
        }
        self.work.answer = answer;
        Some(End::Redirect(301))
    }

    /// Tries the names of `DirectoryIndex`. One that is not there is looked for by its own fallback.
    fn find_index(&mut self, hop: &mut Hop, config: &Config<'_>) -> Option<End> {
        let config = config.get();
        let mut refused = None;
        let count = config.index.as_ref().map_or(1, |names| names.len());
        let index = (0..count).map(|at| config.index.as_ref().map_or(INDEX, |names| &names[at]));
        for name in index {
            match self.look_at(hop, name) {
                Found::Nothing | Found::End(End::Status(404), _) => {}
                Found::End(End::Status(status), _) if !is_redirect(status) => {
                    refused = Some(End::Status(status));
                }
                found => return self.take_over(hop, found, config.index_redirect.flatten()),
            }
        }
        refused
    }

    /// A subrequest for a path, absolute or below the one of the request.
    pub(super) fn look_at(&mut self, hop: &Hop, name: &[u8]) -> Found {
        if self.subrequests >= self.server.recursion_max.1 {
            return Found::End(End::Status(500), Box::default());
        }
        let mut sub = self.new_subrequest(hop);
        let mut target = self.take_buffer();
        write_beside(&hop.uri, name, &mut target);
        if hop.has_args {
            target.push(b'?');
            target.extend_from_slice(&hop.args);
        }
        self.note(None, |_| Event::Subrequest { target: target.clone() });
        self.keep_target(&mut sub, &target);
        let (path, args) = target::split_query(&target);
        sub.set_args(args);
        self.subrequests += 1;
        let rule = self.rule.clone();
        let set = self.set_path(&mut sub, path).map_err(End::Status);
        let prepared = set.and_then(|()| self.prepare(&mut sub));
        self.subrequests -= 1;
        self.put_buffer(target);
        let is_file = sub.proxied || matches!(sub.kind, Some(FileKind::File(_)));
        match prepared {
            // Rules that made a redirect local again left its status behind, and it has no target any more.
            Ok(_) | Err(End::Internal) if is_redirect(sub.status) => {
                Found::End(End::Status(sub.status), Box::new(sub))
            }
            Ok(_) if is_file => Found::File(Box::new(sub)),
            Err(End::Internal) if is_file => Found::Rewritten(Box::new(sub)),
            Err(end @ (End::Redirect(_) | End::Status(_))) => {
                if end == End::Status(404) {
                    self.rule = rule;
                }
                Found::End(end, Box::new(sub))
            }
            Ok(_) | Err(_) => {
                self.rule = rule;
                Found::Nothing
            }
        }
    }

    /// Lets the request become the subrequest, or answers as that was answered. `redirect` is the status
    /// of `DirectoryIndexRedirect`.
    fn take_over(&mut self, hop: &mut Hop, found: Found, redirect: Option<u16>) -> Option<End> {
        match found {
            Found::File(sub) | Found::Rewritten(sub) if redirect.is_some() => {
                let mut answer = std::mem::take(&mut self.work.answer);
                answer.clear();
                self.write_self_url(&mut answer);
                answer.extend_from_slice(&sub.uri);
                self.work.answer = answer;
                redirect.map(End::Redirect)
            }
            Found::File(sub) => {
                self.become_subrequest(hop, sub);
                None
            }
            Found::Rewritten(sub) => {
                hop.env.overlay(&sub.env);
                hop.fields.overlay(&sub.fields);
                Some(End::Internal)
            }
            Found::Nothing => None,
            Found::End(end, sub) => {
                hop.fields.overlay(&sub.fields);
                Some(end)
            }
        }
    }

    /// Lets the request be what a subrequest of it has become.
    ///
    /// Source: httpd 2.4.71 `modules/http/http_request.c`, `ap_internal_fast_redirect`.
    pub(super) fn become_subrequest(&mut self, hop: &mut Hop, mut sub: Box<Hop>) {
        // Its own fields and variables come before those of the request.
        std::mem::swap(hop, &mut sub);
        hop.env.overlay_below(&sub.env);
        hop.fields.overlay_below(&sub.fields);
        hop.notes.overlay_below(&sub.notes);
        hop.status = sub.status;
        hop.subrequest = sub.subrequest;
        hop.as_get = sub.as_get;
        hop.rewriting_ended = sub.rewriting_ended;
    }
}

/// Writes the target of a subrequest: `name`, or where that is no absolute path, what it is beside `uri`.
pub(super) fn write_beside(uri: &[u8], name: &[u8], out: &mut Vec<u8>) {
    if name.first() != Some(&b'/') {
        let end = memchr::memrchr(b'/', uri).map_or(0, |slash| slash + 1);
        path::escape(&uri[..end], out);
    }
    out.extend_from_slice(name);
}

fn is_redirect(status: u16) -> bool {
    (300..400).contains(&status)
}

/// Whether a directory has a handler of its own: a named one, or a backend.
fn is_handled_by_other(hop: &Hop, config: &Config<'_>) -> bool {
    let mime = config.get().mime.as_deref();
    let named = mime.and_then(|mime| handler(mime, hop));
    hop.proxied || named.is_some_and(|named| named != DIRECTORY)
}
