//! `<VirtualHost>`, `<Directory>`, `<Location>`, `<Files>` and their `Match` forms.
//!
//! Source: httpd 2.4.71 `server/core.c`, `dirsection`, `urlsection`, `filesection`, `virtualhost_section`.

use std::net::IpAddr;
use std::sync::Arc;

use milepost_pcre::{Case, GROUPS_MAX};
use milepost_syntax::{Word, Words};

use super::report::{Finding, show};
use super::{Builder, Context, DirDraft, Directive, ServerDraft};
use crate::pattern::Pattern;
use crate::pool::Str;
use crate::program::{Address, DirConfig, Part, Scope, Section, SectionMatcher};
use crate::wildcard::is_wild;

/// The sections of one server, in the order of the configuration.
#[derive(Default)]
pub(super) struct SectionLists {
    pub(super) locations: Vec<Part<Section>>,
    pub(super) directories: Vec<Part<Section>>,
}

/// What the argument of a section says.
pub(super) struct Named {
    pub(super) matcher: SectionMatcher,
    /// The path that its rewrite patterns do not see.
    pub(super) directory: Arc<[u8]>,
    /// The pattern or path itself.
    pub(super) text: Str,
}

impl Builder<'_> {
    /// Reads one section; `inner` runs the directives in it.
    pub(super) fn section(
        &mut self,
        name: &[u8],
        directive: &Directive<'_>,
        context: &mut Context<'_>,
        inner: impl FnOnce(&mut Self, &mut Context<'_>),
    ) {
        let scope = match name {
            b"virtualhost" => return self.virtual_host(directive, context, inner),
            b"if" | b"elseif" | b"else" => {
                return self.if_section(name, directive, context, inner);
            }
            b"requireall" | b"requireany" | b"requirenone" => {
                return self.require_section(name, directive, context, inner);
            }
            b"authnprovideralias" | b"authzprovideralias" => {
                return self.provider_alias(name, directive, context, inner);
            }
            b"limit" | b"limitexcept" => {
                return self.limit_section(name, directive, context, inner);
            }
            b"directory" | b"directorymatch" => Scope::Directory,
            b"location" | b"locationmatch" => Scope::Location,
            b"files" | b"filesmatch" => Scope::Files,
            b"proxy" | b"proxymatch" => Scope::Proxy,
            _ => {
                let name = String::from_utf8_lossy(directive.name).into_owned();
                let message = format!("`<{name}>` is not done here: what is in it is left out");
                return self.report(directive, Finding::warning(message));
            }
        };
        let holds_files = [Scope::Directory, Scope::Htaccess, Scope::If, Scope::Files];
        let outer_fits = context.scope.is_server()
            || scope == Scope::Files && holds_files.contains(&context.scope) && !self.in_location;
        if !outer_fits {
            let message =
                format!("`<{}>` does not belong here", String::from_utf8_lossy(directive.name));
            return self.report(directive, Finding::error(message));
        }
        let named = match scope {
            Scope::Proxy => self.proxy_matcher(directive, name == b"proxymatch", context.server),
            _ => self.matcher(name, scope, directive),
        };
        let Some(Named { matcher, directory, text }) = named else { return };
        let mut dir = DirDraft::default();
        if scope != Scope::Proxy {
            dir.config.refuse_encoded_slashes();
        }
        let groups = match &matcher {
            SectionMatcher::Regex(pattern) => {
                dir.url_pattern = (scope == Scope::Location).then_some(text);
                self.match_variables(directive, pattern)
            }
            SectionMatcher::Path(path) | SectionMatcher::Wildcard(path) => {
                dir.url_path = (scope == Scope::Location).then_some(*path);
                Vec::new()
            }
        };
        let mut section = Context { scope, server: context.server, directory, dir: &mut dir };
        self.in_location |= scope == Scope::Location;
        inner(self, &mut section);
        self.in_location &= scope != Scope::Location;
        if let Some(tls) = dir.tls.take() {
            dir.config.proxy.tls = Some(self.section_tls(context.server, *tls));
        }
        let config = self.finish_dir(dir);
        let depth = match &matcher {
            SectionMatcher::Path(path) | SectionMatcher::Wildcard(path)
                if scope == Scope::Directory =>
            {
                Some(self.pool.get(*path).iter().filter(|&&byte| byte == b'/').count())
            }
            _ => None,
        };
        let section = Part::new(Section { matcher, depth, groups, config });
        match scope {
            // httpd has looked for sections of files by then.
            Scope::Files if context.scope == Scope::Files => {
                let finding = Finding::warning("has no effect in another section for files");
                self.report(directive, finding.hint("write both conditions into one pattern"));
            }
            Scope::Files => context.dir.files.push(section),
            Scope::Location => self.servers[context.server].sections.locations.push(section),
            Scope::Proxy => self.servers[context.server].proxy.sections.push(section),
            _ => self.servers[context.server].sections.directories.push(section),
        }
    }

    /// The variables that named groups of a section's pattern set, and the numbers of the groups.
    fn match_variables(
        &mut self,
        directive: &Directive<'_>,
        pattern: &Pattern,
    ) -> Vec<(Box<[u8]>, u32)> {
        let mut groups = Vec::new();
        for (name, number) in pattern.names(&self.pool) {
            if number as usize >= GROUPS_MAX {
                let message = format!("group `{name}` sets no variable: it is number {number}");
                let hint = format!("name one of the first {} groups", GROUPS_MAX - 1);
                self.report(directive, Finding::warning(message).hint(hint));
            } else {
                let variable = format!("MATCH_{}", name.to_ascii_uppercase());
                groups.push((variable.into_bytes().into(), number));
            }
        }
        groups
    }

    /// Turns the draft of a section into what it says.
    pub(super) fn finish_dir(&mut self, dir: DirDraft) -> DirConfig {
        let DirDraft {
            mut config,
            redirects,
            env_if,
            edits,
            rewrite,
            rewrite_dir,
            files,
            url_path: _,
            tls: _,
            url_pattern: _,
            filters: _,
        } = dir;
        if let Some(place) = rewrite.orphan().map(|condition| condition.place) {
            let finding = Finding::warning("no `RewriteRule` follows this condition");
            self.report_place(place, "RewriteCond".len(), finding);
        }
        config.redirects = redirects.finish(self).into_iter().collect();
        config.env_if = env_if.finish().into_iter().collect();
        config.edits = edits.finish();
        config.rewrite = rewrite_dir;
        if let Some(dir) = &mut config.rewrite {
            dir.rules = rewrite.finish(self).into_iter().collect();
        }
        config.files = files;
        config
    }

    /// What a section other than `<Proxy>` is for.
    fn matcher(&mut self, name: &[u8], scope: Scope, directive: &Directive<'_>) -> Option<Named> {
        let mut words = Words::new(directive.args);
        let mut first = words.next();
        // `<LocationMatch>` and `<FilesMatch>` take it for their pattern.
        let tilde = !matches!(name, b"locationmatch" | b"filesmatch")
            && first.as_ref().is_some_and(|word| &*word.text == b"~");
        if tilde {
            first = words.next();
        }
        let count = usize::from(first.is_some()) + words.count();
        if count != 1 {
            let message =
                format!("`<{}>` needs one argument", String::from_utf8_lossy(directive.name));
            let finding = Finding::error(message);
            // The whole of a section on one line is one long first line.
            let is_whole = memchr::memmem::find(directive.args, b"</").is_some();
            self.report(
                directive,
                if is_whole { finding.hint("end the line behind `>`") } else { finding },
            );
        }
        let word = first?;
        if tilde || name.ends_with(b"match") {
            let text = self.word(directive, &word);
            let matcher = self.pattern_matcher(directive, &word, text)?;
            return Some(Named { matcher, directory: with_slash(&word.text), text });
        }
        let text = self.section_path(scope, directive, &word)?;
        let directory = match scope {
            Scope::Directory => Arc::from(self.pool.get(text)),
            // What a rule in a location strips, were it ever there: the location with a slash.
            _ => with_slash(self.pool.get(text)),
        };
        let matcher = if has_wildcards(&word) {
            SectionMatcher::Wildcard(text)
        } else {
            SectionMatcher::Path(text)
        };
        Some(Named { matcher, directory, text })
    }

    /// A section for what matches a pattern, which `word` is; `None`: it is no pattern.
    pub(super) fn pattern_matcher(
        &mut self,
        directive: &Directive<'_>,
        word: &Word<'_>,
        text: Str,
    ) -> Option<SectionMatcher> {
        match self.new_pattern(text, Case::Sensitive) {
            Ok((pattern, _)) => Some(SectionMatcher::Regex(Box::new(pattern))),
            Err(error) => {
                self.bad_pattern(directive, word, &error);
                None
            }
        }
    }

    /// The path of a section: absolute and ending in `/` for a directory, as written otherwise.
    fn section_path(
        &mut self,
        scope: Scope,
        directive: &Directive<'_>,
        word: &Word<'_>,
    ) -> Option<Str> {
        if scope != Scope::Directory {
            return Some(self.word(directive, word));
        }
        let path = self.resolve(&word.text);
        let mut bytes = super::path_to_bytes(&path).to_vec();
        while bytes.len() > 1 && bytes.last() == Some(&b'/') {
            bytes.pop();
        }
        if bytes.last() != Some(&b'/') {
            bytes.push(b'/');
        }
        Some(self.pool.add(&bytes))
    }

    fn virtual_host(
        &mut self,
        directive: &Directive<'_>,
        context: &Context<'_>,
        inner: impl FnOnce(&mut Self, &mut Context<'_>),
    ) {
        if context.scope != Scope::Main {
            return self
                .report(directive, Finding::error("`<VirtualHost>` belongs outside all sections"));
        }
        let mut draft = ServerDraft::default();
        draft.server.place = Some(directive.place);
        let mut words = Words::new(directive.args).peekable();
        let has_address = words.peek().is_some();
        for word in words {
            let said = show(&word.text);
            let finding = match address(&word.text) {
                Written::Address(host, ip, port) => {
                    let text = self.pool.add(host.as_bytes());
                    draft.server.addresses.push(Address { ip, port, text });
                    continue;
                }
                // httpd asks a name server, and goes on without the address when that does not know.
                Written::Name => {
                    Finding::warning(format!("{said} is left out: no name is looked up"))
                        .hint("write `*:80`, `address:port` or `[address]:port`")
                }
                Written::PortAlone => {
                    Finding::error(format!("{said} is a port without an address"))
                        .hint(format!("write `*:{}`", String::from_utf8_lossy(&word.text)))
                }
                Written::BadPort => {
                    Finding::error(format!("{said} has no port between 1 and 65535"))
                }
            };
            self.report_at(directive, word.at, word.len, finding);
        }
        if !has_address {
            self.report(
                directive,
                Finding::error("`<VirtualHost>` needs an address")
                    .hint("write `<VirtualHost *:80>`"),
            );
        }
        self.servers.push(draft);
        let server = self.servers.len() - 1;
        let mut base = DirDraft::default();
        let mut inside =
            Context { scope: Scope::VirtualHost, server, directory: Arc::from([]), dir: &mut base };
        inner(self, &mut inside);
        self.servers[server].base = base;
    }
}

/// Whether the argument of a section stands for more than itself.
pub(super) fn has_wildcards(word: &Word<'_>) -> bool {
    is_wild(&word.text)
}

/// What mod_rewrite takes for the directory of a section: what is written, with a slash at the end.
fn with_slash(text: &[u8]) -> Arc<[u8]> {
    let slash: &[u8] = if text.ends_with(b"/") { b"" } else { b"/" };
    [text, slash].concat().into()
}

/// What a word of `<VirtualHost …>` says.
enum Written<'w> {
    /// The address as written, what it is, and the port.
    Address(&'w str, Option<IpAddr>, Option<u16>),
    /// Something that is no address, and may be a name.
    Name,
    PortAlone,
    BadPort,
}

/// `*`, `_default_`, an address, each with or without a port.
///
/// Source: httpd 2.4.71 `server/vhost.c`, `get_addresses`; apr `network_io/unix/sockaddr.c`,
/// `apr_parse_addr_port`.
fn address(text: &[u8]) -> Written<'_> {
    let Ok(text) = std::str::from_utf8(text) else { return Written::Name };
    let is_port = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if is_port(text) {
        return Written::PortAlone;
    }
    let bracket = text.rfind(']').unwrap_or(0);
    let (host, port) = match text[bracket..].rsplit_once(':') {
        Some((_, "*")) => (&text[..text.len() - 2], None),
        Some((_, port)) if is_port(port) => {
            match port.parse().ok().filter(|&port: &u16| port > 0) {
                Some(number) => (&text[..text.len() - port.len() - 1], Some(number)),
                None => return Written::BadPort,
            }
        }
        _ => (text, None),
    };
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let ip: Option<IpAddr> = match host {
        "*" => None,
        host if host.eq_ignore_ascii_case("_default_") => None,
        "localhost" => Some(IpAddr::from([127, 0, 0, 1])),
        host => match host.parse() {
            Ok(ip) => Some(ip),
            Err(_) => return Written::Name,
        },
    };
    Written::Address(host, ip, port)
}
