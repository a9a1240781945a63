//! What stands in a line of an access log.
//!
//! A format is taken apart once, at load; an item that nobody knows is an error there and not a dash in each
//! of a million lines.
//!
//! Source: httpd 2.4.71 `modules/loggers/mod_log_config.c`, `parse_log_item`.

/// The format of httpd's common log, for `TransferLog` where no `LogFormat` has set another.
const COMMON: &[u8] = b"%h %l %u %t \"%r\" %>s %b";

/// The note that holds the place of the directive that answered: `%{milepost-rule}n`.
const RULE_NOTE: &[u8] = b"milepost-rule";

/// The items of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogFormat {
    /// In order.
    pub items: Vec<LogItem>,
}

/// One item of a format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogItem {
    /// What it shows.
    pub what: LogWhat,
    /// `%400,501{…}`: only for these statuses (`false`: for all others); `-` otherwise.
    pub statuses: Option<(bool, Vec<u16>)>,
}

/// What an item shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogWhat {
    /// Text that is the same in each line.
    Text(Box<[u8]>),
    /// `%a`, `%h`: the client's address. No names are looked up.
    RemoteAddress,
    /// `%{c}a`: the address of who has connected.
    PeerAddress,
    /// `%A`: our address.
    LocalAddress,
    /// `%B`: bytes of content sent.
    Bytes,
    /// `%b`: the same, `-` for 0.
    BytesOrDash,
    /// `%{NAME}C`: a cookie of the request.
    Cookie(Box<[u8]>),
    /// `%D`, `%T`, `%{UNIT}T`: from the complete head to the answer.
    Duration(LogUnit),
    /// `%{NAME}e`: a variable.
    Variable(Box<[u8]>),
    /// `%f`: the file name.
    File,
    /// `%H`: the protocol.
    Protocol,
    /// `%I`, `%O`, `%S`: bytes received, sent, both, heads included.
    Traffic(LogTraffic),
    /// `%{NAME}i`: a field of the request.
    RequestField(Box<str>),
    /// `%k`: requests that came through this connection before.
    Kept,
    /// `%m`: the method.
    Method,
    /// `%{milepost-rule}n`: file and line of the directive that answered.
    Rule,
    /// `%{NAME}o`: a field of the response.
    ResponseField(Box<[u8]>),
    /// `%p` and its forms.
    Port(LogPort),
    /// `%P`, `%{pid}P`: the process.
    Process,
    /// `%q`: the query string with its `?`, or nothing.
    Query,
    /// `%r`: the request line.
    RequestLine,
    /// `%s`, `%>s`: the status.
    Status,
    /// `%t` and its forms: when the request came.
    Time(LogTime),
    /// `%U`: the URL-path.
    Path,
    /// `%v`: the name of the server.
    ServerName,
    /// `%V`: the name of the server by `UseCanonicalName`.
    RequestedName,
    /// `%{SSL_NAME}x` and `%{NAME}c`: a variable of mod_ssl, by its whole name.
    Tls(Box<str>),
    /// `%X`: `+` if the connection goes on, `-` if not.
    Connection,
    /// `json` in the place of a format: everything, as one object.
    Json,
    /// `%L`: what the error log has as `%L` for this request, if it has anything.
    RequestId,
    /// `%{c}L`: what the error log calls the connection, if it says anything about it.
    ConnectionId,
    /// `%R`: the handler that answered.
    Handler,
    /// What there is none of: `%l`, `%u`, other notes, trailers. Written as `-`.
    Nothing,
}

/// Units of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogUnit {
    /// `s`
    Seconds,
    /// `ms`
    Milliseconds,
    /// `us`
    Microseconds,
}

/// Directions of traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogTraffic {
    /// `%I`
    Received,
    /// `%O`
    Sent,
    /// `%S`
    Both,
}

/// Which port is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogPort {
    /// `%p`, `%{canonical}p`: of `ServerName`, or else ours.
    Canonical,
    /// `%{local}p`
    Local,
    /// `%{remote}p`
    Remote,
}

/// Forms of the time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogTime {
    /// `[10/Oct/2000:13:55:36 -0700]`
    Common,
    /// `%{sec}t`, `%{msec}t`, `%{usec}t`: since the epoch.
    Since(LogUnit),
    /// `%{msec_frac}t`, `%{usec_frac}t`.
    Fraction(LogUnit),
    /// As `strftime` writes it.
    Strftime(Box<str>),
}

impl LogFormat {
    pub(super) fn common() -> LogFormat {
        LogFormat::parse(COMMON).unwrap_or(LogFormat { items: Vec::new() })
    }

    pub(super) fn json() -> LogFormat {
        let end = LogWhat::Text((*b"\n").into());
        let items = [LogWhat::Json, end].map(|what| LogItem { what, statuses: None });
        LogFormat { items: items.into() }
    }

    /// Whether an item is one of mod_ssl.
    pub(crate) fn has_tls(&self) -> bool {
        self.items.iter().any(|item| matches!(item.what, LogWhat::Tls(_)))
    }

    /// Takes a format apart.
    pub(crate) fn parse(text: &[u8]) -> Result<LogFormat, FormatError> {
        let mut items = Vec::new();
        let mut plain = Vec::new();
        let mut rest = text;
        while let Some((&byte, after)) = rest.split_first() {
            rest = after;
            match byte {
                b'\\' => match rest.split_first() {
                    None => plain.push(b'\\'),
                    Some((&escaped, after)) => {
                        rest = after;
                        match escaped {
                            b'n' => plain.push(b'\n'),
                            b'r' => plain.push(b'\r'),
                            b't' => plain.push(b'\t'),
                            other => plain.extend([b'\\', other]),
                        }
                    }
                },
                b'%' if rest.first() == Some(&b'%') => {
                    rest = &rest[1..];
                    plain.push(b'%');
                }
                b'%' => {
                    let (item, after) = item(rest)?;
                    rest = after;
                    if !plain.is_empty() {
                        let text = std::mem::take(&mut plain).into();
                        items.push(LogItem { what: LogWhat::Text(text), statuses: None });
                    }
                    items.push(item);
                }
                byte => plain.push(byte),
            }
        }
        plain.push(b'\n');
        items.push(LogItem { what: LogWhat::Text(plain.into()), statuses: None });
        Ok(LogFormat { items })
    }
}

/// What is wrong with a format.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FormatError {
    #[error("the log format ends in the middle of an item")]
    Unfinished,
    #[error("unknown item `%{0}` in the log format")]
    Unknown(String),
    #[error("`%{0}` needs a name in braces before it: `%{{name}}{0}`")]
    NameMissing(char),
    #[error("`{{{0}}}` is not a form of `%{1}`")]
    Form(String, char),
}

/// Reads what follows a `%`.
fn item(mut text: &[u8]) -> Result<(LogItem, &[u8]), FormatError> {
    let mut statuses: Option<(bool, Vec<u16>)> = None;
    let mut wanted = true;
    let mut argument: Option<&[u8]> = None;
    loop {
        let (&byte, after) = text.split_first().ok_or(FormatError::Unfinished)?;
        match byte {
            b'!' => wanted = false,
            // Which of several internal requests: there is one answer, and it has one status.
            b'<' | b'>' | b',' => {}
            b'0'..=b'9' => {
                let end = text.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
                let number = std::str::from_utf8(&text[..end]).ok().and_then(|n| n.parse().ok());
                statuses.get_or_insert((true, Vec::new())).1.push(number.unwrap_or(0));
                text = &text[end..];
                continue;
            }
            b'{' => {
                let end = memchr::memchr(b'}', after).ok_or(FormatError::Unfinished)?;
                argument = Some(&after[..end]);
                text = &after[end + 1..];
                continue;
            }
            b'^' => {
                // `^ti`, `^to`: trailers, which nobody keeps; `^FB`: the time of the first byte.
                let name = text.get(..3).ok_or(FormatError::Unfinished)?;
                if !matches!(name, b"^ti" | b"^to" | b"^FB") {
                    return Err(FormatError::Unknown(String::from_utf8_lossy(name).into_owned()));
                }
                return Ok((LogItem { what: LogWhat::Nothing, statuses: None }, &text[3..]));
            }
            letter => {
                let what = what(letter, argument)?;
                let statuses = statuses.map(|(_, list)| (wanted, list));
                return Ok((LogItem { what, statuses }, after));
            }
        }
        text = after;
    }
}

/// The meaning of an item's letter.
fn what(letter: u8, argument: Option<&[u8]>) -> Result<LogWhat, FormatError> {
    let lossy = |text: &[u8]| String::from_utf8_lossy(text).into_owned();
    let name = || argument.ok_or(FormatError::NameMissing(letter as char));
    let form = || FormatError::Form(lossy(argument.unwrap_or_default()), letter as char);
    Ok(match letter {
        b'a' => match argument {
            None => LogWhat::RemoteAddress,
            Some(b"c") => LogWhat::PeerAddress,
            Some(_) => return Err(form()),
        },
        b'h' => LogWhat::RemoteAddress,
        b'A' => LogWhat::LocalAddress,
        b'B' => LogWhat::Bytes,
        b'b' => LogWhat::BytesOrDash,
        b'C' => LogWhat::Cookie(name()?.into()),
        b'D' => LogWhat::Duration(LogUnit::Microseconds),
        b'T' => LogWhat::Duration(match argument {
            None => LogUnit::Seconds,
            Some(text) => unit(text).ok_or_else(form)?,
        }),
        b'e' => LogWhat::Variable(name()?.into()),
        b'f' => LogWhat::File,
        b'H' => LogWhat::Protocol,
        b'I' => LogWhat::Traffic(LogTraffic::Received),
        b'O' => LogWhat::Traffic(LogTraffic::Sent),
        b'S' => LogWhat::Traffic(LogTraffic::Both),
        b'i' => LogWhat::RequestField(lossy(name()?).into()),
        b'k' => LogWhat::Kept,
        b'm' => LogWhat::Method,
        b'n' if name()? == RULE_NOTE => LogWhat::Rule,
        b'L' if argument == Some(b"c") => LogWhat::ConnectionId,
        b'L' => LogWhat::RequestId,
        b'R' => LogWhat::Handler,
        b'l' | b'u' | b'n' => LogWhat::Nothing,
        b'o' => LogWhat::ResponseField(name()?.into()),
        b'p' => LogWhat::Port(match argument {
            None | Some(b"canonical") => LogPort::Canonical,
            Some(b"local") => LogPort::Local,
            Some(b"remote") => LogPort::Remote,
            Some(_) => return Err(form()),
        }),
        b'P' => match argument {
            None | Some(b"pid") => LogWhat::Process,
            Some(b"tid" | b"hextid") => LogWhat::Nothing,
            Some(_) => return Err(form()),
        },
        b'q' => LogWhat::Query,
        b'r' => LogWhat::RequestLine,
        b's' => LogWhat::Status,
        b't' => LogWhat::Time(time(argument)),
        b'U' => LogWhat::Path,
        b'v' => LogWhat::ServerName,
        b'x' => LogWhat::Tls(lossy(argument.unwrap_or_default()).into()),
        b'c' => match argument.unwrap_or_default() {
            b"version" => LogWhat::Tls("SSL_PROTOCOL".into()),
            b"cipher" => LogWhat::Tls("SSL_CIPHER".into()),
            b"subjectdn" | b"clientcert" => LogWhat::Tls("SSL_CLIENT_S_DN".into()),
            b"issuerdn" | b"cacert" => LogWhat::Tls("SSL_CLIENT_I_DN".into()),
            _ => LogWhat::Nothing,
        },
        b'V' => LogWhat::RequestedName,
        b'X' => LogWhat::Connection,
        other => return Err(FormatError::Unknown(lossy(&[other]))),
    })
}

fn unit(text: &[u8]) -> Option<LogUnit> {
    match text {
        b"s" => Some(LogUnit::Seconds),
        b"ms" => Some(LogUnit::Milliseconds),
        b"us" => Some(LogUnit::Microseconds),
        _ => None,
    }
}

fn time(argument: Option<&[u8]>) -> LogTime {
    // Begin and end of an answer lie so close together that one time stands for both.
    let text = argument.unwrap_or_default();
    let text = text.strip_prefix(b"begin:").or(text.strip_prefix(b"end:")).unwrap_or(text);
    match text {
        b"" => LogTime::Common,
        b"sec" => LogTime::Since(LogUnit::Seconds),
        b"msec" => LogTime::Since(LogUnit::Milliseconds),
        b"usec" => LogTime::Since(LogUnit::Microseconds),
        b"msec_frac" => LogTime::Fraction(LogUnit::Milliseconds),
        b"usec_frac" => LogTime::Fraction(LogUnit::Microseconds),
        text => LogTime::Strftime(String::from_utf8_lossy(text).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_told_from_text() {
        let format = LogFormat::parse(b"%h 100%% \\t\"%>s\" %{Referer}i").unwrap();
        let whats: Vec<_> = format.items.into_iter().map(|item| item.what).collect();
        let text = |text: &[u8]| LogWhat::Text(text.into());
        let expected = [
            LogWhat::RemoteAddress,
            text(b" 100% \t\""),
            LogWhat::Status,
            text(b"\" "),
            LogWhat::RequestField("Referer".into()),
            text(b"\n"),
        ];
        assert_eq!(whats, expected);
    }

    #[test]
    fn an_item_can_be_for_some_statuses() {
        let format = LogFormat::parse(b"%!200,304{User-agent}i%400b").unwrap();
        assert_eq!(format.items[0].statuses, Some((false, vec![200, 304])));
        assert_eq!(format.items[1].statuses, Some((true, vec![400])));
    }

    #[test]
    fn forms_are_looked_at() {
        check("%{us}T", Ok(LogWhat::Duration(LogUnit::Microseconds)));
        check("%{remote}p", Ok(LogWhat::Port(LogPort::Remote)));
        check("%{milepost-rule}n", Ok(LogWhat::Rule));
        check("%{other}n", Ok(LogWhat::Nothing));
        check("%{%Y}t", Ok(LogWhat::Time(LogTime::Strftime("%Y".into()))));
        check("%{weeks}T", Err("`{weeks}` is not a form of `%T`"));
        check("%i", Err("`%i` needs a name in braces before it: `%{name}i`"));
        check("%j", Err("unknown item `%j` in the log format"));
        check("%", Err("the log format ends in the middle of an item"));
        check("%{a", Err("the log format ends in the middle of an item"));
        check("%^xx", Err("unknown item `%^xx` in the log format"));
    }

    #[track_caller]
    fn check(format: &str, expected: Result<LogWhat, &str>) {
        let parsed = LogFormat::parse(format.as_bytes());
        let what = parsed.map(|mut format| format.items.swap_remove(0).what);
        assert_eq!(what.map_err(|error| error.to_string()), expected.map_err(str::to_owned));
    }
}
