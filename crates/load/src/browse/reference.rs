//! Resolves a reference, such as the value of Location, against the URI that it was found at.
//!
//! Source: RFC 3986 section 5.2.

/// The URI, without fragment, that `reference` means at `base`, an absolute URI with authority.
pub(crate) fn resolve(base: &str, reference: &str) -> String {
    let reference = reference.split('#').next().unwrap_or_default();
    let base = base.split('#').next().unwrap_or_default();
    if has_scheme(reference) {
        return reference.to_owned();
    }
    let scheme_end = base.find("://").map_or(0, |at| at + 1);
    if reference.starts_with("//") {
        return format!("{}{reference}", &base[..scheme_end]);
    }
    let authority = base.get(scheme_end + 2..).unwrap_or_default();
    let path_start =
        base.len() - authority.len() + authority.find(['/', '?']).unwrap_or(authority.len());
    let (root, path_and_query) = base.split_at(path_start);
    let path = path_and_query.split('?').next().unwrap_or_default();
    let (own_path, own_query) = match reference.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (reference, None),
    };
    let mut uri = root.to_owned();
    if own_path.is_empty() {
        uri.push_str(if own_query.is_some() { path } else { path_and_query });
    } else if own_path.starts_with('/') {
        uri.push_str(&without_dots(own_path));
    } else {
        let directory = &path[..path.rfind('/').map_or(0, |slash| slash + 1)];
        let directory = if directory.is_empty() { "/" } else { directory };
        uri.push_str(&without_dots(&format!("{directory}{own_path}")));
    }
    if let Some(query) = own_query {
        uri.push('?');
        uri.push_str(query);
    }
    uri
}

/// Whether the reference is a URI by itself: a scheme and a colon in front of anything else.
fn has_scheme(reference: &str) -> bool {
    let end = reference.find([':', '/', '?']).filter(|&at| reference[at..].starts_with(':'));
    end.is_some_and(|end| {
        reference[..end].starts_with(|first: char| first.is_ascii_alphabetic())
            && reference[..end]
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
    })
}

/// Takes `.` and `..` out of a path that begins with a slash.
fn without_dots(path: &str) -> String {
    let mut segments: Vec<&str> = Vec::new();
    let mut ends_in_directory = false;
    for segment in path.split('/').skip(1) {
        ends_in_directory = matches!(segment, "." | "..");
        match segment {
            "." => {}
            ".." => drop(segments.pop()),
            other => segments.push(other),
        }
    }
    let slash = if ends_in_directory && !segments.is_empty() { "/" } else { "" };
    format!("/{}{slash}", segments.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_rfc() {
        // RFC 3986 section 5.4, but for those with a fragment or a scheme that is not ours.
        for (reference, uri) in [
            ("g:h", "g:h"),
            ("g", "http://a/b/c/g"),
            ("./g", "http://a/b/c/g"),
            ("g/", "http://a/b/c/g/"),
            ("/g", "http://a/g"),
            ("//g", "http://g"),
            ("?y", "http://a/b/c/d;p?y"),
            ("g?y", "http://a/b/c/g?y"),
            ("#s", "http://a/b/c/d;p?q"),
            ("g#s", "http://a/b/c/g"),
            (";x", "http://a/b/c/;x"),
            ("g;x=1/../y", "http://a/b/c/y"),
            ("", "http://a/b/c/d;p?q"),
            (".", "http://a/b/c/"),
            ("./", "http://a/b/c/"),
            ("..", "http://a/b/"),
            ("../g", "http://a/b/g"),
            ("../..", "http://a/"),
            ("../../../g", "http://a/g"),
            ("/./g", "http://a/g"),
            ("g.", "http://a/b/c/g."),
            ("..g", "http://a/b/c/..g"),
            ("./g/.", "http://a/b/c/g/"),
            ("g/../h", "http://a/b/c/h"),
            ("g?y/../x", "http://a/b/c/g?y/../x"),
        ] {
            check("http://a/b/c/d;p?q", reference, uri);
        }
    }

    #[test]
    fn a_base_may_have_no_path() {
        check("http://h:8080", "a", "http://h:8080/a");
        check("http://h:8080", "?a", "http://h:8080?a");
        check("http://h:8080?x", "a:b/../c", "a:b/../c");
        check("http://h/a", "http://other/b#c", "http://other/b");
        check("http://h/a", "1:b", "http://h/1:b");
    }

    #[track_caller]
    fn check(base: &str, reference: &str, uri: &str) {
        assert_eq!(resolve(base, reference), uri, "{reference} at {base}");
    }
}
