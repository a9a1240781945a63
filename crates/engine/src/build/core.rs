//! The directives of httpd's core and of mod_dir.
//!
//! Source: httpd 2.4.71 `server/core.c`, `server/listen.c`, `modules/http/http_core.c`,
//! `modules/mappers/mod_dir.c`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use milepost_http::path::EncodedSlashes;
use milepost_syntax::Words;

use super::report::{Finding, show};
use super::{Builder, Context, Directive, Purpose};
use crate::number::leading_number;
use crate::outside::FileKind;
use crate::program::{AllowedMethods, Options, Override, Scope, ServerName, Trace};
use crate::settings::Listen;

impl Builder<'_> {
    /// Whether a word may name a variable; an error otherwise.
    fn is_variable(&mut self, directive: &Directive<'_>, word: &milepost_syntax::Word<'_>) -> bool {
        let is_right = !word.text.contains(&b':');
        if !is_right {
            let message = format!("{} has a colon, which no variable has", show(&word.text));
            self.report_at(directive, word.at, word.len, Finding::error(message));
        }
        is_right
    }

    pub(super) fn define(&mut self, directive: &Directive<'_>) {
        if let Some(words) = self.words(directive, 1, 2, "Define NAME [value]")
            && self.is_variable(directive, &words[0])
        {
            let value = words.get(1).map(|word| word.text.to_vec()).unwrap_or_default();
            self.names.defines.insert(words[0].text.to_vec(), value);
        }
    }

    pub(super) fn undefine(&mut self, directive: &Directive<'_>) {
        if let Some(words) = self.words(directive, 1, 1, "UnDefine NAME")
            && self.is_variable(directive, &words[0])
        {
            self.names.defines.remove(&*words[0].text);
        }
    }

    pub(super) fn listen(&mut self, directive: &Directive<'_>, context: &Context<'_>) {
        if !self.main_only(directive, context) {
            return;
        }
        let Some(words) = self.words(directive, 1, 2, "Listen [address:]port [protocol]") else {
            return;
        };
        let place = self.pool.describe(directive.place);
        let place = format!("{}:{}", place.0.display(), place.1);
        if let Some(path) = words[0].text.strip_prefix(b"unix:") {
            let unix = Some(self.resolve(path));
            self.settings.listens.push(Listen { place, unix, ..Listen::default() });
            return;
        }
        let text = String::from_utf8_lossy(&words[0].text).into_owned();
        let addresses = match text.rsplit_once(':') {
            None => text.parse().ok().map(|port| {
                vec![
                    (IpAddr::from(Ipv6Addr::UNSPECIFIED), port).into(),
                    (Ipv4Addr::UNSPECIFIED, port).into(),
                ]
            }),
            Some((host, port)) => port.parse::<u16>().ok().and_then(|port| {
                let host =
                    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
                let ip = match host {
                    "*" => IpAddr::from(Ipv4Addr::UNSPECIFIED),
                    "localhost" => IpAddr::from(Ipv4Addr::LOCALHOST),
                    host => host.parse().ok()?,
                };
                Some(vec![SocketAddr::new(ip, port)])
            }),
        };
        match addresses {
            Some(addresses) => {
                self.settings.listens.push(Listen { addresses, place, ..Listen::default() });
            }
            None => {
                let finding = Finding::error(format!(
                    "{} is not an address to listen on",
                    show(&words[0].text)
                ))
                .hint("write a port (1 to 65535), `address:port`, `[address]:port` or `unix:path`");
                self.report_at(directive, words[0].at, words[0].len, finding);
            }
        }
    }

    pub(super) fn server_root(&mut self, directive: &Directive<'_>) {
        if let Some(words) = self.words(directive, 1, 1, "ServerRoot path") {
            let path = PathBuf::from(super::bytes_to_path(&words[0].text));
            if self.outside.kind(&path) == FileKind::Directory {
                self.settings.server_root = path;
            } else {
                let message = format!("{} is not a directory", show(&words[0].text));
                self.report_at(directive, words[0].at, words[0].len, Finding::error(message));
            }
        }
    }

    pub(super) fn server_admin(&mut self, directive: &Directive<'_>) {
        if let Some(words) = self.words(directive, 1, 1, "ServerAdmin address") {
            self.settings.server_admin = Some(String::from_utf8_lossy(&words[0].text).into_owned());
        }
    }

    pub(super) fn server_name(&mut self, directive: &Directive<'_>, context: &Context<'_>) {
        if !self.server_only(directive, context) {
            return;
        }
        let Some(words) = self.words(directive, 1, 1, "ServerName [scheme://]host[:port]") else {
            return;
        };
        let text = words[0].text.to_ascii_lowercase();
        let (https, rest) = match text.strip_prefix(b"https://") {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix(b"http://").unwrap_or(&text)),
        };
        let bracket = memchr::memchr(b']', rest).unwrap_or(0);
        let (host, port) = match memchr::memrchr(b':', &rest[bracket..]) {
            None => (rest, None),
            Some(colon) => {
                let (host, port) = (&rest[..bracket + colon], &rest[bracket + colon + 1..]);
                let number =
                    std::str::from_utf8(port).ok().and_then(|port| port.parse::<u16>().ok());
                let Some(number) = number.filter(|&number| number > 0) else {
                    let finding = Finding::error(format!("{} is not a port", show(port)))
                        .hint("a port is a number from 1 to 65535");
                    self.report_at(directive, words[0].at, words[0].len, finding);
                    return;
                };
                (host, Some(number))
            }
        };
        let host = self.pool.add(host);
        self.servers[context.server].server.name = Some(ServerName { https, host, port });
    }

    pub(super) fn server_alias(&mut self, directive: &Directive<'_>, context: &Context<'_>) {
        if context.scope != Scope::VirtualHost {
            let finding = Finding::error("`ServerAlias` belongs into a `<VirtualHost>`");
            self.report(directive, finding);
            return;
        }
        for word in Words::new(directive.args) {
            let name = self.pool.add(&word.text.to_ascii_lowercase());
            self.servers[context.server].server.aliases.push(name);
        }
    }

    pub(super) fn document_root(&mut self, directive: &Directive<'_>, context: &Context<'_>) {
        if !self.server_only(directive, context) {
            return;
        }
        if let Some(words) = self.words(directive, 1, 1, "DocumentRoot path") {
            let path = self.resolve(&words[0].text);
            if self.outside.kind(&path) != FileKind::Directory {
                let message = format!("document root {} is not a directory", show(&words[0].text));
                // So it is in httpd, which has no reason for the difference either.
                let finding = match context.scope {
                    Scope::Main if self.purpose != Purpose::Ask => Finding::error(message),
                    _ => Finding::warning(message),
                };
                self.report_at(directive, words[0].at, words[0].len, finding);
            }
            let bytes = super::path_to_bytes(&path);
            let root = self.pool.add(trim_slashes(bytes));
            self.servers[context.server].server.document_root = Some(root);
        }
    }

    pub(super) fn use_canonical_name(
        &mut self,
        directive: &Directive<'_>,
        context: &mut Context<'_>,
    ) {
        if let Some(words) = self.words(directive, 1, 1, "UseCanonicalName On|Off|DNS") {
            let on = match words[0].text.to_ascii_lowercase().as_slice() {
                b"on" => true,
                b"off" => false,
                b"dns" => {
                    let finding = Finding::warning(
                        "`UseCanonicalName DNS` acts like `Off`: no names are looked up",
                    );
                    self.report_at(directive, words[0].at, words[0].len, finding);
                    false
                }
                _ => {
                    let finding = Finding::error("`UseCanonicalName` is `On`, `Off` or `DNS`");
                    return self.report_at(directive, words[0].at, words[0].len, finding);
                }
            };
            context.dir.config.naming.canonical = Some(on);
        }
    }

    pub(super) fn use_physical_port(
        &mut self,
        directive: &Directive<'_>,
        context: &mut Context<'_>,
    ) {
        let on = self.lone_flag(directive);
        let naming = &mut context.dir.config.naming;
        naming.physical_port = on.or(naming.physical_port);
    }

    /// `ServerPath URL-path`
    pub(super) fn server_path(&mut self, directive: &Directive<'_>, context: &Context<'_>) {
        if !self.server_only(directive, context) {
            return;
        }
        if let Some(words) = self.words(directive, 1, 1, "ServerPath URL-path") {
            let path = self.word(directive, &words[0]);
            self.servers[context.server].server.path = Some(path);
        }
    }

    pub(super) fn merge_slashes(&mut self, directive: &Directive<'_>, context: &Context<'_>) {
        if self.server_only(directive, context)
            && let Some(on) = self.flag(directive)
        {
            self.servers[context.server].merge_slashes = Some(on);
        }
    }

    /// Notes it, its value being right; false for another directive.
    pub(super) fn trace_enable(
        &mut self,
        directive: &Directive<'_>,
        lower: &[u8],
        context: &Context<'_>,
    ) -> bool {
        if lower != b"traceenable" {
            return false;
        }
        let word = Words::new(directive.args).next().map(|word| word.text.to_ascii_lowercase());
        self.servers[context.server].server.trace = Some(match word.as_deref() {
            Some(b"off") => Trace::Off,
            Some(b"extended") => Trace::Extended,
            _ => Trace::On,
        });
        true
    }

    /// `AllowMethods method…|reset`; false if it is another directive. A `HEAD` is a `GET`.
    ///
    /// Source: `modules/aaa/mod_allowmethods.c`, `am_allowmethods`.
    pub(super) fn allow_methods(
        &mut self,
        directive: &Directive<'_>,
        lower: &[u8],
        context: &mut Context<'_>,
    ) -> bool {
        if lower != b"allowmethods" {
            return false;
        }
        let words = directive.texts();
        let is_reset = words.len() == 1 && words[0].eq_ignore_ascii_case(b"reset");
        let methods = words.iter().map(|word| match &**word {
            b"HEAD" => (*b"GET").into(),
            method => method.into(),
        });
        context.dir.config.methods = Some(match is_reset {
            true => AllowedMethods::All,
            false => AllowedMethods::These(methods.collect()),
        });
        true
    }

    pub(super) fn allow_encoded_slashes(
        &mut self,
        directive: &Directive<'_>,
        context: &mut Context<'_>,
    ) {
        if !self.server_only(directive, context) {
            return;
        }
        if let Some(words) = self.words(directive, 1, 1, "AllowEncodedSlashes On|Off|NoDecode") {
            let value = match words[0].text.to_ascii_lowercase().as_slice() {
                b"on" => EncodedSlashes::Decode,
                b"off" => EncodedSlashes::Refuse,
                b"nodecode" => EncodedSlashes::Keep,
                _ => {
                    let finding =
                        Finding::error("`AllowEncodedSlashes` is `On`, `Off` or `NoDecode`");
                    return self.report_at(directive, words[0].at, words[0].len, finding);
                }
            };
            context.dir.config.encoded_slashes = Some(value);
        }
    }

    pub(super) fn accept_path_info(
        &mut self,
        directive: &Directive<'_>,
        context: &mut Context<'_>,
    ) {
        if let Some(words) = self.words(directive, 1, 1, "AcceptPathInfo On|Off|Default") {
            match words[0].text.to_ascii_lowercase().as_slice() {
                b"on" => context.dir.config.path_info = Some(true),
                // A file takes none by default, and what a section says counts, be it the default.
                b"off" | b"default" => context.dir.config.path_info = Some(false),
                _ => {
                    let finding = Finding::error("`AcceptPathInfo` is `On`, `Off` or `Default`");
                    self.report_at(directive, words[0].at, words[0].len, finding);
                }
            }
        }
    }

    /// `AccessFileName name…`
    pub(super) fn access_file_name(&mut self, directive: &Directive<'_>, context: &Context<'_>) {
        if !self.server_only(directive, context) {
            return;
        }
        let words = directive.words();
        let names = words.iter().map(|word| self.word(directive, word)).collect();
        self.servers[context.server].server.access_names = names;
    }

    pub(super) fn limit_recursion(&mut self, directive: &Directive<'_>, context: &Context<'_>) {
        let usage = "LimitInternalRecursion redirects [subrequests]";
        if !self.server_only(directive, context) {
            return;
        }
        let Some(words) = self.words(directive, 1, 2, usage) else { return };
        let mut limits = [0_u32; 2];
        for (limit, number) in limits.iter_mut().zip([0, words.len() - 1]) {
            match self.number(directive, &words[number]) {
                Some(value) if value > 0 => *limit = value,
                _ => {
                    let finding =
                        Finding::error("the limit of internal redirects is a number above 0");
                    return self.report_at(directive, words[number].at, words[number].len, finding);
                }
            }
        }
        self.servers[context.server].recursion_max = Some((limits[0], limits[1]));
    }

    pub(super) fn options(&mut self, directive: &Directive<'_>, context: &mut Context<'_>) {
        let words = directive.words();
        let options = &mut context.dir.config.options;
        // What is said of the signs; after `All` or `None` it starts over.
        let mut relative = None;
        let mut after_all = false;
        for word in &words {
            let text = word.text.to_ascii_lowercase();
            let (sign, name) = match text.split_first() {
                Some((sign @ (b'-' | b'+'), name)) => (Some(*sign), name),
                _ => (None, text.as_slice()),
            };
            let is_all = matches!(name, b"all" | b"none");
            if is_all && word.at != words[0].at {
                let finding = Finding::error(format!("{} comes first", show(name)));
                return self.report_at(directive, word.at, word.len, finding);
            }
            let fits = *relative.get_or_insert(sign.is_some()) == sign.is_some();
            if !fits && !after_all {
                let finding = Finding::error("some options have a sign, and some have none")
                    .hint("write `+` or `-` before all of them, or before none");
                return self.report_at(directive, word.at, word.len, finding);
            }
            if word.at == words[0].at && sign.is_none() {
                // A list without signs replaces what was set before.
                *options = Options::none();
            }
            after_all |= is_all;
            let on = sign != Some(b'-');
            match name {
                b"followsymlinks" => options.follow_links = Some(on),
                b"symlinksifownermatch" => options.follow_owned_links = Some(on),
                b"indexes" => options.listing = Some(on),
                b"multiviews" => options.multi_views = Some(on),
                _ if is_all && sign.is_some() => {
                    let finding = Finding::error(format!("{} takes no sign", show(name)));
                    return self.report_at(directive, word.at, word.len, finding);
                }
                b"all" => {
                    options.follow_links = Some(true);
                    options.listing = Some(true);
                }
                b"none" | b"execcgi" | b"includes" | b"includesnoexec" | b"runscripts" => {}
                _ => {
                    let finding = Finding::error(format!("unknown option {}", show(&word.text)))
                        .hint("FollowSymLinks, SymLinksIfOwnerMatch, Indexes, MultiViews, ExecCGI, Includes, All or None");
                    return self.report_at(directive, word.at, word.len, finding);
                }
            }
        }
    }

    pub(super) fn allow_override(&mut self, directive: &Directive<'_>, context: &mut Context<'_>) {
        if context.scope.is_server() {
            let finding = Finding::error("`AllowOverride` belongs into a `<Directory>`");
            return self.report(directive, finding);
        }
        if context.scope != Scope::Directory {
            // httpd says so as well, and looks at it nowhere else.
            let finding = Finding::warning("`AllowOverride` has no effect outside `<Directory>`");
            self.report(directive, finding);
        }
        let mut allowed = Override::default();
        for word in Words::new(directive.args) {
            let text = word.text.to_ascii_lowercase();
            let name = text.split(|&byte| byte == b'=').next().unwrap_or_default();
            match name {
                b"none" => {}
                b"all" => {
                    let names = std::mem::take(&mut allowed.names);
                    allowed = Override { names, nonfatal: allowed.nonfatal, ..Override::all() };
                }
                b"authconfig" => allowed.auth_config = true,
                b"fileinfo" => allowed.file_info = true,
                b"indexes" => allowed.indexes = true,
                b"limit" => allowed.limit = true,
                b"options" => allowed.options = true,
                b"nonfatal" => match &text[text.len().min(9)..] {
                    b"all" => allowed.nonfatal = (true, true),
                    b"override" => allowed.nonfatal.1 = true,
                    b"unknown" => allowed.nonfatal.0 = true,
                    _ => self.report_at(
                        directive,
                        word.at,
                        word.len,
                        Finding::error("`Nonfatal=` is All, Override or Unknown"),
                    ),
                },
                _ => {
                    let finding =
                        Finding::error(format!("unknown class of directives {}", show(&word.text)))
                            .hint("All, AuthConfig, FileInfo, Indexes, Limit, Options or None");
                    self.report_at(directive, word.at, word.len, finding);
                }
            }
        }
        if let Some(list) = &context.dir.config.allow_override {
            allowed.names.clone_from(&list.names);
        }
        context.dir.config.allow_override = Some(Arc::new(allowed));
    }

    pub(super) fn allow_override_list(
        &mut self,
        directive: &Directive<'_>,
        context: &mut Context<'_>,
    ) {
        if context.scope != Scope::Directory {
            // httpd has nothing against it, and looks at it nowhere else.
            let finding =
                Finding::warning("`AllowOverrideList` has no effect outside `<Directory>`");
            return self.report(directive, finding);
        }
        let mut allowed = context.dir.config.allow_override.as_deref().cloned().unwrap_or_default();
        let names = Words::new(directive.args)
            .map(|word| word.text.to_ascii_lowercase().into_boxed_slice());
        allowed.names = names.filter(|name| &**name != b"none").collect();
        context.dir.config.allow_override = Some(Arc::new(allowed));
    }

    pub(super) fn directory_index(&mut self, directive: &Directive<'_>, context: &mut Context<'_>) {
        // Lines add up; `disabled` alone takes back what they said.
        let words: Vec<Box<[u8]>> =
            Words::new(directive.args).map(|word| (&*word.text).into()).collect();
        let names = match words.as_slice() {
            [only] if only.eq_ignore_ascii_case(b"disabled") => Vec::new(),
            words => [context.dir.config.index.as_deref().unwrap_or_default(), words].concat(),
        };
        context.dir.config.index = Some(names.into());
    }

    pub(super) fn directory_slash(&mut self, directive: &Directive<'_>, context: &mut Context<'_>) {
        context.dir.config.slash = self.flag(directive).or(context.dir.config.slash);
    }

    /// `LimitRequestBody`
    pub(super) fn limit_content(&mut self, directive: &Directive<'_>, context: &mut Context<'_>) {
        let Some(words) = self.words(directive, 1, 1, "LimitRequestBody bytes") else { return };
        let bytes = std::str::from_utf8(&words[0].text).ok().and_then(|text| text.parse().ok());
        match bytes {
            Some(bytes) => context.dir.config.content_max = Some(bytes),
            None => {
                let message = format!("{} is no number of bytes", show(&words[0].text));
                let finding = Finding::error(message).hint("0 stands for no limit");
                self.report_at(directive, words[0].at, words[0].len, finding);
            }
        }
    }

    pub(super) fn listen_backlog(&mut self, directive: &Directive<'_>) {
        if self.has_right_values(directive, b"listenbacklog")
            && let Some(backlog) = self.one_number(directive)
        {
            self.settings.listen_backlog = i32::try_from(backlog).unwrap_or(i32::MAX);
        }
    }

    /// Whether this is the main server; an error otherwise.
    pub(super) fn main_only(&mut self, directive: &Directive<'_>, context: &Context<'_>) -> bool {
        if context.scope != Scope::Main {
            let message = format!("{} belongs outside all sections", show(directive.name));
            self.report(directive, Finding::error(message));
        }
        context.scope == Scope::Main
    }

    /// Whether this is the main server or a virtual host; an error otherwise.
    pub(super) fn server_only(&mut self, directive: &Directive<'_>, context: &Context<'_>) -> bool {
        if !context.scope.is_server() {
            let message = format!("{} is not allowed in a section", show(directive.name));
            let finding =
                Finding::error(message).hint("move it into the server or the `<VirtualHost>`");
            self.report(directive, finding);
        }
        context.scope.is_server()
    }

    /// A number that is not negative, read as in C: of `8k` it is 8, and what is no number is 0.
    pub(super) fn number(
        &mut self,
        directive: &Directive<'_>,
        word: &milepost_syntax::Word<'_>,
    ) -> Option<u32> {
        let number = u32::try_from(leading_number(&word.text)).ok();
        if let Some(number) = number
            && !word.text.iter().all(u8::is_ascii_digit)
        {
            let message = format!("{} is taken for {number}", show(&word.text));
            self.report_at(directive, word.at, word.len, Finding::warning(message));
        }
        number
    }

    pub(super) fn one_number(&mut self, directive: &Directive<'_>) -> Option<u32> {
        let name = String::from_utf8_lossy(directive.name).into_owned();
        let words = self.words(directive, 1, 1, &format!("{name} number"))?;
        let number = self.number(directive, &words[0]);
        if number.is_none() {
            let finding =
                Finding::error(format!("{name} needs a number, not {}", show(&words[0].text)));
            self.report_at(directive, words[0].at, words[0].len, finding);
        }
        number
    }

    /// Seconds, or a number with the unit `ms`, `s`, `min` or `h`.
    pub(super) fn one_duration(&mut self, directive: &Directive<'_>) -> Option<Duration> {
        let name = String::from_utf8_lossy(directive.name).into_owned();
        let words = self.words(directive, 1, 1, &format!("{name} seconds"))?;
        let text = String::from_utf8_lossy(&words[0].text).to_ascii_lowercase();
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let number: Option<u64> = text[..digits].parse().ok();
        let unit_ms = match &text[digits..] {
            "" | "s" => Some(1000),
            "ms" => Some(1),
            "mi" | "min" => Some(60_000),
            "h" => Some(3_600_000),
            _ => None,
        };
        let time = number.zip(unit_ms).and_then(|(number, unit)| number.checked_mul(unit));
        if time.is_none() {
            let finding =
                Finding::error(format!("{name} needs a time, not {}", show(&words[0].text)))
                    .hint("write seconds, or a number with `ms`, `s`, `min` or `h`");
            self.report_at(directive, words[0].at, words[0].len, finding);
        }
        time.map(Duration::from_millis)
    }
}

/// A path without its last slashes, unless it is the root.
fn trim_slashes(path: &[u8]) -> &[u8] {
    let end = path.iter().rposition(|&byte| byte != b'/').map_or(0, |at| at + 1);
    &path[..end]
}
