//! Paths and patterns from a small vocabulary.

use super::Maker;

/// Short, overlapping, with what tends to go wrong: case, dots, blanks, bytes beyond ASCII.
const SEGMENTS: [&str; 19] = [
    "a",
    "a",
    "b",
    "b",
    "ab",
    "A",
    "docs",
    "docs",
    "x.html",
    "index.html",
    "old",
    "1",
    "42",
    "a b",
    "é",
    // In Latin-1.
    "\u{f7e9}",
    "a.b",
    "a-b",
    "b%",
];

impl Maker {
    /// A URL-path with a leading slash.
    pub(super) fn path(&mut self) -> String {
        let mut path = String::new();
        for _ in 0..self.rng.usize(1..=3) {
            path.push('/');
            path.push_str(self.pick(&SEGMENTS));
        }
        match self.rng.u8(0..16) {
            0 => path.push('/'),
            1 => path = "/".to_owned(),
            2 => path = path.replacen('/', "//", 1),
            3 => path.push_str("//"),
            _ => {}
        }
        path
    }

    /// A pattern for a whole path, or for one below a directory when `relative`.
    pub(super) fn pattern(&mut self, relative: bool) -> String {
        const WHOLE: [&str; 14] = [
            "^/",
            "^/(.*)$",
            "^(.*)$",
            ".",
            "^",
            "/$",
            "^$",
            r"\.html$",
            "[A-Z]",
            "^/?a",
            "(?i)^/A",
            "a|b",
            "^/(?!docs)(.*)",
            "(.)/(.)",
        ];
        if self.one_in(8) {
            return self.pick(&WHOLE).to_owned();
        }
        let mut pattern = String::new();
        if !self.one_in(5) {
            pattern.push('^');
        }
        if !relative || self.one_in(12) {
            pattern.push_str(if self.one_in(10) { "/?" } else { "/" });
        }
        for at in 0..self.rng.usize(1..=3) {
            if at > 0 {
                pattern.push_str(if self.one_in(8) { "(?:/|$)" } else { "/" });
            }
            let piece = self.piece();
            pattern.push_str(&piece);
        }
        if self.one_in(5) {
            pattern.push_str(self.pick(&["/?", "(/.*)?", "(.*)", "/", ".*"]));
        }
        if !self.one_in(3) {
            pattern.push('$');
        }
        pattern
    }

    /// One segment of a pattern.
    fn piece(&mut self) -> String {
        const GROUPS: [&str; 18] = [
            "(.*)",
            "(.+)",
            "([^/]+)",
            "(a|b)",
            "(a|ab)(b?)",
            r"(\d+)",
            r"(\w+)",
            "[a-c]+",
            "(A)?",
            "(?:docs|old)",
            r"(?<name>\w)",
            "a{1,2}",
            "(a)(b)?",
            r"(\w)\1",
            "a(?=b)",
            r"[^.]+",
            "(?i:DOCS)",
            r"\w*?",
        ];
        if self.one_in(2) {
            return self.pick(&GROUPS).to_owned();
        }
        let segment = self.pick(&SEGMENTS).to_owned();
        if self.one_in(6) { segment } else { segment.replace('.', r"\.") }
    }
}
