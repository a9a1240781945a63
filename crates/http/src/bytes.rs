//! Whether bytes may stand in a field value or a target: a word of eight of them at a time.
//!
//! Values and targets are short: this is done before vectors have begun.
//!
//! Source: RFC 9110 section 5.5; Sean Eron Anderson, *Bit Twiddling Hacks*, "Determine if a word has a
//! byte less than n".

/// Whether no control byte but the tab is in a field value.
#[must_use]
pub fn is_value(value: &[u8]) -> bool {
    let good = |&byte: &u8| byte >= b' ' && byte != 0x7f || byte == b'\t';
    // Hardly any value has a tab in it.
    are_printed::<b' '>(value) || value.iter().all(good)
}

/// Whether no byte is below `LEAST` or DEL. The last word lies over the one before it.
#[must_use]
pub(crate) fn are_printed<const LEAST: u8>(bytes: &[u8]) -> bool {
    const EACH: u64 = u64::from_ne_bytes([1; 8]);
    let is_bad = |byte: u8| (byte < LEAST) | (byte == 0x7f);
    // The high bits say whether any byte is below a number of at most 128: there is no telling which.
    let below = |word: u64, number: u8| word.wrapping_sub(EACH * u64::from(number)) & !word;
    let bad = |word: &[u8; 8]| {
        let word = u64::from_ne_bytes(*word);
        (below(word, LEAST) | below(word ^ (EACH * 0x7f), 1)) & (EACH * 0x80)
    };
    let (words, rest) = bytes.as_chunks::<8>();
    let Some(last) = bytes.last_chunk::<8>() else {
        return !rest.iter().fold(false, |found, &byte| found | is_bad(byte));
    };
    words.iter().fold(bad(last), |found, word| found | bad(word)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_looked_at_wherever_it_stands() {
        for length in 0..40 {
            for at in 0..length {
                for byte in 0..=255 {
                    let mut bytes = vec![b'a'; length];
                    bytes[at] = byte;
                    let good = byte >= b' ' && byte != 0x7f;
                    assert_eq!(are_printed::<b' '>(&bytes), good, "{byte} at {at} of {length}");
                    assert_eq!(are_printed::<b'!'>(&bytes), good && byte != b' ');
                    assert_eq!(is_value(&bytes), good || byte == b'\t');
                }
            }
        }
    }
}
