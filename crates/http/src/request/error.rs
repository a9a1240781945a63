//! What makes a request head unacceptable, and the status that says so.
//!
//! Source: RFC 9112 sections 2.2, 3, 3.2, 5 and 6; RFC 9110 sections 10.1.1 and 15.

/// A head that is malformed, ambiguous or over a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HeadError {
    /// A line ends in LF without CR.
    #[error("a line ends in a bare line feed")]
    BareLineFeed,
    /// `chunked` was applied more than once.
    #[error("chunked stands twice in Transfer-Encoding")]
    ChunkedTwice,
    /// `Content-Length` is not a number, or not one that can be.
    #[error("Content-Length is not a number of bytes")]
    ContentLength,
    /// More than one `Content-Length`, even if they agree.
    #[error("Content-Length stands twice")]
    ContentLengthRepeated,
    /// `Expect` with anything but `100-continue`.
    #[error("Expect asks for something other than 100-continue")]
    ExpectationUnknown,
    /// A field line has no name that is a token followed at once by a colon.
    #[error("a field line does not start with a name and a colon")]
    FieldName,
    /// A field line is over its limit.
    #[error("a field line is too long")]
    FieldTooLong,
    /// A field value has a control byte in it.
    #[error("a field value has a control byte in it")]
    FieldValue,
    /// A field line begins with white space.
    #[error("a field line begins with white space")]
    FoldedLine,
    /// `Host` is not a host with an optional port.
    #[error("Host is not a host with an optional port")]
    HostInvalid,
    /// HTTP/1.1 without `Host`.
    #[error("Host is missing")]
    HostMissing,
    /// More than one `Host`.
    #[error("Host stands twice")]
    HostRepeated,
    /// `Content-Length` and `Transfer-Encoding` in one head.
    #[error("Content-Length stands beside Transfer-Encoding")]
    LengthBesideTransferCoding,
    /// The request line is not method, space, target, space, version.
    #[error("the request line is malformed")]
    RequestLine,
    /// The request line is over its limit.
    #[error("the request line is too long")]
    RequestLineTooLong,
    /// More field lines than the limit.
    #[error("there are too many field lines")]
    TooManyFields,
    /// `Transfer-Encoding` in an HTTP/1.0 request, where nobody can rely on it.
    #[error("Transfer-Encoding stands in an HTTP/1.0 request")]
    TransferCodingInHttp10,
    /// The last transfer coding is not `chunked`: the content has no end that one could see.
    #[error("the last transfer coding is not chunked")]
    TransferCodingNotChunked,
    /// A transfer coding other than `chunked`.
    #[error("a transfer coding is not known")]
    TransferCodingUnknown,
    /// HTTP/2 or later, in the form of HTTP/1.
    #[error("the HTTP version is not supported")]
    VersionNotSupported,
}

impl HeadError {
    /// Returns the status to answer with.
    #[must_use]
    pub fn status(self) -> u16 {
        match self {
            HeadError::RequestLineTooLong => 414,
            HeadError::ExpectationUnknown => 417,
            HeadError::TransferCodingUnknown => 501,
            HeadError::VersionNotSupported => 505,
            _ => 400,
        }
    }
}
