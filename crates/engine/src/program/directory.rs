//! The per-directory configuration: what a section says, and how the more specific one overrides.
//!
//! Source: httpd 2.4.71, the `merge_dir_config` functions of `core.c`, `mod_alias.c`, `mod_rewrite.c`,
//! `mod_dir.c`.

use std::sync::Arc;

use milepost_http::path::EncodedSlashes;

use crate::pool::Str;
use crate::program::{Access, AliasList, RewriteList, RewriteOptions, Section};

/// What one section says; merged, what all sections that apply to a request say.
#[derive(Debug, Clone, Default)]
pub(crate) struct DirConfig {
    pub(crate) rewrite: Option<RewriteDir>,
    /// The most specific section's first.
    pub(crate) redirects: Vec<Arc<AliasList>>,
    /// `RedirectRelative`
    pub(crate) redirect_relative: Option<bool>,
    pub(crate) options: Options,
    pub(crate) access: Access,
    /// `DirectoryIndex`
    pub(crate) index: Option<Arc<[Str]>>,
    /// `DirectorySlash`
    pub(crate) slash: Option<bool>,
    /// `AllowEncodedSlashes`
    pub(crate) encoded_slashes: Option<EncodedSlashes>,
    /// `AcceptPathInfo`
    pub(crate) path_info: Option<bool>,
    /// `<Files>` in this section.
    pub(crate) files: Vec<Arc<Section>>,
}

/// What a section says about mod_rewrite; only sections with one of its directives have it.
#[derive(Debug, Clone, Default)]
pub(crate) struct RewriteDir {
    /// `RewriteEngine`
    pub(crate) engine: Option<bool>,
    /// Its rules; more than one list where it inherits.
    pub(crate) rules: Vec<Arc<RewriteList>>,
    /// `RewriteBase`
    pub(crate) base: Option<Str>,
    pub(crate) options: Option<RewriteOptions>,
    /// The path of the section, which patterns do not see. Ends in `/`.
    pub(crate) directory: Str,
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
}

impl Options {
    /// Whether a symbolic link may be followed. Apache's default is `FollowSymLinks`.
    pub(crate) fn follows_links(&self) -> bool {
        self.follow_links.unwrap_or(true) || self.follow_owned_links.unwrap_or(false)
    }

    /// Whether every link may be followed, so that none must be looked for.
    pub(crate) fn follows_all_links(&self) -> bool {
        self.follow_links.unwrap_or(true)
    }

    fn merge(&mut self, over: Options) {
        self.follow_links = over.follow_links.or(self.follow_links);
        self.follow_owned_links = over.follow_owned_links.or(self.follow_owned_links);
        self.listing = over.listing.or(self.listing);
    }
}

impl DirConfig {
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
        self.slash = over.slash.or(self.slash);
        self.encoded_slashes = over.encoded_slashes.or(self.encoded_slashes);
        self.path_info = over.path_info.or(self.path_info);
        self.files.extend(over.files.iter().cloned());
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
        let own = over.options.unwrap_or_default();
        let merged_base = if chosen.merge_base { over.base.or(self.base) } else { over.base };
        let down = |down: bool| down && !own.ignore_inherit;
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
        self.directory = over.directory;
    }
}
