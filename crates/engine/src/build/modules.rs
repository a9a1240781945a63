//! Which modules count as loaded: what `<IfModule>` asks, and what decides whether a directive is known.
//!
//! A configuration with `LoadModule` lines says itself what is loaded, and a directive of any other module
//! is unknown, as in httpd. One without (an `.htaccess`, the file of a virtual host) leaves that to httpd's
//! main file, which is not there: then [`ASSUMED`] counts as loaded, and any directive of httpd is known.
//!
//! httpd loads modules while it reads and looks at other directives when everything has been read. Here all
//! happens at once, so a configuration that uses a module before it loads it is read a second time.
//!
//! Source: httpd 2.4.71 `modules/core/mod_so.c`; `server/config.c`, `ap_build_config_sub`,
//! `ap_walk_config_sub`; Debian's `apache2 -l` and `mods-enabled`.

use std::collections::HashSet;

use milepost_syntax::Word;

use super::known::Known;
use super::report::{Finding, show};
use super::{Builder, Directive};
use crate::outside::FileKind;

/// What Debian builds in; other builds load some of it.
const BUILT_IN: &[&str] = &[
    "core.c",
    "mod_so.c",
    "http_core.c",
    "mod_watchdog.c",
    "mod_log_config.c",
    "mod_logio.c",
    "mod_version.c",
    "mod_unixd.c",
];

/// What counts as loaded where nothing says so: what Debian enables at first, and what configurations with
/// redirects use besides.
const ASSUMED: &[&str] = &[
    "event.c",
    "mod_access_compat.c",
    "mod_alias.c",
    "mod_auth_basic.c",
    "mod_authn_core.c",
    "mod_authn_file.c",
    "mod_authz_core.c",
    "mod_authz_host.c",
    "mod_authz_user.c",
    "mod_autoindex.c",
    "mod_deflate.c",
    "mod_dir.c",
    "mod_env.c",
    "mod_expires.c",
    "mod_filter.c",
    "mod_headers.c",
    "mod_include.c",
    "mod_macro.c",
    "mod_mime.c",
    "mod_negotiation.c",
    "mod_proxy.c",
    "mod_proxy_http.c",
    "mod_reqtimeout.c",
    "mod_rewrite.c",
    "mod_setenvif.c",
    "mod_ssl.c",
    "mod_status.c",
];

/// How modules run; a directive of theirs is known if none is loaded, because then it is built in.
const PROCESS_MODULES: &[&str] = &["event.c", "worker.c", "prefork.c"];

/// Modules that do not come with httpd: how their identifiers begin, and the names of their directives, in
/// lower case.
const FOREIGN: &[(&str, &[&str])] = &[
    ("php", &["php_", "phpinidir"]),
    ("security", &["sec", "modsecurity"]),
    ("suphp", &["suphp_"]),
    ("pagespeed", &["modpagespeed", "pagespeed"]),
    ("passenger", &["passenger", "rails", "rack"]),
    ("wsgi", &["wsgi"]),
    ("fcgid", &["fcgid"]),
    ("fastcgi", &["fastcgi"]),
    ("perl", &["perl"]),
    ("python", &["python"]),
    ("evasive", &["dos"]),
    ("jk", &["jk"]),
    ("xsendfile", &["xsendfile"]),
    ("geoip", &["geoip"]),
    ("maxminddb", &["maxminddb"]),
    ("cloudflare", &["cloudflare"]),
    ("rpaf", &["rpaf"]),
    ("auth_openidc", &["oidc"]),
    ("auth_cas", &["cas"]),
    ("mod_shib", &["shib"]),
    ("auth_mellon", &["mellon"]),
    ("auth_kerb", &["krb"]),
    ("auth_gssapi", &["gssapi"]),
    ("dav_svn", &["svn"]),
    ("authz_svn", &["authzsvn"]),
    ("qos", &["qs_"]),
    ("lsapi", &["lsapi"]),
];

/// How the names of handlers begin that run what is in a file, and the modules that have them, or how the
/// identifiers of those not of httpd begin.
const RUNNERS: &[(&str, &[&str])] = &[
    ("cgi-script", &["cgi_module", "cgid_module"]),
    ("lua-script", &["lua_module"]),
    ("application/x-httpd-", &["php", "suphp", "lsapi"]),
    ("x-httpd-", &["php", "suphp", "lsapi"]),
    ("php", &["php"]),
    ("fcgid-script", &["fcgid"]),
    ("fastcgi-script", &["fastcgi"]),
    ("wsgi-script", &["wsgi"]),
    ("perl-script", &["perl"]),
    ("modperl", &["perl"]),
    ("mod_python", &["python"]),
    ("python-program", &["python"]),
];

/// The file of the module not of httpd that has a directive of this name, in lower case.
pub(super) fn foreign_file(lower: &[u8]) -> Option<String> {
    let has = |starts: &[&str]| starts.iter().any(|start| lower.starts_with(start.as_bytes()));
    let (module, _) = FOREIGN.iter().find(|(_, starts)| has(starts))?;
    Some(format!("mod_{}.c", module.trim_start_matches("mod_")))
}

/// The modules of one load.
#[derive(Debug, Clone, Default)]
pub(crate) struct Modules {
    /// Identifiers and source files that `LoadModule` named so far.
    loaded: HashSet<Box<[u8]>>,
    /// Identifiers of those that do not come with httpd.
    foreign: Vec<Box<[u8]>>,
    /// What an earlier reading of the same configuration found in the end.
    later: Option<HashSet<Box<[u8]>>>,
    /// An `<IfModule>` held before the first `LoadModule`.
    held_early: bool,
    /// The modules of directives that were found known before the first `LoadModule`, and unknown after it.
    used_early: HashSet<&'static str>,
    missed: HashSet<&'static str>,
}

impl Modules {
    /// `LoadModule identifier file`
    pub(super) fn load(&mut self, identifier: &[u8]) {
        // The few whose source file is not named after them.
        let source = match identifier {
            b"mpm_event_module" => b"event.c".to_vec(),
            b"mpm_worker_module" => b"worker.c".to_vec(),
            b"mpm_prefork_module" => b"prefork.c".to_vec(),
            b"ldap_module" => b"util_ldap.c".to_vec(),
            _ => match identifier.strip_suffix(b"_module") {
                Some(name) => [b"mod_", name, b".c"].concat(),
                None => identifier.to_vec(),
            },
        };
        let is_foreign = FOREIGN.iter().any(|(start, _)| identifier.starts_with(start.as_bytes()));
        if is_foreign {
            self.foreign.push(identifier.into());
        }
        self.loaded.insert(source.into());
        self.loaded.insert(identifier.into());
    }

    /// Whether the configuration says itself what is loaded.
    pub(super) fn are_named(&self) -> bool {
        !self.loaded.is_empty() || self.later.as_ref().is_some_and(|later| !later.is_empty())
    }

    /// Whether a module counts as loaded for what depends on it; anything does where nothing is named.
    pub(crate) fn has(&self, source: &str) -> bool {
        let all = self.later.as_ref().unwrap_or(&self.loaded);
        !self.are_named() || is_there(source, all)
    }

    /// Whether a module counts as loaded that is named by its source file, its identifier, or the latter
    /// without `_module`.
    pub(super) fn is_called(&self, name: &[u8]) -> bool {
        let all = self.later.as_ref().unwrap_or(&self.loaded);
        let identifier = [name, b"_module"].concat();
        let is_built_in = |source: &&str| names(source, name) || names(source, &identifier);
        !self.are_named()
            || all.contains(name)
            || all.contains(&*identifier)
            || BUILT_IN.iter().any(is_built_in)
    }

    /// Whether `LoadModule` named a module by now.
    pub(crate) fn is_named(&self, name: &str) -> bool {
        self.loaded.contains(name.as_bytes())
    }

    /// Whether httpd would run what is in a file with this handler: a module does, or none is named at all.
    pub(crate) fn run(&self, handler: &[u8]) -> bool {
        let runner = RUNNERS.iter().find(|(start, _)| handler.starts_with(start.as_bytes()));
        let is_there = |start: &str| {
            let mut foreign = self.foreign.iter();
            self.is_named(start) || foreign.any(|name| name.starts_with(start.as_bytes()))
        };
        runner.is_some_and(|(_, modules)| {
            !self.are_named() || modules.iter().any(|module| is_there(module))
        })
    }

    /// `<IfModule name>`: by source file or identifier.
    pub(super) fn holds(&mut self, name: &[u8]) -> bool {
        let is_in = |list: &[&str]| list.iter().any(|source| names(source, name));
        if is_in(BUILT_IN) {
            return true;
        }
        if self.are_named() {
            return self.loaded.contains(name);
        }
        let holds = is_in(ASSUMED);
        self.held_early |= holds;
        holds
    }

    /// Whether one of the modules of a directive or section is there.
    pub(super) fn know(&mut self, known: &Known) -> bool {
        if !self.are_named() {
            self.used_early.insert(known.modules);
            return true;
        }
        let found = is_there(known.modules, self.later.as_ref().unwrap_or(&self.loaded));
        if !found {
            self.missed.insert(known.modules);
        }
        found
    }

    /// The module not of httpd that a directive, in lower case, belongs to, if it is loaded.
    pub(super) fn foreign(&self, lower: &[u8]) -> Option<&[u8]> {
        self.foreign.iter().map(|identifier| &**identifier).find(|identifier| {
            let ours = FOREIGN.iter().filter(|(start, _)| identifier.starts_with(start.as_bytes()));
            let mut starts = ours.flat_map(|(_, starts)| starts.iter());
            starts.any(|start| lower.starts_with(start.as_bytes()))
        })
    }

    /// What to read the configuration again with, if answers were given too early.
    pub(super) fn again(&self) -> Option<Modules> {
        if self.loaded.is_empty() || self.later.is_some() {
            return None;
        }
        let too_early = self.held_early
            || self.used_early.iter().any(|modules| !is_there(modules, &self.loaded))
            || self.missed.iter().any(|modules| is_there(modules, &self.loaded));
        too_early.then(|| Modules { later: Some(self.loaded.clone()), ..Modules::default() })
    }
}

impl Builder<'_> {
    /// The file need not be there: the configuration may be that of another machine.
    pub(super) fn load_module(&mut self, directive: &Directive<'_>) {
        let usage = "LoadModule name_module path/mod_name.so";
        let Some(words) = self.words(directive, 2, 2, usage) else { return };
        self.names.modules.load(&words[0].text);
        self.last_known = None;
        self.note_missing_library(directive, &words[1]);
    }

    /// `LoadFile library…`: nothing is loaded here.
    pub(super) fn load_file(&mut self, directive: &Directive<'_>) {
        let Some(words) = self.words(directive, 1, usize::MAX, "LoadFile library…") else {
            return;
        };
        for word in &words {
            self.note_missing_library(directive, word);
        }
    }

    /// Notes once that a library is not there, which keeps httpd from starting.
    fn note_missing_library(&mut self, directive: &Directive<'_>, word: &Word<'_>) {
        const NOTED: &[u8] = b"loadmodule";
        let path = self.resolve(&word.text);
        if self.outside.kind(&path) == FileKind::Missing
            && !self.noted.iter().any(|noted| noted == NOTED)
        {
            self.noted.push(NOTED.to_vec());
            let message =
                format!("{} is not on this machine, where httpd would not start", show(&word.text));
            let finding = Finding::note(message)
                .hint("here it counts as loaded, as all that `LoadModule` names");
            self.report_at(directive, word.at, word.len, finding);
        }
    }
}

/// Whether one of `modules`, source files with blanks between them, is built in or `loaded`.
fn is_there(modules: &str, loaded: &HashSet<Box<[u8]>>) -> bool {
    modules.split(' ').any(|source| {
        BUILT_IN.contains(&source)
            || loaded.contains(source.as_bytes())
            || PROCESS_MODULES.contains(&source)
                && !PROCESS_MODULES.iter().any(|other| loaded.contains(other.as_bytes()))
    })
}

/// Whether `name` is the module with this source file, by it or by its identifier.
fn names(source: &str, name: &[u8]) -> bool {
    if name == source.as_bytes() {
        return true;
    }
    let Some(stem) = name.strip_suffix(b"_module") else { return false };
    match source {
        "core.c" => stem == b"core",
        "http_core.c" => stem == b"http",
        "event.c" => stem == b"mpm_event",
        _ => {
            let name = source.strip_prefix("mod_").and_then(|rest| rest.strip_suffix(".c"));
            name.is_some_and(|name| name.as_bytes() == stem)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::known;

    #[test]
    fn without_load_module_the_usual_is_there() {
        let mut modules = Modules::default();
        for (name, expected) in [
            ("mod_rewrite.c", true),
            ("rewrite_module", true),
            ("mod_rewrite", false),
            ("core.c", true),
            ("mpm_event_module", true),
            ("mod_php.c", false),
            ("mod_pagespeed.c", false),
        ] {
            assert_eq!(modules.holds(name.as_bytes()), expected, "{name}");
        }
        assert!(modules.know(known::find(b"virtualdocumentroot").unwrap()));
        assert!(modules.again().is_none());
    }

    #[test]
    fn handlers_run_files_if_their_modules_are_there() {
        let mut modules = Modules::default();
        let runs = |modules: &Modules| {
            let handlers = ["cgi-script", "application/x-httpd-php", "wsgi-script", "type-map", ""];
            handlers.map(|handler| modules.run(handler.as_bytes()))
        };
        assert_eq!(runs(&modules), [true, true, true, false, false]);
        modules.load(b"alias_module");
        assert_eq!(runs(&modules), [false; 5]);
        modules.load(b"cgid_module");
        modules.load(b"php7_module");
        assert_eq!(runs(&modules), [true, true, false, false, false]);
    }

    #[test]
    fn load_module_decides() {
        let mut modules = Modules::default();
        modules.load(b"rewrite_module");
        assert!(modules.holds(b"mod_rewrite.c") && modules.holds(b"rewrite_module"));
        assert!(!modules.holds(b"mod_alias.c"));
        assert!(modules.holds(b"mod_version.c"));
        assert!(modules.know(known::find(b"rewriterule").unwrap()));
        assert!(modules.know(known::find(b"startservers").unwrap()));
        assert!(!modules.know(known::find(b"redirect").unwrap()));
        assert!(modules.again().is_none());
        modules.load(b"alias_module");
        let mut again = modules.again().expect("a directive came before its module");
        assert!(again.know(known::find(b"redirect").unwrap()));
        assert!(!again.holds(b"mod_alias.c"));
    }

    #[test]
    fn directives_of_others_are_known_by_their_names() {
        let mut modules = Modules::default();
        modules.load(b"security2_module");
        assert_eq!(modules.foreign(b"secruleengine"), Some(&b"security2_module"[..]));
        assert_eq!(modules.foreign(b"php_value"), None);
    }
}
