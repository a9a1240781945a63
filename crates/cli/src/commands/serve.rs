//! `milepost serve`: loads a configuration, binds, serves, and stops when told to.
//!
//! Nothing is listened on before the whole configuration has been read, and nothing is announced
//! before all workers accept connections, so that a script can wait for the one line on stderr.

use std::io;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Context;
use milepost_engine::{Loaded, Severity};
use milepost_server::{Server, SiteResponder, Stopper, raise_descriptor_limit};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::configuration::Configuration;

/// Where a directory is served when no configuration says anything else.
const DEFAULT_LISTEN: &str = "127.0.0.1:8080";

/// What a shell adds to the number of the signal that ended a process.
const EXIT_BY_SIGNAL: i32 = 128;

/// Arguments of `milepost serve`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
SIGTERM and SIGINT stop the server: answers that are under way are finished first. A second one stops it \
at once.\n\nExit status: 0 stopped as it was told to, 2 could not load the configuration or serve.")]
pub(crate) struct Args {
    #[command(flatten)]
    configuration: Configuration,
    /// Number of worker threads; as many as there are cores if not given
    #[arg(long, value_name = "N")]
    workers: Option<NonZeroUsize>,
    /// Directory to serve when there is no configuration file; on 127.0.0.1:8080, unless -C or -c say
    /// Listen
    #[arg(value_name = "DIR", default_value = ".", conflicts_with = "file")]
    directory: PathBuf,
}

/// Runs `milepost serve` until it is stopped.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let workers = match args.workers {
        Some(workers) => workers,
        None => std::thread::available_parallelism().context("cannot count the cores")?,
    };
    let (loaded, what) = args.configuration.load(&args.directory, Some(DEFAULT_LISTEN))?;
    let Loaded { site, diagnostics } = loaded;
    let worst = diagnostics.iter().filter(|found| found.severity >= Severity::Warning);
    for diagnostic in worst {
        say(&diagnostic.to_string());
    }
    let Some(site) = site else {
        anyhow::bail!("{what} does not load");
    };
    let site = Arc::new(site);
    raise_descriptor_limit();
    let server = Server::bind(site.settings(), workers)?;
    let addresses: Vec<_> = server.addresses().iter().map(ToString::to_string).collect();
    let running = server.start(move || SiteResponder::new(Arc::clone(&site)))?;
    stop_on_signal(running.stopper()).context("cannot listen to signals")?;
    say(&format!("milepost: serving {what} on {}", addresses.join(", ")));
    running.join()?;
    Ok(ExitCode::SUCCESS)
}

/// Stops the server at the first signal; at the second the process ends at once.
fn stop_on_signal(stopper: Stopper) -> io::Result<()> {
    let signals = [SIGTERM, SIGINT];
    let stopping = Arc::new(AtomicBool::new(false));
    for signal in signals {
        // The order matters: the first signal finds the flag unset, and only then sets it.
        let status = EXIT_BY_SIGNAL + signal;
        signal_hook::flag::register_conditional_shutdown(signal, status, Arc::clone(&stopping))?;
        signal_hook::flag::register(signal, Arc::clone(&stopping))?;
    }
    let mut signals = Signals::new(signals)?;
    std::thread::Builder::new().name("milepost-signals".to_owned()).spawn(move || {
        if signals.forever().next().is_some() {
            stopper.stop();
        }
    })?;
    Ok(())
}

/// Tells whoever runs the server.
#[allow(clippy::print_stderr, reason = "what is said about serving goes to stderr")]
fn say(message: &str) {
    eprintln!("{message}");
}
