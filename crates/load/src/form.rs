//! Makes the content of a form with files: `multipart/form-data`.
//!
//! Source: RFC 7578, and RFC 2046 section 5.1.1 for the boundary; quotes and line ends in names as the
//! HTML standard encodes them.

/// One entry of a form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormPart {
    /// Name of the entry.
    pub name: String,
    /// Name of the file, if it is one.
    pub file_name: Option<String>,
    /// Its type; for a file without one `application/octet-stream`.
    pub content_type: Option<String>,
    /// The value.
    pub content: Vec<u8>,
}

/// The value of the Content-Type field for a form, and its content.
#[must_use]
pub fn render_form(parts: &[FormPart]) -> (String, Vec<u8>) {
    // The first boundary that stands in no part: there are more of them than parts can hold.
    let stands = |boundary: &str| {
        parts.iter().any(|part| memchr::memmem::find(&part.content, boundary.as_bytes()).is_some())
    };
    let mut boundaries = (0_u64..).map(|number| format!("milepost-form-{number:016x}"));
    let boundary = boundaries.find(|it| !stands(it)).unwrap_or_default();
    let mut content = Vec::new();
    for part in parts {
        let mut head = format!(
            "--{boundary}\r\nContent-Disposition: form-data; name=\"{}\"",
            encoded(&part.name)
        );
        if let Some(file_name) = &part.file_name {
            head.push_str(&format!("; filename=\"{}\"", encoded(file_name)));
        }
        let of_file = part.file_name.as_ref().map(|_| "application/octet-stream");
        if let Some(content_type) = part.content_type.as_deref().or(of_file) {
            head.push_str(&format!("\r\nContent-Type: {content_type}"));
        }
        content.extend_from_slice(head.as_bytes());
        content.extend_from_slice(b"\r\n\r\n");
        content.extend_from_slice(&part.content);
        content.extend_from_slice(b"\r\n");
    }
    content.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    (format!("multipart/form-data; boundary={boundary}"), content)
}

/// What would end a name is percent-encoded.
fn encoded(name: &str) -> String {
    name.replace('"', "%22").replace('\r', "%0D").replace('\n', "%0A")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_has_its_parts_between_boundaries() {
        let part = |name: &str, file_name: Option<&str>, content: &[u8]| FormPart {
            name: name.to_owned(),
            file_name: file_name.map(str::to_owned),
            content_type: None,
            content: content.to_vec(),
        };
        let parts = [part("a\"b", None, b"1"), part("f", Some("x.txt"), b"milepost-form-")];
        let (content_type, content) = render_form(&parts);
        let boundary = "milepost-form-0000000000000000";
        assert_eq!(content_type, format!("multipart/form-data; boundary={boundary}"));
        let expected = format!(
            "--{boundary}\r\nContent-Disposition: form-data; name=\"a%22b\"\r\n\r\n1\r\n\
             --{boundary}\r\nContent-Disposition: form-data; name=\"f\"; filename=\"x.txt\"\r\n\
             Content-Type: application/octet-stream\r\n\r\nmilepost-form-\r\n--{boundary}--\r\n"
        );
        assert_eq!(String::from_utf8(content).unwrap(), expected);
        let (content_type, _) = render_form(&[part("a", None, boundary.as_bytes())]);
        assert!(content_type.ends_with("-0000000000000001"), "{content_type}");
    }
}
