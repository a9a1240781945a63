//! The placeholders of mod_dbd's statements, in those of a database.
//!
//! Source: APR-util 1.6 `dbd/apr_dbd.c`, `apr_dbd_prepare`.

/// Writes `%s` and its relatives as `mark` says of their numbers, from 1; `%%` becomes `%`.
pub(super) fn replace(sql: &str, mark: impl Fn(usize) -> String) -> String {
    let mut out = String::with_capacity(sql.len());
    let mut rest = sql;
    let mut count = 0;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        let length = after.find(|c| c != 'h' && c != 'l').unwrap_or(after.len());
        if let Some(left) = after.strip_prefix('%') {
            out.push('%');
            rest = left;
        } else if after[length..].starts_with(|c: char| c.is_ascii_alphabetic()) {
            count += 1;
            out.push_str(&mark(count));
            rest = &after[length + 1..];
        } else {
            out.push('%');
            rest = after;
        }
    }
    out.push_str(rest);
    out
}

/// Writes them as `?`.
pub(super) fn as_question_marks(sql: &str) -> String {
    replace(sql, |_| "?".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_become_placeholders() {
        let check = |sql: &str, expected: &str| assert_eq!(as_question_marks(sql), expected);
        check("k = %s", "k = ?");
        check("k = %ld AND j = %d", "k = ? AND j = ?");
        check("k LIKE '%%' || %s", "k LIKE '%' || ?");
        check("5 % 3, '%", "5 % 3, '%");
        assert_eq!(replace("%s, %s", |number| format!("${number}")), "$1, $2");
    }
}
