//! A compiled configuration, ready to answer.

use crate::build::{self, LoadOptions};
use crate::decision::Decision;
use crate::diagnostic::Diagnostic;
use crate::eval::{self, Scratch};
use crate::helper::{Database, MapProgram};
use crate::lint;
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

    pub(crate) fn program(&self) -> &Program {
        &self.program
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
}
