//! The short HTML texts of redirects and errors.
//!
//! They are put together for each response, from few pieces: a redirect's text holds its location.
//!
//! Source: RFC 9110 section 15.4 (a redirect's content should have a hyperlink).

use milepost_http::bytes::{self, EACH};

use crate::status;

/// Apache's, which clients that compare answers expect. Nothing beyond ASCII is in our own words; a
/// location is shown as it is sent.
pub(crate) const CONTENT_TYPE_LINE: &[u8] = b"Content-Type: text/html; charset=iso-8859-1\r\n";

/// Appends the page for `status`, with a link when there is a location.
pub(crate) fn write(output: &mut Vec<u8>, status: u16, location: Option<&[u8]>) {
    status::write_heading(status, output);
    match location {
        Some(location) => {
            output.extend_from_slice(b"<p>What you asked for is <a href=\"");
            write_escaped(output, location);
            output.extend_from_slice(b"\">here</a>.</p>\n</body></html>\n");
        }
        None => write_sentence(output, sentence(status)),
    }
}

/// Appends the page for `status`, with a sentence of its own.
pub(crate) fn write_because(output: &mut Vec<u8>, status: u16, sentence: &str) {
    status::write_heading(status, output);
    write_sentence(output, sentence);
}

fn write_sentence(output: &mut Vec<u8>, sentence: &str) {
    output.extend_from_slice(b"<p>");
    output.extend_from_slice(sentence.as_bytes());
    output.extend_from_slice(b"</p>\n</body></html>\n");
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
    while let Some(at) = special(text) {
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

/// Finds the first byte that HTML gives a meaning to.
fn special(text: &[u8]) -> Option<usize> {
    bytes::find(text, |word| {
        // Two bits tell `"` from `&` and `<` from `>`.
        let quote_or_ampersand = bytes::below((word | (EACH * 0x04)) ^ (EACH * u64::from(b'&')), 1);
        let angle = bytes::below((word | (EACH * 0x02)) ^ (EACH * u64::from(b'>')), 1);
        quote_or_ampersand | angle
    })
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
    fn four_bytes_are_special() {
        for byte in 0..=u8::MAX {
            for at in [0, 7, 9] {
                let mut text = [b'a'; 11];
                text[at] = byte;
                assert_eq!(special(&text), b"&<>\"".contains(&byte).then_some(at), "{byte}");
            }
        }
    }

    #[test]
    fn an_error_is_explained() {
        let mut page = Vec::new();
        write(&mut page, 404, None);
        assert!(page.windows(19).any(|part| part == b"<h1>Not Found</h1>\n"));
        assert!(page.ends_with(b"address.</p>\n</body></html>\n"));
    }
}
