//! Looks ahead: what would become of another URL or file, for `LA-U:`, `LA-F:`, `-U` and `-F`.
//!
//! A subrequest goes through all phases but the handler, so a file that is missing is no error to it.
//!
//! Source: httpd 2.4.71 `modules/mappers/mod_rewrite.c`, `lookup_variable`, `apply_rewrite_cond`;
//! `server/request.c`, `ap_sub_req_lookup_uri`, `ap_sub_req_lookup_file`.

use super::canonical::append_path;
use super::directory::write_beside;
use super::target::split_query;
use super::{End, Hop, Run};
use crate::outside::FileKind;
use crate::trace::Event;

/// What is looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ahead {
    Url,
    File,
}

impl Run<'_> {
    /// `LA-U:` and `LA-F:`: a variable as it would be after the subrequest.
    pub(super) fn look_ahead(&mut self, hop: &Hop, ahead: Ahead, name: &[u8], out: &mut Vec<u8>) {
        if let Some((sub, _)) = self.subrequest(hop, ahead, &hop.filename) {
            self.variable(&sub, name, out);
        }
    }

    /// `-U` and `-F`: whether the subrequest would be answered well.
    pub(super) fn is_reachable(&mut self, hop: &Hop, ahead: Ahead, target: &[u8]) -> bool {
        let Some((sub, status)) = self.subrequest(hop, ahead, target) else { return false };
        match ahead {
            Ahead::Url => status < 400,
            // A directory would be answered with a redirect to its slash.
            Ahead::File => status < 300 && matches!(sub.kind, Some(FileKind::File(_))),
        }
    }

    /// Runs a subrequest up to its handler. `None` when that is too deep.
    fn subrequest(&mut self, hop: &Hop, ahead: Ahead, target: &[u8]) -> Option<(Hop, u16)> {
        // A look at what is already being looked at would never end: `subreq_ok`.
        if target.is_empty()
            || hop.subrequest && hop.repeats
            || self.subrequests >= self.server.recursion_max.1
        {
            return None;
        }
        let mut sub = self.new_subrequest(hop);
        let rule = self.rule.clone();
        let answer = std::mem::take(&mut self.work.answer);
        let condition = std::mem::take(&mut self.work.condition);
        let candidates = std::mem::take(&mut self.work.candidates);
        let seen = std::mem::take(&mut self.work.seen);
        self.note(None, |_| Event::Subrequest { target: target.to_vec() });
        self.subrequests += 1;
        let end = match ahead {
            Ahead::Url => {
                let mut url = self.take_buffer();
                write_beside(&hop.uri, target, &mut url);
                self.keep_target(&mut sub, &url);
                let (path, args) = split_query(&url);
                sub.set_args(args);
                let set = self.set_path(&mut sub, path);
                self.put_buffer(url);
                match set {
                    Ok(()) => {
                        sub.repeats = sub.uri == hop.uri;
                        self.prepare(&mut sub).err()
                    }
                    Err(status) => Some(End::Status(status)),
                }
            }
            Ahead::File => {
                // A bare name is beside the request, in URL-path and file path; a path has no URL-path.
                if !target.contains(&b'/') {
                    let end = memchr::memrchr(b'/', &hop.uri).map_or(0, |slash| slash + 1);
                    sub.uri.extend_from_slice(&hop.uri[..end]);
                    sub.uri.extend_from_slice(target);
                }
                sub.repeats = sub.uri == hop.uri;
                if write_file_beside(&hop.filename, target, &mut sub.filename) {
                    self.prepare_file(&mut sub).err()
                } else {
                    Some(End::Status(403))
                }
            }
        };
        self.subrequests -= 1;
        self.work.candidates = candidates;
        self.work.seen = seen;
        self.work.condition = condition;
        self.work.answer = answer;
        self.rule = rule;
        let status = match end {
            None
            | Some(
                End::File | End::Page | End::Proxy | End::Options | End::Server | End::Internal,
            ) => 200,
            Some(End::Redirect(status) | End::Status(status)) => status,
        };
        Some((sub, status))
    }
}

/// Writes the file path that `name` means where `file` is; false if it leaves that directory.
fn write_file_beside(file: &[u8], name: &[u8], out: &mut Vec<u8>) -> bool {
    if name.first() == Some(&b'/') {
        out.extend_from_slice(name);
        return true;
    }
    let end = memchr::memrchr(b'/', file).unwrap_or(0);
    out.extend_from_slice(&file[..end]);
    append_path(&[b"/", name].concat(), out)
}
