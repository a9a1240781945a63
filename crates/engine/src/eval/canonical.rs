//! Canonical paths: that of a URL, decoded and without dot segments, and that of a file below a document root.
//!
//! Source: httpd 2.4.71 `server/protocol.c`, `ap_parse_uri`; `server/util.c`, `ap_normalize_path`,
//! `unescape_url`; `server/core.c`, `ap_core_translate`; apr `file_io/unix/filepath.c`, `apr_filepath_merge`.

use milepost_http::path::{self, AboveRoot, BadPath, EncodedSlashes, Slashes};

use super::identity::begins_with;
use super::{Hop, Run};

/// Longest document root and path together, without the slash between them: `PATH_MAX` less the four bytes
/// that `apr_filepath_merge` keeps free.
const FILE_PATH_BYTES_MAX: usize = 4096 - 4;

impl Run<'_> {
    /// Normalises and decodes the path of a target or of an internal redirect into `hop.uri`.
    pub(super) fn set_path(&mut self, hop: &mut Hop, path: &[u8]) -> Result<(), u16> {
        let slashes = if self.server.merge_slashes { Slashes::Merge } else { Slashes::Keep };
        let encoded = self.server.base.encoded_slashes.unwrap_or(EncodedSlashes::Refuse);
        hop.uri.clear();
        // An internal redirect can lead nowhere at all (`ap_parse_uri`).
        let path = match self.request.method {
            _ if !path.is_empty() => path,
            b"OPTIONS" => b"*",
            _ => b"/",
        };
        if path == b"*" {
            hop.uri.push(b'*');
            return Ok(());
        }
        if path::is_plain(path) {
            hop.uri.extend_from_slice(path);
            return Ok(());
        }
        let mut normal = self.take_buffer();
        let mut result = path::normalize(path, slashes, AboveRoot::Refuse, &mut normal);
        match result {
            Ok(()) => result = path::unescape(&normal, encoded, &mut hop.uri),
            Err(_) => hop.uri.extend_from_slice(&normal),
        }
        // What is refused is seen up to the first zero.
        if result.is_err()
            && let Some(zero) = memchr::memchr(0, &hop.uri)
        {
            hop.uri.truncate(zero);
        }
        if result.is_ok() && encoded == EncodedSlashes::Decode && normal.contains(&b'%') {
            normal.clear();
            // Decoded slashes can make new dot segments. A `%` is plain by now, and stays.
            result = normalize_decoded(&hop.uri, slashes, &mut normal);
            hop.uri.clone_from(&normal);
        }
        self.put_buffer(normal);
        result.map_err(|bad| match bad {
            BadPath::Malformed => 400,
            BadPath::Forbidden => 404,
        })
    }

    /// The document root of a request.
    pub(super) fn document_root<'h>(&'h self, hop: &'h Hop) -> Option<&'h [u8]> {
        let of_server = || self.server.document_root.map(|root| self.program.pool.get(root));
        hop.document_root.as_deref().or_else(of_server)
    }

    /// Writes the file path of a URL-path without `ServerPath`, dot segments resolved; false if it leaves the
    /// document root or is too long.
    ///
    /// Source: httpd 2.4.71 `server/core.c`, `ap_core_translate`, `apr_filepath_merge`.
    pub(super) fn below_root(&self, path: &[u8], filename: &mut Vec<u8>) -> bool {
        filename.clear();
        if let Some(root) = self.server.document_root {
            filename.extend_from_slice(self.program.pool.get(root));
        }
        let own = self.server.path.map(|own| self.program.pool.get(own));
        let path = match own.filter(|own| begins_with(path, own)) {
            Some(own) => &path[own.strip_suffix(b"/").unwrap_or(own).len()..],
            None => path,
        };
        let slashes = path.iter().take_while(|&&byte| byte == b'/').count();
        if filename.len() + path.len() - slashes > FILE_PATH_BYTES_MAX {
            return false;
        }
        append_path(path, filename)
    }
}

/// Appends an absolute path to that of a directory, runs of slashes as one and dot segments resolved; false
/// if it leaves the directory.
pub(super) fn append_path(path: &[u8], filename: &mut Vec<u8>) -> bool {
    if is_merged(path) {
        filename.extend_from_slice(path);
        return true;
    }
    let root_len = filename.len();
    let mut segments = path.split(|&byte| byte == b'/').peekable();
    while let Some(segment) = segments.next() {
        let last = segments.peek().is_none();
        match segment {
            b"" | b"." if !last => {}
            b".." => {
                if filename.len() == root_len {
                    return false;
                }
                let slash = memchr::memrchr(b'/', filename).unwrap_or(root_len);
                filename.truncate(slash.max(root_len));
            }
            segment => {
                filename.push(b'/');
                filename.extend_from_slice(if segment == b"." { b"" } else { segment });
            }
        }
    }
    true
}

/// Whether a path has neither runs of slashes nor anything that may be a dot segment.
pub(super) fn is_merged(path: &[u8]) -> bool {
    memchr::memmem::find(path, b"//").is_none() && memchr::memmem::find(path, b"/.").is_none()
}

/// As [`path::normalize`], for a path in which `%` is a plain byte.
fn normalize_decoded(path: &[u8], slashes: Slashes, out: &mut Vec<u8>) -> Result<(), BadPath> {
    let mut encoded = Vec::with_capacity(path.len());
    for &byte in path {
        match byte {
            b'%' => encoded.extend_from_slice(b"%25"),
            byte => encoded.push(byte),
        }
    }
    let mut normal = Vec::with_capacity(path.len());
    path::normalize(&encoded, slashes, AboveRoot::Ignore, &mut normal)?;
    path::unescape(&normal, EncodedSlashes::Decode, out)
}
