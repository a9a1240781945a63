//! The tests of tests/load on epoll, where io_uring is what is taken by itself.

#[path = "../load/answers.rs"]
mod answers;
#[path = "../load/chain.rs"]
mod chain;
#[path = "../load/failures.rs"]
mod failures;
#[path = "../load/misbehaviour.rs"]
#[allow(dead_code, reason = "the drop-ins are tested there alone")]
mod misbehaviour;
#[path = "../load/names.rs"]
mod names;
#[path = "../load/observer.rs"]
mod observer;
#[path = "../load/open_loop.rs"]
mod open_loop;
#[path = "../load/peer.rs"]
mod peer;
#[path = "../load/persistence.rs"]
mod persistence;
#[path = "../load/pipeline.rs"]
mod pipeline;
#[path = "../load/runs.rs"]
mod runs;
#[path = "../load/slots.rs"]
mod slots;
#[path = "../load/sockets.rs"]
mod sockets;
#[path = "../load/stop.rs"]
mod stop;
#[path = "../load/tls.rs"]
mod tls;

use milepost_load::Io;

use crate::runs::{kinds, load, plan, target};

/// How sockets are reached.
const IO: Io = Io::Epoll;
