//! `Header` and `RequestHeader`.

use super::{Context, Maker};

/// The field of the answers that is compared.
pub(super) const NAME: &str = "X-M";

impl Maker {
    /// Some lines that change fields of requests and answers.
    pub(super) fn fields(&mut self, _context: Context) -> String {
        let count = self.rng.usize(1..=3);
        (0..count).map(|_| self.field()).collect()
    }

    fn field(&mut self) -> String {
        let table = self.pick(&["", "always ", "onsuccess ", "always "]);
        let value = match self.rng.u8(0..8) {
            0 => "1".to_owned(),
            1 => "\"%{V}e x\"".to_owned(),
            2 => "\"expr=%{REQUEST_URI}\"".to_owned(),
            3 => "\"expr=%{HTTP_HOST}-%{REQUEST_STATUS}\"".to_owned(),
            4 => format!("\"expr=%{{tolower:%{{QUERY_STRING}}}}{}\"", self.pick(&["", "%1", "$0"])),
            5 => "%%".to_owned(),
            6 => "\"a, b\"".to_owned(),
            _ => "%{W}e".to_owned(),
        };
        let condition = match self.rng.u8(0..5) {
            0 => " env=V".to_owned(),
            1 => " env=!V".to_owned(),
            2 => {
                let expression = self.expression(1).replace('\\', "\\\\").replace('"', "\\\"");
                format!(" \"expr={expression}\"")
            }
            _ => String::new(),
        };
        match self.rng.u8(0..10) {
            0..3 => {
                let action = self.pick(&["set", "append", "merge", "add", "setifempty"]);
                format!("Header {table}{action} {NAME} {value}{condition}\n")
            }
            3 => format!("Header {table}unset {NAME}{condition}\n"),
            4 => {
                let action = self.pick(&["edit", "edit*"]);
                let (pattern, replacement) = self
                    .rng
                    .choice([("^", "x"), ("[a-z]", "y"), ("(.)(.)", "$2$1"), ("a", "\"\"")])
                    .unwrap_or_default();
                format!("Header {table}{action} {NAME} {pattern} {replacement}{condition}\n")
            }
            5 => {
                let line = self.pick(&[
                    "edit Location ^http: https:",
                    "edit Location t/ \"%{REQUEST_SCHEME}e/\"",
                    "unset Location",
                    "set Location /moved",
                    "edit* Location a b",
                ]);
                format!("Header {table}{line}{condition}\n")
            }
            6 | 7 => {
                let action = self.pick(&["set", "append", "add", "merge", "setifempty"]);
                format!("RequestHeader {action} X-A {value}{condition}\n")
            }
            8 => {
                let line =
                    self.pick(&["unset X-A", "edit X-A 1 b", "edit* X-A . c", "set X-A 1 early"]);
                format!("RequestHeader {line}\n")
            }
            _ => {
                let line = self.pick(&["Host old.test", "User-Agent bot", "Referer http://t/"]);
                let early = self.pick(&["", " early"]);
                format!("RequestHeader set {line}{early}\n")
            }
        }
    }
}
