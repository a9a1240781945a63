//! Loads the configuration anew while the old one serves, and puts it in place if it is whole.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Context;
use milepost_engine::{LoadOptions, Loaded, LogTarget, Severity, Site};
use milepost_server::{
    ErrorLog, Helpers, Logs, Manager, Metrics, PidFile, Reloader, SiteResponder, Tls, Watched,
    report, report_diagnostic, report_error,
};

use super::endpoints;

/// Loads a configuration, and says what is wrong with it. Tells what to watch in any case.
pub(super) fn load(options: &LoadOptions) -> (Option<Arc<Site>>, Watched) {
    let (Loaded { site, diagnostics }, watched) = Watched::load(options);
    for diagnostic in diagnostics.iter().filter(|found| found.severity >= Severity::Warning) {
        report_diagnostic(diagnostic);
    }
    (site.map(Arc::new), watched)
}

/// What a reload needs.
pub(super) struct Reloading {
    pub(super) options: LoadOptions,
    pub(super) what: String,
    pub(super) reloader: Reloader,
    pub(super) serving: Arc<Mutex<Serving>>,
    pub(super) manager: Arc<Manager>,
    pub(super) watched: Watched,
}

/// What is served. Kept beside the workers so that none of them has to take it apart when it is replaced.
pub(super) struct Serving {
    pub(super) site: Arc<Site>,
    pub(super) logs: Arc<Logs>,
    pub(super) helpers: Helpers,
    pub(super) metrics: Arc<Metrics>,
    pub(super) pid_file: Option<PidFile>,
    pub(super) tls: Option<Arc<Tls>>,
}

impl Serving {
    /// Starts the writer of the logs of a site, and the programs that its maps ask.
    pub(super) fn new(
        site: Arc<Site>,
        logs: Logs,
        tls: Option<Tls>,
        metrics: Arc<Metrics>,
    ) -> anyhow::Result<Serving> {
        logs.start()?;
        let helpers = Helpers::start(&site)?;
        metrics.expect(&site);
        let (logs, tls) = (Arc::new(logs), tls.map(Arc::new));
        Ok(Serving { site, logs, helpers, metrics, pid_file: None, tls })
    }

    /// What makes the responder of each worker.
    pub(super) fn responder(&self) -> impl Fn() -> SiteResponder + Send + Sync + 'static {
        let (site, logs) = (Arc::clone(&self.site), Arc::clone(&self.logs));
        let tls = self.tls.clone();
        // Each worker has its own share; the first one is only there to be shared.
        let helpers = Mutex::new(self.helpers.share());
        let metrics = Arc::clone(&self.metrics);
        move || {
            SiteResponder::with_logs(Arc::clone(&site), Arc::clone(&logs))
                .with_helpers(lock(&helpers).share())
                .with_metrics(&metrics)
                .with_tls(tls.clone())
        }
    }
}

impl Reloading {
    /// Whether a file of the configuration has changed since it was loaded.
    pub(super) fn has_changed(&mut self) -> bool {
        self.watched.has_changed()
    }

    pub(super) fn reload(&mut self) {
        self.manager.reloading();
        let outcome = self.try_reload();
        lock(&self.serving).metrics.reloaded(outcome.is_ok());
        let (status, say): (_, fn(&str)) = match outcome {
            Ok(addresses) => (format!("serving {} anew on {addresses}", self.what), report),
            Err(error) => (format!("{error:#}; what was served before still is"), report_error),
        };
        say(&status);
        self.manager.ready(&status);
    }

    /// Puts the configuration as it is now in place of the old one; returns the addresses.
    fn try_reload(&mut self) -> anyhow::Result<String> {
        let (site, watched) = load(&self.options);
        self.watched = watched;
        let Some(site) = site else {
            anyhow::bail!("{} does not load", self.what);
        };
        let logs = Logs::open(&site.settings().logs, Some(&lock(&self.serving).logs))?;
        let tls = Tls::new(&site, lock(&self.serving).tls.as_deref())?;
        let metrics = Arc::clone(&lock(&self.serving).metrics);
        let new = Serving::new(site, logs, tls, metrics)?;
        self.reloader.reload(new.site.settings(), new.responder())?;
        // Old rules are taken apart, and old logs written to their end, here and by no worker.
        let mut old = std::mem::replace(&mut *lock(&self.serving), new);
        self.keep_pid_file(old.pid_file.take());
        drop(old);
        match open_error_log(&lock(&self.serving).site) {
            Ok(Some(log)) => log.install().context("cannot write the error log")?,
            Ok(None) => {}
            // `User` may not open what the server could open at its start: that log goes on.
            Err(error) => report_error(&format!("{error:#}; the log that is open stays")),
        }
        Ok(endpoints(&self.reloader.endpoints()))
    }
}

impl Reloading {
    /// Moves the pid file to where the new configuration wants it.
    fn keep_pid_file(&self, old: Option<PidFile>) {
        let mut serving = lock(&self.serving);
        let wanted = serving.site.settings().pid_file.as_deref();
        serving.pid_file = if old.as_ref().map(PidFile::path) == wanted {
            old
        } else {
            match wanted.map(PidFile::write).transpose() {
                Ok(new) => new,
                Err(error) => {
                    report_error(&format!("{error}; the one that is there stays"));
                    old
                }
            }
        };
    }
}

/// Opens what `ErrorLog` names.
pub(super) fn open_error_log(site: &Site) -> anyhow::Result<Option<ErrorLog>> {
    let settings = &site.settings().logs;
    ErrorLog::open(settings).with_context(|| match settings.error_log(0).target {
        Some(LogTarget::File(path)) => format!("cannot write the error log {}", path.display()),
        _ => "cannot write the error log".to_owned(),
    })
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is in there is only replaced whole, so a panic cannot have left half of it.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
