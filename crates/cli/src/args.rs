//! The command line as it was typed.

use clap::{Parser, Subcommand};

use crate::commands;

/// Tells what your redirects cost, and serves them at no cost.
#[derive(Debug, Parser)]
#[command(name = "milepost", version, propagate_version = true, arg_required_else_help = true)]
#[command(
    after_help = "Exit status: 0 done, 1 a finding, mismatch or failed assertion, 2 could not do it."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The verbs of milepost.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve a configuration: Apache's directives, Apache's answers.
    Serve(commands::serve::Args),
    /// Find what is wrong with a configuration
    Check(commands::check::Args),
    /// Tell which rule answers a request, and every step on the way
    Explain(commands::explain::Args),
    /// Put load on a server and check every answer.
    Load(Box<commands::load::Args>),
    /// Put load on a server as ab does; `milepost ab -h` lists its options
    Ab(commands::drop_in::Args),
    /// Put load on a server as siege does; `milepost siege -h` lists its options
    Siege(commands::drop_in::Args),
    /// Put load on a server as http_load does; `milepost http_load -h` lists its options
    #[command(name = "http_load")]
    HttpLoad(commands::drop_in::Args),
    /// Run experiments on real servers.
    Lab(commands::lab::Args),
    /// Write manual pages and shell completions below a data directory, for packages
    #[command(hide = true)]
    Manual(commands::manual::Args),
}
