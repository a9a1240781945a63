//! What becomes of a string that a `RewriteRule` has put in place: its query string, its prefix, and in the
//! end a redirect, a path, or another pass.
//!
//! Source: httpd 2.4.71 `modules/mappers/mod_rewrite.c`, `apply_rewrite_rule`, `splitout_queryargs`,
//! `reduce_uri`, `fully_qualify_uri`, `hook_uri2file`, `hook_fixup`.

use milepost_http::path;

use super::{Marks, Place};
use crate::eval::{End, Hop, Run, Translated, identity};
use crate::outside::FileKind;
use crate::program::{Flags, RewriteDir, RewriteRule};

impl Run<'_> {
    /// What follows a substitution: path info, query string, prefix, redirect.
    pub(super) fn finish_rule(
        &mut self,
        rule: &RewriteRule,
        place: Place<'_>,
        hop: &mut Hop,
        marks: &mut Marks<'_>,
    ) {
        let flags = rule.flags;
        if place.directory.is_some() && flags.has(Flags::DISCARD_PATH_INFO) {
            hop.path_info.clear();
        }
        let mut prefixed = false;
        if hop.filename.first() != Some(&b'/') && absolute(&hop.filename).is_none() {
            match place.directory {
                Some(directory) => {
                    hop.filename.splice(0..0, directory.iter().copied());
                    prefixed = true;
                }
                None if !flags.has(Flags::PROXY) && !flags.has(Flags::REDIRECT) => {
                    hop.filename.insert(0, b'/');
                    prefixed = true;
                }
                None => {}
            }
        }
        split_query(hop, flags);
        if flags.has(Flags::PROXY) {
            marks.proxy = true;
            self.qualify(hop);
            return;
        }
        if flags.has(Flags::REDIRECT) {
            self.qualify(hop);
            hop.status = rule.status;
            return;
        }
        marks.reduced |= self.reduce(hop);
        if absolute(&hop.filename).is_some() {
            hop.status = rule.status;
            return;
        }
        let unc = flags.has(Flags::UNC) || marks.literal.starts_with(b"//");
        if !prefixed && !unc {
            let slashes = hop.filename.iter().take_while(|&&byte| byte == b'/').count();
            if slashes > 1 {
                hop.filename.drain(..slashes - 1);
            }
        }
    }

    /// Makes a path a URL of this server.
    fn qualify(&mut self, hop: &mut Hop) {
        if self.request.method == b"CONNECT" || absolute(&hop.filename).is_some() {
            return;
        }
        let mut url = self.take_buffer();
        self.write_self_url(&mut url);
        if hop.filename.first() != Some(&b'/') {
            url.push(b'/');
        }
        url.extend_from_slice(&hop.filename);
        std::mem::swap(&mut url, &mut hop.filename);
        self.put_buffer(url);
    }

    /// Cuts a URL of this very server down to its path, and says whether it did. The port must be
    /// configured with the name.
    fn reduce(&self, hop: &mut Hop) -> bool {
        let scheme: &[u8] = if self.is_https() { b"https://" } else { b"http://" };
        let text = &hop.filename;
        if text.len() <= scheme.len() || !text[..scheme.len()].eq_ignore_ascii_case(scheme) {
            return false;
        }
        let rest = &text[scheme.len()..];
        let end = memchr::memchr(b'/', rest).unwrap_or(rest.len());
        let (host, port) = match memchr::memchr(b':', &rest[..end]) {
            None => (&rest[..end], if self.is_https() { 443 } else { 80 }),
            Some(colon) => (&rest[..colon], port_of(&rest[colon + 1..end])),
        };
        let pool = &self.program.pool;
        let configured = self.server.name.and_then(|name| name.port).unwrap_or(0);
        let by_name = configured == port
            && identity::is_called(pool, self.server, &host.to_ascii_lowercase());
        let by_address = self.server.addresses.iter().any(|address| {
            pool.get(address.text).eq_ignore_ascii_case(host)
                && address.port.is_none_or(|own| own == port)
        });
        // The main server has an address without a text.
        let is_nameless = host.is_empty() && self.server_number == 0;
        if !(by_name || by_address || is_nameless) {
            return false;
        }
        let start = scheme.len() + end;
        hop.filename.drain(..start);
        if hop.filename.is_empty() {
            hop.filename.push(b'/');
        }
        true
    }

    /// Answers with a redirect to the absolute URL in the string.
    pub(super) fn external_redirect(
        &mut self,
        hop: &mut Hop,
        skip: usize,
        no_escape: bool,
        sent_args: Option<&[u8]>,
    ) -> Translated {
        let mut answer = std::mem::take(&mut self.work.answer);
        answer.clear();
        let url = &hop.filename;
        // The host is left alone; what follows its slash is escaped.
        let path_start = if url[skip - 1] == b'/' {
            memchr::memchr(b'/', &url[skip..]).map_or(url.len(), |slash| skip + slash + 1)
        } else {
            skip
        };
        answer.extend_from_slice(&url[..path_start]);
        let rest = &url[path_start..];
        if no_escape {
            answer.extend_from_slice(rest);
        } else if url[..skip].eq_ignore_ascii_case(b"ldap://") {
            // Question marks separate the parts of an LDAP URL, and are no query to us.
            for (number, part) in rest.split(|&byte| byte == b'?').enumerate() {
                if number > 0 {
                    answer.push(b'?');
                }
                path::escape(part, &mut answer);
            }
        } else {
            path::escape(rest, &mut answer);
        }
        if hop.has_args {
            answer.push(b'?');
            let as_sent = sent_args == Some(&hop.args);
            if no_escape || as_sent {
                answer.extend_from_slice(&hop.args);
            } else {
                path::escape(&hop.args, &mut answer);
            }
        }
        self.work.answer = answer;
        let status = Some(hop.status).filter(|status| (300..400).contains(status));
        hop.status = 200;
        Translated::End(End::Redirect(status.unwrap_or(302)))
    }

    /// The string is a path: of the file system if its first segment is there and that is allowed,
    /// else below the document root.
    pub(super) fn local_path(&mut self, hop: &mut Hop, marks: &Marks<'_>) -> Translated {
        if hop.filename.first() != Some(&b'/') {
            return Translated::End(End::Status(400));
        }
        if !self.is_file_path(hop, marks) {
            let mut path = self.take_buffer();
            std::mem::swap(&mut path, &mut hop.filename);
            let inside = self.below_root(&path, &mut hop.filename);
            self.put_buffer(path);
            if !inside {
                return Translated::End(End::Status(403));
            }
        }
        Translated::Done
    }

    /// Whether the rewritten path is meant as one of the file system.
    ///
    /// Source: httpd 2.4.71 `modules/mappers/mod_rewrite.c`, `prefix_stat`.
    fn is_file_path(&self, hop: &Hop, marks: &Marks<'_>) -> bool {
        let options = &self.server.rewrite_options;
        if marks.reduced && !options.legacy_prefix_doc_root {
            return false;
        }
        let slashes = hop.filename.iter().take_while(|&&byte| byte == b'/').count();
        let path = &hop.filename[slashes - 1..];
        let end = memchr::memchr(b'/', &path[1..]).map_or(path.len(), |slash| slash + 1);
        let segment = match &path[..end] {
            // Nothing is above the root.
            b"/." | b"/.." => b"/",
            segment => segment,
        };
        if self.outside.kind(crate::build::bytes_to_path(segment)) == FileKind::Missing {
            return false;
        }
        let literal = marks.literal.starts_with(segment);
        let root = self.document_root(hop);
        // Not so with more than one slash before it.
        let below_root = root.is_some_and(|root| hop.filename.starts_with(root));
        literal || below_root || marks.unsafe_prefix || options.unsafe_prefix_stat
    }

    /// `RewriteBase` in the URL of a redirect: the directory's path becomes the base.
    pub(super) fn rebase_redirect(&mut self, hop: &mut Hop, dir: &RewriteDir, skip: usize) {
        let Some(base) = dir.base.as_deref() else { return };
        let directory = &dir.directory[..];
        let Some(slash) = memchr::memchr(b'/', &hop.filename[skip..]) else { return };
        let start = skip + slash;
        let rest = hop.filename[start + 1..].to_vec();
        if rest.is_empty() {
            return;
        }
        // An `<If>` has a directory that is no path and does not begin with a slash.
        let directory = directory.strip_prefix(b"/").unwrap_or(directory);
        if let Some(below) = below(&rest, directory) {
            hop.filename.truncate(start);
            let base = base.strip_suffix(b"/").unwrap_or(base);
            hop.filename.extend_from_slice(base);
            hop.filename.push(b'/');
            hop.filename.extend_from_slice(below);
        }
    }

    /// The string is a path again: an internal redirect to the URL that leads there.
    pub(super) fn internal_path(
        &mut self,
        hop: &mut Hop,
        dir: &RewriteDir,
        original: &[u8],
    ) -> Option<End> {
        if hop.filename.first() != Some(&b'/') {
            return Some(End::Status(400));
        }
        if hop.filename == original {
            // The rules led back to where the request was: it goes on from there.
            return None;
        }
        let directory = &dir.directory[..];
        let mut url = std::mem::take(&mut self.work.answer);
        url.clear();
        let path = &hop.filename;
        let root = self.document_root(hop).unwrap_or_default();
        let options = dir.options.unwrap_or_default();
        let in_base = dir.base.as_deref().and_then(|base| Some((base, below(path, directory)?)));
        let in_root = below(path, root).filter(|_| dir.base.is_none() && !root.is_empty());
        let in_context = || {
            // Outside of any alias the context is the document root, with no prefix, not even a slash.
            let (prefix, root) = match &hop.context {
                Some(context) => (&context.prefix[..], &context.document_root[..]),
                None => (&b""[..], root),
            };
            let below = below(path, root).filter(|_| !options.ignore_context_info)?;
            Some((prefix, below))
        };
        if let Some((base, below)) = in_base {
            write_below(base, below, &mut url);
        } else if let Some(below) = in_root {
            write_below(b"/", below, &mut url);
        } else if let Some((prefix, below)) = in_context() {
            write_below(prefix, below, &mut url);
        } else {
            url.extend_from_slice(path);
        }
        if hop.has_args {
            url.push(b'?');
            url.extend_from_slice(&hop.args);
        }
        self.work.answer = url;
        Some(End::Internal)
    }
}

/// Splits a query string off the rewritten string, or keeps, drops or joins the old one.
fn split_query(hop: &mut Hop, flags: Flags) {
    if flags.has(Flags::QUERY_NONE) {
        hop.set_args(None);
        return;
    }
    if absolute(&hop.filename).is_some_and(|(_, takes_query)| !takes_query) {
        hop.set_args(None);
        return;
    }
    if flags.has(Flags::QUERY_DISCARD) {
        hop.set_args(None);
    }
    let Some(at) = query_start(&hop.filename, flags) else { return };
    let Hop { filename, args, has_args, .. } = hop;
    let query = &filename[at + 1..];
    if flags.has(Flags::QUERY_APPEND) {
        if !query.is_empty() {
            args.splice(0..0, query.iter().copied().chain([b'&']));
            *has_args = true;
        }
    } else {
        args.clear();
        args.extend_from_slice(query);
        *has_args = true;
    }
    filename.truncate(at);
    if hop.args.is_empty() {
        hop.has_args = false;
    } else if hop.args.last() == Some(&b'&') {
        hop.args.pop();
    }
}

/// The `?` before the query string of a rewritten string.
pub(super) fn query_start(text: &[u8], flags: Flags) -> Option<usize> {
    if flags.has(Flags::QUERY_LAST) {
        memchr::memrchr(b'?', text)
    } else {
        memchr::memchr(b'?', text)
    }
}

pub(super) fn has_blank_or_control(args: &[u8]) -> bool {
    args.iter().any(|&byte| byte <= b' ' || byte == 0x7f)
}

/// Whether the string is a URL to mod_rewrite: where its host begins, and whether it takes a query.
#[inline]
pub(in crate::eval) fn absolute(text: &[u8]) -> Option<(usize, bool)> {
    // Nearly all are one of these, written like this.
    if text.first() == Some(&b'/') {
        None
    } else if text.first_chunk() == Some(b"http://") {
        Some((b"http://".len(), true))
    } else if text.first_chunk() == Some(b"https://") {
        Some((b"https://".len(), true))
    } else {
        scheme_of(text)
    }
}

/// As [`absolute`], for any scheme in any case.
fn scheme_of(text: &[u8]) -> Option<(usize, bool)> {
    if text.len() <= 5 {
        return None;
    }
    let schemes: &[(&[u8], bool)] = match text[0] | 0x20 {
        b'h' => &[(b"http://", true), (b"https://", true), (b"h2://", true), (b"h2c://", true)],
        b'a' => &[(b"ajp://", true)],
        b'b' => &[(b"balancer://", true)],
        b'f' => &[(b"fcgi://", true), (b"ftp://", false)],
        b'g' => &[(b"gopher://", false)],
        b'l' => &[(b"ldap://", false)],
        b'm' => &[(b"mailto:", true)],
        b'n' => &[(b"news:", false), (b"nntp://", false)],
        b's' => &[(b"scgi://", true)],
        b'u' => &[(b"unix:", true)],
        b'w' => &[(b"ws://", true), (b"wss://", true)],
        _ => &[],
    };
    let is = |scheme: &[u8]| {
        text.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    };
    schemes.iter().find(|(scheme, _)| is(scheme)).map(|(scheme, query)| (scheme.len(), *query))
}

/// The number that a port begins with, as `atoi` reads it into 16 bits.
fn port_of(text: &[u8]) -> u16 {
    let digits = text.trim_ascii_start().iter().take_while(|byte| byte.is_ascii_digit());
    digits.fold(0, |port: u16, digit| port.wrapping_mul(10).wrapping_add(u16::from(digit - b'0')))
}

/// What `path` has below `directory`, which may end in a slash or not.
fn below<'p>(path: &'p [u8], directory: &[u8]) -> Option<&'p [u8]> {
    let directory = directory.strip_suffix(b"/").unwrap_or(directory);
    path.strip_prefix(directory)?.strip_prefix(b"/")
}

/// Writes the path of `below` in the directory `prefix`; without a prefix there is no slash either.
fn write_below(prefix: &[u8], below: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(prefix);
    if !prefix.is_empty() && !prefix.ends_with(b"/") {
        out.push(b'/');
    }
    out.extend_from_slice(below);
}
