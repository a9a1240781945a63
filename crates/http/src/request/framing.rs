//! Where the content of a request ends.
//!
//! There is one framing or the request is refused: two that disagree, or one that only some would
//! understand, let a request hide inside another.
//!
//! Source: RFC 9112 sections 6.1 to 6.3.

use super::{HeadError, Version};

/// How the content of a request is framed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// There is none.
    None,
    /// So many bytes follow, at least one.
    Length(u64),
    /// Chunks follow.
    Chunked,
}

/// What the fields seen so far say about framing.
#[derive(Debug, Default)]
pub(super) struct Framing {
    length: Option<u64>,
    codings: Option<Codings>,
}

/// A `Transfer-Encoding` list, which may span several field lines.
#[derive(Debug, Default)]
struct Codings {
    chunked: u32,
    others: u32,
    last_is_chunked: bool,
}

impl Framing {
    /// Takes a `Content-Length`.
    pub(super) fn add_length(&mut self, value: &[u8]) -> Result<(), HeadError> {
        if self.length.is_some() {
            return Err(HeadError::ContentLengthRepeated);
        }
        self.length = Some(decimal(value).ok_or(HeadError::ContentLength)?);
        Ok(())
    }

    /// Takes a `Transfer-Encoding`.
    pub(super) fn add_codings(&mut self, value: &[u8]) {
        let codings = self.codings.get_or_insert_default();
        for coding in value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii) {
            if coding.is_empty() {
                continue;
            }
            codings.last_is_chunked = coding.eq_ignore_ascii_case(b"chunked");
            if codings.last_is_chunked {
                codings.chunked += 1;
            } else {
                codings.others += 1;
            }
        }
    }

    /// Decides, when all fields are seen.
    pub(super) fn content(&self, version: Version) -> Result<Content, HeadError> {
        let Some(codings) = &self.codings else {
            return Ok(match self.length {
                None | Some(0) => Content::None,
                Some(length) => Content::Length(length),
            });
        };
        if self.length.is_some() {
            return Err(HeadError::LengthBesideTransferCoding);
        }
        if version == Version::Http10 {
            return Err(HeadError::TransferCodingInHttp10);
        }
        match codings {
            Codings { last_is_chunked: false, .. } => Err(HeadError::TransferCodingNotChunked),
            Codings { chunked: 2.., .. } => Err(HeadError::ChunkedTwice),
            Codings { others: 1.., .. } => Err(HeadError::TransferCodingUnknown),
            _ => Ok(Content::Chunked),
        }
    }
}

/// Reads digits and nothing else.
fn decimal(value: &[u8]) -> Option<u64> {
    if value.is_empty() {
        return None;
    }
    value.iter().try_fold(0u64, |number, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })
}
