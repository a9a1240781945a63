//! Bytes written as text in spec files: `\x` and two hexadecimal digits stand for one byte.
//!
//! Request-targets and answers may hold bytes that are no UTF-8. Every other backslash stands for
//! itself; a backslash that would read as such an escape is written `\x5c`.
//!
//! Configurations are text here, and files of old servers are often Latin-1: a byte of theirs that is no
//! UTF-8 is one character of a private range of Unicode, and becomes that byte when the file is written.

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

/// The character that stands for byte 0; those from 0x80 on are used.
const STAND_INS: u32 = 0xf700;

/// Turns the bytes of a file into text.
pub fn text(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        let stand_ins = chunk.invalid().iter();
        text.extend(stand_ins.filter_map(|&byte| char::from_u32(STAND_INS + u32::from(byte))));
    }
    text
}

/// Turns text, in UTF-8, into the bytes of a file.
pub fn of_file(text: &[u8]) -> Vec<u8> {
    let mut rest = text;
    let mut bytes = Vec::with_capacity(rest.len());
    while let Some(&first) = rest.first() {
        // U+F780 to U+F7FF in UTF-8.
        let (byte, len) = match rest {
            [0xef, 0x9e, low, ..] => (*low, 3),
            [0xef, 0x9f, low, ..] => (*low | 0x40, 3),
            _ => (first, 1),
        };
        bytes.push(byte);
        rest = &rest[len..];
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_any_bytes() {
        for bytes in [&b"/caf\xe9\n"[..], "/caf\u{e9}".as_bytes(), b"\x80\xff", b"\xef\x9e"] {
            assert_eq!(of_file(text(bytes).as_bytes()), bytes);
        }
        assert_eq!(text(b"\xe9"), "\u{f7e9}");
    }

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
