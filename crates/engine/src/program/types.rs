//! Media types by extension: those of `TypesConfig`, of Debian's file, or the most common ones.
//!
//! A file with another extension, or none, is sent without a type: the client may know better than a guess.
//!
//! Source: httpd 2.4.71 `modules/http/mod_mime.c`, `mime_post_config`; RFC 9110 section 8.3; IANA media type
//! registry, read 2026-11.

use std::collections::HashMap;
use std::path::Path;

use super::Program;
use crate::outside::Outside;

/// Media types by extension, in lower case.
#[derive(Debug, Default)]
pub(crate) struct Types(HashMap<Box<[u8]>, Box<[u8]>>);

/// The longest extension that is looked for; the longest of Debian's has 11 bytes.
const EXTENSION_BYTES_MAX: usize = 64;

/// What is known without any file, in its form.
const COMMON: &str = "\
text/html html htm shtml
text/css css
text/javascript js mjs
application/json json map
application/ld+json jsonld
application/manifest+json webmanifest
text/plain txt text conf log
text/markdown md markdown
text/csv csv
text/calendar ics
text/vcard vcf
application/xml xml xsl
application/xhtml+xml xhtml xht
application/rss+xml rss
application/atom+xml atom
image/svg+xml svg
image/png png
image/jpeg jpg jpeg
image/gif gif
image/webp webp
image/avif avif
image/bmp bmp
image/vnd.microsoft.icon ico
image/tiff tif tiff
font/woff woff
font/woff2 woff2
font/ttf ttf
font/otf otf
audio/mpeg mp3
audio/mp4 m4a
audio/ogg ogg oga opus
audio/x-wav wav
audio/flac flac
video/mp4 mp4 m4v
video/webm webm
video/ogg ogv
video/quicktime mov
application/wasm wasm
application/pdf pdf
application/zip zip
application/gzip gz
application/x-tar tar
application/epub+zip epub
application/rtf rtf";

impl Types {
    /// Reads a file of types: a type a line, then its extensions. `#` begins a comment.
    fn parse(text: &[u8]) -> Types {
        let mut types = HashMap::new();
        for line in text.split(|&byte| byte == b'\n') {
            let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
            let Some(media_type) = words.next().filter(|word| word[0] != b'#') else { continue };
            for extension in words {
                types.insert(extension.to_ascii_lowercase().into(), media_type.into());
            }
        }
        Types(types)
    }

    /// The type for an extension, in any case. Does not allocate.
    fn find(&self, extension: &[u8]) -> Option<&[u8]> {
        let mut lower = [0; EXTENSION_BYTES_MAX];
        let lower = lower.get_mut(..extension.len())?;
        lower.copy_from_slice(extension);
        lower.make_ascii_lowercase();
        self.0.get(&*lower).map(|found| &**found)
    }
}

impl Program {
    /// The media type that `TypesConfig` has for an extension, in any case.
    pub(crate) fn media_type(&self, extension: &[u8], outside: &dyn Outside) -> Option<&[u8]> {
        let types = self.types.get_or_init(|| {
            let root = &self.settings.server_root;
            let files = match &self.settings.types_file {
                Some(file) => vec![root.join(file)],
                // Where Debian has it.
                None => vec![root.join("conf/mime.types"), Path::new("/etc/mime.types").into()],
            };
            let text = files.iter().find_map(|file| outside.read(file).ok());
            Types::parse(text.as_deref().unwrap_or(COMMON.as_bytes()))
        });
        types.find(extension)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extensions_have_types_in_any_case() {
        let types = Types::parse(COMMON.as_bytes());
        for (extension, expected) in [
            ("html", Some("text/html")),
            ("HTML", Some("text/html")),
            ("gz", Some("application/gzip")),
            ("", None),
            ("unknown", None),
        ] {
            let found = types.find(extension.as_bytes());
            assert_eq!(found, expected.map(str::as_bytes), "{extension}");
        }
        assert_eq!(types.find(&[b'x'; EXTENSION_BYTES_MAX + 1]), None);
        let types = Types::parse(b"# a comment\ntext/a\n  text/b\tB c\n");
        assert_eq!(types.find(b"b"), Some(&b"text/b"[..]));
    }
}
