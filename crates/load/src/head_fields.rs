//! Walks over the fields of a head that was parsed before, and so is known to be sound.

/// Names and values of the field lines of `head`, values without the white space around them.
pub(crate) fn fields(head: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let lines = head.split(|&byte| byte == b'\n').skip(1);
    lines.filter_map(|line| {
        let colon = memchr::memchr(b':', line)?;
        Some((&line[..colon], line[colon + 1..].trim_ascii()))
    })
}

/// The value of the first field called `name`, in any case.
pub(crate) fn field<'a>(head: &'a [u8], name: &str) -> Option<&'a [u8]> {
    fields(head)
        .find(|(found, _)| found.eq_ignore_ascii_case(name.as_bytes()))
        .map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_name() {
        let head =
            b"HTTP/1.1 200 a: b\r\nServer:  x y \r\nset-cookie: a=1\r\nSet-Cookie:b:2\r\n\r\n";
        assert_eq!(field(head, "server"), Some(&b"x y"[..]));
        assert_eq!(field(head, "Date"), None);
        let cookies: Vec<_> =
            fields(head).filter(|(name, _)| name.eq_ignore_ascii_case(b"set-cookie")).collect();
        assert_eq!(cookies, [(&b"set-cookie"[..], &b"a=1"[..]), (&b"Set-Cookie"[..], &b"b:2"[..])]);
    }
}
