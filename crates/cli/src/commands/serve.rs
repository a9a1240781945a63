//! `milepost serve`: loads a configuration, binds, serves, reloads and stops when told to.
//!
//! Nothing is listened on before the whole configuration has been read, and nothing is announced
//! before all workers accept connections, so that a script can wait for the one line on stderr.
//!
//! A reload happens on a thread of its own, so that a stop is heard while a large configuration loads.
//! What was served before is served until the new configuration is ready, and goes on being served if
//! that never is.

use std::io;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, mpsc};
use std::thread;

use anyhow::Context;
use milepost_engine::{LoadOptions, Loaded, Severity, Site};
use milepost_server::{
    FileSystem, Reloader, Server, SiteResponder, Stopper, raise_descriptor_limit,
};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
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
at once.\n\nSIGHUP and SIGUSR1 load the configuration anew. Connections stay open and no request fails; Listen \
directives take effect too. A configuration with an error changes nothing, and is said on stderr.\n\nExit status: 0 stopped as it was told to, 2 could not load the configuration or serve.")]
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
    let (options, what) = args.configuration.options(&args.directory, Some(DEFAULT_LISTEN))?;
    let Some(site) = load(&options) else {
        anyhow::bail!("{what} does not load");
    };
    raise_descriptor_limit();
    let server = Server::bind(site.settings(), workers)?;
    let addresses = addresses(&server.addresses());
    let first = Arc::clone(&site);
    let running = server.start(move || SiteResponder::new(Arc::clone(&first)))?;
    let reloading = Reloading { options, what: what.clone(), reloader: running.reloader(), site };
    act_on_signals(running.stopper(), reloading).context("cannot listen to signals")?;
    say(&format!("milepost: serving {what} on {addresses}"));
    running.join()?;
    Ok(ExitCode::SUCCESS)
}

/// Loads a configuration, and says what is wrong with it.
fn load(options: &LoadOptions) -> Option<Arc<Site>> {
    let Loaded { site, diagnostics } = Site::load(options, &FileSystem);
    for diagnostic in diagnostics.iter().filter(|found| found.severity >= Severity::Warning) {
        say(&diagnostic.to_string());
    }
    site.map(Arc::new)
}

/// What a reload needs.
struct Reloading {
    options: LoadOptions,
    what: String,
    reloader: Reloader,
    /// What is served. Kept here so that it is this thread, and no worker, that takes it apart.
    site: Arc<Site>,
}

impl Reloading {
    fn reload(&mut self) {
        let what = &self.what;
        let Some(site) = load(&self.options) else {
            return say(&format!(
                "milepost: {what} does not load; what was served before still is"
            ));
        };
        let responding = Arc::clone(&site);
        let responder = move || SiteResponder::new(Arc::clone(&responding));
        match self.reloader.reload(site.settings(), responder) {
            Ok(()) => {
                let addresses = addresses(&self.reloader.addresses());
                self.site = site;
                say(&format!("milepost: serving {what} anew on {addresses}"));
            }
            Err(error) => {
                say(&format!("milepost: {error}; what was served before still is"));
            }
        }
    }
}

/// Reloads at SIGHUP and SIGUSR1, and stops the server at the first SIGTERM or SIGINT; at the second the
/// process ends at once.
fn act_on_signals(stopper: Stopper, mut reloading: Reloading) -> io::Result<()> {
    let stopping = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGINT] {
        // The order matters: the first signal finds the flag unset, and only then sets it.
        let status = EXIT_BY_SIGNAL + signal;
        signal_hook::flag::register_conditional_shutdown(signal, status, Arc::clone(&stopping))?;
        signal_hook::flag::register(signal, Arc::clone(&stopping))?;
    }
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP, SIGUSR1])?;
    let (reload, reloads) = mpsc::channel();
    thread::Builder::new().name("milepost-signals".to_owned()).spawn(move || {
        for signal in signals.forever() {
            if matches!(signal, SIGTERM | SIGINT) {
                return stopper.stop();
            }
            // The other thread lives as long as this one.
            let _ = reload.send(());
        }
    })?;
    thread::Builder::new().name("milepost-reload".to_owned()).spawn(move || {
        while reloads.recv().is_ok() {
            // Those that have come by now ask for nothing more than the load that begins now.
            while reloads.try_recv().is_ok() {}
            reloading.reload();
        }
    })?;
    Ok(())
}

/// Addresses, as they are announced.
fn addresses(addresses: &[SocketAddr]) -> String {
    addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// Tells whoever runs the server.
#[allow(clippy::print_stderr, reason = "what is said about serving goes to stderr")]
fn say(message: &str) {
    eprintln!("{message}");
}
