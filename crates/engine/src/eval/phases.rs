//! The phases of one pass: from the path of a request to its file, and to the handler of that.
//!
//! Source: httpd 2.4.71 `server/request.c`, `ap_process_request_internal`, `ap_run_fixups`; `server/core.c`,
//! `ap_core_translate`.

use std::sync::Arc;

use super::{Config, End, Hop, Run, Translated};
use crate::outside::FileKind;
use crate::program::RewriteDir;
use crate::trace::Event;

impl Run<'_> {
    /// All phases of one pass.
    pub(super) fn process(&mut self, hop: &mut Hop) -> End {
        match self.prepare(hop) {
            Ok(path_info) => self.handle(hop, path_info),
            Err(end) => end,
        }
    }

    /// All phases before the handler; a subrequest that only looks ends here. `Ok` says whether the
    /// handler takes path info.
    pub(super) fn prepare(&mut self, hop: &mut Hop) -> Result<bool, End> {
        self.prepare_by(hop, Self::run_phases)
    }

    /// The same for a subrequest whose file name is known.
    pub(super) fn prepare_file(&mut self, hop: &mut Hop) -> Result<bool, End> {
        self.prepare_by(hop, Self::run_phases_of_file)
    }

    fn prepare_by(
        &mut self,
        hop: &mut Hop,
        run: fn(&mut Self, &mut Hop) -> Result<bool, End>,
    ) -> Result<bool, End> {
        let (naming, levels) = (self.naming, self.levels);
        let result = run(self, hop);
        if hop.subrequest {
            (self.naming, self.levels) = (naming, levels);
        }
        result
    }

    fn run_phases(&mut self, hop: &mut Hop) -> Result<bool, End> {
        (hop.is_typed, hop.is_handled) = (false, false);
        self.note(None, |_| Event::Path {
            path: hop.uri.clone(),
            query: hop.has_args.then(|| hop.args.clone()),
        });
        let config = self.location_config(hop);
        self.add_vary(hop);
        hop.config = config.shared();
        self.naming = config.get().naming;
        self.levels = config.get().levels;
        if let Translated::End(end) = self.translate(hop, &config) {
            return Err(end);
        }
        self.settle_env(hop);
        hop.config = None;
        if hop.uri == b"*" {
            return Err(End::Server);
        }
        if self.request.method == b"TRACE" && !hop.subrequest {
            return Err(self.send_back(hop));
        }
        if hop.proxied {
            let config = self.proxy_config(hop);
            hop.config = config.shared();
            self.naming = config.get().naming;
            self.levels = config.get().levels;
            self.set_env_of_sections(hop, &config);
            self.check_access(hop, &config)?;
            self.canonical_proxy_url(hop, config.get()).map_err(End::Status)?;
            return match self.fixups(hop, &config) {
                Some(end) => Err(end),
                None => Ok(false),
            };
        }
        self.run_phases_of_file(hop)
    }

    /// The phases that begin with the name of the file.
    fn run_phases_of_file(&mut self, hop: &mut Hop) -> Result<bool, End> {
        let config = self.map_to_storage(hop).map_err(End::Status)?;
        self.add_vary(hop);
        hop.config = config.shared();
        self.naming = config.get().naming;
        self.levels = config.get().levels;
        self.note(None, |_| Event::File {
            path: hop.filename.clone(),
            kind: match hop.kind {
                Some(FileKind::File(_)) => "file",
                Some(FileKind::Directory) => "directory",
                Some(FileKind::Missing) | None => "missing",
                Some(FileKind::Link | FileKind::Other) => "other",
            },
            path_info: hop.path_info.clone(),
        });
        self.set_env_of_sections(hop, &config);
        self.check_access(hop, &config)?;
        let config = if self.negotiate(hop, &config)? {
            match &hop.config {
                Some(config) => Config::Merged(Arc::clone(config)),
                None => Config::Base(&self.server.base),
            }
        } else {
            config
        };
        hop.is_typed = true;
        match self.fixups(hop, &config) {
            Some(end) => Err(end),
            None => Ok(config.get().path_info == Some(true)),
        }
    }

    /// From URL-path to file path.
    fn translate(&mut self, hop: &mut Hop, config: &Config<'_>) -> Translated {
        if config.get().rewrite.as_ref().is_some_and(RewriteDir::is_on) {
            self.set_script_env(hop);
        }
        match self.rewrite_server(hop, config) {
            Translated::Declined => {}
            done => return done,
        }
        match self.translate_proxy(hop, config) {
            Translated::Declined => {}
            done => return done,
        }
        match self.translate_alias(hop, config) {
            Translated::Declined => {}
            done => return done,
        }
        match self.translate_user(hop) {
            Translated::Declined => {}
            done => return done,
        }
        match self.translate_host(hop) {
            Translated::Declined => {}
            done => return done,
        }
        if self.translate_core(hop) { Translated::Done } else { Translated::End(End::Status(403)) }
    }

    /// Document root and path; false if the path leaves the root.
    fn translate_core(&mut self, hop: &mut Hop) -> bool {
        let Hop { uri, filename, .. } = hop;
        self.below_root(uri, filename)
    }

    pub(super) fn fixups(&mut self, hop: &mut Hop, config: &Config<'_>) -> Option<End> {
        if let Some(end) = self.rewrite_directory(hop, config) {
            match end {
                // The chain of fixups goes on after an internal rewrite, and a redirect beats it.
                End::Internal => {
                    let target = std::mem::take(&mut self.work.answer);
                    let redirect = self
                        .fixup_alias(hop, config)
                        .or_else(|| self.redirect_to_slash(hop, config));
                    if redirect.is_none() {
                        self.set_fixed_env(hop, config);
                        self.edit_request(hop, config);
                        self.work.answer = target;
                        return Some(End::Internal);
                    }
                    return redirect;
                }
                end => return Some(end),
            }
        }
        if let Some(end) = self.fixup_alias(hop, config) {
            return Some(end);
        }
        self.set_fixed_env(hop, config);
        // Rules of a directory that send a request to a backend leave it a directory, and mod_dir looks at it all
        // the same.
        let is_directory = hop.kind == Some(FileKind::Directory);
        let end =
            if hop.proxied && !is_directory { None } else { self.fixup_directory(hop, config) };
        let end = end.or_else(|| self.respell(hop, config));
        if end.is_none() {
            self.edit_request(hop, config);
        }
        end
    }

    /// One pass, from the request as it was read to its handler. A bare path is one that needs no decoding.
    pub(super) fn pass(&mut self, hop: &mut Hop, path: &[u8], is_bare: bool) -> End {
        let read = self.read(hop, path);
        let result = read.and_then(|()| {
            if is_bare {
                hop.uri.clear();
                hop.uri.extend_from_slice(path);
                return Ok(());
            }
            self.set_path(hop, path).map_err(End::Status)
        });
        result.map_or_else(|end| end, |()| self.process(hop))
    }
}
