//! Makes the TLS of each server of what the directives have said, and has its files looked at.
//!
//! A server's own directives override those of the main server one by one, as everywhere. What is only
//! known of files (that key and certificate belong together, that a chain can be read) is asked of
//! [`crate::Outside::examine_tls`] when all is read, and reported at the directive that named the file.
//!
//! Source: httpd 2.4.71 `modules/ssl/ssl_engine_init.c`, `ssl_init_Module`, `ssl_init_ConfigureServer`;
//! `ssl_engine_kernel.c`, `ssl_server_compatible`.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::super::Builder;
use super::super::report::Finding;
use super::draft::{Placed, TlsDraft};
use crate::tls::{
    TlsBackend, TlsCertificate, TlsClient, TlsRevocation, TlsServer, TlsVerify, TlsVersions,
};

/// `SSLVHostSNIPolicy`: what a connection to one virtual host and a request for another must share.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::build) enum SniPolicy {
    /// They must be one.
    Strict,
    /// Certificates, versions, suites, and what is asked of clients.
    #[default]
    Secure,
    /// What is asked of clients.
    AuthOnly,
    /// Nothing.
    Insecure,
}

impl Builder<'_> {
    /// Merges the main server's TLS into that of each virtual host, and has the files looked at.
    pub(in crate::build) fn finish_tls(&mut self) {
        let drafts: Vec<_> =
            self.servers.iter_mut().map(|draft| std::mem::take(&mut draft.tls)).collect();
        let mut examined: Vec<TlsServer> = Vec::new();
        let mut servers = Vec::with_capacity(drafts.len());
        let mut backends: Vec<Option<TlsBackend>> = Vec::with_capacity(drafts.len());
        let mut drafts_to_backends = Vec::with_capacity(drafts.len());
        let mut examined_backends = Vec::new();
        for (number, own) in drafts.iter().enumerate() {
            let merged = if number == 0 { own.clone() } else { own.over(&drafts[0]) };
            backends.push(self.finish_backend_tls(&merged.backend, &mut examined_backends));
            drafts_to_backends.push(merged.backend.clone());
            self.servers[number].server.strict_sni = merged.strict == Some(true);
            let Some(engine) = merged.engine.clone().filter(|engine| engine.value) else {
                servers.push(None);
                continue;
            };
            let Some(mut server) = self.finish_tls_server(&merged, &engine) else {
                servers.push(None);
                continue;
            };
            if !merged.has_bad_file && !examined.contains(&server) {
                for fault in self.outside.examine_tls(&server) {
                    let (place, len) =
                        merged.place(fault.part).unwrap_or((engine.place, engine.len));
                    let mut finding = if fault.is_warning {
                        Finding::warning(fault.message)
                    } else {
                        Finding::error(fault.message)
                    };
                    if let Some(hint) = fault.hint {
                        finding = finding.hint(hint);
                    }
                    self.report_place(place, len, finding);
                }
                examined.push(server.clone());
            }
            server.class = class(&server, self.sni_policy, number);
            self.servers[number].server.tls_class = server.class;
            servers.push(Some(server));
        }
        self.settings.tls.servers = servers;
        self.settings.tls.sections =
            self.finish_section_tls(&drafts_to_backends, &mut examined_backends);
        self.settings.tls.backends = backends;
    }

    fn finish_tls_server(&mut self, draft: &TlsDraft, engine: &Placed<bool>) -> Option<TlsServer> {
        if draft.certificates.is_empty() && !draft.has_bad_file {
            let finding = Finding::error("TLS is on, and there is no certificate").hint(
                "name one with `SSLCertificateFile`, and its key with `SSLCertificateKeyFile`",
            );
            self.report_place(engine.place, engine.len, finding);
            return None;
        }
        let certificates = draft.certificates.iter().enumerate().map(|(number, certificate)| {
            // A file without a key of its own holds it.
            let key = draft.keys.get(number).unwrap_or(certificate);
            TlsCertificate { certificate: certificate.value.clone(), key: key.value.clone() }
        });
        let verify = draft.verify.unwrap_or(TlsVerify::None);
        let authorities = draft.authorities.as_ref().map(|files| files.value.clone());
        if authorities.is_none()
            && matches!(verify, TlsVerify::Optional | TlsVerify::Require)
            && !draft.has_bad_file
        {
            let finding = Finding::not_served(
                "clients are asked for a certificate, and no authority is known",
            )
            .hint("name those that are trusted with `SSLCACertificateFile`");
            self.report_place(engine.place, engine.len, finding);
        }
        if let Some(check) = &draft.revocation
            && check.value != TlsRevocation::None
            && draft.revoked.is_none()
            && !draft.has_bad_file
        {
            let finding = Finding::error("there are no lists to look clients up in")
                .hint("name them with `SSLCARevocationFile`");
            self.report_place(check.place, check.len, finding);
            return None;
        }
        let versions = draft.versions.unwrap_or(TlsVersions { v12: true, v13: true });
        Some(TlsServer {
            certificates: certificates.collect(),
            chain: draft.chain.as_ref().map(|chain| chain.value.clone()),
            versions,
            suites: draft.suites.of_versions(versions),
            own_order: draft.own_order.unwrap_or(false),
            groups: draft.groups.clone().unwrap_or_default(),
            client: TlsClient {
                verify,
                depth: draft.depth.unwrap_or(1),
                authorities: authorities.unwrap_or_default(),
                shown: draft.shown.as_ref().map(|files| files.value.clone()).unwrap_or_default(),
                revoked: draft
                    .revoked
                    .as_ref()
                    .map(|files| files.value.clone())
                    .unwrap_or_default(),
                revocation: draft
                    .revocation
                    .as_ref()
                    .map_or(TlsRevocation::None, |said| said.value),
            },
            tickets: draft.tickets.unwrap_or(true),
            ticket_key: draft.ticket_key.as_ref().map(|file| file.value.clone()),
            stapling: draft.stapling.as_ref().is_some_and(|stapling| stapling.value),
            class: 0,
        })
    }
}

/// What a connection to `server` and a request for another must share, as a number; never 0.
fn class(server: &TlsServer, policy: SniPolicy, number: usize) -> u64 {
    let mut hasher = DefaultHasher::new();
    let client = &server.client;
    match policy {
        SniPolicy::Strict => number.hash(&mut hasher),
        SniPolicy::Secure => {
            let mut certificates: Vec<_> =
                server.certificates.iter().map(|pair| (&pair.certificate, &pair.key)).collect();
            certificates.sort();
            (certificates, server.versions, &server.suites, client).hash(&mut hasher);
        }
        SniPolicy::AuthOnly => client.hash(&mut hasher),
        SniPolicy::Insecure => {}
    }
    hasher.finish().max(1)
}
