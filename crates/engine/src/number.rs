//! Numbers as C reads them.

/// The number that a text begins with: what is no number is 0, and what is too large is the largest.
///
/// Source: C11 section 7.22.1.4, `strtoll`.
pub(crate) fn leading_number(text: &[u8]) -> i64 {
    let (sign, digits) = match text {
        [b'-', digits @ ..] => (-1, digits),
        [b'+', digits @ ..] => (1, digits),
        digits => (1, digits),
    };
    let digits = digits.iter().take_while(|byte| byte.is_ascii_digit());
    let number = digits.fold(0_i64, |number, digit| {
        number.saturating_mul(10).saturating_add(i64::from(digit - b'0'))
    });
    sign * number
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_in_c() {
        for (text, number) in
            [("8k", 8), ("x", 0), ("-3", -3), ("", 0), ("99999999999999999999", i64::MAX)]
        {
            assert_eq!(leading_number(text.as_bytes()), number, "{text}");
        }
    }
}
