//! Encodes credentials for the Authorization field.
//!
//! Source: RFC 4648 section 4.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The value of an Authorization field for `USER:PASSWORD` in the basic scheme.
///
/// Source: RFC 7617 section 2.
#[must_use]
pub fn basic_credentials(user_and_password: &str) -> String {
    format!("Basic {}", encode(user_and_password.as_bytes()))
}

/// Base64 with padding.
pub(crate) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let bits = (0..3).fold(0_usize, |bits, at| {
            bits << 8 | usize::from(group.get(at).copied().unwrap_or_default())
        });
        for place in 0..4 {
            let digit = ALPHABET[bits >> (18 - 6 * place) & 63];
            text.push(if place <= group.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_test_vectors_of_the_rfc() {
        // RFC 4648 section 10, and RFC 7617 section 2.
        check("", "");
        check("f", "Zg==");
        check("fo", "Zm8=");
        check("foo", "Zm9v");
        check("foobar", "Zm9vYmFy");
        check("Aladdin:open sesame", "QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
    }

    #[track_caller]
    fn check(text: &str, encoded: &str) {
        assert_eq!(encode(text.as_bytes()), encoded);
    }
}
