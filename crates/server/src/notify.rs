//! Tells the service manager how the server is: ready, reloading, stopping, alive.
//!
//! The protocol is one datagram of text for each message, so it needs no library. Without a manager
//! nothing is sent. What cannot be sent is not worth ending the server for.
//!
//! Source: `sd_notify(3)`, `sd_watchdog_enabled(3)`, `systemd.service(5)` (`Type=notify-reload`).

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::error_log::report;

/// The service manager, if there is one that listens.
#[derive(Debug, Default)]
pub struct Manager {
    socket: Option<UnixDatagram>,
    watchdog: Option<Duration>,
}

impl Manager {
    /// Finds the service manager that started this process. One that cannot be reached is none.
    #[must_use]
    pub fn from_environment() -> Manager {
        let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
        let is_for_us =
            number("WATCHDOG_PID").is_none_or(|pid: u64| pid == u64::from(std::process::id()));
        let watchdog = number("WATCHDOG_USEC").filter(|_| is_for_us).map(Duration::from_micros);
        let name = std::env::var_os("NOTIFY_SOCKET").filter(|name| !name.is_empty());
        match name.map(|name| connect(&name)) {
            None => Manager::default(),
            Some(Ok(socket)) => Manager { socket: Some(socket), watchdog },
            Some(Err(error)) => {
                report(&format!("cannot reach the service manager at NOTIFY_SOCKET: {error}"));
                Manager::default()
            }
        }
    }

    /// The server answers; `status` is shown to people.
    pub fn ready(&self, status: &str) {
        self.send(&format!("READY=1\nMAINPID={}\nSTATUS={status}", std::process::id()));
    }

    /// The server loads its configuration anew; [`Manager::ready`] says that it is done.
    pub fn reloading(&self) {
        let now = clock_gettime(ClockId::Monotonic);
        let now_us = now.tv_sec * 1_000_000 + now.tv_nsec / 1_000;
        self.send(&format!("RELOADING=1\nMONOTONIC_USEC={now_us}"));
    }

    /// The server ends.
    pub fn stopping(&self) {
        self.send("STOPPING=1");
    }

    /// How long the manager waits for a sign of life before it starts another server.
    #[must_use]
    pub fn watchdog(&self) -> Option<Duration> {
        self.watchdog
    }

    /// The sign of life.
    pub fn alive(&self) {
        self.send("WATCHDOG=1");
    }

    fn send(&self, message: &str) {
        if let Some(socket) = &self.socket {
            let _ = socket.send(message.as_bytes());
        }
    }
}

fn connect(name: &OsStr) -> io::Result<UnixDatagram> {
    let address = match name.as_encoded_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(name)?,
    };
    let socket = UnixDatagram::unbound()?;
    socket.connect_addr(&address)?;
    // Nobody waits for a manager that does not read.
    socket.set_nonblocking(true)?;
    Ok(socket)
}
