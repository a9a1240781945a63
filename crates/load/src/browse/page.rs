//! Finds what a browser would fetch for an HTML page: images, style sheets, scripts, frames.
//!
//! A scanner of tags and not a parser of documents: it knows comments, raw text and attributes, and
//! runs no script. What only a script would ask for is not found.
//!
//! Source: the HTML standard, section "Parsing HTML documents", tokenization.

/// Elements that are taken from one page. A page with more is a mistake or an attack.
const ELEMENTS_MAX: usize = 500;

/// Elements whose text is not HTML up to their end tag.
const RAW: [&str; 3] = ["script", "style", "textarea"];

/// References of the elements of `html`, in order, each once.
pub(crate) fn elements(html: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = html;
    while let Some(open) = rest.find('<') {
        rest = &rest[open + 1..];
        if let Some(comment) = rest.strip_prefix("!--") {
            rest = comment.find("-->").map_or("", |end| &comment[end + 3..]);
            continue;
        }
        let Some((tag, after)) = Tag::read(rest) else { continue };
        rest = after;
        if let Some(reference) = tag.reference()
            && found.len() < ELEMENTS_MAX
            && !found.contains(&reference)
        {
            found.push(reference);
        }
        if RAW.contains(&&*tag.name) {
            rest = after_end_tag(rest, &tag.name);
        }
    }
    found
}

/// A start tag. Names are in lower case.
struct Tag {
    name: String,
    attributes: Vec<(String, String)>,
}

impl Tag {
    /// What a browser would fetch for it.
    fn reference(&self) -> Option<String> {
        let value = match &*self.name {
            "img" | "script" | "iframe" | "frame" | "embed" => self.attribute("src"),
            "input" => self.attribute("src").filter(|_| {
                self.attribute("type").is_some_and(|value| value.eq_ignore_ascii_case("image"))
            }),
            "object" => self.attribute("data"),
            "body" => self.attribute("background"),
            "link" => self.attribute("href").filter(|_| {
                let relations = self.attribute("rel").unwrap_or_default().to_ascii_lowercase();
                relations.split_whitespace().any(|it| matches!(it, "stylesheet" | "icon"))
            }),
            _ => None,
        };
        let is_fetched = |value: &&str| {
            let lower = value.to_ascii_lowercase();
            !value.is_empty()
                && !["data:", "about:", "javascript:"].iter().any(|it| lower.starts_with(it))
        };
        value.filter(is_fetched).map(|value| value.replace("&amp;", "&"))
    }

    fn attribute(&self, name: &str) -> Option<&str> {
        let found = self.attributes.iter().find(|(own, _)| own == name);
        found.map(|(_, value)| value.trim())
    }

    /// Reads what follows its `<`, and returns it with what follows it.
    fn read(text: &str) -> Option<(Self, &str)> {
        if !text.starts_with(|first: char| first.is_ascii_alphabetic()) {
            return None;
        }
        let end = text.find(|it: char| it.is_ascii_whitespace() || matches!(it, '/' | '>'))?;
        let mut tag = Self { name: text[..end].to_ascii_lowercase(), attributes: Vec::new() };
        let mut rest = &text[end..];
        loop {
            rest = rest.trim_start_matches(|it: char| it.is_ascii_whitespace() || it == '/');
            if let Some(after) = rest.strip_prefix('>') {
                return Some((tag, after));
            }
            let ends = |it: char| it.is_ascii_whitespace() || matches!(it, '=' | '/' | '>');
            // A lone `=` would leave the rest as it is.
            let end = rest.find(ends)?.max(1);
            let name = rest[..end].to_ascii_lowercase();
            rest = &rest[end..];
            let mut value = "";
            if let Some(after) = rest.trim_start().strip_prefix('=') {
                let after = after.trim_start();
                (value, rest) = match after.chars().next()? {
                    quote @ ('"' | '\'') => after[1..].split_once(quote)?,
                    _ => after
                        .split_at(after.find(|it: char| it.is_ascii_whitespace() || it == '>')?),
                };
            }
            tag.attributes.push((name, value.to_owned()));
        }
    }
}

fn after_end_tag<'a>(text: &'a str, name: &str) -> &'a str {
    let mut from = 0;
    while let Some(at) = text[from..].find("</") {
        let start = from + at + 2;
        if text.get(start..start + name.len()).is_some_and(|it| it.eq_ignore_ascii_case(name)) {
            return &text[start + name.len()..];
        }
        from = start;
    }
    ""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_that_a_browser_fetches() {
        check("<IMG alt='a>b' SRC = \"/i.png\" ><p>", &["/i.png"]);
        check("<script src=/s.js></script><script>var a = '<img src=x>';</script>", &["/s.js"]);
        check(
            "<link rel='alternate StyleSheet' href=a.css?x&amp;y><link rel=next href=b>",
            &["a.css?x&y"],
        );
        check("<iframe src='f'></iframe><embed src=e/><object data=o></object>", &["f", "e/", "o"]);
        check("<input type=IMAGE src=i><input src=j><body background=b>", &["i", "b"]);
        check("<img src=a><img src=b><img src=a>", &["a", "b"]);
    }

    #[test]
    fn what_is_no_element_is_left() {
        check("<!-- <img src=a> --><img src=b>", &["b"]);
        check("<a href=x><img src=''><img src='data:image/png;base64,x'><img>", &[]);
        check("</img src=a> 1 < 2 <3 src=a>", &[]);
        check("<style>a { b: '<img src=x>' }</style><img src=y>", &["y"]);
    }

    #[test]
    fn an_unfinished_page_ends() {
        for html in
            ["<img", "<img src", "<img src=", "<img src='", "<img =", "<!--", "<script>", "<"]
        {
            check(html, &[]);
        }
        check("<img = src=a>", &["a"]);
        let many: String =
            (0..ELEMENTS_MAX + 5).map(|number| format!("<img src=i{number}>")).collect();
        assert_eq!(elements(&many).len(), ELEMENTS_MAX);
    }

    #[track_caller]
    fn check(html: &str, expected: &[&str]) {
        assert_eq!(elements(html), expected, "{html}");
    }
}
