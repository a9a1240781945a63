//! An expression once it is read.
//!
//! httpd counts how many evaluations stand open inside one another and gives up at a limit. How deep a
//! value needs to go does not depend on the request, so it is worked out here, once; the evaluator only
//! compares.

use milepost_pcre::Case;

use super::Table;
use super::address::Network;
use crate::pattern::Pattern;
use crate::program::Comparison;

/// A boolean expression.
#[derive(Debug)]
pub(super) enum Test {
    Constant(bool),
    Not(Box<Test>),
    /// `a || b || c`, two or more.
    Any(Box<[Test]>),
    /// `a && b && c`, two or more.
    All(Box<[Test]>),
    /// `==`, `<` and their like, byte by byte.
    Text(Comparison, Operand, Operand),
    /// `-eq`, `-lt` and their like.
    Integer(Comparison, Operand, Operand),
    /// `=~`, `!~`
    Matches {
        value: Operand,
        pattern: Box<Matching>,
        negated: bool,
    },
    /// `in { … }`
    In(Operand, Box<[Operand]>),
    /// `-n` and its like.
    Check(Check, Operand),
    /// `-strmatch`, `-strcmatch`, `-fnmatch`: value and pattern.
    Wildcard(Wildcard, Operand, Operand),
    /// `-ipmatch`
    InNetwork(Operand, Network),
    /// `-R`
    ClientIn(Network),
}

/// A regular expression in an expression.
#[derive(Debug)]
pub(super) struct Matching {
    pub(super) pattern: Pattern,
    /// Whether it has groups, so that `$0` to `$9` follow it.
    pub(super) captures: bool,
}

/// Operators of one value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Check {
    /// `-n`
    NotEmpty,
    /// `-z`
    Empty,
    /// `-T`: neither empty nor `0`, `off`, `false`, `no`.
    Truth,
    /// `-d`
    Directory,
    /// `-e`
    Exists,
    /// `-f`
    File,
    /// `-s`
    FilledFile,
    /// `-L`, `-h`
    Link,
    /// `-x`
    Executable,
    /// `-F`
    ReachableFile,
    /// `-U`, `-A`
    ReachableUrl,
}

/// How wildcards match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wildcard {
    /// `-strmatch`, `-strcmatch`: a slash is a byte like any other.
    Text(Case),
    /// `-fnmatch`: a slash is matched only by a slash.
    Path,
}

/// A value, and how many evaluations it takes inside one another.
#[derive(Debug)]
pub(super) struct Operand {
    pub(super) word: Word,
    pub(super) depth: u32,
}

/// A string expression.
#[derive(Debug)]
pub(super) enum Word {
    Text(Box<[u8]>),
    /// The name as [`VARIABLES`] has it.
    Variable(&'static str),
    /// `$0` to `$9`
    Group(u8),
    Call(Function, Box<Word>),
    Joined(Box<[Word]>),
}

/// Functions that return a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Function {
    LookUp(Table),
    ToLower,
    ToUpper,
    Escape,
    Unescape,
    Base64,
    Unbase64,
    Md5,
    Sha1,
    Ldap,
    File,
    FileSize,
}

impl Check {
    /// The operator with this letter; letters are not the same in both cases.
    pub(super) fn named(letter: u8) -> Option<Check> {
        Some(match letter {
            b'n' => Check::NotEmpty,
            b'z' => Check::Empty,
            b'T' => Check::Truth,
            b'd' => Check::Directory,
            b'e' => Check::Exists,
            b'f' => Check::File,
            b's' => Check::FilledFile,
            b'L' | b'h' => Check::Link,
            b'x' => Check::Executable,
            b'F' => Check::ReachableFile,
            b'U' | b'A' => Check::ReachableUrl,
            _ => return None,
        })
    }
}

impl Function {
    /// The function with this name, in any case.
    pub(super) fn named(name: &[u8]) -> Option<Function> {
        Some(match name.to_ascii_lowercase().as_slice() {
            b"req" | b"http" => Function::LookUp(Table::Request),
            b"req_novary" => Function::LookUp(Table::RequestUnseen),
            b"resp" => Function::LookUp(Table::Response),
            b"note" => Function::LookUp(Table::Notes),
            b"reqenv" => Function::LookUp(Table::Environment),
            b"env" => Function::LookUp(Table::AnyEnvironment),
            b"osenv" => Function::LookUp(Table::Process),
            b"ssl" => Function::LookUp(Table::Tls),
            b"tolower" => Function::ToLower,
            b"toupper" => Function::ToUpper,
            b"escape" => Function::Escape,
            b"unescape" => Function::Unescape,
            b"base64" => Function::Base64,
            b"unbase64" => Function::Unbase64,
            b"md5" => Function::Md5,
            b"sha1" => Function::Sha1,
            b"ldap" => Function::Ldap,
            b"file" => Function::File,
            b"filesize" => Function::FileSize,
            _ => return None,
        })
    }
}

/// The variable with this name, in any case.
pub(super) fn variable(name: &[u8]) -> Option<&'static str> {
    VARIABLES.iter().copied().find(|known| known.as_bytes().eq_ignore_ascii_case(name))
}

/// All variables. mod_rewrite has some that are not here, such as `SERVER_ADDR`.
pub(crate) const VARIABLES: &[&str] = &[
    "API_VERSION",
    "AUTH_TYPE",
    "CONN_LOG_ID",
    "CONN_REMOTE_ADDR",
    "CONTENT_TYPE",
    "CONTEXT_DOCUMENT_ROOT",
    "CONTEXT_PREFIX",
    "DOCUMENT_ROOT",
    "DOCUMENT_URI",
    "HANDLER",
    "HTTP2",
    "HTTPS",
    "HTTP_ACCEPT",
    "HTTP_COOKIE",
    "HTTP_FORWARDED",
    "HTTP_HOST",
    "HTTP_PROXY_CONNECTION",
    "HTTP_REFERER",
    "HTTP_USER_AGENT",
    "IPV6",
    "IS_SUBREQ",
    "LAST_MODIFIED",
    "PATH_INFO",
    "QUERY_STRING",
    "REMOTE_ADDR",
    "REMOTE_HOST",
    "REMOTE_IDENT",
    "REMOTE_PORT",
    "REMOTE_USER",
    "REQUEST_FILENAME",
    "REQUEST_LOG_ID",
    "REQUEST_METHOD",
    "REQUEST_SCHEME",
    "REQUEST_STATUS",
    "REQUEST_URI",
    "SCRIPT_FILENAME",
    "SCRIPT_GROUP",
    "SCRIPT_USER",
    "SERVER_ADMIN",
    "SERVER_NAME",
    "SERVER_PORT",
    "SERVER_PROTOCOL",
    "SERVER_SOFTWARE",
    "THE_REQUEST",
    "TIME",
    "TIME_DAY",
    "TIME_HOUR",
    "TIME_MIN",
    "TIME_MON",
    "TIME_SEC",
    "TIME_WDAY",
    "TIME_YEAR",
];
