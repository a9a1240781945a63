//! `ScriptAlias` and `ScriptAliasMatch`.
//!
//! No scripts are run here. Where httpd would run them, what they say must not be shown instead: such paths
//! are refused. Only a configuration that loads modules, and none for scripts, has plain files there.
//!
//! Source: httpd 2.4.71 `modules/mappers/mod_alias.c`, `add_alias_internal`.

use super::report::Finding;
use super::{Builder, Context, Directive};

/// The modules that run scripts, as `LoadModule` names them.
const SCRIPT_MODULES: &[&str] = &["cgi_module", "cgid_module"];

impl Builder<'_> {
    /// Adds an alias by `add`, and refuses what is below it if it would be scripts.
    pub(super) fn script_alias<'c>(
        &mut self,
        directive: &Directive<'_>,
        context: &mut Context<'c>,
        add: fn(&mut Self, &Directive<'_>, &mut Context<'c>),
    ) {
        if !self.runs_scripts() {
            return add(self, directive, context);
        }
        self.warn_of_scripts(directive);
        if context.scope.is_server() {
            add(self, directive, context);
            self.servers[context.server].path_aliases.refuse_last(directive.place);
        } else {
            // The redirect of a whole section to a status does the same.
            self.section_redirect(directive, 403, None, context);
        }
    }

    /// Whether httpd would run what is in a directory of scripts.
    pub(super) fn runs_scripts(&self) -> bool {
        let modules = &self.names.modules;
        !modules.are_named() || SCRIPT_MODULES.iter().any(|module| modules.is_named(module))
    }

    pub(super) fn warn_of_scripts(&mut self, directive: &Directive<'_>) {
        let finding = Finding::warning("no scripts are run here: what is below it is refused");
        self.report(directive, finding);
    }
}
