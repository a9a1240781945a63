//! `CO=`: the cookies that rules set.
//!
//! Source: httpd 2.4.71 `modules/mappers/mod_rewrite.c`, `add_cookie`.

use super::Run;
use super::identity::write_text;
use super::variable::civil;
use crate::number::leading_number;

const DAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// The largest distance of an expiry that is still a date, about a thousand years. In minutes.
const MINUTES_MAX: i64 = 525_600_000;

impl Run<'_> {
    /// Sets the cookie that the expanded argument of `CO=` describes. The first rule that sets a cookie
    /// of a name wins, and one without a domain sets none.
    pub(super) fn set_cookie(&mut self, argument: &[u8]) {
        let (separator, argument) = match argument.split_first() {
            Some((b';', rest)) => (b';', rest),
            _ => (b':', argument),
        };
        let mut parts = argument.split(|&byte| byte == separator).filter(|part| !part.is_empty());
        let (Some(name), Some(value), Some(domain)) = (parts.next(), parts.next(), parts.next())
        else {
            return;
        };
        // Names that are set are kept each with a byte that no name has.
        if self.work.cookies.split(|&byte| byte == 0).any(|known| known == name) {
            return;
        }
        self.work.cookies.extend_from_slice(name);
        self.work.cookies.push(0);
        let minutes = parts.next().map_or(0, minutes);
        let path = parts.next().unwrap_or(b"/");
        let is = |part: Option<&[u8]>, words: &[&[u8]]| {
            part.is_some_and(|part| words.iter().any(|word| word.eq_ignore_ascii_case(part)))
        };
        let secure = is(parts.next(), &[b"true", b"1", b"secure"]);
        let http_only = is(parts.next(), &[b"true", b"1", b"HttpOnly"]);
        let same_site = parts.next().filter(|part| !is(Some(part), &[b"false", b"0"]));
        let mut cookie = self.take_buffer();
        for part in [name, b"=", value, b"; path=", path, b"; domain=", domain] {
            cookie.extend_from_slice(part);
        }
        if minutes != 0 {
            let (now, _) = self.outside.now();
            cookie.extend_from_slice(b"; expires=");
            write_date(now + 60 * minutes, '-', &mut cookie);
        }
        cookie.extend_from_slice(if secure { b"; secure" } else { b"" });
        cookie.extend_from_slice(if http_only { b"; HttpOnly" } else { b"" });
        if let Some(same_site) = same_site {
            cookie.extend_from_slice(b"; SameSite=");
            cookie.extend_from_slice(same_site);
        }
        self.work.always.add(b"Set-Cookie", &cookie);
        self.put_buffer(cookie);
    }
}

/// A date of HTTP, or with `-` for `between` that of the first cookies: `Sat, 21-Nov-2026 07:27:57 GMT`.
pub(super) fn write_date(time: i64, between: char, out: &mut Vec<u8>) {
    let (days, second) = (time.div_euclid(86_400), time.rem_euclid(86_400));
    let (year, month, day) = civil(days);
    // The epoch was a Thursday.
    let weekday = DAYS[(days + 4).rem_euclid(7) as usize];
    let month = MONTHS[(month - 1).rem_euclid(12) as usize];
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    write_text(
        out,
        format_args!(
            "{weekday}, {day:02}{between}{month}{between}{year:04} {hour:02}:{minute:02}:{second:02} GMT"
        ),
    );
}

/// The minutes that a text begins with.
fn minutes(text: &[u8]) -> i64 {
    leading_number(text).clamp(-MINUTES_MAX, MINUTES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_of_cookies() {
        let mut date = Vec::new();
        write_date(1_795_246_077, '-', &mut date);
        assert_eq!(date, b"Sat, 21-Nov-2026 07:27:57 GMT");
        assert_eq!([minutes(b"5x"), minutes(b"-10"), minutes(b"x")], [5, -10, 0]);
    }
}
