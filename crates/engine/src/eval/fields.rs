//! The fields of the request, as `RequestHeader` has left them.
//!
//! Source: httpd 2.4.71 `modules/metadata/mod_headers.c`, `do_headers_fixup`.

use super::Run;

impl Run<'_> {
    /// Appends the value of a request field; false if there is none. Several field lines are joined.
    pub(super) fn write_request_field(&self, name: &[u8], out: &mut Vec<u8>) -> bool {
        let edited = &self.work.request;
        if edited.decides(name) {
            let mut values = edited.values(name);
            let Some(first) = values.next() else { return false };
            out.extend_from_slice(first);
            for value in values {
                out.extend_from_slice(b", ");
                out.extend_from_slice(value);
            }
            return true;
        }
        if let Some(authority) = self.authority.filter(|_| name.eq_ignore_ascii_case(b"host")) {
            out.extend_from_slice(authority);
            return true;
        }
        let value = std::str::from_utf8(name).ok().and_then(|name| self.request.fields.value(name));
        out.extend_from_slice(value.as_deref().unwrap_or_default());
        value.is_some()
    }

    /// Calls `visit` with the name of each field line, then with each name that an edit has added.
    pub(super) fn for_each_request_field(&mut self, mut visit: impl FnMut(&mut Self, &[u8])) {
        let fields = self.request.fields;
        for number in 0.. {
            let Some(name) = fields.name(number) else { break };
            let gone = self.work.request.decides(name.as_bytes())
                && self.work.request.get(name.as_bytes()).is_none();
            if !gone {
                visit(self, name.as_bytes());
            }
        }
        let mut name = self.take_buffer();
        for number in 0.. {
            let Some(edited) = self.work.request.names().nth(number) else { break };
            name.clear();
            name.extend_from_slice(edited);
            let is_new = std::str::from_utf8(&name).is_ok_and(|name| fields.count(name) == 0);
            if is_new && self.work.request.get(&name).is_some() {
                visit(self, &name);
            }
        }
        self.put_buffer(name);
    }
}
