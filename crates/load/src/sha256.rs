//! SHA-256 of contents, with the hasher of ring: it allocates nothing.

use std::fmt;
use std::str::FromStr;

use ring::digest::{Context, SHA256, SHA256_OUTPUT_LEN};

/// A SHA-256 digest. Written and read as 64 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sha256(pub [u8; SHA256_OUTPUT_LEN]);

/// Makes one of pieces.
#[derive(Clone)]
pub(crate) struct Hasher(Context);

impl fmt::Debug for Hasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hasher").finish_non_exhaustive()
    }
}

impl Sha256 {
    /// The digest of `bytes`.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        let mut hasher = Hasher::new();
        hasher.update(bytes);
        hasher.finish()
    }
}

impl Hasher {
    pub(crate) fn new() -> Self {
        Self(Context::new(&SHA256))
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub(crate) fn finish(self) -> Sha256 {
        let digest = self.0.finish();
        let mut bytes = [0; SHA256_OUTPUT_LEN];
        bytes.copy_from_slice(digest.as_ref());
        Sha256(bytes)
    }
}

impl fmt::Display for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for Sha256 {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let fault = || "64 hexadecimal digits are needed".to_owned();
        let mut bytes = [0; SHA256_OUTPUT_LEN];
        if text.len() != 2 * bytes.len() || !text.bytes().all(|it| it.is_ascii_hexdigit()) {
            return Err(fault());
        }
        for (byte, at) in bytes.iter_mut().zip((0..).step_by(2)) {
            *byte = u8::from_str_radix(&text[at..at + 2], 16).map_err(|_| fault())?;
        }
        Ok(Self(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_those_of_the_standard() {
        // Source: FIPS 180-2, appendix B.1.
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(Sha256::of(b"abc").to_string(), abc);
        assert_eq!(abc.parse(), Ok(Sha256::of(b"abc")));
        for wrong in ["", "abc", &abc[1..], &abc.replace('b', "g")] {
            assert!(wrong.parse::<Sha256>().is_err(), "{wrong}");
        }
    }
}
