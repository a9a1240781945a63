//! What a running server listens to besides its clients: signals, changed files, the watchdog's clock.

use std::io::{self, IsTerminal};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use milepost_server::{Manager, Reloader, Stopper, WATCH_INTERVAL, note};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGWINCH};
use signal_hook::iterator::Signals;

use super::reload::{Reloading, lock};

/// What a shell adds to the number of the signal that ended a process.
const EXIT_BY_SIGNAL: i32 = 128;

/// A change is acted on when the files have been the same for so long: editors write in several steps.
const SETTLING: Duration = Duration::from_millis(200);

/// Reloads at SIGHUP and SIGUSR1, and if `watch` is set, when a file has changed. Stops the server at the
/// first SIGTERM or SIGINT, and without a limit at SIGWINCH; at the second the process ends at once.
pub(super) fn act_on_signals(
    stopper: Stopper,
    reloading: Reloading,
    watch: bool,
) -> io::Result<()> {
    let stopping = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGINT] {
        // The order matters: the first signal finds the flag unset, and only then sets it.
        let status = EXIT_BY_SIGNAL + signal;
        signal_hook::flag::register_conditional_shutdown(signal, status, Arc::clone(&stopping))?;
        signal_hook::flag::register(signal, Arc::clone(&stopping))?;
    }
    // A terminal sends SIGWINCH when its window changes, which is no reason to stop.
    let winch = (!io::stderr().is_terminal()).then_some(SIGWINCH);
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP, SIGUSR1].into_iter().chain(winch))?;
    let (reload, reloads) = mpsc::channel();
    let (manager, serving) = (Arc::clone(&reloading.manager), Arc::clone(&reloading.serving));
    thread::Builder::new().name("milepost-signals".to_owned()).spawn(move || {
        for signal in signals.forever() {
            match signal {
                SIGTERM | SIGINT => {
                    note("told to stop: answers under way have 10 s");
                    manager.stopping();
                    return stopper.stop();
                }
                SIGWINCH => {
                    note("told to stop when all answers are finished");
                    manager.stopping();
                    let grace = lock(&serving).site.settings().graceful_timeout;
                    stopper.stop_within(grace);
                }
                // The other thread lives as long as this one.
                _ => drop(reload.send(())),
            }
        }
    })?;
    thread::Builder::new()
        .name("milepost-reload".to_owned())
        .spawn(move || reload_when_asked(reloading, &reloads, watch))?;
    Ok(())
}

/// A reload has a thread of its own, so that a stop is heard while a large configuration loads.
fn reload_when_asked(mut reloading: Reloading, reloads: &mpsc::Receiver<()>, watch: bool) {
    loop {
        let asked = if watch {
            reloads.recv_timeout(WATCH_INTERVAL)
        } else {
            reloads.recv().map_err(mpsc::RecvTimeoutError::from)
        };
        match asked {
            Ok(()) => {
                // Those that have come by now ask for nothing more than the load that begins now.
                while reloads.try_recv().is_ok() {}
            }
            Err(mpsc::RecvTimeoutError::Timeout) if reloading.has_changed() => {
                thread::sleep(SETTLING);
                while reloading.has_changed() {
                    thread::sleep(SETTLING);
                }
            }
            Err(mpsc::RecvTimeoutError::Timeout) => continue,
            Err(mpsc::RecvTimeoutError::Disconnected) => return,
        }
        reloading.reload();
    }
}

/// Tells the service manager that the workers take messages, often enough for its watchdog. A worker that
/// hangs keeps the sign of life from being given, and the manager starts the server anew.
pub(super) fn give_signs_of_life(manager: Arc<Manager>, reloader: Reloader) -> io::Result<()> {
    let Some(limit) = manager.watchdog() else { return Ok(()) };
    let interval = limit / 3;
    thread::Builder::new().name("milepost-alive".to_owned()).spawn(move || {
        loop {
            if reloader.is_alive(interval) {
                manager.alive();
            }
            thread::sleep(interval);
        }
    })?;
    Ok(())
}
