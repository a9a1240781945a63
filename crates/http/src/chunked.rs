//! Decodes chunked content as it arrives, in pieces of any size.
//!
//! The decoder tells which bytes are content and where the message ends; it stores nothing. What it
//! accepts is narrow: CRLF only, at most 16 hexadecimal digits, and limits on everything that is not
//! content, so that a sender cannot keep it busy for ever.
//!
//! Source: RFC 9112 section 7.1.

use std::ops::Range;

/// The most bytes of one chunk extension. No client in use sends any; a limit must be somewhere.
pub const EXTENSION_BYTES_MAX: usize = 4096;

/// The most bytes of a trailer section: what one field line may have by Apache's default.
pub const TRAILER_BYTES_MAX: usize = 8190;

/// The most digits of a chunk size: more cannot be a length that fits 64 bits, or is a row of zeros.
const SIZE_DIGITS_MAX: usize = 16;

/// The state of one chunked message.
#[derive(Debug, Clone, Default)]
pub struct Chunked {
    state: State,
    /// Bytes left in the chunk, or the size read so far.
    size: u64,
    /// Bytes seen of what has a limit.
    count: usize,
    /// The trailer section, if it is wanted.
    trailers: Option<Vec<u8>>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum State {
    /// In the digits of a chunk size.
    #[default]
    Size,
    /// After the digits, in white space or an extension.
    Extension,
    SizeFeed,
    Data,
    DataReturn,
    DataFeed,
    /// At the start of a trailer line.
    TrailerStart,
    Trailer,
    TrailerFeed,
    EndFeed,
    End,
}

/// What the next bytes were.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// These bytes of the input are content; go on after them.
    Content(Range<usize>),
    /// All of the input was used, and none of the rest was content.
    More,
    /// The message ended before this offset.
    End(usize),
}

/// The chunks are malformed or over a limit: where the message ends cannot be known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChunkError {
    /// An extension is over [`EXTENSION_BYTES_MAX`].
    #[error("a chunk extension is too long")]
    ExtensionTooLong,
    /// The size has no digit, a wrong one, or too many.
    #[error("a chunk size is not a number")]
    Size,
    /// CRLF is missing where it must stand.
    #[error("a chunk does not end in CRLF")]
    LineEnd,
    /// The trailer section is over [`TRAILER_BYTES_MAX`].
    #[error("the trailer section is too long")]
    TrailerTooLong,
}

impl Chunked {
    /// A decoder that keeps the trailer section, of at most [`TRAILER_BYTES_MAX`].
    #[must_use]
    pub fn keeping_trailers() -> Chunked {
        Chunked { trailers: Some(Vec::new()), ..Chunked::default() }
    }

    /// The lines of the trailer section as they came, without the empty line; empty unless they are kept.
    #[must_use]
    pub fn trailers(&self) -> &[u8] {
        self.trailers.as_deref().unwrap_or_default()
    }

    /// Takes `input` from offset `from` on, up to the next content or to the end.
    ///
    /// # Errors
    /// When the chunks are malformed or over a limit; the decoder is of no use after that.
    pub fn step(&mut self, input: &[u8], from: usize) -> Result<Step, ChunkError> {
        let mut at = from;
        while at < input.len() {
            if self.state == State::Data {
                let left = usize::try_from(self.size).unwrap_or(usize::MAX);
                let end = at + left.min(input.len() - at);
                self.size -= (end - at) as u64;
                if self.size == 0 {
                    self.state = State::DataReturn;
                }
                return Ok(Step::Content(at..end));
            }
            self.state = self.byte(input[at])?;
            at += 1;
            if self.state == State::End {
                return Ok(Step::End(at));
            }
        }
        Ok(Step::More)
    }

    /// Takes one byte that is not content.
    fn byte(&mut self, byte: u8) -> Result<State, ChunkError> {
        match (self.state, byte) {
            (State::Size, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                self.limit(SIZE_DIGITS_MAX, ChunkError::Size)?;
                self.size = self.size << 4 | char::from(byte).to_digit(16).map_or(0, u64::from);
                Ok(State::Size)
            }
            (State::Size, _) if self.count == 0 => Err(ChunkError::Size),
            (State::Size, b'\r') => Ok(State::SizeFeed),
            (State::Size, b' ' | b'\t' | b';') => {
                self.count = 0;
                Ok(State::Extension)
            }
            (State::Size, _) => Err(ChunkError::Size),
            (State::Extension, b'\r') => Ok(State::SizeFeed),
            (State::Extension, b'\n') => Err(ChunkError::LineEnd),
            (State::Extension, _) => {
                self.limit(EXTENSION_BYTES_MAX, ChunkError::ExtensionTooLong)?;
                Ok(State::Extension)
            }
            (State::SizeFeed, b'\n') => {
                self.count = 0;
                Ok(if self.size == 0 { State::TrailerStart } else { State::Data })
            }
            (State::DataReturn, b'\r') => Ok(State::DataFeed),
            (State::DataFeed, b'\n') => Ok(State::Size),
            (State::TrailerStart, b'\r') => Ok(State::EndFeed),
            (State::Trailer, b'\r') => Ok(State::TrailerFeed),
            (State::TrailerStart | State::Trailer, b'\n') => Err(ChunkError::LineEnd),
            (State::TrailerStart | State::Trailer, _) => {
                self.limit(TRAILER_BYTES_MAX, ChunkError::TrailerTooLong)?;
                if let Some(trailers) = &mut self.trailers {
                    trailers.push(byte);
                }
                Ok(State::Trailer)
            }
            (State::TrailerFeed, b'\n') => {
                if let Some(trailers) = &mut self.trailers {
                    trailers.extend_from_slice(b"\r\n");
                }
                Ok(State::TrailerStart)
            }
            (State::EndFeed, b'\n') => Ok(State::End),
            _ => Err(ChunkError::LineEnd),
        }
    }

    fn limit(&mut self, max: usize, error: ChunkError) -> Result<(), ChunkError> {
        self.count += 1;
        if self.count > max { Err(error) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_content_and_end() {
        check("0\r\n\r\n", Ok(("", 5)));
        check("1\r\nx\r\n0\r\n\r\nGET", Ok(("x", 11)));
        check("5\r\nhello\r\n1\r\n!\r\n0\r\n\r\n", Ok(("hello!", 21)));
        check("0A\r\n0123456789\r\n000\r\n\r\n", Ok(("0123456789", 23)));
        check("1;a=b\r\nx\r\n0;c\r\nA: b\r\nC: d\r\n\r\n", Ok(("x", 29)));
        check("1 \t;a\r\nx\r\n0\r\n\r\n", Ok(("x", 15)));
        check("2\r\n\r\n\r\n0\r\n\r\n", Ok(("\r\n", 12)));
    }

    #[test]
    fn refuses_malformed_chunks() {
        check("zz\r\n", Err(ChunkError::Size));
        check("\r\n", Err(ChunkError::Size));
        check(" 1\r\nx", Err(ChunkError::Size));
        check("-1\r\nx", Err(ChunkError::Size));
        check("0x1\r\n", Err(ChunkError::Size));
        check("1\nx\n", Err(ChunkError::Size));
        check("1;a\nx", Err(ChunkError::LineEnd));
        check("1\r\nxx\r\n", Err(ChunkError::LineEnd));
        check("1\r\nx\n0\r\n\r\n", Err(ChunkError::LineEnd));
        check("0\r\n\n", Err(ChunkError::LineEnd));
        check("0\r\nA: b\n\r\n", Err(ChunkError::LineEnd));
    }

    #[test]
    fn a_size_has_at_most_sixteen_digits() {
        check("00000000000000000\r\n\r\n", Err(ChunkError::Size));
        check("fffffffffffffffff\r\n", Err(ChunkError::Size));
        check("0000000000000000\r\n\r\n", Ok(("", 20)));
        let mut decoder = Chunked::default();
        let input = b"ffffffffffffffff\r\nx";
        assert_eq!(decoder.step(input, 0), Ok(Step::Content(18..19)));
    }

    #[test]
    fn limits_hold_at_the_bound() {
        let extension = |bytes: usize| format!("0;{:a<bytes$}\r\n\r\n", "");
        check(&extension(EXTENSION_BYTES_MAX), Ok(("", EXTENSION_BYTES_MAX + 6)));
        check(&extension(EXTENSION_BYTES_MAX + 1), Err(ChunkError::ExtensionTooLong));
        let trailer = |bytes: usize| format!("0\r\n{:a<bytes$}\r\n\r\n", "");
        check(&trailer(TRAILER_BYTES_MAX), Ok(("", TRAILER_BYTES_MAX + 7)));
        check(&trailer(TRAILER_BYTES_MAX + 1), Err(ChunkError::TrailerTooLong));
    }

    /// Whole and byte by byte: the same content, the same end.
    #[track_caller]
    fn check(input: &str, expected: Result<(&str, usize), ChunkError>) {
        let expected = expected.map(|(content, end)| (content.as_bytes().to_vec(), end));
        for piece in [input.len(), 1] {
            let mut decoder = Chunked::default();
            assert_eq!(decode(&mut decoder, input.as_bytes(), piece), expected, "{input:?}");
        }
    }

    fn decode(
        decoder: &mut Chunked,
        input: &[u8],
        piece: usize,
    ) -> Result<(Vec<u8>, usize), ChunkError> {
        let mut content = Vec::new();
        for start in (0..input.len()).step_by(piece) {
            let bytes = &input[start..input.len().min(start + piece)];
            let mut at = 0;
            loop {
                match decoder.step(bytes, at)? {
                    Step::Content(range) => {
                        content.extend_from_slice(&bytes[range.clone()]);
                        at = range.end;
                    }
                    Step::More => break,
                    Step::End(end) => return Ok((content, start + end)),
                }
            }
        }
        panic!("the message does not end");
    }
}
