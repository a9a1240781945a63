//! The `milepost` binary: reads the command line, runs one command, turns its end into an exit code.

mod args;
mod commands;

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;
use milepost_load::dropin::Program;

use crate::args::{Cli, Command};

/// The command could not do what it was asked to.
const EXIT_FAILURE: u8 = 2;

fn main() -> ExitCode {
    let outcome = match Cli::parse_from(commands::drop_in::words(std::env::args_os())).command {
        Command::Serve(args) => commands::serve::run(args),
        Command::Check(args) => commands::check::run(args),
        Command::Explain(args) => commands::explain::run(args),
        Command::Load(args) => commands::load::run(*args),
        Command::Ab(args) => commands::drop_in::run(Program::Ab, &args),
        Command::Siege(args) => commands::drop_in::run(Program::Siege, &args),
        Command::HttpLoad(args) => commands::drop_in::run(Program::HttpLoad, &args),
        Command::Lab(args) => commands::lab::run(args),
        Command::Manual(args) => commands::manual::run(&args),
    };
    outcome.unwrap_or_else(|error| {
        if is_broken_pipe(&error) {
            // Whoever reads our output has seen enough.
            return ExitCode::SUCCESS;
        }
        eprint(&error);
        ExitCode::from(EXIT_FAILURE)
    })
}

/// Whether the reader of our output has gone.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let causes = error.chain().filter_map(|cause| cause.downcast_ref::<std::io::Error>());
    causes.into_iter().any(|cause| cause.kind() == std::io::ErrorKind::BrokenPipe)
        || error
            .downcast_ref::<serde_json::Error>()
            .and_then(serde_json::Error::io_error_kind)
            .is_some_and(|kind| kind == std::io::ErrorKind::BrokenPipe)
}

/// Prints the error and its causes on one line of stderr.
fn eprint(error: &anyhow::Error) {
    // There is nowhere left to say that stderr is gone.
    let _ = writeln!(std::io::stderr().lock(), "milepost: {error:#}");
}
