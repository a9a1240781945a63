//! The fields of the request, as `RequestHeader` has left them.
//!
//! What is not changed is looked up where it is. A field that is changed moves into a table, which then
//! holds all that there is of it.
//!
//! Source: httpd 2.4.71 `server/protocol.c`, `ap_get_mime_headers_core`; `modules/metadata/mod_headers.c`,
//! `do_headers_fixup`.

use super::Run;
use super::table::Table;

impl<'r> Run<'r> {
    /// Appends the value of a request field; false if there is none. Several field lines are joined, but
    /// of those that a directive has added only the first is seen.
    pub(super) fn write_request_field(&self, name: &[u8], out: &mut Vec<u8>) -> bool {
        let edited = &self.work.request;
        if edited.decides(name) {
            let value = edited.get(name);
            out.extend_from_slice(value.unwrap_or_default());
            return value.is_some();
        }
        self.write_sent_field(name, out)
    }

    /// Appends the value of the `Host` field.
    pub(super) fn write_host(&self, out: &mut Vec<u8>) {
        self.write_request_field(b"Host", out);
    }

    /// The value of the `Host` field, which is the one that rules look at most: where it stands, or as it was
    /// written to `out`, which is empty.
    pub(super) fn host_value<'v>(&self, out: &'v mut Vec<u8>) -> &'v [u8]
    where
        'r: 'v,
    {
        match self.host_field {
            Some(field) if self.work.request.is_empty() => field,
            _ => {
                self.write_host(out);
                out
            }
        }
    }

    /// Appends the value of a field as it was sent.
    fn write_sent_field(&self, name: &[u8], out: &mut Vec<u8>) -> bool {
        if let Some(authority) = self.authority.filter(|_| name.eq_ignore_ascii_case(b"host")) {
            out.extend(authority.iter().map(u8::to_ascii_lowercase));
            return true;
        }
        let value = std::str::from_utf8(name).ok().and_then(|name| self.request.fields.value(name));
        out.extend_from_slice(value.as_deref().unwrap_or_default());
        value.is_some()
    }

    /// Moves a field into `edited`, if it is not there.
    pub(super) fn move_request_field(&mut self, name: &[u8], edited: &mut Table) {
        if edited.decides(name) {
            return;
        }
        let mut value = self.take_buffer();
        if self.write_sent_field(name, &mut value) {
            edited.add(name, &value);
        }
        self.put_buffer(value);
    }

    /// Calls `visit` with each name and value: first those that were sent, then those that were added.
    pub(super) fn for_each_request_field(
        &mut self,
        mut visit: impl FnMut(&mut Self, &[u8], &[u8]),
    ) {
        let fields = self.request.fields;
        let name_at = |number| fields.name(number).map(str::as_bytes);
        let was_sent_before = |name: &[u8], number| {
            (0..number).filter_map(name_at).any(|earlier| earlier.eq_ignore_ascii_case(name))
        };
        let mut value = self.take_buffer();
        for number in 0.. {
            let Some(name) = name_at(number) else { break };
            value.clear();
            if !was_sent_before(name, number) && self.write_request_field(name, &mut value) {
                visit(self, name, &value);
            }
        }
        let edited = std::mem::take(&mut self.work.request);
        for (number, (name, value)) in edited.iter().enumerate() {
            let is_first =
                !edited.iter().take(number).any(|(known, _)| known.eq_ignore_ascii_case(name));
            let was_sent = (0..).map_while(name_at).any(|sent| sent.eq_ignore_ascii_case(name));
            if !(is_first && was_sent) {
                visit(self, name, value);
            }
        }
        self.work.request = edited;
        self.put_buffer(value);
    }
}
