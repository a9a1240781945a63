//! The per-directory configuration: what a section says, and how the more specific one overrides.
//!
//! Source: httpd 2.4.71, the `merge_dir_config` functions of `core.c`, `mod_alias.c`, `mod_rewrite.c`,
//! `mod_dir.c`.

use std::sync::Arc;

use milepost_http::path::EncodedSlashes;

use crate::log::SectionLevels;
use crate::pool::Pool;
use crate::program::{
    Access, AliasList, Edits, EnvRules, ErrorDocument, Expires, FixedEnv, IfSection, Listing, Mime,
    Part, ProxyDir, RewriteList, RewriteOptions, Section, SectionAlias, SectionPass,
    SectionRedirect,
};
use crate::serving::ServingDir;

/// What one section says; merged, what all sections that apply to a request say.
#[derive(Debug, Clone, Default)]
pub(crate) struct DirConfig {
    pub(crate) rewrite: Option<RewriteDir>,
    /// The most specific section's first.
    pub(crate) redirects: Vec<Part<AliasList>>,
    /// `RedirectRelative`
    pub(crate) redirect_relative: Option<bool>,
    pub(crate) options: Options,
    pub(crate) access: Access,
    /// `DirectoryIndex`
    pub(crate) index: Option<Arc<[Box<[u8]>]>>,
    /// `DirectoryIndexRedirect`: a status, or none.
    pub(crate) index_redirect: Option<Option<u16>>,
    /// `FallbackResource`; empty when it is disabled.
    pub(crate) fallback: Option<Arc<[u8]>>,
    /// `DirectorySlash`
    pub(crate) slash: Option<bool>,
    /// `DirectoryCheckHandler`
    pub(crate) check_handler: Option<bool>,
    /// `AllowEncodedSlashes`
    pub(crate) encoded_slashes: Option<EncodedSlashes>,
    /// `AllowOverride`, `AllowOverrideList`
    pub(crate) allow_override: Option<Arc<Override>>,
    /// `UseCanonicalName`, `UseCanonicalPhysicalPort`
    pub(crate) naming: Naming,
    /// `LogLevel`
    pub(crate) levels: SectionLevels,
    /// `AcceptPathInfo`
    pub(crate) path_info: Option<bool>,
    /// `SetEnvIf` and its relatives.
    pub(crate) env_if: Vec<Part<EnvRules>>,
    /// `SetEnv`, `PassEnv`, `UnsetEnv`
    pub(crate) env: Option<FixedEnv>,
    /// `Header`, `RequestHeader`
    pub(crate) edits: Edits,
    /// `ErrorDocument`, by status.
    pub(crate) error_documents: Vec<(u16, Part<ErrorDocument>)>,
    /// `<Files>` in this section.
    pub(crate) files: Vec<Part<Section>>,
    /// `<If>` and its relatives in this section; merged, those that are still to be tried.
    pub(crate) ifs: Vec<Part<IfSection>>,
    /// `Redirect` without a URL-path
    pub(crate) section_redirect: Option<Part<SectionRedirect>>,
    /// `Alias` without a URL-path
    pub(crate) section_alias: Option<Part<SectionAlias>>,
    /// `AliasPreservePath`
    pub(crate) preserve_path: Option<bool>,
    /// `LimitRequestBody`; 0 for no limit.
    pub(crate) content_max: Option<u64>,
    /// `ProxyPass` in a `<Location>`
    pub(crate) pass: Option<Part<SectionPass>>,
    /// What is said about proxied requests.
    pub(crate) proxy: ProxyDir,
    /// mod_speling: a section that says any of it says all of it.
    pub(crate) spelling: Option<Spelling>,
    /// `AllowMethods`
    pub(crate) methods: Option<AllowedMethods>,
    /// Handlers and extensions.
    pub(crate) mime: Option<Arc<Mime>>,
    /// Lists of directories.
    pub(crate) listing: Option<Arc<Listing>>,
    /// Entity tags and ranges of files.
    pub(crate) serving: ServingDir,
    /// mod_expires
    pub(crate) expires: Option<Arc<Expires>>,
}

/// What a section says about mod_rewrite; only sections with one of its directives have it.
#[derive(Debug, Clone, Default)]
pub(crate) struct RewriteDir {
    /// `RewriteEngine`
    pub(crate) engine: Option<bool>,
    /// Its rules; more than one list where it inherits.
    pub(crate) rules: Vec<Part<RewriteList>>,
    /// `RewriteBase`
    pub(crate) base: Option<Arc<[u8]>>,
    pub(crate) options: Option<RewriteOptions>,
    /// The path of the section, which patterns do not see. Ends in `/`.
    pub(crate) directory: Arc<[u8]>,
}

/// What a server calls itself in URLs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Naming {
    /// `UseCanonicalName On`: as `ServerName` says, and not as the request does.
    pub(crate) canonical: Option<bool>,
    /// `UseCanonicalPhysicalPort On`: where no port is said, that of the connection.
    pub(crate) physical_port: Option<bool>,
}

impl Naming {
    fn merge(&mut self, over: Naming) {
        self.canonical = over.canonical.or(self.canonical);
        self.physical_port = over.physical_port.or(self.physical_port);
    }
}

/// Which names of files are near enough to the one that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Spelling {
    /// `CheckSpelling`
    pub(crate) is_on: bool,
    /// `CheckCaseOnly`: in another case, not with another letter.
    pub(crate) case_only: bool,
    /// `CheckBasenameMatch`: with anything else behind the first dot.
    pub(crate) other_suffix: bool,
}

impl Default for Spelling {
    fn default() -> Self {
        Spelling { is_on: false, case_only: false, other_suffix: true }
    }
}

/// `AllowMethods`: what is let through. A `HEAD` is a `GET`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AllowedMethods {
    /// `reset`
    All,
    These(Arc<[Box<[u8]>]>),
}

impl AllowedMethods {
    /// Whether a method is among them.
    pub(crate) fn allow(&self, method: &[u8]) -> bool {
        let method = if method == b"HEAD" { b"GET" } else { method };
        match self {
            AllowedMethods::All => true,
            AllowedMethods::These(names) => names.iter().any(|name| **name == *method),
        }
    }
}

/// What `.htaccess` files may say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Override {
    pub(crate) auth_config: bool,
    pub(crate) file_info: bool,
    pub(crate) indexes: bool,
    pub(crate) limit: bool,
    pub(crate) options: bool,
    /// `AllowOverrideList`, in lower case.
    pub(crate) names: Vec<Box<[u8]>>,
    /// `Nonfatal=`: what is not allowed is left out, not an error. Unknown and disallowed directives.
    pub(crate) nonfatal: (bool, bool),
}

impl Override {
    /// `AllowOverride All`
    pub(crate) fn all() -> Override {
        Override {
            auth_config: true,
            file_info: true,
            indexes: true,
            limit: true,
            options: true,
            ..Override::default()
        }
    }

    /// Whether they may say nothing, so that they are not looked for.
    pub(crate) fn is_none(&self) -> bool {
        !self.has_class() && self.names.is_empty() && self.nonfatal == (false, false)
    }

    /// Whether any class of directives is allowed.
    pub(crate) fn has_class(&self) -> bool {
        self.auth_config || self.file_info || self.indexes || self.limit || self.options
    }
}

/// `Options`, as far as it decides where a request goes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Options {
    /// `FollowSymLinks`
    pub(crate) follow_links: Option<bool>,
    /// `SymLinksIfOwnerMatch`
    pub(crate) follow_owned_links: Option<bool>,
    /// `Indexes`
    pub(crate) listing: Option<bool>,
    /// `MultiViews`
    pub(crate) multi_views: Option<bool>,
}

impl Options {
    /// All of them off, as before a list without signs.
    pub(crate) fn none() -> Options {
        Options {
            follow_links: Some(false),
            follow_owned_links: Some(false),
            listing: Some(false),
            multi_views: Some(false),
        }
    }

    /// Whether a symbolic link may be followed. Apache's default is `FollowSymLinks`.
    pub(crate) fn follows_links(&self) -> bool {
        self.follow_links.unwrap_or(true) || self.follow_owned_links.unwrap_or(false)
    }

    /// Whether every link may be followed, so that none must be looked for.
    pub(crate) fn follows_all_links(&self) -> bool {
        self.follow_links.unwrap_or(true) && !self.follows_owned_links()
    }

    /// Whether a link may be followed if it belongs to whom its target belongs to. Where both options are
    /// set, this one counts.
    pub(crate) fn follows_owned_links(&self) -> bool {
        self.follow_owned_links == Some(true)
    }

    pub(crate) fn merge(&mut self, over: Options) {
        self.follow_links = over.follow_links.or(self.follow_links);
        self.follow_owned_links = over.follow_owned_links.or(self.follow_owned_links);
        self.listing = over.listing.or(self.listing);
        self.multi_views = over.multi_views.or(self.multi_views);
    }
}

/// `LimitRequestBody` where nothing is said.
const CONTENT_BYTES_MAX: u64 = 1 << 30;

impl DirConfig {
    /// The most bytes of content that a request may have; `None` for no limit.
    pub(crate) fn content_bytes_max(&self) -> Option<u64> {
        match self.content_max {
            None => Some(CONTENT_BYTES_MAX),
            Some(0) => None,
            max => max,
        }
    }

    /// Lets the more specific `over` override.
    pub(crate) fn merge(&mut self, over: &DirConfig) {
        match (&mut self.rewrite, &over.rewrite) {
            (_, None) => {}
            (None, Some(over)) => self.rewrite = Some(over.clone()),
            (Some(base), Some(over)) => base.merge(over),
        }
        let mut redirects = over.redirects.clone();
        redirects.append(&mut self.redirects);
        self.redirects = redirects;
        self.redirect_relative = over.redirect_relative.or(self.redirect_relative);
        self.options.merge(over.options);
        self.access.merge(&over.access);
        if over.index.is_some() {
            self.index.clone_from(&over.index);
        }
        self.index_redirect = over.index_redirect.or(self.index_redirect);
        if over.fallback.is_some() {
            self.fallback.clone_from(&over.fallback);
        }
        self.slash = over.slash.or(self.slash);
        self.check_handler = over.check_handler.or(self.check_handler);
        self.encoded_slashes = over.encoded_slashes.or(self.encoded_slashes);
        if over.allow_override.is_some() {
            self.allow_override.clone_from(&over.allow_override);
        }
        self.naming.merge(over.naming);
        self.levels.merge(over.levels);
        self.path_info = over.path_info.or(self.path_info);
        self.env_if.extend(over.env_if.iter().cloned());
        if let Some(env) = &over.env {
            self.env.get_or_insert_default().merge(env);
        }
        self.edits.merge(&over.edits);
        for (status, document) in &over.error_documents {
            self.error_documents.retain(|(known, _)| known != status);
            self.error_documents.push((*status, document.clone()));
        }
        self.files.extend(over.files.iter().cloned());
        self.ifs.extend(over.ifs.iter().cloned());
        if over.section_redirect.is_some() {
            self.section_redirect.clone_from(&over.section_redirect);
        }
        if over.section_alias.is_some() {
            self.section_alias.clone_from(&over.section_alias);
        }
        self.preserve_path = over.preserve_path.or(self.preserve_path);
        self.content_max = over.content_max.or(self.content_max);
        if over.pass.is_some() {
            self.pass.clone_from(&over.pass);
        }
        self.proxy.merge(&over.proxy);
        self.spelling = over.spelling.or(self.spelling);
        if over.methods.is_some() {
            self.methods.clone_from(&over.methods);
        }
        match (&mut self.mime, &over.mime) {
            (_, None) => {}
            (None, over) => self.mime.clone_from(over),
            (Some(base), Some(over)) => Arc::make_mut(base).merge(over),
        }
        if let Some(over) = &over.listing {
            Arc::make_mut(self.listing.get_or_insert_default()).merge(over);
        }
        self.serving.merge(over.serving);
        match (&mut self.expires, &over.expires) {
            (_, None) => {}
            (None, over) => self.expires.clone_from(over),
            (Some(base), Some(over)) => Arc::make_mut(base).merge(over),
        }
    }
}

impl DirConfig {
    /// `AllowEncodedSlashes` is not inherited by what says anything about the core of httpd.
    ///
    /// Source: httpd 2.4.71 `server/core.c`, `merge_core_dir_configs`.
    pub(crate) fn refuse_encoded_slashes(&mut self) {
        self.encoded_slashes.get_or_insert(EncodedSlashes::Refuse);
    }

    /// Says that all of this was read into `text`, which is not the program's.
    pub(crate) fn adopt(&mut self, text: &Arc<Pool>) {
        self.redirects.iter_mut().for_each(|list| list.adopt(text));
        self.env_if.iter_mut().for_each(|list| list.adopt(text));
        self.edits.adopt(text);
        self.error_documents.iter_mut().for_each(|(_, document)| document.adopt(text));
        if let Some(rewrite) = &mut self.rewrite {
            rewrite.rules.iter_mut().for_each(|list| list.adopt(text));
        }
        self.section_redirect.iter_mut().for_each(|redirect| redirect.adopt(text));
        for section in &mut self.ifs {
            section.adopt(text);
            if let Some(section) = Arc::get_mut(&mut section.value) {
                section.config.adopt(text);
            }
        }
        for section in &mut self.files {
            section.adopt(text);
            if let Some(section) = Arc::get_mut(&mut section.value) {
                section.config.adopt(text);
            }
        }
    }
}

impl RewriteDir {
    /// Whether rules run: `RewriteEngine` is on.
    pub(crate) fn is_on(&self) -> bool {
        self.engine == Some(true)
    }

    fn merge(&mut self, over: &RewriteDir) {
        let base_options = self.options.unwrap_or_default();
        let options = over.options.or(self.options);
        let chosen = options.unwrap_or_default();
        let merged_base = if chosen.merge_base {
            over.base.clone().or_else(|| self.base.clone())
        } else {
            over.base.clone()
        };
        let down = |down: bool| down && !chosen.ignore_inherit;
        self.rules = if chosen.inherit || down(base_options.inherit_down) {
            over.rules.iter().chain(&self.rules).cloned().collect()
        } else if chosen.inherit_before || down(base_options.inherit_down_before) {
            self.rules.iter().chain(&over.rules).cloned().collect()
        } else {
            over.rules.clone()
        };
        self.engine = over.engine.or(self.engine);
        self.options = options;
        self.base = merged_base;
        self.directory = Arc::clone(&over.directory);
    }
}
