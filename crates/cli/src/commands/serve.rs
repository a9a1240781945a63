//! `milepost serve`: loads a configuration, binds, serves, reloads and stops when told to.
//!
//! Nothing is listened on before the whole configuration has been read, and nothing is announced
//! before all workers accept connections, so that a script can wait for the one line on stderr.
//!
//! What was served before a reload is served until the new configuration is ready, and goes on being served
//! if that never is.

mod control;
mod reload;
mod signals;

use std::io::Write;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use anyhow::Context;
use milepost_engine::{Listen, Settings};
use milepost_server::{
    Endpoint, Inherited, Logs, Manager, Metrics, PidFile, Scrape, Server, Tls, become_user, note,
    raise_descriptor_limit, report,
};

use super::configuration::Configuration;
use control::{Action, Next};
use reload::{Reloading, Serving, load, lock, open_error_log};

/// Where a directory is served when no configuration says anything else.
const DEFAULT_LISTEN: &str = "127.0.0.1:8080";

/// Arguments of `milepost serve`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
SIGTERM and SIGINT stop the server: answers that are under way are finished first, within 10 s. A second \
one stops it at once. SIGWINCH stops it when all answers are finished, or GracefulShutdownTimeout is over; not \
when stderr is a terminal, which sends it for other reasons.\n\nSIGHUP and SIGUSR1 load the configuration anew. \
Connections stay open and no request fails; Listen directives take effect too. A configuration with an error \
changes nothing, and is said on stderr.\n\nStarted as root, the server takes the rights of User and Group when its \
ports are bound. PidFile, ErrorLog and CustomLog say where its files go; without ErrorLog, errors go to stderr. \
Under systemd, sockets of a .socket unit are taken over, and Type=notify and WatchdogSec= work.\n\nExit status: 0 \
stopped as it was told to, 2 could not load the configuration or serve.")]
pub(crate) struct Args {
    #[command(flatten)]
    configuration: Configuration,
    /// Number of worker threads; as many as there are cores if not given
    #[arg(long, value_name = "N")]
    workers: Option<NonZeroUsize>,
    /// start, stop, restart, graceful or graceful-stop the server that PidFile names, as httpd -k does; start
    /// goes to the background
    #[arg(short = 'k', value_name = "ACTION", hide_possible_values = true)]
    action: Option<Action>,
    /// Load the configuration anew when one of its files changes
    #[arg(long)]
    watch: bool,
    /// Address on which metrics are served as /metrics, in the text format of Prometheus
    #[arg(long, value_name = "ADDRESS:PORT")]
    metrics: Option<SocketAddr>,
    /// Do not act on -k: this is the process that it has started
    #[arg(long, hide = true)]
    foreground: bool,
    /// Configuration file, as with -f; or a directory to serve, on 127.0.0.1:8080 unless -C or -c say Listen
    #[arg(default_value = ".", conflicts_with = "file")]
    path: PathBuf,
}

/// Runs `milepost serve` until it is stopped.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let workers = match args.workers {
        Some(workers) => workers,
        None => std::thread::available_parallelism().context("cannot count the cores")?,
    };
    let (options, what) = args.configuration.options(&args.path, Some(DEFAULT_LISTEN))?;
    // The variables of the service manager are read while there is no other thread.
    let inherited = Inherited::from_environment().context("cannot take over sockets")?;
    let manager = Manager::from_environment();
    let (Some(site), watched) = load(&options) else {
        anyhow::bail!("{what} does not load");
    };
    if let Some(action) = args.action.filter(|_| !args.foreground) {
        return match control::act(action, site.settings())? {
            Next::Done(code) => Ok(code),
            Next::Start => control::start(),
        };
    }
    if let Some(path) = &site.settings().pid_file {
        control::ensure_alone(path)?;
    }
    raise_descriptor_limit();
    let server = Server::bind_with(site.settings(), inherited, workers)?;
    let addresses = endpoints(&server.endpoints());
    let metrics = Arc::new(Metrics::new(args.metrics.is_some()));
    let server = server.with_metrics(Arc::clone(&metrics));
    let scraped = args.metrics.map(bind_metrics).transpose()?;
    let pid_file = site.settings().pid_file.as_deref().map(PidFile::write).transpose()?;
    let error_log = open_error_log(&site)?;
    let logs = Logs::open(&site.settings().logs, None)?;
    // Keys are often nobody's to read but root's.
    let tls = Tls::new(&site, None)?;
    // From here on threads are started, which have the rights of this one.
    become_user(site.settings())?;
    let serving = Serving { pid_file, ..Serving::new(site, logs, tls, Arc::clone(&metrics))? };
    let running = server.start(serving.responder())?;
    let serving = Arc::new(Mutex::new(serving));
    let manager = Arc::new(manager);
    let reloading = Reloading {
        options,
        what: what.clone(),
        reloader: running.reloader(),
        serving: Arc::clone(&serving),
        manager: Arc::clone(&manager),
        watched,
    };
    signals::act_on_signals(running.stopper(), reloading, args.watch)
        .context("cannot listen to signals")?;
    signals::give_signs_of_life(Arc::clone(&manager), running.reloader())
        .context("cannot keep the watchdog quiet")?;
    let mut status = format!("serving {what} on {addresses}");
    // Stopped when it is dropped, after the server has ended.
    let _scraped = match scraped {
        None => None,
        Some(server) => {
            let address = endpoints(&server.endpoints());
            status += &format!(", metrics on http://{address}/metrics");
            Some(server.start(move || Scrape(Arc::clone(&metrics)))?)
        }
    };
    report(&status);
    if let Some(log) = error_log {
        log.install().context("cannot write the error log")?;
        note(&status);
    }
    manager.ready(&status);
    let outcome = running.join();
    lock(&serving).helpers.stop();
    lock(&serving).logs.close();
    drop(lock(&serving).pid_file.take());
    outcome?;
    note("stopped");
    Ok(ExitCode::SUCCESS)
}

/// Binds the address of the metrics.
fn bind_metrics(address: SocketAddr) -> anyhow::Result<Server> {
    let listen =
        Listen { addresses: vec![address], place: "--metrics".to_owned(), ..Listen::default() };
    let settings = Settings { listens: vec![listen], ..Settings::default() };
    Ok(Server::bind(&settings, NonZeroUsize::MIN)?)
}

/// Addresses, as they are announced.
fn endpoints(endpoints: &[Endpoint]) -> String {
    endpoints.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// Tells whoever runs the server.
fn say(message: &str) {
    // A server whose stderr is gone serves on.
    let _ = writeln!(std::io::stderr().lock(), "{message}");
}
