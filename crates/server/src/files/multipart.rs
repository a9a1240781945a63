//! Several parts of a file as one content: `multipart/byteranges`.
//!
//! Source: RFC 9110 section 14.6; httpd 2.4.71 `modules/http/byterange_filter.c`,
//! `ap_byterange_filter`.

use std::ops::Range;

use milepost_engine::Outside as _;

use super::Source;
use crate::outside::FileSystem;
use crate::reply::{FileContent, Piece, Reply};

/// Makes `ranges` of a file of `length` bytes and type `media_type` the content of `reply`.
pub(super) fn send(
    source: Source,
    ranges: &[Range<u64>],
    length: u64,
    media_type: Option<&[u8]>,
    reply: &mut Reply,
) {
    // Nobody who writes a file can know what will part it.
    let boundary = format!("{:016x}", FileSystem.random());
    let own_type = format!("multipart/byteranges; boundary={boundary}");
    reply.add_field("Content-Type", own_type.as_bytes());
    let mut pieces = Vec::with_capacity(2 * ranges.len() + 1);
    for range in ranges {
        let mut head = format!("\r\n--{boundary}\r\n").into_bytes();
        if let Some(media_type) = media_type {
            head.extend_from_slice(b"Content-type: ");
            head.extend_from_slice(media_type);
            head.extend_from_slice(b"\r\n");
        }
        let last = range.end - 1;
        let place = format!("Content-range: bytes {}-{last}/{length}\r\n\r\n", range.start);
        head.extend_from_slice(place.as_bytes());
        pieces.push(Piece::Text(head));
        pieces.push(Piece::Part(range.clone()));
    }
    pieces.push(Piece::Text(format!("\r\n--{boundary}--\r\n").into_bytes()));
    let bytes = match source {
        Source::Open(file) => return reply.set_file(FileContent { file, pieces: pieces.into() }),
        Source::Memory(bytes) => bytes,
    };
    let content = reply.content_mut();
    for piece in pieces {
        match piece {
            Piece::Text(text) => content.extend_from_slice(&text),
            Piece::Part(part) => {
                content.extend_from_slice(&bytes[part.start as usize..part.end as usize]);
            }
        }
    }
}
