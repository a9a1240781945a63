//! `milepost serve`: loads a configuration, binds, serves, and stops when told to.
//!
//! Nothing is listened on before the whole configuration has been read, and nothing is announced
//! before all workers accept connections, so that a script can wait for the one line on stderr.

use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Context;
use milepost_engine::{LoadOptions, Loaded, Lookup, Severity, Site};
use milepost_server::{FileSystem, Server, SiteResponder, Stopper, raise_descriptor_limit};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

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
    /// Configuration file; relative to ROOT, if there is one
    #[arg(short = 'f', value_name = "FILE")]
    file: Option<PathBuf>,
    /// Server root, which relative paths in the configuration start from
    #[arg(short = 'd', value_name = "ROOT")]
    root: Option<PathBuf>,
    /// Directive to read before the configuration file
    #[arg(short = 'C', value_name = "DIRECTIVE")]
    before: Vec<String>,
    /// Directive to read after the configuration file
    #[arg(short = 'c', value_name = "DIRECTIVE")]
    after: Vec<String>,
    /// Name that <IfDefine> finds defined
    #[arg(short = 'D', value_name = "NAME")]
    defines: Vec<String>,
    /// Number of worker threads; as many as there are cores if not given
    #[arg(long, value_name = "N")]
    workers: Option<NonZeroUsize>,
    /// Try rule after rule instead of using the index; for comparisons
    #[arg(long)]
    scan: bool,
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
    let (options, what) = load_options(args)?;
    let Loaded { site, diagnostics } = Site::load(&options, &FileSystem);
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

/// Turns what was typed into what to load, and a name for it.
fn load_options(args: Args) -> anyhow::Result<(LoadOptions, String)> {
    let here = std::env::current_dir().context("there is no current directory")?;
    let server_root = here.join(args.root.unwrap_or_default());
    let mut after = args.after;
    let what = match &args.file {
        Some(file) => file.display().to_string(),
        None => {
            let directory = server_root.join(&args.directory);
            let directory = directory
                .canonicalize()
                .with_context(|| format!("cannot serve {}", args.directory.display()))?;
            let listens = args.before.iter().chain(&after).any(|directive| is_listen(directive));
            let listen = if listens { None } else { Some(DEFAULT_LISTEN) };
            // What was given with -c comes after, and so has the last word.
            after.insert(0, directory_directives(&directory, listen)?);
            directory.display().to_string()
        }
    };
    let options = LoadOptions {
        server_root,
        file: args.file,
        defines: args.defines,
        before: args.before,
        after,
        lookup: if args.scan { Lookup::Scan } else { Lookup::Index },
    };
    Ok((options, what))
}

/// Whether a directive says where to listen.
fn is_listen(directive: &str) -> bool {
    let name = directive.split_ascii_whitespace().next();
    name.is_some_and(|name| name.eq_ignore_ascii_case("Listen"))
}

/// The configuration that serves one directory.
fn directory_directives(directory: &Path, listen: Option<&str>) -> anyhow::Result<String> {
    let name = directory.to_str().context("the name of the directory is not UTF-8")?;
    let quoted = format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\""));
    let listen = listen.map(|address| format!("Listen {address}\n")).unwrap_or_default();
    Ok(format!(
        "{listen}\
         DocumentRoot {quoted}\n\
         <Directory {quoted}>\n\
         AllowOverride All\n\
         Require all granted\n\
         </Directory>\n"
    ))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_has_a_default_address_unless_one_is_given() {
        for (after, expected) in [
            (None, "Listen 127.0.0.1:8080\nDocumentRoot \"/"),
            (Some("Redirect /a http://b/"), "Listen 127.0.0.1:8080\nDocumentRoot \"/"),
            (Some("listen 127.0.0.1:9000"), "DocumentRoot \"/"),
        ] {
            let args = Args {
                file: None,
                root: None,
                before: Vec::new(),
                after: after.map(str::to_owned).into_iter().collect(),
                defines: Vec::new(),
                workers: None,
                scan: false,
                directory: "/".into(),
            };
            let (options, what) = load_options(args).unwrap();
            assert_eq!(what, "/");
            assert!(options.after[0].starts_with(expected), "{:?}", options.after);
        }
    }

    #[test]
    fn a_directory_may_have_any_name() {
        let directives = directory_directives(Path::new("/a \"b\\c"), None).unwrap();
        assert!(directives.starts_with("DocumentRoot \"/a \\\"b\\\\c\"\n"), "{directives}");
    }
}
