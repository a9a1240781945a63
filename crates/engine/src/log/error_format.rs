//! `ErrorLogFormat`: what stands in a line of the error log.
//!
//! A format has fields, which blanks separate. An item without a value takes its whole field with it, so that
//! `[client\ %a]` is there for requests alone.
//!
//! Source: httpd 2.4.71 `server/core.c`, `parse_errorlog_item`, `parse_errorlog_misc_string`;
//! `server/log.c`, `do_errorlog_format`.

/// The format where nothing is said.
const DEFAULT: &[u8] = b"[%{u}t] [%-m:%l] [pid %P] [client\\ %a] [%V] %M (%F)";

/// The items of a line of the error log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorFormat {
    /// In order.
    pub items: Vec<ErrorItem>,
}

/// One item of such a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorItem {
    /// What it shows.
    pub what: ErrorWhat,
    /// A field begins here.
    pub begins_field: bool,
    /// What happens to the line when there is nothing to show.
    pub missing: Missing,
    /// The item is only for levels of this number and above; 7 is `debug`, 8 is `trace1`.
    pub level_min: u8,
}

/// What becomes of a line in which an item has no value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// The field of the item is left out.
    Field,
    /// `%-x`: the item is a dash.
    Dash,
    /// `%+x`: the whole line is left out.
    Line,
}

/// What an item shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ErrorWhat {
    /// Text that is the same in each line.
    Text(Box<[u8]>),
    /// `%M`: the message.
    Message,
    /// `%a`: the client's address and port.
    RemoteAddress,
    /// `%{c}a`: the address and port of who has connected.
    PeerAddress,
    /// `%A`: our address and port.
    LocalAddress,
    /// `%{NAME}e`: a variable of the request.
    Variable(Box<[u8]>),
    /// `%{NAME}i`: a field of the request.
    RequestField(Box<str>),
    /// `%F`: file and line of the directive that the message is about.
    Place,
    /// `%l`: the level.
    Level,
    /// `%E`: what the operating system says of it, with its number.
    SystemError,
    /// `%L`: what the access log has as `%L` for the same request.
    RequestId,
    /// `%{c}L`: what logs call the connection.
    ConnectionId,
    /// `%m`: the module.
    Module,
    /// `%P`: the process.
    Process,
    /// `%T`, `%{g}T`: the number that the system has given to the thread.
    Thread,
    /// `%t`: the time.
    Time {
        /// `%{u}t`: with microseconds.
        microseconds: bool,
        /// `%{c}t`: as ISO 8601 has it.
        compact: bool,
    },
    /// `%v`: the name of the server.
    ServerName,
    /// `%V`: the name of the server by `UseCanonicalName`.
    RequestedName,
    /// What there is none of: `%k`, `%n`.
    Nothing,
}

/// What is wrong with a format.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ErrorFormatError {
    #[error("the error log format ends in the middle of an item")]
    Unfinished,
    #[error("unknown item `%{0}` in the error log format")]
    Unknown(char),
    #[error("`%{0}` needs a name in braces before it: `%{{name}}{0}`")]
    NameMissing(char),
}

impl Default for ErrorFormat {
    fn default() -> ErrorFormat {
        ErrorFormat::parse(DEFAULT).unwrap_or(ErrorFormat { items: Vec::new() })
    }
}

impl ErrorFormat {
    /// Takes a format apart.
    pub(crate) fn parse(text: &[u8]) -> Result<ErrorFormat, ErrorFormatError> {
        let mut items = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let (item, after) = item(rest)?;
            items.push(item);
            rest = after;
        }
        Ok(ErrorFormat { items })
    }
}

/// Reads an item, or the text up to the next one.
fn item(text: &[u8]) -> Result<(ErrorItem, &[u8]), ErrorFormatError> {
    let mut rest = text;
    let mut begins_field = false;
    while let Some(after) = rest.strip_prefix(b"% ") {
        (rest, begins_field) = (after, true);
    }
    let (mut item, rest) = match rest.strip_prefix(b"%") {
        Some(item) => described(item)?,
        None => plain(rest),
    };
    item.begins_field |= begins_field;
    Ok((item, rest))
}

/// Reads text up to the next item or field.
fn plain(text: &[u8]) -> (ErrorItem, &[u8]) {
    let blanks = text.iter().take_while(|&&byte| byte == b' ').count();
    let mut shown = vec![b' '; blanks];
    let mut rest = &text[blanks..];
    while let Some((&byte, after)) = rest.split_first() {
        match byte {
            b'%' | b' ' => break,
            b'\\' => match after.split_first() {
                None => {
                    shown.push(b'\\');
                    rest = after;
                }
                Some((&escaped, after)) => {
                    shown.push(match escaped {
                        b'n' => b'\n',
                        b'r' => b'\r',
                        b't' => b'\t',
                        other => other,
                    });
                    rest = after;
                }
            },
            byte => {
                shown.push(byte);
                rest = after;
            }
        }
    }
    (ErrorItem::new(ErrorWhat::Text(shown.into()), blanks > 0), rest)
}

/// Reads what follows a `%`.
fn described(mut text: &[u8]) -> Result<(ErrorItem, &[u8]), ErrorFormatError> {
    let mut item = ErrorItem::new(ErrorWhat::Nothing, false);
    let mut argument: Option<&[u8]> = None;
    loop {
        let (&byte, after) = text.split_first().ok_or(ErrorFormatError::Unfinished)?;
        text = after;
        match byte {
            b'%' => item.what = ErrorWhat::Text((*b"%").into()),
            b'{' => {
                let end = memchr::memchr(b'}', text).ok_or(ErrorFormatError::Unfinished)?;
                argument = Some(&text[..end]);
                text = &text[end + 1..];
                continue;
            }
            b'+' => {
                item.missing = Missing::Line;
                continue;
            }
            b'-' => {
                item.missing = Missing::Dash;
                continue;
            }
            b'0'..=b'9' => {
                item.level_min = item.level_min.saturating_mul(10).saturating_add(byte - b'0');
                continue;
            }
            letter => item.what = what(letter, argument)?,
        }
        return Ok((item, text));
    }
}

impl ErrorItem {
    fn new(what: ErrorWhat, begins_field: bool) -> ErrorItem {
        ErrorItem { what, begins_field, missing: Missing::Field, level_min: 0 }
    }
}

/// The meaning of an item's letter.
fn what(letter: u8, argument: Option<&[u8]>) -> Result<ErrorWhat, ErrorFormatError> {
    let name = || argument.ok_or(ErrorFormatError::NameMissing(letter as char));
    let has = |form: u8| argument.is_some_and(|argument| argument.contains(&form));
    Ok(match letter {
        b'a' if has(b'c') => ErrorWhat::PeerAddress,
        b'a' => ErrorWhat::RemoteAddress,
        b'A' => ErrorWhat::LocalAddress,
        b'e' => ErrorWhat::Variable(name()?.into()),
        b'F' => ErrorWhat::Place,
        b'i' => ErrorWhat::RequestField(String::from_utf8_lossy(name()?).into()),
        b'l' => ErrorWhat::Level,
        b'L' if has(b'c') || has(b'C') => ErrorWhat::ConnectionId,
        b'L' => ErrorWhat::RequestId,
        b'm' => ErrorWhat::Module,
        b'M' => ErrorWhat::Message,
        b'P' => ErrorWhat::Process,
        b'T' => ErrorWhat::Thread,
        b't' => ErrorWhat::Time { microseconds: has(b'u'), compact: has(b'c') },
        b'v' => ErrorWhat::ServerName,
        b'V' => ErrorWhat::RequestedName,
        b'E' => ErrorWhat::SystemError,
        b'k' | b'n' => ErrorWhat::Nothing,
        other => return Err(ErrorFormatError::Unknown(other as char)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whats(format: &str) -> Vec<(ErrorWhat, bool)> {
        let items = ErrorFormat::parse(format.as_bytes()).unwrap().items;
        items.into_iter().map(|item| (item.what, item.begins_field)).collect()
    }

    fn text(text: &str) -> ErrorWhat {
        ErrorWhat::Text(text.as_bytes().into())
    }

    #[test]
    fn blanks_begin_fields_unless_they_are_escaped() {
        let expected = [
            (text("[client "), false),
            (ErrorWhat::RemoteAddress, false),
            (text("]"), false),
            (text("  x"), true),
            (ErrorWhat::Message, false),
            (text(", "), true),
        ];
        assert_eq!(whats("[client\\ %a]  x%M% ,\\ "), expected);
    }

    #[test]
    fn signs_and_numbers_stand_before_the_letter() {
        let items = ErrorFormat::parse(b"%+{a}e%-7F%%").unwrap().items;
        assert_eq!(items[0].what, ErrorWhat::Variable((*b"a").into()));
        assert_eq!(items[0].missing, Missing::Line);
        assert_eq!((items[1].missing, items[1].level_min), (Missing::Dash, 7));
        assert_eq!(items[2].what, text("%"));
    }

    #[test]
    fn unknown_items_are_named() {
        for (format, error) in [
            ("%x", "unknown item `%x` in the error log format"),
            ("%e", "`%e` needs a name in braces before it: `%{name}e`"),
            ("%", "the error log format ends in the middle of an item"),
            ("%{a", "the error log format ends in the middle of an item"),
        ] {
            assert_eq!(ErrorFormat::parse(format.as_bytes()).unwrap_err().to_string(), error);
        }
    }
}
