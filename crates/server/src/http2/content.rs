//! Content of HTTP/2: sends that of answers as windows allow, and drops that of requests.
//!
//! Source: RFC 9113 sections 5.2 and 8.1.

use std::future::poll_fn;
use std::os::unix::fs::FileExt;
use std::rc::Rc;

use bytes::Bytes;
use h2::{Reason, RecvStream, SendStream};

use super::{CANNOT_GO_ON, Moved};
use crate::deadline::before;
use crate::limits::{CONTENT_DISCARDED_BYTES_MAX, FILE_PIECE_BYTES};
use crate::reply::{FileContent, Piece};
use crate::respond::Respond;
use crate::worker::Worker;

/// Where content comes from.
pub(super) enum Source {
    Bytes(Bytes),
    File(FileContent),
}

/// Sends all of `source`. A client that takes nothing for `Timeout` is left.
pub(super) async fn send<R: Respond>(
    mut stream: SendStream<Bytes>,
    mut source: Source,
    worker: Rc<Worker<R>>,
    moved: Rc<Moved>,
) {
    let slot = worker.deadlines.slot();
    while let Some(wanted) = source.wanted() {
        stream.reserve_capacity(wanted);
        let timeout = worker.limits(moved.server).timeout;
        slot.arm(worker.clock.after(timeout));
        let capacity = poll_fn(|context| stream.poll_capacity(context));
        let granted = match before(&slot, &worker.clock, capacity).await {
            Some(Some(Ok(granted))) => granted,
            // The stream is gone.
            Some(None | Some(Err(_))) => return,
            None => return stream.send_reset(Reason::CANCEL),
        };
        moved.note(worker.clock.now());
        let Some(piece) = source.take(granted) else {
            // The file has become shorter than we said.
            return stream.send_reset(CANNOT_GO_ON);
        };
        let ends = source.wanted().is_none();
        if stream.send_data(piece, ends).is_err() {
            return;
        }
    }
}

impl Source {
    /// How much could be sent next; `None` at the end.
    fn wanted(&self) -> Option<usize> {
        let left = match self {
            Source::Bytes(bytes) => bytes.len(),
            Source::File(content) => {
                content.pieces.front().map_or(0, |piece| piece.length() as usize)
            }
        };
        (left > 0).then(|| left.min(FILE_PIECE_BYTES))
    }

    /// Takes the next piece, of at most `granted` bytes; `None` if it cannot be had.
    fn take(&mut self, granted: usize) -> Option<Bytes> {
        match self {
            Source::Bytes(bytes) => Some(bytes.split_to(granted.min(bytes.len()))),
            Source::File(FileContent { file, pieces }) => {
                let first = pieces.front_mut()?;
                let most = granted.min(first.length() as usize).min(FILE_PIECE_BYTES);
                let taken = match first {
                    Piece::Text(text) => text.drain(..most).collect(),
                    Piece::Part(part) => {
                        let mut taken = vec![0; most];
                        let read = file.read_at(&mut taken, part.start).ok();
                        taken.truncate(read.filter(|&count| count > 0)?);
                        part.start += taken.len() as u64;
                        taken
                    }
                };
                if first.length() == 0 {
                    pieces.pop_front();
                }
                Some(Bytes::from(taken))
            }
        }
    }
}

/// Takes the content of a request and drops it, as long as that is worth more than an error. Dropping the
/// stream tells the client to stop.
pub(super) async fn discard<R: Respond>(
    mut stream: RecvStream,
    worker: Rc<Worker<R>>,
    moved: Rc<Moved>,
) {
    let slot = worker.deadlines.slot();
    let mut taken = 0;
    while taken <= CONTENT_DISCARDED_BYTES_MAX {
        let timeout = worker.limits(moved.server).timeout;
        slot.arm(worker.clock.after(timeout));
        let data = poll_fn(|context| stream.poll_data(context));
        let Some(Some(Ok(bytes))) = before(&slot, &worker.clock, data).await else { return };
        moved.note(worker.clock.now());
        taken += bytes.len() as u64;
        if stream.flow_control().release_capacity(bytes.len()).is_err() {
            return;
        }
    }
}
