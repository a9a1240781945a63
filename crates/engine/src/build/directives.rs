//! The table of directives: which are done, by what, and which are known and change nothing here.

use milepost_pcre::Case;
use milepost_syntax::Words;

use super::harmless::{self, Class};
use super::report::{Finding, show};
use super::{Builder, Context, Directive, protocol, tls};

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
        if !self.is_allowed(directive, lower) {
            return;
        }
        if !self.fits_container(directive, lower) {
            return;
        }
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
                self.proxy_unsupported(directive);
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
            b"directorycheckhandler" => self.directory_check_handler(directive),
            b"fallbackresource" => self.fallback_resource(directive, context),
            b"directoryslash" => self.directory_slash(directive, context),
            b"keepalive" => self.keep_alive(directive),
            b"keepalivetimeout" => self.keep_alive_timeout(directive),
            b"maxkeepaliverequests" => self.keep_alive_requests(directive),
            b"timeout" => self.timeout(directive),
            b"limitrequestline" => {
                self.limit(directive, |settings| &mut settings.request_line_bytes_max)
            }
            b"limitrequestfields" => self.limit(directive, |settings| &mut settings.fields_max),
            b"limitrequestfieldsize" => {
                self.limit(directive, |settings| &mut settings.field_bytes_max)
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
            lower if tls::is_directive(lower) => self.tls_directive(lower, directive, context),
            lower if protocol::is_directive(lower) => {
                self.protocol_directive(lower, directive, context);
            }
            lower if lower.starts_with(b"php_") && !self.loads_php() => self.unknown(directive),
            lower if harmless::class(lower).is_some() => {
                self.without_effect(directive, lower);
            }
            _ => self.unknown(directive),
        }
    }

    /// Whether a `.htaccess` file may have the directive; an error otherwise, unless that is not fatal.
    fn is_allowed(&mut self, directive: &Directive<'_>, lower: &[u8]) -> bool {
        let Some(allowed) = self.allowed.clone() else { return true };
        let class = match lower {
            b"redirect"
            | b"redirectmatch"
            | b"redirectpermanent"
            | b"redirecttemp"
            | b"redirectrelative"
            | b"aliaspreservepath"
            | b"rewriterule"
            | b"rewritecond"
            | b"rewriteengine"
            | b"rewritebase"
            | b"rewriteoptions"
            | b"errordocument"
            | b"setenv"
            | b"unsetenv"
            | b"setenvif"
            | b"setenvifnocase"
            | b"browsermatch"
            | b"browsermatchnocase"
            | b"header"
            | b"requestheader"
            | b"acceptpathinfo"
            | b"passenv" => allowed.file_info,
            b"limitrequestbody" => true,
            b"directoryindex"
            | b"directoryindexredirect"
            | b"directorycheckhandler"
            | b"directoryslash"
            | b"fallbackresource" => allowed.indexes,
            b"options" | b"ssloptions" => allowed.options,
            b"order" | b"allow" | b"deny" => allowed.limit,
            b"require" | b"satisfy" | b"authmerging" | b"authtype" | b"authname"
            | b"sslrequire" | b"sslrequiressl" => allowed.auth_config,
            b"accessfilename"
            | b"include"
            | b"includeoptional"
            | b"define"
            | b"undefine"
            | b"loadmodule"
            | b"listen"
            | b"serverroot"
            | b"servername"
            | b"serveralias"
            | b"serveradmin"
            | b"documentroot"
            | b"alias"
            | b"aliasmatch"
            | b"scriptalias"
            | b"scriptaliasmatch"
            | b"rewritemap"
            | b"dbdriver"
            | b"dbdparams"
            | b"dbdinitsql"
            | b"dbdpreparesql"
            | b"dbdpersist"
            | b"dbdmin"
            | b"dbdkeep"
            | b"dbdmax"
            | b"dbdexptime"
            | b"allowoverride"
            | b"allowoverridelist"
            | b"keepalive"
            | b"keepalivetimeout"
            | b"maxkeepaliverequests"
            | b"timeout"
            | b"maxrequestworkers"
            | b"maxclients"
            | b"asyncrequestworkerfactor"
            | b"gracefulshutdowntimeout"
            | b"limitinternalrecursion"
            | b"mergeslashes"
            | b"allowencodedslashes"
            | b"usecanonicalname"
            | b"usecanonicalphysicalport"
            | b"serverpath" => false,
            lower if lower.starts_with(b"proxy") || lower == b"balancermember" => false,
            lower => match harmless::class(lower) {
                None => return true,
                Some(Class::Server) => false,
                Some(Class::FileInfo) => allowed.file_info,
                Some(Class::Indexes) => allowed.indexes,
                Some(Class::Options) => allowed.options,
                Some(Class::AuthConfig) => allowed.auth_config,
            },
        };
        if class || allowed.names.iter().any(|name| **name == *lower) {
            return true;
        }
        self.not_allowed(directive, show(directive.name), allowed.nonfatal.1);
        false
    }

    /// Whether a `.htaccess` file may have the section. Any class will do; a list names it as `<Files`.
    pub(super) fn is_section_allowed(&mut self, directive: &Directive<'_>, lower: &[u8]) -> bool {
        let Some(allowed) = self.allowed.clone() else { return true };
        let is_listed = |name: &[u8]| name.strip_prefix(b"<") == Some(lower);
        if allowed.has_class() || allowed.names.iter().any(|name| is_listed(name)) {
            return true;
        }
        let name = format!("`<{}`", String::from_utf8_lossy(directive.name));
        self.not_allowed(directive, name, allowed.nonfatal.1);
        false
    }

    fn not_allowed(&mut self, directive: &Directive<'_>, name: String, is_warning: bool) {
        let message = format!("{name} is not allowed here");
        let finding = if is_warning { Finding::warning(message) } else { Finding::error(message) };
        self.report(
            directive,
            finding.hint("`AllowOverride` of the directory decides what a `.htaccess` may say"),
        );
    }

    /// Whether a module of PHP is named by `LoadModule`: the only one whose directives sites write
    /// without asking for it, and httpd refuses them then.
    fn loads_php(&self) -> bool {
        let php = |module: &Vec<u8>| module.starts_with(b"php") && module.ends_with(b"_module");
        self.names.modules.iter().any(php)
    }

    /// Notes once that a directive is known and changes no answer.
    fn without_effect(&mut self, directive: &Directive<'_>, lower: &[u8]) {
        if !self.noted.iter().any(|noted| noted == lower) {
            self.noted.push(lower.to_vec());
            let message = format!("{} is accepted and has no effect here", show(directive.name));
            self.report(directive, Finding::note(message));
        }
    }

    pub(super) fn unknown(&mut self, directive: &Directive<'_>) {
        let mut finding = Finding::error(format!("unknown directive {}", show(directive.name)));
        if let Some(name) = nearest(directive.name) {
            finding = finding.hint(format!("did you mean `{name}`?"));
        }
        if self.allowed.as_ref().is_some_and(|allowed| allowed.nonfatal.0) {
            finding = Finding::warning(format!("unknown directive {}", show(directive.name)));
        }
        self.report(directive, finding);
    }

    /// The words of a directive that takes between `least` and `most`; an error otherwise.
    pub(super) fn words<'d>(
        &mut self,
        directive: &Directive<'d>,
        least: usize,
        most: usize,
        usage: &str,
    ) -> Option<Vec<milepost_syntax::Word<'d>>> {
        let words: Vec<_> = Words::new(directive.args).collect();
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

/// All names that mean something here, for the nearest-name hint.
const DONE: &[&str] = &[
    "Redirect",
    "RedirectMatch",
    "RedirectPermanent",
    "RedirectTemp",
    "RedirectRelative",
    "RewriteRule",
    "RewriteCond",
    "RewriteEngine",
    "RewriteBase",
    "RewriteMap",
    "DBDriver",
    "DBDParams",
    "DBDInitSQL",
    "DBDPrepareSQL",
    "DBDPersist",
    "RewriteOptions",
    "Alias",
    "AliasMatch",
    "ScriptAlias",
    "ScriptAliasMatch",
    "AliasPreservePath",
    "Require",
    "AuthMerging",
    "AuthType",
    "AuthName",
    "Satisfy",
    "Order",
    "Allow",
    "Deny",
    "Include",
    "IncludeOptional",
    "Define",
    "UnDefine",
    "Use",
    "UndefMacro",
    "AccessFileName",
    "LoadModule",
    "Listen",
    "ServerRoot",
    "ServerName",
    "ServerAlias",
    "ServerAdmin",
    "DocumentRoot",
    "UseCanonicalName",
    "UseCanonicalPhysicalPort",
    "ServerPath",
    "MergeSlashes",
    "AllowEncodedSlashes",
    "AcceptPathInfo",
    "LimitInternalRecursion",
    "Options",
    "AllowOverride",
    "AllowOverrideList",
    "DirectoryIndex",
    "DirectoryIndexRedirect",
    "DirectoryCheckHandler",
    "FallbackResource",
    "DirectorySlash",
    "KeepAlive",
    "KeepAliveTimeout",
    "MaxKeepAliveRequests",
    "Timeout",
    "LimitRequestLine",
    "LimitRequestFields",
    "LimitRequestFieldSize",
    "LimitRequestBody",
    "ListenBacklog",
    "MaxRequestWorkers",
    "MaxClients",
    "AsyncRequestWorkerFactor",
    "GracefulShutdownTimeout",
    "PidFile",
    "User",
    "Group",
    "RequestReadTimeout",
    "LogFormat",
    "CustomLog",
    "GlobalLog",
    "TransferLog",
    "ErrorLog",
    "Protocols",
    "ProtocolsHonorOrder",
    "H2Direct",
    "H2MaxSessionStreams",
    "H2WindowSize",
    "SSLCACertificateFile",
    "SSLCACertificatePath",
    "SSLCADNRequestFile",
    "SSLCADNRequestPath",
    "SSLCARevocationCheck",
    "SSLCARevocationFile",
    "SSLCARevocationPath",
    "SSLCertificateChainFile",
    "SSLCertificateFile",
    "SSLCertificateKeyFile",
    "SSLCipherSuite",
    "SSLCompression",
    "SSLEngine",
    "SSLFIPS",
    "SSLHonorCipherOrder",
    "SSLInsecureRenegotiation",
    "SSLOCSPEnable",
    "SSLOpenSSLConfCmd",
    "SSLOptions",
    "SSLProtocol",
    "SSLRequire",
    "SSLRequireSSL",
    "SSLSessionCache",
    "SSLSessionCacheTimeout",
    "SSLSessionTicketKeyFile",
    "SSLSessionTickets",
    "SSLStrictSNIVHostCheck",
    "SSLUserName",
    "SSLUseStapling",
    "SSLVerifyClient",
    "SSLVerifyDepth",
    "SSLVHostSNIPolicy",
    "ProxyPass",
    "ProxyPassMatch",
    "ProxyPassReverse",
    "ProxyPassReverseCookieDomain",
    "ProxyPassReverseCookiePath",
    "ProxyPassInherit",
    "ProxyPassInterpolateEnv",
    "ProxyPreserveHost",
    "ProxyAddHeaders",
    "ProxyErrorOverride",
    "ProxyRequests",
    "ProxyTimeout",
    "ProxyVia",
    "ProxySet",
    "BalancerMember",
    "ProxyRemote",
    "ProxyRemoteMatch",
    "ProxySourceAddress",
];

/// All sections, which `<IfSection>` asks for.
const SECTIONS: &[&str] = &[
    "VirtualHost",
    "Directory",
    "DirectoryMatch",
    "Location",
    "LocationMatch",
    "Files",
    "FilesMatch",
    "Proxy",
    "ProxyMatch",
    "Limit",
    "LimitExcept",
    "RequireAll",
    "RequireAny",
    "RequireNone",
    "If",
    "ElseIf",
    "Else",
    "IfModule",
    "IfDefine",
    "IfVersion",
    "IfFile",
    "IfDirective",
    "IfSection",
    "Macro",
];

/// Whether there is a directive with this name, in any case.
pub(super) fn is_directive(name: &[u8]) -> bool {
    DONE.iter().any(|known| known.as_bytes().eq_ignore_ascii_case(name))
        || harmless::class(&name.to_ascii_lowercase()).is_some()
}

/// Whether there is a section with this name, in any case.
pub(super) fn is_section(name: &[u8]) -> bool {
    SECTIONS.iter().any(|known| known.as_bytes().eq_ignore_ascii_case(name))
}

/// The known name that is nearest to `name`, if one is near.
fn nearest(name: &[u8]) -> Option<&'static str> {
    let name = String::from_utf8_lossy(name).to_lowercase();
    let distance = |known: &&&str| edit_distance(&name, &known.to_lowercase());
    let found = DONE.iter().chain(SECTIONS).min_by_key(distance)?;
    (distance(&found) <= 1 + name.len() / 5).then_some(*found)
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
