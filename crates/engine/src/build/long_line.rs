//! Finds a line that is too long for a `.htaccess` file; elsewhere lines may be as long as they like.
//!
//! Source: httpd 2.4.71 `server/config.c`, `ap_build_config`; `server/util.c`, `ap_varbuf_cfg_getline`.

/// The longest line, continuations joined, with its carriage return and without its line feed:
/// `HUGE_STRING_LEN` of httpd, less the line feed.
pub(super) const LINE_BYTES_MAX: usize = 8191;

/// The number of the first line of `text` that goes on for too long.
pub(super) fn find(text: &[u8]) -> Option<u32> {
    let mut len = 0;
    for (line, number) in text.split(|&byte| byte == b'\n').zip(1_u32..) {
        let is_continued = line.strip_suffix(b"\r").unwrap_or(line).strip_suffix(b"\\");
        len += is_continued.unwrap_or(line).len();
        if len > LINE_BYTES_MAX {
            return Some(number);
        }
        if is_continued.is_none() {
            len = 0;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_ends_at_the_bound() {
        let comment = |len: usize| format!("#{}", "x".repeat(len - 1));
        check(&comment(LINE_BYTES_MAX), None);
        check(&format!("a\n{}\n", comment(LINE_BYTES_MAX)), None);
        check(&format!("a\n{}\n", comment(LINE_BYTES_MAX + 1)), Some(2));
        check(&format!("{}\r\n", comment(LINE_BYTES_MAX)), Some(1));
        check(&format!("{}\\\n{}\n", comment(5000), comment(4000)), Some(2));
        check(&format!("{}\n{}\n", comment(5000), comment(4000)), None);
    }

    #[track_caller]
    fn check(text: &str, line: Option<u32>) {
        assert_eq!(find(text.as_bytes()), line);
    }
}
