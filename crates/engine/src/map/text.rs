//! Reads `txt:` and `rnd:` maps: a key up to a blank, a value up to a blank, the first line with a key.
//!
//! Source: httpd 2.4.71 `modules/mappers/mod_rewrite.c`, `lookup_map_txtfile`.

use std::ops::Range;

use super::table::Table;

/// Longest line of a map; the rest of a longer one is read as another line.
///
/// Source: httpd 2.4.71 `mod_rewrite.c`, `REWRITE_MAX_TXT_MAP_LINE`.
const LINE_BYTES_MAX: usize = 1023;

/// Reads all lines.
pub(super) fn read(text: Vec<u8>) -> Table {
    let mut table = Table::over(text);
    let mut at = 0;
    while at < table.text().len() {
        let rest = &table.text()[at..];
        let newline = memchr::memchr(b'\n', rest);
        let end = newline.unwrap_or(rest.len()).min(LINE_BYTES_MAX);
        let found = split(&rest[..end]);
        if let Some((key, value)) = found {
            let in_table =
                table.add(at + key.start..at + key.end, at + value.start..at + value.end);
            debug_assert!(in_table, "a line is part of the text");
        }
        at += if newline == Some(end) { end + 1 } else { end };
    }
    table
}

/// Key and value of a line, as ranges of it.
fn split(line: &[u8]) -> Option<(Range<usize>, Range<usize>)> {
    let blank = |byte: &u8| byte.is_ascii_whitespace() || *byte == 0x0b;
    let first = line.first()?;
    if *first == b'#' || blank(first) {
        return None;
    }
    let key_end = line.iter().position(blank)?;
    let value = key_end + line[key_end..].iter().position(|byte| !blank(byte))?;
    let value_end = line[value..].iter().position(blank).map_or(line.len(), |end| value + end);
    // A zero byte ends the line where a value is looked for.
    (line[value] != 0).then_some((0..key_end, value..value_end))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lines_are_keys_and_values() {
        let table = read(b"# no\na 1\nb\t 2 x\nc\n d 4\na 5\n#e 6\nf 7".to_vec());
        check(&table, &[("a", "1"), ("b", "2"), ("f", "7")]);
    }

    #[test]
    fn a_long_line_is_cut_and_its_rest_is_another() {
        let line = format!("k {}next n\nz 1\n", "v".repeat(LINE_BYTES_MAX - 2));
        let value = "v".repeat(LINE_BYTES_MAX - 2);
        check(&read(line.into_bytes()), &[("k", &value), ("next", "n"), ("z", "1")]);
    }

    #[test]
    fn zero_bytes_end_values() {
        check(&read(b"a 1\x002\nb \x00\nc 3\n".to_vec()), &[("a", "1"), ("c", "3")]);
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
            read(text);
        }
    }
}
