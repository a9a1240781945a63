//! Where files are for users and for hosts: `UserDir`, `VirtualDocumentRoot` and its relatives.

use std::sync::Arc;

/// `UserDir`.
#[derive(Debug, Clone, Default)]
pub(crate) struct UserDir {
    /// Where the files of a user may be, each tried in turn.
    pub(crate) places: Arc<[Box<[u8]>]>,
    /// `disabled` or `enabled` without names.
    pub(crate) is_off: Option<bool>,
    /// The users that have files where nobody else has.
    pub(crate) enabled: Vec<Box<[u8]>>,
    /// The users that have none.
    pub(crate) disabled: Vec<Box<[u8]>>,
}

impl UserDir {
    /// Takes what the main server says where this says nothing. Names are not handed down.
    pub(crate) fn inherit(&mut self, main: &UserDir) {
        if self.places.is_empty() {
            self.places = Arc::clone(&main.places);
        }
        self.is_off = self.is_off.or(main.is_off);
    }

    /// Whether a user's files are served.
    pub(crate) fn serves(&self, user: &[u8]) -> bool {
        let names = |list: &[Box<[u8]>]| list.iter().any(|name| name.eq_ignore_ascii_case(user));
        !names(&self.disabled) && (self.is_off != Some(true) || names(&self.enabled))
    }
}

/// The document roots that are named after hosts.
#[derive(Debug, Clone, Default)]
pub(crate) struct HostRoots {
    /// `VirtualDocumentRoot`, `VirtualDocumentRootIP`; `Some(None)` for `None`.
    pub(crate) documents: Option<Option<HostRoot>>,
    /// `VirtualScriptAlias`, `VirtualScriptAliasIP`.
    pub(crate) scripts: Option<Option<HostRoot>>,
}

impl HostRoots {
    /// Takes what the main server says where this says nothing.
    pub(crate) fn inherit(&mut self, main: &HostRoots) {
        for (own, main) in
            [(&mut self.documents, &main.documents), (&mut self.scripts, &main.scripts)]
        {
            if own.is_none() {
                own.clone_from(main);
            }
        }
    }
}

/// A directory whose path has parts of a host's name in it.
#[derive(Debug, Clone)]
pub(crate) struct HostRoot {
    /// Of the address of the connection, and not of the name.
    pub(crate) by_address: bool,
    /// What is below it is refused: httpd would run it.
    pub(crate) is_refused: bool,
    pub(crate) pieces: Arc<[RootPiece]>,
}

/// A piece of such a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RootPiece {
    Text(Box<[u8]>),
    /// `%p`
    Port,
    /// `%N.M`: a part of the name, and letters of it.
    Part(Span, Span),
}

/// Which of several things counted from 1; 0 is all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Span {
    pub(crate) number: usize,
    /// `-`: counted from the end.
    pub(crate) from_end: bool,
    /// `+`: with all that come after it, or before it if counted from the end.
    pub(crate) and_rest: bool,
}

impl Span {
    /// Which of `count` things are meant, from 0; `None`: there are not so many.
    pub(crate) fn of(self, count: usize) -> Option<std::ops::Range<usize>> {
        let Some(from) = self.number.checked_sub(1) else { return Some(0..count) };
        if from >= count {
            return None;
        }
        Some(match (self.from_end, self.and_rest) {
            (false, false) => from..from + 1,
            (false, true) => from..count,
            (true, false) => count - self.number..count - from,
            (true, true) => 0..count - from,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_count_from_both_ends() {
        let span = |number, from_end, and_rest| Span { number, from_end, and_rest }.of(3);
        assert_eq!(span(0, false, false), Some(0..3));
        assert_eq!(span(2, false, false), Some(1..2));
        assert_eq!(span(2, false, true), Some(1..3));
        assert_eq!(span(1, true, false), Some(2..3));
        assert_eq!(span(2, true, true), Some(0..2));
        assert_eq!(span(4, false, true), None);
    }

    #[test]
    fn who_is_named_is_served_or_not() {
        let names = |text: &str| text.split(' ').map(|name| name.as_bytes().into()).collect();
        let mut users = UserDir { disabled: names("carl"), ..UserDir::default() };
        assert!(users.serves(b"ann") && !users.serves(b"Carl"));
        users = UserDir { is_off: Some(true), enabled: names("ann carl"), ..users };
        assert!(users.serves(b"ANN") && !users.serves(b"carl") && !users.serves(b"bob"));
    }
}
