//! `SSLProxy…` in a `<Proxy>`: TLS for requests to the URLs of the section.
//!
//! Of the sections that a URL is in, the last one counts that says anything of TLS. What it does not say, the
//! sections around it say, whose URLs begin its own or which are for all, and then the server that it stands in.
//! httpd merges whatever sections match, so it differs where patterns overlap.
//!
//! Source: httpd 2.4.71 `modules/ssl/ssl_engine_config.c`, `ssl_config_perdir_merge`,
//! `ssl_proxy_section_post_config`; `modules/proxy/mod_proxy.c`, `proxy_walk`.

use super::super::{Builder, Context, Directive};
use super::backend::BackendDraft;
use super::draft::TlsDraft;
use crate::program::SectionMatcher;
use crate::tls::TlsBackend;

/// What such a section has said.
pub(in crate::build) struct TlsSection {
    server: usize,
    urls: Urls,
    draft: TlsDraft,
}

/// What a section is for.
enum Urls {
    All,
    /// Those that begin with this.
    Below(Vec<u8>),
    /// Those that match a pattern.
    Some,
}

impl TlsSection {
    /// Whether what `other` is for is a part of what this one is for.
    fn covers(&self, other: &TlsSection) -> bool {
        match (&self.urls, &other.urls) {
            (Urls::All, _) => true,
            (Urls::Below(own), Urls::Below(others)) => others.starts_with(own),
            _ => false,
        }
    }
}

impl Builder<'_> {
    /// Runs a directive for backends in a `<Proxy>`.
    pub(super) fn section_tls_directive(
        &mut self,
        lower: &[u8],
        directive: &Directive<'_>,
        context: &mut Context<'_>,
    ) {
        // The draft of the section takes the place of that of the server meanwhile.
        let draft = context.dir.tls.get_or_insert_default();
        std::mem::swap(&mut **draft, &mut self.servers[context.server].tls);
        self.backend_tls_directive(lower, directive, context.server);
        std::mem::swap(&mut **draft, &mut self.servers[context.server].tls);
    }

    /// Notes what a section has said, at its end.
    pub(in crate::build) fn section_tls(
        &mut self,
        matcher: &SectionMatcher,
        server: usize,
        draft: TlsDraft,
    ) {
        let urls = match matcher {
            SectionMatcher::Path(url) => Urls::Below(self.pool.get(*url).to_vec()),
            SectionMatcher::Wildcard(pattern) if self.pool.get(*pattern) == b"*" => Urls::All,
            SectionMatcher::Wildcard(_) | SectionMatcher::Regex(_) => Urls::Some,
        };
        self.tls_sections.push(TlsSection { server, urls, draft });
    }

    /// Puts together what all sections say; `servers` is what the servers do.
    pub(super) fn finish_section_tls(
        &mut self,
        servers: &[BackendDraft],
        examined: &mut Vec<TlsBackend>,
    ) -> Vec<Option<TlsBackend>> {
        let sections = std::mem::take(&mut self.tls_sections);
        let merged = sections.iter().enumerate().map(|(number, section)| {
            // Those of the main server come before those of a virtual host.
            let is_around = |(other, around): &(usize, &TlsSection)| {
                (around.server == section.server && *other < number
                    || around.server == 0 && section.server != 0)
                    && around.covers(section)
            };
            let around = sections.iter().enumerate().filter(is_around);
            let base = around.fold(servers[section.server].clone(), |base, (_, around)| {
                around.draft.backend.over(&base)
            });
            section.draft.backend.over(&base)
        });
        let merged: Vec<BackendDraft> = merged.collect();
        merged.iter().map(|draft| self.finish_backend_tls(draft, examined)).collect()
    }
}
