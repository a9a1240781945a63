//! The client's side of a request that is passed on, whatever protocol the client speaks.

use std::io;
use std::task::{Context, Poll};

use crate::metrics::Counters;

/// A client as the proxy sees it. Nothing here waits: what is pushed is kept until it is flushed, and the
/// proxy pushes no more while there is much to flush, so that a slow client slows its backend down.
pub(crate) trait Client {
    /// How the content of the request is framed.
    fn content(&self) -> Incoming;

    /// Appends the next piece of the request's content. A client that waits to be asked for it is asked.
    fn poll_content(
        &mut self,
        context: &mut Context<'_>,
        into: &mut Vec<u8>,
    ) -> Poll<Result<Piece, ContentError>>;

    /// The trailer section of the request, once its content has ended: lines, each with its CRLF.
    fn trailers(&self) -> &[u8];

    /// Sends a response that is not the final one: 100, 103.
    fn interim(&mut self, answer: &Beginning<'_>);

    /// Begins the final response. After a 101, content is whatever bytes go either way.
    fn begin(&mut self, answer: &Beginning<'_>);

    /// Sends content of the response.
    fn push(&mut self, content: &[u8]);

    /// Ends the response. `trailers` are lines, each with its CRLF.
    fn finish(&mut self, trailers: &[u8]);

    /// Bytes that wait to be flushed.
    fn waiting(&self) -> usize;

    /// Sends what waits; ready when all of it is on its way. A client that takes nothing for too long is an
    /// error like one that has gone.
    fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Where it is counted what has become of the request.
    fn counters(&self) -> &Counters;

    /// Says that no more bytes will come through an upgraded connection.
    fn poll_close(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>>;
}

/// How the content of a request is framed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Incoming {
    None,
    Length(u64),
    /// It ends where its framing says.
    Unknown,
}

/// What came of asking for content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Piece {
    More,
    End,
}

/// The head of a response.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Beginning<'a> {
    pub(crate) status: u16,
    /// The reason phrase of the backend; may be empty.
    pub(crate) reason: &'a [u8],
    /// Field lines, each with its CRLF: nothing of the connection, and no length.
    pub(crate) fields: &'a [u8],
    /// The length of the content, if it is known; for a response without content, what would be its length.
    pub(crate) length: Option<u64>,
    pub(crate) has_content: bool,
}

/// Why the content of a request cannot be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ContentError {
    #[error("the client sent nothing more of its content in time ({seconds} s)")]
    Late { seconds: u64 },
    #[error("the client closed the connection before its content was complete")]
    Gone,
    #[error("the content of the request is malformed")]
    Malformed,
    #[error("the content of the request is larger than LimitRequestBody allows")]
    TooLarge,
    #[error("the content of the request could not be kept")]
    NoRoom,
}

impl ContentError {
    /// The status to answer with.
    pub(crate) fn status(self) -> u16 {
        match self {
            ContentError::Late { .. } => 408,
            ContentError::Gone | ContentError::Malformed => 400,
            ContentError::TooLarge => 413,
            ContentError::NoRoom => 500,
        }
    }
}
