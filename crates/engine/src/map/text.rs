//! Reads `txt:` and `rnd:` maps: a key up to a blank, a value up to a blank, the first line with a key.
//!
//! Source: httpd 2.4.71 `modules/mappers/mod_rewrite.c`, `lookup_map_txtfile`.

use super::table::Table;

/// Longest line of a map; the rest of a longer one is read as another line.
///
/// Source: httpd 2.4.71 `mod_rewrite.c`, `REWRITE_MAX_TXT_MAP_LINE`.
const LINE_BYTES_MAX: usize = 1023;

/// Reads all lines.
pub(super) fn read(text: &[u8]) -> Table {
    let mut table = Table::with_room_for(memchr::memchr_iter(b'\n', text).count());
    let mut rest = text;
    while !rest.is_empty() {
        let newline = memchr::memchr(b'\n', rest);
        let end = newline.unwrap_or(rest.len()).min(LINE_BYTES_MAX);
        let (line, after) = rest.split_at(end);
        if let Some((key, value)) = split(line) {
            table.add(key, value);
        }
        rest = if newline == Some(end) { &after[1..] } else { after };
    }
    table
}

/// Key and value of a line.
fn split(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let blank = |byte: &u8| byte.is_ascii_whitespace() || *byte == 0x0b;
    let first = line.first()?;
    if *first == b'#' || blank(first) {
        return None;
    }
    let (key, rest) = line.split_at(line.iter().position(blank)?);
    let value = &rest[rest.iter().position(|byte| !blank(byte))?..];
    let value = value.split(blank).next().unwrap_or_default();
    // A zero byte ends the line where a value is looked for.
    (value[0] != 0).then_some((key, value))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lines_are_keys_and_values() {
        let table = read(b"# no\na 1\nb\t 2 x\nc\n d 4\na 5\n#e 6\nf 7");
        check(&table, &[("a", "1"), ("b", "2"), ("f", "7")]);
    }

    #[test]
    fn a_long_line_is_cut_and_its_rest_is_another() {
        let line = format!("k {}next n\nz 1\n", "v".repeat(LINE_BYTES_MAX - 2));
        let value = "v".repeat(LINE_BYTES_MAX - 2);
        check(&read(line.as_bytes()), &[("k", &value), ("next", "n"), ("z", "1")]);
    }

    #[test]
    fn zero_bytes_end_values() {
        check(&read(b"a 1\x002\nb \x00\nc 3\n"), &[("a", "1"), ("c", "3")]);
    }

    #[track_caller]
    fn check(table: &Table, expected: &[(&str, &str)]) {
        for (key, value) in expected {
            assert_eq!(table.get(key.as_bytes()), Some(value.as_bytes()), "{key}");
        }
        assert_eq!(table.len(), expected.len());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(text: Vec<u8>) {
            read(&text);
        }
    }
}
