//! `Vary`: which request fields a response depends on, as far as conditions have looked at them.
//!
//! Source: httpd 2.4.71 `modules/mappers/mod_rewrite.c`, `lookup_header`, `apply_rewrite_rule`;
//! `server/util_expr_eval.c`, `add_vary`, `ap_expr_exec_ctx`; `modules/http/http_filters.c`, `fixup_vary`.

use super::{Hop, Run};

/// Request fields that were looked at.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Their names, with commas between them.
    names: Vec<u8>,
    /// Whether somebody wants to know.
    is_wanted: bool,
}

impl Seen {
    /// Begins anew.
    pub(super) fn start(&mut self) {
        self.names.clear();
        self.is_wanted = true;
    }

    /// No more names are taken.
    pub(super) fn stop(&mut self) {
        self.is_wanted = false;
    }

    /// Goes on where `before` was.
    pub(super) fn resume(&mut self, before: bool) {
        self.is_wanted = before;
    }

    pub(super) fn is_wanted(&self) -> bool {
        self.is_wanted
    }

    /// Takes a name, if it is wanted. Every response depends on its host.
    pub(super) fn add(&mut self, name: &[u8]) {
        if self.is_wanted && !name.eq_ignore_ascii_case(b"Host") {
            self.names.extend_from_slice(if self.names.is_empty() { b"" } else { b", " });
            self.names.extend_from_slice(name);
        }
    }

    /// How much has been seen, for [`Seen::forget`].
    pub(super) fn mark(&self) -> usize {
        self.names.len()
    }

    /// Forgets what came after a mark.
    pub(super) fn forget(&mut self, mark: usize) {
        self.names.truncate(mark);
    }
}

impl Run<'_> {
    /// Adds what was seen to `Vary`.
    pub(super) fn add_vary(&mut self, hop: &mut Hop) {
        let seen = &mut self.work.seen.names;
        if !seen.is_empty() {
            hop.fields.merge(b"Vary", seen);
            seen.clear();
        }
    }

    /// Names each field in `Vary` once, or none if a variable says so.
    pub(super) fn unify_vary(&mut self, hop: &mut Hop) {
        let always = &mut self.work.always;
        if always.get(b"Vary").is_none() && hop.fields.get(b"Vary").is_none() {
            return;
        }
        let mut unified = self.work.spare.pop().unwrap_or_default();
        unified.clear();
        for value in always.values(b"Vary").chain(hop.fields.values(b"Vary")) {
            for name in value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii) {
                let known = |known: &[u8]| known.eq_ignore_ascii_case(name);
                if !name.is_empty() && !unified.split(|&byte| byte == b',').any(known) {
                    unified.extend_from_slice(if unified.is_empty() { b"" } else { b"," });
                    unified.extend_from_slice(name);
                }
            }
        }
        always.remove(b"Vary");
        hop.fields.remove(b"Vary");
        if hop.env.get(b"force-no-vary").is_none() {
            hop.fields.set(b"Vary", &unified);
        }
        self.put_buffer(unified);
    }
}
