//! Reads content that nobody asked for, up to where the next request begins.

use milepost_http::chunked::{ChunkError, Chunked, Step};
use milepost_http::request::Content;

use crate::buffer::Input;
use crate::limits::CONTENT_DISCARDED_BYTES_MAX;

/// Content on its way to nowhere.
pub(super) enum Discard {
    Length { left: u64 },
    Chunks { decoder: Chunked, taken: u64 },
}

/// How far it is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Progress {
    More,
    Done,
}

/// Why it cannot go on: the connection must be closed.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum DiscardError {
    #[error(transparent)]
    Malformed(#[from] ChunkError),
    #[error("the content is longer than is worth keeping the connection for")]
    TooLong,
}

impl Discard {
    /// Whether content that is framed like this may be discarded, as far as one can know before.
    pub(super) fn is_allowed(content: Content) -> bool {
        !matches!(content, Content::Length(length) if length > CONTENT_DISCARDED_BYTES_MAX)
    }

    /// Whether what is left may be discarded, as far as one can know before.
    pub(super) fn is_short(&self) -> bool {
        match self {
            Discard::Length { left } => *left <= CONTENT_DISCARDED_BYTES_MAX,
            Discard::Chunks { .. } => true,
        }
    }

    /// Begins, if there is anything to discard.
    pub(super) fn new(content: Content) -> Option<Discard> {
        match content {
            Content::None => None,
            Content::Length(left) => Some(Discard::Length { left }),
            Content::Chunked => Some(Discard::Chunks { decoder: Chunked::default(), taken: 0 }),
        }
    }

    /// Takes what belongs to the content out of `input`.
    pub(super) fn take(&mut self, input: &mut Input) -> Result<Progress, DiscardError> {
        match self {
            Discard::Length { left } => {
                let count = usize::try_from(*left).unwrap_or(usize::MAX).min(input.unread().len());
                input.consume(count);
                *left -= count as u64;
                Ok(if *left == 0 { Progress::Done } else { Progress::More })
            }
            Discard::Chunks { decoder, taken } => {
                let bytes = input.unread();
                let mut at = 0;
                let (end, progress) = loop {
                    match decoder.step(bytes, at)? {
                        Step::Content(range) => at = range.end,
                        Step::More => break (bytes.len(), Progress::More),
                        Step::End(end) => break (end, Progress::Done),
                    }
                };
                *taken += end as u64;
                if *taken > CONTENT_DISCARDED_BYTES_MAX {
                    return Err(DiscardError::TooLong);
                }
                input.consume(end);
                Ok(progress)
            }
        }
    }
}
