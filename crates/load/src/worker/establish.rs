//! What a worker does between opening a socket and the first request on it.
//!
//! With a plain socket there is nothing to do: the request itself finds out whether it is connected.

use super::Worker;
use crate::answer::Failure;
use crate::connection::Watch;
use crate::failure::FailureKind;
use crate::layered::{Hindrance, Stage};
use crate::stream::Stream;

impl Worker<'_> {
    /// Goes on with opening a connection, up to its request if possible.
    #[inline]
    pub(super) fn establish(&mut self, at: usize) {
        match &self.connections[at].socket {
            Some(Stream::Layered(_)) => self.establish_layers(at),
            _ => self.write(at),
        }
    }

    #[cold]
    fn establish_layers(&mut self, at: usize) {
        let connection = &mut self.connections[at];
        let Some(Stream::Layered(layered)) = &mut connection.socket else { return };
        let stage = match self.core.driver.establish(at, layered) {
            Ok(stage) => stage,
            Err(error) => return self.refused(at, error),
        };
        if stage == Stage::Connecting {
            return;
        }
        let now = self.core.shared.clock.now();
        if connection.connected == 0 {
            connection.connected = now;
            self.core.record.connect.record(now - connection.opened);
        }
        if stage == Stage::Handshake {
            if layered.wants_write() && connection.watch == Watch::Read {
                self.watch(at, Watch::Both);
            }
            return;
        }
        if let Some(is_resumed) = layered.is_resumed() {
            let took = now - connection.connected;
            self.core.record.handshake(took, is_resumed, || layered.session());
        }
        self.write(at);
    }
}

/// What an error on the way to the first request is counted as, if what lies on top of the socket is
/// to blame.
pub(super) fn hindered(error: &std::io::Error) -> Option<FailureKind> {
    match error.get_ref()?.downcast_ref::<Hindrance>()? {
        Hindrance::Tunnel(_) => Some(FailureKind::TunnelRefused),
        Hindrance::Tls(_) | Hindrance::Closed | Hindrance::NoHttp2 | Hindrance::Http2(_) => {
            Some(FailureKind::TlsFailed)
        }
    }
}

/// The end of an answer without a length, on a connection that ended without the word of TLS that this
/// is all: it may have been cut off by anybody.
#[cold]
pub(crate) fn cut_off() -> Failure {
    let detail = "closed inside of content without a length: TLS did not say that this is all";
    Failure::new(FailureKind::ClosedInContent, detail)
}
