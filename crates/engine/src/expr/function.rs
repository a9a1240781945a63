//! The functions of expressions that only turn bytes into other bytes.
//!
//! httpd's strings end at a zero byte, so what is decoded ends there too.
//!
//! Source: httpd 2.4.71 `server/util_expr_eval.c`; apr-util 1.6 `encoding/apr_base64.c`, apr 1.7
//! `encoding/apr_escape.c`.

use milepost_http::path::{self, EncodedSlashes};

const HEX: &[u8; 16] = b"0123456789abcdef";
const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// `unescape`: percent-decoded, but for `%2f`; nothing if an escape is malformed or `%00`.
pub(super) fn unescape(text: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    if path::unescape(text, EncodedSlashes::Keep, out).is_err() {
        out.truncate(start);
    }
}

/// `base64`
pub(super) fn encode_base64(bytes: &[u8], out: &mut Vec<u8>) {
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            let digit = BASE64[(bits >> (18 - 6 * place) & 63) as usize];
            out.push(if place <= chunk.len() { digit } else { b'=' });
        }
    }
}

/// `unbase64`: decoded up to the first byte that is no digit.
pub(super) fn decode_base64(text: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    let digit = |byte: &u8| BASE64.iter().position(|known| known == byte);
    let (mut bits, mut count) = (0_u32, 0);
    for value in text.iter().map_while(digit) {
        bits = bits << 6 | value as u32;
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
        }
    }
    if let Some(zero) = memchr::memchr(0, &out[start..]) {
        out.truncate(start + zero);
    }
}

/// Appends bytes as hexadecimal digits in lower case.
pub(super) fn write_hex(bytes: &[u8], out: &mut Vec<u8>) {
    for &byte in bytes {
        out.extend([HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
    }
}

/// `ldap`: escaped for a distinguished name or a filter.
pub(super) fn escape_ldap(text: &[u8], out: &mut Vec<u8>) {
    for &byte in text {
        if !(b' '..0x7f).contains(&byte) || b"\"()*+,;<>\\".contains(&byte) {
            out.push(b'\\');
            write_hex(&[byte], out);
        } else {
            out.push(byte);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions() {
        check(unescape, "a%20b%3F", "a b?");
        check(unescape, "a%2Fb%2f", "a%2Fb%2f");
        check(unescape, "a%zz", "");
        check(unescape, "a%00", "");
        check(encode_base64, "", "");
        check(encode_base64, "a", "YQ==");
        check(encode_base64, "ab", "YWI=");
        check(encode_base64, "abcd", "YWJjZA==");
        check(decode_base64, "YWJjZA==", "abcd");
        check(decode_base64, "YWJjZA", "abcd");
        check(decode_base64, "YWJjZ", "abc");
        check(decode_base64, "Y", "");
        check(decode_base64, "YW!JjZA", "a");
        check(decode_base64, "YQBi", "a");
        check(escape_ldap, "a*(b)/\x01\u{e9}", "a\\2a\\28b\\29/\\01\\c3\\a9");
    }

    #[track_caller]
    fn check(function: fn(&[u8], &mut Vec<u8>), text: &str, expected: &str) {
        let mut out = b"before".to_vec();
        function(text.as_bytes(), &mut out);
        assert_eq!(String::from_utf8_lossy(&out[6..]), expected, "{text:?}");
    }
}
