//! Looks at bytes a word of eight at a time.
//!
//! What stands in a head is short: this is done before vectors have begun.
//!
//! Source: RFC 9110 section 5.5; Sean Eron Anderson, *Bit Twiddling Hacks*, "Determine if a word has a
//! byte less than n".

/// Whether no control byte but the tab is in a field value.
#[must_use]
pub fn is_value(value: &[u8]) -> bool {
    let delete = |word: u64| below(word ^ (EACH * 0x7f), 1);
    let good = |&byte: &u8| byte >= b' ' && byte != 0x7f || byte == b'\t';
    // Hardly any value has a tab in it.
    find(value, |word| below(word, b' ') | delete(word))
        .is_none_or(|at| value[at..].iter().all(good))
}

/// Whether `bytes` are `lower`, in any case. `lower` has small letters and `-` only, and `bytes` no line end.
#[inline]
pub(crate) fn is_in_any_case(bytes: &[u8], lower: &[u8]) -> bool {
    // The one bit makes no other byte equal to such a letter or to `-`.
    const CASE: u64 = EACH * 0x20;
    if bytes.len() != lower.len() {
        return false;
    }
    let is_same = |(word, lower): (&[u8; 8], &[u8; 8])| {
        u64::from_ne_bytes(*word) | CASE == u64::from_ne_bytes(*lower)
    };
    match (bytes.last_chunk(), lower.last_chunk()) {
        // The last word lies over the one before it.
        (Some(last), Some(last_lower)) => {
            is_same((last, last_lower))
                && bytes.as_chunks().0.iter().zip(lower.as_chunks().0).all(is_same)
        }
        _ => bytes.iter().zip(lower).all(|(byte, lower)| byte | 0x20 == *lower),
    }
}

/// A one in each byte of a word.
pub const EACH: u64 = u64::from_ne_bytes([1; 8]);

/// Sets the high bits of the bytes of a word that are below `number`, and perhaps some after the first of them.
/// `number` is at most 128.
#[must_use]
#[inline]
pub fn below(word: u64, number: u8) -> u64 {
    word.wrapping_sub(EACH * u64::from(number)) & !word
}

/// Finds the first byte whose high bit `mark` sets, when it is given a word of eight bytes.
///
/// It may set other bits, and the high bits of bytes after the first one that it means. Letters are not to be
/// marked.
#[must_use]
#[inline]
pub fn find(bytes: &[u8], mark: impl Fn(u64) -> u64) -> Option<usize> {
    let first = |word: [u8; 8]| {
        let marked = mark(u64::from_le_bytes(word)) & (EACH * 0x80);
        (marked != 0).then(|| marked.trailing_zeros() as usize / 8)
    };
    let (words, rest) = bytes.as_chunks::<8>();
    for (number, word) in words.iter().enumerate() {
        if let Some(at) = first(*word) {
            return Some(8 * number + at);
        }
    }
    if rest.is_empty() {
        return None;
    }
    if let Some(last) = bytes.last_chunk::<8>() {
        // It lies over the one before it, which has been looked at.
        return first(*last).map(|at| bytes.len() - 8 + at);
    }
    let mut padded = [b'a'; 8];
    padded[..rest.len()].copy_from_slice(rest);
    first(padded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_of_a_value_is_looked_at_wherever_it_stands() {
        for length in 0..40 {
            for at in 0..length {
                for byte in 0..=255 {
                    let mut bytes = vec![b'a'; length];
                    bytes[at] = byte;
                    let good = byte >= b' ' && byte != 0x7f || byte == b'\t';
                    assert_eq!(is_value(&bytes), good, "{byte} at {at} of {length}");
                }
            }
        }
        assert!(is_value(b"a\tb\t\tcccccccccc"));
        assert!(!is_value(b"a\tb\t\tcccccccccc\r"));
    }

    #[test]
    fn the_first_of_several_is_found() {
        for at in 0..20 {
            let bytes = [vec![b'x'; at], b"\0\x01\0a".to_vec()].concat();
            let zeros = |word| below(word, 1);
            assert_eq!(find(&bytes, zeros), Some(at));
            assert_eq!(find(&bytes[..at], zeros), None);
        }
    }

    #[test]
    fn case_is_the_only_difference() {
        for lower in [&b""[..], b"host", b"expect", b"connection", b"content-length"] {
            assert!(is_in_any_case(&lower.to_ascii_uppercase(), lower));
            assert!(!is_in_any_case(&[lower, b"x"].concat(), lower));
            for (at, byte) in
                (0..lower.len()).flat_map(|at| (b' '..=255).map(move |byte| (at, byte)))
            {
                let mut bytes = lower.to_vec();
                bytes[at] = byte;
                assert_eq!(is_in_any_case(&bytes, lower), bytes.eq_ignore_ascii_case(lower));
            }
        }
    }
}
