//! Which bytes may stand where in a head: one table, one bit for each place.
//!
//! Most of what stands in a head is shorter than it takes to begin with anything faster.
//!
//! Source: RFC 9110 sections 5.5, 5.6.2 and 7.2; httpd 2.4.71 `server/gen_test_char.c`.

/// The token bytes of RFC 9110 section 5.6.2: methods, and names of fields.
pub(super) const TOKEN: u8 = 1;
/// What may stand in a target: neither control bytes nor spaces.
pub(super) const TARGET: u8 = 2;
/// What may stand in the value of a field: no control byte but the tab.
pub(super) const VALUE: u8 = 4;
/// What may stand in a label of a host's name.
pub(super) const LABEL: u8 = 8;

/// The bits of each byte.
static CLASSES: [u8; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = classes(byte as u8);
        byte += 1;
    }
    table
};

const fn classes(byte: u8) -> u8 {
    let mut classes = match byte {
        0x7f => 0,
        b'!'.. => TARGET | VALUE,
        b' ' | b'\t' => VALUE,
        _ => 0,
    };
    if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_') {
        classes |= LABEL;
    }
    if matches!(byte,
        b'!' | b'#'..=b'\'' | b'*' | b'+' | b'-' | b'.' | b'0'..=b'9' | b'A'..=b'Z' | b'^'..=b'z'
        | b'|' | b'~')
    {
        classes |= TOKEN;
    }
    classes
}

/// Counts the bytes before the first one that is not of `CLASS`.
#[inline]
pub(super) fn count<const CLASS: u8>(bytes: &[u8]) -> usize {
    let is_of_class = |&byte: &u8| CLASSES[usize::from(byte)] & CLASS != 0;
    // In groups, as the end is then looked for less often.
    let (groups, rest) = bytes.as_chunks::<8>();
    for (number, group) in groups.iter().enumerate() {
        for (at, byte) in group.iter().enumerate() {
            if !is_of_class(byte) {
                return 8 * number + at;
            }
        }
    }
    8 * groups.len() + rest.iter().take_while(|&byte| is_of_class(byte)).count()
}

/// Whether `bytes` are a token: the name of a field or a method (RFC 9110 section 5.6.2).
#[must_use]
pub fn is_token(bytes: &[u8]) -> bool {
    !bytes.is_empty() && count::<TOKEN>(bytes) == bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_those_of_the_grammar() {
        let is_token =
            |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        for byte in 0..=255u8 {
            let is_printed = byte > b' ' && byte != 0x7f;
            assert_eq!(count::<TOKEN>(&[byte]) == 1, is_token(byte), "{byte}");
            assert_eq!(count::<TARGET>(&[byte]) == 1, is_printed, "{byte}");
            assert_eq!(
                count::<VALUE>(&[byte]) == 1,
                is_printed || b" \t".contains(&byte),
                "{byte}"
            );
            let is_label = byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
            assert_eq!(count::<LABEL>(&[byte]) == 1, is_label, "{byte}");
        }
    }

    #[test]
    fn bytes_are_counted_up_to_the_first_other_one() {
        for length in 0..20 {
            let bytes = [vec![b'a'; length], b" a ".to_vec()].concat();
            assert_eq!(count::<TOKEN>(&bytes), length);
            assert_eq!(count::<TOKEN>(&bytes[..length]), length);
        }
    }
}
