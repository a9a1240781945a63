//! Paths of request-targets: normalised, percent-decoded and escaped the way httpd does it.
//!
//! Which bytes are escaped decides what a `Location` looks like byte for byte, so these are httpd's
//! tables, not those of RFC 3986. All functions append to a buffer of the caller and allocate nothing
//! else; a path with nothing to do in it is copied.
//!
//! Source: httpd 2.4.71 `server/util.c`, `ap_normalize_path`, `unescape_url`, `ap_os_escape_path`.

/// Whether runs of `/` become one (`MergeSlashes`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slashes {
    /// As sent.
    Keep,
    /// One for each run.
    Merge,
}

/// What becomes of `%2F` in a path (`AllowEncodedSlashes`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EncodedSlashes {
    /// The path is refused: 404.
    Refuse,
    /// It becomes `/`.
    Decode,
    /// It stays `%2F`.
    Keep,
}

/// What becomes of `..` at the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AboveRoot {
    /// The path is refused: 400.
    Refuse,
    /// It stays at the root.
    Ignore,
}

/// The path cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadPath {
    /// `%` without two hexadecimal digits, a path above the root, or no leading `/`: status 400.
    Malformed,
    /// An encoded slash or zero byte that is not allowed: status 404.
    Forbidden,
}

/// Appends `path` to `out` without dot segments, with percent-encoded unreserved bytes decoded.
///
/// # Errors
/// [`BadPath::Malformed`]; `out` then holds the path all the same, as httpd goes on with what it refuses.
pub fn normalize(
    path: &[u8],
    slashes: Slashes,
    above: AboveRoot,
    out: &mut Vec<u8>,
) -> Result<(), BadPath> {
    if path.first() != Some(&b'/') {
        return Err(BadPath::Malformed);
    }
    if is_plain(path) {
        out.extend_from_slice(path);
        return Ok(());
    }
    let start = out.len();
    out.push(b'/');
    let mut rest = &path[1..];
    let mut is_whole = true;
    while let Some((byte, after)) = decode_unreserved(rest, &mut is_whole) {
        if out.last() == Some(&b'/') {
            if byte == b'/' && slashes == Slashes::Merge {
                rest = after;
                continue;
            }
            if byte == b'.' {
                if let Some(next) = segment_end(after) {
                    rest = next;
                    continue;
                }
                if let Some(next) = second_dot(after).and_then(segment_end) {
                    if out.len() > start + 1 {
                        out.pop();
                        while out.last() != Some(&b'/') {
                            out.pop();
                        }
                    } else {
                        is_whole &= above == AboveRoot::Ignore;
                    }
                    rest = next;
                    continue;
                }
            }
        }
        out.push(byte);
        rest = after;
    }
    if is_whole { Ok(()) } else { Err(BadPath::Malformed) }
}

/// Appends `path` to `out`, percent-decoded.
///
/// # Errors
/// [`BadPath`]: a malformed escape anywhere in the path comes before a forbidden one, which is decoded too.
pub fn unescape(path: &[u8], encoded: EncodedSlashes, out: &mut Vec<u8>) -> Result<(), BadPath> {
    let mut forbidden = false;
    let mut rest = path;
    while let Some(at) = memchr::memchr(b'%', rest) {
        let byte = hex_pair(&rest[at + 1..]).ok_or(BadPath::Malformed)?;
        out.extend_from_slice(&rest[..at]);
        match byte {
            b'/' if encoded == EncodedSlashes::Keep => out.extend_from_slice(&rest[at..at + 3]),
            byte => {
                forbidden |= byte == 0 || byte == b'/' && encoded == EncodedSlashes::Refuse;
                out.push(byte);
            }
        }
        rest = &rest[at + 3..];
    }
    out.extend_from_slice(rest);
    if forbidden { Err(BadPath::Forbidden) } else { Ok(()) }
}

/// Appends `bytes` to `out` with all that httpd escapes in a path as `%xx`, in lower case.
pub fn escape(bytes: &[u8], out: &mut Vec<u8>) {
    let mut rest = bytes;
    while let Some(at) = rest.iter().position(|&byte| !is_path_byte(byte)) {
        out.extend_from_slice(&rest[..at]);
        push_escaped(rest[at], out);
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
}

/// Whether [`escape`] would change anything.
pub fn needs_escape(bytes: &[u8]) -> bool {
    !bytes.iter().all(|&byte| is_path_byte(byte))
}

/// Appends `%xx` for `byte`, in lower case.
pub fn push_escaped(byte: u8, out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.extend_from_slice(&[b'%', DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
}

/// Returns the byte that two hexadecimal digits at the start of `digits` stand for.
pub fn hex_pair(digits: &[u8]) -> Option<u8> {
    let digit = |at: usize| char::from(*digits.get(at)?).to_digit(16);
    Some((digit(0)? * 16 + digit(1)?) as u8)
}

/// Tells whether there is nothing to normalise or to decode in an absolute path: no escape, no `//`, no
/// segment with a dot first.
pub fn is_plain(path: &[u8]) -> bool {
    let Some((b'/', rest)) = path.split_first() else { return false };
    // Without an early end, so that the compiler makes vector code of it.
    let special = |(&before, &byte): (&u8, &u8)| {
        (byte == b'%') | (before == b'/') & ((byte == b'/') | (byte == b'.'))
    };
    !path.iter().zip(rest).fold(false, |found, pair| found | special(pair))
}

/// Splits the next byte off, decoded if it is an escaped unreserved one. `None` at the end. `is_whole` goes
/// where a `%` escapes nothing.
fn decode_unreserved<'p>(rest: &'p [u8], is_whole: &mut bool) -> Option<(u8, &'p [u8])> {
    let (&byte, after) = rest.split_first()?;
    if byte != b'%' {
        return Some((byte, after));
    }
    let decoded = hex_pair(after);
    *is_whole &= decoded.is_some();
    let unreserved = decoded.filter(|byte| byte.is_ascii_alphanumeric() || b"-._~".contains(byte));
    Some(unreserved.map_or((byte, after), |decoded| (decoded, &after[2..])))
}

/// What follows if a segment ends here, its slash eaten.
fn segment_end(rest: &[u8]) -> Option<&[u8]> {
    match rest.first() {
        None => Some(rest),
        Some(b'/') => Some(&rest[1..]),
        Some(_) => None,
    }
}

fn second_dot(rest: &[u8]) -> Option<&[u8]> {
    match rest {
        [b'.', after @ ..] | [b'%', b'2', b'e' | b'E', after @ ..] => Some(after),
        _ => None,
    }
}

/// The bytes that `ap_os_escape_path` leaves alone in a partial path.
fn is_path_byte(byte: u8) -> bool {
    const fn table() -> [bool; 256] {
        let mut table = [false; 256];
        let plain = b"$-_.+!*'(),:;@&=/~";
        let mut at = 0;
        while at < plain.len() {
            table[plain[at] as usize] = true;
            at += 1;
        }
        let mut byte = 0;
        while byte < 128 {
            if (byte as u8).is_ascii_alphanumeric() {
                table[byte] = true;
            }
            byte += 1;
        }
        table
    }
    static TABLE: [bool; 256] = table();
    TABLE[usize::from(byte)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dot_segments_go() {
        normal("/one/../two/x", Ok("/two/x"));
        normal("/one/%2e%2E/two", Ok("/two"));
        normal("/one/.%2e/two", Ok("/two"));
        normal("/./a/.", Ok("/a/"));
        normal("/a/..", Ok("/"));
        normal("/a/.b/..c", Ok("/a/.b/..c"));
        normal("/../one", Err(BadPath::Malformed));
    }

    #[test]
    fn only_unreserved_bytes_are_decoded() {
        normal("/%6fne/%41%7e%2e", Ok("/one/A~."));
        normal("/a%20b%2fc%2541", Ok("/a%20b%2fc%2541"));
        normal("/a%zz", Err(BadPath::Malformed));
        normal("/a%2", Err(BadPath::Malformed));
    }

    #[test]
    fn slashes_merge_unless_kept() {
        normal("/one//a///b", Ok("/one/a/b"));
        let mut kept = Vec::new();
        normalize(b"/one//a/../b", Slashes::Keep, AboveRoot::Refuse, &mut kept).unwrap();
        assert_eq!(kept, b"/one//b");
    }

    #[test]
    fn decoding_refuses_slash_and_zero() {
        decoded("/a%20b%3f", EncodedSlashes::Refuse, Ok("/a b?"));
        decoded("/a%2fb", EncodedSlashes::Refuse, Err(BadPath::Forbidden));
        decoded("/a%2fb", EncodedSlashes::Decode, Ok("/a/b"));
        decoded("/a%2Fb", EncodedSlashes::Keep, Ok("/a%2Fb"));
        decoded("/a%00", EncodedSlashes::Keep, Err(BadPath::Forbidden));
        decoded("/a%00%zz", EncodedSlashes::Keep, Err(BadPath::Malformed));
    }

    #[test]
    fn escaping_is_lower_case_and_keeps_what_httpd_keeps() {
        let mut out = Vec::new();
        escape(b"/a b?c[d]\xe4;p=1,a:b@c!$&'()*+=~", &mut out);
        assert_eq!(out, b"/a%20b%3fc%5bd%5d%e4;p=1,a:b@c!$&'()*+=~");
    }

    #[track_caller]
    fn normal(path: &str, expected: Result<&str, BadPath>) {
        let mut out = Vec::new();
        let result = normalize(path.as_bytes(), Slashes::Merge, AboveRoot::Refuse, &mut out);
        assert_eq!(result.map(|()| String::from_utf8(out).unwrap()), expected.map(str::to_owned));
    }

    #[track_caller]
    fn decoded(path: &str, encoded: EncodedSlashes, expected: Result<&str, BadPath>) {
        let mut out = Vec::new();
        let result = unescape(path.as_bytes(), encoded, &mut out);
        assert_eq!(result.map(|()| String::from_utf8(out).unwrap()), expected.map(str::to_owned));
    }
}
