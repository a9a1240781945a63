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
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;

use anyhow::Context;
use milepost_engine::{LoadOptions, Loaded, Severity, Site};
use milepost_server::{
    ErrorLog, FileSystem, Helpers, Logs, PidFile, Reloader, Server, SiteResponder, Stopper,
    become_user, raise_descriptor_limit, report,
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
directives take effect too. A configuration with an error changes nothing, and is said on stderr.\n\nStarted as root, the server takes the rights of User and Group when its ports are bound. PidFile, \
ErrorLog and CustomLog say where its files go; without ErrorLog, errors go to stderr.\n\nExit status: 0 stopped as it was told to, 2 could not load the configuration or serve.")]
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
    let pid_file = match &site.settings().pid_file {
        Some(path) => Some(PidFile::write(path).context("cannot write the pid file")?),
        None => None,
    };
    let error_log = open_error_log(&site)?;
    let logs = Logs::open(&site.settings().logs, None)?;
    // From here on threads are started, which have the rights of this one.
    become_user(site.settings())?;
    let serving = Serving::new(site, logs)?;
    let running = server.start(serving.responder())?;
    let serving = Arc::new(Mutex::new(serving));
    let reloading = Reloading {
        options,
        what: what.clone(),
        reloader: running.reloader(),
        serving: Arc::clone(&serving),
    };
    act_on_signals(running.stopper(), reloading).context("cannot listen to signals")?;
    report(&format!("serving {what} on {addresses}"));
    if let Some(log) = error_log {
        log.install().context("cannot write the error log")?;
    }
    let outcome = running.join();
    lock(&serving).helpers.stop();
    lock(&serving).logs.close();
    drop(pid_file);
    outcome?;
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
    serving: Arc<Mutex<Serving>>,
}

/// What is served. Kept beside the workers so that none of them has to take it apart when it is replaced.
struct Serving {
    site: Arc<Site>,
    logs: Arc<Logs>,
    helpers: Helpers,
}

impl Serving {
    /// Starts the writer of the logs of a site, and the programs that its maps ask.
    fn new(site: Arc<Site>, logs: Logs) -> anyhow::Result<Serving> {
        logs.start()?;
        let helpers = Helpers::start(&site)?;
        Ok(Serving { site, logs: Arc::new(logs), helpers })
    }

    /// What makes the responder of each worker.
    fn responder(&self) -> impl Fn() -> SiteResponder + Send + Sync + 'static {
        let (site, logs) = (Arc::clone(&self.site), Arc::clone(&self.logs));
        // Each worker has its own share; the first one is only there to be shared.
        let helpers = Mutex::new(self.helpers.share());
        move || {
            SiteResponder::with_logs(Arc::clone(&site), Arc::clone(&logs))
                .with_helpers(lock(&helpers).share())
        }
    }
}

impl Reloading {
    fn reload(&self) {
        match self.try_reload() {
            Ok(addresses) => report(&format!("serving {} anew on {addresses}", self.what)),
            Err(error) => report(&format!("{error:#}; what was served before still is")),
        }
    }

    /// Puts the configuration as it is now in place of the old one; returns the addresses.
    fn try_reload(&self) -> anyhow::Result<String> {
        let Some(site) = load(&self.options) else {
            anyhow::bail!("{} does not load", self.what);
        };
        let logs = Logs::open(&site.settings().logs, Some(&lock(&self.serving).logs))?;
        let new = Serving::new(site, logs)?;
        self.reloader.reload(new.site.settings(), new.responder())?;
        // Old rules are taken apart, and old logs written to their end, here and by no worker.
        let old = std::mem::replace(&mut *lock(&self.serving), new);
        drop(old);
        match open_error_log(&lock(&self.serving).site) {
            Ok(Some(log)) => log.install().context("cannot write the error log")?,
            Ok(None) => {}
            // `User` may not open what the server could open at its start: that log goes on.
            Err(error) => report(&format!("{error:#}; the log that is open stays")),
        }
        Ok(addresses(&self.reloader.addresses()))
    }
}

/// Opens the file or program that `ErrorLog` names.
fn open_error_log(site: &Site) -> anyhow::Result<Option<ErrorLog>> {
    let target = site.settings().logs.error.as_ref();
    target.map(ErrorLog::open).transpose().context("cannot write the error log")
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is in there is only replaced whole, so a panic cannot have left half of it.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reloads at SIGHUP and SIGUSR1, and stops the server at the first SIGTERM or SIGINT; at the second the
/// process ends at once.
fn act_on_signals(stopper: Stopper, reloading: Reloading) -> io::Result<()> {
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
