//! The variables of mod_rewrite.
//!
//! Source: httpd 2.4.71 `modules/mappers/mod_rewrite.c`, `lookup_variable`.

use super::ahead::Ahead;
use super::identity::write_text;
use super::{Hop, Run};
use crate::index::Subject;
use crate::request::{Scheme, Version};

/// What `%{SERVER_SOFTWARE}` says.
const SOFTWARE: &[u8] = b"milepost";

impl<'r> Run<'r> {
    /// Appends the value of a variable; an unknown one is empty.
    pub(super) fn variable(&mut self, hop: &Hop, name: &[u8], out: &mut Vec<u8>) {
        if let Some(colon) = memchr::memchr(b':', name) {
            return self.prefixed_variable(hop, &name[..colon], &name[colon + 1..], out);
        }
        let mut upper = [0_u8; 32];
        let Some(upper) = upper.get_mut(..name.len()) else { return };
        upper.copy_from_slice(name);
        upper.make_ascii_uppercase();
        let request = self.request;
        match &*upper {
            b"REQUEST_URI" => out.extend_from_slice(&hop.uri),
            b"QUERY_STRING" => out.extend_from_slice(&hop.args),
            b"REQUEST_FILENAME" | b"SCRIPT_FILENAME" => out.extend_from_slice(&hop.filename),
            b"PATH_INFO" => out.extend_from_slice(&hop.path_info),
            b"REQUEST_METHOD" => out.extend_from_slice(self.method(hop)),
            b"REQUEST_SCHEME" => {
                out.extend_from_slice(if self.is_https() { b"https" } else { b"http" });
            }
            b"THE_REQUEST" => {
                out.extend_from_slice(request.method);
                out.push(b' ');
                out.extend_from_slice(request.target);
                out.push(b' ');
                out.extend_from_slice(protocol(request.version));
            }
            b"SERVER_PROTOCOL" => out.extend_from_slice(protocol(request.version)),
            b"HTTPS" => {
                let tls = request.scheme == Scheme::Https;
                out.extend_from_slice(if tls { b"on" } else { b"off" });
            }
            b"IPV6" => {
                let v6 = self.client().ip().to_canonical().is_ipv6();
                out.extend_from_slice(if v6 { b"on" } else { b"off" });
            }
            b"IS_SUBREQ" => out.extend_from_slice(if hop.subrequest { b"true" } else { b"false" }),
            b"HTTP_HOST" => self.write_host(out),
            b"HTTP_USER_AGENT" => self.look_at_field("User-Agent", out),
            b"HTTP_REFERER" => self.look_at_field("Referer", out),
            b"HTTP_COOKIE" => self.look_at_field("Cookie", out),
            b"HTTP_ACCEPT" => self.look_at_field("Accept", out),
            b"HTTP_FORWARDED" => self.look_at_field("Forwarded", out),
            b"HTTP_PROXY_CONNECTION" => self.look_at_field("Proxy-Connection", out),
            b"SERVER_NAME" => self.write_server_name(out),
            b"SERVER_PORT" => write_text(out, format_args!("{}", self.server_port())),
            b"SERVER_ADDR" => {
                write_text(out, format_args!("{}", request.local.ip().to_canonical()))
            }
            b"SERVER_SOFTWARE" => out.extend_from_slice(SOFTWARE),
            b"SERVER_ADMIN" => {
                let admin = self.program.settings.server_admin.as_deref();
                out.extend_from_slice(admin.unwrap_or("[no address given]").as_bytes());
            }
            b"REMOTE_ADDR" | b"REMOTE_HOST" => {
                write_text(out, format_args!("{}", self.client().ip().to_canonical()));
            }
            b"CONN_REMOTE_ADDR" => {
                write_text(out, format_args!("{}", request.remote.ip().to_canonical()));
            }
            b"REMOTE_PORT" => write_text(out, format_args!("{}", self.client().port())),
            b"DOCUMENT_ROOT" => {
                out.extend_from_slice(self.document_root(hop).unwrap_or_default());
            }
            b"CONTEXT_PREFIX" => {
                let prefix = hop.context.as_ref().map(|context| &context.prefix[..]);
                out.extend_from_slice(prefix.unwrap_or_default());
            }
            b"CONTEXT_DOCUMENT_ROOT" => {
                let root = hop.context.as_ref().map(|context| &context.document_root[..]);
                let root = root.or_else(|| self.document_root(hop));
                out.extend_from_slice(root.unwrap_or_default());
            }
            b"API_VERSION" => out.extend_from_slice(b"20120211:142"),
            // Who owns the file; nobody does as long as no file is known.
            b"SCRIPT_USER" | b"SCRIPT_GROUP" => out.extend_from_slice(b"<unknown>"),
            name if name.starts_with(b"TIME") => self.time(name, out),
            _ => {}
        }
    }

    /// `HTTP:`, `ENV:`, `SSL:`, `LA-U:`, `LA-F:`.
    fn prefixed_variable(&mut self, hop: &Hop, prefix: &[u8], name: &[u8], out: &mut Vec<u8>) {
        let Ok(name) = std::str::from_utf8(name) else { return };
        match prefix.to_ascii_uppercase().as_slice() {
            b"HTTP" => self.look_at_field(name, out),
            b"ENV" => self.write_env(hop, name.as_bytes(), out),
            b"SSL" => self.tls_variable(hop, name.as_bytes(), out),
            b"LA-U" => self.look_ahead(hop, Ahead::Url, name.as_bytes(), out),
            b"LA-F" => self.look_ahead(hop, Ahead::File, name.as_bytes(), out),
            _ => {}
        }
    }

    /// `%{SSL:NAME}`: a variable of mod_ssl, or one of those that it knows besides.
    pub(super) fn tls_variable(&mut self, hop: &Hop, name: &[u8], out: &mut Vec<u8>) {
        if self.request.tls.is_none() {
            return;
        }
        if name.starts_with(b"SSL_") {
            self.write_tls_variable(name, out);
        } else if !name.contains(&b':') {
            self.variable(hop, name, out);
        }
    }

    /// As [`Run::field`], for a rule: a response that depends on a field says so in `Vary`.
    fn look_at_field(&mut self, name: &str, out: &mut Vec<u8>) {
        if self.write_request_field(name.as_bytes(), out) {
            self.work.seen.add(name.as_bytes());
        }
    }

    /// The value of a variable that rules can be filed under, where it stands or as it was written to `out`,
    /// which is empty. Every response depends on its host, so no `Vary` says so.
    #[inline]
    pub(super) fn subject<'v>(
        &self,
        hop: &'v Hop,
        subject: Subject,
        out: &'v mut Vec<u8>,
    ) -> &'v [u8]
    where
        'r: 'v,
    {
        match subject {
            Subject::Host => self.host_value(out),
            Subject::Uri => &hop.uri,
            Subject::Query => &hop.args,
            // The string of the rule, which is no variable.
            Subject::Input => b"",
        }
    }

    /// `TIME_YEAR` and the like, in local time; `TIME` is all of them, as `20261121093005`.
    fn time(&self, name: &[u8], out: &mut Vec<u8>) {
        let (now, offset) = self.outside.now();
        let local = now + i64::from(offset);
        let (days, second) = (local.div_euclid(86_400), local.rem_euclid(86_400));
        let (year, month, day) = civil(days);
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        match name {
            b"TIME" => write_text(
                out,
                format_args!("{year:04}{month:02}{day:02}{hour:02}{minute:02}{second:02}"),
            ),
            b"TIME_YEAR" => write_text(out, format_args!("{year:04}")),
            b"TIME_MON" => write_text(out, format_args!("{month:02}")),
            b"TIME_DAY" => write_text(out, format_args!("{day:02}")),
            b"TIME_HOUR" => write_text(out, format_args!("{hour:02}")),
            b"TIME_MIN" => write_text(out, format_args!("{minute:02}")),
            b"TIME_SEC" => write_text(out, format_args!("{second:02}")),
            // The epoch was a Thursday; Sunday is 0.
            b"TIME_WDAY" => write_text(out, format_args!("{}", (days + 4).rem_euclid(7))),
            _ => {}
        }
    }
}

pub(super) fn protocol(version: Version) -> &'static [u8] {
    match version {
        Version::Http10 => b"HTTP/1.0",
        Version::Http11 => b"HTTP/1.1",
        Version::Http2 => b"HTTP/2.0",
    }
}

/// Year, month and day of a day number since 1970-01-01, in the Gregorian calendar.
///
/// Source: Howard Hinnant, "chrono-compatible low-level date algorithms", `civil_from_days`.
pub(super) fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::civil;

    #[test]
    fn days_to_dates() {
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(11_016), (2000, 2, 29));
        assert_eq!(civil(20_778), (2026, 11, 21));
    }
}
