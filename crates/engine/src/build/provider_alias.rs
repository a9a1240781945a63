//! `<AuthnProviderAlias>` and `<AuthzProviderAlias>`: other names for providers, with settings of their own.
//!
//! Source: httpd 2.4.71 `modules/aaa/mod_authn_core.c`, `authaliassection`; `mod_authz_core.c`,
//! `authz_require_alias_section`.

use std::sync::Arc;

use milepost_syntax::{Word, Words};

use super::report::{Finding, show};
use super::{Builder, Context, DirDraft, Directive};
use crate::program::{RequireTest, Scope};

/// The names that a configuration gave.
#[derive(Default)]
pub(super) struct ProviderAliases {
    /// Of providers of passwords.
    authn: Vec<Box<[u8]>>,
    authz: Vec<Arc<AuthzAlias>>,
}

/// A requirement with a name.
pub(super) struct AuthzAlias {
    name: Box<[u8]>,
    provider: Box<[u8]>,
    /// What would stand behind `Require provider`.
    arguments: Box<[u8]>,
}

impl ProviderAliases {
    pub(super) fn has_authn(&self, name: &[u8]) -> bool {
        self.authn.iter().any(|known| &**known == name)
    }

    pub(super) fn authz(&self, name: &[u8]) -> Option<Arc<AuthzAlias>> {
        self.authz.iter().find(|alias| &*alias.name == name).cloned()
    }
}

impl Builder<'_> {
    /// Reads one such section; `inner` runs the directives in it.
    pub(super) fn provider_alias(
        &mut self,
        name: &[u8],
        directive: &Directive<'_>,
        context: &mut Context<'_>,
        inner: impl FnOnce(&mut Self, &mut Context<'_>),
    ) {
        if !self.main_only(directive, context) {
            return;
        }
        let words = directive.words();
        let [provider, alias, arguments @ ..] = words.as_slice() else {
            let message = format!("{} has too few arguments", show(directive.name));
            let finding = Finding::error(message).hint("name a provider, then the other name");
            return self.report(directive, finding);
        };
        let mut dir = DirDraft::default();
        let mut section = Context {
            scope: Scope::Directory,
            server: context.server,
            directory: Arc::from(&b""[..]),
            dir: &mut dir,
        };
        inner(self, &mut section);
        if name == b"authnprovideralias" {
            self.authn_alias(directive, provider, alias);
        } else {
            self.authz_alias(directive, provider, alias, arguments);
        }
    }

    fn authn_alias(&mut self, directive: &Directive<'_>, provider: &Word<'_>, alias: &Word<'_>) {
        let is_same = provider.text.eq_ignore_ascii_case(&alias.text);
        let wrong = if is_same || self.provider_aliases.has_authn(&alias.text) {
            let message = format!("there is a provider {} already", show(&alias.text));
            Some((alias.at, alias.len, Finding::error(message)))
        } else {
            self.wrong_provider(provider)
        };
        match wrong {
            Some((at, len, finding)) => self.report_at(directive, at, len, finding),
            None => self.provider_aliases.authn.push(Box::from(&*alias.text)),
        }
    }

    fn authz_alias(
        &mut self,
        directive: &Directive<'_>,
        provider: &Word<'_>,
        name: &Word<'_>,
        arguments: &[Word<'_>],
    ) {
        if let Some(extra) = arguments.get(1) {
            let finding = Finding::warning(format!("{} is left out", show(&extra.text)))
                .hint("put what is required into quotes, all of it");
            self.report_at(directive, extra.at, extra.len, finding);
        }
        let arguments = arguments.first().map(|word| Box::from(&*word.text)).unwrap_or_default();
        let alias = Arc::new(AuthzAlias {
            name: Box::from(&*name.text),
            provider: Box::from(&*provider.text),
            arguments,
        });
        if self.aliased_test(directive, provider, &alias, false).is_some() {
            self.provider_aliases.authz.push(alias);
        }
    }

    /// What a requirement with a name requires; findings are about the word that names it.
    pub(super) fn aliased_test(
        &mut self,
        directive: &Directive<'_>,
        word: &Word<'_>,
        alias: &AuthzAlias,
        negated: bool,
    ) -> Option<RequireTest> {
        let (at, len) = (word.at, word.len);
        if &*alias.provider == b"expr" {
            return self.require_expression(directive, &alias.arguments, at);
        }
        let provider = Word { text: alias.provider[..].into(), at, len };
        let arguments = Words::new(&alias.arguments).map(|word| Word { at, len, ..word });
        let arguments: Vec<_> = arguments.collect();
        self.base_test(directive, &provider, &arguments, negated)
    }
}
