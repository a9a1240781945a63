//! The `milepost` binary: reads the command line, runs one command, turns its end into an exit code.

mod args;
mod commands;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Cli, Command};

/// The command could not do what it was asked to.
const EXIT_FAILURE: u8 = 2;

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Serve(args) => commands::serve::run(args),
        Command::Load(args) => commands::load::run(args),
        Command::Lab(args) => commands::lab::run(args),
    };
    outcome.unwrap_or_else(|error| {
        eprint(&error);
        ExitCode::from(EXIT_FAILURE)
    })
}

/// Prints the error and its causes on one line of stderr.
#[allow(clippy::print_stderr, reason = "the one place where errors reach the terminal")]
fn eprint(error: &anyhow::Error) {
    eprintln!("milepost: {error:#}");
}
