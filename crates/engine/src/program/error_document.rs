//! `ErrorDocument`: what is answered instead of an error page.

use crate::decision::Place;
use crate::expr::Template;
use crate::pool::Str;

/// What one directive says.
#[derive(Debug)]
pub(crate) struct ErrorDocument {
    pub(crate) kind: DocumentKind,
    pub(crate) place: Place,
}

/// Where the document is.
#[derive(Debug)]
pub(crate) enum DocumentKind {
    /// `default`: the page of the server itself.
    Default,
    /// The text is the document.
    Text(Document),
    /// A path of this server.
    Path(Document),
    /// Anywhere: a redirect.
    Url(Document),
}

/// A text, a path or a URL.
#[derive(Debug)]
pub(crate) enum Document {
    Plain(Str),
    /// With variables in it.
    Expanded(Template),
}
