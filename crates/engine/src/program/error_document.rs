//! `ErrorDocument`: what is answered instead of an error page.

use crate::decision::Place;
use crate::pool::Str;

/// What one directive says.
#[derive(Debug)]
pub(crate) struct ErrorDocument {
    pub(crate) kind: DocumentKind,
    pub(crate) place: Place,
}

/// Where the document is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DocumentKind {
    /// `default`: the page of the server itself.
    Default,
    /// The text is the document.
    Text(Str),
    /// A path of this server.
    Path(Str),
    /// Anywhere: a redirect.
    Url(Str),
}
