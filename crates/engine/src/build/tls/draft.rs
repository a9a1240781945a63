//! What the directives of mod_ssl have said of one server, and what of the main server stands in for it.
//!
//! Source: httpd 2.4.71 `modules/ssl/ssl_engine_config.c`, `modssl_ctx_cfg_merge`,
//! `ssl_config_server_merge`.

use std::path::PathBuf;

use milepost_syntax::Word;

use super::super::Directive;
use super::backend::BackendDraft;
use super::suites;
use crate::decision::Place;
use crate::tls::{TlsPart, TlsRevocation, TlsVerify, TlsVersions};

/// Something that a directive has said, and where.
#[derive(Debug, Clone)]
pub(super) struct Placed<T> {
    pub(super) value: T,
    pub(super) place: Place,
    pub(super) len: usize,
}

/// What `SSLCipherSuite` has said, for versions up to TLS 1.2 and for TLS 1.3.
#[derive(Debug, Clone, Default)]
pub(super) struct Suites {
    pub(super) old: Option<Placed<Vec<&'static str>>>,
    pub(super) new: Option<Placed<Vec<&'static str>>>,
}

impl Suites {
    /// Takes what a directive says, if it says anything.
    pub(super) fn take(&mut self, said: Suites) {
        self.old = said.old.or(self.old.take());
        self.new = said.new.or(self.new.take());
    }

    /// What a virtual host says, and the main server where it says nothing.
    pub(super) fn over(&self, main: &Suites) -> Suites {
        Suites {
            old: self.old.clone().or_else(|| main.old.clone()),
            new: self.new.clone().or_else(|| main.new.clone()),
        }
    }

    /// Those that go with the versions, the preferred first.
    pub(super) fn of_versions(&self, versions: TlsVersions) -> Vec<&'static str> {
        let mut chosen = Vec::new();
        if versions.v13 {
            let own = self.new.as_ref().map(|suites| suites.value.clone());
            chosen.extend(own.unwrap_or_else(suites::all_13));
        }
        if versions.v12 {
            let own = self.old.as_ref().map(|suites| suites.value.clone());
            chosen.extend(own.unwrap_or_else(suites::all));
        }
        chosen
    }
}

/// TLS of one server while its directives are read.
#[derive(Debug, Clone, Default)]
pub(in crate::build) struct TlsDraft {
    pub(super) engine: Option<Placed<bool>>,
    pub(super) certificates: Vec<Placed<PathBuf>>,
    pub(super) keys: Vec<Placed<PathBuf>>,
    pub(super) chain: Option<Placed<PathBuf>>,
    pub(super) versions: Option<TlsVersions>,
    pub(super) suites: Suites,
    pub(super) own_order: Option<bool>,
    pub(super) groups: Option<Vec<&'static str>>,
    pub(super) verify: Option<TlsVerify>,
    pub(super) depth: Option<u32>,
    pub(super) authorities: Option<Placed<Vec<PathBuf>>>,
    pub(super) shown: Option<Placed<Vec<PathBuf>>>,
    pub(super) revoked: Option<Placed<Vec<PathBuf>>>,
    pub(super) revocation: Option<Placed<TlsRevocation>>,
    pub(super) tickets: Option<bool>,
    pub(super) ticket_key: Option<Placed<PathBuf>>,
    pub(super) stapling: Option<Placed<bool>>,
    pub(super) strict: Option<bool>,
    pub(super) backend: BackendDraft,
    /// A file has been complained about: what depends on it would only repeat that.
    pub(super) has_bad_file: bool,
}

impl TlsDraft {
    /// Whether `SSLEngine` has been said.
    pub(in crate::build) fn is_said(&self) -> bool {
        self.engine.is_some()
    }

    /// What a virtual host says, and the main server where it says nothing.
    pub(super) fn over(&self, main: &TlsDraft) -> TlsDraft {
        let list = |own: &[Placed<PathBuf>], main: &[Placed<PathBuf>]| {
            // The first of ours stands for the first of theirs, and so on.
            own.iter().chain(main.iter().skip(own.len())).cloned().collect()
        };
        TlsDraft {
            engine: self.engine.clone().or_else(|| main.engine.clone()),
            certificates: list(&self.certificates, &main.certificates),
            keys: list(&self.keys, &main.keys),
            chain: self.chain.clone().or_else(|| main.chain.clone()),
            versions: self.versions.or(main.versions),
            suites: self.suites.over(&main.suites),
            own_order: self.own_order.or(main.own_order),
            groups: self.groups.clone().or_else(|| main.groups.clone()),
            verify: self.verify.or(main.verify),
            depth: self.depth.or(main.depth),
            authorities: self.authorities.clone().or_else(|| main.authorities.clone()),
            shown: self.shown.clone().or_else(|| main.shown.clone()),
            revoked: self.revoked.clone().or_else(|| main.revoked.clone()),
            revocation: self.revocation.clone().or_else(|| main.revocation.clone()),
            tickets: self.tickets.or(main.tickets),
            ticket_key: self.ticket_key.clone().or_else(|| main.ticket_key.clone()),
            stapling: self.stapling.clone().or_else(|| main.stapling.clone()),
            strict: self.strict.or(main.strict),
            backend: self.backend.over(&main.backend),
            has_bad_file: self.has_bad_file || main.has_bad_file,
        }
    }

    /// Where a part was set.
    pub(super) fn place(&self, part: TlsPart) -> Option<(Place, usize)> {
        fn at<T>(placed: &Placed<T>) -> (Place, usize) {
            (placed.place, placed.len)
        }
        match part {
            TlsPart::Certificate(number) => self.certificates.get(number).map(at),
            TlsPart::Key(number) => self.keys.get(number).or(self.certificates.get(number)).map(at),
            TlsPart::Chain => self.chain.as_ref().map(at),
            TlsPart::Suites => self.suites.old.as_ref().or(self.suites.new.as_ref()).map(at),
            TlsPart::Authorities => self.authorities.as_ref().map(at),
            TlsPart::Shown => self.shown.as_ref().map(at),
            TlsPart::Revoked => self.revoked.as_ref().map(at),
            TlsPart::TicketKey => self.ticket_key.as_ref().map(at),
            TlsPart::Stapling => self.stapling.as_ref().map(at),
        }
    }
}

impl<T> Placed<T> {
    pub(super) fn map<U>(self, change: impl FnOnce(T) -> U) -> Placed<U> {
        Placed { value: change(self.value), place: self.place, len: self.len }
    }
}

/// Adds files to those that were named before.
pub(super) fn add(files: &mut Option<Placed<Vec<PathBuf>>>, more: Placed<Vec<PathBuf>>) {
    match files {
        Some(files) => files.value.extend(more.value),
        None => *files = Some(more),
    }
}

/// Remembers where a word stands.
pub(super) fn placed<T>(directive: &Directive<'_>, word: &Word<'_>, value: T) -> Placed<T> {
    match directive.args_text.place() {
        Some(place) => {
            let place = Place { offset: place.offset + word.at as u32, ..place };
            Placed { value, place, len: word.len }
        }
        // The arguments were expanded, so their bytes are not those of the file.
        None => placed_name(directive, value),
    }
}

/// Remembers where a directive stands.
pub(super) fn placed_name<T>(directive: &Directive<'_>, value: T) -> Placed<T> {
    Placed { value, place: directive.place, len: directive.name_text.len() }
}
