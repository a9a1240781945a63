//! What sections say through expressions: `<If>`, and `Redirect` and `Alias` for all of a section.

use crate::decision::Place;
use crate::expr::{Condition, Template};
use crate::pool::Str;
use crate::program::DirConfig;

/// An `<If>`, `<ElseIf>` or `<Else>` and its contents.
#[derive(Debug)]
pub(crate) struct IfSection {
    /// `None` for an `<Else>`.
    pub(crate) condition: Option<Condition>,
    /// It counts only if the `<If>` or `<ElseIf>` before it does not: `<ElseIf>`, `<Else>`.
    pub(crate) otherwise: bool,
    pub(crate) config: DirConfig,
    pub(crate) place: Place,
}

/// `Redirect [status] URL` or `Redirect status` in a section.
#[derive(Debug)]
pub(crate) struct SectionRedirect {
    pub(crate) status: u16,
    /// The URL; `None` for a status that is no redirect.
    pub(crate) target: Option<Template>,
    pub(crate) place: Place,
}

/// `Alias file-path` in a `<Location>`.
#[derive(Debug)]
pub(crate) struct SectionAlias {
    pub(crate) file: Template,
    /// The path of the `<Location>`, which `AliasPreservePath` cuts off; `None` for a regular expression.
    pub(crate) url_path: Option<Str>,
}
