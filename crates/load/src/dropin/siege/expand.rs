//! Puts the values of variables in place of their names.

/// Which forms name a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Forms {
    /// `$(NAME)` and `${NAME}`: a dollar alone may well be part of a URL.
    Enclosed,
    /// These and `$NAME`.
    All,
}

/// The text with variables in place; `\$` is a dollar. What `value` does not know is empty.
pub(super) fn expand(text: &str, forms: Forms, value: impl Fn(&str) -> Option<String>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['$', '\\']) {
        out.push_str(&rest[..at]);
        let from = &rest[at..];
        if let Some(after) = from.strip_prefix("\\$") {
            out.push('$');
            rest = after;
        } else if let Some((name, after)) = reference(from, forms) {
            out.push_str(&value(name).unwrap_or_default());
            rest = after;
        } else {
            out.push_str(&from[..1]);
            rest = &from[1..];
        }
    }
    out + rest
}

/// The name at the front of `text` and what follows it.
fn reference(text: &str, forms: Forms) -> Option<(&str, &str)> {
    let after = text.strip_prefix('$')?;
    let closing = match after.chars().next()? {
        '(' => ')',
        '{' => '}',
        _ if forms == Forms::Enclosed => return None,
        _ => {
            let end = after.find(|it| !is_name(it)).unwrap_or(after.len());
            return (end > 0).then(|| after.split_at(end));
        }
    };
    let (name, after) = after[1..].split_once(closing)?;
    (!name.is_empty() && name.chars().all(is_name)).then_some((name, after))
}

/// Whether a name may have the character.
pub(super) fn is_name(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_replaced_by_values() {
        check("$(A)/x${A}", "1/x1", "1/x1");
        check("$A/$AB.", "$A/$AB.", "1/.");
        check("a\\$(A)\\b", "a$(A)\\b", "a$(A)\\b");
        check("$(NONE)$()$(a b)$($", "$()$(a b)$($", "$()$(a b)$($");
        check("$", "$", "$");
        check("?a=$1&b", "?a=$1&b", "?a=&b");
    }

    #[track_caller]
    fn check(text: &str, enclosed: &str, all: &str) {
        let value = |name: &str| (name == "A").then(|| "1".to_owned());
        assert_eq!(expand(text, Forms::Enclosed, value), enclosed);
        assert_eq!(expand(text, Forms::All, value), all);
    }
}
