//! The table of directives: which are done, by what, and which are known and change nothing here.

use milepost_pcre::Case;

use super::known::{self, Args, Known, Place};
use super::modules::foreign_file;
use super::report::{Finding, show};
use super::{Builder, Context, Directive, protocol, tls};
use crate::program::Scope;

/// Longest name of a directive.
const NAME_BYTES_MAX: usize = 64;

impl Builder<'_> {
    /// Runs one directive.
    pub(super) fn directive(&mut self, directive: &Directive<'_>, context: &mut Context<'_>) {
        let mut buffer = [0; NAME_BYTES_MAX];
        let name = directive.name;
        let name =
            name.strip_prefix(b"\"").and_then(|name| name.strip_suffix(b"\"")).unwrap_or(name);
        let Some(lower) = buffer.get_mut(..name.len()) else { return self.unknown(directive) };
        lower.copy_from_slice(name);
        lower.make_ascii_lowercase();
        let Some(known) = self.look_up(lower) else {
            return self.unknown_or_foreign(directive, lower);
        };
        if !self.may_stand(directive, known, context) {
            return;
        }
        if !self.fits_container(directive, lower) {
            return;
        }
        if known.is_core() {
            context.dir.config.refuse_encoded_slashes();
        }
        let before = self.diagnostics.len();
        match &*lower {
            b"redirect" => self.redirect(directive, context),
            b"redirectmatch" => self.redirect_match(directive, context),
            b"redirectpermanent" => self.redirect_fixed(directive, 301, context),
            b"redirecttemp" => self.redirect_fixed(directive, 302, context),
            b"redirectrelative" => self.redirect_relative(directive, context),
            b"rewriterule" => self.rewrite_rule(directive, context),
            b"rewritecond" => self.rewrite_condition(directive, context),
            b"rewriteengine" => self.rewrite_engine(directive, context),
            b"rewritebase" => self.rewrite_base(directive, context),
            b"rewritemap" => self.rewrite_map(directive, context),
            b"dbdriver" => self.database_driver(directive, context),
            b"dbdparams" => self.database_params(directive, context),
            b"dbdinitsql" => self.database_init(directive, context),
            b"dbdpreparesql" => self.database_prepare(directive, context),
            b"dbdpersist" => self.database_persist(directive, context),
            b"dbdmin" | b"dbdkeep" | b"dbdmax" | b"dbdexptime" => {
                self.database_number(directive, context);
            }
            b"rewriteoptions" => self.rewrite_options(directive, context),
            b"alias" => self.alias(directive, context),
            b"aliasmatch" => self.alias_match(directive, context),
            b"scriptalias" => self.script_alias(directive, context, Self::alias),
            b"scriptaliasmatch" => self.script_alias(directive, context, Self::alias_match),
            b"aliaspreservepath" => self.alias_preserve_path(directive, context),
            b"proxypass" => self.proxy_pass(directive, false, context),
            b"proxypassmatch" => self.proxy_pass(directive, true, context),
            b"proxypassreverse" => self.proxy_pass_reverse(directive, context),
            b"proxypassreversecookiedomain" => self.proxy_cookie(directive, true, context),
            b"proxypassreversecookiepath" => self.proxy_cookie(directive, false, context),
            b"proxypassinherit" => self.proxy_pass_inherit(directive, context),
            b"proxypassinterpolateenv" => {
                self.proxy_flag(directive, |proxy| &mut proxy.interpolate, context);
            }
            b"proxypreservehost" => {
                self.proxy_flag(directive, |proxy| &mut proxy.preserve_host, context);
            }
            b"proxyaddheaders" => {
                self.proxy_flag(directive, |proxy| &mut proxy.add_fields, context);
            }
            b"proxyerroroverride" => self.proxy_error_override(directive, context),
            b"proxyrequests" => self.proxy_requests(directive),
            b"proxytimeout" => self.proxy_timeout(directive, context),
            b"proxyvia" => self.proxy_via(directive, context),
            b"proxyset" => self.proxy_set(directive, context),
            b"balancermember" => self.balancer_member(directive, context),
            b"proxyremote" | b"proxyremotematch" | b"proxysourceaddress" => {
                self.proxy_unsupported(directive, known);
            }
            b"header" => self.header(directive, context),
            b"requestheader" => self.request_header(directive, context),
            b"errordocument" => self.error_document(directive, context),
            b"setenvif" => self.set_env_if(directive, Case::Sensitive, context),
            b"setenvifnocase" => self.set_env_if(directive, Case::Insensitive, context),
            b"setenvifexpr" => self.set_env_if_expr(directive, context),
            b"browsermatch" => self.browser_match(directive, Case::Sensitive, context),
            b"browsermatchnocase" => self.browser_match(directive, Case::Insensitive, context),
            b"setenv" => self.set_env(directive, context),
            b"passenv" => self.pass_env(directive, context),
            b"unsetenv" => self.unset_env(directive, context),
            b"require" => self.require(directive, context),
            b"authmerging" => self.auth_merging(directive, context),
            b"authtype" => self.auth_type(directive, context),
            b"authname" => self.auth_name(directive, context),
            b"satisfy" => self.satisfy(directive, context),
            b"order" => self.order(directive, context),
            b"allow" | b"deny" => self.allow_or_deny(directive, context),
            b"include" => self.include(directive, true, context),
            b"includeoptional" => self.include(directive, false, context),
            b"define" => self.define(directive),
            b"undefine" => self.undefine(directive),
            b"use" => self.use_macro(directive, context),
            b"undefmacro" => self.undefine_macro(directive),
            b"accessfilename" => self.access_file_name(directive, context),
            b"loadmodule" => self.load_module(directive),
            b"loadfile" => self.load_file(directive),
            b"listen" => self.listen(directive, context),
            b"serverroot" => self.server_root(directive),
            b"servername" => self.server_name(directive, context),
            b"serveralias" => self.server_alias(directive, context),
            b"serveradmin" => self.server_admin(directive),
            b"documentroot" => self.document_root(directive, context),
            b"usecanonicalname" => self.use_canonical_name(directive, context),
            b"usecanonicalphysicalport" => self.use_physical_port(directive, context),
            b"serverpath" => self.server_path(directive, context),
            b"mergeslashes" => self.merge_slashes(directive, context),
            b"allowencodedslashes" => self.allow_encoded_slashes(directive, context),
            b"acceptpathinfo" => self.accept_path_info(directive, context),
            b"limitinternalrecursion" => self.limit_recursion(directive, context),
            b"options" => self.options(directive, context),
            b"allowoverride" => self.allow_override(directive, context),
            b"allowoverridelist" => self.allow_override_list(directive, context),
            b"directoryindex" => self.directory_index(directive, context),
            b"directoryindexredirect" => self.directory_index_redirect(directive, context),
            b"directorycheckhandler" => self.directory_check_handler(directive, context),
            b"fallbackresource" => self.fallback_resource(directive, context),
            b"directoryslash" => self.directory_slash(directive, context),
            b"keepalive"
            | b"keepalivetimeout"
            | b"maxkeepaliverequests"
            | b"timeout"
            | b"limitrequestline"
            | b"limitrequestfields"
            | b"limitrequestfieldsize" => {
                self.connection_directive(lower, directive, context.server);
            }
            b"limitrequestbody" => self.limit_content(directive, context),
            b"listenbacklog" => self.listen_backlog(directive),
            b"maxrequestworkers" | b"maxclients" => self.max_request_workers(directive, context),
            b"asyncrequestworkerfactor" => self.async_factor(directive, context),
            b"gracefulshutdowntimeout" => self.graceful_timeout(directive, context),
            b"pidfile" => self.pid_file(directive, context),
            b"user" => self.user(directive, context),
            b"group" => self.group(directive, context),
            b"requestreadtimeout" => self.request_read_timeout(directive, context),
            b"logformat" => self.log_format(directive, context),
            b"customlog" => self.custom_log(directive, context, false),
            b"globallog" => self.custom_log(directive, context, true),
            b"transferlog" => self.transfer_log(directive, context),
            b"errorlog" => self.error_log(directive, context),
            b"errorlogformat" => self.error_log_format(directive, context),
            lower if tls::is_directive(lower) => self.tls_directive(lower, directive, context),
            lower if protocol::is_directive(lower) => {
                self.protocol_directive(lower, directive, context);
            }
            b"error" => self.report(directive, Finding::error(show(directive.args))),
            _ if known.args == Args::Section => self.unknown(directive),
            lower => {
                if self.has_right_count(directive, known)
                    && self.has_right_values(directive, lower)
                    && !self.filter(directive, lower, context)
                    && !self.mime(directive, lower, context)
                    && !self.listing(directive, lower, context)
                    && !self.serving(directive, lower, context)
                    && !self.trace_enable(directive, lower, context)
                    && !self.spelling(directive, lower, context)
                    && !self.allow_methods(directive, lower, context)
                    && !self.roots(directive, lower, context)
                    && !self.remote_ip(directive, lower, context)
                    && !self.log_level(directive, lower, context)
                {
                    match lower {
                        b"regexdefaultoptions" => self.regex_default_options(directive),
                        _ => self.without_effect(directive, lower),
                    }
                }
            }
        }
        if self.diagnostics.len() == before {
            self.warn_of_comment(directive, lower);
        }
    }

    /// Finds a directive, or a section by its name with `<`, if its module is loaded.
    fn look_up(&mut self, lower: &[u8]) -> Option<&'static Known> {
        let (known, is_there) = match self.last_known {
            Some((known, is_there)) if known.name.as_bytes().eq_ignore_ascii_case(lower) => {
                (known, is_there)
            }
            _ => {
                let known = known::find(lower)?;
                (known, self.names.modules.know(known))
            }
        };
        self.last_known = Some((known, is_there));
        is_there.then_some(known)
    }

    /// `<IfDirective name>`
    pub(super) fn has_directive(&mut self, name: &[u8]) -> bool {
        let known = self.look_up(&name.to_ascii_lowercase());
        known.is_some_and(|known| known.args != Args::Section)
    }

    /// `<IfSection name>`
    pub(super) fn has_section(&mut self, name: &[u8]) -> bool {
        self.look_up(&[b"<", &*name.to_ascii_lowercase()].concat()).is_some()
    }

    /// Whether a directive may stand where it stands; an error otherwise, unless that is not fatal.
    fn may_stand(
        &mut self,
        directive: &Directive<'_>,
        known: &Known,
        context: &Context<'_>,
    ) -> bool {
        if let Some(allowed) = &self.allowed {
            let is_allowed = known.is_allowed(allowed);
            if !is_allowed {
                let is_warning = allowed.nonfatal.1;
                self.not_allowed(directive, show(directive.name), is_warning);
            }
            return is_allowed;
        }
        match known.place {
            Place::Main => self.main_only(directive, context),
            Place::Proxy if context.scope == Scope::Proxy => true,
            Place::Server | Place::Proxy => self.server_only(directive, context),
            Place::Section => self.section_only(directive, context),
            Place::Anywhere => true,
        }
    }

    /// The section, if there is such a one and a `.htaccess` file may have it: any class will do, and a list
    /// names it as `<Files`.
    pub(super) fn may_open(
        &mut self,
        directive: &Directive<'_>,
        lower: &[u8],
    ) -> Option<&'static Known> {
        let Some(known) = self.look_up(&[b"<", lower].concat()) else {
            let name = format!("`<{}>`", String::from_utf8_lossy(directive.name));
            let finding = Finding::error(format!("unknown section {name}"));
            let finding = self.hint_at_module(&[b"<", lower].concat(), finding);
            self.report(directive, finding);
            return None;
        };
        let Some(allowed) = &self.allowed else { return Some(known) };
        let is_allowed = known.is_allowed(allowed);
        if !is_allowed {
            let is_warning = allowed.nonfatal.1;
            let name = format!("`<{}`", String::from_utf8_lossy(directive.name));
            self.not_allowed(directive, name, is_warning);
        }
        is_allowed.then_some(known)
    }

    fn not_allowed(&mut self, directive: &Directive<'_>, name: String, is_warning: bool) {
        let message = format!("{name} is not allowed here");
        let finding = if is_warning { Finding::warning(message) } else { Finding::error(message) };
        self.report(
            directive,
            finding.hint("`AllowOverride` of the directory decides what a `.htaccess` may say"),
        );
    }

    /// Notes once that a directive is known and does nothing here.
    fn without_effect(&mut self, directive: &Directive<'_>, lower: &[u8]) {
        if !self.noted.iter().any(|noted| noted == lower) {
            self.noted.push(lower.to_vec());
            let name = show(directive.name);
            let open = NOT_SAFE.iter().find(|(known, ..)| known.as_bytes() == lower);
            let finding = if let Some((_, what, instead)) = open {
                Finding::not_served(format!("{name} is not done here, and {what}")).hint(*instead)
            } else if NOT_DONE.iter().any(|known| known.as_bytes() == lower) {
                Finding::warning(format!("{name} changes answers in Apache, and is not done here"))
            } else {
                Finding::note(format!("{name} is accepted and has no effect here"))
            };
            self.report(directive, finding);
        }
    }

    /// A directive that httpd does not have: another module's, or none.
    fn unknown_or_foreign(&mut self, directive: &Directive<'_>, lower: &[u8]) {
        match self.names.modules.foreign(lower) {
            Some(_) => self.without_effect(directive, lower),
            None => self.unknown(directive),
        }
    }

    pub(super) fn unknown(&mut self, directive: &Directive<'_>) {
        let message = format!("unknown directive {}", show(directive.name));
        if self.allowed.as_ref().is_some_and(|allowed| allowed.nonfatal.0) {
            return self.report(directive, Finding::warning(message));
        }
        let lower = directive.name.to_ascii_lowercase();
        let finding = self.hint_at_module(&lower, Finding::error(message));
        self.report(directive, finding);
    }

    /// Says what an unknown directive or section lacks: its module, or the right letters.
    fn hint_at_module(&self, lower: &[u8], finding: Finding) -> Finding {
        let Some(known) = known::find(lower).filter(|known| !known.modules.is_empty()) else {
            return match (gone(lower), foreign_file(lower), nearest(lower)) {
                (Some(instead), ..) => finding.hint(format!("Apache 2.4 does not have it: {instead}")),
                (_, Some(file), _) => finding.hint(format!(
                    "it belongs to {file}, which is not of httpd; `<IfModule {file}>` around it leaves it out"
                )),
                (.., Some(name)) => finding.hint(format!("did you mean `{name}`?")),
                _ => finding,
            };
        };
        let module = known.modules.split(' ').next().unwrap_or_default();
        finding.hint(format!(
            "it belongs to {module}, which no `LoadModule` line loads; `<IfModule {module}>` around it \
             leaves it out then"
        ))
    }

    /// Whether a directive has as many arguments as it takes; an error otherwise.
    pub(super) fn has_right_count(&mut self, directive: &Directive<'_>, known: &Known) -> bool {
        let name = known.name;
        match known.args {
            Args::Flag => self.flag(directive).is_some(),
            Args::Count(1, 1) => self.words(directive, 1, 1, &format!("{name} value")).is_some(),
            Args::Count(least, most) => {
                let usage = match (least, most) {
                    (2, 2) => format!("{name} one other"),
                    (3, 3) => format!("{name} one other third"),
                    (1, usize::MAX) => format!("{name} one other…"),
                    (_, usize::MAX) => format!("{name} one other third…"),
                    (least, most) => {
                        format!("{name}` with {least} to {most} arguments: `{name} one")
                    }
                };
                self.words(directive, least, most, &usage).is_some()
            }
            Args::OneOrThree => {
                let usage = format!("{name} one` or `{name} one other third");
                self.words(directive, 1, 3, &usage).is_some_and(|words| {
                    let fits = words.len() != 2;
                    if !fits {
                        let finding =
                            Finding::error(format!("`{name}` takes one argument or three"));
                        self.report(directive, finding.hint(format!("write `{usage}`")));
                    }
                    fits
                })
            }
            Args::Line | Args::Section => true,
        }
    }

    /// The words of a directive that takes between `least` and `most`; an error otherwise.
    pub(super) fn words<'d>(
        &mut self,
        directive: &Directive<'d>,
        least: usize,
        most: usize,
        usage: &str,
    ) -> Option<Vec<milepost_syntax::Word<'d>>> {
        let words = directive.words();
        // An empty word ends the arguments that must be there.
        let empty = words.iter().take(least).any(|word| word.text.is_empty());
        if (least..=most).contains(&words.len()) && !empty {
            return Some(words);
        }
        let few = words.len() < least || empty;
        let message = format!(
            "{} has too {} arguments",
            show(directive.name),
            if few { "few" } else { "many" }
        );
        let finding = Finding::error(message).hint(format!("write `{usage}`"));
        match words.get(most) {
            // A comment after the arguments is more arguments.
            Some(extra) if extra.text.starts_with(b"#") => {
                let finding = finding.hint("a comment needs a line of its own");
                self.report_at(directive, extra.at, extra.len, finding);
            }
            Some(extra) => self.report_at(directive, extra.at, extra.len, finding),
            None => self.report(directive, finding),
        }
        None
    }

    /// As [`Builder::flag`], where httpd takes nothing behind the word.
    pub(super) fn lone_flag(&mut self, directive: &Directive<'_>) -> Option<bool> {
        let name = String::from_utf8_lossy(directive.name).into_owned();
        self.words(directive, 1, 1, &format!("{name} On|Off"))?;
        self.flag(directive)
    }

    /// The one word of a directive, `on` or `off`.
    pub(super) fn flag(&mut self, directive: &Directive<'_>) -> Option<bool> {
        let name = String::from_utf8_lossy(directive.name).into_owned();
        // httpd reads one word and looks no further.
        let words = self.words(directive, 1, usize::MAX, &format!("{name} On|Off"))?;
        match words[0].text.to_ascii_lowercase().as_slice() {
            b"on" => Some(true),
            b"off" => Some(false),
            _ => {
                let finding = Finding::error(format!("{name} is `On` or `Off`"));
                self.report_at(directive, words[0].at, words[0].len, finding);
                None
            }
        }
    }
}

/// Directives, in lower case, that change answers in httpd and are only read here.
const NOT_DONE: &[&str] = &[
    "authbasicfake",
    "authzsendforbiddenonfailure",
    "dav",
    "luahookauthchecker",
    "luahookcheckuserid",
    "luahookfixups",
    "luahookmaptostorage",
    "luahooktranslatename",
    "luamaphandler",
    "luaquickhandler",
    "outputsed",
    "proxyhtmlenable",
    "script",
    "substitute",
    "xbithack",
];

/// Directives, in lower case, without which something would be open: what that is, and what to write instead.
const NOT_SAFE: &[(&str, &str, &str)] = &[(
    "luahookaccesschecker",
    "whom the script keeps out would be let in",
    "write `Require`, with `expr` if need be",
)];

/// The known name that is nearest to `name`, in lower case, if one is near.
/// What to write instead of a directive, in lower case, that httpd had once.
fn gone(lower: &[u8]) -> Option<&'static str> {
    Some(match lower {
        b"rewritelog" | b"rewriteloglevel" => "`LogLevel rewrite:trace3` writes to the `ErrorLog`",
        b"ssllog" | b"sslloglevel" => "`LogLevel ssl:info` writes to the `ErrorLog`",
        b"rewritelock" | b"acceptmutex" | b"lockfile" | b"sslmutex" => "write `Mutex`",
        b"cookielog" => "write `CustomLog`",
        b"bindaddress" => "write `Listen`",
        b"addmodule" | b"clearmodulelist" => "write `LoadModule`",
        b"accessconfig" | b"resourceconfig" => "write `Include`",
        b"servertype" => "leave it out",
        _ => return None,
    })
}

fn nearest(name: &[u8]) -> Option<&'static str> {
    let name = String::from_utf8_lossy(name);
    let distance = |known: &Known| edit_distance(&name, &known.name.to_lowercase());
    let found = known::entries().min_by_key(distance)?;
    (distance(&found) <= 1 + name.len() / 5).then_some(found.name)
}

/// Insertions, removals and replacements from `a` to `b`.
fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, left) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, right) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(left != *right);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
