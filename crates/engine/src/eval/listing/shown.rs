//! What has little room in a list: descriptions are cut, and sizes rounded.
//!
//! Source: httpd 2.4.71 `modules/generators/mod_autoindex.c`, `terminate_description`; apr 1.7
//! `strings/apr_strings.c`, `apr_strfsize`.

/// Cuts HTML to `width` characters; elements take no room and are not cut.
pub(super) fn cut_description(text: &[u8], width: usize) -> Vec<u8> {
    let (mut at, mut left) = (0, width);
    while at < text.len() && (left > 0 || text[at] == b'<') {
        let end = match text[at] {
            b'<' => Some(b'>'),
            b'&' => Some(b';'),
            _ => None,
        };
        if text[at] != b'<' {
            left -= 1;
        }
        if let Some(end) = end {
            match memchr::memchr(end, &text[at..]) {
                Some(length) => at += length,
                None => return text.to_vec(),
            }
        }
        at += 1;
    }
    let mut cut = text[..at].to_vec();
    if at < text.len()
        && let Some(last) = cut.last_mut()
    {
        *last = b'>';
    }
    cut
}

/// A size in four characters, `1.5K`.
pub(super) fn short_size(bytes: u64) -> String {
    if bytes < 973 {
        return format!("{bytes:3} ");
    }
    let mut size = bytes;
    for unit in ["K", "M", "G", "T", "P", "E"] {
        let rest = size & 1023;
        size >>= 10;
        if size >= 973 {
            continue;
        }
        if size < 9 || size == 9 && rest < 973 {
            let tenths = (rest * 5 + 256) / 512;
            let (size, tenths) = if tenths >= 10 { (size + 1, 0) } else { (size, tenths) };
            return format!("{size}.{tenths}{unit}");
        }
        return format!("{:3}{unit}", size + u64::from(rest >= 512));
    }
    format!("{size:3}E")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_four_characters() {
        for (bytes, expected) in [
            (0, "  0 "),
            (972, "972 "),
            (973, "1.0K"),
            (3000, "2.9K"),
            (10_188, "9.9K"),
            (10_200, " 10K"),
            (200_000, "195K"),
            (12_345_678, " 12M"),
            (u64::MAX, " 16E"),
        ] {
            assert_eq!(short_size(bytes), expected, "{bytes}");
        }
    }

    #[test]
    fn descriptions_are_cut_outside_of_elements() {
        let cut = |text: &str, width| {
            String::from_utf8(cut_description(text.as_bytes(), width)).expect("text")
        };
        assert_eq!(cut("abcdef", 6), "abcdef");
        assert_eq!(cut("abcdef", 4), "abc>");
        assert_eq!(cut("<b>ab</b>&amp;cd", 3), "<b>ab</b>&amp>");
        assert_eq!(cut("a<b", 5), "a<b");
    }
}
