//! Bytes written as text in spec files: `\x` and two hexadecimal digits stand for one byte.
//!
//! Request-targets and answers may hold bytes that are no UTF-8. Every other backslash stands for
//! itself; a backslash that would read as such an escape is written `\x5c`.

use std::fmt::Write;

/// Turns the written form into bytes.
pub fn read(text: &str) -> Vec<u8> {
    let mut rest = text.as_bytes();
    let mut bytes = Vec::with_capacity(rest.len());
    while let Some((&first, after)) = rest.split_first() {
        match escape(rest) {
            Some(byte) => {
                bytes.push(byte);
                rest = &rest[4..];
            }
            None => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    bytes
}

/// Turns bytes into the written form; only visible ASCII and the space are written as they are.
pub fn write(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for (at, &byte) in bytes.iter().enumerate() {
        if matches!(byte, b' '..=b'~') && escape(&bytes[at..]).is_none() {
            text.push(char::from(byte));
        } else {
            write!(text, "\\x{byte:02x}").expect("writing to a String does not fail");
        }
    }
    text
}

/// Returns the byte that an escape at the start of `bytes` stands for.
fn escape(bytes: &[u8]) -> Option<u8> {
    let [b'\\', b'x', high, low, ..] = bytes else { return None };
    let digit = |byte: u8| char::from(byte).to_digit(16);
    u8::try_from(digit(*high)? * 16 + digit(*low)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_writes() {
        check(r"/a\x0ab", b"/a\nb");
        check(r"/\xff", b"/\xff");
        check(r"/a\b\xg", br"/a\b\xg");
        check(r"\x5cx41", br"\x41");
    }

    #[track_caller]
    fn check(text: &str, bytes: &[u8]) {
        assert_eq!(read(text), bytes);
        assert_eq!(write(bytes), text);
    }
}
