//! The digest of a file's content, for `FileETag Digest`: SHA-1, of which nobody expects secrecy here.
//!
//! Source: httpd 2.4.71 `server/util_etag.c`, `make_digest_etag`.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use ring::digest::{Context, Digest, SHA1_FOR_LEGACY_USE_ONLY, digest};

use crate::limits::FILE_PIECE_BYTES;

/// The digest of bytes, in base 64.
pub(super) fn of_bytes(bytes: &[u8]) -> String {
    base64(&digest(&SHA1_FOR_LEGACY_USE_ONLY, bytes))
}

/// The digest of a whole file. Reads it, so a large one takes its time, at every request.
pub(super) fn of_file(file: &File) -> io::Result<String> {
    let mut context = Context::new(&SHA1_FOR_LEGACY_USE_ONLY);
    let mut piece = vec![0; FILE_PIECE_BYTES];
    let mut offset = 0;
    loop {
        let count = file.read_at(&mut piece, offset)?;
        if count == 0 {
            return Ok(base64(&context.finish()));
        }
        context.update(&piece[..count]);
        offset += count as u64;
    }
}

/// Base 64, padded: 20 bytes leave room for one sign.
fn base64(digest: &Digest) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in digest.as_ref().chunks(3) {
        let bits = three.iter().fold(0_u32, |bits, &byte| bits << 8 | u32::from(byte));
        let bits = bits << (8 * (3 - three.len()));
        for sixth in 0..=three.len() {
            text.push(char::from(ALPHABET[(bits >> (18 - 6 * sixth) & 63) as usize]));
        }
    }
    text.push('=');
    text
}

#[cfg(test)]
mod tests {
    use super::of_bytes;

    #[test]
    fn digests_are_those_of_sha1() {
        // RFC 3174 section 7.3, test 1, in base 64.
        assert_eq!(of_bytes(b"abc"), "qZk+NkcGgWq6PiVxeFDCbJzQ2J0=");
    }
}
