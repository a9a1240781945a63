//! Media types by file name extension: those of the web, until `TypesConfig` gives a longer list.
//!
//! A file with another extension, or none, is sent without a type, as Apache does without
//! `DefaultType`: the client may know better than a guess.
//!
//! Source: RFC 9110 section 8.3; IANA media type registry, read 2026-11.

/// Returns the media type for the last extension of `path`.
pub(super) fn of(path: &[u8]) -> Option<&'static str> {
    const EXTENSION_BYTES_MAX: usize = 12;
    let name = path.rsplit(|&byte| byte == b'/').next()?;
    let dot = name.iter().rposition(|&byte| byte == b'.')?;
    let extension = &name[dot + 1..];
    let mut lower = [0; EXTENSION_BYTES_MAX];
    let lower = lower.get_mut(..extension.len())?;
    lower.copy_from_slice(extension);
    lower.make_ascii_lowercase();
    Some(match &*lower {
        b"html" | b"htm" | b"shtml" => "text/html",
        b"css" => "text/css",
        b"js" | b"mjs" => "text/javascript",
        b"json" | b"map" => "application/json",
        b"jsonld" => "application/ld+json",
        b"webmanifest" => "application/manifest+json",
        b"txt" | b"text" | b"conf" | b"log" => "text/plain",
        b"md" | b"markdown" => "text/markdown",
        b"csv" => "text/csv",
        b"ics" => "text/calendar",
        b"vcf" => "text/vcard",
        b"xml" | b"xsl" => "application/xml",
        b"xhtml" | b"xht" => "application/xhtml+xml",
        b"rss" => "application/rss+xml",
        b"atom" => "application/atom+xml",
        b"svg" => "image/svg+xml",
        b"png" => "image/png",
        b"jpg" | b"jpeg" => "image/jpeg",
        b"gif" => "image/gif",
        b"webp" => "image/webp",
        b"avif" => "image/avif",
        b"bmp" => "image/bmp",
        b"ico" => "image/vnd.microsoft.icon",
        b"tif" | b"tiff" => "image/tiff",
        b"woff" => "font/woff",
        b"woff2" => "font/woff2",
        b"ttf" => "font/ttf",
        b"otf" => "font/otf",
        b"mp3" => "audio/mpeg",
        b"m4a" => "audio/mp4",
        b"ogg" | b"oga" | b"opus" => "audio/ogg",
        b"wav" => "audio/x-wav",
        b"flac" => "audio/flac",
        b"mp4" | b"m4v" => "video/mp4",
        b"webm" => "video/webm",
        b"ogv" => "video/ogg",
        b"mov" => "video/quicktime",
        b"wasm" => "application/wasm",
        b"pdf" => "application/pdf",
        b"zip" => "application/zip",
        b"gz" => "application/gzip",
        b"tar" => "application/x-tar",
        b"epub" => "application/epub+zip",
        b"rtf" => "application/rtf",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_extension_counts() {
        for (path, expected) in [
            ("/a/b.html", Some("text/html")),
            ("/a/b.HTML", Some("text/html")),
            ("/a/b.tar.gz", Some("application/gzip")),
            ("/a.html/b", None),
            ("/a/b", None),
            ("/a/b.", None),
            ("/a/b.unknown-and-long", None),
            ("", None),
        ] {
            assert_eq!(of(path.as_bytes()), expected, "{path}");
        }
    }
}
