//! Turns configuration text into a [`Program`]: reads the files, runs the directives, merges servers.
//!
//! Nothing stops at the first error: what is wrong is noted and the directive left out, so that one run
//! names everything there is to mend.
//!
//! Source: httpd 2.4.71 `server/config.c`, `ap_process_config_tree`; `server/core.c`.

mod access;
mod alias;

mod connections;
mod core;
mod directives;
mod directory;
mod edit;
mod environment;
mod error_document;
mod expression;
mod filter;
mod form;
mod health_check;
mod known;
mod leading_slash;
mod listing;
mod log;
mod long_line;
mod macros;
mod map;
mod mime;
mod modules;
mod process;
mod protocol;
mod provider_alias;
mod proxy;
mod proxy_worker;
mod reader;
mod regex;
mod remote_ip;
mod report;
mod rewrite;
mod roots;
mod script;
mod sections;
mod servers;
mod serving;
mod slips;
mod spelling;
mod tls;
mod values;
mod version;
mod wanted;

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use foldhash::fast::RandomState;
use milepost_syntax::{Word, Words};

use crate::decision::Place;
use crate::diagnostic::{Diagnostic, Severity};
use crate::helper::Database;
use crate::index::Lookup;
use crate::outside::Outside;
use crate::pool::{Pool, Str};
use crate::program::{
    DirConfig, Flags, Hosts, Map, Names, Override, Program, RewriteDir, RewriteOptions, Scope,
    Server,
};
use crate::proxy::{Backend, Balancer};
use crate::settings::Settings;

pub(crate) use alias::is_url;
pub(crate) use modules::Modules;
pub(crate) use proxy_worker::{after_scheme, balancer_name, begins};

/// What to load.
#[derive(Debug, Clone, Default)]
pub struct LoadOptions {
    /// `ServerRoot` unless the configuration names one (`-d`).
    pub server_root: PathBuf,
    /// The configuration file (`-f`), relative to the server root. `None`: only the directives below.
    pub file: Option<PathBuf>,
    /// `-D NAME`
    pub defines: Vec<String>,
    /// `-C DIRECTIVE`, before the file.
    pub before: Vec<String>,
    /// `-c DIRECTIVE`, after the file.
    pub after: Vec<String>,
    /// How rules are found.
    pub lookup: Lookup,
    /// What is meant to be done with it.
    pub purpose: Purpose,
}

/// What a configuration is loaded for, where that decides whether it loads.
///
/// Some directives of httpd send requests elsewhere or let in fewer clients by means that are not there
/// here. Leaving one of them out would open what is closed, so nobody may serve such a configuration; the
/// rules in it can be looked at all the same.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Purpose {
    /// To answer requests: such a directive is an error.
    #[default]
    Serve,
    /// To be looked at: such a directive is a warning.
    Look,
    /// To be asked what it would answer, perhaps where its files are not: that they are missing is a warning, too.
    Ask,
}

/// Builds the program. `None` when a diagnostic is an error.
pub(crate) fn build(
    options: &LoadOptions,
    outside: &dyn Outside,
) -> (Option<Program>, Vec<Diagnostic>) {
    let run = |modules| {
        let defines = options.defines.iter().map(|name| (name.clone().into_bytes(), Vec::new()));
        let names = Names { defines: defines.collect(), modules };
        let mut builder = Builder::new(outside, options.lookup, options.server_root.clone(), names);
        builder.purpose = options.purpose;
        builder.run(options);
        builder
    };
    let mut builder = run(Modules::default());
    if let Some(modules) = builder.names.modules.again() {
        builder = run(modules);
    }
    let program = builder.finish();
    (program, builder.diagnostics)
}

/// Builds what the `.htaccess` file at `path` says for `directory`, which ends in `/`. `None` when a
/// diagnostic is an error.
pub(crate) fn build_htaccess(
    program: &Program,
    path: &[u8],
    text: Vec<u8>,
    directory: &[u8],
    allowed: &Arc<Override>,
    outside: &dyn Outside,
) -> (Option<DirConfig>, Vec<Diagnostic>) {
    let root = program.settings.server_root.clone();
    let mut builder = Builder::new(outside, program.lookup, root, program.names.clone());
    builder.purpose = program.purpose;
    builder.regex = program.regex;
    builder.allowed = Some(Arc::clone(allowed));
    let mut dir = DirDraft::default();
    let mut context = Context {
        scope: Scope::Htaccess,
        server: 0,
        directory: Arc::from(directory),
        dir: &mut dir,
    };
    if let Some(line) = long_line::find(&text) {
        let max = long_line::LINE_BYTES_MAX;
        let message = format!("a line of more than {max} bytes, too long for such a file");
        builder.report_line(bytes_to_path(path), line, report::Finding::error(message));
    }
    builder.read_text(bytes_to_path(path), text, &mut context);
    let mut config = builder.finish_dir(dir);
    let failed = builder.diagnostics.iter().any(|found| found.severity == Severity::Error);
    config.adopt(&Arc::new(builder.pool));
    ((!failed).then_some(config), builder.diagnostics)
}

/// The state of one load.
struct Builder<'o> {
    outside: &'o dyn Outside,
    lookup: Lookup,
    purpose: Purpose,
    /// `RegexDefaultOptions`, as of now.
    regex: milepost_pcre::Options,
    pool: Pool,
    diagnostics: Vec<Diagnostic>,
    settings: Settings,
    names: Names,
    /// What this `.htaccess` file may say; `None` for the configuration itself.
    allowed: Option<Arc<Override>>,
    servers: Vec<ServerDraft>,
    /// The last flags of a rule that have no arguments of their own, and what they come to.
    last_flags: Option<(Vec<u8>, Flags, u16)>,
    /// The last directive that was looked up, and whether one of its modules is there.
    last_known: Option<(&'static known::Known, bool)>,
    /// Files being included, to find loops.
    including: Vec<PathBuf>,
    /// Directives that were accepted without effect, each noted once.
    noted: Vec<Vec<u8>>,
    maps: map::MapDraft,
    /// `<Macro>`
    macros: macros::Macros,
    /// `<RequireAll>` and its relatives that are being read, the innermost last.
    containers: Vec<access::Container>,
    /// `ExtFilterDefine`: server and name.
    ext_filters: Vec<(usize, Vec<u8>)>,
    /// `<AuthnProviderAlias>`, `<AuthzProviderAlias>`
    provider_aliases: provider_alias::ProviderAliases,
    /// Inside `<Location>` or `<LocationMatch>`, however deep.
    in_location: bool,
    /// `<Limit>` that are being read.
    limits: Vec<crate::program::Limit>,
    databases: Vec<Database>,
    /// `SSLVHostSNIPolicy`
    sni_policy: tls::SniPolicy,
    backends: Vec<Backend>,
    balancers: Vec<Balancer>,
    /// `SSLProxy…` in `<Proxy>` sections.
    tls_sections: Vec<tls::TlsSection>,
    /// A directive of the proxy was met.
    has_proxy: bool,
    /// What is being read belongs to a section that is wrong: only the conditions in it are looked at.
    only_conditions: bool,
}

/// A server while its directives are read.
#[derive(Default)]
struct ServerDraft {
    server: Server,
    base: DirDraft,
    rewrite: rewrite::RewriteDraft,
    path_aliases: alias::AliasDraft,
    rewrite_options: Option<RewriteOptions>,
    /// A directive of mod_rewrite stands in it, be it in a section.
    has_rewriting: bool,
    maps: HashMap<Box<[u8]>, Arc<Map>, RandomState>,
    database: map::DatabaseDraft,
    proxy: proxy::ProxyDraft,
    merge_slashes: Option<bool>,
    recursion_max: Option<(u32, u32)>,
    sections: sections::SectionLists,
    tls: tls::TlsDraft,
    protocols: protocol::ProtocolDraft,
}

/// A section, or what is outside all sections, while its directives are read.
#[derive(Default)]
struct DirDraft {
    config: DirConfig,
    redirects: alias::AliasDraft,
    env_if: environment::EnvDraft,
    edits: edit::EditDraft,
    rewrite: rewrite::RewriteDraft,
    /// Made by the first directive of mod_rewrite.
    rewrite_dir: Option<RewriteDir>,
    /// `SSLProxy…` in a `<Proxy>`.
    tls: Option<Box<tls::TlsDraft>>,
    /// The path of a `<Location>`.
    url_path: Option<Str>,
    /// The pattern of a `<LocationMatch>`.
    url_pattern: Option<Str>,
    files: Vec<crate::program::Part<crate::program::Section>>,
    /// `FilterDeclare`
    filters: Vec<filter::SmartFilter>,
}

/// Where the builder is while it reads directives.
struct Context<'c> {
    scope: Scope,
    /// The number of the server.
    server: usize,
    /// The section's path as configured (`<Directory /x>`: `/x/`), for mod_rewrite.
    directory: Arc<[u8]>,
    dir: &'c mut DirDraft,
}

/// One directive, split off its line.
struct Directive<'d> {
    name: &'d [u8],
    /// Its arguments, `${NAME}` expanded.
    args: &'d [u8],
    /// The arguments in the pool, for rules that point into the text.
    args_text: Str,
    /// The name, to mark in messages.
    name_text: Str,
    place: Place,
}

impl<'d> Directive<'d> {
    /// Its arguments, and where each stands.
    fn words(&self) -> Vec<Word<'d>> {
        Words::new(self.args).collect()
    }

    /// What its arguments say.
    fn texts(&self) -> Vec<Cow<'d, [u8]>> {
        Words::new(self.args).map(|word| word.text).collect()
    }
}

impl<'o> Builder<'o> {
    /// A builder that has read nothing, for a whole configuration.
    fn new(
        outside: &'o dyn Outside,
        lookup: Lookup,
        server_root: PathBuf,
        names: Names,
    ) -> Builder<'o> {
        Builder {
            outside,
            lookup,
            purpose: Purpose::default(),
            regex: milepost_pcre::Options::default(),
            pool: Pool::default(),
            diagnostics: Vec::new(),
            settings: Settings { server_root, ..Settings::default() },
            names,
            allowed: None,
            servers: vec![ServerDraft::default()],
            last_flags: None,
            last_known: None,
            including: Vec::new(),
            noted: Vec::new(),
            maps: map::MapDraft::default(),
            macros: macros::Macros::default(),
            containers: Vec::new(),
            ext_filters: Vec::new(),
            provider_aliases: provider_alias::ProviderAliases::default(),
            in_location: false,
            limits: Vec::new(),
            databases: Vec::new(),
            sni_policy: tls::SniPolicy::default(),
            backends: Vec::new(),
            balancers: Vec::new(),
            tls_sections: Vec::new(),
            has_proxy: false,
            only_conditions: false,
        }
    }

    fn run(&mut self, options: &LoadOptions) {
        for (number, line) in options.before.iter().enumerate() {
            self.read_option("-C", number, line);
        }
        if let Some(file) = &options.file {
            let path = options.server_root.join(file);
            self.read_main_file(&path);
        }
        for (number, line) in options.after.iter().enumerate() {
            self.read_option("-c", number, line);
        }
    }

    fn finish(&mut self) -> Option<Program> {
        let servers = self.finish_servers();
        let failed = self.diagnostics.iter().any(|found| found.severity == Severity::Error);
        if failed {
            return None;
        }
        let pool = std::mem::take(&mut self.pool);
        let settings = std::mem::take(&mut self.settings);
        let logs_variables = settings.logs.look_at_variables();
        let names = std::mem::take(&mut self.names);
        let hosts = Hosts::new(&pool, &servers);
        let mut programs = std::mem::take(&mut self.maps.programs);
        map::mark_programs(&mut programs, &servers);
        let databases = std::mem::take(&mut self.databases);
        let (lookup, purpose) = (self.lookup, self.purpose);
        let loaded = names.modules.is_named("mod_proxy.c");
        let types = std::sync::OnceLock::new();
        let proxies = loaded || self.has_proxy;
        let backends = std::mem::take(&mut self.backends);
        let balancers = std::mem::take(&mut self.balancers);
        Some(Program {
            pool,
            settings,
            servers,
            hosts,
            names,
            lookup,
            purpose,
            regex: self.regex,
            programs,
            databases,
            proxies,
            backends,
            balancers,
            logs_variables,
            types,
        })
    }

    /// A path of the configuration, made absolute.
    fn resolve(&self, path: &[u8]) -> PathBuf {
        let path = bytes_to_path(path);
        self.settings.server_root.join(path)
    }
}

/// Paths are bytes on Unix.
#[cfg(unix)]
pub(crate) fn bytes_to_path(bytes: &[u8]) -> &Path {
    use std::os::unix::ffi::OsStrExt;
    Path::new(std::ffi::OsStr::from_bytes(bytes))
}

/// The bytes of a path.
#[cfg(unix)]
pub(crate) fn path_to_bytes(path: &Path) -> &[u8] {
    use std::os::unix::ffi::OsStrExt;
    path.as_os_str().as_bytes()
}
