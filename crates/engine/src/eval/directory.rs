//! mod_dir: the slash after a directory, and its index.
//!
//! Source: httpd 2.4.71 `modules/mappers/mod_dir.c`, `fixup_dir`.

use milepost_http::path;

use super::{Config, End, Hop, Run};
use crate::outside::FileKind;
use crate::trace::Event;

/// The names that are tried where `DirectoryIndex` says nothing.
const INDEX: &[u8] = b"index.html";

impl Run<'_> {
    /// Answers a directory: 301 to its slash, or its index through a subrequest.
    pub(super) fn fixup_directory(&mut self, hop: &mut Hop, config: &Config<'_>) -> Option<End> {
        if hop.kind != Some(FileKind::Directory) {
            return None;
        }
        if hop.uri.last() != Some(&b'/') {
            return self.redirect_to_slash(hop, config);
        }
        let config = config.get();
        let mut refused = None;
        let count = config.index.as_ref().map_or(1, |names| names.len());
        for number in 0..count {
            let name = config.index.as_ref().map_or(INDEX, |names| &names[number]);
            match self.try_index(hop, name) {
                Some(End::Status(404)) | None => {}
                Some(End::Status(status)) => refused = Some(End::Status(status)),
                Some(end) => return Some(end),
            }
        }
        refused
    }

    /// 301 for a directory that is asked for without its slash, even if rules lead elsewhere.
    pub(super) fn redirect_to_slash(&mut self, hop: &Hop, config: &Config<'_>) -> Option<End> {
        let is_directory = hop.kind == Some(FileKind::Directory);
        if !is_directory || hop.uri.last() == Some(&b'/') || config.get().slash == Some(false) {
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

    /// A subrequest for one index name.
    fn try_index(&mut self, hop: &mut Hop, name: &[u8]) -> Option<End> {
        if self.subrequests >= self.server.recursion_max.1 {
            return Some(End::Status(500));
        }
        let mut sub = self.new_subrequest(hop);
        sub.set_args(hop.has_args.then_some(&hop.args[..]));
        let mut target = self.take_buffer();
        if name.first() != Some(&b'/') {
            path::escape(&hop.uri, &mut target);
        }
        target.extend_from_slice(name);
        self.note(None, |_| Event::Subrequest { target: target.clone() });
        self.subrequests += 1;
        let rule = self.rule.clone();
        let end = match self.set_path(&mut sub, &target) {
            Ok(()) => self.process(&mut sub),
            Err(status) => End::Status(status),
        };
        self.subrequests -= 1;
        self.put_buffer(target);
        match end {
            End::File => {
                std::mem::swap(hop, &mut sub);
                hop.status = sub.status;
                hop.subrequest = false;
                hop.as_get = sub.as_get;
                Some(End::File)
            }
            // The subrequest was rewritten: the request itself goes where that leads, if the name was
            // a file. Else it is no index.
            End::Internal if !matches!(sub.kind, Some(FileKind::File(_))) => None,
            End::Internal => {
                hop.env.overlay(&sub.env);
                Some(End::Internal)
            }
            End::Redirect(_) => Some(end),
            End::Options | End::Server => None,
            End::Status(_) => {
                self.rule = rule;
                Some(end)
            }
        }
    }
}
