//! A compiled configuration, ready to answer.

use std::net::SocketAddr;
use std::path::Path;

use milepost_syntax::Tree;

use crate::build::{self, LoadOptions};
use crate::decision::Decision;
use crate::diagnostic::Diagnostic;
use crate::eval::{self, Scratch};
use crate::helper::{Database, MapProgram};
use crate::lint;
use crate::log::LogExpression;
use crate::outside::Outside;
use crate::program::Program;
use crate::proxy::{Backend, Balancer};
use crate::request::Request;
use crate::settings::Settings;

/// A compiled configuration. Immutable: share it between threads, and swap it whole.
#[derive(Debug)]
pub struct Site {
    program: Program,
}

/// A file that a site was read from.
#[derive(Debug, Clone, Copy)]
pub struct SourceFile<'s> {
    path: &'s Path,
    tree: &'s Tree,
}

impl<'s> SourceFile<'s> {
    /// Its name.
    pub fn path(&self) -> &'s Path {
        self.path
    }

    /// Its text.
    pub fn text(&self) -> &'s [u8] {
        self.tree.source()
    }

    /// Where in the text a directive begins, by the second half of [`Rule::id`].
    ///
    /// [`Rule::id`]: crate::Rule::id
    pub fn offset(&self, id: u32) -> usize {
        self.tree.source_offset(id as usize)
    }
}

/// What came of a load.
#[derive(Debug)]
pub struct Loaded {
    /// The site; `None` if any diagnostic is an error.
    pub site: Option<Site>,
    /// All that was found, in the order of the configuration.
    pub diagnostics: Vec<Diagnostic>,
}

impl Site {
    /// Reads and compiles a configuration. Reading never stops at the first error.
    pub fn load(options: &LoadOptions, outside: &dyn Outside) -> Loaded {
        let (program, diagnostics) = build::build(options, outside);
        Loaded { site: program.map(|program| Site { program }), diagnostics }
    }

    /// Looks for rules that load and do not do what was meant. Takes time for each rule.
    pub fn lint(&self) -> Vec<Diagnostic> {
        lint::lint(&self.program)
    }

    /// The files that the site was read from; the number of one is the first half of [`Rule::id`].
    ///
    /// [`Rule::id`]: crate::Rule::id
    pub fn files(&self) -> impl Iterator<Item = SourceFile<'_>> {
        let pool = &self.program.pool;
        (0..pool.files())
            .map(|number| SourceFile { path: pool.path(number), tree: pool.tree(number) })
    }

    pub(crate) fn program(&self) -> &Program {
        &self.program
    }

    /// The number of the server that a connection to `local` is for: the one called `name`, or else the
    /// first of the address.
    pub fn server_at(&self, local: SocketAddr, name: Option<&str>) -> usize {
        let name = name.unwrap_or_default().to_ascii_lowercase();
        eval::select(&self.program, local, name.as_bytes(), b"")
    }

    /// The settings of the server itself.
    pub fn settings(&self) -> &Settings {
        &self.program.settings
    }

    /// The programs that `prg:` maps ask, to be started before the first request.
    pub fn map_programs(&self) -> &[MapProgram] {
        &self.program.programs
    }

    /// The databases that `dbd:` maps ask, one for each server.
    pub fn databases(&self) -> &[Database] {
        &self.program.databases
    }

    /// The servers behind this one, by number.
    pub fn backends(&self) -> &[Backend] {
        &self.program.backends
    }

    /// The balancers, by number.
    pub fn balancers(&self) -> &[Balancer] {
        &self.program.balancers
    }

    /// Decides what Apache would answer. Allocates nothing once `scratch` has grown to the requests
    /// that it sees.
    pub fn decide<'s>(
        &'s self,
        request: &Request<'_>,
        outside: &dyn Outside,
        scratch: &'s mut Scratch,
    ) -> Decision<'s> {
        eval::decide(&self.program, request, outside, scratch)
    }

    /// Whether a log wants the request that `scratch` has decided, and that was answered with `status`.
    pub fn log_wants(
        &self,
        expression: &LogExpression,
        request: &Request<'_>,
        outside: &dyn Outside,
        scratch: &mut Scratch,
        status: u16,
    ) -> bool {
        eval::log_wants(&self.program, expression, request, outside, scratch, status)
    }
}
