//! Type maps: a file that names the files, or holds the texts, of which one answers.
//!
//! Source: httpd 2.4.71 `modules/mappers/mod_negotiation.c`, `read_type_map`, `get_header_line`, `get_body`,
//! `handle_map_file`.

use std::ops::Range;

use super::wishes::Offer;

/// The handler of type maps, and their media type.
pub(super) const HANDLERS: [&[u8]; 2] = [b"type-map", b"application/x-type-map"];

/// The longest text of a `Body:`, with the mark at its end.
const BODY_BYTES_MAX: usize = 8192;

/// One of what could answer.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) offer: Offer,
    /// Its URL-path, relative to the map.
    pub(super) file: Vec<u8>,
    /// `Body:`: where in the map its text is.
    pub(super) body: Option<Range<usize>>,
    /// `Content-Length`, or the length of the text.
    pub(super) bytes: Option<u64>,
}

/// A line of a map that is none.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BadLine;

/// An entry while its lines are read.
#[derive(Default)]
struct Draft {
    offer: Offer,
    file: Vec<u8>,
    body: Option<Range<usize>>,
    bytes: Option<u64>,
    has_content: bool,
}

/// Reads a map. What follows a wrong length, or a text without an end, is left out, as in httpd.
pub(super) fn parse(map: &[u8], own_name: &[u8]) -> Result<Vec<Entry>, BadLine> {
    let mut entries = Vec::new();
    let mut draft = Draft::default();
    let mut at = 0;
    while at < map.len() {
        let line = line_at(map, &mut at);
        if line.starts_with(b"#") {
            continue;
        }
        if line.trim_ascii().is_empty() {
            draft.finish(&mut entries);
            continue;
        }
        let is_body = line.get(..5).is_some_and(|start| start.eq_ignore_ascii_case(b"body:"));
        let mut text = line.to_vec();
        if !is_body {
            add_continuations(map, &mut at, &mut text);
        }
        let colon = memchr::memchr(b':', &text).ok_or(BadLine)?;
        let name = text[..colon].to_ascii_lowercase();
        let value = text[colon + 1..].trim_ascii();
        if value.is_empty() {
            return Err(BadLine);
        }
        let value = without_comments(value);
        let is_read = match &name[..] {
            b"body" => draft.read_body(map, &mut at, &value, own_name),
            name => draft.read(name, &value),
        };
        if is_read.is_none() {
            return Ok(entries);
        }
    }
    draft.finish(&mut entries);
    Ok(entries)
}

impl Draft {
    /// One line; `None`: the rest of the map does not count.
    fn read(&mut self, name: &[u8], value: &[u8]) -> Option<()> {
        match name {
            b"uri" => self.file = token(value),
            b"content-type" => {
                let said = Offer::of(value);
                let offer = &mut self.offer;
                (offer.media_type, offer.charset) = (said.media_type, said.charset);
                (offer.level, offer.worth) = (said.level, said.worth);
            }
            b"content-length" => {
                let length = token(value);
                self.bytes = Some(std::str::from_utf8(&length).ok()?.parse().ok()?);
            }
            b"content-language" => {
                let languages = value.to_ascii_lowercase();
                let languages = languages.split(|byte| b", ".contains(byte));
                let languages = languages.filter(|language| !language.is_empty());
                self.offer.languages = languages.map(<[u8]>::to_vec).collect();
            }
            b"content-encoding" => self.offer.encoding = token(value).to_ascii_lowercase(),
            _ => return Some(()),
        }
        self.has_content |= name.starts_with(b"content-");
        Some(())
    }

    /// The text that follows, up to the line with `mark`.
    fn read_body(
        &mut self,
        map: &[u8],
        at: &mut usize,
        mark: &[u8],
        own_name: &[u8],
    ) -> Option<()> {
        let rest = &map[*at..];
        let rest = &rest[..rest.len().min(BODY_BYTES_MAX)];
        let length = memchr::memmem::find(rest, mark)?;
        self.body = Some(*at..*at + length);
        self.bytes = Some(length as u64);
        self.file = own_name.to_vec();
        *at += length + mark.len();
        line_at(map, at);
        Some(())
    }

    fn finish(&mut self, entries: &mut Vec<Entry>) {
        let Draft { offer, file, body, bytes, has_content } = std::mem::take(self);
        if has_content && !file.is_empty() {
            entries.push(Entry { offer, file, body, bytes });
        }
    }
}

/// The line that begins at `at`, which then is where the next one begins.
fn line_at<'m>(map: &'m [u8], at: &mut usize) -> &'m [u8] {
    let rest = &map[*at..];
    let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
    *at += (end + 1).min(rest.len());
    &rest[..end]
}

/// Adds the lines that go on with this one: those that begin with a blank. Comments may stand between them.
fn add_continuations(map: &[u8], at: &mut usize, text: &mut Vec<u8>) {
    loop {
        let mut next = *at;
        let line = line_at(map, &mut next);
        let goes_on = line.starts_with(b" ") || line.starts_with(b"\t");
        if goes_on && !line.trim_ascii().is_empty() {
            text.push(b' ');
            text.extend_from_slice(line.trim_ascii());
        } else if !line.starts_with(b"#") {
            return;
        }
        *at = next;
    }
}

/// With blanks in the place of what stands in parentheses.
fn without_comments(value: &[u8]) -> Vec<u8> {
    let mut is_comment = false;
    let shown = value.iter().map(|&byte| {
        is_comment |= byte == b'(';
        let hidden = is_comment;
        is_comment &= byte != b')';
        if hidden { b' ' } else { byte }
    });
    shown.collect()
}

/// The first word, which ends before a blank, a comma or a semicolon.
fn token(value: &[u8]) -> Vec<u8> {
    let value = value.trim_ascii();
    let ends = |byte: &u8| byte.is_ascii_whitespace() || b",;".contains(byte);
    value.split(ends).next().unwrap_or_default().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_parted_by_blank_lines() {
        let map = b"# c\nURI: a.html (x)\n# c\nContent-Type: text/html;\n  qs=0.3\n\n\n\
            uri: b\ncontent-language: EN, de\n\nURI: without\n\nContent-Type: a/b\n";
        let entries = parse(map, b"m").unwrap();
        let files: Vec<_> = entries.iter().map(|entry| &entry.file[..]).collect();
        assert_eq!(files, [&b"a.html"[..], b"b"]);
        let offer = &entries[0].offer;
        assert_eq!((&offer.media_type[..], offer.worth, offer.level), (&b"text/html"[..], 3000, 2));
        assert_eq!(entries[1].offer.languages, [b"en".to_vec(), b"de".to_vec()]);
    }

    #[test]
    fn texts_stand_in_the_map() {
        let map = b"Content-Type: text/plain\nBody:--x--\nText\n--x-- more\nURI: a\n";
        let entries = parse(map, b"own").unwrap();
        let body = entries[0].body.clone().unwrap();
        assert_eq!((&map[body], entries[0].bytes), (&b"Text\n"[..], Some(5)));
        assert_eq!(entries[0].file, b"a");
        let open = b"Content-Type: text/plain\nBody:--x--\nText\n";
        assert!(parse(open, b"own").unwrap().is_empty());
    }

    #[test]
    fn a_text_has_a_longest_length() {
        let map = |length: usize| {
            let text = "x".repeat(length);
            format!("Content-Type: a/b\nBody:--\n{text}--\n")
        };
        let count = |length| parse(map(length).as_bytes(), b"m").unwrap().len();
        assert_eq!((count(BODY_BYTES_MAX - 2), count(BODY_BYTES_MAX - 1)), (1, 0));
    }

    #[test]
    fn lines_without_a_name_or_a_value_are_wrong() {
        for wrong in ["nonsense\n", "URI:\n", "URI: a\nContent-Type: \n"] {
            assert_eq!(parse(wrong.as_bytes(), b"m").err(), Some(BadLine), "{wrong}");
        }
        assert!(parse(b"", b"m").unwrap().is_empty());
    }
}
