//! `SSLProxy…` in a `<Proxy>`: TLS for requests to the URLs of the section.
//!
//! Of the sections that a URL is in, the last one counts that says anything of TLS, and what it does not say,
//! the server says that it stands in. A section around it says nothing to it.
//!
//! Source: httpd 2.4.71 `modules/ssl/ssl_engine_config.c`, `ssl_config_perdir_merge`; `ssl_engine_init.c`,
//! `ssl_proxy_section_post_config`; `modules/proxy/mod_proxy.c`, `proxy_walk`.

use super::super::{Builder, Context, Directive};
use super::backend::BackendDraft;
use super::draft::TlsDraft;
use crate::tls::TlsBackend;

/// What such a section has said.
pub(in crate::build) struct TlsSection {
    server: usize,
    draft: TlsDraft,
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

    /// Notes what a section has said, at its end; returns its number.
    pub(in crate::build) fn section_tls(&mut self, server: usize, draft: TlsDraft) -> usize {
        self.tls_sections.push(TlsSection { server, draft });
        self.tls_sections.len() - 1
    }

    /// Puts together what all sections say; `servers` is what the servers do.
    pub(super) fn finish_section_tls(
        &mut self,
        servers: &[BackendDraft],
        examined: &mut Vec<TlsBackend>,
    ) -> Vec<Option<TlsBackend>> {
        let sections = std::mem::take(&mut self.tls_sections).into_iter();
        let merged = sections.map(|section| {
            let merged = section.draft.backend.over(&servers[section.server]);
            self.finish_backend_tls(&merged, examined)
        });
        merged.collect()
    }
}
