//! `<If>` sections and expressions.

use super::{Area, Context, Maker, word};

impl Maker {
    /// An `<If>` with its `<ElseIf>` and `<Else>`, or an expression as the target of a `Redirect`.
    pub(super) fn conditionals(&mut self, context: Context) -> String {
        let expression = self.expression(2);
        let body = self.conditional_body(context);
        let mut text = format!("<If \"{expression}\">\n{body}</If>\n");
        if self.one_in(3) {
            let expression = self.expression(1);
            let body = self.conditional_body(context);
            text.push_str(&format!("<ElseIf \"{expression}\">\n{body}</ElseIf>\n"));
        }
        if self.one_in(3) {
            let body = self.conditional_body(context);
            text.push_str(&format!("<Else>\n{body}</Else>\n"));
        }
        text
    }

    fn conditional_body(&mut self, context: Context) -> String {
        if self.one_in(8) {
            return self.access(Context::Section);
        }
        if self.one_in(12) {
            return self.conditionals(context);
        }
        if self.one_in(12) {
            let redirects = self.redirects(Context::Section);
            return format!("<Files *.html>\n{redirects}</Files>\n");
        }
        if self.may(Area::Field) && self.one_in(6) {
            return self.fields(context);
        }
        if self.may(Area::Rewrite) && self.one_in(4) {
            return self.rewrites(Context::Section);
        }
        if self.one_in(3) {
            return self.redirects(Context::Section);
        }
        let status = self.pick(&["301", "302", "303", "gone", "404"]);
        if status.starts_with('3') {
            let target = self.pick(&[
                "http://t/if",
                "http://t%{REQUEST_URI}",
                "/if?%{QUERY_STRING}",
                "http://t/%{tolower:%{HTTP_HOST}}",
                "http://t/%{escape:%{QUERY_STRING}}",
                "http://t/$1/%1",
            ]);
            format!("Redirect {status} {}\n", word(target))
        } else {
            format!("Redirect {status}\n")
        }
    }

    /// A boolean expression, at most `depth` operators deep, for use between double quotes.
    pub(super) fn expression(&mut self, depth: u32) -> String {
        if depth > 0 && self.one_in(4) {
            let left = self.expression(depth - 1);
            let right = self.expression(depth - 1);
            let operator = self.pick(&["&&", "||", "and", "or"]);
            return format!("({left}) {operator} ({right})");
        }
        if depth > 0 && self.one_in(6) {
            return format!("!({})", self.expression(depth - 1));
        }
        let value = self.pick(&[
            "%{HTTP_REFERER}",
            "%{REQUEST_FILENAME}",
            "%{SERVER_NAME}",
            "%{REQUEST_STATUS}",
            "%{HANDLER}",
            "%{CONTENT_TYPE}",
            "%{SCRIPT_FILENAME}",
            "%{REQUEST_SCHEME}",
            "%{IPV6}",
            "http('X-A')",
            "toupper(%{QUERY_STRING})",
            "escape(%{REQUEST_URI})",
            "unescape(%{QUERY_STRING})",
            "base64(%{HTTP_HOST})",
            "md5(%{QUERY_STRING})",
            "'%{REQUEST_URI}?%{QUERY_STRING}'",
            "%{REQUEST_URI}",
            "%{REQUEST_URI}",
            "%{QUERY_STRING}",
            "%{HTTP_HOST}",
            "%{REQUEST_METHOD}",
            "req('X-A')",
            "%{HTTP:X-A}",
            "tolower(%{REQUEST_URI})",
            "%{SERVER_PORT}",
            "reqenv('V')",
        ]);
        match self.rng.u8(0..11) {
            9 => {
                let test = self.pick(&["-f", "-d", "-e", "-s", "-F", "-U"]);
                let of = self.pick(&[
                    "%{REQUEST_FILENAME}",
                    "%{REQUEST_URI}",
                    "'@ROOT@/htdocs/b'",
                    "'/a/'",
                ]);
                format!("{test} {of}")
            }
            10 => self
                .pick(&[
                    "-R '127.0.0.1'",
                    "-R '10.0.0.0/8'",
                    "'a' in split(',', req('X-A'))",
                    "%{HTTP_HOST} -in { 'www.test', 'a.test' }",
                    "%{REQUEST_URI} =~ m#^/(?<n>[^/]+)/# && '$1' == 'a'",
                    "'x' != 'y' && 2 -lt 10",
                    "req_novary('X-A') == '1'",
                    "sub(s/a/b/, %{REQUEST_URI}) == '/b'",
                ])
                .to_owned(),
            0 => format!("{value} == '{}'", self.pick(&["/a", "a=1", "www.test", "GET", "1", ""])),
            1 => format!("{value} != '{}'", self.pick(&["/a", "x", "b"])),
            2 => format!(
                "{value} =~ /{}/{}",
                self.pick(&["^.a", "(.)(.*)", "a|b", "\\d", "test$"]),
                self.pick(&["", "i"])
            ),
            3 => format!("{value} !~ m#{}#", self.pick(&["^/a", "x", "/"])),
            4 => format!("-n {value}"),
            5 => format!("-z {value}"),
            6 => format!("{value} in {{ '/a', 'a=1', '1', 'GET' }}"),
            7 => format!(
                "{value} {} '{}'",
                self.pick(&["<", ">=", "-eq", "-lt", "-strmatch", "-fnmatch"]),
                self.pick(&["b", "10", "/a*", "*", "5"])
            ),
            _ => self
                .pick(&["true", "false", "-T '1'", "%{REMOTE_ADDR} -ipmatch '127.0.0.0/8'"])
                .to_owned(),
        }
    }
}
