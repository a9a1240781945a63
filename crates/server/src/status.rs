//! Status codes: their lines and headings, which of them have content, and which end the connection.
//!
//! Source: RFC 9110 section 15; httpd 2.4.71 `include/httpd.h`, `ap_status_drops_connection`.

/// The reason phrase of a code that nobody has named.
const UNKNOWN: &str = "Unknown";

/// Makes one match over the known codes out of one table.
macro_rules! statuses {
    ($($code:literal $reason:literal),+ $(,)?) => {
        /// Appends the status line. Codes that nobody has named are `Unknown`.
        pub(crate) fn write_line(status: u16, output: &mut Vec<u8>) {
            let line: &[u8] = match status {
                $($code => concat!("HTTP/1.1 ", $code, " ", $reason, "\r\n").as_bytes(),)+
                _ => {
                    let line = format!("HTTP/1.1 {status} {UNKNOWN}\r\n");
                    return output.extend_from_slice(line.as_bytes());
                }
            };
            output.extend_from_slice(line);
        }

        /// Appends the start of a page about the status: its title and heading.
        pub(crate) fn write_heading(status: u16, output: &mut Vec<u8>) {
            let heading: &[u8] = match status {
                $($code => concat!(
                    "<!DOCTYPE html>\n<html><head>\n<title>", $code, " ", $reason,
                    "</title>\n</head><body>\n<h1>", $reason, "</h1>\n",
                ).as_bytes(),)+
                _ => {
                    let heading = format!(
                        "<!DOCTYPE html>\n<html><head>\n<title>{status} {UNKNOWN}</title>\n\
                         </head><body>\n<h1>{UNKNOWN}</h1>\n"
                    );
                    return output.extend_from_slice(heading.as_bytes());
                }
            };
            output.extend_from_slice(heading);
        }
    };
}

statuses! {
    200 "OK",
    201 "Created",
    202 "Accepted",
    203 "Non-Authoritative Information",
    204 "No Content",
    205 "Reset Content",
    206 "Partial Content",
    300 "Multiple Choices",
    301 "Moved Permanently",
    302 "Found",
    303 "See Other",
    304 "Not Modified",
    305 "Use Proxy",
    307 "Temporary Redirect",
    308 "Permanent Redirect",
    400 "Bad Request",
    401 "Unauthorized",
    402 "Payment Required",
    403 "Forbidden",
    404 "Not Found",
    405 "Method Not Allowed",
    406 "Not Acceptable",
    407 "Proxy Authentication Required",
    408 "Request Timeout",
    409 "Conflict",
    410 "Gone",
    411 "Length Required",
    412 "Precondition Failed",
    413 "Content Too Large",
    414 "URI Too Long",
    415 "Unsupported Media Type",
    416 "Range Not Satisfiable",
    417 "Expectation Failed",
    418 "I'm a teapot",
    421 "Misdirected Request",
    422 "Unprocessable Content",
    423 "Locked",
    424 "Failed Dependency",
    425 "Too Early",
    426 "Upgrade Required",
    428 "Precondition Required",
    429 "Too Many Requests",
    431 "Request Header Fields Too Large",
    451 "Unavailable For Legal Reasons",
    500 "Internal Server Error",
    501 "Not Implemented",
    502 "Bad Gateway",
    503 "Service Unavailable",
    504 "Gateway Timeout",
    505 "HTTP Version Not Supported",
    506 "Variant Also Negotiates",
    507 "Insufficient Storage",
    508 "Loop Detected",
    510 "Not Extended",
    511 "Network Authentication Required",
}

/// Whether a response with this status has content, and a length to state.
pub(crate) fn has_content(status: u16) -> bool {
    !matches!(status, 204 | 304)
}

/// Whether Apache closes the connection after this status, as the request may have been misread.
pub(crate) fn ends_connection(status: u16) -> bool {
    matches!(status, 400 | 408 | 411 | 413 | 414 | 500 | 501 | 503)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_whole() {
        for (status, expected) in
            [(301, "HTTP/1.1 301 Moved Permanently\r\n"), (599, "HTTP/1.1 599 Unknown\r\n")]
        {
            let mut line = Vec::new();
            write_line(status, &mut line);
            assert_eq!(line, expected.as_bytes());
        }
    }
}
