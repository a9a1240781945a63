//! What answers for a file that has been found: a named handler, a script of `Action`, the list of a
//! directory, or the file itself.
//!
//! Handlers are run by nobody here, so a file with one is sent as it is, as httpd does with a handler that
//! no module knows. Only those that answer for anything are told apart, and those that would run what is in the
//! file: what a program says is nobody's business.
//!
//! Source: httpd 2.4.71 `server/config.c`, `ap_invoke_handler`; `server/core.c`, `core_override_type`,
//! `default_handler`; `modules/http/mod_mime.c`, `find_ct`; `modules/mappers/mod_actions.c`,
//! `action_handler`; `modules/generators/mod_autoindex.c`, `handle_autoindex`.

use std::net::Ipv6Addr;

use milepost_http::method;
use milepost_http::path;

use super::{End, Hop, Run};
use crate::outside::FileKind;
use crate::program::Mime;

/// Handlers that answer whatever the path, and the modules that have them.
const ANSWER_ALL: &[(&[u8], &str)] =
    &[(b"server-status", "mod_status.c"), (b"server-info", "mod_info.c")];

/// What httpd calls the handler of a directory, which `SetHandler` may name too.
pub(super) const DIRECTORY: &[u8] = b"httpd/unix-directory";

/// Who speaks the protocol of a backend: scheme, and the modules of which one is enough.
const SPEAKERS: &[(&[u8], &[&str])] = &[
    (b"http", &["mod_proxy_http.c"]),
    (b"https", &["mod_proxy_http.c"]),
    (b"ws", &["mod_proxy_http.c", "mod_proxy_wstunnel.c"]),
    (b"wss", &["mod_proxy_http.c", "mod_proxy_wstunnel.c"]),
    (b"balancer", &["mod_proxy_balancer.c"]),
    (b"fcgi", &["mod_proxy_fcgi.c"]),
    (b"scgi", &["mod_proxy_scgi.c"]),
    (b"uwsgi", &["mod_proxy_uwsgi.c"]),
    (b"ajp", &["mod_proxy_ajp.c"]),
    (b"h2", &["mod_proxy_http2.c"]),
    (b"h2c", &["mod_proxy_http2.c"]),
    (b"ftp", &["mod_proxy_ftp.c"]),
    (b"fd", &["mod_proxy_fdpass.c"]),
];

impl Run<'_> {
    /// Answers a request that has come through all phases.
    pub(super) fn handle(&mut self, hop: &mut Hop, takes_path_info: bool) -> End {
        hop.is_handled = true;
        if hop.proxied {
            return self.proxied_end(hop);
        }
        let config = hop.config.clone();
        let config = config.as_deref().unwrap_or(&self.server.base);
        let mime = config.mime.as_deref();
        let handler = mime.and_then(|mime| handler(mime, hop));
        if self.program.proxies
            && let Some(url) = handler.and_then(|handler| handler.strip_prefix(b"proxy:"))
            && self.is_spoken(scheme(url))
        {
            // A file is for FastCGI, mostly.
            return End::Status(503);
        }
        if let Some(handler) = handler
            && self.method(hop) == b"GET"
            && self.answers_all(handler)
        {
            self.work.answer.clear();
            self.work.answer.extend_from_slice(b"<p>This page is not done here.</p>\n");
            return End::Page;
        }
        if let Some(mime) = mime.filter(|mime| !mime.actions.is_empty()) {
            // Without a handler, the type of the file names one.
            let described = self.describe(Some(mime), &hop.filename).media_type;
            let name = handler.or(described.as_deref()).unwrap_or_default();
            if let Some(action) = mime.actions.iter().find(|action| *action.name == *name) {
                return self.run_action(hop, &action.script, action.is_virtual);
            }
        }
        let named = handler.or_else(|| added_type(mime?, &hop.filename));
        if named.is_some_and(|named| self.reads_type_maps(named)) {
            return self.answer_by_map(hop, mime);
        }
        let no_path_info = hop.path_info.is_empty() || takes_path_info;
        match self.method(hop) {
            b"GET" | b"HEAD"
                if hop.kind == Some(FileKind::Directory)
                    && handler.is_none_or(|handler| handler == DIRECTORY)
                    && self.program.names.modules.has("mod_autoindex.c") =>
            {
                if config.options.listing != Some(true) {
                    return End::Status(403);
                }
                let listing = config.listing.clone().unwrap_or_default();
                self.list(hop, &listing, &config.serving, mime);
                End::Page
            }
            b"GET" | b"HEAD" | b"POST" => match hop.kind {
                Some(FileKind::File(_))
                    if mime.is_some_and(|mime| self.would_run(mime, handler, hop)) =>
                {
                    End::Status(503)
                }
                Some(FileKind::File(_)) if no_path_info => End::File,
                Some(FileKind::Other) => End::Status(403),
                _ => End::Status(404),
            },
            b"OPTIONS" => End::Options,
            method => End::Status(if method::is_known(method) { 405 } else { 501 }),
        }
    }

    /// The name of the handler, as expressions see it: while a file is sent that has none, its type.
    ///
    /// Source: httpd 2.4.71 `server/config.c`, `ap_invoke_handler`.
    pub(super) fn handler_name<'h>(&'h self, hop: &'h Hop) -> &'h [u8] {
        if hop.proxied {
            return b"proxy-server";
        }
        if !hop.is_typed {
            return b"";
        }
        let config = hop.config.as_deref().unwrap_or(&self.server.base);
        let named = config.mime.as_deref().and_then(|mime| handler(mime, hop));
        let unnamed = || match hop.fields.get(b"Content-Type") {
            _ if !hop.is_handled => b"",
            _ if hop.kind == Some(FileKind::Directory) => DIRECTORY,
            Some(said) if !hop.says_status && self.method(hop) != b"OPTIONS" => {
                said.split(|byte| b"; ".contains(byte)).next().unwrap_or_default()
            }
            _ => b"",
        };
        named.unwrap_or_else(unnamed)
    }

    /// A request for another server, if its protocol is spoken here; an error of httpd's if no module speaks it.
    fn proxied_end(&self, hop: &Hop) -> End {
        let url = hop.filename.strip_prefix(b"proxy:").unwrap_or(&hop.filename);
        match scheme(url) {
            scheme if !self.is_spoken(scheme) || is_without_address(url) => End::Status(500),
            b"http" | b"https" | b"ws" | b"wss" | b"balancer" => End::Proxy,
            _ => End::Status(503),
        }
    }

    /// Whether a module that is loaded speaks the protocol of `scheme`.
    fn is_spoken(&self, scheme: &[u8]) -> bool {
        let mut known = SPEAKERS.iter();
        let speakers = known.find(|(name, _)| name.eq_ignore_ascii_case(scheme));
        let modules = &self.program.names.modules;
        speakers.is_some_and(|(_, speakers)| speakers.iter().any(|module| modules.has(module)))
    }

    /// Whether httpd would run the file: by its handler, or else by its type.
    fn would_run(&self, mime: &Mime, handler: Option<&[u8]>, hop: &Hop) -> bool {
        let by_name = || extensions(&hop.filename).filter_map(|name| extension(mime, name));
        let typed = || by_name().filter_map(|known| known.media_type.as_deref()).last();
        let named = handler.or(mime.forced_type.as_deref()).or_else(typed);
        named.is_some_and(|named| self.program.names.modules.run(named))
    }

    fn answers_all(&self, handler: &[u8]) -> bool {
        let modules = &self.program.names.modules;
        let mut known = ANSWER_ALL.iter();
        known.any(|(name, module)| *name == handler && modules.is_named(module))
    }

    /// `Action`: the request goes to a script, with its own path behind that of the script.
    fn run_action(&mut self, hop: &mut Hop, script: &[u8], is_virtual: bool) -> End {
        if !is_virtual && hop.kind == Some(FileKind::Missing) {
            return End::Status(404);
        }
        hop.is_handled = false;
        let answer = &mut self.work.answer;
        answer.clear();
        answer.extend_from_slice(script);
        path::escape(&hop.uri, answer);
        if hop.has_args {
            answer.push(b'?');
            answer.extend_from_slice(&hop.args);
        }
        End::Internal
    }
}

/// The handler of a request: the section's, or that of the last extension that has one. A directory has no
/// extensions.
pub(super) fn handler<'m>(mime: &'m Mime, hop: &Hop) -> Option<&'m [u8]> {
    if hop.kind == Some(FileKind::Directory) {
        return set_handler(mime);
    }
    handler_of(mime, &hop.filename)
}

/// The same for any file.
pub(super) fn handler_of<'m>(mime: &'m Mime, filename: &[u8]) -> Option<&'m [u8]> {
    let by_name =
        || extensions(filename).filter_map(|name| extension(mime, name)?.handler.as_deref()).last();
    set_handler(mime).or_else(by_name)
}

/// The type that `AddType` gives a file.
fn added_type<'m>(mime: &'m Mime, filename: &[u8]) -> Option<&'m [u8]> {
    extensions(filename).filter_map(|name| extension(mime, name)?.media_type.as_deref()).last()
}

fn set_handler(mime: &Mime) -> Option<&[u8]> {
    mime.handler.as_deref().filter(|handler| !handler.is_empty())
}

/// The encodings of a file, if its name says any.
pub(super) fn encoding<'m>(mime: &'m Mime, filename: &[u8]) -> Option<&'m [u8]> {
    extensions(filename).filter_map(|name| extension(mime, name)?.encoding.as_deref()).last()
}

/// What is said of an extension, in any case.
pub(super) fn extension<'m>(mime: &'m Mime, name: &[u8]) -> Option<&'m crate::program::Extension> {
    if mime.extensions.is_empty() {
        return None;
    }
    mime.extensions.get(&name.to_ascii_lowercase()[..])
}

/// The parts of a file's name behind its first dot; dots at its start belong to what is before that.
pub(super) fn extensions(filename: &[u8]) -> impl Iterator<Item = &[u8]> {
    let name = &filename[memchr::memrchr(b'/', filename).map_or(0, |slash| slash + 1)..];
    let dots = name.iter().take_while(|&&byte| byte == b'.').count();
    name[dots..].split(|&byte| byte == b'.').skip(1).filter(|part| !part.is_empty())
}

/// The scheme of a backend's URL, which may stand behind the path of a socket.
fn scheme(url: &[u8]) -> &[u8] {
    let url = match memchr::memchr(b'|', url) {
        Some(bar) if url.starts_with(b"unix:") => &url[bar + 1..],
        _ => url,
    };
    &url[..memchr::memchr(b':', url).unwrap_or(url.len())]
}

/// Whether the host of a URL, as it is sent, is a name with a `:`, which no server has.
fn is_without_address(url: &[u8]) -> bool {
    let inner = || {
        let (_, rest) = url.split_at(memchr::memmem::find(url, b"://[")? + b"://[".len());
        rest.get(..memchr::memchr(b']', rest)?)
    };
    let is_address = |host| str::from_utf8(host).is_ok_and(|host| host.parse::<Ipv6Addr>().is_ok());
    !url.starts_with(b"unix:") && inner().is_some_and(|host| !is_address(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extensions_are_behind_the_first_dot() {
        let parts = |name: &'static str| -> Vec<&[u8]> { extensions(name.as_bytes()).collect() };
        assert_eq!(parts("/a.b/c.html.en"), [&b"html"[..], b"en"]);
        assert_eq!(parts("/.htaccess"), [] as [&[u8]; 0]);
        assert_eq!(parts("/..a.b"), [&b"b"[..]]);
        assert_eq!(parts("/a..b"), [&b"b"[..]]);
    }
}
