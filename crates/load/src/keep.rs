//! Keeps of an answer what an observer wants to see: its head, its content, a digest of the content.
//!
//! A run keeps nothing of its answers unless asked, so that a request costs no copy and the memory is
//! constant whatever comes. What is kept is kept until the next answer on the connection.

use crate::sha256::{Hasher, Sha256};

/// What is kept of each answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Keep {
    /// The head as it came, of the final answer.
    pub head: bool,
    /// The content.
    pub content: KeepContent,
}

/// What is kept of the content.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum KeepContent {
    /// Its length, which is always counted.
    #[default]
    Length,
    /// A digest, to tell whether two contents are the same.
    Digest,
    /// The bytes, without their framing, up to this many.
    Bytes(usize),
}

/// What was kept of the answer that is on its way.
#[derive(Debug)]
pub(crate) struct Kept {
    keep: Keep,
    head: Vec<u8>,
    content: Vec<u8>,
    digest: u64,
    /// SHA-256 of what has come so far, if anybody expects one.
    sha256: Option<Hasher>,
}

/// Start and factor of the digest.
///
/// Source: the FNV-1a hash, 64 bits, as its authors (Fowler, Noll, Vo) give it.
const DIGEST_START: u64 = 0xcbf2_9ce4_8422_2325;
const DIGEST_FACTOR: u64 = 0x0000_0100_0000_01b3;

impl Default for Kept {
    fn default() -> Self {
        Self::new(Keep::default())
    }
}

impl Kept {
    pub(crate) fn new(keep: Keep) -> Self {
        Self { keep, head: Vec::new(), content: Vec::new(), digest: DIGEST_START, sha256: None }
    }

    /// Begins to make the SHA-256 of the content, which ends with [`Kept::clear`].
    pub(crate) fn begin_sha256(&mut self) {
        self.sha256 = Some(Hasher::new());
    }

    /// SHA-256 of the content, if it was begun.
    #[inline]
    pub(crate) fn sha256(&self) -> Option<Sha256> {
        self.sha256.clone().map(Hasher::finish)
    }

    /// Makes ready for the next answer. Keeps its memory.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.head.clear();
        self.content.clear();
        self.digest = DIGEST_START;
        self.sha256 = None;
    }

    /// Takes the head.
    #[inline]
    pub(crate) fn head(&mut self, head: &[u8]) {
        if self.keep.head {
            self.head.extend_from_slice(head);
        }
    }

    /// Takes the next piece of the content.
    #[inline]
    pub(crate) fn content(&mut self, bytes: &[u8]) {
        if let Some(sha256) = &mut self.sha256 {
            sha256.update(bytes);
        }
        match self.keep.content {
            KeepContent::Length => {}
            KeepContent::Digest => {
                for &byte in bytes {
                    self.digest = (self.digest ^ u64::from(byte)).wrapping_mul(DIGEST_FACTOR);
                }
            }
            KeepContent::Bytes(max) => {
                let room = max.saturating_sub(self.content.len()).min(bytes.len());
                self.content.extend_from_slice(&bytes[..room]);
            }
        }
    }

    /// The head, if heads are kept.
    pub(crate) fn head_bytes(&self) -> &[u8] {
        &self.head
    }

    /// The content, if contents are kept, up to the limit.
    pub(crate) fn content_bytes(&self) -> &[u8] {
        &self.content
    }

    /// The digest of the content, if digests are kept.
    pub(crate) fn digest(&self) -> u64 {
        self.digest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_those_of_the_published_test_vectors() {
        // Source: the test vectors of the FNV reference code, fnv1a_64.
        check("", 0xcbf2_9ce4_8422_2325);
        check("a", 0xaf63_dc4c_8601_ec8c);
        check("foobar", 0x8594_4171_f739_67e8);
    }

    #[test]
    fn content_is_kept_up_to_its_limit_in_any_pieces() {
        let mut kept = Kept::new(Keep { head: true, content: KeepContent::Bytes(5) });
        kept.head(b"head");
        for piece in [&b"abc"[..], b"def", b"ghi"] {
            kept.content(piece);
        }
        assert_eq!((kept.head_bytes(), kept.content_bytes()), (&b"head"[..], &b"abcde"[..]));
        kept.clear();
        assert_eq!((kept.head_bytes(), kept.content_bytes()), (&b""[..], &b""[..]));
    }

    #[track_caller]
    fn check(content: &str, digest: u64) {
        let mut kept = Kept::new(Keep { head: false, content: KeepContent::Digest });
        for byte in content.as_bytes() {
            kept.content(&[*byte]);
        }
        assert_eq!(kept.digest(), digest);
        assert_eq!(kept.content_bytes(), b"", "a digest keeps no bytes");
    }
}
