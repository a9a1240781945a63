//! The directives of mod_ssl for connections to servers behind this one: `SSLProxyEngine` and its relatives.
//!
//! Source: httpd 2.4.71 `modules/ssl/ssl_engine_config.c`, `ssl_cmd_SSLProxyEngine` and below;
//! `ssl_engine_io.c`, `ssl_io_filter_handshake`.

use std::path::PathBuf;

use super::super::report::Finding;
use super::super::{Builder, Directive};
use super::draft::{Placed, Suites, add, placed_name};
use crate::decision::Place;
use crate::tls::{TlsBackend, TlsFault, TlsPart, TlsRevocation, TlsVerify, TlsVersions};

/// The directives that are done here, in lower case.
const NAMES: &[&[u8]] = &[
    b"sslproxycacertificatefile",
    b"sslproxycacertificatepath",
    b"sslproxycarevocationcheck",
    b"sslproxycarevocationfile",
    b"sslproxycarevocationpath",
    b"sslproxycheckpeercn",
    b"sslproxycheckpeerexpire",
    b"sslproxycheckpeername",
    b"sslproxyciphersuite",
    b"sslproxyengine",
    b"sslproxymachinecertificatefile",
    b"sslproxyprotocol",
    b"sslproxyverify",
    b"sslproxyverifydepth",
];

/// TLS to backends while its directives are read.
#[derive(Debug, Clone, Default)]
pub(super) struct BackendDraft {
    engine: Option<Placed<bool>>,
    versions: Option<TlsVersions>,
    verify: Option<TlsVerify>,
    depth: Option<u32>,
    authorities: Option<Placed<Vec<PathBuf>>>,
    suites: Suites,
    revoked: Option<Placed<Vec<PathBuf>>>,
    revocation: Option<Placed<TlsRevocation>>,
    own: Option<Placed<PathBuf>>,
    checks_name: Option<bool>,
    checks_common_name: Option<bool>,
    checks_expiry: Option<bool>,
}

pub(super) fn is_directive(lower: &[u8]) -> bool {
    NAMES.contains(&lower)
}

impl Builder<'_> {
    /// Runs a directive that [`is_directive`].
    pub(super) fn backend_tls_directive(
        &mut self,
        lower: &[u8],
        directive: &Directive<'_>,
        server: usize,
    ) {
        match lower {
            b"sslproxyprotocol" => {
                let versions = self.ssl_versions(directive);
                self.backend_draft(server, |draft| draft.versions = versions.or(draft.versions));
            }
            b"sslproxyverify" => {
                let verify = self.ssl_verify_word(directive);
                self.backend_draft(server, |draft| draft.verify = verify.or(draft.verify));
            }
            b"sslproxyverifydepth" => {
                let depth = self.one_number(directive);
                self.backend_draft(server, |draft| draft.depth = depth.or(draft.depth));
            }
            b"sslproxycacertificatefile" => self.ssl_file(directive, server, |draft, file| {
                add(&mut draft.backend.authorities, file.map(|file| vec![file]));
            }),
            b"sslproxycacertificatepath" => {
                if let Some(files) = self.ssl_path(directive, false) {
                    self.backend_draft(server, |draft| add(&mut draft.authorities, files));
                }
            }
            b"sslproxycarevocationfile" => self.ssl_file(directive, server, |draft, file| {
                add(&mut draft.backend.revoked, file.map(|file| vec![file]));
            }),
            b"sslproxycarevocationpath" => {
                if let Some(files) = self.ssl_path(directive, true) {
                    self.backend_draft(server, |draft| add(&mut draft.revoked, files));
                }
            }
            b"sslproxycarevocationcheck" => {
                if let Some(revocation) = self.ssl_revocation(directive) {
                    let revocation = Some(placed_name(directive, revocation));
                    self.backend_draft(server, |draft| draft.revocation = revocation);
                }
            }
            b"sslproxyciphersuite" => {
                let suites = self.ssl_cipher_suite(directive);
                self.backend_draft(server, |draft| draft.suites.take(suites));
            }
            b"sslproxymachinecertificatefile" => {
                self.ssl_file(directive, server, |draft, file| draft.backend.own = Some(file));
            }
            _ => {
                let Some(on) = self.flag(directive) else { return };
                self.backend_draft(server, |draft| match lower {
                    b"sslproxyengine" => draft.engine = Some(placed_name(directive, on)),
                    b"sslproxycheckpeername" => draft.checks_name = Some(on),
                    b"sslproxycheckpeercn" => draft.checks_common_name = Some(on),
                    _ => draft.checks_expiry = Some(on),
                });
            }
        }
    }

    fn backend_draft(&mut self, server: usize, change: impl FnOnce(&mut BackendDraft)) {
        change(&mut self.servers[server].tls.backend);
    }

    /// Puts together what a server says, and has its files looked at if they are not among `examined`.
    pub(super) fn finish_backend_tls(
        &mut self,
        draft: &BackendDraft,
        examined: &mut Vec<TlsBackend>,
    ) -> Option<TlsBackend> {
        let engine = draft.engine.as_ref().filter(|engine| engine.value)?;
        let verify = draft.verify.unwrap_or(TlsVerify::None);
        if draft.authorities.is_none() && matches!(verify, TlsVerify::Optional | TlsVerify::Require)
        {
            let finding =
                Finding::warning("backends are verified, and no authority is known: all fail")
                    .hint("name those that are trusted with `SSLProxyCACertificateFile`");
            self.report_place(engine.place, engine.len, finding);
        }
        let revocation = draft.revocation.as_ref();
        if let Some(check) = revocation.filter(|check| check.value != TlsRevocation::None)
            && draft.revoked.is_none()
        {
            let finding = Finding::error("there are no lists to look backends up in")
                .hint("name them with `SSLProxyCARevocationFile`");
            self.report_place(check.place, check.len, finding);
        }
        let versions = draft.versions.unwrap_or(TlsVersions { v12: true, v13: true });
        let backend = TlsBackend {
            versions,
            suites: draft.suites.of_versions(versions),
            revoked: draft.revoked.as_ref().map_or_else(Vec::new, |all| all.value.clone()),
            revocation: revocation.map_or(TlsRevocation::None, |check| check.value),
            verify,
            depth: draft.depth.unwrap_or(1),
            authorities: draft.authorities.as_ref().map_or_else(Vec::new, |all| all.value.clone()),
            own: draft.own.as_ref().map(|own| own.value.clone()),
            checks_name: draft.checks_name,
            checks_common_name: draft.checks_common_name,
            checks_expiry: draft.checks_expiry != Some(false),
        };
        if !examined.contains(&backend) {
            for TlsFault { part, message, hint, .. } in self.outside.examine_backend_tls(&backend) {
                let (place, len) = draft.place(part).unwrap_or((engine.place, engine.len));
                let finding = Finding::error(message);
                let finding = match hint {
                    Some(hint) => finding.hint(hint),
                    None => finding,
                };
                self.report_place(place, len, finding);
            }
            examined.push(backend.clone());
        }
        Some(backend)
    }
}

impl BackendDraft {
    /// Where the directive stands that named a part.
    fn place(&self, part: TlsPart) -> Option<(Place, usize)> {
        match part {
            TlsPart::Authorities => self.authorities.as_ref().map(|all| (all.place, all.len)),
            TlsPart::Revoked => self.revoked.as_ref().map(|all| (all.place, all.len)),
            TlsPart::Certificate(_) | TlsPart::Key(_) => {
                self.own.as_ref().map(|own| (own.place, own.len))
            }
            _ => None,
        }
    }

    /// What a virtual host says, and the main server where it says nothing.
    pub(super) fn over(&self, main: &BackendDraft) -> BackendDraft {
        BackendDraft {
            engine: self.engine.clone().or_else(|| main.engine.clone()),
            versions: self.versions.or(main.versions),
            verify: self.verify.or(main.verify),
            depth: self.depth.or(main.depth),
            authorities: self.authorities.clone().or_else(|| main.authorities.clone()),
            suites: self.suites.over(&main.suites),
            revoked: self.revoked.clone().or_else(|| main.revoked.clone()),
            revocation: self.revocation.clone().or_else(|| main.revocation.clone()),
            own: self.own.clone().or_else(|| main.own.clone()),
            checks_name: self.checks_name.or(main.checks_name),
            checks_common_name: self.checks_common_name.or(main.checks_common_name),
            checks_expiry: self.checks_expiry.or(main.checks_expiry),
        }
    }
}
