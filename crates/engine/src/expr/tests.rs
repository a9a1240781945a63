//! The parser against what httpd says of the same texts, and evaluation over a small request.

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

use milepost_pcre::Matcher;
use proptest::prelude::*;

use super::*;
use crate::outside::FileKind;

/// A request with the query string `q` from 127.0.0.1, and a file `/file` of five bytes.
#[derive(Default)]
struct Small {
    matcher: Matcher,
    files: Files,
}

#[derive(Default)]
struct Files;

impl Context for Small {
    fn variable(&mut self, name: &'static str, out: &mut Vec<u8>) {
        if name == "QUERY_STRING" {
            out.push(b'q');
        }
    }

    fn look_up(&mut self, table: Table, name: &[u8], out: &mut Vec<u8>) {
        let value: &[u8] = match (table, name) {
            (Table::Request, b"host") => b"www.test",
            (Table::Environment, b"E") => b"e",
            (Table::Process, b"PATH") => b"/bin",
            _ => b"",
        };
        out.extend_from_slice(value);
    }

    fn is_reachable(&mut self, ahead: Ahead, target: &[u8]) -> bool {
        ahead == Ahead::Url && target == b"/there"
    }

    fn client(&self) -> IpAddr {
        IpAddr::V4(Ipv4Addr::LOCALHOST)
    }

    fn outside(&self) -> &dyn Outside {
        &self.files
    }

    fn matcher(&mut self) -> &mut Matcher {
        &mut self.matcher
    }

    fn take_buffer(&mut self) -> Vec<u8> {
        Vec::new()
    }

    fn put_buffer(&mut self, _buffer: Vec<u8>) {}
}

impl Outside for Files {
    fn read(&self, _path: &Path) -> io::Result<Vec<u8>> {
        Ok(b"fi\0le".to_vec())
    }

    fn kind(&self, path: &Path) -> FileKind {
        match path.to_str() {
            Some("/file") => FileKind::File(5),
            Some("/") => FileKind::Directory,
            _ => FileKind::Missing,
        }
    }

    fn random(&self) -> u64 {
        0
    }

    fn now(&self) -> (i64, i32) {
        (0, 0)
    }
}

#[test]
fn words_and_signs_are_the_same_operators() {
    holds("true", true);
    holds(" true ", true);
    holds("not true", false);
    holds("!!true", true);
    holds("not(true)", false);
    holds("true && false || true", true);
    holds("true || false && false", true);
    holds("false and true or true", true);
    holds("! 'a' == 'b' && 'a' == 'b'", false);
    holds("((true))", true);
}

#[test]
fn texts_are_compared_byte_by_byte_and_integers_as_numbers() {
    holds("'a' == 'a'", true);
    holds("'a'='a'", true);
    holds("\"a\" != 'A'", true);
    holds("'10' < '9'", true);
    holds("'10' lt '9'", false);
    holds("1 == 01", false);
    holds("1 -eq 01", true);
    holds("'\u{e9}' > 'z'", true);
    holds("' 5x' -eq 5", true);
    holds("-5 -lt 3", true);
}

#[test]
fn values_are_joined() {
    holds("'x' . 'y' == 'xy'", true);
    holds("1.2.3 == '123'", true);
    holds("-n 'a' . 'b'", true);
    holds("'a%{QUERY_STRING}$c%d}' == 'aq$c%d}'", true);
    holds("%{query_string} == 'q'", true);
    holds(r"'\061\n\'' == '\061\012\047'", true);
    holds(r"'a\0b' == 'a'", true);
}

#[test]
fn regular_expressions_set_groups() {
    holds("%{QUERY_STRING} =~ /Q/", false);
    holds("%{QUERY_STRING} =~ /Q/i", true);
    holds("%{QUERY_STRING} =~ m#Q#iand true", true);
    holds("%{QUERY_STRING} =~ m_[q]_", true);
    holds("%{QUERY_STRING} =~ //", true);
    holds("%{QUERY_STRING} =~ /(q)/ && $1 == 'q'", true);
    // A pattern without groups leaves them alone; one that does not match clears them.
    holds("%{QUERY_STRING} =~ /(q)/ && %{QUERY_STRING} =~ /q/ && $1 == 'q'", true);
    holds("%{QUERY_STRING} =~ /(q)/ && %{QUERY_STRING} !~ /(x)/ && $1 == 'q'", false);
    holds("%{QUERY_STRING} =~ /(?:q)/ && $0 == 'q'", false);
    holds("%{QUERY_STRING} =~ /(x)?(q)/ && '$1$20' == 'q0'", true);
    holds("$1 == ''", true);
}

#[test]
fn lists_wildcards_and_networks() {
    holds("%{QUERY_STRING} in { 'a' , 'q' }", true);
    holds("'a'-in{'b',tolower('A')}", true);
    holds("'z' in {'a'}", false);
    holds("'/a/b' -strmatch '/*'", true);
    holds("'/a/b' -fnmatch '/*'", false);
    holds("'ABC' -STRCMATCH 'a?c'", true);
    holds("-R '127'", true);
    holds("'192.0.2.1' -ipmatch '192.0.2.0/24'", true);
    holds("'x' -ipmatch '192.0.2.0/24'", false);
}

#[test]
fn operators_of_one_value() {
    holds("-z ''", true);
    for (value, expected) in
        [("on", true), ("OFF", false), ("no", false), ("0", false), ("00", true)]
    {
        holds(&format!("-T '{value}'"), expected);
    }
    holds("-f '/file' && -s '/file' && -e '/' && -d '/'", true);
    holds("-e '/none' || -L '/file' || -x '/file'", false);
    holds("-U '/there' && -A '/there'", true);
    holds("-F '/there'", false);
}

#[test]
fn functions_are_called_in_two_ways() {
    holds("tolower ('AB') == 'ab'", true);
    holds("toupper(%{QUERY_STRING} . 'x') == 'QX'", true);
    holds("'%{tolower:A%{toupper:b}}' == 'ab'", true);
    holds("http('host') == 'www.test'", true);
    holds("'%{reqenv:E}%{osenv:PATH}' == 'e/bin'", true);
    holds("md5('a') == '0cc175b9c0f1b6a831c399e269772661'", true);
    holds("sha1('a') == '86f7e437faa5a7fce15d1ddcb9eaeaea377667b8'", true);
    holds("file('/file') == 'fi' && filesize('/file') -eq 5 && filesize('/none') == '0'", true);
}

#[test]
fn templates() {
    writes("", "");
    writes("http://t/%{QUERY_STRING}?a='b'#$1$x", "http://t/q?a='b'#$x");
    writes("}%{tolower:A:{\\}B}%", "}a:{}b%");
    writes("%{base64:%{QUERY_STRING}}", "cQ==");
}

#[test]
fn evaluation_ends_where_httpd_ends_it() {
    let nested = |depth: usize| format!("{}'a'{}", "tolower(".repeat(depth), ")".repeat(depth));
    holds(&format!("{} == 'a'", nested(18)), true);
    fails(&format!("{} == 'a'", nested(19)), EvalError::TooDeep);
    let left = |depth: usize| format!("{}true{}", "(".repeat(depth), " && true)".repeat(depth));
    holds(&left(19), true);
    fails(&left(20), EvalError::TooDeep);
    holds(&format!("true || {}", left(40)), true);
    // The right side of a chain goes no deeper.
    holds(&["false"; 40].join(" || "), false);
    holds(&format!("{}true{}", "true && (".repeat(40), ")".repeat(40)), true);
    holds(&format!("{} == 'a'", ["'a'"; 40].join(" . ")), false);
    fails("file('/none') == ''", EvalError::Unreadable);
}

#[test]
fn errors_name_the_byte_and_what_was_expected() {
    refused("", 0, "expected a condition, found the end");
    refused(
        "'a' ==",
        6,
        "expected a value: a text in quotes, a number, a variable or a function, found the end",
    );
    refused("%{QUERY_STRING}", 15, "expected a comparison, found the end");
    refused("a == a", 2, "expected `(`, found `==`");
    refused("true AND true", 5, "expected `&&`, `||` or the end, found `AND`");
    refused("(true", 5, "expected `)`, `&&` or `||`, found the end");
    refused("true)", 4, "expected `&&`, `||` or the end, found `)`");
    refused("('q') == 'q'", 4, "expected a comparison, found `)`");
    refused("'a' 'b' == 'ab'", 4, "expected a comparison, found `'`");
    refused(
        "'a' in {}",
        8,
        "expected a value: a text in quotes, a number, a variable or a function, found `}`",
    );
    refused("'a' in ('a')", 7, "expected a list in braces, `{'a', 'b'}`, found `(`");
    refused("'a' in some('a')", 7, "there is no function `some` that returns a list");
    refused("'a' =~ 'a'", 7, "expected a regular expression, `/…/` or `m#…#`, found `'`");
    refused("'a' =~ /a", 7, "the regular expression is not ended");
    refused("'a' =~ m_q_", 7, "expected a regular expression, `/…/` or `m#…#`, found `m_q_`");
    refused(
        "'a' =~ /(/",
        9,
        "not a regular expression: missing closing parenthesis at byte 1 of the pattern",
    );
    refused("'a' =~ /a/ii", 11, "expected `&&`, `||` or the end, found `i`");
    refused("'a", 2, "the text is not ended");
    refused("'%{QUERY_STRING' == ''", 15, "expected `}` or `:`, found `\\'`");
    refused("%{ X} == ''", 2, "expected the name of a variable or function, found ` `");
    refused("%{NO} == ''", 2, "there is no variable `NO`");
    refused("'%{no:x}' == ''", 3, "there is no function `no`");
    refused("'%{env:}' == ''", 7, "expected an argument, found `}`");
    refused("'%{env:a\"b}' == ''", 8, "a quote in the argument of a function needs a backslash");
    refused("nofunc('x') == 'y'", 0, "there is no function `nofunc`");
    refused("-q 'x'", 0, "there is no operator `-q`");
    refused("'a' -nomatch 'b'", 4, "there is no operator `-nomatch`");
    refused("-R 127", 3, "`-R` needs an address that is written out in quotes");
    refused(
        "'1' -ipmatch %{QUERY_STRING}",
        13,
        "`-ipmatch` needs an address that is written out in quotes",
    );
    refused("-R '127/8'", 3, "`127/8` is no address and no network");
    refused(r"'\8' == ''", 1, r"`\8` is no byte: escapes go from `\0` to `\377`");
    refused(r"'\400' == ''", 1, r"`\400` is no byte: escapes go from `\0` to `\377`");
    refused(r"'\1234' == ''", 1, r"`\1234` is no byte: escapes go from `\0` to `\377`");
    refused("'a\nb' == ''", 2, "a text ends on the line on which it begins");
    refused(
        "true & true",
        5,
        "expected an operator, a text in quotes, a variable or a function, found `&`",
    );
    refused(&"(".repeat(201), 200, "nested more than 200 deep");
    refused(
        &format!("'{}' == ''", "x".repeat(8192)),
        1,
        "a text or a pattern in an expression has at most 8191 bytes",
    );
    Condition::parse(format!("'{}' == ''", "x".repeat(8191)).as_bytes(), Dialect::default())
        .unwrap();
}

#[test]
fn errors_of_templates() {
    let error = Template::parse(b"http://t/\\", Dialect::default()).unwrap_err();
    assert_eq!((error.at, error.to_string().as_str()), (9, "nothing follows the backslash"));
    let error = Template::parse(b"x%{HTTP_ACCEPT_LANGUAGE}", Dialect::default()).unwrap_err();
    assert_eq!(error.at, 3);
    let hint = "write `%{HTTP:ACCEPT-LANGUAGE}` for a field of the request";
    assert_eq!(error.hint().as_deref(), Some(hint));
    let long = vec![b'x'; parser::EXPRESSION_BYTES_MAX + 1];
    assert_eq!(Template::parse(&long, Dialect::default()).unwrap_err().len, 1);
}

#[test]
fn dialects() {
    let restricted = Dialect { restricted: true, ..Dialect::default() };
    let error = Condition::parse(b"-f '/x' && file('/x') == ''", restricted).unwrap_err();
    assert_eq!((error.at, error.len), (11, 4));
    let tls = Dialect { tls: true, ..Dialect::default() };
    Condition::parse(b"%{SSL_PROTOCOL} == SSL('SSL_CIPHER')", tls).unwrap();
    refused("%{SSL_PROTOCOL} == ''", 2, "there is no variable `SSL_PROTOCOL`");
    refused("SSL('SSL_CIPHER') == ''", 0, "there is no function `SSL`");
}

#[test]
fn groups_pass_from_one_expression_to_the_next() {
    let mut capture = Capture::default();
    for (text, expected) in [("'ab' =~ /a(.)/", true), ("true", true), ("$1 == 'b'", true)] {
        let condition = Condition::parse(text.as_bytes(), Dialect::default()).unwrap();
        let holds = condition.holds(&mut Small::default(), &mut capture);
        assert_eq!(holds, Ok(expected), "{text}");
    }
    assert_eq!((&capture.subject[..], capture.groups.get(1)), (&b"ab"[..], Some(1..2)));
}

#[track_caller]
fn holds(text: &str, expected: bool) {
    assert_eq!(evaluate(text), Ok(expected), "{text}");
}

#[track_caller]
fn fails(text: &str, expected: EvalError) {
    assert_eq!(evaluate(text), Err(expected), "{text}");
}

#[track_caller]
fn evaluate(text: &str) -> Result<bool, EvalError> {
    let condition = Condition::parse(text.as_bytes(), Dialect::default())
        .unwrap_or_else(|error| panic!("{text}: byte {}: {error}", error.at));
    condition.holds(&mut Small::default(), &mut Capture::default())
}

#[track_caller]
fn writes(text: &str, expected: &str) {
    let template = Template::parse(text.as_bytes(), Dialect::default())
        .unwrap_or_else(|error| panic!("{text}: byte {}: {error}", error.at));
    let mut out = Vec::new();
    template.write(&mut Small::default(), &mut out).unwrap();
    assert_eq!(String::from_utf8(out).unwrap(), expected, "{text}");
}

#[track_caller]
fn refused(text: &str, at: usize, message: &str) {
    let error = Condition::parse(text.as_bytes(), Dialect::default()).unwrap_err();
    assert_eq!((error.at, error.to_string().as_str()), (at, message), "{text}");
}

/// Pieces of expressions, so that random texts come near to real ones.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        prop::sample::select(vec![
            "true",
            "false",
            "&&",
            "||",
            "!",
            "and",
            "not",
            "(",
            ")",
            "{",
            "}",
            "'a'",
            "\"",
            "'",
            "%{",
            "%{QUERY_STRING}",
            "%{tolower:",
            ":",
            "$1",
            "==",
            "=~",
            "!~",
            "/(a)/",
            "m#",
            "/",
            "i",
            "-eq",
            "-n",
            "-R",
            "'127'",
            "-strmatch",
            "in",
            ",",
            ".",
            "1",
            "tolower",
            "file(",
            "\\",
            "\\1",
            " ",
        ])
        .prop_map(str::to_owned),
        "[ -~]{0,3}",
    ];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    /// Whatever is written, both forms are read or refused at a byte of the text, and what is read can
    /// be evaluated.
    #[test]
    fn nothing_panics(text in pieces(), bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        for text in [text.as_bytes(), &bytes] {
            match Condition::parse(text, Dialect::default()) {
                Ok(condition) => {
                    let _ = condition.holds(&mut Small::default(), &mut Capture::default());
                }
                Err(error) => prop_assert!(error.at + error.len <= text.len(), "{:?}", error),
            }
            match Template::parse(text, Dialect::default()) {
                Ok(template) => {
                    let _ = template.write(&mut Small::default(), &mut Vec::new());
                }
                Err(error) => prop_assert!(error.at + error.len <= text.len(), "{:?}", error),
            }
        }
    }
}
