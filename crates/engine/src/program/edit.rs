//! `Header` and `RequestHeader`: changes to the fields of a response or of the request.

use crate::expr::{Condition, Template};
use crate::pattern::Pattern;
use crate::pool::{Pool, Str};
use crate::program::Part;

/// The changes that one section says, or all that apply.
#[derive(Debug, Clone, Default)]
pub(crate) struct Edits {
    /// `RequestHeader`
    pub(crate) request: Vec<Part<EditList>>,
    /// `Header`: not for errors and redirects.
    pub(crate) success: Vec<Part<EditList>>,
    /// `Header always`
    pub(crate) always: Vec<Part<EditList>>,
}

/// Changes in order.
#[derive(Debug, Default)]
pub(crate) struct EditList {
    pub(crate) edits: Vec<Edit>,
}

/// One directive.
#[derive(Debug)]
pub(crate) struct Edit {
    /// The name of the field; of `Echo`, nothing.
    pub(crate) name: Str,
    pub(crate) action: Action,
    pub(crate) condition: EditCondition,
}

/// What is done to the field.
#[derive(Debug)]
pub(crate) enum Action {
    Set(Value),
    SetIfEmpty(Value),
    Add(Value),
    Append(Value),
    /// As `Append`, unless the value is there.
    Merge(Value),
    Unset,
    /// The request fields whose names match, sent back.
    Echo(Box<Pattern>),
    /// Writes the field's value into a note.
    Note(Value),
    /// The part that matches is replaced; `all` of them if so.
    Replace {
        pattern: Box<Pattern>,
        by: Replacement,
        all: bool,
    },
}

/// When it is done.
#[derive(Debug)]
pub(crate) enum EditCondition {
    Always,
    /// Before anything else, and not when the response is made.
    Early,
    /// `env=NAME`, or `env=!NAME`.
    Env {
        name: Str,
        set: bool,
    },
    /// `expr=`
    Expression(Condition),
}

/// What a match is replaced by.
#[derive(Debug)]
pub(crate) enum Replacement {
    /// `$0` to `$9` are the groups.
    Text(Str),
    /// `expr=`, with the groups as well.
    Expression(Template),
}

/// The value of a field.
#[derive(Debug)]
pub(crate) enum Value {
    Pieces(Vec<Piece>),
    /// `expr=`
    Expression(Template),
}

/// A piece of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Piece {
    Text(Str),
    /// `%{NAME}e`
    Env(Str),
    /// `%t`: when the request came, in microseconds since the epoch.
    Time,
    /// `%{NAME}s`: a variable of TLS.
    Tls(Str),
}

impl Edits {
    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.request.is_empty() && self.success.is_empty() && self.always.is_empty()
    }

    /// Appends what the more specific `over` says.
    pub(crate) fn merge(&mut self, over: &Edits) {
        self.request.extend(over.request.iter().cloned());
        self.success.extend(over.success.iter().cloned());
        self.always.extend(over.always.iter().cloned());
    }

    /// Says that all of this was read into `text`.
    pub(crate) fn adopt(&mut self, text: &std::sync::Arc<Pool>) {
        let lists = [&mut self.request, &mut self.success, &mut self.always];
        lists.into_iter().flatten().for_each(|list| list.adopt(text));
    }
}
