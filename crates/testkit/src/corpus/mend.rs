//! Takes out of a configuration what keeps the rest of it from being asked.

use crate::case::Case;

/// The file of a case that is an `.htaccess`.
const HTACCESS: &str = "htdocs/.htaccess";

/// Makes the case without the line that `message` begins with (`line 3: ...`), and those it is joined with.
///
/// Returns nothing when it names no line, or one without a directive.
pub fn without_line(case: &Case, message: &str) -> Option<Case> {
    let (number, _) = message.strip_prefix("line ")?.split_once(':')?;
    let at = number.parse::<usize>().ok()?.checked_sub(1)?;
    let mut case = case.clone();
    let text = case.files.get_mut(HTACCESS).unwrap_or(&mut case.config);
    let mut lines: Vec<&str> = text.split('\n').collect();
    let joins = |line: &&str| line.ends_with('\\') || line.ends_with("\\\r");
    lines.get(at).filter(|line| !line.trim().is_empty())?;
    let first = at - lines[..at].iter().rev().take_while(|line| joins(line)).count();
    let joined = lines[first..].iter().take_while(|line| joins(line)).count();
    let last = (first + joined).min(lines.len() - 1);
    let (first, last) = macro_around(&lines, at).unwrap_or((first, last));
    lines[first..=last].fill("");
    *text = lines.join("\n");
    Some(case)
}

/// The first and the last line of the macro that a line belongs to: half of one is worse than none.
fn macro_around(lines: &[&str], at: usize) -> Option<(usize, usize)> {
    let begins = |line: &&str, start: &str| {
        let word = line.trim_start().get(..start.len());
        word.is_some_and(|word| word.eq_ignore_ascii_case(start))
    };
    let first = lines[..=at].iter().rposition(|line| begins(line, "<Macro "))?;
    let last = first + lines[first..].iter().position(|line| begins(line, "</Macro>"))?;
    (last >= at).then_some((first, last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_taken_out() {
        check("a\nb\nc\n", "line 2: no", Some("a\n\nc\n"));
        check("a\nb\\\nc\nd", "line 3: no", Some("a\n\n\nd"));
        check("a\nb\\\nc\nd", "line 2: no", Some("a\n\n\nd"));
        check("a\n\n", "line 2: no", None);
        check("a\n", "line 9: no", None);
        check("a\n", "no", None);
        let text = "a\n<Macro x>\nb\n</Macro>\nc\n";
        for line in 2..=4 {
            check(text, &format!("line {line}: no"), Some("a\n\n\n\nc\n"));
        }
        check(text, "line 5: no", Some("a\n<Macro x>\nb\n</Macro>\n\n"));
    }

    #[track_caller]
    fn check(config: &str, message: &str, expected: Option<&str>) {
        let case = Case { config: config.to_owned(), ..Case::default() };
        let mended = without_line(&case, message).map(|case| case.config);
        assert_eq!(mended.as_deref(), expected);
    }
}
