//! Lines for the system's log, which listens on a Unix socket.
//!
//! Each line is a datagram of its own, and finds the socket by its name, so a syslog that is started anew is
//! found again.
//!
//! Source: RFC 3164 sections 4.1.1 and 4.1.2; glibc `misc/syslog.c`.

use std::io::{self, Write};
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;

use chrono::Local;

use super::Severity;

/// Where syslog listens.
const SOCKET: &str = "/dev/log";

/// Longest line, in bytes: RFC 3164 allows no more than 1,024, and all that there are take this.
const LINE_BYTES_MAX: usize = 8192;

/// A way to the system's log.
#[derive(Debug)]
pub(crate) struct Syslog {
    socket: UnixDatagram,
    path: PathBuf,
    facility: u8,
    tag: String,
}

impl Syslog {
    /// # Errors
    /// When no socket can be made. That nobody listens shows when a line is sent.
    pub(crate) fn new(settings: &milepost_engine::Syslog) -> io::Result<Syslog> {
        let socket = UnixDatagram::unbound()?;
        socket.set_nonblocking(true)?;
        let milepost_engine::Syslog { facility, tag } = settings.clone();
        Ok(Syslog { socket, path: SOCKET.into(), facility, tag })
    }

    /// Sends lines; what is not taken goes to stderr, and is not lost.
    pub(crate) fn send_or_say(&self, lines: &[u8], severity: Severity) {
        if self.send(lines, severity).is_err() {
            // Nobody is left to hear that it fails.
            let _ = io::stderr().write_all(lines);
        }
    }

    /// Sends lines, each by itself.
    ///
    /// # Errors
    /// When one cannot be sent: nobody listens, or too much waits to be read.
    fn send(&self, lines: &[u8], severity: Severity) -> io::Result<()> {
        let priority = u16::from(self.facility) * 8 + u16::from(severity.in_syslog());
        let (tag, process) = (&self.tag, std::process::id());
        let time = Local::now().format("%b %e %H:%M:%S");
        for line in lines.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
            let mut datagram = format!("<{priority}>{time} {tag}[{process}]: ").into_bytes();
            datagram.extend_from_slice(line);
            datagram.truncate(LINE_BYTES_MAX);
            self.socket.send_to(&datagram, &self.path)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_is_a_datagram() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let settings = milepost_engine::Syslog { facility: 19, tag: "milly".to_owned() };
        let syslog = Syslog { path: path.clone(), ..Syslog::new(&settings).unwrap() };
        syslog.send(b"lost\n", Severity::NOTICE).unwrap_err();
        let listener = UnixDatagram::bind(&path).unwrap();
        let long = [&b"a \n"[..], &[b'x'; 2 * LINE_BYTES_MAX]].concat();
        syslog.send(&long, Severity::trace(3)).unwrap();
        let mut buffer = [0; 2 * LINE_BYTES_MAX];
        let length = listener.recv(&mut buffer).unwrap();
        let text = String::from_utf8_lossy(&buffer[..length]).into_owned();
        let end = format!(" milly[{}]: a ", std::process::id());
        // 19 × 8 + 7; the time has fifteen bytes.
        assert_eq!((&text[..5], &text[20..]), ("<159>", &end[..]));
        assert_eq!(listener.recv(&mut buffer).unwrap(), LINE_BYTES_MAX);
    }
}
