//! Writes manual pages and shell completions, made of the same definition as the command line itself.
//!
//! For whoever makes a package; `make install` runs it. Hidden from the help, as nobody else needs it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::Cli;

/// What a shell looks for, below the data directory.
const COMPLETIONS: &[(Shell, &str)] = &[
    (Shell::Bash, "bash-completion/completions/milepost"),
    (Shell::Zsh, "zsh/site-functions/_milepost"),
    (Shell::Fish, "fish/vendor_completions.d/milepost.fish"),
];

/// Arguments of `milepost manual`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Data directory of the system, as `/usr/share`
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

/// Writes all of it.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let mut command = Cli::command();
    command.build();
    write_pages(&command, "milepost", &args.directory.join("man/man1"))?;
    for &(shell, path) in COMPLETIONS {
        let mut text = Vec::new();
        clap_complete::generate(shell, &mut Cli::command(), "milepost", &mut text);
        write(&args.directory.join(path), &text)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A page for a command, and for each below it.
fn write_pages(command: &clap::Command, name: &str, directory: &Path) -> anyhow::Result<()> {
    let page = clap_mangen::Man::new(command.clone().display_name(name));
    let mut text = Vec::new();
    page.render(&mut text)?;
    write(&directory.join(format!("{name}.1")), &text)?;
    let visible = |command: &&clap::Command| !command.is_hide_set() && command.get_name() != "help";
    for below in command.get_subcommands().filter(visible) {
        write_pages(below, &format!("{name}-{}", below.get_name()), directory)?;
    }
    Ok(())
}

fn write(path: &Path, text: &[u8]) -> anyhow::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(directory)
        .and_then(|()| fs::write(path, text))
        .with_context(|| format!("cannot write {}", path.display()))
}
