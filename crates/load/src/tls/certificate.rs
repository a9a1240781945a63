//! Says how long the key of a certificate is, which ab prints.
//!
//! Source: RFC 5280 section 4.1 (SubjectPublicKeyInfo), RFC 8017 appendix A.1.1 (RSA keys), RFC 5480
//! section 2.1.1.1 (curves), as DER.

/// Object identifiers of curves, and the bits of their keys.
const CURVES: [(&[u8], u32); 3] = [
    (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07], 256),
    (&[0x2b, 0x81, 0x04, 0x00, 0x22], 384),
    (&[0x2b, 0x81, 0x04, 0x00, 0x23], 521),
];

/// Object identifier of Ed25519.
const ED25519: &[u8] = &[0x2b, 0x65, 0x70];

const SEQUENCE: u8 = 0x30;
const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const OBJECT: u8 = 0x06;
const CONTEXT_0: u8 = 0xa0;

/// Bits of the public key of a certificate, if it can be read.
pub(crate) fn key_bits(certificate: &[u8]) -> Option<u32> {
    let (certificate, _) = take(certificate, SEQUENCE)?;
    let (mut rest, _) = take(certificate, SEQUENCE)?;
    if let Some((_, after)) = take(rest, CONTEXT_0) {
        rest = after; // The version.
    }
    // Serial number, signature algorithm, issuer, validity, subject.
    for tag in [INTEGER, SEQUENCE, SEQUENCE, SEQUENCE, SEQUENCE] {
        rest = take(rest, tag)?.1;
    }
    let (key_info, _) = take(rest, SEQUENCE)?;
    let (algorithm, key) = take(key_info, SEQUENCE)?;
    let (algorithm, parameters) = take(algorithm, OBJECT)?;
    if algorithm == ED25519 {
        return Some(253);
    }
    if let Some((curve, _)) = take(parameters, OBJECT) {
        return CURVES.iter().find(|(known, _)| *known == curve).map(|(_, bits)| *bits);
    }
    let (key, _) = take(key, BIT_STRING)?;
    // The first byte says how many bits at the end do not count.
    let (key, _) = take(key.get(1..)?, SEQUENCE)?;
    let (modulus, _) = take(key, INTEGER)?;
    let first = modulus.iter().position(|&byte| byte != 0)?;
    let modulus = &modulus[first..];
    u32::try_from(modulus.len()).ok()?.checked_mul(8)?.checked_sub(modulus[0].leading_zeros())
}

/// The content of the element that `bytes` begins with, if it is such a one, and what comes after it.
fn take(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (&found, rest) = bytes.split_first()?;
    let (&length, rest) = rest.split_first()?;
    let (length, rest) = match length {
        0..=0x7f => (usize::from(length), rest),
        0x81..=0x84 => {
            let (length, rest) = rest.split_at_checked(usize::from(length & 0x7f))?;
            let length = length.iter().fold(0_usize, |all, &byte| all << 8 | usize::from(byte));
            (length, rest)
        }
        _ => return None,
    };
    (found == tag).then_some(())?;
    rest.split_at_checked(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_of_a_key_is_read() {
        let generate = |algorithm| {
            let key = rcgen::KeyPair::generate_for(algorithm).unwrap();
            let parameters = rcgen::CertificateParams::new(vec!["h".to_owned()]).unwrap();
            parameters.self_signed(&key).unwrap().der().to_vec()
        };
        assert_eq!(key_bits(&generate(&rcgen::PKCS_ECDSA_P256_SHA256)), Some(256));
        assert_eq!(key_bits(&generate(&rcgen::PKCS_ECDSA_P384_SHA384)), Some(384));
        assert_eq!(key_bits(&generate(&rcgen::PKCS_ED25519)), Some(253));
        let certificate = generate(&rcgen::PKCS_ECDSA_P256_SHA256);
        for length in 0..certificate.len() {
            // Whatever is cut off, nothing breaks.
            let _ = key_bits(&certificate[..length]);
        }
    }

    #[test]
    fn an_rsa_key_is_as_long_as_its_modulus() {
        // A SubjectPublicKeyInfo in the least of a certificate; the modulus is 0x00 0x81 0x01.
        let key = [0x30, 0x07, 0x02, 0x03, 0x00, 0x81, 0x01, 0x02, 0x00];
        let mut info = vec![0x30, 0x04, OBJECT, 0x02, 0x2a, 0x03, BIT_STRING, 0x0a, 0x00];
        info.extend(key);
        let mut body = vec![INTEGER, 0x01, 0x01];
        body.extend([0x30, 0x00].repeat(4));
        body.extend([SEQUENCE, info.len() as u8]);
        body.extend(&info);
        let mut certificate = vec![SEQUENCE, body.len() as u8 + 2, SEQUENCE, body.len() as u8];
        certificate.extend(body);
        assert_eq!(key_bits(&certificate), Some(16));
    }
}
