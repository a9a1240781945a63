//! The short HTML texts of redirects and errors.
//!
//! They are made anew for each response: copying a few hundred bytes costs less than a table of
//! finished pages would in cache misses, and a redirect's text holds its location anyway.
//!
//! Source: RFC 9110 section 15.4 (a redirect's content should have a hyperlink).

use crate::status;

/// Apache's, which clients that compare answers expect. Nothing beyond ASCII is in our own words; a
/// location is shown as it is sent.
pub(crate) const CONTENT_TYPE: &[u8] = b"text/html; charset=iso-8859-1";

/// Appends the page for `status`, with a link when there is a location.
pub(crate) fn write(output: &mut Vec<u8>, status: u16, location: Option<&[u8]>) {
    begin(output, status);
    match location {
        Some(location) => {
            output.extend_from_slice(b"What you asked for is <a href=\"");
            write_escaped(output, location);
            output.extend_from_slice(b"\">here</a>.");
        }
        None => output.extend_from_slice(sentence(status).as_bytes()),
    }
    output.extend_from_slice(END);
}

/// Appends the page for `status`, with a sentence of its own.
pub(crate) fn write_because(output: &mut Vec<u8>, status: u16, sentence: &str) {
    begin(output, status);
    output.extend_from_slice(sentence.as_bytes());
    output.extend_from_slice(END);
}

const END: &[u8] = b"</p>\n</body></html>\n";

fn begin(output: &mut Vec<u8>, status: u16) {
    let reason = status::reason(status).as_bytes();
    output.extend_from_slice(b"<!DOCTYPE html>\n<html><head>\n<title>");
    if let Some(digits) = three_digits(status) {
        output.extend_from_slice(&digits);
        output.push(b' ');
    }
    output.extend_from_slice(reason);
    output.extend_from_slice(b"</title>\n</head><body>\n<h1>");
    output.extend_from_slice(reason);
    output.extend_from_slice(b"</h1>\n<p>");
}

fn three_digits(status: u16) -> Option<[u8; 3]> {
    let digit = |number: u16| u8::try_from(number % 10).ok().map(|digit| b'0' + digit);
    Some([digit(status / 100)?, digit(status / 10)?, digit(status)?])
}

/// What a person should make of an error.
fn sentence(status: u16) -> &'static str {
    match status {
        400 => "The server could not understand the request.",
        401 => "This needs a name and a password.",
        403 => "You have no permission to see this.",
        404 => "There is nothing at this address.",
        405 => "The method of the request is not allowed here.",
        408 => "The request did not arrive in time.",
        410 => "What was at this address is gone, and has no new address.",
        413 => "The content of the request is larger than the server accepts.",
        414 => "The address is longer than the server accepts.",
        416 => "The range that was asked for lies outside of the content.",
        417 => "The server cannot do what the Expect field asks for.",
        500 => "The server is not set up right for this address.",
        501 => "The server does not know how to do this.",
        503 => "The server cannot answer just now.",
        505 => "The server does not speak this version of HTTP.",
        _ => "The server has no more to say about it.",
    }
}

/// Appends `text` with the bytes escaped that HTML gives a meaning to, inside of attributes too.
fn write_escaped(output: &mut Vec<u8>, mut text: &[u8]) {
    while let Some(at) = text.iter().position(|byte| matches!(byte, b'&' | b'<' | b'>' | b'"')) {
        output.extend_from_slice(&text[..at]);
        output.extend_from_slice(match text[at] {
            b'&' => b"&amp;",
            b'<' => b"&lt;",
            b'>' => b"&gt;",
            _ => b"&quot;",
        });
        text = &text[at + 1..];
    }
    output.extend_from_slice(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_is_escaped() {
        let mut page = Vec::new();
        write(&mut page, 301, Some(b"http://t/?a=1&b=\"><script>"));
        let page = String::from_utf8(page).unwrap();
        assert!(page.contains("<title>301 Moved Permanently</title>"), "{page}");
        assert!(page.contains("href=\"http://t/?a=1&amp;b=&quot;&gt;&lt;script&gt;\""), "{page}");
    }

    #[test]
    fn an_error_is_explained() {
        let mut page = Vec::new();
        write(&mut page, 404, None);
        assert!(page.windows(19).any(|part| part == b"<h1>Not Found</h1>\n"));
        assert!(page.ends_with(b"address.</p>\n</body></html>\n"));
    }
}
