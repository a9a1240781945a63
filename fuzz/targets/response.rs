//! Any bytes as a response: its head and its chunks mean the same, however they arrive.
//!
//! The first byte says where the content is cut.
#![no_main]

use libfuzzer_sys::fuzz_target;
use milepost_http::chunked::{ChunkError, Chunked, Step};
use milepost_http::response::{RequestMethod, ResponseHead, head_end};

fuzz_target!(|input: &[u8]| {
    let Some((&cut, bytes)) = input.split_first() else { return };
    let end = head_end(bytes, 0);
    for seen in 0..bytes.len() {
        // What was looked at before holds no end.
        if head_end(&bytes[..seen], 0).is_none() {
            assert_eq!(head_end(bytes, seen), end);
        }
    }
    if let Some(end) = end {
        for method in [RequestMethod::Other, RequestMethod::Head] {
            let _ = ResponseHead::parse(&bytes[..end], method);
        }
    }
    let content = &bytes[end.unwrap_or(0)..];
    let cut = usize::from(cut).min(content.len());
    assert_eq!(decode(&[content]), decode(&[&content[..cut], &content[cut..]]));
});

/// The content, and how many bytes there were up to the end, if it came.
fn decode(pieces: &[&[u8]]) -> Result<(Vec<u8>, Option<usize>), ChunkError> {
    let (mut chunked, mut content, mut before) = (Chunked::default(), Vec::new(), 0);
    for piece in pieces {
        let mut at = 0;
        loop {
            match chunked.step(piece, at)? {
                Step::Content(range) => {
                    content.extend_from_slice(&piece[range.clone()]);
                    at = range.end;
                }
                Step::More => break,
                Step::End(end) => return Ok((content, Some(before + end))),
            }
        }
        before += piece.len();
    }
    Ok((content, None))
}
